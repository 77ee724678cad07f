"""Certified figures as scikit-learn's scorers: for searches, cross-validation, early stopping."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.threat import Threat, threat_of
from hardwood.verify.certify import certify

METRICS = ("accuracy", "balanced_accuracy", "recall", "specificity", "precision", "f1")


@dataclass(frozen=True)
class CertifiedScorer:
    """A scorer; see `make_certified_scorer`.

    Attributes
    ----------
    threat : Threat
        What is certified against.
    metric : str
        The figure.
    threshold : float or None
        The decision threshold; None is the model's own.
    options : dict
        What `certify` is told beside.
    """

    threat: Threat
    metric: str
    threshold: float | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Give the figure of a fitted model: larger is better.

        Parameters
        ----------
        estimator : object
            Anything that `load_model` reads.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            Never above the truth.
        """
        options = dict(self.options)
        if self.threshold is not None:
            options["threshold"] = self.threshold
        certificate = certify(estimator, X, y, self.threat, **options)
        safe: BoolArray = certificate.status == "certified"
        label = np.asarray(y)
        n = len(label)
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if self.metric == "accuracy":
            return float(np.average(safe, weights=weight))
        classes = np.unique(label)
        recall = [_share(safe, label == c, weight) for c in classes]
        if self.metric == "balanced_accuracy":
            return float(np.mean(recall))
        if len(classes) != 2:
            raise ValueError(
                f'metric="{self.metric}" is about the second of two classes, but y has '
                f'{len(classes)}; use "accuracy" or "balanced_accuracy".'
            )
        positive = label == classes[1]
        caught = float(weight[safe & positive].sum())
        # What is not proven right may be pushed to the other class: the worst for precision.
        alarms = caught + float(weight[~safe & ~positive].sum())
        precision = caught / alarms if alarms else 0.0
        figures = {
            "recall": recall[1],
            "specificity": recall[0],
            "precision": precision,
            "f1": 2 * precision * recall[1] / (precision + recall[1]) if caught else 0.0,
        }
        return figures[self.metric]


def _share(safe: BoolArray, inside: BoolArray, weight: FloatArray) -> float:
    return float(weight[safe & inside].sum() / weight[inside].sum())


def make_certified_scorer(
    threat: Threat | float,
    metric: str = "accuracy",
    threshold: float | None = None,
    *,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = 1,
) -> CertifiedScorer:
    """Make a scorer that looks at what is proven under a threat.

    Parameters
    ----------
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    metric : {"accuracy", "balanced_accuracy", "recall", "specificity", "precision", "f1"}
        The figure, each row counting as right only if it is certified. ``"recall"``,
        ``"precision"`` and ``"f1"`` are those of the second of two classes, ``"specificity"`` is
        the recall of the first.
    threshold : float or None, default=None
        Probability from which on the second class is said; None is the model's own rule.
    time_limit, total_time_limit : float or None, default=None
        Seconds for each row and for each call, as in `certify`; what is not decided by then does
        not count as certified.
    n_jobs : int or None, default=1
        Threads of each call; searches run several calls at once.

    Returns
    -------
    CertifiedScorer
        For ``scoring=`` of `GridSearchCV`, `cross_val_score` and of early stopping. It looks
        through pipelines and wrappers as `load_model` does. The figure is never above the truth.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> search = GridSearchCV(
    ...     hw.RobustDecisionTreeClassifier(max_depth=3), {"eps": [0, 0.1]}, cv=3,
    ...     scoring=hw.make_certified_scorer(0.1))
    >>> search.fit(X, y).best_params_
    {'eps': 0.1}
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {METRICS}, got metric={metric!r}.")
    threat = threat_of(threat)
    options: dict[str, Any] = {"n_jobs": n_jobs}
    if time_limit is not None:
        options["time_limit"] = time_limit
    if total_time_limit is not None:
        options["total_time_limit"] = total_time_limit
    return CertifiedScorer(threat, metric, threshold, options)
