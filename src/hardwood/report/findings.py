"""What an audit says of a model: measured once, kept as plain numbers and words.

Everything that the page and the JSON file show is in the mapping that `measure` returns.
"""

import hashlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import LEAF, Trees
from hardwood.report import checks, words
from hardwood.report.clock import Clock, Settings, undecided_is_told
from hardwood.threat import Reach, Threat
from hardwood.verify.certify import certify
from hardwood.verify.distance import minimal_distance
from hardwood.verify.problem import Problem

FORMAT, FORMAT_VERSION = "hardwood-audit", 1
TWIN = ("model", "accuracy", "certificate", "classes", "curve", "distances", "answers", "seconds")
MULTIPLES = np.arange(121) / 40
LETTER = {"certified": "c", "broken": "b", "misclassified": "m", "unknown": "u"}
MOST_ALONE = 40  # columns tried alone, those with the most splits
_ROWS_ALONE = 400
_SIMPLIFIED_WORK = 10_000_000  # rows x columns x trees, a few seconds
_BINS = np.round(np.arange(0, 3.001, 0.125), 3)

Rows = npt.NDArray[np.int64]


def measure(model: Any, X: Any, y: Any, threat: Threat, settings: Settings) -> dict[str, Any]:
    """Ask everything that an audit tells."""
    clock = Clock(settings)
    clock.tell("reading the model", 0, 1)
    asked: dict[str, Any] = {} if settings.threshold is None else {"threshold": settings.threshold}
    problem = Problem.of(model, X, y, settings.n_jobs, **asked)
    reach = problem.reach(threat)
    checks.refuse_idle(reach, threat)
    names = words.names_of(problem.trees)
    right = ~problem.misclassified()
    rows, near = asked_about(
        len(right), settings.max_rows, settings.n_distances, settings.random_state
    )
    examined, told = Examined(threat, reach, problem), named(problem, settings.classes)
    with undecided_is_told():
        certificate = certify(
            model, take(X, rows), take(y, rows), threat, **asked, **clock.options("certifying")
        )
        status = np.where(
            certificate.reason == "misclassified", "misclassified", certificate.status
        ).astype(str)
        distances = minimal_distance(
            model,
            take(X, near),
            take(y, near),
            norm=threat.norm,
            threat=threat,
            **asked,
            **clock.options("measuring distances"),
        )
        known = dict(zip(rows.tolist(), status.tolist(), strict=True))
        at_threat = np.array([known[row] for row in near.tolist()])
        unit = unit_of(reach)
        lower, upper = distances.lower / unit, distances.upper / unit
        plain = _Simpler(replace(examined, problem=told), near, distances.X_adv, upper, clock)
        alone = alone_of(examined, near, at_threat, clock)
    clock.tell("writing it down", 1, 1)
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": clock.seconds,
        "model": model_of(settings.name or called(model), told.trees, settings.threshold),
        "data": data_of(problem, rows, near),
        "columns": names,
        "threat": {"code": repr(threat), "words": words.threat_in_words(threat, names)},
        "accuracy": accuracy_of(told, right, rows),
        "certificate": counts_of(status),
        "classes": classes_of(told, rows, status),
        "curve": curve_of(lower, upper, at_threat),
        "distances": distances_of(lower, upper, at_threat == "misclassified"),
        "fragile": plain.fragile(settings.n_fragile),
        "spent": plain.spent(),
        "alone": alone,
        "open": _open(certificate.reason[status == "unknown"]),
        "answers": {
            "rows": ranges_of(rows),
            "status": "".join(LETTER[one] for one in status),
            "measured": ranges_of(near),
            "lower": finite(lower),
            "upper": finite(upper),
            "examples": plain.examples(),
        },
        "limits": {
            "time_limit": settings.time_limit,
            "total_time_limit": settings.total_time_limit,
            "max_rows": settings.max_rows,
            "n_distances": settings.n_distances,
            "n_fragile": settings.n_fragile,
            "seed": settings.random_state,
        },
        "versions": versions(),
    }
    content["checks"] = checks_of(content, problem, reach, threat, problem.source is not None)
    return content


