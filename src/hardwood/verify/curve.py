"""Certified accuracy over a list of eps, each row asked no more often than it needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.model.answers import frame_of, html_of
from hardwood.threat import Reach, Threat
from hardwood.threat.units import warn_of_units
from hardwood.verify import search
from hardwood.verify.asked import asked
from hardwood.verify.effort import Effort, Progress, warn_undecided
from hardwood.verify.problem import Problem
from hardwood.verify.result import StatusArray


@dataclass(frozen=True, repr=False)
class AccuracyCurve:
    """How accuracy falls as the adversary gets stronger.

    Attributes
    ----------
    eps : ndarray of shape (n_eps,)
        Sizes of the perturbation, increasing.
    status : ndarray of str, shape (n_eps, n_samples)
        ``"certified"``, ``"broken"`` or ``"unknown"``, as in `Certificate`.
    """

    eps: FloatArray
    status: StatusArray

    @property
    def certified_accuracy(self) -> FloatArray:
        """Share of rows proven right, per eps; never above the truth."""
        share: FloatArray = np.mean(self.status == "certified", axis=1)
        return share

    @property
    def attacked_accuracy(self) -> FloatArray:
        """Share of rows for which no example is known, per eps; never below the truth."""
        share: FloatArray = np.mean(self.status != "broken", axis=1)
        return share

    def to_frame(self) -> Any:
        """Give one line an eps.

        Returns
        -------
        pandas.DataFrame
            eps, certified_accuracy and attacked_accuracy.
        """
        names = ("eps", "certified_accuracy", "attacked_accuracy")
        return frame_of({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        return html_of(repr(self), self.to_frame())

    def __repr__(self) -> str:
        return f"AccuracyCurve(n_eps={len(self.eps)}, n_samples={self.status.shape[1]})"


def certified_accuracy(
    model: Any,
    X: Any,
    y: Any,
    eps: npt.ArrayLike,
    *,
    threat: Threat | None = None,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
    threshold: float | None = None,
) -> AccuracyCurve:
    """Certify rows at several eps.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    y : array-like of shape (n_samples,)
        True labels.
    eps : array-like of shape (n_eps,)
        Sizes of the perturbation, finite and >= 0; with norm 0, numbers of features.
    threat : Threat or None, default=None
        Norm, directions, valid range, fixed features. Where its eps differs between features, or
        categories can change, `eps` are multiples of the threat: 1 is the threat itself. None is
        the maximum norm.
    time_limit : float or None, default=None
        Seconds for each decision; a row that is stopped is ``"unknown"`` at that eps.
    total_time_limit : float or None, default=None
        Seconds for the whole call; what is open by then is ``"unknown"``.
    n_jobs : int or None, default=None
        Number of threads, over rows; -1 means all cores.
    progress : callable, bool or None, default=None
        True shows a bar (of tqdm where it is installed, else lines of logging). A callable is
        called about 20 times a second with the number of rows that are done, how many of these are
        undecided, and the number of all rows.
    threshold : float or None, default=None
        For two classes: the probability from which on the model says the second one, between 0 and
        1; None means as the model itself decides.

    Returns
    -------
    AccuracyCurve
        ``certified_accuracy <= truth <= attacked_accuracy`` at every eps. Ctrl-C ends the search
        early and returns what is proven so far.

    Warns
    -----
    UndecidedWarning
        If rows are left undecided.

    Notes
    -----
    A row that is certified at one eps is certified at every smaller one, and an example breaks it
    wherever the ball is large enough to hold it, so a row is asked about the logarithm of the
    number of eps.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y)
    >>> curve = hw.certified_accuracy(forest, X[:100], y[:100], [0, 0.01, 0.05])
    >>> print(curve.certified_accuracy)
    [0.94 0.87 0.71]
    """
    effort = Effort(time_limit, total_time_limit, progress)
    if np.ndim(eps) != 1 or np.size(eps) == 0 or np.asarray(eps).dtype.kind not in "buif":
        raise ValueError(f"eps must be a list of one or more numbers, got eps={eps!r}.")
    grid = np.asarray(eps, dtype=np.float64)
    if not (np.isfinite(grid) & (grid >= 0)).all():
        wrong = grid[~(np.isfinite(grid) & (grid >= 0))][0]
        raise ValueError(f"eps must hold finite numbers >= 0, got {wrong}.")
    grid = np.sort(grid)
    problem = Problem.of(model, X, y, n_jobs, threshold=threshold)
    threat = Threat(1) if threat is None else threat
    if not threat.moves:
        raise ValueError(
            f"threat moves no feature, so there are no proportions to keep, got "
            f"eps={threat.eps!r}. Use Threat(1, ...): the sizes are those of the list eps."
        )
    reach = problem.reach(threat)
    free = reach.without_radius(threat.norm)
    warn_of_units(threat, free, problem.X, problem.trees.feature_names, model)
    curve = _Bisection(problem, threat, reach, grid, effort)
    for verdict in ("broken", "certified"):  # the bracket closes from both sides of "unknown"
        curve.close(verdict)
    curve.status[curve.status == ""] = "unknown"
    if effort.over:  # nobody asked these rows; that they are wrong already is known without
        curve.status[:, problem.misclassified()] = "broken"
    warn_undecided(curve.status.ravel(), effort)
    return AccuracyCurve(grid, curve.status)


class _Bisection:
    """What is known of every row at every eps."""

    def __init__(
        self, problem: Problem, threat: Threat, reach: Reach, grid: FloatArray, effort: Effort
    ) -> None:
        self.problem = problem
        self.norm = threat.norm
        unit = reach.unit if reach.multiples else 1.0
        self.reaches = [reach.at(float(eps) * unit, threat.norm) for eps in grid]
        self.effort = effort
        self.status = np.full((len(grid), len(problem.X)), "", dtype="<U9")

    def close(self, verdict: str) -> None:
        """Ask rows in the middle of what is open until the border of `verdict` is known."""
        n_eps = len(self.reaches)
        while not self.effort.over:
            # For "broken" the border lies above all that is certified or unknown, and so on.
            yes = self.status == verdict
            no = (self.status != "") & ~yes
            if verdict == "broken":
                first = np.where(no.any(axis=0), n_eps - np.argmax(no[::-1], axis=0), 0)
                end = np.where(yes.any(axis=0), np.argmax(yes, axis=0), n_eps)
            else:
                first = np.where(yes.any(axis=0), n_eps - np.argmax(yes[::-1], axis=0), 0)
                end = np.where(no.any(axis=0), np.argmax(no, axis=0), n_eps)
            rows = np.flatnonzero(first < end)
            if len(rows) == 0:
                break
            middle = (first + end)[rows] // 2
            for k in np.unique(middle):
                if not self.effort.over:
                    self._ask(int(k), rows[middle == k])

    def _ask(self, k: int, rows: npt.NDArray[np.intp]) -> None:
        problem = self.problem.some(rows)
        ask = search.decide
        reach = self.reaches[k]
        found = asked(problem, reach, lambda one, ball: ask(one, self.norm, ball, self.effort))
        verdict, X_adv = found.verdict(), found.X_adv
        self.status[k, rows] = verdict
        self.status[: k + 1, rows[verdict == "certified"]] = "certified"
        broken = verdict == "broken"
        for j in range(len(self.reaches)):
            held = broken & (j >= k)
            if j < k:
                held = broken & self.reaches[j].holds(problem.X, X_adv, self.norm)
            self.status[j, rows[held]] = "broken"
