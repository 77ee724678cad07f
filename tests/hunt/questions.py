"""Every public question about a model, each answer held against the enumeration."""

import copy
import dis
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import hardwood as hw
from hunt.enumerate import (
    BIGGEST,
    CLOSE,
    Cells,
    Contradiction,
    Moves,
    doubt,
    edges_of,
    length_of,
    limits_of,
)
from hunt.source import Rng, Source, decided

NORMS = ("inf", 1, 2, 0)
SAME = 1e-6  # relative, between a prediction and itself: some libraries add up in float32
SOLVER = 1e-5  # what a solver of mixed-integer programs may be off
MAX_CELLS = 20_000
HOME = Path(hw.__file__).parent


@dataclass
class Tally:
    """What became of one kind."""

    models: int = 0
    rows: int = 0
    asked: int = 0
    unknown: int = 0
    refused: Counter = field(default_factory=Counter)  # reasons
    wrong: list[str] = field(default_factory=list)


@dataclass
class Case:
    """One model, the rows to ask about, and the book in which answers are entered."""

    source: Source
    trees: Any
    cells: Cells
    X: np.ndarray
    rng: Rng
    tally: Tally

    def ask(self, question: str, call: Callable[[], Any]) -> Any:
        """The answer, or None if it was refused; crashes are wrong."""
        self.tally.asked += 1
        return answered(self.tally, question, call)

    def wrong(self, question: str, what: str) -> None:
        self.tally.wrong.append(f"{question}: {what}")

    @property
    def model(self) -> Any:
        """The model itself or, at times, its loaded trees."""
        return self.source.model if self.rng.random() < 0.5 else self.trees


