"""Hunt in the columns of users: random pipelines and categorical models against every move.

Whole numbers, categories, one-hot groups, blanks, shares, counts of changes, attackers of one class
and decision thresholds, in all norms. Every value that matters is listed (whole numbers one by one,
categories by name, numbers on both sides of each threshold), every combination of them is asked of
the source's own `predict` or `predict_proba`, and every answer is compared with what follows. Ends
with status 1 if any answer was wrong, with what repeats it.
"""

import argparse
import itertools
import math
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hardwood as hw
from hunt.columns_of_users import KINDS, User
from hunt.enumerate import BIGGEST, CLOSE, edges_of
from hunt.questions import Tally, answered, made

NORMS = ("inf", 1, 2, 0)
MAX_MOVES = 6_000  # of one row
FAR = 1e6  # values beyond are not enumerated: there some steps overflow
SOLVER = 1e-5  # what a solver of mixed-integer programs may be off
EXACT_ATTACKS = ("exact", "kantchelian")


def same(a: Any, b: Any) -> bool:
    return bool(a == b) or (_blank(a) and _blank(b))


def _blank(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@dataclass(frozen=True)
class Option:
    """A value that a column, or a group of dummies, may take; its size in multiples of the threat.

    `sure` and `maybe`: whether the threat itself holds it. One column's ends are the threat's own,
    to the last bit; the two differ where steps are added up, in norms 1 and 2.
    """

    values: tuple[Any, ...]
    size: float
    sure: bool
    maybe: bool


@dataclass(frozen=True)
class Column:
    """What may happen to one column, in the words of its user."""

    name: str
    whole: bool = False
    down: float = 0.0
    up: float = 0.0
    share: bool = False
    blank: bool = False
    low: float = -BIGGEST
    high: float = BIGGEST
    to: dict[str, list[str]] | None = None  # categories; None: numbers

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def moves(self) -> bool:
        return bool(self.down or self.up or self.blank or self.to)

    def options(self, x: tuple[Any, ...], edges: np.ndarray) -> list[Option]:
        (value,) = x
        stays = Option(x, 0.0, True, True)
        if _blank(value):
            return [stays]
        blank = [Option((math.nan,), 1.0, True, True)] if self.blank else []
        if self.to is not None:
            others = [name for name in self.to.get(value, ()) if name != value]
            return [stays, *(Option((name,), 1.0, True, True) for name in others), *blank]
        found = [self._number(value, z) for z in self._numbers(value, edges) if z != value]
        return [stays, *(option for option in found if option is not None), *blank]

    def _numbers(self, x: float, edges: np.ndarray) -> list[float]:
        beside = [*edges, *np.nextafter(edges, -np.inf)]
        if self.whole:
            near = [*np.ceil(edges), *(np.ceil(edges) - 1)]
            most = int(max(self.down, self.up) * (abs(x) if self.share else 1)) + 1
            return sorted({*map(float, near), *(float(x + k) for k in range(-most, most + 1))})
        return sorted({*map(float, beside), *self._ends(x)})

    def _step(self, x: float, z: float) -> float:
        return (self.down if z < x else self.up) * (abs(x) if self.share else 1.0)

    def _ends(self, x: float) -> tuple[float, float]:
        down, up = self._step(x, -math.inf), self._step(x, math.inf)
        # Who is outside of the range is not pushed into it.
        return min(x, max(x - down, self.low)), max(x, min(x + up, self.high))

    def _number(self, x: float, z: float) -> Option | None:
        step = self._step(x, z)
        if step == 0 or not min(x, self.low) <= z <= max(x, self.high):
            return None
        size, (lowest, highest) = max(abs(z - x) / step, 5e-324), self._ends(x)
        inside = lowest <= z <= highest
        return Option((z,), size, inside, inside)

    def allows(self, x: tuple[Any, ...], z: tuple[Any, ...]) -> float:
        """The size of a move to any value, listed or not; infinity if there is no such move."""
        (a,), (b,) = x, z
        if same(a, b):
            return 0.0
        if _blank(a):
            return math.inf
        if _blank(b):
            return 1.0 if self.blank else math.inf
        if self.to is not None:
            return 1.0 if b in self.to.get(a, ()) else math.inf
        if self.whole and b != math.floor(b):
            return math.inf
        option = self._number(a, float(b))
        return math.inf if option is None else option.size


@dataclass(frozen=True)
class Group:
    """Dummies of which one is 1."""

    names: tuple[str, ...]
    moves: bool

    def options(self, x: tuple[Any, ...], edges: np.ndarray) -> list[Option]:
        ones = [tuple(int(name == one) for name in self.names) for one in self.names]
        moved = [Option(one, 1.0, True, True) for one in ones if one != x and self.moves]
        return [Option(x, 0.0, True, True), *moved]

    def allows(self, x: tuple[Any, ...], z: tuple[Any, ...]) -> float:
        if x == z:
            return 0.0
        return 1.0 if self.moves and sorted(z) == [0] * (len(z) - 1) + [1] else math.inf


@dataclass(frozen=True)
class Plan:
    """A threat on its own terms."""

    columns: list[Column | Group]
    norm: Any
    max_changes: int | None
    only: Any
    threat: hw.Threat

    @property
    def unit(self) -> float:
        """What distances are told in: 1 for multiples of the threat, else the one size."""
        numbers = [c for c in self.columns if isinstance(c, Column) and c.to is None]
        others = any((c.share and (c.down or c.up)) or c.blank for c in numbers)
        others = others or any(c.moves for c in self.columns if c not in numbers)
        sizes = {s for c in numbers for s in (c.down, c.up) if s > 0 and not c.share}
        return sizes.pop() if len(sizes) == 1 and not others and self.norm != 0 else 1.0

    def length(self, sizes: np.ndarray) -> np.ndarray:
        if self.norm == 0:
            return np.count_nonzero(sizes, axis=-1).astype(float)
        if self.norm == "inf":
            return sizes.max(axis=-1, initial=0.0)
        if self.norm == 1:
            return sizes.sum(axis=-1)
        # The squares of the smallest and of the largest steps are no floats.
        most = sizes.max(axis=-1, keepdims=True, initial=0.0)
        shares = np.divide(sizes, most, out=np.ones_like(sizes), where=(most > 0) & (most < np.inf))
        return most[..., 0] * np.sqrt((shares**2).sum(axis=-1))


@dataclass(frozen=True)
class Moves:
    """All moves of one row that matter: their rows, sizes, and whether the threat holds them."""

    rows: list[tuple[Any, ...]]
    sizes: np.ndarray
    sure: np.ndarray
    maybe: np.ndarray

    @classmethod
    def of(cls, plan: Plan, row: dict[str, Any], edges: dict[str, np.ndarray]) -> "Moves | None":
        lists = [
            column.options(tuple(row[name] for name in column.names), edges[column.names[0]])
            for column in plan.columns
        ]
        if math.prod(map(len, lists)) > MAX_MOVES:
            return None
        chosen = list(itertools.product(*lists))
        sizes = np.array([[option.size for option in some] for some in chosen])
        sure = np.array([all(option.sure for option in some) for some in chosen])
        maybe = np.array([all(option.maybe for option in some) for some in chosen])
        few = np.count_nonzero(sizes, axis=1) <= (plan.max_changes or len(lists))
        length = plan.length(sizes)
        if plan.norm in (1, 2):
            sure &= (length <= 1 - CLOSE) | (length == 0)
            maybe &= length <= 1 + CLOSE
        rows = [tuple(v for option in some for v in option.values) for some in chosen]
        kept = np.flatnonzero(few)
        return cls([rows[k] for k in kept], sizes[kept], (sure & few)[kept], (maybe & few)[kept])


@dataclass
class Case:
    """One model, its rows, a threat, and the label of every move."""

    user: User
    trees: hw.Trees
    plan: Plan
    X: pd.DataFrame
    y: np.ndarray
    threshold: float | None
    moves: list[Moves]
    labels: list[np.ndarray]
    tally: Tally
    rng: np.random.Generator

    @property
    def model(self) -> Any:
        """The model itself, which is loaded and asked again, or mostly its loaded trees."""
        return self.user.model if self.rng.random() < 0.25 else self.trees

    def attacks(self, i: int) -> bool:
        return self.plan.only is None or bool(self.y[i] == self.plan.only)

    def fooled(self, i: int, target: Any = None) -> np.ndarray:
        """Which moves of a row give a label that the adversary wants; the first is no move."""
        label = self.labels[i]
        wrong = np.asarray(label != self.y[i] if target is None else label == target)
        return wrong if self.attacks(i) else wrong & (self.moves[i].sizes == 0).all(axis=1)

    def wrong(self, question: str, what: str) -> None:
        self.tally.wrong.append(f"{question}: {what}; {self.plan.threat!r}")

    def ask(self, question: str, call: Callable[[], Any]) -> Any:
        self.tally.asked += 1
        return answered(self.tally, question, call)

    def row(self, frame: pd.DataFrame, i: int) -> dict[str, Any]:
        return {name: frame[name].iloc[i] for name in frame.columns}

    def size_of(self, i: int, frame: pd.DataFrame) -> tuple[float, int]:
        """How far an example is from its row, and how many columns it changes."""
        x, z = self.row(self.X, i), self.row(frame, i)
        sizes = np.array(
            [
                c.allows(tuple(_plain(x[n]) for n in c.names), tuple(_plain(z[n]) for n in c.names))
                for c in self.plan.columns
            ]
        )
        held = {name for c in self.plan.columns for name in c.names}
        if any(not same(_plain(x[n]), _plain(z[n])) for n in x if n not in held):
            return math.inf, 0
        # A step from next to nothing is many times a share of it.
        limit = 1 + CLOSE if self.plan.norm == 0 else sys.float_info.max
        length = math.inf if (sizes > limit).any() else float(self.plan.length(sizes))
        return length, int(np.count_nonzero(sizes))


def _plain(value: Any) -> Any:
    """A value as Python has it; every kind of blank as NaN."""
    if value is None or value is pd.NA:
        return math.nan
    return value.item() if isinstance(value, np.generic) else value


# --- what is asked ------------------------------------------------------------------------------


def about_examples(case: Case, said: str, frame: pd.DataFrame, there: np.ndarray) -> None:
    """Examples are possible rows of the threat's, have the frame's form, and fool the source."""
    if list(frame.columns) != list(case.X.columns) or not frame.index.equals(case.X.index):
        case.wrong(said, "the examples have other columns or another index")
        return
    rows = np.flatnonzero(there)
    if len(rows) == 0:
        return
    labels = case.user.label(frame.iloc[rows], case.threshold)
    for i, label in zip(rows, labels, strict=True):
        length, n_changes = case.size_of(i, frame)
        shown = f"{case.row(frame, i)} for {case.row(case.X, i)}"
        if label == case.y[i]:
            case.wrong(said, f"the example {shown} does not fool the source")
        elif not math.isfinite(length):
            case.wrong(said, f"the example {shown} is no possible move")
        elif n_changes > (case.plan.max_changes or n_changes):
            case.wrong(said, f"the example {shown} changes {n_changes} columns")
        elif case.plan.norm != 0 and length > 1 + CLOSE:
            case.wrong(said, f"the example {shown} lies outside: {length}")


def certify(case: Case) -> None:
    said, model = "certify", case.model
    found = case.ask(
        said,
        lambda: hw.certify(
            model, case.X, case.y, case.plan.threat, threshold=case.threshold, n_jobs=1
        ),
    )
    if found is None:
        return
    hold_statuses(case, said, found.status, [(m.sure, m.maybe) for m in case.moves])
    about_examples(case, said, found.X_adv, found.status == "broken")


def hold_statuses(
    case: Case, said: str, status: np.ndarray, held: list[tuple[np.ndarray, np.ndarray]]
) -> None:
    case.tally.unknown += int(np.count_nonzero(status == "unknown"))
    for i, (sure, maybe) in enumerate(held):
        fooled, x = case.fooled(i), case.row(case.X, i)
        if status[i] == "certified" and (fooled & sure).any():
            move = case.moves[i].rows[int(np.argmax(fooled & sure))]
            case.wrong(said, f"certified {x} of label {case.y[i]}, but {move} fools the source")
        elif status[i] == "broken" and not (fooled & maybe).any():
            case.wrong(said, f"broken {x} of label {case.y[i]}, but no move fools the source")


def curve(case: Case) -> None:
    """Multiples of the threat up to itself; or with norm 0, numbers of changes."""
    plan = case.plan
    if not any(column.moves for column in plan.columns):
        return  # no proportions to keep
    grid = np.arange(3.0) if plan.norm == 0 else np.array([0.0, 0.4, 1.0]) * plan.unit
    model = case.model
    found = case.ask(
        "certified_accuracy",
        lambda: hw.certified_accuracy(
            model,
            case.X,
            case.y,
            grid,
            threat=plan.threat,
            threshold=case.threshold,
            n_jobs=1,
        ),
    )
    for at, status in zip(grid, found.status, strict=True) if found is not None else ():
        held = []
        for moves in case.moves:
            length = plan.length(moves.sizes)
            if plan.norm == 0:
                held.append((moves.sure & (length <= at), moves.maybe & (length <= at)))
                continue
            here = length / 1.0 * plan.unit
            sure = moves.sure & ((here <= at * (1 - CLOSE)) | (here == 0))
            if at == plan.unit:
                sure = moves.sure
            held.append((sure, moves.maybe & (here <= at * (1 + CLOSE))))
        hold_statuses(case, f"certified_accuracy at {at}", status, held)


def distance(case: Case) -> None:
    """The smallest change: a threat's sizes do not limit it, but with norm 0."""
    plan, target = case.plan, None
    if case.rng.random() < 0.3:
        target = case.user.classes[case.rng.integers(len(case.user.classes))]
    solver = case.rng.random() < 0.15
    said = f"minimal_distance norm {plan.norm}" + (f" to {target!r}" if target is not None else "")
    said += " by milp" if solver else ""
    model = case.model
    found = case.ask(
        said.split(" to ")[0],
        lambda: hw.minimal_distance(
            model,
            case.X,
            case.y,
            norm=plan.norm,
            threat=plan.threat,
            target=target,
            threshold=case.threshold,
            method="milp" if solver else "search",
            n_jobs=1,
        ),
    )
    if found is None:
        return
    case.tally.unknown += int(np.count_nonzero(found.status == "unknown"))
    close = SOLVER if solver else CLOSE
    for i in range(len(case.X)):
        least = nearest(case, i, target)
        x, lower, upper = case.row(case.X, i), found.lower[i], found.upper[i]
        if math.isinf(least) and FAR / 10 < lower <= upper:
            continue  # a way that was not enumerated; its end is asked of the source below
        truth = f"the truth is {least}, for {x}, {case.y[i]!r}"
        if lower > upper or not _upto(lower, least, close) or not _upto(least, upper, close):
            case.wrong(said, f"{lower} to {upper}, {truth}")
        elif found.status[i] == "exact" and not solver and not _upto(upper, least, close):
            case.wrong(said, f"exact is {upper}, {truth}")
    there = np.flatnonzero(np.isfinite(found.upper))
    if len(there) == 0:
        return
    labels = case.user.label(found.X_adv.iloc[there], case.threshold)
    for i, label in zip(there, labels, strict=True):
        length = case.size_of(i, found.X_adv)[0] * plan.unit
        if (label == case.y[i]) if target is None else (label != target):
            case.wrong(said, f"the example {case.row(found.X_adv, i)} does not get its label")
        elif not math.isclose(length, found.upper[i], rel_tol=close, abs_tol=close):
            case.wrong(
                said,
                f"upper is {found.upper[i]}, but the example {case.row(found.X_adv, i)} is "
                f"{length} from {case.row(case.X, i)}",
            )


def _upto(a: float, b: float, close: float) -> bool:
    return a <= b or math.isclose(a, b, rel_tol=close, abs_tol=close)


def nearest(case: Case, i: int, target: Any = None) -> float:
    """The length of the smallest move that fools, in the threat's unit."""
    moves, fooled = case.moves[i], case.fooled(i, target)
    if case.plan.norm == 0:
        fooled = fooled & moves.sure
    length = np.where(fooled, case.plan.length(moves.sizes), np.inf)
    return float(length.min()) * case.plan.unit


def attack(case: Case) -> None:
    plan = case.plan
    method = str(case.rng.choice(["auto", "exact", "descent", "symbolic", "papernot", "cheng"]))
    if method == "papernot" and case.trees.n_trees > 1:
        method = "kantchelian"
    said = f"find_adversarial {method}"
    settings = hw.ChengSettings(max_queries=300) if method == "cheng" else None
    model = case.model
    found = case.ask(
        said,
        lambda: hw.find_adversarial(
            model,
            case.X,
            case.y,
            method=method,
            norm=plan.norm,
            threat=plan.threat,
            threshold=case.threshold,
            settings=settings,
            random_state=0,
            n_jobs=1,
        ),
    )
    if found is None:
        return
    about_examples(case, said, found.X_adv, found.success)
    for i in range(len(case.X)):
        fooled, moves = case.fooled(i), case.moves[i]
        x = case.row(case.X, i)
        if fooled[0]:  # is wrong without an attack
            if found.success[i]:
                case.wrong(said, f"attacked {x} of {case.y[i]!r}, which is wrong already")
        elif found.success[i] and not (fooled & moves.maybe).any():
            case.wrong(said, f"success on {x}, but no move fools the source")
        elif method in EXACT_ATTACKS and not found.success[i] and (fooled & moves.sure).any():
            case.wrong(said, f"no success on {x} of {case.y[i]!r}, but a move fools the source")


# --- how a case is made -------------------------------------------------------------------------


def some_plan(rng: np.random.Generator, user: User) -> Plan:
    """A threat in any of the forms in which users may say it."""
    norm = NORMS[rng.integers(4)]
    columns: list[Column | Group] = []
    eps: dict[str, Any] = {}
    limits: dict[str, dict[str, float]] = {"low": {}, "high": {}}
    by_dtype = rng.random() < 0.85  # else no column is whole
    sizes = (
        [float(rng.choice([0.5, 1.0, 1.5, 2.0]))] * 4 if rng.random() < 0.3 else [0.25, 0.5, 1, 2]
    )
    for name in user.numbers:
        whole = by_dtype and pd.api.types.is_integer_dtype(user.X[name].dtype)
        column = Column(name, whole=whole, blank=name in user.may_be_blank and rng.random() < 0.3)
        form = rng.choice(["still", "number", "pair", "share"], p=[0.15, 0.35, 0.25, 0.25])
        given: dict[str, Any] = {}
        if form == "number":
            size = float(rng.choice(sizes))
            given, eps[name] = {"down": size, "up": size}, size
        elif form == "pair":
            down, up = float(rng.choice([0, *sizes])), float(rng.choice(sizes))
            given, eps[name] = {"down": down, "up": up}, (down, up)
        elif form == "share":
            down, up = float(rng.choice([0, 0.25, 0.5, 1])), float(rng.choice([0.2, 0.5, 1.5]))
            given, eps[name] = {"down": down, "up": up, "share": True}, hw.relative(down, up)
        if rng.random() < 0.25:
            ends = np.sort(rng.choice(user.X[name].dropna().to_numpy(), 2)).astype(float)
            given |= {"low": float(ends[0]), "high": float(ends[1])}
            limits["low"][name], limits["high"][name] = map(float, ends)
        columns.append(Column(**{**vars(column), **given}))
    for name, known in user.categories.items():
        form = rng.choice(["still", "any", "some"], p=[0.2, 0.4, 0.4])
        to: dict[str, list[str]] = {}
        if form == "any":
            eps[name], to = hw.ANY, {a: list(known) for a in known}
        elif form == "some":
            some = {
                a: [str(b) for b in known if rng.random() < 0.5]
                for a in known
                if rng.random() < 0.7
            }
            some = some or {known[0]: [known[-1]]}
            eps[name], to = dict(some), dict(some)
        blank = name in user.may_be_blank and bool(rng.random() < 0.3)
        columns.append(Column(name, to=to, blank=blank))
    fixed = []
    if user.group:
        moves = bool(rng.random() < 0.8)
        columns.append(Group(user.group, moves))
        fixed = [] if moves else [user.group[0]]
    k = int(rng.integers(1, 4)) if rng.random() < 0.4 else None
    only = user.classes[rng.integers(len(user.classes))] if rng.random() < 0.25 else None
    threat = hw.Threat(
        eps,
        norm=norm,
        **limits,
        fixed=fixed,
        integer=None if by_dtype else [],
        one_hot=[user.group] if user.group else [],
        max_changes=k,
        blank=[c.name for c in columns if isinstance(c, Column) and c.blank],
        only=only,
    )
    return Plan(columns, norm, k, only, threat)


def some_rows(
    rng: np.random.Generator, user: User, edges: dict[str, np.ndarray], n: int
) -> pd.DataFrame:
    """Rows of the table, some numbers on a threshold or one float below it."""
    X = user.X.iloc[rng.integers(len(user.X), size=n)].copy()
    for name in user.numbers:
        if not pd.api.types.is_integer_dtype(X[name].dtype) and len(edges[name]):
            on = rng.choice(edges[name], size=n)
            on = np.where(rng.random(n) < 0.5, on, np.nextafter(on, -np.inf))
            moved = (rng.random(n) < 0.4) & X[name].notna().to_numpy()
            X[name] = np.where(moved, on, X[name])
    X.index = rng.permutation(n) + 100
    return X


def table_of(
    user: User, columns: list[Column | Group], moves: list[Moves], X: pd.DataFrame
) -> pd.DataFrame:
    """All moves as one frame of the user's form."""
    names = [name for column in columns for name in column.names]
    values = list(zip(*itertools.chain(*(m.rows for m in moves)), strict=True))
    repeats = [len(m.rows) for m in moves]
    content: dict[str, Any] = {}
    for name in X.columns:
        if name not in names:
            content[name] = X[name].repeat(repeats).array
            continue
        held = list(values[names.index(name)])
        if name in user.categories:
            content[name] = pd.Series(held, dtype=X[name].dtype).array
        else:
            numbers = np.array(held, dtype=np.float64)
            whole = not np.isnan(numbers).any() and (numbers == np.floor(numbers)).all()
            keep = whole and pd.api.types.is_integer_dtype(X[name].dtype)
            content[name] = numbers.astype(np.int64) if keep else numbers
    return pd.DataFrame(content)


def hunt_one(name: str, seed: int, number: int, tally: Tally, n_rows: int = 6) -> None:
    """Make the model of a kind that `seed` and `number` say, and ask about it."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    before = len(tally.wrong)
    with threadpool_limits(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        user = made(KINDS[name], rng, tally)
        if user is not None:
            _examine(user, rng, tally, n_rows)
    repeat = f"--kinds {name!r} --seed {seed} --number {number}"
    tally.wrong[before:] = [f"{what}  [{repeat}]" for what in tally.wrong[before:]]


def _examine(user: User, rng: np.random.Generator, tally: Tally, n_rows: int) -> None:
    tally.models += 1
    trees = answered(tally, "load_model", lambda: hw.load_model(user.model, X=user.X))
    if trees is None:
        return
    at = {name: f for f, name in enumerate(trees.feature_names)}
    every = edges_of(trees)
    edges = {name: every[at[name]] if name in at else np.empty(0) for name in user.X.columns}
    edges = {name: e[np.abs(e) < FAR] for name, e in edges.items()}
    X, plan = some_rows(rng, user, edges, n_rows), some_plan(rng, user)
    rows = [{name: _plain(X[name].iloc[i]) for name in X.columns} for i in range(len(X))]
    found = [Moves.of(plan, row, edges) for row in rows]
    kept = [i for i, moves in enumerate(found) if moves is not None]
    if not kept:
        tally.refused["too many moves to enumerate"] += 1
        return
    X, moves = X.iloc[kept], [m for m in found if m is not None]
    threshold = float(rng.choice([0.3, 0.5, 0.62])) if user.proba and rng.random() < 0.35 else None
    table = table_of(user, plan.columns, moves, X)
    try:
        label = user.label(table, threshold)
    except ValueError:  # such as a bin without rows before an encoder that knows no others
        tally.refused["the source refuses a value that the threat allows"] += 1
        return
    labels = np.split(label, np.cumsum([len(m.rows) for m in moves])[:-1])
    y = np.array([one[0] for one in labels])
    flip = rng.random(len(y)) < 0.15
    y = np.where(flip, rng.choice(np.asarray(user.classes), size=len(y)), y)
    y = y.astype(np.asarray(user.classes).dtype)
    tally.rows += len(X)
    case = Case(user, trees, plan, X, y, threshold, moves, labels, tally, rng)
    certify(case)
    distance(case)
    (attack if rng.random() < 0.5 else curve)(case)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--kinds", help="only the kinds with these words in their names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="only this model of each kind")
    parser.add_argument("--shown", type=int, default=3, help="wrong answers shown of each kind")
    options = parser.parse_args()
    from hunt.hunt import refusals, table

    names = [name for name in KINDS if options.kinds is None or options.kinds in name]
    tallies = {name: Tally() for name in names}
    begin, done = time.monotonic(), 0
    with suppress(KeyboardInterrupt):  # what was found until then is told
        for number in itertools.count() if options.number is None else [options.number]:
            for name in names:
                if time.monotonic() - begin < options.seconds:
                    hunt_one(name, options.seed, number, tallies[name])
                    done += 1
            if done >= options.models or time.monotonic() - begin >= options.seconds:
                break
    print(table(tallies))
    print(refusals(tallies))
    print(f"\n{done} models in {time.monotonic() - begin:.0f} s")
    wrong = {name: t.wrong for name, t in tallies.items() if t.wrong}
    for name, found in wrong.items():
        print(f"\nwrong: {name}: {len(found)}\n    " + "\n    ".join(found[: options.shown]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
