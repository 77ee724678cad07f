"""Whether a report of an audit holds: its claims asked again, one by one."""

import ast
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

import hardwood as hw
from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import Trees
from hardwood.report import findings, regression, words
from hardwood.report.checks import without_drawn
from hardwood.report.clock import Clock, Settings, undecided_is_told
from hardwood.report.findings import LETTER
from hardwood.report.images import image_rows
from hardwood.threat import Threat
from hardwood.verify.certify import certify
from hardwood.verify.distance import minimal_distance
from hardwood.verify.output import output_range
from hardwood.verify.problem import Outputs, Problem

Check = dict[str, Any]

_OTHER_ROWS = "The rows with answers are not those that the seed draws from the data."


def read_threat(code: str) -> Threat:
    """The threat that a report was made for, from the way it prints itself."""
    try:
        call = ast.parse(code, mode="eval").body
    except MemoryError:  # what Python's parser says, whatever memory there is
        raise ValueError(f"The report's threat is nested too deeply: {code[:80]!r}.") from None
    if not isinstance(call, ast.Call) or getattr(call.func, "id", None) != "Threat" or call.args:
        raise ValueError(f"The report's threat must read like Threat(eps=0.1), got {code[:80]!r}.")
    return Threat(**{str(part.arg): _value(part.value) for part in call.keywords})


def _value(node: ast.expr) -> Any:
    """A literal; beside these a threat prints `relative(...)`, `ANY` and infinity."""
    if isinstance(node, ast.Dict):
        keys = [_value(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.List):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(one) for one in node.elts)
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    if isinstance(node, ast.Call) and name == "relative":
        given = {str(part.arg): _value(part.value) for part in node.keywords}
        return hw.relative(*map(_value, node.args), **given)
    if name == "ANY":
        return hw.ANY
    if name == "inf":
        return float("inf")
    return ast.literal_eval(node)


class ReportedAnswers:
    """The answers of a report, row by row."""

    def __init__(self, content: dict[str, Any], n_rows: int) -> None:
        spelled = {letter: status for status, letter in LETTER.items()}
        self.rows = findings.row_numbers(content["rows"], n_rows)
        self.status = np.array([spelled[letter] for letter in content["status"]], dtype="<U13")
        self.near = findings.row_numbers(content["measured"], n_rows)
        self.lower, self.upper = (
            np.array([np.inf if one is None else one for one in content[side]], dtype=np.float64)
            for side in ("lower", "upper")
        )

    @property
    def fit(self) -> bool:
        """Whether there is one answer for each row."""
        measured = len(self.near) == len(self.lower) == len(self.upper)
        return measured and len(self.rows) == len(self.status)

    def at_threat(self) -> npt.NDArray[np.str_]:
        """The answers of the measured rows."""
        known = dict(zip(self.rows.tolist(), self.status.tolist(), strict=True))
        return np.array([known.get(row, "") for row in self.near.tolist()])

    def sums(self) -> dict[str, Any]:
        """The counts that follow."""
        at_threat = self.at_threat()
        wrong = at_threat == "misclassified"
        return {
            "certificate": findings.counts_of(self.status),
            "curve": findings.curve_of(self.lower, self.upper, at_threat),
            "distances": findings.distances_of(self.lower, self.upper, wrong),
        }


