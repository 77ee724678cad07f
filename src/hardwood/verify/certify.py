"""Which rows stay right whatever the threat does."""

from typing import Any

import numpy as np

from hardwood.threat import Threat
from hardwood.verify import tree
from hardwood.verify.problem import Problem, refuse_ensembles
from hardwood.verify.result import Certificate


def certify(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> Certificate:
    """Prove for each row that no point of the threat changes its label, or show one that does.

    Parameters
    ----------
    model : object
        A single tree: anything that `load_model` reads.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    time_limit : float or None, default=None
        Seconds; single trees never need it.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores.

    Returns
    -------
    Certificate
        A ``status`` per row, with ``certified_accuracy <= truth <= attacked_accuracy``; for single
        trees both are the truth.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = hw.RobustDecisionTreeClassifier(eps=0.1, max_depth=5).fit(X, y)
    >>> certificate = hw.certify(model, X, y, hw.Threat(eps=0.1, low=0, high=1))
    >>> round(certificate.certified_accuracy, 3)
    0.775
    """
    if time_limit is not None and not time_limit > 0:
        raise ValueError(
            f"time_limit must be a number of seconds > 0, got time_limit={time_limit}."
        )
    if not isinstance(threat, Threat):
        threat = Threat(threat)
    problem = Problem.of(model, X, y, n_jobs)
    refuse_ensembles(problem.trees, "certify")
    reach = threat.reach(problem.trees.n_features, problem.trees.feature_names)
    distance, X_adv = tree.nearest(problem, threat.norm, reach)
    return Certificate(
        status=np.where(np.isfinite(distance), "broken", "certified"),
        reason=np.where(problem.misclassified(), "misclassified", ""),
        X_adv=X_adv,
        threat=threat,
    )
