"""How far each row is from being fooled."""

from typing import Any, Literal

import numpy as np

from hardwood._check import BoolArray
from hardwood.model.given import Given
from hardwood.threat import Norm, Reach, Threat, as_threat, check_norm
from hardwood.threat.units import warn_of_units
from hardwood.verify import ensemble, milp, search
from hardwood.verify.asked import asked, fold_outputs, in_multiples, unfold
from hardwood.verify.effort import Effort, Progress, warn_undecided
from hardwood.verify.found import Found
from hardwood.verify.problem import Outputs, Problem
from hardwood.verify.result import DistanceResult
from hardwood.verify.towards import towards


def minimal_distance(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    norm: Any = "inf",
    target: Any = None,
    threat: Threat | None = None,
    method: Literal["search", "milp"] = "search",
    change: float | None = None,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
    threshold: float | None = None,
) -> DistanceResult:
    """Find the smallest change of each row that fools the model.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads: any number of trees, of any depth and origin.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels; a row is fooled when its label differs from this one. With `change`: the value
        that the output is measured from, by default the model's own prediction for the row.
    norm : {"inf", 1, 2, 0}, default="inf"
        How a change is measured.
    target : label or None, default=None
        The label to reach: the smallest change to this one ("what would have to change for this
        loan to be approved"). Then `y` is not needed; it only says which rows attack where the
        threat says ``only``. Rows that have this label already are at distance 0.
    threat : Threat or None, default=None
        What the adversary may do: directions, valid range, fixed features. The size of its ``eps``
        does not limit the search. Where it differs between features, or categories can change,
        distances are multiples of the threat: 1 is the threat itself, at 2 every step may be twice
        as large. Its norm must be `norm`.
    method : {"search", "milp"}, default="search"
        "search" is exact and fast in all norms. "milp" asks HiGHS (`scipy.optimize.milp`) the same
        question: slow, exact up to the solver's tolerances of about 1e-6, and independent of us.
    change : float or None, default=None
        For regression models: a row is fooled when the prediction, in the units of the target, is
        more than this away from `y`.
    time_limit : float or None, default=None
        Seconds for each row. The problem is NP-complete for two or more trees, so some rows of
        some models take long; a row that is stopped keeps what is proven and found by then. Single
        trees never need it.
    total_time_limit : float or None, default=None
        Seconds for the whole call; rows whose turn never came have ``lower=0``.
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
    DistanceResult
        ``lower`` and ``upper`` bounds, equal where the status is ``"exact"``, and the examples. An
        example in the maximum norm sits on the float where the model's label changes: ``certify``
        with ``eps=upper`` breaks the row, and does not with an eps that is smaller by more than
        two spacings of the doubles near ``|x| + upper``, to which the ends of the ball are rounded.
        Ctrl-C ends the search early and returns what is proven so far.

    Warns
    -----
    UndecidedWarning
        If rows are left undecided.

    Notes
    -----
    One tree: its leaf boxes are disjoint and cover the space, so the smallest distance to a box of
    another label is the answer, at the cost of one pass over the leaves.

    More trees: a branch and bound over the thresholds around the row, bounded by message passing
    between trees that share a feature. The label that counts is the model's own, from sums in its
    own precision and order: an example is replayed in it before it counts, and where a proof would
    hang on less than the rounding of that sum, the sum itself settles it, or the row is
    ``"unknown"`` with that reason.

    The maximum norm is exact to the last bit. In the norms 1, 2 and 0 the budget for the change has
    a price, which the bound minimises over; lengths that differ by less than 1e-12 of themselves
    count as equal. The maximum norm is the quickest. Norms 1 and 2 have a hard tail where the ball
    covers much of a large robust model: set a time limit there. Memory is the messages of the
    model cut to the ball, times the depth of branching: tens of megabytes for thousands of trees.

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
    effort = Effort(time_limit, total_time_limit, progress)
    threat = as_threat(1, threat, norm)
    if threat.norm != norm:
        raise ValueError(
            f"threat has norm={threat.norm!r} but norm={norm!r} was asked for; make them equal."
        )
    if change is not None and threshold is not None:
        raise ValueError(
            f"change asks about the output of a regression, threshold={threshold} about a label; "
            f"leave one of them out."
        )
    if change is not None:
        return _distance_to_change(model, X, y, change, norm, threat, method, n_jobs, effort)
    if y is None and target is None:
        raise ValueError(
            "y is missing; pass the true labels, or target, or for a regression model change."
        )
    problem = Problem.of(model, X, y, n_jobs, target, threshold)
    given = Given(X, problem.X, problem.trees)
    reach = problem.reach(threat).without_radius(norm)
    warn_of_units(threat, reach, problem.X, problem.trees.feature_names, model)
    if method not in ("search", "milp"):
        raise ValueError(f'method must be "search" or "milp", got method={method!r}.')

    def answer(one: Problem, ball: Reach) -> Found:
        return search.nearest(one, norm, ball, effort)

    def solver(one: Problem, ball: Reach) -> Found:
        return milp.nearest(one, norm, ball, effort)

    if method == "milp":
        found = asked(problem, reach, solver)
    elif target is None:
        found = asked(problem, reach, answer)
    else:
        found = asked(problem, reach, lambda one, ball: towards(one, ball, answer, solver))
    found = in_multiples(found, reach)
    wrong = problem.misclassified() & np.isfinite(found.upper)
    if target is not None:
        found.reason[wrong] = "has this label already"
        wrong[:] = False
    why = "the model gets this row wrong without an attack"
    return _told(found, wrong, why, norm, given, effort)


def _distance_to_change(
    model: Any,
    X: Any,
    y: Any,
    change: float,
    norm: Norm,
    threat: Threat,
    method: str,
    n_jobs: int | None,
    effort: Effort,
) -> DistanceResult:
    if not 0 <= change < np.inf:
        raise ValueError(f"change must be a finite number >= 0, got change={change}.")
    if method != "search":
        raise ValueError(f'change needs method="search", got method={method!r}.')
    outputs = Outputs.of(model, X, n_jobs)
    trees = outputs.trees
    given = Given(X, outputs.X, trees)
    if trees.tells_labels and trees.link != "identity":
        raise ValueError(
            f"change asks about the output of a regression model, or of one with link='identity', "
            f"got link={trees.link!r}; for a classifier pass its labels as y."
        )
    output = outputs.seen(outputs.output(outputs.X))
    value = output if y is None else np.asarray(y, dtype=np.float64)
    if value.shape != output.shape or not np.isfinite(value).all():
        raise ValueError(
            f"y must hold one finite number for each of the {len(output)} rows, got shape "
            f"{value.shape}."
        )
    low, high = value - change, value + change
    reach = outputs.reach(threat).without_radius(norm)
    folded, ball = fold_outputs(outputs, reach)
    found = ensemble.leaving(folded, *outputs.margins_between(low, high), norm, ball, effort)
    unfold(found.X_adv, reach.groups)
    found = in_multiples(found, reach)
    off = (output < low) | (output > high)
    return _told(found, off, "the output is off by more than change already", norm, given, effort)


def _told(
    found: Found, wrong: BoolArray, why: str, norm: Norm, given: Given, effort: Effort
) -> DistanceResult:
    """The result of a search; rows that are `wrong` without an attack say why."""
    exact = np.where(found.lower == found.upper, "exact", "unknown")
    status = np.where(wrong, "misclassified", exact)
    warn_undecided(status, effort)
    return DistanceResult(
        lower=found.lower,
        upper=found.upper,
        status=status,
        reason=np.where(wrong, why, found.reason),
        X_adv=given.back(found.X_adv, np.isfinite(found.upper)),
        norm=norm,
        given=given,
    )