class Replay:
    """A report beside the model and the rows it speaks of."""

    def __init__(
        self,
        content: dict[str, Any],
        model: Any,
        X: Any,
        y: Any,
        n_rows: int,
        rng: np.random.Generator,
    ) -> None:
        self.content, self.model, self.X, self.y = content, model, X, y
        threshold = content["model"]["threshold"]
        self.asked = {} if threshold is None else {"threshold": threshold}
        self.problem = Problem.of(model, X, y, None, **self.asked)
        self.told = self._named(content["model"]["classes"])
        self.threat = read_threat(content["threat"]["code"])
        self.n_rows, self.rng = n_rows, rng
        self.answers = ReportedAnswers(content["answers"], len(self.problem.X))

    def _named(self, classes: list[str]) -> Problem:
        """The problem with the names of a report, where the model only counts its classes."""
        trees = self.problem.trees
        counted = [str(k) for k in range(trees.n_classes)]
        own = [words.label_of(trees, k) for k in range(trees.n_classes)]
        fits = len(set(classes)) == len(classes) == len(counted)
        return findings.named(self.problem, classes) if own == counted and fits else self.problem

    def checks(self, sealed: bool, twin: Any) -> list[Check]:
        """Every claim that can be asked again."""
        answer = [_seal(sealed), self._fingerprints()]
        if answer[1]["passed"]:
            answer += [self._sums(), self._told(), self._examples(), self._spent()]
            answer += [self._certificates(), self._distances(), self._alone(), *self._twin(twin)]
        return answer

    def _twin(self, twin: Any) -> list[Check]:
        """The same of the second model; of one that is not there, whether its counts add up."""
        part = self.content.get("twin")
        if part is None:
            return []
        if twin is None:
            answers = ReportedAnswers(part["answers"], len(self.problem.X))
            off = self._twin_differs(part, answers) if answers.fit else ["answers"]
            good = "The twin's counts add up; its model was not given."
            return [_check("twin", not off, good, f"Twin: {_do_not_follow(off)}")]
        other = Replay({**self.content, **part}, twin, self.X, self.y, self.n_rows, self.rng)
        checks = [other._fingerprints()]
        if checks[0]["passed"]:
            checks += [other._sums(), other._certificates(), other._distances()]
        return _of_the_twin(checks)

    def _twin_differs(self, part: dict[str, Any], answers: ReportedAnswers) -> list[str]:
        """What does not follow from the answers of a twin that is not there to be asked."""
        if not self._asked_about(answers):
            return ["answers"]
        problem, well = self.problem, answers.status != "misclassified"
        right = np.zeros(len(problem.X), dtype=bool)
        right[answers.rows] = well
        accuracy = findings.accuracy_of(self.told, right, answers.rows)
        classes = findings.classes_of(self.told, answers.rows, answers.status)
        for k, (one, told) in enumerate(zip(classes, part["classes"], strict=True)):
            one["right"] = int(np.count_nonzero(well & (problem.y[answers.rows] == k)))
            one["said"] = told["said"]  # which only the twin itself knows
        if len(answers.rows) < len(problem.X):
            accuracy["right"] = part["accuracy"]["right"]  # of rows without an answer, too
        truth = {"accuracy": accuracy, "classes": classes, **answers.sums()}
        return _differing(part, truth)

    def _fingerprints(self) -> Check:
        return _same_source(self.content, self.problem.trees, self.problem.X, self.problem.y)

    def _asked_about(self, answers: ReportedAnswers) -> bool:
        """Whether the rows are those that the seed draws: none is left out."""
        limits = self.content["limits"]
        rows, near = findings.asked_about(
            len(self.problem.X), limits["max_rows"], limits["n_distances"], limits["seed"]
        )
        return np.array_equal(answers.rows, rows) and np.array_equal(answers.near, near)

    def _sums(self) -> Check:
        """All counts follow from the answers row by row; the model's own part is asked again."""
        problem, answers = self.problem, self.answers
        if not answers.fit:
            return _check("sums", False, "", "The answers are not one for each row.")
        right = ~problem.misclassified()
        if not self._asked_about(answers):
            return _check("sums", False, "", _OTHER_ROWS)
        own = self.content["model"]
        truth = {
            "model": findings.model_of(own["name"], self.told.trees, own["threshold"]),
            "accuracy": findings.accuracy_of(self.told, right, answers.rows),
            "classes": findings.classes_of(self.told, answers.rows, answers.status),
            **answers.sums(),
        }
        off = _differing(self.content, truth)
        good = "Accuracy, certificate, classes, curve and distances add up."
        return _check("sums", not off, good, _do_not_follow(off))

    def _told(self) -> Check:
        """What the page says beside its counts is put into words again."""
        content, problem, answers = self.content, self.problem, self.answers
        reach = problem.reach(self.threat)
        truth = _facts(self.threat, problem.trees)
        truth["data"] = findings.data_of(problem, answers.rows, answers.near)
        off = _differing(content, truth)
        order = findings.nearest(problem.trees, answers.upper)[: content["limits"]["n_fragile"]]
        rows, multiple = answers.near[order].tolist(), answers.upper[order].tolist()
        listed = [(one["row"], one["multiple"]) for one in content["fragile"]]
        off += ["fragile"] * (listed != list(zip(rows, multiple, strict=True)))
        n_open = sum(one["rows"] for one in content["open"])
        off += ["open"] * (n_open != content["certificate"]["unknown"])
        off += ["images"] * (not self._pictured())
        # Whoever made the report may have had the model's own library, or may not.
        told = [
            findings.checks_of(content, problem, reach, self.threat, sourced)
            for sourced in (True, False)
        ]
        off += ["checks"] * (without_drawn(content["checks"]) not in told)
        return _told_check(off)

    def _pictured(self) -> bool:
        """Whether the pictures are those of the examples."""
        shown = self.content.get("images")
        if shown is None:
            return True
        shape = shown["height"], shown["width"]
        fits = shape[0] * shape[1] == self.problem.X.shape[1]
        return fits and bool(image_rows(self.content, self.X, shape) == shown)

    def _alone(self) -> Check:
        """What a change of one column alone can do is asked again."""
        content, answers = self.content, self.answers
        examined = findings.Examined(self.threat, self.problem.reach(self.threat), self.problem)
        with undecided_is_told():
            again = findings.alone_of(examined, answers.near, answers.at_threat(), _clock(content))
        fresh = {one["column"]: one for one in again["columns"]}
        # A row that one of them left open may be either for the other.
        failed = [
            one["column"]
            for one in content["alone"]["columns"]
            if one["turned"] > fresh[one["column"]]["turned"] + fresh[one["column"]]["open"]
            or one["turned"] + one["open"] < fresh[one["column"]]["turned"]
        ]
        return _alone_check(content, again, "turned", failed)

    def _examples(self) -> Check:
        """Every example is sent through the model, and lies in the threat if it says so."""
        fragile, trees = self.content["fragile"], self.told.trees
        rows, X, changed, honest = _replayed(fragile, self.problem.X, trees)
        if not fragile:
            return _examples_check(rows, 0, "turn the model")
        for table, name in ((X, "label"), (changed, "becomes")):
            said = [words.label_of(trees, int(k)) for k in trees.predict_class(table)]
            honest &= np.array(said, dtype=str) == np.array(
                [one[name] for one in fragile], dtype=str
            )
        honest &= [
            one["sentence"] == words.told(one["changes"], one["label"], one["becomes"])
            for one in fragile
        ]
        within = np.array([one["multiple"] <= 1 for one in fragile], dtype=bool)
        honest &= self._turned(rows, changed, within)
        return _examples_check(rows[~honest], len(rows), "turn the model")

    def _turned(self, rows: findings.Rows, changed: FloatArray, within: BoolArray) -> Any:
        """Whether rows lose their label by changes, allowed ones where they must be."""
        problem = self.problem
        if len(rows) == 0:
            return within
        turned = problem.trees.predict_class(changed) != problem.y[rows]
        if problem.source is not None:
            turned &= problem.source(changed) != problem.y[rows]
        reach = problem.reach(self.threat)
        return turned & (~within | reach.holds(problem.X[rows], changed, self.threat.norm))

    def _spent(self) -> Check:
        """The columns that changes need are counted again, from the examples of all rows."""
        examples = self.content["answers"]["examples"]
        rows = np.array([row for row, _ in examples], dtype=np.int64)
        X = self.problem.X[rows]
        changed = X.copy()
        for at, (_, changes) in enumerate(examples):
            for column, value in changes:
                changed[at, column] = np.nan if value is None else value
        moved = (changed != X) & ~(np.isnan(changed) & np.isnan(X))
        counted = findings.spent_of(moved, words.names_of(self.problem.trees))
        near = self.answers.near[self.answers.upper <= 1]
        true = np.isin(rows, near) & self._turned(rows, changed, np.ones(len(rows), dtype=bool))
        n_false = len(rows) - int(true.sum())
        return _check(
            "columns changed",
            n_false == 0 and len(np.unique(rows)) == len(rows) and counted == self.content["spent"],
            f"The columns that changes need are those of {len(rows)} examples, all replayed.",
            f"{n_false} of {len(rows)} examples do not turn their row within the threat."
            if n_false
            else "The columns that changes need are not those of the examples.",
        )

    def _certificates(self) -> Check:
        """A sample of the rows is certified again."""
        answers = self.answers
        drawn = self._drawn(len(answers.rows))
        rows = answers.rows[drawn]
        with undecided_is_told():
            again = certify(
                self.model,
                findings.take(self.X, rows),
                findings.take(self.y, rows),
                self.threat,
                **self.asked,
            )
        fresh = np.where(again.reason == "misclassified", "misclassified", again.status)
        open_row = (fresh == "unknown") | (answers.status[drawn] == "unknown")
        failed = rows[~open_row & (fresh != answers.status[drawn])]
        return _check(
            "certificates",
            len(failed) == 0,
            f"{len(rows)} of {len(answers.rows)} rows were decided again, with the same answers.",
            f"{len(failed)} of {len(rows)} rows decided again have another answer, first row "
            f"{failed[:1].tolist()}.",
        )

    def _distances(self) -> Check:
        """The smallest changes of a sample are measured again."""
        answers = self.answers
        drawn = self._drawn(len(answers.near))
        rows = answers.near[drawn]
        limit = self.content["limits"]["time_limit"]
        unit = findings.unit_of(self.problem.reach(self.threat))
        with undecided_is_told():
            again = minimal_distance(
                self.model,
                findings.take(self.X, rows),
                findings.take(self.y, rows),
                norm=self.threat.norm,
                threat=self.threat,
                time_limit=limit,
                **self.asked,
            )
        # Each proves something about the other: no lower bound may pass an upper one.
        slack = 1e-9
        low, high = again.lower / unit, again.upper / unit
        failed = rows[
            (low > answers.upper[drawn] * (1 + slack)) | (answers.lower[drawn] > high * (1 + slack))
        ]
        return _check(
            "distances",
            len(failed) == 0,
            f"{len(rows)} of {len(answers.near)} smallest changes were measured again and agree.",
            f"{len(failed)} of {len(rows)} smallest changes measured again contradict the report, "
            f"first row {failed[:1].tolist()}.",
        )

    def _drawn(self, n: int) -> findings.Rows:
        return np.sort(self.rng.permutation(n)[: self.n_rows])


