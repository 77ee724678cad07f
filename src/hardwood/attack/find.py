"""Examples that fool a model: one door for all attacks."""

import time
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import FloatArray
from hardwood.attack import cheng, descent, exact, papernot, symbolic
from hardwood.attack.cheng import ChengSettings
from hardwood.attack.result import AttackResult
from hardwood.attack.victim import Attempt, Victim
from hardwood.model.given import Given
from hardwood.threat import Norm, Threat, as_threat, check_norm
from hardwood.threat.units import warn_of_units
from hardwood.verify.asked import fold_rows
from hardwood.verify.effort import Effort, Progress

Method = Literal["auto", "exact", "papernot", "kantchelian", "symbolic", "cheng", "descent"]
METHODS: tuple[Method, ...] = get_args(Method)

_PATIENCE = 60.0  # seconds
# What the exact engine takes for a row and a leaf of the model, roughly: its tail is long.
_SECONDS_A_LEAF: dict[Norm, float] = {"inf": 1e-6, 1: 1e-5, 2: 1e-5, 0: 1e-5}


def find_adversarial(
    model: Any,
    X: Any,
    y: Any,
    *,
    method: Method = "auto",
    norm: Any = "inf",
    target: Any = None,
    threat: Threat | None = None,
    settings: ChengSettings | None = None,
    X_train: Any = None,
    y_train: Any = None,
    random_state: Any = None,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
    threshold: float | None = None,
) -> AttackResult:
    """Attack a model: change each rightly classified row as little as possible, until it errs.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads; for "cheng" any classifier with a ``predict``.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels. Rows that the model gets wrong are not attacked.
    method : str, default="auto"
        - "auto": "exact" for a single tree, and for an ensemble where the number of leaves, rows
          and threads lets expect it within `total_time_limit` (60 seconds if None); else "descent",
          or "symbolic" with norm 0.
        - "exact": the nearest leaf of a single tree, or the search of `minimal_distance`.
        - "papernot": single trees; the leaf of another label that is the fewest branches away.
        - "kantchelian": a mixed-integer program for each row and rival label, solved by HiGHS.
          Exact in every norm, up to the solver's tolerances of about 1e-6, and slow.
        - "cheng": a black box; asks only for labels of chosen points, norms "inf" and 2.
        - "descent": our quick one, for norms "inf", 1 and 2: trees vote for their best leaves in a
          ball around the row, coordinate ascent does the rest, and the ball shrinks; norms 1 and 2
          go on with a local search. Typically 1 % above the smallest change. Microseconds to
          milliseconds a row, in norms 1 and 2 up to a quarter of a second where a thousand trees
          are all within reach.
        - "symbolic": one best change of a single feature after the other; quick, for norm 0.
    norm : {"inf", 1, 2, 0}, default="inf"
        How a change is measured.
    target : label or None, default=None
        The label that rows shall get; None: any but `y`. Rows that have it already have the status
        ``"there"``.
    threat : Threat or None, default=None
        What the adversary may do: directions, valid range, fixed features, and how far: only
        examples within its ``eps`` count. Its norm must be `norm`. Where its sizes differ between
        features, distances are multiples of the threat. None: anything, any distance.
    settings : ChengSettings or None, default=None
        For "cheng"; None means the defaults.
    X_train, y_train : array-like or None, default=None
        Rows and their labels, towards which "cheng" looks first; None means the attacked rows
        themselves.
    random_state : int, Generator or None, default=None
        Seed of "cheng"; the other attacks draw nothing.
    time_limit : float or None, default=None
        Seconds for each row, in "exact" and "kantchelian" (there: for each program).
    total_time_limit : float or None, default=None
        Seconds for the whole call; "auto" chooses by it. Rows whose turn never came are
        ``"survived"``.
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
    AttackResult
        Examples and their distances; ``method`` names the attack that ran. Ctrl-C ends the attack
        early and returns what is found so far.

    Notes
    -----
    Every example is replayed through the model before it counts: a fitted classifier through its
    own ``predict``, a file or `Trees` through `Trees.predict_class`.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X[:400], y[:400])
    >>> attack = hw.find_adversarial(model, X[400:], y[400:])
    >>> attack.method, int(attack.success.sum()), round(attack.mean_distance, 3)
    ('exact', 161, 0.084)
    """
    start = time.perf_counter()
    norm = check_norm(norm)
    if method not in METHODS:
        named = ", ".join(f'"{name}"' for name in METHODS)
        raise ValueError(f"method must be one of {named}, got method={method!r}.")
    effort = Effort(time_limit, total_time_limit, progress)
    given = as_threat(1, threat, norm)
    if given.norm != norm:
        raise ValueError(
            f"threat has norm={given.norm!r} but norm={norm!r} was asked for; make them equal."
        )
    if settings is not None and (method != "cheng" or not isinstance(settings, ChengSettings)):
        raise ValueError(
            f'settings must be a ChengSettings, with method="cheng"; got method={method!r} and '
            f"settings={settings!r}."
        )
    victim = Victim.of(
        model,
        X,
        y,
        threat,
        norm,
        black_box=method == "cheng",
        target=target,
        n_jobs=n_jobs,
        threshold=threshold,
    )
    warn_of_units(given, victim.ball, victim.X, victim.names, model)
    pool = _pool(victim, X_train, y_train)
    wrong = victim.fooled(victim.X, np.arange(len(victim.X)))
    right = np.flatnonzero(~wrong & victim.attacking)
    attacked = victim.rows(right)
    folded = attacked.folded()
    if len(right) == 0:
        attempt = Attempt(np.empty_like(attacked.X), method)
    elif method == "cheng":
        rng = np.random.default_rng(random_state)
        attempt = cheng.attack(folded, settings or ChengSettings(), effort, pool, rng)
    else:
        attempt = _run(folded, method, effort)
    victim.n_queries[right] += folded.n_queries
    X_adv, distance = _judge(attacked, attempt)
    victim.n_queries[right] += attacked.n_queries
    there = "misclassified" if target is None else "there"
    examples = np.where(wrong[:, None], victim.X, np.nan)
    examples[right] = X_adv
    given_back = wrong.copy()
    given_back[right] = np.isfinite(distance)
    rows = Given(X, victim.X, None if victim.problem is None else victim.problem.trees)
    result = AttackResult(
        X_adv=rows.back(examples, given_back),
        distance=np.where(wrong, 0.0, np.inf),
        success=np.zeros(len(wrong), dtype=bool),
        status=np.where(wrong, there, "survived"),
        lower=np.zeros(len(wrong)),
        n_queries=victim.n_queries,
        seconds=time.perf_counter() - start,
        method=attempt.method,
        norm=norm,
        feature_names=victim.names,
        given=rows,
    )
    told_in = victim.ball.unit if victim.ball.multiples else 1.0
    result.distance[right] = distance / told_in
    result.success[right] = np.isfinite(distance)
    result.status[result.success] = "fooled"
    if attempt.lower is not None:
        result.lower[right] = attempt.lower / told_in
    return result


