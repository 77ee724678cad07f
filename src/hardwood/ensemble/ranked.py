"""Categories for training that knows thresholds only: put into a fixed order, and back into sets.

Certified boosting keeps, for every row, the two ends of its ball among the thresholds. Categories
get there as ranks: they are put in the order of their mean target, once, and a threshold between
two ranks is a set of categories. Categories that changes connect, in either direction, share a
rank, so that no allowed change ever crosses a threshold: what is proven of the ranks holds for the
categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hardwood import _sums
from hardwood._check import FloatArray, IntArray
from hardwood.model.trees import Trees
from hardwood.threat.reach import Changes

_SMOOTHING = 10.0  # rows by which the mean of a category is drawn to that of all


@dataclass(frozen=True)
class CategorySums:
    """What categories weigh and what their targets add up to, exactly: see `by_group`."""

    by_code: Mapping[int, list[list[int]]]  # of each feature: mass, then targets; of each code
    of_all: list[int]  # mass, then targets

    @classmethod
    def learn(
        cls,
        X: FloatArray,
        y: npt.NDArray[np.float32],
        weight: npt.NDArray[np.float32] | None,
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

    def only(self, there: Mapping[int, npt.NDArray[np.bool_]]) -> "CategorySums":
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

    def of(self, feature: int, places: npt.NDArray[np.intp]) -> list[float]:
        """The same for some categories together."""
        return [
            float(sum(column[at] for at in places) * _sums.UNIT) for column in self.by_code[feature]
        ]


@dataclass(frozen=True)
class Ranks:
    """The categories of each rank, by feature."""

    groups: Mapping[int, list[IntArray]]

    @classmethod
    def learn(
        cls, sums: "CategorySums", codes: Mapping[int, IntArray], changes: Changes
    ) -> "Ranks":
        """Order the categories by their mean target; of many classes, along the first axis."""
        groups = {}
        mean = sums.everyone[1:] / sums.everyone[0]
        for feature, known in codes.items():
            together = _connected(known, changes.get(feature))
            key = np.zeros((len(together), len(mean)))
            for at, group in enumerate(together):
                mass, *target = sums.of(feature, np.searchsorted(known, group))
                key[at] = (np.array(target) - mean * mass) / (mass + _SMOOTHING)
            order = np.argsort(_along_one_axis(key), kind="stable")
            groups[feature] = [together[at] for at in order]
        return cls(groups)

    def rank(self, X: FloatArray) -> FloatArray:
        """The table with ranks in the place of categories; those nobody knows are missing."""
        X = np.array(X, dtype=np.float64)
        for feature, groups in self.groups.items():
            code = np.concatenate(groups)
            rank = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
            order = np.argsort(code)
            at = np.searchsorted(code[order], X[:, feature])
            at = np.minimum(at, len(code) - 1)
            known = code[order][at] == X[:, feature]
            X[:, feature] = np.where(known, rank[order][at], np.nan)
        return X

    def with_sets(self, trees: Trees) -> Trees:
        """The same trees for categories; missing values, and whatever is unknown, go left there."""
        left, right = trees.left.copy(), trees.right.copy()
        missing_left, sets = trees.missing_left.copy(), []
        size = np.zeros(trees.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(np.isin(trees.feature, list(self.groups))):
            groups = self.groups[int(trees.feature[node])]
            n_left = int(np.clip(np.ceil(trees.threshold[node]), 0, len(groups)))
            listed = groups[n_left:]
            if not missing_left[node]:  # the other side is listed, and the sides are exchanged
                listed = groups[:n_left]
                left[node], right[node] = right[node], left[node]
                missing_left[node] = True
            if not listed:
                raise RuntimeError(f"node {node} has all categories on the side of missing values")
            sets.append(np.sort(np.concatenate(listed)))
            size[node] = len(sets[-1])
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


def _connected(known: IntArray, changes: tuple[IntArray, ...] | None) -> list[IntArray]:
    """Categories that changes lead to each other, one way or the other; by their first one."""
    if changes is None:
        return [known[at : at + 1] for at in range(len(known))]
    group_of = {int(code): {int(code)} for code in known}
    for code in known.tolist():
        mine = group_of[code]
        for other in changes[code].tolist():
            theirs = group_of.get(other)
            if theirs is None or theirs is mine:
                continue
            mine |= theirs
            for member in theirs:
                group_of[member] = mine
    groups = {min(group): group for group in group_of.values()}
    return [np.array(sorted(groups[first]), dtype=np.int32) for first in sorted(groups)]