class RegressionReplay:
    """A report about a regression model beside the model and the rows it speaks of."""

    def __init__(
        self,
        content: dict[str, Any],
        model: Any,
        X: Any,
        y: Any,
        n_rows: int,
        rng: np.random.Generator,
    ) -> None:
        self.content, self.model, self.X, self.n_rows, self.rng = content, model, X, n_rows, rng
        self.outputs = Outputs.of(model, X, None)
        self.target = regression.targets_of(y, len(self.outputs.X))
        self.threat = read_threat(content["threat"]["code"])
        self.rows, self.ranges = _ranges(content["answers"], len(self.target))

    def checks(self, sealed: bool, twin: Any) -> list[Check]:
        """Every claim that can be asked again."""
        answer = [_seal(sealed), self._fingerprints()]
        if answer[1]["passed"]:
            answer += [self._sums(), self._told(), self._examples(), self._ranges()]
            answer += [self._strength(), self._alone(), *self._twin(twin)]
        return answer

    def _twin(self, twin: Any) -> list[Check]:
        """The same of the second model; of one that is not there, what follows without it."""
        part = self.content.get("twin")
        if part is None:
            return []
        if twin is None:
            rows, ranges = _ranges(part["answers"], len(self.target))
            follows = _one_each(rows, ranges) and np.array_equal(rows, self._asked_about()[0])
            if follows:
                target = self.target[rows]
                truth = regression.under_attack(target, target, ranges)
                follows = all(
                    part["under_attack"][side] == truth[side]
                    for side in ("rows", "found", "proven")
                )
            good = "The twin's errors under attack add up; its model was not given."
            return [_check("twin", follows, good, f"Twin: {_do_not_follow(['under_attack'])}")]
        other = RegressionReplay(
            {**self.content, **part}, twin, self.X, self.target, self.n_rows, self.rng
        )
        checks = [other._fingerprints()]
        if checks[0]["passed"]:
            checks += [other._sums(), other._ranges(), other._strength()]
        return _of_the_twin(checks)

    def _fingerprints(self) -> Check:
        outputs = self.outputs
        return _same_source(self.content, outputs.trees, outputs.X, self.target)

    def _sums(self) -> Check:
        rows, ranges = self.rows, self.ranges
        if not _one_each(rows, ranges):
            return _check("sums", False, "", "The answers are not one for each row.")
        if not np.array_equal(rows, self._asked_about()[0]):
            return _check("sums", False, "", _OTHER_ROWS)
        said = regression.prediction_of(self.outputs)
        truth = {
            "model": regression.model_of(self.content["model"]["name"], self.outputs.trees),
            "error": regression.error_of(said, self.target),
            "under_attack": regression.under_attack(self.target[rows], said[rows], ranges),
            "moves": regression.moves_of(said[rows], ranges),
        }
        off = _differing(self.content, truth)
        good = "Errors and moves add up."
        return _check("sums", not off, good, _do_not_follow(off))

    def _asked_about(self) -> tuple[findings.Rows, findings.Rows]:
        """The rows that the seed draws, and which of them are asked many times."""
        limits = self.content["limits"]
        return regression.asked_about(len(self.target), limits["n_distances"], limits["seed"])

    def _told(self) -> Check:
        """What the page says beside its counts is put into words again."""
        content, outputs = self.content, self.outputs
        truth = _facts(self.threat, outputs.trees)
        truth["data"] = regression.data_of(outputs, self.target, self.rows)
        off = _differing(content, truth)
        said = regression.prediction_of(outputs)[self.rows]
        order = regression.farthest(said, self.ranges)[1][: content["limits"]["n_fragile"]]
        listed = [one["row"] for one in content["fragile"]]
        off += ["fragile"] * (listed != self.rows[order].tolist())
        told = [
            regression.checks_of(content, outputs, outputs.reach(self.threat), self.threat, sourced)
            for sourced in (True, False)
        ]
        off += ["checks"] * (without_drawn(content["checks"]) not in told)
        return _told_check(off)

    def _asked(self, rows: findings.Rows, threat: Threat, stage: str) -> Any:
        options = _clock(self.content).options(stage)
        return output_range(self.model, findings.take(self.X, rows), threat, **options)

    def _strength(self) -> Check:
        """The errors at multiples of the threat are measured again."""
        few = self._asked_about()[1]
        said, claimed = regression.prediction_of(self.outputs), self.content["strength"]
        with undecided_is_told():
            again = list(
                regression.strength_of(
                    self.threat, self.rows[few], self.ranges, few, self.target, said, self._asked
                )
            )
        multiples = [one["multiple"] for one in claimed] == [one["multiple"] for one in again]
        return _check(
            "strength",
            multiples
            and all(
                one == fresh if one["multiple"] in (0, 1) else _may_both_hold(one, fresh)
                for one, fresh in zip(claimed, again, strict=True)
            ),
            "The errors at multiples of the threat were measured again and agree.",
            "The errors at multiples of the threat are not those measured again.",
        )

    def _alone(self) -> Check:
        """What a change of one column alone can do is asked again."""
        rows, outputs = self.rows[self._asked_about()[1]], self.outputs
        said = regression.prediction_of(outputs)[rows]
        with undecided_is_told():
            again = regression.alone_of(
                outputs,
                outputs.reach(self.threat),
                self.threat,
                rows,
                said,
                self._asked,
                _clock(self.content),
            )
        fresh = {one["column"]: one for one in again["columns"]}
        failed = [
            one["column"]
            for one in self.content["alone"]["columns"]
            if not _may_both_hold(one, fresh[one["column"]])
        ]
        return _alone_check(self.content, again, "found", failed)

    def _examples(self) -> Check:
        """Every example is sent through the model, and lies in the threat."""
        outputs, fragile = self.outputs, self.content["fragile"]
        rows, X, changed, honest = _replayed(fragile, outputs.X, outputs.trees)
        if not fragile:
            return _examples_check(rows, 0, "move the model")
        said, becomes = (outputs.seen(outputs.output(table)) for table in (X, changed))
        honest &= said == np.array([one["said"] for one in fragile])
        honest &= becomes == np.array([one["becomes"] for one in fragile])
        honest &= [
            one["sentence"]
            == words.told(
                one["changes"],
                words.number(one["said"], 4),
                words.number(one["becomes"], 4),
                "moves",
                "to",
            )
            for one in fragile
        ]
        honest &= outputs.reach(self.threat).holds(X, changed, self.threat.norm)
        return _examples_check(rows[~honest], len(rows), "move the model")

    def _ranges(self) -> Check:
        """The ranges of a sample of rows are measured again."""
        drawn = np.sort(self.rng.permutation(len(self.rows))[: self.n_rows])
        rows, claimed = self.rows[drawn], self.ranges
        with undecided_is_told():
            again = output_range(
                self.model,
                findings.take(self.X, rows),
                self.threat,
                time_limit=self.content["limits"]["time_limit"],
            )
        # Nothing that one of them found may lie outside of what the other has proven.
        failed = rows[
            (claimed.lowest[drawn] < again.lower)
            | (claimed.highest[drawn] > again.upper)
            | (again.lowest < claimed.lower[drawn])
            | (again.highest > claimed.upper[drawn])
        ]
        return _check(
            "ranges",
            len(failed) == 0,
            f"{len(rows)} of {len(self.rows)} ranges were measured again and agree.",
            f"{len(failed)} of {len(rows)} ranges measured again contradict the report, first row "
            f"{failed[:1].tolist()}.",
        )


