"""The robust decision tree for scikit-learn users."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from hardwood._check import FloatArray, thread_count
from hardwood.ensemble.tree import train_tree
from hardwood.estimators._base import (
    ClassData,
    RobustEstimator,
    count_of,
    features_tried,
    warn_if_constant,
)
from hardwood.grow.grow import ClassTreeRules
from hardwood.model.text import tree_text
from hardwood.model.trees import LEAF


class RobustDecisionTreeClassifier(ClassifierMixin, RobustEstimator):
    """A decision tree whose splits are chosen for the worst the adversary can do to them.

    Every split maximises the gain that is left after the adversary has moved the rows of the
    ambiguity set to their worst sides (Algorithms 1 and 3 of the paper). Two or more classes.

    Parameters
    ----------
    eps : float, sequence or mapping, default=0.1
        How far the adversary can move a value, in the units of X: every form that `Threat` takes.
        ``eps=0`` is the ordinary, natural tree.
    threat : Threat or None, default=None
        The whole threat, in place of `eps`: valid range, fixed features, one-sided moves.
    criterion : {"entropy", "gini"}, default="entropy"
        Information gain in bits, or decrease of the Gini impurity.
    inner : {"exact", "paper"}, default="exact"
        How the adversary's best reply to a split is found. ``"exact"``: the minimum over the box of
        class weights it can choose from, in O(1) a threshold for two classes; rows can be divided,
        so a split that it can nearly void counts as void. ``"paper"``: Algorithm 3 to the letter,
        O(n) a threshold; two classes, no weights.
    candidates : {"midpoints", "intervals"}, default="midpoints"
        Thresholds tried: halfway between neighbouring values, as in the paper, or in the intervals
        between ends of balls in which the robust gain has its maxima: at least as good a split, and
        fewer to try.
    max_depth : int or None, default=None
        Largest depth; None means until leaves are pure or no split has a robust gain.
    max_leaf_nodes : int or None, default=None
        Grow best-first, by robust gain times weight, up to this number of leaves.
    min_samples_split : int or float, default=2
        Rows a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows each child needs when nobody attacks; a float is a share of all rows.
    min_split_gain : float, default=0.0
        A split is made only if its robust gain is larger than this.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features drawn for each split; a float is a share; None means all.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    monotonic_cst : array-like of int, dict or None, default=None
        For two classes: 1 or -1 where the share of the second class must not fall or rise along a
        feature; 0 elsewhere. By position, or a dict by feature name.
    random_state : int, RandomState instance or None, default=None
        For the draw of features.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores. The tree does not depend on it.

    Attributes
    ----------
    trees_ : Trees
        The fitted tree as a model.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_classes_ : int
        Their number.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Robust gain that each feature brought, weighted by rows, adding up to 1.

    Notes
    -----
    A row goes left when ``x < threshold``, x and threshold being float32. For a threshold t and a
    closed ball of radius eps, the ambiguity set is ``t - eps <= x < t + eps``. Rows are routed by
    their own values; attacks only judge splits. A missing value has its own, learned side.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = hw.RobustDecisionTreeClassifier(eps=0.05, max_depth=4).fit(X, y)
    >>> hw.certify(model, X, y, hw.Threat(eps=0.05)).certified_accuracy > 0.7
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "eps": "no_validation",
        "threat": "no_validation",
        "criterion": [StrOptions({"entropy", "gini"})],
        "inner": [StrOptions({"exact", "paper"})],
        "candidates": [StrOptions({"midpoints", "intervals"})],
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
        "min_split_gain": [Interval(Real, 0, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        eps: Any = 0.1,
        threat: Any = None,
        criterion: str = "entropy",
        inner: str = "exact",
        candidates: str = "midpoints",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_split_gain: float = 0.0,
        max_features: int | float | str | None = None,
        class_weight: Any = None,
        monotonic_cst: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.eps = eps
        self.threat = threat
        self.criterion = criterion
        self.inner = inner
        self.candidates = candidates
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_split_gain = min_split_gain
        self.max_features = max_features
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights >= 0; a row of weight 0 is left out.

        Returns
        -------
        RobustDecisionTreeClassifier
            The fitted estimator itself.
        """
        with self._whole_fit():
            self._validate_params()
            data = self._check_class_data(X, y, sample_weight, self.class_weight)
            self._check_inner(data)
            reach = self._reach(data.X.shape[1], data.feature_names)
            monotonic = self._monotonic(self.monotonic_cst, data.X.shape[1], data.feature_names)
            if monotonic.any() and len(data.classes) > 2:
                raise ValueError(
                    f"monotonic_cst needs two classes, y has {len(data.classes)}; drop it, or "
                    f"train one tree per class."
                )
            trees, n_samples = train_tree(
                data.X,
                data.label,
                data.classes,
                data.weight,
                reach,
                monotonic,
                self._rules(data),
                data.feature_names,
            )
            warn_if_constant(trees, reach, stacklevel=2)
            self.classes_ = data.classes
            self.n_classes_ = len(data.classes)
            self.trees_ = trees
            self._n_samples_of_node = n_samples
        return self

    def _check_inner(self, data: ClassData) -> None:
        if self.inner != "paper":
            return
        if len(data.classes) > 2:
            raise ValueError(
                f'inner="paper" is defined for two classes, y has {len(data.classes)}; '
                f'use inner="exact".'
            )
        if data.weight is not None and not np.all(data.weight == 1):
            raise ValueError(
                'inner="paper" counts rows and knows no weights; drop sample_weight and '
                'class_weight, or use inner="exact".'
            )

    def _rules(self, data: ClassData) -> ClassTreeRules:
        n_rows, n_features = data.X.shape
        return ClassTreeRules(
            impurity=self.criterion,  # type: ignore[arg-type]
            inner=self.inner,  # type: ignore[arg-type]
            candidates=self.candidates,  # type: ignore[arg-type]
            min_split_gain=float(self.min_split_gain),
            min_samples_leaf=count_of(self.min_samples_leaf, n_rows),
            min_samples_split=max(2, count_of(self.min_samples_split, n_rows)),
            max_depth=-1 if self.max_depth is None else int(self.max_depth),
            max_leaf_nodes=0 if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            max_features=features_tried(self.max_features, n_features),
            seed=self._seed(),
            n_threads=thread_count(self.n_jobs),
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities: the shares of the classes in each row's leaf.

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
        shares: FloatArray = margin / margin.sum(axis=1, keepdims=True)
        return shares

    def decision_function(self, X: Any) -> FloatArray:
        """Give the margin: the share of each class; for two classes the difference.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: share of the second minus share of the first.
        """
        margin = self._margin(X)
        return margin[:, 1] - margin[:, 0] if self.n_classes_ == 2 else margin

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict labels: the largest share in each row's leaf, the first class on ties.

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

    def apply(self, X: Any) -> npt.NDArray[np.int32]:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,)
            Nodes of ``trees_``.
        """
        return self.trees_.apply(self._rows(X), n_jobs=self.n_jobs)[:, 0]

    def decision_path(self, X: Any) -> csr_matrix:
        """Mark the nodes that each row visits.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        csr_matrix of shape (n_samples, n_nodes)
            1 where a row passes through a node.
        """
        leaf = self.apply(X)
        above = _nodes_above(self.trees_.left, self.trees_.right)
        paths = [above[node] for node in leaf]
        indptr = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
        indices = np.concatenate(paths)
        shape = (len(leaf), self.trees_.n_nodes)
        return csr_matrix((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=shape)

    def get_depth(self) -> int:
        """Give the depth of the tree: splits on its longest path."""
        check_is_fitted(self, "trees_")
        return max(len(path) for path in _nodes_above(self.trees_.left, self.trees_.right)) - 1

    def get_n_leaves(self) -> int:
        """Give the number of leaves."""
        check_is_fitted(self, "trees_")
        return self.trees_.n_leaves

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

    def export_text(self, *, decimals: int = 2, show_weights: bool = False) -> str:
        """Write the tree as text.

        Parameters
        ----------
        decimals : int, default=2
            Digits of thresholds and shares.
        show_weights : bool, default=False
            Whether leaves show the shares of all classes.

        Returns
        -------
        str
            One line per node, in the layout of scikit-learn's ``export_text``, with ``<`` on the
            left.
        """
        check_is_fitted(self, "trees_")
        return tree_text(self.trees_, 0, decimals=decimals, show_weights=show_weights)

    def plot_tree(self, *, ax: Any = None, max_depth: int | None = None, precision: int = 2) -> Any:
        """Draw the tree with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means the current axes.
        max_depth : int or None, default=None
            Deepest level shown.
        precision : int, default=2
            Digits of thresholds and shares.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        from hardwood.report.plots import plot_tree

        check_is_fitted(self, "trees_")
        return plot_tree(self.trees_, ax=ax, max_depth=max_depth, precision=precision)


def _nodes_above(
    left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]
) -> list[npt.NDArray[np.int64]]:
    """The path from the root to each node, the node included; nodes are in pre-order."""
    paths = [np.zeros(1, dtype=np.int64)] + [np.empty(0, dtype=np.int64)] * (len(left) - 1)
    for node in range(len(left)):
        for child in (left[node], right[node]):
            if child > 0:
                paths[child] = np.append(paths[node], child)
    return paths
