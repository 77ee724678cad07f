"""What an audit says of a model that predicts numbers: how far its predictions can be moved.

Everything is told in the units of the prediction. Whatever is asked has two sides: *proven*, which
the truth does not exceed, and *found*, which an example reached.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hardwood import _check
from hardwood._check import BoolArray, FloatArray
from hardwood.model.load import open_model
from hardwood.model.trees import Trees
from hardwood.report import checks, findings, words
from hardwood.report.clock import Clock, Settings, undecided_is_told
from hardwood.report.findings import Rows
from hardwood.threat import Reach, Threat, enlarged
from hardwood.verify.output import OutputRange, output_range
from hardwood.verify.problem import Outputs

FORMAT = "hardwood-regression-audit"
TWIN = ("model", "error", "under_attack", "moves", "strength", "answers", "seconds")
MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
_STEPS = 240  # of the distribution of moves, so fine that lines which agree are seen as one
_ROWS_AGAIN = 200  # of questions that are asked many times: multiples, single columns


def measure(model: Any, X: Any, y: Any, threat: Threat, settings: Settings) -> dict[str, Any]:
    """Ask everything that an audit of a regression model tells."""
    clock = Clock(settings)
    clock.tell("reading the model", 0, 1)
    trees, reference = open_model(model, like=X)
    outputs = Outputs.of(trees, X, settings.n_jobs)
    reach = outputs.reach(threat)
    checks.refuse_idle(reach, threat)
    target = targets_of(y, len(outputs.X))
    said = prediction_of(outputs)
    rows, few = asked_about(len(target), settings.n_distances, settings.random_state)

    def asked(some: Rows, how: Threat, stage: str) -> OutputRange:
        options = clock.options(stage)
        return output_range(trees, findings.take(X, some), how, **options)

    with undecided_is_told():
        ranges = asked(rows, threat, "measuring ranges")
        strength = list(strength_of(threat, rows[few], ranges, few, target, said, asked))
        examples = _Examples(outputs, reach, threat, rows, said[rows], ranges)
        alone = alone_of(outputs, reach, threat, rows[few], said[rows[few]], asked, clock)
    clock.tell("writing it down", 1, 1)
    names = words.names_of(trees)
    content = {
        "format": FORMAT,
        "format_version": findings.FORMAT_VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": clock.seconds,
        "model": model_of(settings.name or findings.called(model), trees),
        "data": data_of(outputs, target, rows),
        "columns": names,
        "threat": {"code": repr(threat), "words": words.threat_in_words(threat, names)},
        "error": error_of(said, target),
        "under_attack": under_attack(target[rows], said[rows], ranges),
        "moves": moves_of(said[rows], ranges),
        "strength": strength,
        "fragile": examples.told(settings.n_fragile),
        "alone": alone,
        "answers": {
            "rows": findings.ranges_of(rows),
            **{side: findings.finite(getattr(ranges, side)) for side in SIDES},
        },
        "limits": {
            "time_limit": settings.time_limit,
            "total_time_limit": settings.total_time_limit,
            "n_distances": settings.n_distances,
            "n_fragile": settings.n_fragile,
            "seed": settings.random_state,
        },
        "versions": findings.versions(),
    }
    content["checks"] = checks_of(content, outputs, reach, threat, reference is not None)
    return content


SIDES = ("lower", "lowest", "highest", "upper")


def asked_about(n_rows: int, n_distances: int, seed: int) -> tuple[Rows, Rows]:
    """The rows that are measured, and which of these are asked many times."""
    rng = np.random.default_rng(seed)
    rows = findings.drawn(n_rows, n_distances, rng)
    return rows, np.sort(rng.permutation(len(rows))[:_ROWS_AGAIN])


def data_of(outputs: Outputs, target: FloatArray, rows: Rows) -> dict[str, Any]:
    """How many rows there are, and how many were measured."""
    return {
        "n_rows": len(target),
        "n_columns": outputs.X.shape[1],
        "n_missing": int(np.isnan(outputs.X).sum()),
        "n_measured": len(rows),
        "sha256": findings.data_hash(outputs.X, target),
    }


def targets_of(y: Any, n_rows: int) -> FloatArray:
    """The true numbers, checked."""
    _check.targets(y)
    target = np.asarray(y, dtype=np.float64)
    if target.shape != (n_rows,):
        raise ValueError(
            f"y must have one number for each of the {n_rows} rows, got shape {target.shape}."
        )
    return target


def prediction_of(outputs: Outputs) -> FloatArray:
    """What the model predicts."""
    return outputs.seen(outputs.output(outputs.X))


def model_of(name: str, trees: Trees) -> dict[str, Any]:
    """What kind of model it is."""
    told = findings.model_of(name, trees, None)
    return {key: value for key, value in told.items() if key not in ("classes", "threshold")}


def error_of(said: FloatArray, target: FloatArray) -> dict[str, Any]:
    """Mean absolute and root mean square errors, beside always saying the median."""
    middle = float(np.median(target))
    return {
        "rows": len(target),
        "absolute": float(np.abs(said - target).mean()),
        "squared": float(np.sqrt(((said - target) ** 2).mean())),
        "median": middle,
        "median_absolute": float(np.abs(target - middle).mean()),
    }


def _largest(middle: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """How far the ends of each range are from a number, at most."""
    return np.maximum(np.abs(high - middle), np.abs(middle - low))


def under_attack(target: FloatArray, said: FloatArray, ranges: Any) -> dict[str, Any]:
    """The mean absolute error where the adversary chooses each prediction within its range."""
    return {
        "rows": len(target),
        "clean": float(np.abs(said - target).mean()),
        "found": float(_largest(target, ranges.lowest, ranges.highest).mean()),
        "proven": _number(_largest(target, ranges.lower, ranges.upper).mean()),
    }


def moves_of(said: FloatArray, ranges: Any) -> dict[str, Any]:
    """How far predictions can be moved: how many rows stay within each distance."""
    found = _largest(said, ranges.lowest, ranges.highest)
    proven = _largest(said, ranges.lower, ranges.upper)
    finite = proven[np.isfinite(proven)]
    end = float(finite.max()) if len(finite) else float(found.max())
    grid = [end * k / _STEPS for k in range(_STEPS + 1)]
    return {
        "rows": len(said),
        "exact": int(np.count_nonzero(found == proven)),
        "mean_found": float(found.mean()),
        "mean_proven": _number(proven.mean()),
        "quantiles": [
            {"share": q, "found": _quantile(found, q), "proven": _quantile(proven, q)}
            for q in (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
        ],
        "curve": [
            {
                "move": move,
                "proven": int(np.count_nonzero(proven <= move)),
                "found": int(np.count_nonzero(found <= move)),
            }
            for move in grid
        ],
    }


def _quantile(values: FloatArray, share: float) -> float | None:
    ordered = np.sort(values)
    return _number(ordered[min(int(share * len(ordered)), len(ordered) - 1)])


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def strength_of(
    threat: Threat,
    rows: Rows,
    known: Any,
    at: Rows,
    target: FloatArray,
    said: FloatArray,
    asked: Any,
) -> Iterator[dict[str, Any]]:
    """Errors under attack over multiples of the threat, where it has a size to multiply."""
    if threat.norm == 0:
        return
    clean = float(np.abs(said[rows] - target[rows]).mean())
    yield {"multiple": 0.0, "found": clean, "proven": clean}
    for multiple in MULTIPLES:
        if multiple == 1:
            sides = {side: getattr(known, side)[at] for side in SIDES}
        else:
            stronger = asked(rows, enlarged(threat, multiple), f"{multiple:g} times the threat")
            sides = {side: getattr(stronger, side) for side in SIDES}
        yield {
            "multiple": multiple,
            "found": float(_largest(target[rows], sides["lowest"], sides["highest"]).mean()),
            "proven": _number(_largest(target[rows], sides["lower"], sides["upper"]).mean()),
        }


def farthest(said: FloatArray, ranges: Any) -> tuple[FloatArray, Rows]:
    """How far each prediction goes at most, and which rows move at all, the farthest first."""
    up = ranges.highest - said >= said - ranges.lowest
    move = np.where(up, ranges.highest - said, ranges.lowest - said)
    order = np.argsort(-np.abs(move), kind="stable")
    return move, order[move[order] != 0]


class _Examples:
    """The examples that move predictions farthest, with what they do not need put back."""

    def __init__(
        self,
        outputs: Outputs,
        reach: Reach,
        threat: Threat,
        rows: Rows,
        said: FloatArray,
        ranges: OutputRange,
    ) -> None:
        self.outputs, self.rows, self.said = outputs, rows, said
        self.reach, self.norm = reach, threat.norm
        self.move, self.order = farthest(said, ranges)
        low, high = outputs.trees.rows(ranges.X_lowest), outputs.trees.rows(ranges.X_highest)
        self.X_adv = np.where(self.move[:, None] >= 0, high, low)

    def told(self, most: int) -> list[dict[str, Any]]:
        """The rows that can be moved farthest, as sentences."""
        return [self._told(int(at)) for at in self.order[:most]]

    def _told(self, at: int) -> dict[str, Any]:
        trees, row = self.outputs.trees, self.outputs.X[self.rows[at]]
        example = self._needed(row, self.X_adv[at], float(np.sign(self.move[at])))
        changes = [
            findings.change_of(trees, int(f), float(row[f]), float(example[f]))
            for f in np.flatnonzero(moved(example, row))
        ]
        becomes = float(self._prediction(example[None])[0])
        return {
            "row": int(self.rows[at]),
            "said": float(self.said[at]),
            "becomes": becomes,
            "changes": changes,
            "sentence": words.told(
                changes, words.number(self.said[at], 4), words.number(becomes, 4), "moves", "to"
            ),
        }

    def _prediction(self, X: FloatArray) -> FloatArray:
        return self.outputs.seen(self.outputs.output(X))

    def _needed(self, row: FloatArray, example: FloatArray, sign: float) -> FloatArray:
        """Put values back, and drop digits, where the prediction goes as far without them."""
        example = example.copy()
        best = sign * float(self._prediction(example[None])[0])
        for column in np.flatnonzero(moved(example, row)):
            trial = example.copy()
            trial[column] = row[column]
            if sign * float(self._prediction(trial[None])[0]) >= best:
                example = trial
        for trial in findings.in_fewer_digits(
            self.outputs.trees, self.reach, row[None], example[None]
        ):
            inside = self.reach.holds(row[None], trial, self.norm)[0]
            if inside and sign * float(self._prediction(trial)[0]) >= best:
                return np.asarray(trial[0])
        return example


def moved(example: FloatArray, row: FloatArray) -> BoolArray:
    """Which values differ; a blank is equal to a blank."""
    different: BoolArray = (example != row) & ~(np.isnan(example) & np.isnan(row))
    return different


def alone_of(
    outputs: Outputs,
    reach: Reach,
    threat: Threat,
    rows: Rows,
    said: FloatArray,
    asked: Any,
    clock: Clock,
) -> dict[str, Any]:
    """How far a change of one column alone can move predictions, on average."""
    columns = findings.columns_by_splits(outputs.trees, reach)
    names = words.names_of(outputs.trees)
    answer = []
    for column in columns[: findings.MOST_ALONE]:
        if clock.over:
            break
        single = findings.only_column(threat, reach, int(column))
        ranges = asked(rows, single, f"{names[column]} alone")
        answer.append(
            {
                "column": names[column],
                "found": float(_largest(said, ranges.lowest, ranges.highest).mean()),
                "proven": _number(_largest(said, ranges.lower, ranges.upper).mean()),
            }
        )
    answer.sort(key=lambda one: -float(one["found"] or 0))
    return {"rows": len(rows), "n_movable": len(columns), "columns": answer}


def checks_of(
    content: dict[str, Any], outputs: Outputs, reach: Reach, threat: Threat, sourced: bool
) -> list[dict[str, Any]]:
    """What was looked at, whether it passed, and why that matters; the gate first."""
    error, moves, data = content["error"], content["moves"], content["data"]
    n, n_open = moves["rows"], moves["rows"] - moves["exact"]
    sampled = data["n_rows"] > n
    return [
        checks.gate_check(outputs.trees, sourced),
        {
            "name": "better than guessing",
            "passed": error["absolute"] < error["median_absolute"],
            "words": f"The mean absolute error is {words.number(error['absolute'], 4)}; always "
            f"saying {words.number(error['median'], 4)} would err by "
            f"{words.number(error['median_absolute'], 4)}.",
        },
        {
            "name": "every row is decided",
            "passed": n_open == 0,
            "words": f"For {words.count(n_open)} of {words.count(n)} rows what was found is less "
            f"than what is proven; the truth lies between."
            if n_open
            else f"For each of {words.count(n)} rows what was found is what is proven.",
        },
        checks.reach_check(outputs.trees, reach),
        *checks.unit_checks(outputs.trees, outputs.X, reach, threat),
        {
            "name": "every row was asked about",
            "passed": not sampled,
            "words": f"{words.count(n)} of {words.count(data['n_rows'])} rows were measured"
            + (f", drawn with seed {content['limits']['seed']}." if sampled else "."),
        },
    ]
