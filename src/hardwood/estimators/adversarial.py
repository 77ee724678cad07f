"""The baseline defence: train on what fools the model, again and again."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hardwood import _check
from hardwood.attack.find import Method, find_adversarial
from hardwood.estimators._base import count_of
from hardwood.estimators.boosting import RobustGradientBoostingClassifier
from hardwood.model.load import load_model
from hardwood.model.trees import Trees
from hardwood.threat import Threat


def _has(method: str) -> Any:
    """Whether the wrapped estimator has a method."""

    def check(self: "AdversarialBoostingClassifier") -> bool:
        model = getattr(self, "estimator_", None)
        return hasattr(self._base() if model is None else model, method)

    return check


class AdversarialBoostingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Adversarial training: each round adds the evasions of the current model.

    The baseline of Kantchelian et al. (2016): train, attack the training rows, add the examples
    with their true labels, train again. It answers the attack it was trained with; robust training
    (`RobustGradientBoostingClassifier`) answers all of them.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What to train: any classifier that `load_model` reads. None is gradient boosting without a
        threat.
    n_rounds : int, default=5
        How often examples are added; 0 is the estimator itself.
    max_samples : int, float or None, default=None
        Rows of the training set that are attacked in each round, drawn anew: a number, a share, or
        None for all.
    method : str, default="symbolic"
        The attack, one of `find_adversarial`'s.
    norm : {"inf", 1, 2, 0}, default=0
        How the attack measures a change.
    threat : Threat or None, default=None
        What the attack may do; its norm must be `norm`.
    n_jobs : int or None, default=None
        Number of threads of the attack; -1 means all cores.
    random_state : int, RandomState or None, default=None
        Seed of the rows that are drawn.

    Attributes
    ----------
    estimator_ : classifier
        The model of the last round.
    trees_ : Trees
        The same, as trees.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_evasions_ : list of int
        Examples that each round added.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> base = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=30, max_depth=4)
    >>> for n_rounds in (0, 3):
    ...     model = hw.AdversarialBoostingClassifier(
    ...         base, n_rounds=n_rounds, max_samples=0.2, random_state=0
    ...     ).fit(X[:400], y[:400])
    ...     changed = hw.find_adversarial(model, X[400:], y[400:], norm=0).mean_distance
    ...     moved = hw.find_adversarial(model, X[400:], y[400:], norm="inf").mean_distance
    ...     print(round(changed, 2), round(moved, 3))
    2.11 0.1
    2.55 0.094
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_rounds: int = 5,
        max_samples: float | None = None,
        method: Method = "symbolic",
        norm: Any = 0,
        threat: Threat | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_rounds = n_rounds
        self.max_samples = max_samples
        self.method = method
        self.norm = norm
        self.threat = threat
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _base(self) -> Any:
        return RobustGradientBoostingClassifier(eps=0) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any) -> "AdversarialBoostingClassifier":
        """Train, and train again with what fools the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        AdversarialBoostingClassifier
            The fitted estimator.
        """
        if self.n_rounds < 0:
            raise ValueError(f"n_rounds must be a number >= 0, got n_rounds={self.n_rounds}.")
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        _check.finite_float32(X)
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}; a classifier needs rows of two or "
                f"more classes."
            )
        rng = check_random_state(self.random_state)
        model = clone(self._base()).fit(X, y)
        all_X, all_y, n_evasions = X, y, []
        for _ in range(self.n_rounds):
            rows = np.arange(len(X))
            if self.max_samples is not None:
                n_rows = min(count_of(self.max_samples, len(X)), len(X))
                rows = rng.choice(len(X), n_rows, replace=False)
            found = find_adversarial(
                model,
                X[rows],
                y[rows],
                method=self.method,
                norm=self.norm,
                threat=self.threat,
                n_jobs=self.n_jobs,
                random_state=int(rng.randint(np.iinfo(np.int32).max)),
            )
            n_evasions.append(int(found.success.sum()))
            if n_evasions[-1] == 0:
                break
            all_X = np.concatenate([all_X, found.X_adv[found.success]])
            all_y = np.concatenate([all_y, y[rows][found.success]])
            model = clone(self._base()).fit(all_X, all_y)
        self.estimator_ = model
        self.classes_ = classes
        self.n_evasions_ = n_evasions
        return self

    @property
    def trees_(self) -> Trees:
        """The model as trees."""
        check_is_fitted(self, "estimator_")
        return load_model(self.estimator_)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict(rows))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Predict probabilities, as the wrapped estimator does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> npt.NDArray[Any]:
        """Give the margin, as the wrapped estimator does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Margins.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.decision_function(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = self._base().__sklearn_tags__()
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.classifier_tags.multi_class = base.classifier_tags.multi_class
        return tags
