"""What the single tree and the forest share: leaves of class shares, and how they are grown."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from hardwood._check import Float32Array, FloatArray, thread_count, weights
from hardwood.estimators._base import (
    ClassData,
    RobustEstimator,
    attacker,
    count_of,
    features_tried,
    refuse_categories,
    refuse_kinds,
)
from hardwood.grow.grow import ClassTable, ClassTreeRules, SortedTable
from hardwood.grow.hist import HistTable
from hardwood.model.trees import LEAF
from hardwood.threat import Reach

HIST_ROWS = 5_000  # from here on, method="auto" grows on histograms
HIST_CELLS = 100_000  # rows times columns from where on forests do, whose trees share the bins


class ClassTreeEstimator(ClassifierMixin, RobustEstimator):
    """Base of the classifiers that grow class trees; parameters are those of the single tree."""

    criterion: str
    inner: str
    candidates: str
    method: str
    max_bins: int
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    min_split_gain: float
    max_features: int | float | str | None
    class_weight: Any
    monotonic_cst: Any
    categorical_features: Any

    classes_: npt.NDArray[Any]
    n_classes_: int
    _shares_bins = False  # many trees grow on one table

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "eps": "no_validation",
        "threat": "no_validation",
        "criterion": [StrOptions({"entropy", "gini"})],
        "inner": [StrOptions({"exact", "paper"})],
        "candidates": [StrOptions({"midpoints", "intervals"})],
        "method": [StrOptions({"auto", "hist", "exact"})],
        "max_bins": [Interval(Integral, 2, 256, closed="both")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="both")],
        "min_split_gain": [Interval(Real, 0, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def _checked_monotonic(self, data: ClassData) -> npt.NDArray[np.int8]:
        monotonic = self._monotonic(self.monotonic_cst, data.columns)
        if monotonic.any() and len(data.classes) > 2:
            raise ValueError(
                f"monotonic_cst needs two classes, y has {len(data.classes)}; drop it, or "
                f"train one model per class."
            )
        return monotonic

    def _check_inner(self, data: ClassData) -> None:
        if self.inner != "paper":
            return
        if len(data.classes) > 2:
            raise ValueError(
                f'inner="paper" is defined for two classes, y has {len(data.classes)}; '
                f'use inner="exact".'
            )
        if data.weight is not None:
            raise ValueError(
                'inner="paper" counts rows and knows no weights; drop sample_weight and '
                'class_weight, or use inner="exact".'
            )

    def _class_table(self, data: ClassData, reach: Reach) -> ClassTable:
        """Bins or sorted columns, as `method` says."""
        X = data.X
        to_the_letter = self.inner == "paper" or self.candidates == "intervals"
        if self.method == "hist" and self.candidates == "intervals":
            raise ValueError(
                'candidates="intervals" are thresholds of method="exact"; histograms try the edges '
                'of their bins. Drop candidates, or use method="exact".'
            )
        n_rows, n_columns = X.shape
        large = n_rows >= HIST_ROWS or (self._shares_bins and n_rows * n_columns >= HIST_CELLS)
        by_size = large and not to_the_letter
        by_kind = bool(data.columns.categories) or reach.blank.any() or reach.only is not None
        by_kind = by_kind and self.candidates != "intervals"
        if self.method == "hist" or (self.method == "auto" and (by_size or by_kind)):
            return HistTable(
                X,
                reach,
                weight=_in_rows(data.weight),
                max_bins=self.max_bins,
                n_threads=thread_count(self.n_jobs),
                categories=data.columns.codes,
                only=attacker(reach, data.classes),
            )
        refuse_categories(data.columns)
        refuse_kinds(reach)
        return SortedTable(X, reach)

    def _rules(self, data: ClassData, n_rows: int) -> ClassTreeRules:
        """What trees that see `n_rows` rows must respect."""
        return ClassTreeRules(
            impurity=self.criterion,  # type: ignore[arg-type]
            inner=self.inner,  # type: ignore[arg-type]
            candidates=self.candidates,  # type: ignore[arg-type]
            min_split_gain=float(self.min_split_gain),
            min_samples_leaf=count_of(self.min_samples_leaf, n_rows),
            min_samples_split=max(2, count_of(self.min_samples_split, n_rows)),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            max_depth=-1 if self.max_depth is None else int(self.max_depth),
            max_leaf_nodes=0 if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            max_features=features_tried(self.max_features, data.X.shape[1]),
            seed=self._seed(),
            n_threads=thread_count(self.n_jobs),
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities: the shares of the classes in each row's leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        margin = self._margin(X)
        probability = self.trees_.means(margin)
        if probability.shape[1] == 1:
            return np.hstack([1 - probability, probability])
        return probability

    def decision_function(self, X: Any) -> FloatArray:
        """Give the margin: the sum of each class's shares; for two classes the difference.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive where the second one is predicted.
        """
        margin = self._margin(X)
        if margin.shape[1] == 1:
            return margin[:, 0]
        return margin[:, 1] - margin[:, 0] if self.n_classes_ == 2 else margin

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict labels: the largest margin, the first class on ties.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        rows = self._rows(X)
        return self.classes_[self.trees_.predict_class(rows, n_jobs=self.n_jobs)]

    @property
    def feature_importances_(self) -> FloatArray:
        """Robust gain that each feature brought, weighted by rows, adding up to 1."""
        check_is_fitted(self, "trees_")
        split = self.trees_.feature != LEAF
        assert self.trees_.gain is not None
        assert self.trees_.cover is not None
        brought: FloatArray = np.bincount(
            self.trees_.feature[split],
            weights=self.trees_.gain[split] * self.trees_.cover[split],
            minlength=self.n_features_in_,
        ).astype(np.float64)
        total = brought.sum()
        return brought / total if total > 0 else brought


def _in_rows(weight: FloatArray | None) -> Float32Array | None:
    """Weights for the edges of bins; too large for counts of rows, they are in another unit."""
    if weight is not None and weight.mean() > 2**24:
        weight = weight / weight.mean()
    return weights(weight)
