"""The gate: a foreign model is let in only if it says the same here as at home.

Converted models differ from their source where adversarial examples live: on thresholds. So the
two are compared on rows whose values lie on thresholds and one float to each side, on missing
values, zeros and the ends of the range, and on rows the user brings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FLOAT32_MAX, BoolArray, FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.trees import LEAF, Trees, core_of, take_sets

_WORK = 500_000  # rows x trees that loading may cost
_LEAST_ROWS, _MOST_ROWS = 256, 4096
_MOST_GIVEN = 10_000
_EDGE_TURNS = 4


@dataclass(frozen=True)
class Reference:
    """What the source itself says of rows.

    ``margin`` gives (n_samples, n_outputs), ``leaf`` the node of each row in each tree, or is None
    where the source does not tell. ``ours`` brings our margin to the form in which the source
    states it. The margins must be equal to the bit unless ``exact`` is False: the source then adds
    in an order or a precision of its own, and only rounding may differ. ``missing`` and
    ``infinite``: whether the source takes such values; ``accepts``: which rows it takes at all.
    ``label`` is what its users see, as positions of classes, None where it has no labels;
    ``predict`` the means, (n_samples, n_outputs), None where it does not tell them. ``decode``
    brings rows to the kind of table that the source takes, ``own_label`` is the label of tables as
    its users pass them; ``sparse_missing``: whether the zeros of
    a sparse one are missing values to it. ``probability`` makes the probability of the second class
    of our margin, where the trees' own link does not; ``dtype`` is that of the source's own ones.
    """

    name: str
    margin: Callable[[FloatArray], FloatArray]
    leaf: Callable[[FloatArray], npt.NDArray[np.int64]] | None = None
    ours: Callable[[FloatArray], FloatArray] = lambda margin: margin
    exact: bool = True
    missing: bool = True
    infinite: bool = False
    accepts: Callable[[FloatArray], BoolArray] = lambda X: np.ones(len(X), dtype=bool)
    label: Callable[[FloatArray], npt.NDArray[np.int64]] | None = None
    predict: Callable[[FloatArray], FloatArray] | None = None
    decode: Callable[[FloatArray], Any] = lambda X: X
    own_label: Callable[[Any], npt.NDArray[np.int64]] | None = None
    sparse_missing: bool = False
    probability: Callable[[FloatArray], FloatArray] | None = None
    dtype: Any = np.float64


def own_reference(trees: Trees, name: str) -> Reference:
    """What trees of ours say themselves."""
    return Reference(name, trees.margin, predict=lambda X: trees.means(trees.margin(X)))


def check(trees: Trees, reference: Reference, X: FloatArray | None = None) -> None:
    """Compare the trees with their source, on rows made for it and on the user's."""
    rows = gate_rows(trees, reference)
    if X is not None:
        rows = np.concatenate([rows, X])
    if reference.leaf is not None:
        # Asking for leaves costs more, and a wrong one nearly always shows in the margin.
        _check_leaves(trees, reference, rows[:: -(-len(rows) // _LEAST_ROWS)])
    here = reference.ours(np.asarray(core_of(trees).margin(rows, n_threads=1)))
    there = reference.margin(rows)
    wrong = np.any(np.abs(here - there) > _slack(trees, reference), axis=1)
    if wrong.any():
        if reference.leaf is not None:  # names tree and node, if a leaf is to blame
            _check_leaves(trees, reference, rows[wrong])
        row = int(np.argmax(wrong))
        raise UnsupportedModelError(
            f"This {reference.name} was read, but its margin is {there[row].tolist()} at its "
            f"source and {here[row].tolist()} here; {_where(rows, wrong)}"
        )
    _check_means(trees, reference, rows)
    _check_labels(trees, reference, np.concatenate([rows, _edge_rows(trees, reference, rows)]))


def check_given(trees: Trees, reference: Reference, X: Any) -> None:
    """Compare labels on a user's own table, whose dtypes may change what a pipeline computes."""
    sparse = hasattr(X, "tocsr")
    # Arrays of float64 are what the source was asked about already.
    narrow = isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.dtype != np.float64
    framed = getattr(X, "columns", None) is not None
    if reference.own_label is None or not (framed or sparse or narrow):
        return
    some = (X.tocsr() if sparse else X)[:_MOST_GIVEN]
    margin = np.asarray(core_of(trees).margin(trees.rows(some), n_threads=1))
    here, there = trees.decide(margin), reference.own_label(some)
    wrong = (here != there) & (_gap(trees, margin) > _slack(trees, reference))
    if wrong.any():
        names, row = _names(trees), int(np.argmax(wrong))
        raise UnsupportedModelError(
            f"This {reference.name} gives row {row} of X the label {names[there[row]]!r} as it "
            f"stands, and {names[here[row]]!r} where numbers are float64 and missing values are "
            f"those that it was fitted on. Convert the columns of X so, and pass it again."
            + (" A sparse X is written out by X.toarray()." if sparse else "")
        )


def positions(label: npt.NDArray[Any], classes: Any) -> npt.NDArray[np.int64]:
    """Where labels lie in `classes`; some sources give them back as text."""
    known = np.asarray(classes).tolist()
    place = {one: k for k, one in enumerate(map(str, known))} | {
        one: k for k, one in enumerate(known)
    }
    return np.array([place.get(one, -1) for one in np.ravel(label).tolist()], dtype=np.int64)


def _names(trees: Trees) -> list[Any]:
    """The labels, as they are printed."""
    return list(range(trees.n_classes)) if trees.classes is None else trees.classes.tolist()


def _check_means(trees: Trees, reference: Reference, rows: FloatArray) -> None:
    if reference.predict is None:
        return
    here = trees.means(np.asarray(core_of(trees).margin(rows, n_threads=1)))
    there = reference.predict(rows)
    # Exponentials of two libraries differ in their last places, and so do sums in two orders.
    close = 1e-5 if trees.value.dtype == np.float32 else 1e-9
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(here - there) <= close * (np.abs(there) + 1))
    wrong = np.any(wrong & ~((here == there) | (np.isnan(here) & np.isnan(there))), axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UnsupportedModelError(
            f"This {reference.name} was read, but it predicts {there[row].tolist()} at its source "
            f"and {here[row].tolist()} here; {_where(rows, wrong)}"
        )


def _check_labels(trees: Trees, reference: Reference, rows: FloatArray) -> None:
    if reference.label is None:
        return
    margin = np.asarray(core_of(trees).margin(rows, n_threads=1))
    with np.errstate(all="ignore"):  # a source's own steps may overflow on the outermost rows
        here, there = trees.decide(margin), reference.label(rows)
    # Where the source adds in an order of its own, rounding may decide.
    wrong = (here != there) & (_gap(trees, margin) > _slack(trees, reference))
    if wrong.any():
        names, row = _names(trees), int(np.argmax(wrong))
        if there[row] < 0:
            raise UnsupportedModelError(
                f"This {reference.name} was read, but its own predict ends in an error on rows "
                f"whose columns are plain numbers, so it cannot be compared; columns of truth "
                f"values or objects are the usual reason: make them numbers and fit again."
            )
        raise UnsupportedModelError(
            f"This {reference.name} was read, but its label is "
            f"{names[there[row]]!r} at its source and {names[here[row]]!r} here, at the margin "
            f"{margin[row].tolist()}; {_where(rows, wrong)}"
        )


def _gap(trees: Trees, margin: FloatArray) -> FloatArray:
    """How far margins are from where the label changes, which they may be exactly at."""
    with np.errstate(over="ignore"):  # the cut is the largest float where all rows get one label
        if trees.n_outputs == 1:
            gap: FloatArray = np.abs(margin[:, 0] - trees.cut)
            return np.nextafter(gap, np.inf)
        top = np.sort(margin, axis=1)
        return np.nextafter(top[:, -1] - top[:, -2], np.inf)


def _edge_rows(trees: Trees, reference: Reference, rows: FloatArray) -> FloatArray:
    """Rows near the decision's edge: values of the gate's rows put together anew."""
    if reference.label is None:
        return rows[:0]
    rng = np.random.default_rng(1)
    near = rows
    for _ in range(_EDGE_TURNS):
        # Take one value in a few from another row, and keep what comes nearest to the edge.
        other = rows[rng.integers(0, len(rows), len(near))]
        mixed = np.where(rng.random(near.shape) < 0.3, other, near)
        both = np.unique(np.concatenate([near[:_LEAST_ROWS], mixed]), axis=0)
        gap = _gap(trees, np.asarray(core_of(trees).margin(both, n_threads=1)))
        near = both[np.argsort(gap, kind="stable")[: 2 * _LEAST_ROWS]]
    return np.ascontiguousarray(near[reference.accepts(near)])


def _check_leaves(trees: Trees, reference: Reference, rows: FloatArray) -> None:
    assert reference.leaf is not None
    rows = np.ascontiguousarray(rows)
    here = np.asarray(core_of(trees).apply(rows, n_threads=1))
    there = reference.leaf(rows)
    if np.array_equal(here, there):
        return
    wrong = here != there
    row, tree = np.argwhere(wrong)[0]
    raise UnsupportedModelError(
        f"This {reference.name} was read, but tree {tree} sends a row to node {there[row, tree]} "
        f"at its source and to node {here[row, tree]} here; {_where(rows, wrong.any(axis=1))}"
    )


def _where(rows: FloatArray, wrong: BoolArray) -> str:
    row = int(np.argmax(wrong))
    shown = ", ".join(repr(float(value)) for value in rows[row, :8])
    dots = ", ..." if rows.shape[1] > 8 else ""
    return (
        f"this happens on {int(wrong.sum())} of {len(rows)} rows, first on [{shown}{dots}]. "
        f"It is not loaded; please report the model."
    )


def _slack(trees: Trees, reference: Reference) -> float:
    """How far apart two orders of adding the same leaves can be; 0 where the order is the same."""
    return max(trees.tie or 0.0, 0.0 if reference.exact else 4 * sum_error(trees))


def sum_error(trees: Trees) -> float:
    """How far a sum of leaves can be from the true one, in any order, twice over."""
    return (trees.n_trees + 2) * float(np.finfo(trees.value.dtype).eps) * largest_sum(trees)


def largest_sum(trees: Trees) -> float:
    """The leaves that are largest, whatever their sign, of all trees together."""
    leaf = trees.feature == LEAF
    largest = np.zeros(trees.n_trees)
    tree_of = np.repeat(np.arange(trees.n_trees), np.diff(trees.tree_start))
    np.maximum.at(largest, tree_of[leaf], np.abs(trees.value[leaf]).max(axis=1))
    return float(largest.sum() + np.abs(trees.base).max())


def gate_rows(trees: Trees, reference: Reference) -> FloatArray:
    """Rows for the gate; the same model always gets the same rows."""
    rng = np.random.default_rng(0)
    most = int(np.clip(_WORK // max(trees.n_trees, 1), _LEAST_ROWS, _MOST_ROWS))
    split = np.flatnonzero(trees.feature != LEAF)
    order = split[np.argsort(trees.feature[split], kind="stable")]
    ends = np.searchsorted(trees.feature[order], np.arange(trees.n_features + 1))
    values = {
        f: _values(trees, order[ends[f] : ends[f + 1]])
        for f in range(trees.n_features)
        if ends[f] < ends[f + 1]
    }
    n = min(max((len(v) for v in values.values()), default=1), most)
    n = max(n, _LEAST_ROWS)
    # Every row lies on a threshold, or beside one, in all features at once.
    on = np.zeros((n, trees.n_features))
    for f, around in values.items():
        repeats = -(-n // len(around))
        on[:, f] = np.concatenate([rng.permutation(around) for _ in range(repeats)])[:n]
    between = _between(on, rng)
    between[:, trees.categorical_features] = np.trunc(between[:, trees.categorical_features])
    special = [0.0, -0.0, FLOAT32_MAX, -FLOAT32_MAX]
    if reference.infinite and np.isfinite(trees.threshold[split]).all():
        special += [np.inf, -np.inf]
    mixed = on[: n // 4 + 1].copy()
    holes = rng.random(mixed.shape) < 0.3
    if reference.missing:
        special.append(np.nan)
    mixed[holes] = rng.choice(special, size=int(holes.sum()))
    constant = np.repeat(np.array(special)[:, None], trees.n_features, axis=1)
    rows = np.concatenate([on, between, mixed, constant])
    if trees.columns is not None:
        rows = trees.columns.possible(rows, trees.category_names, rng)
    return np.ascontiguousarray(rows[reference.accepts(rows)])


def _values(trees: Trees, nodes: npt.NDArray[np.int64]) -> FloatArray:
    """Values of one feature that tell apart what its splits do."""
    if not trees.categorical[nodes].any():
        return _around(np.unique(trees.threshold[nodes]))
    feature = int(trees.feature[nodes[0]])
    if trees.columns is not None:
        unknown = feature in trees.columns.takes_unknown
        return np.arange(float(len(trees.category_names[feature]) + unknown))
    _, category = take_sets(trees.category_start, trees.category, nodes)
    seen = np.unique(category).astype(np.float64)
    unseen = [seen + 1, seen - 1, [0, -1, -7, seen[-1] + 32, 2**24 - 1, 2**24, 2**31]]
    return np.unique(np.concatenate([seen, *unseen]))


def _around(threshold: npt.NDArray[np.floating]) -> FloatArray:
    """Thresholds, their neighbours in the model's precision and in double, and rounding borders."""
    down = np.nextafter(threshold, threshold.dtype.type(-np.inf))
    up = np.nextafter(threshold, threshold.dtype.type(np.inf))
    t, down, up = (np.asarray(a, dtype=np.float64) for a in (threshold, down, up))
    half = down + (t - down) / 2
    near = [t, down, up, half]
    for a in (t, half):
        near += [np.nextafter(a, -np.inf), np.nextafter(a, np.inf)]
    around = np.unique(np.concatenate(near))
    around = around[np.abs(around) <= FLOAT32_MAX]
    # Splits that only tell missing values from others have no value around them.
    return around if len(around) else np.zeros(1)


def _between(on: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Random rows, a little wider than the thresholds of each feature."""
    low, high = on.min(axis=0), on.max(axis=0)
    share = rng.uniform(-0.1, 1.1, size=(len(on) // 4 + 1, on.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        rows = low + share * (high - low)
    clipped: FloatArray = np.clip(np.nan_to_num(rows), -FLOAT32_MAX, FLOAT32_MAX)
    return clipped