@dataclass(frozen=True)
class Examined:
    """The question that an audit is about."""

    threat: Threat
    reach: Reach
    problem: Problem

    def fooled(self, X_adv: FloatArray, rows: Rows) -> BoolArray:
        """Whether the model, and where there is one its source, gives these another label."""
        some = self.problem.some(rows)
        other: BoolArray = some.trees.predict_class(X_adv, n_jobs=some.n_threads) != some.y
        if some.source is not None:
            doubt = np.flatnonzero(other)
            if len(doubt):
                other[doubt] = some.source(X_adv[doubt]) != some.y[doubt]
        return other


def unit_of(reach: Reach) -> float:
    """What distances are divided by to be multiples of the threat.

    Where all steps have one size, distances are in the columns' unit; else they are multiples.
    """
    return 1.0 if reach.multiples else reach.unit


def named(problem: Problem, classes: Sequence[str] | None) -> Problem:
    """The same question, with names for classes that the model itself only counts."""
    if classes is None:
        return problem
    n_classes = problem.trees.n_classes
    if isinstance(classes, str) or len(set(classes)) != len(classes) or len(classes) != n_classes:
        raise ValueError(
            f"classes must name each of the model's {n_classes} classes once, in their order, got "
            f"{classes!r}."
        )
    return replace(problem, trees=problem.trees.replace(classes=np.array(classes, dtype=str)))


def take(table: Any, rows: Rows) -> Any:
    """Some rows of any table."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "tocsr"):
        return table.tocsr()[rows]
    if hasattr(table, "columns"):  # polars
        return table[rows.tolist()]
    return np.asarray(table)[rows]


def drawn(n_rows: int, most: int, rng: np.random.Generator) -> Rows:
    """The numbers of all rows, or of a sample."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(rng.permutation(n_rows)[:most])


def asked_about(n_rows: int, max_rows: int, n_distances: int, seed: int) -> tuple[Rows, Rows]:
    """The rows that are certified, and those of them that are measured."""
    rng = np.random.default_rng(seed)
    rows = drawn(n_rows, max_rows, rng)
    return rows, rows[drawn(len(rows), n_distances, rng)]


def counts_of(status: npt.NDArray[np.str_]) -> dict[str, int]:
    """How many rows have which answer."""
    counted = {name: int(np.count_nonzero(status == name)) for name in LETTER}
    return {"rows": len(status), **counted}


def called(model: Any) -> str:
    """What to call a model that has no name: its file, or its class; of a pipeline the last one."""
    if isinstance(model, str) or hasattr(model, "__fspath__"):
        return str(model).rsplit("/", 1)[-1]
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else model).__name__


def model_of(name: str, trees: Trees, threshold: float | None) -> dict[str, Any]:
    """What kind of model it is."""
    return {
        "name": name,
        "n_trees": trees.n_trees,
        "n_leaves": trees.n_leaves,
        "n_columns": trees.n_features,
        "n_columns_used": len(np.unique(trees.feature[trees.feature != LEAF])),
        "classes": [words.label_of(trees, k) for k in range(trees.n_classes)],
        "threshold": threshold,
        "sha256": model_hash(trees),
    }


def model_hash(trees: Trees) -> str:
    """A fingerprint of what the model says, whatever file it came from."""
    digest = hashlib.sha256()
    for name in (
        "feature threshold left right missing_left value tree_start tree_output base "
        "category_start category"
    ).split():
        array = np.ascontiguousarray(getattr(trees, name))
        digest.update(f"{name} {array.dtype} {array.shape};".encode())
        digest.update(array.tobytes())
    digest.update(repr((trees.link, trees.divisor, trees.slope, trees.cut, trees.compare)).encode())
    return digest.hexdigest()


