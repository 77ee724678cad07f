"""Categories for training that knows thresholds only: put into a fixed order, and back into sets.

Certified boosting keeps, for every row, the two ends of its ball among the thresholds. Categories
get there as ranks: they are put in an order, once, and a threshold between two ranks is a set of
categories. What a category can become lies between two ranks, the ends of its ball: a threshold
parts them if and only if a change brings the category to the other side of the set. So what is
proven of the ranks holds for the categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import spsolve

from hardwood import _sums
from hardwood._check import BoolArray, Float32Array, FloatArray, IntArray
from hardwood.model.trees import Trees
from hardwood.threat.reach import Changes

Places = npt.NDArray[np.intp]

_SMOOTHING = 10.0  # rows by which the mean of a category is drawn to that of all
# Rows by which it is drawn to what each of its rows can become. Chosen among 0 to 100 on made
# tables of 12 and 30 categories, where 10 to 100 gave the same certified accuracy, and 0 up to .05
# less.
_SPRING = 30.0


@dataclass(frozen=True)
class CategorySums:
    """What categories weigh and what their targets add up to, exactly: see `by_group`."""

    by_code: Mapping[int, list[list[int]]]  # of each feature: mass, then targets; of each code
    of_all: list[int]  # mass, then targets

    @classmethod
    def learn(
        cls,
        X: FloatArray,
        y: Float32Array,
        weight: Float32Array | None,
        n_classes: int,
        codes: Mapping[int, IntArray],
    ) -> "CategorySums":
        """Those of some rows; the targets of many classes are whether a row is of each."""
        mass = np.ones(len(y)) if weight is None else weight.astype(np.float64)
        target = [y.astype(np.float64)]
        if n_classes > 2:
            target = [(y == k).astype(np.float64) for k in range(n_classes)]
        columns = [mass, *(mass * one for one in target)]
        by_code = {}
        for feature, known in codes.items():
            present = ~np.isnan(X[:, feature])
            at = np.searchsorted(known, X[present, feature])
            by_code[feature] = [_sums.by_group(c[present], at, len(known)) for c in columns]
        nobody = np.zeros(len(y), dtype=np.int64)
        return cls(by_code, [_sums.by_group(c, nobody, 1)[0] for c in columns])

    @classmethod
    def merged(cls, parts: Sequence["CategorySums"]) -> "CategorySums":
        """Put those of parts together."""

        def add(lists: Sequence[list[int]]) -> list[int]:
            return [sum(values) for values in zip(*lists, strict=True)]

        by_code = {
            feature: [
                add(of_parts)
                for of_parts in zip(*(part.by_code[feature] for part in parts), strict=True)
            ]
            for feature in parts[0].by_code
        }
        return cls(by_code, add([part.of_all for part in parts]))

    def only(self, there: Mapping[int, BoolArray]) -> "CategorySums":
        """The same without some categories."""
        by_code = {
            feature: [[column[at] for at in np.flatnonzero(there[feature])] for column in columns]
            for feature, columns in self.by_code.items()
        }
        return CategorySums(by_code, self.of_all)

    @property
    def everyone(self) -> FloatArray:
        """The mass of all rows, and what their targets add up to."""
        return np.array([float(sum_ * _sums.UNIT) for sum_ in self.of_all])

    def of(self, feature: int, place: int) -> list[float]:
        """The same for one category."""
        return [float(column[place] * _sums.UNIT) for column in self.by_code[feature]]


@dataclass(frozen=True)
class Ranks:
    """The categories of each feature in their order."""

    order: Mapping[int, IntArray]

    @classmethod
    def learn(
        cls, sums: "CategorySums", codes: Mapping[int, IntArray], changes: Changes
    ) -> "Ranks":
        """Order the categories by their smoothed target; of many classes, along the first axis."""
        order = {}
        mean = sums.everyone[1:] / sums.everyone[0]
        for feature, known in codes.items():
            mass = np.empty(len(known))
            excess = np.empty((len(known), len(mean)))
            for at in range(len(known)):
                mass[at], *target = sums.of(feature, at)
                excess[at] = np.array(target) - mean * mass[at]
            key = _smoothed(mass, excess, *_moves(known, changes.get(feature)))
            order[feature] = known[np.argsort(_along_one_axis(key), kind="stable")]
        return cls(order)

    def rank(self, X: FloatArray) -> FloatArray:
        """The table with ranks in the place of categories; those nobody knows are missing."""
        X = np.array(X, dtype=np.float64)
        for feature, code in self.order.items():
            order = np.argsort(code)
            at = np.searchsorted(code[order], X[:, feature])
            at = np.minimum(at, len(code) - 1)
            known = code[order][at] == X[:, feature]
            X[:, feature] = np.where(known, order[at], np.nan)
        return X

    def ends(self, changes: Changes) -> dict[int, FloatArray]:
        """The least and the largest rank that each can become, of features that change."""
        ends = {}
        for feature in self.order.keys() & changes.keys():
            known = self.order[feature]
            source, target = _moves(known, changes[feature])
            least, largest = np.arange(len(known)), np.arange(len(known))
            np.minimum.at(least, source, target)
            np.maximum.at(largest, source, target)
            ends[feature] = np.column_stack([least, largest]).astype(np.float64)
        return ends

    def with_sets(self, trees: Trees) -> Trees:
        """The same trees for categories; missing values, and whatever is unknown, go left there."""
        left, right = trees.left.copy(), trees.right.copy()
        missing_left, sets = trees.missing_left.copy(), []
        size = np.zeros(trees.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(np.isin(trees.feature, list(self.order))):
            order = self.order[int(trees.feature[node])]
            n_left = int(np.clip(np.ceil(trees.threshold[node]), 0, len(order)))
            listed = order[n_left:]
            if not missing_left[node]:  # the other side is listed, and the sides are exchanged
                listed = order[:n_left]
                left[node], right[node] = right[node], left[node]
                missing_left[node] = True
            if not len(listed):
                raise RuntimeError(f"node {node} has all categories on the side of missing values")
            sets.append(np.sort(listed))
            size[node] = len(listed)
        if not sets:
            return trees
        return trees.replace(
            threshold=np.where(size > 0, np.float32(0), trees.threshold),
            left=left,
            right=right,
            missing_left=missing_left,
            category_start=np.concatenate([[0], np.cumsum(size)]),
            category=np.concatenate(sets),
        )


def _along_one_axis(key: FloatArray) -> FloatArray:
    """The rows of a table as numbers: one column as it is, more along their first axis."""
    if key.shape[1] == 1:
        return key[:, 0]
    axis = np.linalg.svd(key, full_matrices=False)[2][0]
    along: FloatArray = key @ axis * np.sign(axis[np.argmax(np.abs(axis))])
    return along


def _moves(known: IntArray, changes: tuple[IntArray, ...] | None) -> tuple[Places, Places]:
    """Which categories can become which others, as places among those that are known."""
    if changes is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    becomes = [changes[code] for code in known.tolist()]
    source = np.repeat(np.arange(len(known)), [len(one) for one in becomes])
    code, order = np.concatenate(becomes), np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], code), len(known) - 1)
    target = order[at]
    kept = (known[target] == code) & (target != source)
    return source[kept], target[kept]


def _smoothed(mass: FloatArray, excess: FloatArray, source: Places, target: Places) -> FloatArray:
    """What the target of each category is above the mean, drawn to that of what it can become.

    Sets along an order part few rows from what they can become if these are neighbours in it. So
    the keys of two categories between which rows can change are held together by a spring, the
    stronger the more rows there are; `_SMOOTHING` rows draw every key to 0.
    """
    n = len(mass)
    plain: FloatArray = excess / (mass + _SMOOTHING)[:, None]
    if len(source) in (0, n * (n - 1)):  # among all no order is better than another
        return plain
    strength = np.tile(_SPRING * mass[source], 2)
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    springs = sparse.csc_matrix((strength, ends), shape=(n, n))
    pull = np.asarray(springs.sum(axis=1)).ravel()
    held = sparse.diags(mass + _SMOOTHING + pull, format="csc") - springs
    key = np.asarray(spsolve(held, excess), dtype=np.float64).reshape(plain.shape)
    # Rounded, so that equal categories stay equal whatever the solver's last digits are.
    unit = np.abs(key).max() or 1.0
    return np.asarray(np.round(key / unit, 9))
