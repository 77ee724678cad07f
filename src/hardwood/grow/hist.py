"""Trees from histograms: bin once, grow many times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from hardwood import _core
from hardwood._check import FloatArray, IntArray
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
    """

    def __init__(
        self,
        X: Any,
        reach: Reach,
        *,
        weight: npt.NDArray[np.float32] | None = None,
        max_bins: int = 256,
        n_threads: int = 1,
    ) -> None:
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
                reach.limits,
                weight_in_double,
                max_bins=max_bins,
                n_threads=n_threads,
            )
        else:
            self._core = _core.HistTable(
                X, reach.limits, weight_in_double, max_bins=max_bins, n_threads=n_threads
            )

    @classmethod
    def in_parts(
        cls,
        rows: Sequence[CodedRows],
        cuts: Cuts,
        reach: Reach,
        part: Part,
        n_threads: int = 1,
    ) -> "HistTable":
        """Make the table of rows in codes, of which others have more.

        Everybody makes it, and everybody grows on it what the others grow, in the same order: the
        trees are those of all rows. A call that others do not make, too, waits for them.

        Parameters
        ----------
        rows : sequence of CodedRows
            The rows of this process, put into bins with `cuts`.
        cuts : Cuts
            The edges, the same for everybody.
        reach : Reach
            What the adversary may do to the features of the table.
        part : Part
            Which rows these are, and who has the others.
        n_threads : int, default=1
            Threads for arranging the codes.
        """
        table = cls.__new__(cls)
        table._core = _core.HistTable(
            [piece.core() for piece in rows],
            cuts.edges,
            cuts.usual,
            max_bins=cuts.max_bins,
            reach=reach.limits,
            number=part.number(),
            others=part.others,
            n_threads=n_threads,
        )
        return table

    def edges(self, feature: int) -> npt.NDArray[np.float32]:
        """Give the thresholds that trees can choose for a feature, increasing."""
        return self._core.edges(feature)

    def grow(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32],
        *,
        weight: npt.NDArray[np.float32] | None = None,
        rows: npt.NDArray[np.uint8] | None = None,
        features: IntArray | None = None,
        monotonic: npt.NDArray[np.int8] | None = None,
        rules: NewtonRules,
        leaf: IntArray | None = None,
        stop: _core.Stop | None = None,
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
        leaf : array of shape (n_samples, n_trees), int32, optional
            Memory for the leaves, to be overwritten; by default new.
        stop : Stop, optional
            Lets another thread end the call, which then raises RuntimeError.

        Returns
        -------
        trees : list of GrownTree
            Leaf values are not shrunk.
        leaf : array of shape (n_samples, n_trees), int32
            The leaf of every row, also of those that did not train: its position in its tree.
        """
        if leaf is None:
            leaf = np.empty(gradient.shape, np.int32)
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
        return [GrownTree(*tree) for tree in arrays], leaf

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
        return GrownTree(
            *self._core.grow_classes(label, n_classes, weight, monotonic, rules.core(), stop)
        )