def data_hash(X: FloatArray, y: npt.NDArray[Any]) -> str:
    """A fingerprint of the rows and their labels or targets, as the model sees them."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for begin in range(0, len(X), 65_536):
        digest.update(np.ascontiguousarray(X[begin : begin + 65_536]).tobytes())
    digest.update(np.ascontiguousarray(y).tobytes())
    return digest.hexdigest()


def data_of(problem: Problem, rows: Rows, near: Rows) -> dict[str, Any]:
    """How many rows there are, and how many were asked about."""
    return {
        "n_rows": len(problem.X),
        "n_columns": problem.X.shape[1],
        "n_missing": int(np.isnan(problem.X).sum()),
        "n_certified_or_tried": len(rows),
        "n_measured": len(near),
        "sha256": data_hash(problem.X, problem.y),
    }


def accuracy_of(problem: Problem, right: BoolArray, rows: Rows) -> dict[str, Any]:
    """Rows that are right, beside always saying the most frequent class."""
    per_class = np.bincount(problem.y, minlength=problem.trees.n_classes)
    most = int(np.argmax(per_class))
    return {
        "rows": len(right),
        "right": int(right.sum()),
        "majority": words.label_of(problem.trees, most),
        "majority_rows": int(per_class[most]),
        "examined_right": int(right[rows].sum()),
    }


def classes_of(problem: Problem, rows: Rows, status: npt.NDArray[np.str_]) -> list[dict[str, Any]]:
    """Recall and precision that are proven to stay, class by class.

    A row of another class counts against the precision unless it is proven to stay there: with
    more than two classes it might be turned into this one.
    """
    trees, truth = problem.trees, problem.y[rows]
    said = trees.predict_class(problem.X[rows], n_jobs=problem.n_threads)
    answer = []
    for k in range(trees.n_classes):
        own = truth == k
        proven = int(np.count_nonzero(own & (status == "certified")))
        answer.append(
            {
                "label": words.label_of(trees, k),
                "rows": int(own.sum()),
                "right": int(np.count_nonzero(own & (said == k))),
                "said": int(np.count_nonzero(said == k)),
                "certified": proven,
                "not_broken": int(
                    np.count_nonzero(own & np.isin(status, ["certified", "unknown"]))
                ),
                "may_be_said": proven + int(np.count_nonzero(~own & (status != "certified"))),
            }
        )
    return answer


def curve_of(
    lower: FloatArray, upper: FloatArray, at_threat: npt.NDArray[np.str_]
) -> list[dict[str, Any]]:
    """Rows proven right and rows not yet fooled, over multiples of the threat."""
    points = []
    for multiple in MULTIPLES.tolist():
        proven, found = lower > multiple, upper <= multiple
        if multiple == 1:  # decided on its own, which settles rows that the distance leaves open
            proven = at_threat == "certified"
            found = np.isin(at_threat, ["broken", "misclassified"])
        points.append(
            {
                "multiple": multiple,
                "certified": int(proven.sum()),
                "attacked": int(len(found) - found.sum()),
            }
        )
    # What holds at a larger multiple holds at a smaller one, and the other way round.
    for one, above in zip(points[-2::-1], points[:0:-1], strict=True):
        one["certified"] = max(one["certified"], above["certified"])
    for below, one in pairwise(points):
        one["attacked"] = min(one["attacked"], below["attacked"])
    return points


def distances_of(lower: FloatArray, upper: FloatArray, misclassified: BoolArray) -> dict[str, Any]:
    """How many rows are how far from being turned."""
    attacked = ~misclassified
    settled = attacked & (lower == upper)
    # Each bin holds its upper end: a row that the threat itself turns stands left of 1.
    bins = np.searchsorted(_BINS, lower[settled & (lower <= _BINS[-1])]) - 1
    inside = np.bincount(np.maximum(bins, 0), minlength=len(_BINS) - 1)
    ordered = np.sort(lower[attacked])
    above = np.sort(upper[attacked])

    def quantile(values: FloatArray, q: float) -> float | None:
        if len(values) == 0:
            return None
        value = float(values[min(int(q * len(values)), len(values) - 1)])
        return value if np.isfinite(value) else None

    return {
        "rows": len(lower),
        "misclassified": int(misclassified.sum()),
        "exact": int(settled.sum()),
        "unknown": int(np.count_nonzero(attacked & ~settled)),
        "bins": _BINS.tolist(),
        "counts": inside.tolist(),
        "beyond": int(np.count_nonzero(settled & (lower > _BINS[-1]))),
        "never": int(np.count_nonzero(settled & np.isinf(lower))),
        "quantiles": [
            {"share": q, "lower": quantile(ordered, q), "upper": quantile(above, q)}
            for q in (0.05, 0.25, 0.5, 0.75, 0.95)
        ],
    }


def nearest(trees: Trees, multiple: FloatArray) -> Rows:
    """Which measured rows have examples that are told, those with the smallest change first."""
    fooled = np.flatnonzero((multiple > 0) & np.isfinite(multiple))
    order = fooled[np.argsort(multiple[fooled], kind="stable")]
    return order[: max(50, int(_SIMPLIFIED_WORK / (trees.n_features * trees.n_trees)))]


class _Simpler:
    """Nearest examples with what they do not need put back: short sentences, honest columns.

    An example in the maximum norm moves every column a little; a reader wants to know which of
    these moves matter. Putting a value back keeps the example inside the threat, and it is sent
    through the model again before it counts.
    """

    def __init__(
        self,
        examined: Examined,
        near: Rows,
        X_adv: Any,
        multiple: FloatArray,
        clock: Clock,
    ) -> None:
        self.examined = examined
        self.problem = problem = examined.problem
        trees = problem.trees
        order = nearest(trees, multiple)
        self.rows, self.multiple = near[order], multiple[order]
        self.X = problem.X[self.rows]
        self.X_adv = trees.rows(take(X_adv, order)) if len(order) else self.X.copy()
        self._put_back(clock)

    def _put_back(self, clock: Clock) -> None:
        trees = self.problem.trees
        splits = np.bincount(trees.feature[trees.feature != LEAF], minlength=trees.n_features)
        columns = np.flatnonzero(self._moved().any(axis=0))
        order = columns[np.argsort(splits[columns], kind="stable")]  # the least used go first
        for done, column in enumerate(order):
            clock.tell("simplifying examples", done, len(order))
            rows = np.flatnonzero(self._moved()[:, column])
            trial = self.X_adv[rows].copy()
            trial[:, column] = self.X[rows, column]
            still = self.examined.fooled(trial, self.rows[rows])
            self.X_adv[rows[still], column] = self.X[rows[still], column]

    def _moved(self) -> BoolArray:
        moved: BoolArray = (self.X_adv != self.X) & ~(np.isnan(self.X_adv) & np.isnan(self.X))
        return moved

    def spent(self) -> dict[str, Any]:
        """How many examples within the threat move each column."""
        return spent_of(self._moved()[self.multiple <= 1], words.names_of(self.problem.trees))

    def examples(self) -> list[list[Any]]:
        """The examples within the threat: the row, and what its columns become."""
        moved = self._moved()
        return [
            [
                int(self.rows[at]),
                [
                    [int(f), None if np.isnan(self.X_adv[at, f]) else float(self.X_adv[at, f])]
                    for f in np.flatnonzero(moved[at])
                ],
            ]
            for at in np.flatnonzero(self.multiple <= 1)
        ]

    def fragile(self, most: int) -> list[dict[str, Any]]:
        """The rows that the smallest change turns, as sentences."""
        trees = self.problem.trees
        answer = []
        for at in range(min(most, len(self.rows))):
            self._round(at)
            new = int(trees.predict_class(self.X_adv[at : at + 1])[0])
            row, example = self.X[at], self.X_adv[at]
            changes = [
                change_of(trees, int(f), float(row[f]), float(example[f]))
                for f in np.flatnonzero(self._moved()[at])
            ]
            label = words.label_of(trees, int(self.problem.y[self.rows[at]]))
            becomes = words.label_of(trees, new)
            answer.append(
                {
                    "row": int(self.rows[at]),
                    "label": label,
                    "becomes": becomes,
                    "multiple": float(self.multiple[at]),
                    "changes": changes,
                    "sentence": words.told(changes, label, becomes),
                }
            )
        return answer

    def _round(self, at: int) -> None:
        """Take fewer digits where the model is fooled all the same and the threat allows it."""
        if self.multiple[at] > 1:
            return
        row, rows = self.X[at : at + 1], self.rows[at : at + 1]
        trees, reach = self.problem.trees, self.examined.reach
        for trial in in_fewer_digits(trees, reach, row, self.X_adv[at : at + 1]):
            inside = reach.holds(row, trial, self.examined.threat.norm)[0]
            if inside and self.examined.fooled(trial, rows)[0]:
                self.X_adv[at] = trial[0]
                return


def in_fewer_digits(
    trees: Trees, reach: Reach, row: FloatArray, example: FloatArray
) -> Iterator[FloatArray]:
    """An example with 2, 3, ... digits of each step, as tables of one row."""
    moved = np.flatnonzero((example != row)[0] & ~np.isnan(example)[0] & ~np.isnan(row)[0])
    moved = np.setdiff1d(moved, trees.categorical_features)
    room = reach.limits[:, :2].max(axis=1)
    for digits in range(2, 12) if len(moved) else ():
        trial = example.copy()
        for f in moved:
            least = room[f] / 100 if np.isfinite(room[f]) else 0.0
            trial[0, f] = _outward(row[0, f], trial[0, f], digits, least)
        yield trial


def change_of(trees: Trees, column: int, old: float, new: float) -> dict[str, Any]:
    """One changed value, as numbers and as its users call it."""
    known = trees.category_names.get(column)
    if known:
        shown_from, shown_to = (
            "blank" if np.isnan(value) else str(known[int(value)]) for value in (old, new)
        )
    else:
        shown_from, shown_to = words.pair(old, new)
    return {
        "column": words.names_of(trees)[column],
        "from": None if np.isnan(old) else old,
        "to": None if np.isnan(new) else new,
        "shown_from": shown_from,
        "shown_to": shown_to,
    }


def spent_of(moved: BoolArray, names: list[str]) -> dict[str, Any]:
    """How many examples move each column, once the needless moves are taken back."""
    used = moved.sum(axis=0)
    order = np.argsort(-used, kind="stable")
    return {
        "rows": len(moved),
        "columns_per_row": round(float(moved.sum(axis=1).mean()), 2) if len(moved) else None,
        "columns": [
            {"column": names[f], "rows": int(used[f])} for f in order[:MOST_ALONE] if used[f]
        ],
    }


def _outward(old: float, new: float, digits: int, least: float) -> float:
    """The new value in so many digits of the step, or of a least one, away from the old value."""
    step = max(abs(new - old), least)
    unit = 10.0 ** (np.floor(np.log10(step)) - digits + 1)
    up = new > old
    rounded = (np.ceil if up else np.floor)(new / unit) * unit
    value = float(f"{rounded:.15g}")
    return value if (value >= new if up else value <= new) else float(rounded)


def only_column(threat: Threat, reach: Reach, column: int) -> Threat:
    """The same threat where one column alone can move, or its one-hot group."""
    together = {column}
    for group in reach.groups:
        if column in group.columns:
            together |= set(group.columns)
    given = {field.name: getattr(threat, field.name) for field in fields(threat)}
    given["fixed"] = [f for f in range(len(reach.limits)) if f not in together]
    # A frame said which columns hold whole numbers and truth values, an array does not.
    given["integer"] = np.flatnonzero(reach.whole).tolist()
    step = reach.limits[column, :2]
    if step.any() and np.isfinite(step).all():
        given["eps"] = {column: tuple(step.tolist())}
    return Threat(**given)


def columns_by_splits(trees: Trees, reach: Reach) -> Rows:
    """The columns that the threat moves and the model looks at, those with most splits first."""
    splits = np.bincount(trees.feature[trees.feature != LEAF], minlength=trees.n_features)
    columns = np.flatnonzero(checks.moving_of(reach) & (splits > 0))
    return columns[np.argsort(-splits[columns], kind="stable")]


def alone_of(
    examined: Examined, near: Rows, at_threat: npt.NDArray[np.str_], clock: Clock
) -> dict[str, Any]:
    """How many rows a change of one column alone turns, within the threat."""
    problem, trees = examined.problem, examined.problem.trees
    rows = near[at_threat != "misclassified"][:_ROWS_ALONE]
    columns = columns_by_splits(trees, examined.reach)
    names, asked = words.names_of(trees), columns[:MOST_ALONE] if len(rows) else columns[:0]
    options = clock.options("one column at a time")
    options.pop("progress", None)
    answer = []
    for done, column in enumerate(asked):
        clock.tell("one column at a time", done, len(asked))
        if clock.over:
            break
        found = certify(
            trees,  # which know the decision threshold
            problem.X[rows],
            _own_labels(trees, problem.y[rows]),
            only_column(examined.threat, examined.reach, int(column)),
            **options,
        )
        counted = counts_of(found.status)
        answer.append(
            {"column": names[column], "turned": counted["broken"], "open": counted["unknown"]}
        )
    answer.sort(key=lambda one: -int(one["turned"]))
    return {"rows": len(rows), "n_movable": len(columns), "columns": answer}


def _own_labels(trees: Trees, position: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    return position if trees.classes is None else trees.classes[position]


def _open(reason: npt.NDArray[np.str_]) -> list[dict[str, Any]]:
    why, n_rows = np.unique(reason, return_counts=True)
    return [{"reason": str(w), "rows": int(n)} for w, n in zip(why, n_rows, strict=True)]


def ranges_of(rows: Rows) -> list[list[int]]:
    """Row numbers as first and last of each run."""
    breaks = np.flatnonzero(np.diff(rows) != 1)
    first = np.concatenate([rows[:1], rows[breaks + 1]])
    last = np.concatenate([rows[breaks], rows[-1:]])
    return [[int(a), int(b)] for a, b in zip(first, last, strict=True)]


def finite(values: FloatArray) -> list[float | None]:
    """Numbers for a file that knows no infinity."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def row_numbers(ranges: list[list[int]], n_rows: int) -> Rows:
    """The row numbers that `ranges_of` wrote, of a table with so many rows."""
    after = 0
    for first, last in ranges:
        if not after <= first <= last < n_rows:
            raise IndexError(f"rows {first} to {last} of {n_rows}, where {after} is the next")
        after = last + 1
    parts = [np.arange(first, last + 1) for first, last in ranges]
    rows: Rows = np.concatenate(parts) if parts else np.arange(0)
    return rows


