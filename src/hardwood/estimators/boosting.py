"""Robust gradient boosting for scikit-learn users."""

from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from hardwood import _check
from hardwood._check import Float32Array, FloatArray
from hardwood.ensemble import loss as losses
from hardwood.ensemble.certified import OneVsRest
from hardwood.ensemble.loss import Loss
from hardwood.estimators._base import TargetData
from hardwood.estimators._boosting import BoostingEstimator
from hardwood.estimators._validation import accepted


class RobustGradientBoostingClassifier(ClassifierMixin, BoostingEstimator):
    """Gradient boosting whose splits are chosen for the worst the adversary can do to them.

    Algorithm 2 of the paper: every split of every tree maximises the gain that is left after the
    adversary has moved the rows of the ambiguity set. Two or more classes.

    Parameters
    ----------
    eps : float, sequence or mapping, default=0.1
        How far the adversary can move a value, in the units of X: every form that `Threat` takes.
        ``eps=0`` is ordinary, natural boosting.
    threat : Threat or None, default=None
        The whole threat, in place of `eps`: valid range, fixed features, one-sided moves.
    method : {"hist", "exact"}, default="hist"
        Where thresholds are tried: at the edges of up to `max_bins` bins per feature, or halfway
        between all neighbouring values (for small data).
    inner : {"certified", "exact", "paper"}, default="certified"
        How training answers the adversary. ``"certified"``: every row is trained at the worst
        margin that the trees so far allow, and goes into all leaves that it can be pushed to; the
        most robust models. ``"exact"``: the exact worst case of each split by itself, for plain
        margins. ``"paper"``: the least of the paper's four cases, to the letter.
    robustness : float, default=1.0
        The dial between clean and robust accuracy of ``inner="certified"``: the share of the loss
        that is taken at the worst margins; the rest is taken at the plain ones. 0 is natural
        boosting.
    loss : {"log_loss"} or callable, default="log_loss"
        Log loss: of the logistic margin for two classes, of softmax for more.
        A callable gets the labels (positions in ``classes_``) and the margin, and returns a pair
        (gradient, hessian) of the shape of the margin; the hessian must be positive.
    n_estimators : int, default=100
        Number of rounds; each adds one tree, with more than two classes one per class.
    learning_rate : float, default=0.1
        Factor on the values of the leaves.
    max_depth : int or None, default=6
        Largest depth; None means no limit.
    max_leaf_nodes : int or None, default=None
        Grow best-first, by robust gain, up to this number of leaves.
    max_bins : int, default=256
        Bins per feature of ``method="hist"``, 2 to 256.
    reg_lambda, reg_alpha : float, default=1.0 and 0.0
        L2 and L1 penalty on the values of the leaves.
    min_split_gain : float, default=0.0
        The paper's gamma: what a split must gain, robustly. Its gain has the factor 1/2, so
        XGBoost's gamma of 1 is 0.5 here.
    min_child_weight : float, default=1.0
        Sum of hessians that each child needs, whatever the adversary does.
    min_samples_leaf : int, default=1
        Rows each child needs when nobody attacks.
    subsample, colsample_bytree : float, default=1.0
        Shares of the rows and of the features that each round draws; of ``inner="certified"``
        and many classes each tree draws its own features.
    monotonic_cst : array-like of int, dict or None, default=None
        1 or -1 where the margin of the second of two classes must not fall or rise along a feature;
        0 elsewhere. By position, or a dict by feature name. It holds for every row, attacked or
        not.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        Columns that hold categories, by name, position or mask. ``"auto"``: the categorical, string
        and boolean columns of a data frame. Splits part their categories into two sets; up to 255
        of them, the rarer ones together. In an array they are numbered from 0 on. Missing values
        and categories that training did not see have their side, too.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    scale_pos_weight : float, default=1.0
        Weight of the second of two classes, as XGBoost calls it; in place of `class_weight`.
    early_stopping : bool, default=False
        Stop when `n_iter_no_change` rounds brought nothing on validation data, and keep the model
        of the best round.
    n_iter_no_change : int, default=10
        Patience of early stopping.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping when `fit` gets no validation data.
    scoring : str, callable or None, default=None
        What early stopping looks at: any scikit-learn scorer; None means the loss, with
        ``inner="certified"`` the certified one.
    warm_start : bool, default=False
        Let `fit` continue where the last one ended, up to `n_estimators` rounds in all.
    base_score : float, array-like or None, default=None
        Prediction to start from: the probability of the second class; with more classes, their
        margins; None means the best constant.
    callbacks : sequence of callables or None, default=None
        Called after each round with a `BoostingRound`; boosting ends when one returns True.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores. The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        For the draws of rows and features, and of validation rows.
    verbose : bool or int, default=False
        Whether rounds are logged, by the logger ``"hardwood"``.

    Attributes
    ----------
    trees_ : Trees
        The fitted model.
    n_estimators_ : int
        Number of rounds kept: fewer than `n_estimators` after early stopping.
    evals_result_ : dict
        Loss and score of every round, by ``"train"`` and ``"validation"``, if there was validation
        data, a callback or `verbose`; otherwise empty. With ``inner="certified"`` also
        ``"certified_loss"`` and ``"certified_accuracy"``, the share of the rows that have a weight,
        which is never above that of `certify` on these rows.
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
        Robust gain that each feature brought, adding up to 1.

    Notes
    -----
    With `method="hist"` a bin that the threat reaches in part counts as ambiguous: no row is taken
    for sure that the adversary can move. With `inner="exact"` the gain of a split is then never
    overestimated; the least of the four cases does not have that property.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = hw.RobustGradientBoostingClassifier(eps=0.05, n_estimators=20).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    classes_: npt.NDArray[Any]
    n_classes_: int
    scale_pos_weight: float
    class_weight: Any

    _parameter_constraints = {  # noqa: RUF012
        **BoostingEstimator._parameter_constraints,
        "loss": [StrOptions({"log_loss"}), callable],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "scale_pos_weight": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        eps: Any = 0.1,
        threat: Any = None,
        method: str = "hist",
        inner: str = "certified",
        robustness: float = 1.0,
        loss: Any = "log_loss",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
        max_bins: int = 256,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        min_split_gain: float = 0.0,
        min_child_weight: float = 1.0,
        min_samples_leaf: int = 1,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "auto",
        class_weight: Any = None,
        scale_pos_weight: float = 1.0,
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        validation_fraction: float = 0.1,
        scoring: Any = None,
        warm_start: bool = False,
        base_score: Any = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.eps = eps
        self.threat = threat
        self.method = method
        self.inner = inner
        self.robustness = robustness
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_split_gain = min_split_gain
        self.min_child_weight = min_child_weight
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.scale_pos_weight = scale_pos_weight
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.warm_start = warm_start
        self.base_score = base_score
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        eval_set: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value, a zero that a sparse matrix leaves out is a zero.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights >= 0: a row of weight 2 counts as two rows, a row of weight 0 is left out.
            Weights that are below 1 on average are scaled to an average of 1.
        X_val, y_val : array-like or None, default=None
            Validation data, for `early_stopping` and ``evals_result_``.
        eval_set : list of (X, y) or None, default=None
            The same in XGBoost's form, and more of it: in ``evals_result_`` these are
            ``"validation_0"``, ``"validation_1"`` and so on; early stopping looks at the last.

        Returns
        -------
        RobustGradientBoostingClassifier
            The fitted estimator itself.
        """
        with self._whole_fit():
            self._validate_params()
            by_class = self._weight_of_classes(y)
            checked = self._check_class_data(X, y, sample_weight, by_class, **accepted(X))
            classes, label = checked.classes, checked.label
            if self._continues():
                classes = self.classes_
                label = _check.labels(checked.classes, classes, 0, len(checked.classes))[label]
            data = TargetData(checked.X, label.astype(np.float32), checked.weight, checked.columns)
            del checked, label  # four bytes a row that no tree needs
            if self.monotonic_cst is not None and len(classes) > 2:
                raise ValueError(
                    f"monotonic_cst needs two classes, y has {len(classes)}; drop it, or train one "
                    f"model per class."
                )
            self.classes_ = classes
            self.n_classes_ = len(classes)
            loss = self._loss(data, len(classes))
            data, held_out = self._held_out(data, loss, X_val, y_val, eval_set)
            self._boost(data, held_out, loss, classes=classes)
        return self

    def _weight_of_classes(self, y: Any) -> Any:
        if self.scale_pos_weight == 1:
            return self.class_weight
        if self.class_weight is not None:
            raise ValueError(
                f"scale_pos_weight={self.scale_pos_weight:g} and class_weight="
                f"{self.class_weight!r} both weigh the classes; use one of them."
            )
        classes = np.unique(np.asarray(y)).tolist()
        if len(classes) != 2:
            raise ValueError(
                f"scale_pos_weight={self.scale_pos_weight:g} weighs the second of two classes, but "
                f"y has {len(classes)}; use class_weight."
            )
        return {classes[0]: 1.0, classes[1]: float(self.scale_pos_weight)}

    def _as_numbers(self, y: Any, n_rows: int, loss: Loss) -> Float32Array:
        return _check.labels(y, self.classes_, 0, n_rows).astype(np.float32)

    def _strata(self, data: TargetData) -> Any:
        return data.y

    def _loss(self, data: TargetData, n_classes: int) -> Loss:
        if callable(self.loss):
            n_outputs = 1 if n_classes == 2 else n_classes
            return losses.Custom(self.loss, n_outputs, "logistic" if n_classes == 2 else "softmax")
        if n_classes == 2:
            return losses.BinaryLogistic()
        reach = self._training_reach(data.columns)
        return OneVsRest(n_classes) if self._certifies(reach) else losses.Softmax(n_classes)

    def _as_given(self, y: Float32Array) -> npt.NDArray[Any]:
        return self.classes_[y.astype(np.intp)]

    def decision_function(self, X: Any) -> FloatArray:
        """Give the margin: the sum of the trees, before it becomes a probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive means the second one.
        """
        return self._decision_of(self._margin(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return self._proba_of(self._margin(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict labels: the most probable class, the first one on ties.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return self._labels_of(self._margin(X))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Give the margin after every round.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Margins, as `decision_function` gives them.
        """
        yield from map(self._decision_of, self._staged_margin(X))

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Predict class probabilities after every round.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        yield from map(self._proba_of, self._staged_margin(X))

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """Predict labels after every round.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Yields
        ------
        ndarray of shape (n_samples,)
            Labels.
        """
        yield from map(self._labels_of, self._staged_margin(X))

    def _decision_of(self, margin: FloatArray) -> FloatArray:
        return margin[:, 0] if self.n_classes_ == 2 else margin

    def _proba_of(self, margin: FloatArray) -> FloatArray:
        probability = self.trees_.means(margin)
        if self.n_classes_ > 2:
            return probability
        return np.column_stack([1 - probability[:, 0], probability[:, 0]])

    def _labels_of(self, margin: FloatArray) -> npt.NDArray[Any]:
        labels: npt.NDArray[Any] = self.classes_[self.trees_.decide(margin)]
        return labels


class RobustGradientBoostingRegressor(RegressorMixin, BoostingEstimator):
    """Gradient boosting for numbers, robust to an adversary who moves the inputs.

    Algorithm 2 of the paper with any twice differentiable loss: every split of every tree maximises
    the gain that is left after the adversary has moved the rows of the ambiguity set.

    Parameters
    ----------
    eps : float, sequence or mapping, default=0.1
        How far the adversary can move a value, in the units of X: every form that `Threat` takes.
        ``eps=0`` is ordinary, natural boosting.
    threat : Threat or None, default=None
        The whole threat, in place of `eps`: valid range, fixed features, one-sided moves.
    method : {"hist", "exact"}, default="hist"
        Where thresholds are tried: at the edges of up to `max_bins` bins per feature, or halfway
        between all neighbouring values (for small data).
    inner : {"certified", "exact", "paper"}, default="certified"
        How training answers the adversary. ``"certified"``: every row is trained at the worst
        margin that the trees so far allow, and goes into all leaves that it can be pushed to; the
        most robust models. ``"exact"``: the exact worst case of each split by itself, for plain
        margins. ``"paper"``: the least of the paper's four cases, to the letter.
    robustness : float, default=1.0
        The dial between clean and robust accuracy of ``inner="certified"``: the share of the loss
        that is taken at the worst margins; the rest is taken at the plain ones. 0 is natural
        boosting.
    loss : {"squared_error", "huber", "poisson", "quantile"} or callable, default="squared_error"
        What is minimised. ``"huber"`` is the smooth form of the Huber loss; ``"poisson"`` is for
        counts and predicts their mean.
        A callable gets the labels (y) and the margin, and returns a pair (gradient, hessian)
        of the shape of the margin; the hessian must be positive.
    quantile : float, default=0.5
        The quantile that ``loss="quantile"`` predicts, between 0 and 1.
    huber_slope : float, default=1.0
        Error at which ``loss="huber"`` turns from quadratic to linear.
    n_estimators : int, default=100
        Number of rounds; each adds one tree.
    learning_rate : float, default=0.1
        Factor on the values of the leaves.
    max_depth : int or None, default=6
        Largest depth; None means no limit.
    max_leaf_nodes : int or None, default=None
        Grow best-first, by robust gain, up to this number of leaves.
    max_bins : int, default=256
        Bins per feature of ``method="hist"``, 2 to 256.
    reg_lambda, reg_alpha : float, default=1.0 and 0.0
        L2 and L1 penalty on the values of the leaves.
    min_split_gain : float, default=0.0
        The paper's gamma: what a split must gain, robustly. Its gain has the factor 1/2, so
        XGBoost's gamma of 1 is 0.5 here.
    min_child_weight : float, default=1.0
        Sum of hessians that each child needs, whatever the adversary does.
    min_samples_leaf : int, default=1
        Rows each child needs when nobody attacks.
    subsample, colsample_bytree : float, default=1.0
        Shares of the rows and of the features that each round draws.
    monotonic_cst : array-like of int, dict or None, default=None
        1 or -1 where the prediction must not fall or rise along a feature; 0 elsewhere. By
        position, or a dict by feature name. It holds for every row, attacked or not.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        Columns that hold categories, by name, position or mask. ``"auto"``: the categorical, string
        and boolean columns of a data frame. Splits part their categories into two sets; up to 255
        of them, the rarer ones together. In an array they are numbered from 0 on. Missing values
        and categories that training did not see have their side, too.
    early_stopping : bool, default=False
        Stop when `n_iter_no_change` rounds brought nothing on validation data, and keep the model
        of the best round.
    n_iter_no_change : int, default=10
        Patience of early stopping.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping when `fit` gets no validation data.
    scoring : str, callable or None, default=None
        What early stopping looks at: any scikit-learn scorer; None means the loss, with
        ``inner="certified"`` the certified one.
    warm_start : bool, default=False
        Let `fit` continue where the last one ended, up to `n_estimators` rounds in all.
    base_score : float, array-like or None, default=None
        Prediction to start from, in the units of y; None means the best constant.
    callbacks : sequence of callables or None, default=None
        Called after each round with a `BoostingRound`; boosting ends when one returns True.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores. The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        For the draws of rows and features, and of validation rows.
    verbose : bool or int, default=False
        Whether rounds are logged, by the logger ``"hardwood"``.

    Attributes
    ----------
    trees_ : Trees
        The fitted model.
    n_estimators_ : int
        Number of rounds kept: fewer than `n_estimators` after early stopping.
    evals_result_ : dict
        Loss and score of every round, by ``"train"`` and ``"validation"``, if there was validation
        data, a callback or `verbose`; otherwise empty. With ``inner="certified"`` also the mean
        loss at the worst margins, ``"certified_loss"``.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if all are strings.
    is_categorical_ : ndarray of bool, shape (n_features,)
        Which of them hold categories; ``trees_.category_names`` tells what these are called.
    feature_importances_ : ndarray of shape (n_features,)
        Robust gain that each feature brought, adding up to 1.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = hw.RobustGradientBoostingRegressor(eps=0.001, n_estimators=20).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        **BoostingEstimator._parameter_constraints,
        "loss": [StrOptions({"squared_error", "huber", "poisson", "quantile"}), callable],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "huber_slope": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        eps: Any = 0.1,
        threat: Any = None,
        method: str = "hist",
        inner: str = "certified",
        robustness: float = 1.0,
        loss: Any = "squared_error",
        quantile: float = 0.5,
        huber_slope: float = 1.0,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
        max_bins: int = 256,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        min_split_gain: float = 0.0,
        min_child_weight: float = 1.0,
        min_samples_leaf: int = 1,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "auto",
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        validation_fraction: float = 0.1,
        scoring: Any = None,
        warm_start: bool = False,
        base_score: Any = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.eps = eps
        self.threat = threat
        self.method = method
        self.inner = inner
        self.robustness = robustness
        self.loss = loss
        self.quantile = quantile
        self.huber_slope = huber_slope
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_split_gain = min_split_gain
        self.min_child_weight = min_child_weight
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.warm_start = warm_start
        self.base_score = base_score
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        eval_set: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value, a zero that a sparse matrix leaves out is a zero.
        y : array-like of shape (n_samples,)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights >= 0: a row of weight 2 counts as two rows, a row of weight 0 is left out.
            Weights that are below 1 on average are scaled to an average of 1.
        X_val, y_val : array-like or None, default=None
            Validation data, for `early_stopping` and ``evals_result_``.
        eval_set : list of (X, y) or None, default=None
            The same in XGBoost's form, and more of it: in ``evals_result_`` these are
            ``"validation_0"``, ``"validation_1"`` and so on; early stopping looks at the last.

        Returns
        -------
        RobustGradientBoostingRegressor
            The fitted estimator itself.
        """
        with self._whole_fit():
            self._validate_params()
            data = self._check_target_data(X, y, sample_weight, **accepted(X))
            loss = self._loss()
            data, held_out = self._held_out(data, loss, X_val, y_val, eval_set)
            self._boost(data, held_out, loss)
        return self

    def _as_numbers(self, y: Any, n_rows: int, loss: Loss) -> Float32Array:
        numbers = _check.targets(y)
        if numbers.shape != (n_rows,):
            raise ValueError(f"y has shape {numbers.shape} but X has {n_rows} rows.")
        loss.check(numbers)
        return numbers

    def _loss(self) -> Loss:
        if callable(self.loss):
            return losses.Custom(self.loss, 1, "identity")
        if self.loss == "huber":
            return losses.Huber(self.huber_slope)
        if self.loss == "quantile":
            return losses.Quantile(self.quantile)
        return losses.Poisson() if self.loss == "poisson" else losses.SquaredError()

    def predict(self, X: Any) -> FloatArray:
        """Predict numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions: the margin, for counts its exponential.
        """
        return self._mean_of(self._margin(X))

    def staged_predict(self, X: Any) -> Iterator[FloatArray]:
        """Predict numbers after every round.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN is a missing value.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predictions.
        """
        yield from map(self._mean_of, self._staged_margin(X))

    def _mean_of(self, margin: FloatArray) -> FloatArray:
        return self.trees_.means(margin)[:, 0]
