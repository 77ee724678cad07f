"""Which rows stay right whatever the threat does."""

from typing import Any

import numpy as np

from hardwood.model.given import Given
from hardwood.threat import Threat, threat_of
from hardwood.threat.units import warn_of_units
from hardwood.verify import search
from hardwood.verify.asked import asked
from hardwood.verify.effort import Effort, Progress, warn_undecided
from hardwood.verify.problem import Problem
from hardwood.verify.result import Certificate


def certify(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
    threshold: float | None = None,
) -> Certificate:
    """Prove for each row that no point of the threat changes its label, or show one that does.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads: any number of trees, of any depth and origin.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    time_limit : float or None, default=None
        Seconds for each row; a row that is stopped is ``"unknown"``. Single trees never need it.
    total_time_limit : float or None, default=None
        Seconds for the whole call; rows whose turn never came are ``"unknown"``.
    n_jobs : int or None, default=None
        Number of threads, over rows; -1 means all cores. The answers do not depend on it.
    progress : callable, bool or None, default=None
        True shows a bar (of tqdm where it is installed, else lines of logging). A callable is
        called about 20 times a second with the number of rows that are done, how many of these are
        undecided, and the number of all rows.
    threshold : float or None, default=None
        For two classes: the probability from which on the model says the second one, between 0 and
        1; None means as the model itself decides.

    Returns
    -------
    Certificate
        A ``status`` per row, with ``certified_accuracy <= truth <= attacked_accuracy``; both are
        the truth where no row is left unknown. Ctrl-C ends the search early and returns what is
        proven so far.

    Warns
    -----
    UndecidedWarning
        If rows are left undecided.
    UnitWarning
        If the threat looks as if it were meant for columns in other units.

    Notes
    -----
    One decision a row, which is quicker than its distance: `minimal_distance` answers for every
    eps at once, `certified_accuracy` for a list of them.

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
    effort = Effort(time_limit, total_time_limit, progress)
    threat = threat_of(threat)
    problem = Problem.of(model, X, y, n_jobs, threshold=threshold)
    given = Given(X, problem.X, problem.trees)
    reach = problem.reach(threat)
    warn_of_units(threat, reach, problem.X, problem.trees.feature_names, model)
    ask = search.decide
    found = asked(problem, reach, lambda one, ball: ask(one, threat.norm, ball, effort))
    status = found.verdict()
    wrong = problem.misclassified() & (status == "broken")
    warn_undecided(status, effort)
    return Certificate(
        status=status,
        reason=np.where(wrong, "misclassified", found.reason),
        X_adv=given.back(found.X_adv, status == "broken"),
        threat=threat,
        y=problem.y,
        y_adv=problem.labels_of(found.X_adv, status == "broken"),
        classes=problem.classes,
        given=given,
    )