def _pool(victim: Victim, X_train: Any, y_train: Any) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Rows and their labels, to look towards; one-hot groups are folded, as they are attacked."""
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together; pass both or none.")
    if X_train is None:
        return victim.folded().X, victim.y
    table = _check.rows(X_train, victim.X.shape[1], victim.names)
    label = np.asarray(y_train)
    if label.shape != (len(table),):
        raise ValueError(
            f"y_train has shape {label.shape} but X_train has {len(table)} rows; pass one label "
            f"per row."
        )
    return fold_rows(table, victim.ball.groups, victim.names), label


def _run(victim: Victim, method: Method, effort: Effort) -> Attempt:
    if method == "auto":
        method = _choose(victim, effort)
    if method == "papernot":
        return papernot.attack(victim, effort)
    if method == "symbolic":
        return symbolic.attack(victim, effort)
    if method == "descent":
        return descent.attack(victim, effort)
    if method == "kantchelian":
        return exact.kantchelian(victim, effort)
    return exact.attack(victim, effort)


def _choose(victim: Victim, effort: Effort) -> Method:
    trees = victim.white_box.trees
    seconds = len(victim.X) * trees.n_leaves * _SECONDS_A_LEAF[victim.norm] / victim.n_threads
    if trees.n_trees == 1 or seconds <= (effort.total_time_limit or _PATIENCE):
        return "exact"
    return "descent" if victim.norm != 0 and victim.leaves_a_label else "symbolic"


def _judge(victim: Victim, attempt: Attempt) -> tuple[FloatArray, FloatArray]:
    """Measure the examples and replay them; what fools nobody or leaves the ball is no example."""
    X_adv = victim.unfolded(attempt.X_adv)
    distance = victim.lengths(X_adv)
    good = np.isfinite(distance) & victim.contains(X_adv, distance)
    row = np.flatnonzero(good)
    good[row] = victim.fooled(X_adv[row], row)
    X_adv[~good], distance[~good] = np.nan, np.inf
    return X_adv, distance
