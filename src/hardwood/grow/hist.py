"""Trees from histograms: bin once, grow many times."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from hardwood import _core
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.grow.grow import ClassTreeRules, GrownTree
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.grow.sketch import CodedRows, Cuts
from hardwood.threat import Reach


class HistTable:
    """A table made ready for robust trees from histograms, shared by all trees of a model.

    Values are replaced by the number of their bin. Thresholds are edges between bins; a bin that
    the adversary can move in part across a threshold counts as ambiguous as a whole, so no movable
    row is ever counted as sure. Nothing is lost to that where a feature has at most `max_bins`
    values, nor at a third of the edges of any other feature, whose ambiguity sets end at edges.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        float64 or float32, finite or NaN; an array in C order, or CSR or CSC, where what is not
        stored is 0.
    reach : Reach
        What the adversary may do to the features of the table.
    weight : array of shape (n_samples,), float32, optional
        Weights > 0 by which the edges of bins are quantiles; by default 1. A row of weight 2 counts
        as two rows.
    max_bins : int, default=256
        From 2 to 256.
    n_threads : int, default=1
        Threads for binning.
    categories : mapping from int to array of int32, optional
        For columns of categories: the numbers of all that are known, increasing. Each has a bin of
        its own; where there are more than bins, the rare ones share the last. What `reach` lets one
        of them become, all may.
    only : int, default=-1
        The position of the class whose rows alone are moved; -1: those of all. Boosting knows it by
        the sign of the gradient: with many classes, in the trees of other outputs, all that is not
        of their own class counts as movable.
    """

    def __init__(
        self,
        X: Any,
        reach: Reach,
        *,
        weight: Float32Array | None = None,
        max_bins: int = 256,
        n_threads: int = 1,
        categories: Mapping[int, IntArray] | None = None,
        only: int = -1,
    ) -> None:
        self._codes_of_bin: dict[int, list[IntArray]] = {}
        if categories:
            room = _room(max_bins)
            count = {f: count_codes(X[:, f], k) for f, k in categories.items() if len(k) > room}
            self._codes_of_bin = bins_of_categories(categories, count, max_bins)
            X = in_bins(X, self._codes_of_bin)
        kinds = _kinds(reach, self._codes_of_bin, X.shape[1], only)
        weight_in_double = np.empty(0) if weight is None else weight.astype(np.float64)
        if sparse.issparse(X):
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()  # and brings each line in order
            self._core = _core.HistTable(
                X.indptr,
                X.indices,
                X.data,
                X.shape[1] if X.format == "csr" else X.shape[0],
                X.format == "csr",
                reach.ends,
                weight_in_double,
                **kinds,
                max_bins=max_bins,
                n_threads=n_threads,
            )
        else:
            self._core = _core.HistTable(
                X, reach.ends, weight_in_double, **kinds, max_bins=max_bins, n_threads=n_threads
            )

    @classmethod
    def in_parts(
        cls,
        rows: list[CodedRows],
        cuts: Cuts,
        reach: Reach,
        part: Part,
        n_threads: int = 1,
        only: int = -1,
    ) -> "HistTable":
        """Make the table of rows in codes, of which others have more.

        Everybody makes it, and everybody grows on it what the others grow, in the same order: the
        trees are those of all rows. A call that others do not make, too, waits for them.

        Parameters
        ----------
        rows : list of CodedRows
            The rows of this process, put into bins with `cuts`. The list is emptied: rows are let
            go one after the other, so that they are never all there twice.
        cuts : Cuts
            The edges, the same for everybody.
        reach : Reach
            What the adversary may do to the features of the table.
        part : Part
            Which rows these are, and who has the others.
        n_threads : int, default=1
            Threads for arranging the codes.
        only : int, default=-1
            The position of the class whose rows alone are moved; -1: those of all.
        """
        table = cls.__new__(cls)
        table._codes_of_bin = cuts.codes_of_bin
        pieces = [piece.core() for piece in rows]
        rows.clear()
        table._core = _core.HistTable(
            pieces,
            cuts.edges,
            cuts.frequent,
            max_bins=cuts.max_bins,
            reach=reach.ends,
            number=np.empty(0, np.uint32) if part.others is None else part.number(),
            others=part.others,
            **_kinds(reach, cuts.codes_of_bin, len(cuts.edges), only),
            n_threads=n_threads,
        )
        return table

    @cached_property
    def _bins_are_codes(self) -> bool:
        """Whether every category is its own bin."""
        return all(
            np.array_equal(np.concatenate(bins), np.arange(len(bins)))
            for bins in self._codes_of_bin.values()
        )

    def edges(self, feature: int) -> Float32Array:
        """Give the thresholds that trees can choose for a feature, increasing."""
        return self._core.edges(feature)

    def grow(
        self,
        gradient: Float32Array,
        hessian: Float32Array,
        *,
        weight: Float32Array | None = None,
        rows: npt.NDArray[np.uint8] | None = None,
        features: IntArray | None = None,
        monotonic: npt.NDArray[np.int8] | None = None,
        rules: NewtonRules,
        stop: _core.Stop | None = None,
        in_place: bool = False,
    ) -> tuple[list[GrownTree], IntArray]:
        """Grow one tree for every column of the gradients.

        Parameters
        ----------
        gradient, hessian : array of shape (n_samples, n_trees), float32
            Derivatives of the loss at every row; hessians >= 0.
        weight : array of shape (n_samples,), float32, optional
            Factor > 0 on both derivatives of a row; by default 1.
        rows : array of shape (n_samples,), uint8, optional
            1 for the rows that train; by default all do.
        features : array, int32, optional
            The features that may be used, increasing; by default all.
        monotonic : array of shape (n_features,), int8, optional
            1 or -1 where values must not fall or not rise along a feature, else 0.
        rules : NewtonRules
            What the trees must respect.
        stop : Stop, optional
            Lets another thread end the call, which then raises RuntimeError.
        in_place : bool, default=False
            Whether the leaves may lie where the gradients were, which are lost then.

        Returns
        -------
        trees : list of GrownTree
            Leaf values are not shrunk.
        leaf : array of shape (n_samples, n_trees), int32
            The leaf of every row, also of those that did not train: its position in its tree.
        """
        leaf = gradient.view(np.int32) if in_place else np.empty(gradient.shape, np.int32)
        arrays = self._core.grow(
            gradient,
            hessian,
            np.empty(0, np.float32) if weight is None else weight,
            np.empty(0, np.uint8) if rows is None else rows,
            np.empty(0, np.int32) if features is None else features,
            np.empty(0, np.int8) if monotonic is None else monotonic,
            rules.core(),
            leaf,
            stop,
        )
        return [self._with_codes(GrownTree(*tree)) for tree in arrays], leaf

    def grow_classes(
        self,
        label: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        monotonic: npt.NDArray[np.int8],
        rules: ClassTreeRules,
        stop: _core.Stop | None = None,
    ) -> GrownTree:
        """Grow one robust classification tree; see `ClassTable`."""
        weight = np.empty(0) if weight is None else weight
        grown = self._core.grow_classes(label, n_classes, weight, monotonic, rules.core(), stop)
        return self._with_codes(GrownTree(*grown))

    def _with_codes(self, tree: GrownTree) -> GrownTree:
        """The same tree, whose sets hold categories instead of bins."""
        if self._bins_are_codes:
            return tree
        size = np.diff(tree.category_start)
        if not size.any():
            return tree
        sets = []
        for node in np.flatnonzero(size):
            bins = self._codes_of_bin[int(tree.feature[node])]
            listed = tree.category[tree.category_start[node] : tree.category_start[node + 1]]
            sets.append(np.sort(np.concatenate([bins[bin] for bin in listed])))
            size[node] = len(sets[-1])
        start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        return replace(tree, category_start=start, category=np.concatenate(sets))


def _kinds(
    reach: Reach, codes_of_bin: Mapping[int, list[IntArray]], n_features: int, only: int
) -> dict[str, Any]:
    """What the adversary may do beside moving numbers, for the kernels."""
    kinds: dict[str, Any] = {
        "n_categories": np.empty(0, np.int32),
        "changes": np.empty((0, 3), np.int32),
        "blank": reach.blank.astype(np.uint8),
        "only": only,
    }
    if codes_of_bin:
        kinds["n_categories"] = np.zeros(n_features, np.int32)
        for feature, bins in codes_of_bin.items():
            kinds["n_categories"][feature] = len(bins)
        kinds["changes"] = _changes_of_bins(reach, codes_of_bin)
    return kinds


def count_codes(column: FloatArray, known: IntArray) -> npt.NDArray[np.int64]:
    """How many rows have each of the known categories."""
    at = np.searchsorted(known, column[~np.isnan(column)])
    return np.bincount(at, minlength=len(known))


def bins_of_categories(
    categories: Mapping[int, IntArray],
    count: Mapping[int, npt.NDArray[np.int64]],
    max_bins: int,
) -> dict[int, list[IntArray]]:
    """Give the categories of each bin, by column; where there are too many, rare ones share one.

    Only where there are too many, their `count` is asked for.
    """
    codes_of_bin = {}
    for feature, known in categories.items():
        few = len(known) <= _room(max_bins)
        bins = np.arange(len(known)) if few else _bins_of(count[feature], _room(max_bins))
        order = np.argsort(bins, kind="stable")
        borders = np.flatnonzero(np.diff(bins[order])) + 1
        codes_of_bin[feature] = np.split(known[order].astype(np.int32), borders)
    return codes_of_bin


def _room(max_bins: int) -> int:
    """Bins for categories: one code is that of missing values."""
    return min(max_bins, 63 if max_bins <= 64 else 255)


def in_bins(X: Any, codes_of_bin: Mapping[int, list[IntArray]]) -> Any:
    """Replace categories by bins; the table is copied where that changes it."""
    copied = False
    for feature, bins in codes_of_bin.items():
        code = np.concatenate(bins)
        bin_of = np.repeat(np.arange(len(bins)), [len(codes) for codes in bins])
        if np.array_equal(bin_of, code):
            continue  # they are their own bins
        if not copied:
            X, copied = X.copy(), True
        order = np.argsort(code)
        column = X[:, feature]
        present = ~np.isnan(column)
        X[present, feature] = bin_of[order][np.searchsorted(code[order], column[present])]
    return X


def _changes_of_bins(
    reach: Reach, codes_of_bin: Mapping[int, list[IntArray]]
) -> npt.NDArray[np.int32]:
    """What bins can become, as rows of feature, from, to."""
    changes = []
    for feature, to in reach.changes.items():
        bins = codes_of_bin[feature]
        bin_of = np.zeros(max(int(codes.max()) for codes in bins) + 1, np.int64)
        for at, codes in enumerate(bins):
            bin_of[codes] = at
        for at, codes in enumerate(bins):
            reached = np.zeros(len(bins), dtype=bool)
            for code in codes:
                reached[bin_of[to[code]]] = True
            reached[at] = False
            changes += [(feature, at, other) for other in np.flatnonzero(reached)]
    return np.array(changes, dtype=np.int32).reshape(-1, 3)


def _bins_of(count: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """A bin for each category, in their order; the rarest share the last one."""
    bins = np.full(len(count), most - 1)
    frequent = np.sort(np.argsort(-count, kind="stable")[: most - 1])
    bins[frequent] = np.arange(most - 1)
    return bins