def answered(tally: Tally, question: str, call: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:  # a crash is a finding, and the hunt goes on
        text = f"{question}: {type(error).__name__}: {str(error)[:150]}"
        if _is_refusal(error):
            tally.refused[text] += 1
        else:
            tally.wrong.append(f"{text} (crash)")
    return None


def _is_refusal(error: Exception) -> bool:
    """Whether we said no on purpose: an error of ours, from a statement of ours that raises.

    The statement is looked up in the code that ran, since files may change while a hunt goes on.
    """
    last = error.__traceback__
    if not isinstance(error, ValueError | hw.HardwoodError) or "bug in hardwood" in str(error):
        return False
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    assert last is not None
    code = last.tb_frame.f_code
    raises = code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raises and HOME in Path(code.co_filename).parents


def is_ours(error: Exception) -> bool:
    """Whether any line of ours took part in an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(HOME in Path(frame.filename).parents for frame in frames)


def made(kind: Callable[[Rng], Any], rng: Rng, tally: Tally) -> Any:
    """What a kind makes, or None; our own estimators and writers take part, and must not fail."""
    try:
        return kind(rng)
    except Exception as error:  # folds that miss a category, tables without a split
        text = f"making: {type(error).__name__}: {str(error)[:150]}"
        if is_ours(error):
            tally.wrong.append(text)
        else:
            tally.refused[text] += 1
    return None


def examine(source: Source, rng: Rng, tally: Tally, n_rows: int = 24) -> None:
    """Ask everything about one model."""
    tally.models += 1
    tally.asked += 1
    trees = answered(tally, "load_model", lambda: hw.load_model(source.model))
    if trees is None:
        return
    if source.task == "refused":
        case = Case(source, trees, None, source.X[:n_rows], rng, tally)
        _must_refuse_labels(case)
        pushed = case.ask("output_range", lambda: hw.output_range(trees, case.X, 0.1))
        if pushed is not None:
            case.wrong("output_range", "answered for a model that has no one output")
        return
    try:
        edges = edges_of(trees, source.special)
        if np.prod([len(e) + 2.0 for e in edges]) > MAX_CELLS:
            tally.refused["too many cells to enumerate"] += 1
            return
        limits = limits_of(trees)
        cells = Cells(edges, source.missing, source.predict, rng, source.categories, limits)
        anywhere = np.clip(_rows(rng, source, edges, 60), *np.array(limits).T)
        cells.check(anywhere, np.asarray(source.predict(anywhere)))
    except Contradiction as found:
        tally.wrong.append(f"thresholds: {found}")
        return
    except ValueError as error:
        # Some steps of pipelines overflow in the outermost cells, and the source says no itself.
        if "infinity" not in str(error):
            raise
        tally.refused["the source refuses values of an outermost cell"] += 1
        return
    X = anywhere[:n_rows]
    case = Case(source, trees, cells, X, rng, tally)
    tally.rows += len(X)
    _predictions(case, anywhere)
    _probabilities(case)
    _twins(case)
    if source.task == "label":
        _about_labels(case)
    else:
        if source.bare:
            _may_have_labels(case)
        else:
            _must_refuse_labels(case)
        _about_values(case)


def _rows(rng: Rng, source: Source, edges: list[np.ndarray], n: int) -> np.ndarray:
    """Rows of the table, some of their values on a threshold, one float below it, or beside."""
    X = source.X[rng.integers(len(source.X), size=n)].copy()
    for f, edge in enumerate(edges):
        if len(edge) and f not in source.categories:
            on = rng.choice(edge, size=n)
            span = np.ptp(edge) + 1
            options = [
                on,
                np.nextafter(on, -np.inf),
                on + rng.normal(size=n) * span * 0.3,
                on + rng.choice([-1, 1], size=n) * span * 2.0**-12,
            ]
            how = rng.choice(7, size=n)
            values = np.choose(np.minimum(how, 3), options)
            X[:, f] = np.where((how < 4) & ~np.isnan(X[:, f]), values, X[:, f])
    return X


# --- predictions --------------------------------------------------------------------------------


def _predictions(case: Case, rows: np.ndarray) -> None:
    Z = np.concatenate([rows, case.cells.points])
    predicted = case.ask("Trees.predict", lambda: case.trees.predict(case.source.given(Z)))
    if predicted is None:
        return
    truth = case.cells.answer[case.cells.at(Z)]
    predicted = np.asarray(predicted)
    if predicted.shape != truth.shape:
        case.wrong("Trees.predict", f"shape {predicted.shape}, the source's is {truth.shape}")
        return
    if case.source.task == "label":
        off = predicted != truth
    else:  # what cancels in a sum in float32 leaves the rounding of its terms
        rounding = SAME * np.max(np.abs(truth), initial=0.0)
        off = ~_near(predicted, truth) & (np.abs(predicted - truth) > rounding)
    if off.any() and case.source.bare:
        off = predicted != decided(truth)
    if off.any():
        i = int(np.argmax(off))
        case.wrong(
            "Trees.predict",
            f"{predicted[i]!r} where the source says {truth[i]!r}, at {Z[i].tolist()}; "
            f"{off.sum()} of {len(off)} differ",
        )


def _probabilities(case: Case) -> None:
    ask = getattr(case.source.model, "predict_proba", None)
    if case.source.task != "label" or ask is None:
        return
    Z = case.source.given(case.cells.points)
    predicted = case.ask("Trees.predict_proba", lambda: case.trees.predict_proba(Z))
    if predicted is None:
        return
    truth = np.asarray(ask(Z))
    if predicted.shape != truth.shape or not _near(predicted, truth, 1e-5).all():
        case.wrong("Trees.predict_proba", f"{predicted[:1]!r}, the source's is {truth[:1]!r}")


def _twins(case: Case) -> None:
    for name, (ours, theirs) in case.source.twins.items():
        case.tally.asked += 1
        Z = case.cells.points
        a, b = np.asarray(ours(Z)), np.asarray(theirs(Z))
        exact = a.shape != b.shape or a.dtype.kind not in "f"
        off = np.asarray(a != b if exact else ~_near(a, b, 1e-5))
        if off.any():
            i = tuple(np.argwhere(off)[0]) if a.shape == b.shape else ()
            case.wrong(name, f"{a[i]!r} ours, {b[i]!r} theirs; {off.sum()} of {off.size} differ")


def _near(a: Any, b: Any, relative: float = SAME) -> Any:
    return np.isclose(a, b, rtol=relative, atol=1e-12 + relative * 1e-3)


# --- threats --------------------------------------------------------------------------------


def random_moves(case: Case, norm: Any) -> Moves:
    """A threat in any of the forms in which it may be said."""
    rng, d = case.rng, case.X.shape[1]
    span = max((float(np.ptp(e)) for e in case.cells.edges if len(e)), default=1.0) or 1.0
    fixed = [f for f in range(d) if rng.random() < 0.1]
    if norm == 0:
        eps = int(rng.integers(0, d + 1))
        down = up = np.full(d, float(eps >= 1))
    else:
        form = rng.choice(["number", "exact", "list", "pair", "pairs", "mapping"])
        size = float(span * rng.choice([0.0, 0.05, 0.2, 0.5, 1.0, 2.0]) * rng.uniform(0.5, 1.5))
        if form == "exact":  # a threshold exactly at the end of a ball
            x = case.X[rng.integers(len(case.X))]
            gaps = [
                abs(z - x[f])
                for f, e in enumerate(case.cells.edges)
                for z in (*e, *np.nextafter(e, -np.inf))
                if not np.isnan(x[f])
            ]
            size = float(rng.choice(gaps)) if gaps else size
        sizes = size * rng.choice([0.0, 0.5, 1.0, 2.0], size=(d, 2))
        if rng.random() < 0.1:  # squares of such shares are no numbers
            sizes[rng.integers(d)] *= float(rng.choice([1e-170, 1e-150, 1e100]))
        if form not in ("number", "exact", "pair"):
            sizes[list(case.source.categories)] = 0.0
        if form == "pair":
            sizes[:] = sizes[0]
            eps = (float(sizes[0, 0]), float(sizes[0, 1]))
        elif form == "pairs":
            eps = [(float(a), float(b)) for a, b in sizes]
        elif form == "list":
            sizes[:, 1] = sizes[:, 0]
            eps = sizes[:, 0].tolist()
        elif form == "mapping":
            sizes[:, 1] = sizes[:, 0]
            sizes[rng.random(d) < 0.3] = 0.0
            eps = {f: float(s) for f, s in enumerate(sizes[:, 0]) if s > 0}
        else:
            sizes[:] = size
            eps = size
        down, up = sizes[:, 0].copy(), sizes[:, 1].copy()
    low, high = np.full(d, -BIGGEST), np.full(d, BIGGEST)
    said: dict[str, Any] = {}
    if rng.random() < 0.4:
        column = case.X[:, 0]
        ends = np.sort(rng.choice(column[~np.isnan(column)], 2)) if rng.random() < 0.7 else [0, 1]
        if np.isnan(column).all():
            ends = [0, 1]
        if rng.random() < 0.5:
            said = {"low": float(ends[0]), "high": float(ends[1])}
            low[:], high[:] = ends
        else:
            said = {"low": {0: float(ends[0])}}
            low[0] = ends[0]
    down, up = down.copy(), up.copy()
    still = fixed + list(case.source.categories)
    down[still] = up[still] = 0.0
    return Moves(hw.Threat(eps, norm=norm, fixed=fixed, **said), norm, down, up, low, high)


def free_moves(case: Case, norm: Any) -> Moves:
    one = np.ones(case.X.shape[1])
    step = one.copy()
    step[list(case.source.categories)] = 0.0
    return Moves(hw.Threat(1, norm=norm), norm, step, step, one * -BIGGEST, one * BIGGEST)


def _inside(x: np.ndarray, z: np.ndarray, moves: Moves) -> bool:
    """Whether the threat holds z, up to the rounding of a sum of steps."""
    if moves.norm != "inf":
        return length_of(x, z, moves) <= moves.radius * (1 + CLOSE) + doubt(x, moves)
    lowest = np.minimum(x, np.maximum(x - moves.down, moves.low))
    highest = np.maximum(x, np.minimum(x + moves.up, moves.high))
    return bool((((z >= lowest) & (z <= highest)) | (np.isnan(x) & np.isnan(z))).all())


# --- labels ---------------------------------------------------------------------------------


def _about_labels(case: Case) -> None:
    rng = case.rng
    label = case.cells.answer[case.cells.at(case.X)]
    flip = rng.random(len(case.X)) < 0.15
    y = np.where(flip, rng.choice(np.asarray(case.source.classes), size=len(label)), label)
    y = y.astype(np.asarray(case.source.classes).dtype)
    fooled = [case.cells.answer != one for one in y]
    norms = rng.permutation(np.array(NORMS, dtype=object))
    _certify(case, y, fooled, norms[0])
    _certify(case, y, fooled, norms[1])
    _curve(case, y, fooled, norms[2])
    _distance(case, y, fooled, norms[3], False)
    _distance(case, y, fooled, norms[0], True)
    _attack(case, y, fooled, norms[1])
    _attack(case, y, fooled, norms[2])


def _certify(case: Case, y: np.ndarray, fooled: list[np.ndarray], norm: Any) -> None:
    moves = random_moves(case, norm)
    given, model = case.source.given(case.X), case.model
    found = case.ask("certify", lambda: hw.certify(model, given, y, moves.threat, n_jobs=1))
    if found is None:
        return
    said = f"certify {moves.threat!r}"
    _statuses(case, said, found.status, fooled, moves)
    wrong = _fools(case, case.X, y)
    if ((found.reason == "misclassified") != wrong).any():
        case.wrong(said, "errs about which rows are misclassified")
    examples = (found.status == "broken") & ~wrong
    _examples(case, said, y, _table(found), examples, moves)


def _statuses(
    case: Case, said: str, status: np.ndarray, fooled: list[np.ndarray], moves: Moves
) -> None:
    case.tally.unknown += int(np.count_nonzero(status == "unknown"))
    for i, x in enumerate(case.X):
        sure, maybe = case.cells.inside(x, moves)
        if status[i] == "certified" and (fooled[i] & sure).any():
            z = case.cells.point(x, int(np.argmax(fooled[i] & sure)))
            case.wrong(said, f"certified {x.tolist()}, but {z.tolist()} fools the source")
            return
        if status[i] == "broken" and not (fooled[i] & maybe).any():
            case.wrong(said, f"broken {x.tolist()}, but nothing in reach fools the source")
            return


def _fools(case: Case, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(case.source.predict(np.ascontiguousarray(Z)) != y)


def _table(found: Any) -> np.ndarray:
    """Examples as an array; a frame was asked with a frame."""
    return np.asarray(found.X_adv, dtype=np.float64)


def _examples(
    case: Case,
    said: str,
    y: np.ndarray,
    X_adv: np.ndarray,
    there: np.ndarray,
    moves: Moves,
    limited: bool = True,
) -> None:
    """Examples must fool the source and lie in the threat."""
    rows = np.flatnonzero(there)
    if len(rows) == 0:
        return
    fools = _fools(case, X_adv[rows], y[rows])
    for i, good in zip(rows, fools, strict=True):
        x, z = case.X[i], X_adv[i]
        if not good:
            case.wrong(said, f"the example {z.tolist()} for {x.tolist()} does not fool the source")
            return
        if limited and not _inside(x, z, moves):
            case.wrong(said, f"the example {z.tolist()} for {x.tolist()} lies outside")
            return


def _curve(case: Case, y: np.ndarray, fooled: list[np.ndarray], norm: Any) -> None:
    moves = random_moves(case, norm)
    if not (moves.down + moves.up).any():
        return  # no proportions to keep
    if norm == 0:
        grid = np.arange(case.X.shape[1] + 1, dtype=float)
    else:
        grid = np.sort(moves.unit * case.rng.choice([0.0, 0.2, 0.5, 1.0, 1.5, 3.0], 4))
    given, model = case.source.given(case.X), case.model
    found = case.ask(
        "certified_accuracy",
        lambda: hw.certified_accuracy(model, given, y, grid, threat=moves.threat, n_jobs=1),
    )
    if found is None:
        return
    for eps, status in zip(found.eps, found.status, strict=True):
        at = replace(
            moves,
            down=moves.down / moves.unit * eps if norm != 0 else moves.down,
            up=moves.up / moves.unit * eps if norm != 0 else moves.up,
            threat=replace_eps(moves.threat, eps) if norm == 0 else moves.threat,
        )
        said = f"certified_accuracy at {eps} of {moves.threat!r}"
        if norm != 0 and eps == 0:
            at = replace(at, down=at.down * 0, up=at.up * 0)
        _statuses(case, said, status, fooled, at)


def replace_eps(threat: Any, eps: float) -> Any:
    return hw.Threat(eps, norm=threat.norm, low=threat.low, high=threat.high, fixed=threat.fixed)


def _nearest(case: Case, i: int, fooled: np.ndarray, moves: Moves) -> float:
    """The truth: the shortest way to a cell that fools."""
    length = np.where(fooled, case.cells.lengths(case.X[i], moves), np.inf)
    return float(length.min())


def _scale(case: Case) -> float:
    return max((float(np.abs(e).max()) for e in case.cells.edges if len(e)), default=1.0)


def _solvable(case: Case) -> bool:
    """Whether a solver with tolerances can be expected to tell the thresholds apart."""
    return len(case.cells.answer) < 400 and 1e-2 < _scale(case) < 1e3


def _few(case: Case, y: np.ndarray, fooled: list[np.ndarray]) -> Any:
    """The first rows only, for what is slow."""
    return replace(case, X=case.X[:4]), y[:4], fooled[:4]


def _distance(
    case: Case, y: np.ndarray, fooled: list[np.ndarray], norm: Any, threatened: bool
) -> None:
    rng = case.rng
    moves = random_moves(case, norm) if threatened else free_moves(case, norm)
    solver = _solvable(case) and rng.random() < 0.1
    method = "milp" if solver else "search"
    if solver:
        case, y, fooled = _few(case, y, fooled)
    given, model = case.source.given(case.X), case.model
    threat = moves.threat if threatened else None
    found = case.ask(
        f"minimal_distance {method}",
        lambda: hw.minimal_distance(
            model, given, y, norm=norm, threat=threat, method=method, n_jobs=1
        ),
    )
    if found is None:
        return
    said = f"minimal_distance {method}, norm {norm}" + (f", {threat!r}" if threatened else "")
    _hold_distance(case, said, found, fooled, moves, SOLVER if solver else 0.0)
    wrong = _fools(case, case.X, y)
    if ((found.status == "misclassified") != wrong).any():
        case.wrong(said, "errs about which rows are misclassified")
    there = np.isfinite(found.upper) & ~wrong
    _examples(case, said, y, _table(found), there, moves, limited=False)
    if norm == "inf" and not threatened and not solver and there.any():
        i = int(rng.choice(np.flatnonzero(there)))
        at = case.ask(
            "certify",
            lambda: hw.certify(model, given[i : i + 1], y[i : i + 1], float(found.upper[i])),
        )
        if at is not None and at.status[0] == "certified":
            case.wrong(said, f"certify at the distance of {case.X[i].tolist()} says certified")


def _hold_distance(
    case: Case,
    said: str,
    found: Any,
    fooled: list[Any],
    moves: Moves,
    tolerance: float,
    loosely: list[Any] | None = None,
) -> None:
    """Bounds and examples against the truth; `loosely` fooled where rounding may decide."""
    slack = tolerance * max(1.0, _scale(case)) if tolerance else 0.0
    part = CLOSE if moves.norm in (1, 2) else 1e-12
    case.tally.unknown += int(np.count_nonzero(found.status == "unknown"))
    for i, x in enumerate(case.X):
        most = _nearest(case, i, fooled[i], moves)
        least = most if loosely is None else _nearest(case, i, loosely[i], moves)
        lower, upper = float(found.lower[i]), float(found.upper[i])
        if lower > most * (1 + part) + slack or np.isnan(lower):
            case.wrong(said, f"lower={lower} but {most} fools, for {x.tolist()}")
            return
        if upper < least * (1 - part) - slack or np.isnan(upper):
            case.wrong(said, f"upper={upper} but nothing below {least} fools, for {x.tolist()}")
            return
        if found.status[i] == "exact" and upper > most * (1 + part) + slack:
            case.wrong(said, f"says exactly {upper}, the truth is {most}, for {x.tolist()}")
            return
        if np.isfinite(upper) and found.status[i] != "misclassified":
            length = length_of(x, _table(found)[i], moves)
            if not np.isclose(length, upper, rtol=part, atol=slack):
                case.wrong(
                    said,
                    f"upper={upper} but its example {_table(found)[i].tolist()} is {length} away "
                    f"from {x.tolist()}",
                )
                return


def _attack(case: Case, y: np.ndarray, fooled: list[np.ndarray], norm: Any) -> None:
    rng = case.rng
    threatened = bool(rng.random() < 0.5)
    moves = random_moves(case, norm) if threatened else free_moves(case, norm)
    methods = ["auto", "exact", "symbolic" if norm == 0 else "descent"]
    if case.trees.n_trees == 1:
        methods.append("papernot")
    if _solvable(case) and rng.random() < 0.5:
        methods.append("kantchelian")
    method = str(rng.choice(methods))
    if method == "kantchelian":
        case, y, fooled = _few(case, y, fooled)
    given, model = case.source.given(case.X), case.model
    threat = moves.threat if threatened else None
    found = case.ask(
        f"find_adversarial {method}",
        lambda: hw.find_adversarial(
            model, given, y, method=method, norm=norm, threat=threat, n_jobs=1
        ),
    )
    if found is None:
        return
    said = f"find_adversarial {method}, norm {norm}" + (f", {threat!r}" if threatened else "")
    wrong = _fools(case, case.X, y)
    if ((found.status == "misclassified") != wrong).any():
        case.wrong(said, "errs about which rows are misclassified")
        return
    _examples(case, said, y, _table(found), found.success, moves, threatened)
    exact = found.method in ("exact", "kantchelian")
    slack = SOLVER * max(1.0, _scale(case)) if found.method == "kantchelian" else 0.0
    part = CLOSE if norm in (1, 2) else 1e-12
    for i, x in enumerate(case.X):
        if wrong[i]:
            continue
        truth = _nearest(case, i, fooled[i], moves)
        got = float(found.distance[i])
        if found.lower[i] > truth * (1 + part) + slack:
            case.wrong(said, f"lower={found.lower[i]} but {truth} fools, for {x.tolist()}")
            return
        if found.success[i]:
            length = length_of(x, _table(found)[i], moves)
            if not np.isclose(length, got, rtol=part, atol=0):
                case.wrong(said, f"distance={got}, but the example is {length} from {x.tolist()}")
                return
            if exact and got > truth * (1 + part) + slack:
                case.wrong(said, f"distance={got}, the truth is {truth}, for {x.tolist()}")
                return
        elif exact:
            sure = (
                case.cells.inside(x, moves)[0]
                if threatened
                else np.isfinite(case.cells.lengths(x, moves))
            )
            if (fooled[i] & sure).any() and not slack:
                z = case.cells.point(x, int(np.argmax(fooled[i] & sure)))
                case.wrong(said, f"{x.tolist()} survived, but {z.tolist()} fools the source")
                return


# --- numbers --------------------------------------------------------------------------------


def _must_refuse_labels(case: Case) -> None:
    """A question about labels, to a model that has none."""
    X, model = case.source.given(case.X), case.model
    y = np.arange(len(case.X)) % 2
    questions = {
        "certify": lambda: hw.certify(model, X, y, 0.1),
        "certified_accuracy": lambda: hw.certified_accuracy(model, X, y, [0.1]),
        "minimal_distance": lambda: hw.minimal_distance(model, X, y),
        "find_adversarial": lambda: hw.find_adversarial(model, X, y),
    }
    question = str(case.rng.choice(list(questions)))
    # What has to be refused is not listed among the refusals that users could regret.
    case.tally.asked += 1
    aside = Tally()
    found = answered(aside, question, questions[question])
    case.tally.wrong += aside.wrong
    if found is not None:
        case.wrong(question, "answered about labels of a model that has none")


def _may_have_labels(case: Case) -> None:
    """Questions about labels of bare numbers: refused, or answered with a half as the border."""
    cells = copy.copy(case.cells)
    cells.answer = decided(cells.answer)
    source = replace(case.source, predict=lambda Z: decided(case.source.predict(Z)))
    aside = Tally()
    _about_labels(replace(case, cells=cells, source=source, tally=aside))
    case.tally.asked += aside.asked
    case.tally.unknown += aside.unknown
    case.tally.wrong += aside.wrong


def _about_values(case: Case) -> None:
    value = np.asarray(case.cells.answer, dtype=np.float64)
    norms = case.rng.permutation(np.array(NORMS, dtype=object))
    for norm in norms[:2]:
        _range(case, value, norm)
    for norm in norms[2:]:
        _change(case, value, norm)


def _range(case: Case, value: np.ndarray, norm: Any) -> None:
    moves = random_moves(case, norm)
    given, model = case.source.given(case.X), case.model
    found = case.ask("output_range", lambda: hw.output_range(model, given, moves.threat, n_jobs=1))
    if found is None:
        return
    said = f"output_range {moves.threat!r}"
    # What cancels in a sum in float32 leaves the rounding of its terms.
    rounding = SAME * np.max(np.abs(value), initial=0.0)

    def near(a: float, b: float) -> bool:
        return bool(_near(a, b) or abs(a - b) <= rounding)

    case.tally.unknown += int(np.count_nonzero(found.status == "unknown"))
    outputs = [case.source.predict(Z) for Z in (found.X_lowest, found.X_highest)]
    for i, x in enumerate(case.X):
        sure, maybe = case.cells.inside(x, moves)
        for end, sign, proven, got, Z, there in (
            ("lowest", 1, found.lower[i], found.lowest[i], found.X_lowest[i], outputs[0][i]),
            ("highest", -1, found.upper[i], found.highest[i], found.X_highest[i], outputs[1][i]),
        ):
            best, beyond = (sign * (sign * value[which]).min() for which in (sure, maybe))
            if sign * proven > sign * best and not near(proven, best):
                case.wrong(said, f"proves {proven}, the {end} is {best}, for {x.tolist()}")
                return
            if sign * got < sign * beyond and not near(got, beyond):
                case.wrong(said, f"finds {got}, the {end} is {beyond}, for {x.tolist()}")
                return
            if found.status[i] == "exact" and sign * got > sign * best and not near(got, best):
                case.wrong(said, f"says {got} is exact, the {end} is {best}, for {x.tolist()}")
                return
            if not near(there, got) or not _inside(x, Z, moves):
                case.wrong(said, f"{end}={got}, but its example {Z.tolist()} gives {there}")
                return


def _change(case: Case, value: np.ndarray, norm: Any) -> None:
    rng = case.rng
    threatened = bool(rng.random() < 0.5)
    moves = random_moves(case, norm) if threatened else free_moves(case, norm)
    change = float(np.ptp(value) * rng.choice([0.0, 0.1, 0.3, 0.6]) * rng.uniform(0.8, 1.2))
    here = value[case.cells.at(case.X)]
    y = None if rng.random() < 0.6 else here + np.ptp(value) * 0.3 * rng.normal(size=len(here))
    given, model = case.source.given(case.X), case.model
    threat = moves.threat if threatened else None
    found = case.ask(
        "minimal_distance change",
        lambda: hw.minimal_distance(
            model, given, y, change=change, norm=norm, threat=threat, n_jobs=1
        ),
    )
    if found is None:
        return
    said = f"minimal_distance change={change}, norm {norm}" + (
        f", {threat!r}" if threatened else ""
    )
    center = here if y is None else y
    slack = SAME * (np.abs(value).max() + change) + 1e-12
    off = [np.abs(value - c) for c in center]
    strictly, loosely = [o > change + slack for o in off], [o > change - slack for o in off]
    _hold_distance(case, said, found, strictly, moves, 0.0, loosely)
    rows = np.flatnonzero(np.isfinite(found.upper) & (found.status != "misclassified"))
    if len(rows):
        moved = np.abs(case.source.predict(_table(found)[rows]) - np.asarray(center)[rows])
        for i in rows[moved <= change - slack]:
            Z = _table(found)[i].tolist()
            case.wrong(said, f"the example {Z} does not change the prediction enough")
            return