def _ranges(answers: dict[str, Any], n_rows: int) -> tuple[findings.Rows, SimpleNamespace]:
    """The measured rows of a report, and what it says of their predictions."""
    unbounded = {"lower": -np.inf, "upper": np.inf}
    sides = {
        side: np.array(
            [unbounded[side] if one is None else one for one in answers[side]], dtype=float
        )
        for side in regression.SIDES
    }
    return findings.row_numbers(answers["rows"], n_rows), SimpleNamespace(**sides)


def _one_each(rows: findings.Rows, ranges: SimpleNamespace) -> bool:
    return all(len(getattr(ranges, side)) == len(rows) for side in regression.SIDES)


def _of_the_twin(checks: list[Check]) -> list[Check]:
    return [
        {**one, "name": f"twin's {one['name']}", "words": f"Twin: {one['words']}"} for one in checks
    ]


def _replayed(
    fragile: list[dict[str, Any]], X: FloatArray, trees: Trees
) -> tuple[findings.Rows, FloatArray, FloatArray, BoolArray]:
    """Rows, the same with the changes of a report, and whether these begin where they say."""
    place = {name: at for at, name in enumerate(words.names_of(trees))}
    rows = np.array([one["row"] for one in fragile], dtype=np.int64)
    old = X[rows]
    changed, honest = old.copy(), np.ones(len(rows), dtype=bool)
    for at, one in enumerate(fragile):
        for change in one["changes"]:
            column = place.get(change["column"])
            if column is None:
                honest[at] = False
                continue
            changed[at, column] = np.nan if change["to"] is None else change["to"]
            told = findings.change_of(trees, column, float(old[at, column]), changed[at, column])
            honest[at] &= change == told
    return rows, old, changed, honest


