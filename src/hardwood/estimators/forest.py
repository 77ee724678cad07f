"""The robust random forest for scikit-learn users."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from hardwood._check import IntArray, thread_count, weights
from hardwood.ensemble.boosting import Model, has_split
from hardwood.ensemble.forest import Draw, train_newton_forest, train_share_forest
from hardwood.ensemble.loss import BinaryLogistic, Loss, Softmax
from hardwood.estimators._base import (
    ClassData,
    attacker,
    count_of,
    features_tried,
    warn_if_constant,
)
from hardwood.estimators._class_trees import ClassTreeEstimator
from hardwood.grow.grow import ClassTreeRules
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.model.trees import Trees
from hardwood.threat import Reach


class RobustRandomForestClassifier(ClassTreeEstimator):
    """A forest of robust trees, each grown on its own draw of rows and features.

    The paper's forest draws half of the rows and half of the features:
    ``RobustRandomForestClassifier(max_samples=0.5, max_features=0.5, bootstrap=False)``.

    Parameters
    ----------
    eps : float, sequence or mapping, default=0.1
        How far the adversary can move a value, in the units of X: every form that `Threat` takes.
        ``eps=0`` is the ordinary, natural forest.
    threat : Threat or None, default=None
        The whole threat, in place of `eps`: valid range, fixed features, one-sided moves.
    n_estimators : int, default=100
        Number of trees; with ``criterion="newton"`` and more than two classes, trees per class.
    criterion : {"entropy", "gini", "newton"}, default="entropy"
        Information gain or Gini impurity of class shares, as in `RobustDecisionTreeClassifier`; or
        one Newton step on the log loss, as XGBoost grows forests, with the robust gain of
        `RobustGradientBoostingClassifier`.
    inner : {"exact", "paper"}, default="exact"
        How the adversary's best reply to a split is found: exactly, or as the paper has it.
    candidates : {"midpoints", "intervals"}, default="midpoints"
        Thresholds that ``method="exact"`` tries.
    method : {"auto", "hist", "exact"}, default="auto"
        How entropy and gini find splits, as in `RobustDecisionTreeClassifier`: ``"exact"`` tries
        every threshold, ``"hist"`` the edges of `max_bins` bins, which all trees share and which
        are many times faster on large tables. ``"auto"`` means ``"hist"`` from 5,000 rows
        or 100,000 values on. newton always tries the edges of bins.
    max_depth : int or None, default=None
        Largest depth.
    max_leaf_nodes : int or None, default=None
        Grow best-first up to this number of leaves.
    min_samples_split : int or float, default=2
        Rows a node needs to be split; a float is a share of the rows drawn. Not used by newton.
    min_samples_leaf : int or float, default=1
        Rows each child needs when nobody attacks; a float is a share of the rows drawn.
    min_weight_fraction_leaf : float, default=0.0
        Share of the weight of all drawn rows that each child needs. Not used by newton.
    min_split_gain : float, default=0.0
        A split is made only if its robust gain is larger than this.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Features drawn for each split; a float is a share; None means all.
    max_samples : int, float or None, default=None
        Rows drawn for each tree; a float is a share; None means as many as there are.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to score every row by the trees that did not see it, by accuracy or by
        ``oob_score(y, y_pred)``.
    reg_lambda, reg_alpha : float, default=1.0 and 0.0
        L2 and L1 penalty on the values of newton's leaves.
    min_child_weight : float, default=1.0
        Sum of hessians each child of newton needs, whatever the adversary does.
    max_bins : int, default=256
        Bins per feature of histograms, 2 to 256.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    monotonic_cst : array-like of int, dict or None, default=None
        For two classes: 1 or -1 where the forest's margin of the second class must not fall or rise
        along a feature; 0 elsewhere. By position, or a dict by feature name.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        Columns that hold categories, by name, position or mask. ``"auto"``: the categorical, string
        and boolean columns of a data frame. Splits part their categories into two sets; up to 255
        of them, the rarer ones together. In an array they are numbered from 0 on. Missing values
        and categories that training did not see have their side, too.
    warm_start : bool, default=False
        Let `fit` keep the trees that are there and grow as many more as `n_estimators` asks for.
        With a whole number as `random_state` and the same rows, the forest is the one that a single
        fit grows. Not for newton, whose trees are shrunk by their number.
    random_state : int, RandomState instance or None, default=None
        For the draws of rows and features.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores. The forest does not depend on it.

    Attributes
    ----------
    trees_ : Trees
        The fitted forest as a model.
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
    oob_score_ : float
        Score of the rows by the trees that did not see them, if `oob_score`.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities by those trees; NaN for a row that every tree saw.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> forest = hw.RobustRandomForestClassifier(
    ...     eps=0.05, n_estimators=20, max_samples=0.5, max_features=0.5, bootstrap=False,
    ...     max_depth=5, random_state=0)
    >>> forest.fit(X, y).score(X, y) > 0.9
    True
    """

    _shares_bins = True
    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **ClassTreeEstimator._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"entropy", "gini", "newton"})],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
        "bootstrap": ["boolean"],
        "warm_start": ["boolean"],
        "oob_score": ["boolean", callable],
        "reg_lambda": [Interval(Real, 0, None, closed="left")],
        "reg_alpha": [Interval(Real, 0, None, closed="left")],
        "min_child_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        eps: Any = 0.1,
        threat: Any = None,
        n_estimators: int = 100,
        criterion: str = "entropy",
        inner: str = "exact",
        candidates: str = "midpoints",
        method: str = "auto",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_split_gain: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        max_samples: int | float | None = None,
        bootstrap: bool = True,
        oob_score: Any = False,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        min_child_weight: float = 1.0,
        max_bins: int = 256,
        class_weight: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.eps = eps
        self.threat = threat
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.inner = inner
        self.candidates = candidates
        self.method = method
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_split_gain = min_split_gain
        self.max_features = max_features
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_child_weight = min_child_weight
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the forest.

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
        RobustRandomForestClassifier
            The fitted estimator itself.
        """
        with self._whole_fit():
            self._validate_params()
            data = self._check_class_data(
                X, y, sample_weight, self.class_weight, dtype=(np.float64, np.float32)
            )
            draw = self._draw(len(data.X))
            reach = self._reach(data.columns)
            monotonic = self._checked_monotonic(data)
            before = self._trees_to_continue(data)
            seeds = self._tree_seeds()
            train = self._newton if self.criterion == "newton" else self._shares
            trees = train(data, reach, monotonic, draw, seeds, before)
            self.classes_ = data.classes
            self.n_classes_ = len(data.classes)
            self.trees_ = trees
            self._seeds = seeds
            if self.oob_score:
                self._score_out_of_bag(data, draw, seeds)
        return self

    def _tree_seeds(self) -> list[int]:
        random = check_random_state(self.random_state)
        seeds = [int(n) for n in random.randint(np.iinfo(np.int32).max, size=self.n_estimators)]
        if self._continues():
            seeds[: len(self._seeds)] = self._seeds  # of the trees that are there
        return seeds

    def _continues(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "trees_")

    def _trees_to_continue(self, data: ClassData) -> Trees | None:
        """The trees that warm_start keeps, if the rows and parameters allow for it."""
        if not self._continues():
            return None
        before = self.trees_
        if self.criterion == "newton" or before.link != "share":
            raise ValueError(
                'warm_start adds trees of criterion="entropy" and "gini" to each other; those of '
                '"newton" are shrunk by their number. Use warm_start=False.'
            )
        if self.n_estimators < before.n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger than or equal to the "
                f"{before.n_trees} trees of the forest that warm_start continues."
            )
        if not np.array_equal(self.classes_, data.classes):
            raise ValueError(
                f"warm_start continues a forest of the classes {self.classes_.tolist()}, but y "
                f"has {data.classes.tolist()}; fit with warm_start=False first."
            )
        return before

    def _draw(self, n_rows: int) -> Draw:
        n_drawn = n_rows if self.max_samples is None else count_of(self.max_samples, n_rows)
        if n_drawn > n_rows:
            raise ValueError(
                f"max_samples must be at most the number of rows with weight, {n_rows}, got "
                f"max_samples={self.max_samples}."
            )
        if self.oob_score and not self.bootstrap and n_drawn == n_rows:
            raise ValueError(
                "oob_score needs rows that a tree did not see; use bootstrap=True or a max_samples "
                "below the number of rows."
            )
        return Draw(n_rows, n_drawn, self.bootstrap)

    def _shares(
        self,
        data: ClassData,
        reach: Reach,
        monotonic: npt.NDArray[np.int8],
        draw: Draw,
        seeds: list[int],
        before: Trees | None,
    ) -> Trees:
        self._check_inner(data)
        n_classes = len(data.classes)
        rules = self._rules(data, draw.n_drawn)
        trees = train_share_forest(
            self._class_table(data, reach),
            data.label,
            data.classes,
            data.weight,
            monotonic,
            rules,
            draw,
            seeds if before is None else seeds[before.n_trees :],
            {"n_features": data.X.shape[1], **data.columns.about},
            before,
        )

        def splits(other: Reach, others: ClassTreeRules) -> bool:
            stump = replace(others, inner="exact", max_depth=1)
            table = self._class_table(data, other)
            grown = table.grow_classes(data.label, n_classes, data.weight, monotonic, stump)
            return len(grown.feature) > 1

        warn_if_constant(trees, reach, rules, splits, stacklevel=3)
        return trees

    def _newton(
        self,
        data: ClassData,
        reach: Reach,
        monotonic: npt.NDArray[np.int8],
        draw: Draw,
        seeds: list[int],
        before: Trees | None,
    ) -> Trees:
        if self.method == "exact":
            raise ValueError(
                'criterion="newton" grows on histograms; use method="hist" or "auto", or another '
                "criterion."
            )
        n_features = data.X.shape[1]
        n_threads = thread_count(self.n_jobs)
        y = data.label.astype(np.float32)
        loss: Loss = BinaryLogistic() if len(data.classes) == 2 else Softmax(len(data.classes))
        about = {
            "link": loss.link,
            "classes": data.classes,
            **data.columns.about,
        }
        rules = self._newton_rules(n_features, draw)
        weight = weights(data.weight)
        base = loss.base(y, data.weight)

        def table(threat: Reach) -> HistTable:
            return HistTable(
                data.X,
                threat,
                weight=weight,
                max_bins=self.max_bins,
                n_threads=n_threads,
                categories=data.columns.codes,
                only=attacker(threat, data.classes),
            )

        trees = train_newton_forest(
            table(reach),
            y,
            weight,
            loss,
            Model(base, n_features, about),
            monotonic,
            rules,
            draw,
            seeds,
        )

        def splits(other: Reach, others: NewtonRules) -> bool:
            return has_split(table(other), loss, y, weight, base, monotonic, others)

        warn_if_constant(trees, reach, rules, splits, stacklevel=3)
        return trees

    def _newton_rules(self, n_features: int, draw: Draw) -> NewtonRules:
        return NewtonRules(
            inner=self.inner,  # type: ignore[arg-type]
            reg_lambda=float(self.reg_lambda),
            reg_alpha=float(self.reg_alpha),
            min_split_gain=float(self.min_split_gain),
            min_child_weight=float(self.min_child_weight),
            min_samples_leaf=count_of(self.min_samples_leaf, draw.n_drawn),
            max_depth=-1 if self.max_depth is None else int(self.max_depth),
            max_leaf_nodes=0 if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            max_features=features_tried(self.max_features, n_features),
            n_threads=thread_count(self.n_jobs),
        )

    def _score_out_of_bag(self, data: ClassData, draw: Draw, seeds: list[int]) -> None:
        """Let every row be judged by the trees that did not see it."""
        trees = self.trees_
        unseen = np.column_stack([draw.counts(seed) == 0 for seed in seeds])
        leaf = trees.apply(data.X, n_jobs=self.n_jobs)
        n_each = trees.n_trees // len(seeds)  # trees grown from one draw
        margin = np.zeros((len(data.X), trees.n_outputs))
        for k in range(trees.n_trees):
            value = trees.value[trees.tree_start[k] + leaf[:, k]] * unseen[:, [k // n_each]]
            margin[:, trees.tree_output[k] :][:, : value.shape[1]] += value
        n_judges = unseen.sum(axis=1)
        judged = n_judges > 0
        if trees.link != "share":  # a mean of Newton steps: over the judges, from the base
            margin[judged] *= len(seeds) / n_judges[judged, None]
            margin += trees.base
        probability = trees.means(margin[judged])
        if probability.shape[1] == 1:
            probability = np.hstack([1 - probability, probability])
        self.oob_decision_function_ = np.full((len(data.X), len(data.classes)), np.nan)
        self.oob_decision_function_[judged] = probability
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        predicted = data.classes[np.argmax(probability, axis=1)]
        self.oob_score_ = float(score(data.classes[data.label[judged]], predicted))

    def _n_parallel_trees(self) -> int:
        return self.n_estimators

    def apply(self, X: Any) -> IntArray:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Nodes, counted from the first node of their tree.
        """
        check_is_fitted(self, "trees_")
        return self.trees_.apply(self._rows(X), n_jobs=self.n_jobs)
