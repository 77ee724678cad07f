"""How far each row is from being fooled."""

from typing import Any

import numpy as np

from hardwood.threat import Threat, as_threat, check_norm
from hardwood.verify import tree
from hardwood.verify.problem import Problem, refuse_ensembles
from hardwood.verify.result import DistanceResult


def minimal_distance(
    model: Any,
    X: Any,
    y: Any,
    *,
    norm: Any = "inf",
    threat: Threat | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> DistanceResult:
    """Find the smallest change of each row that fools the model.

    Parameters
    ----------
    model : object
        A single tree: anything that `load_model` reads.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels; a row is fooled when its label differs from this one.
    norm : {"inf", 1, 2, 0}, default="inf"
        How a change is measured.
    threat : Threat or None, default=None
        What the adversary may do: directions, valid range, fixed features. The size of its ``eps``
        does not limit the search, but where ``eps`` differs between features, a step is measured
        relative to it: with half of the largest eps it counts twice. Its norm must be `norm`.
    time_limit : float or None, default=None
        Seconds; single trees never need it.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores.

    Returns
    -------
    DistanceResult
        ``lower`` and ``upper`` bounds, equal for single trees, and the examples. An example in
        the maximum norm sits on the float where the model's label changes: ``certify`` with
        ``eps=upper`` breaks the row.

    Notes
    -----
    The leaf boxes of a tree are disjoint and cover the space, so the smallest distance to a box of
    another label is the answer; it costs one pass over the leaves a row.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> natural = hw.RobustDecisionTreeClassifier(eps=0, max_depth=5).fit(X, y)
    >>> robust = hw.RobustDecisionTreeClassifier(eps=0.1, max_depth=5).fit(X, y)
    >>> for model in (natural, robust):
    ...     print(round(float(hw.minimal_distance(model, X, y).upper.mean()), 3))
    0.07
    0.189
    """
    norm = check_norm(norm)
    if time_limit is not None and not time_limit > 0:
        raise ValueError(
            f"time_limit must be a number of seconds > 0, got time_limit={time_limit}."
        )
    threat = as_threat(1, threat, norm)
    if threat.norm != norm:
        raise ValueError(
            f"threat has norm={threat.norm!r} but norm={norm!r} was asked for; make them equal."
        )
    problem = Problem.of(model, X, y, n_jobs)
    refuse_ensembles(problem.trees, "minimal_distance")
    reach = threat.reach(problem.trees.n_features, problem.trees.feature_names)
    distance, X_adv = tree.nearest(problem, norm, reach.without_radius())
    wrong = problem.misclassified()
    return DistanceResult(
        lower=distance,
        upper=distance.copy(),
        status=np.where(wrong, "misclassified", "exact"),
        reason=np.where(wrong, "the model gets this row wrong without an attack", ""),
        X_adv=X_adv,
        norm=norm,
    )
