"""Whether a report of an audit holds: its claims asked again, one by one."""

import ast
from typing import Any

import numpy as np

import hardwood as hw
from hardwood._check import FloatArray
from hardwood.report import findings, words
from hardwood.report.findings import LETTER
from hardwood.threat import Threat
from hardwood.verify.certify import certify
from hardwood.verify.distance import minimal_distance
from hardwood.verify.problem import Problem

Check = dict[str, Any]


def read_threat(code: str) -> Threat:
    """The threat that a report was made for, from the way it prints itself."""
    call = ast.parse(code, mode="eval").body
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


class Replay:
    """A report beside the model and the rows it speaks of."""

    def __init__(
        self, content: dict[str, Any], model: Any, X: Any, y: Any, n_rows: int, seed: int | None
    ) -> None:
        self.content, self.model, self.X, self.y = content, model, X, y
        threshold = content["model"]["threshold"]
        self.asked = {} if threshold is None else {"threshold": threshold}
        self.problem = Problem.of(model, X, y, None, **self.asked)
        self.threat = read_threat(content["threat"]["code"])
        self.rng = np.random.default_rng(seed)
        self.n_rows = n_rows
        spelled = {letter: status for status, letter in LETTER.items()}
        answers = content["answers"]
        self.rows = findings.row_numbers(answers["rows"])
        self.status = np.array([spelled[letter] for letter in answers["status"]], dtype="<U13")
        self.near = findings.row_numbers(answers["measured"])
        self.lower, self.upper = (
            np.array([np.inf if one is None else one for one in answers[side]], dtype=np.float64)
            for side in ("lower", "upper")
        )

    def checks(self, sealed: bool) -> list[Check]:
        """Every claim that can be asked again."""
        answer = [
            _check("seal", sealed, "The file is as it was written.", "The file was edited."),
            self._fingerprints(),
        ]
        if answer[1]["passed"]:
            answer += [self._sums(), self._examples(), self._certificates(), self._distances()]
        return answer

    def _fingerprints(self) -> Check:
        same = []
        if findings.model_hash(self.problem.trees) != self.content["model"]["sha256"]:
            same.append("model")
        if findings.data_hash(self.problem.X, self.problem.y) != self.content["data"]["sha256"]:
            same.append("data")
        return _check(
            "fingerprints",
            not same,
            "Model and data are those of the report.",
            f"Not the {' and '.join(same)} that the report was made of; nothing else was compared.",
        )

    def _sums(self) -> Check:
        """All counts follow from the answers row by row; the model's own part is asked again."""
        content, problem = self.content, self.problem
        if len(self.rows) != len(self.status) or len(self.near) != len(self.lower):
            return _check("sums", False, "", "The answers are not one for each row.")
        right = ~problem.misclassified()
        known = dict(zip(self.rows.tolist(), self.status.tolist(), strict=True))
        at_threat = np.array([known.get(row, "") for row in self.near.tolist()])
        wrong = at_threat == "misclassified"
        truth = {
            "accuracy": findings.accuracy_of(problem, right, self.rows),
            "certificate": findings.counts_of(self.status),
            "classes": findings.classes_of(problem, self.rows, self.status),
            "curve": findings.curve_of(self.lower, self.upper, at_threat),
            "distances": findings.distances_of(self.lower, self.upper, wrong),
        }
        off = [name for name, value in truth.items() if content[name] != value]
        return _check(
            "sums",
            not off,
            "Accuracy, certificate, classes, curve and distances add up.",
            f"These do not follow from the model and the answers of the rows: {words.listed(off)}."
            if off
            else "",
        )

    def _examples(self) -> Check:
        """Every example is sent through the model, and lies in the threat if it says so."""
        names = findings.names_of(self.problem.trees)
        place = {name: at for at, name in enumerate(names)}
        failed = []
        for one in self.content["fragile"]:
            row = self.problem.X[one["row"]]
            changed = row.copy()
            honest = True
            for change in one["changes"]:
                at = place.get(change["column"])
                if at is None:
                    honest = False
                    continue
                honest &= _same(row[at], change["from"])
                changed[at] = np.nan if change["to"] is None else change["to"]
            if not (honest and self._turns(one, row, changed)):
                failed.append(str(one["row"]))
        n = len(self.content["fragile"])
        return _check(
            "examples",
            not failed,
            f"All {n} examples turn the model as they say.",
            f"{len(failed)} of {n} examples do not: rows {words.listed(failed)}." if failed else "",
        )

    def _turns(self, one: dict[str, Any], row: FloatArray, changed: FloatArray) -> bool:
        trees = self.problem.trees
        said = [findings.label_of(trees, int(k)) for k in trees.predict_class([row, changed])]
        if said != [one["label"], one["becomes"]] or one["label"] == one["becomes"]:
            return False
        source = self.problem.source
        if source is not None and source(changed[None])[0] == self.problem.y[one["row"]]:
            return False
        if one["multiple"] > 1:
            return True
        reach = self.problem.reach(self.threat)
        return bool(reach.holds(row[None], changed[None], self.threat.norm)[0])

    def _certificates(self) -> Check:
        """A sample of the rows is certified again."""
        drawn = self._drawn(len(self.rows))
        rows = self.rows[drawn]
        with findings.undecided_is_told():
            again = certify(
                self.model,
                findings.take(self.X, rows),
                findings.take(self.y, rows),
                self.threat,
                **self.asked,
            )
        fresh = np.where(again.reason == "misclassified", "misclassified", again.status)
        open_row = (fresh == "unknown") | (self.status[drawn] == "unknown")
        failed = rows[~open_row & (fresh != self.status[drawn])]
        return _check(
            "certificates",
            len(failed) == 0,
            f"{len(rows)} of {len(self.rows)} rows were decided again, with the same answers.",
            f"{len(failed)} of {len(rows)} rows decided again have another answer, first row "
            f"{failed[:1].tolist()}.",
        )

    def _distances(self) -> Check:
        """The smallest changes of a sample are measured again."""
        drawn = self._drawn(len(self.near))
        rows = self.near[drawn]
        limit = self.content["limits"]["time_limit"]
        unit = findings.unit_of(self.problem.reach(self.threat))
        with findings.undecided_is_told():
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
            (low > self.upper[drawn] * (1 + slack)) | (self.lower[drawn] > high * (1 + slack))
        ]
        return _check(
            "distances",
            len(failed) == 0,
            f"{len(rows)} of {len(self.near)} smallest changes were measured again and agree.",
            f"{len(failed)} of {len(rows)} smallest changes measured again contradict the report, "
            f"first row {failed[:1].tolist()}.",
        )

    def _drawn(self, n: int) -> findings.Rows:
        return np.sort(self.rng.permutation(n)[: self.n_rows])


def _same(value: float, claimed: float | None) -> bool:
    return bool(np.isnan(value)) if claimed is None else bool(value == claimed)


def _check(name: str, passed: bool, good: str, bad: str) -> Check:
    return {"name": name, "passed": bool(passed), "words": good if passed else bad}