def _examples_check(failed: findings.Rows, n: int, do: str) -> Check:
    told = failed.astype(str).tolist()
    return _check(
        "examples",
        not told,
        f"All {n} examples {do} as they say.",
        f"{len(told)} of {n} examples do not: rows {words.listed(told)}." if told else "",
    )


def _clock(content: dict[str, Any]) -> Clock:
    """A clock for questions that are asked again, each with the time that the report gave it."""
    limits = content["limits"]
    return Clock(
        Settings(
            name=None,
            classes=None,
            threshold=None,
            max_rows=1,
            n_distances=1,
            n_fragile=0,
            time_limit=limits["time_limit"],
            total_time_limit=None,
            random_state=0,
            n_jobs=None,
            progress=None,
        )
    )


def _facts(threat: Threat, trees: Trees) -> dict[str, Any]:
    names = words.names_of(trees)
    return {
        "columns": names,
        "threat": {"code": repr(threat), "words": words.threat_in_words(threat, names)},
    }


def _told_check(off: list[str]) -> Check:
    good = "Threat, data, fragile rows and the list of checks read as they must."
    return _check("words", not off, good, _do_not_follow(off))


def _may_both_hold(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether nothing that one of them found exceeds what the other has proven."""
    slack = 1 + 1e-9
    return all(
        mine["proven"] is None or its["found"] <= mine["proven"] * slack
        for mine, its in ((one, other), (other, one))
    )


def _alone_check(
    content: dict[str, Any], again: dict[str, Any], by: str, failed: list[str]
) -> Check:
    claimed = content["alone"]
    sizes = [one[by] for one in claimed["columns"]]
    names, all_names = ({one["column"] for one in part["columns"]} for part in (claimed, again))
    whole = names == all_names or content["limits"]["total_time_limit"] is not None
    ordered = sizes == sorted(sizes, reverse=True) and len(sizes) == len(names)
    same = all(claimed[name] == again[name] for name in ("rows", "n_movable"))
    return _check(
        "one column alone",
        whole and ordered and same and not failed,
        f"What one column alone can do was asked again for {len(names)} columns.",
        f"What one column alone can do is not so: {words.listed(failed)}."
        if failed
        else "The columns that were tried alone are not those of the model, or not in order.",
    )


def _seal(sealed: bool) -> Check:
    bad = "The file was edited, or its seal is missing."
    return _check("seal", sealed, "The file is as it was written.", bad)


def _same_source(content: dict[str, Any], trees: Trees, X: FloatArray, y: Any) -> Check:
    other = []
    if findings.model_hash(trees) != content["model"]["sha256"]:
        other.append("model")
    if findings.data_hash(X, y) != content["data"]["sha256"]:
        other.append("data")
    return _check(
        "fingerprints",
        not other,
        "Model and data are those of the report.",
        f"Not the {' and '.join(other)} that the report was made of; nothing else was compared.",
    )


def _differing(content: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    return [name for name, value in truth.items() if content[name] != value]


def _do_not_follow(names: list[str]) -> str:
    told = words.listed(names) if names else "none"
    return f"These do not follow from the model and the answers of the rows: {told}."


def _check(name: str, passed: bool, good: str, bad: str) -> Check:
    return {"name": name, "passed": bool(passed), "words": good if passed else bad}
