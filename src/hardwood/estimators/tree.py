"""The robust decision tree for scikit-learn users."""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from hardwood.ensemble.tree import train_tree
from hardwood.errors import HardwoodWarning
from hardwood.estimators._base import ClassData
from hardwood.estimators._class_trees import ClassTreeEstimator
from hardwood.grow.grow import ClassTreeRules
from hardwood.model.text import tree_text
from hardwood.model.trees import Trees
from hardwood.threat import Reach


class RobustDecisionTreeClassifier(ClassTreeEstimator):
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
        between ends of balls in which the robust gain has its maxima: no threshold has a larger
        gain, and fewer are tried. (Limits on the children and `monotonic_cst` can rule such a
        maximum out; its neighbours are then not tried.)
    method : {"auto", "hist", "exact"}, default="auto"
        ``"exact"`` tries every threshold. ``"hist"`` tries the edges of `max_bins` bins per feature
        and is many times faster on large tables; a bin that the threat reaches in part counts as
        ambiguous, so no row is taken for safer than it is, and where a feature has at most
        `max_bins` values nothing is lost. ``"auto"`` means ``"hist"`` from 5,000 rows on, unless
        `inner` or `candidates` ask for what only ``"exact"`` does to the letter.
    max_bins : int, default=256
        Bins per feature of ``method="hist"``, 2 to 256.
    max_depth : int or None, default=None
        Largest depth; None means until leaves are pure or no split has a robust gain.
    max_leaf_nodes : int or None, default=None
        Grow best-first, by robust gain times weight, up to this number of leaves.
    min_samples_split : int or float, default=2
        Rows a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows each child needs when nobody attacks; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the weight of all rows that each child needs when nobody attacks.
    min_split_gain : float, default=0.0
        A split is made only if its robust gain is larger than this.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features drawn for each split; a float is a share; None means all.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    monotonic_cst : array-like of int, dict or None, default=None
        For two classes: 1 or -1 where the share of the second class must not fall or rise along a
        feature; 0 elsewhere. By position, or a dict by feature name.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        Columns that hold categories, by name, position or mask. ``"auto"``: the categorical, string
        and boolean columns of a data frame. Splits part their categories into two sets; up to 255
        of them, the rarer ones together. In an array they are numbered from 0 on. Missing values
        and categories that training did not see have their side, too.
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
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if all are strings.
    is_categorical_ : ndarray of bool, shape (n_features,)
        Which of them hold categories; ``trees_.category_names`` tells what these are called.
    feature_importances_ : ndarray of shape (n_features,)
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

    def __init__(
        self,
        *,
        eps: Any = 0.1,
        threat: Any = None,
        criterion: str = "entropy",
        inner: str = "exact",
        candidates: str = "midpoints",
        method: str = "auto",
        max_bins: int = 256,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_split_gain: float = 0.0,
        max_features: int | float | str | None = None,
        class_weight: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.eps = eps
        self.threat = threat
        self.criterion = criterion
        self.inner = inner
        self.candidates = candidates
        self.method = method
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_split_gain = min_split_gain
        self.max_features = max_features
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
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
            data = self._check_class_data(
                X, y, sample_weight, self.class_weight, dtype=(np.float64, np.float32)
            )
            self._check_inner(data)
            reach = self._reach(data.columns)
            monotonic = self._checked_monotonic(data)
            rules = self._rules(data, len(data.label))
            trees, n_samples = self._train(data, reach, monotonic, rules)
            if trees.n_nodes == 1:
                self._warn_if_the_threat_is_why(data, reach, monotonic, rules)
            self.classes_ = data.classes
            self.n_classes_ = len(data.classes)
            self.trees_ = trees
            self._n_samples_of_node = n_samples
        return self

    def _train(
        self,
        data: ClassData,
        reach: Reach,
        monotonic: npt.NDArray[np.int8],
        rules: ClassTreeRules,
    ) -> tuple[Trees, npt.NDArray[np.int64]]:
        return train_tree(
            self._class_table(data, reach),
            data.label,
            data.classes,
            data.weight,
            monotonic,
            rules,
            {"n_features": data.X.shape[1], **data.columns.about},
        )

    def _warn_if_the_threat_is_why(
        self,
        data: ClassData,
        reach: Reach,
        monotonic: npt.NDArray[np.int8],
        rules: ClassTreeRules,
    ) -> None:
        """Warn about a constant model, unless the natural tree would be constant too."""
        n_features = data.X.shape[1]
        nobody = reach.still()
        rules = replace(rules, inner="exact", max_depth=1)
        natural, _ = self._train(data, nobody, monotonic, rules)
        if natural.n_nodes == 1:
            return
        warnings.warn(
            f"No split survives the threat (largest step {reach.limits[:, :2].max():g}): for every "
            f"threshold of {n_features} features the adversary can move enough rows across to "
            f"leave no robust gain above min_split_gain={rules.min_split_gain:g}. The model is "
            f"constant; use a smaller eps, or scale the features so that eps fits their range.",
            HardwoodWarning,
            stacklevel=3,
        )

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
        rows = self._rows(X)
        return self.trees_.apply(rows, n_jobs=self.n_jobs)[:, 0]

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
            Where to draw; None means a new figure, which is the answer's ``figure``.
        max_depth : int or None, default=None
            Deepest level shown; what lies below is drawn as "...".
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