def versions() -> dict[str, str]:
    """Which versions of which libraries were there."""
    found = {"python": platform.python_version()}
    for name in ("hardwood", "numpy", "scikit-learn", "xgboost", "xgboost-cpu", "lightgbm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def checks_of(
    content: dict[str, Any], problem: Problem, reach: Reach, threat: Threat, sourced: bool
) -> list[dict[str, Any]]:
    """What was looked at, whether it passed, and why that matters; the gate first."""
    trees, accuracy, certificate = problem.trees, content["accuracy"], content["certificate"]
    n, unknown = certificate["rows"], certificate["unknown"]
    sampled = content["data"]["n_rows"] > n
    return [
        checks.gate_check(trees, sourced),
        {
            "name": "better than guessing",
            "passed": accuracy["right"] > accuracy["majority_rows"],
            "words": f"The model is right on {words.share(accuracy['right'], accuracy['rows'])}; "
            f"always saying {accuracy['majority']} would be right on "
            f"{words.share(accuracy['majority_rows'], accuracy['rows'])}.",
        },
        {
            "name": "every row is decided",
            "passed": unknown == 0,
            "words": f"{words.count(unknown)} of {words.count(n)} rows are neither proven nor "
            f"broken; they never count as certified."
            if unknown
            else f"None of {words.count(n)} rows is unknown.",
        },
        {
            "name": "every example is replayed",
            "passed": True,
            "words": "Each example was sent through the model again before it counted"
            + (", at its source as well." if sourced else "."),
        },
        checks.reach_check(trees, reach),
        *checks.unit_checks(trees, problem.X, reach, threat),
        {
            "name": "every row was asked about",
            "passed": not sampled,
            "words": f"{words.count(n)} of {words.count(content['data']['n_rows'])} rows were "
            f"certified or tried"
            + (f", drawn with seed {content['limits']['seed']}" if sampled else "")
            + f"; exact distances were measured on {words.count(content['data']['n_measured'])}.",
        },
    ]
