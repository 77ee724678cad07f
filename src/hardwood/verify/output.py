"""How far the output of a model can be pushed."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.model.answers import Answers, frame_of
from hardwood.model.given import Changes, Given
from hardwood.threat import Norm, Reach, Threat, threat_of
from hardwood.verify import ensemble
from hardwood.verify.asked import fold_outputs, unfold
from hardwood.verify.effort import Effort, Progress, warn_undecided
from hardwood.verify.problem import Outputs
from hardwood.verify.result import StatusArray


@dataclass(frozen=True, repr=False)
class OutputRange(Answers):
    """The outputs that a threat can bring about, row by row.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_samples,)
        Proven: the output stays between these two.
    lowest, highest : ndarray of shape (n_samples,)
        Found: the outputs of the two examples, ``lower <= lowest <= highest <= upper``.
    status : ndarray of str, shape (n_samples,)
        ``"exact"`` where what is proven equals what was found on both sides, else ``"unknown"``.
    reason : ndarray of str, shape (n_samples,)
        Why a row is unknown; empty where it is exact.
    X_lowest, X_highest : ndarray of shape (n_samples, n_features), or data frames
        Examples, replayed through the model; frames where the rows came as one.
    threat : Threat
        What the adversary may do.
    """

    lower: FloatArray
    lowest: FloatArray
    highest: FloatArray
    upper: FloatArray
    status: StatusArray
    reason: StatusArray
    X_lowest: Any
    X_highest: Any
    threat: Threat
    given: Given | None = field(default=None, compare=False)

    told: ClassVar[tuple[str, ...]] = ("status", "lower", "lowest", "highest", "upper", "reason")

    def to_frame(self) -> Any:
        """Give one line a row.

        Returns
        -------
        pandas.DataFrame
            What is said of each row, with the index of the rows as they were given.
        """
        return frame_of({name: getattr(self, name) for name in self.told}, self.given)

    def changes(self, row: int, side: Literal["lowest", "highest"] = "highest") -> Changes:
        """Tell what an example of a row changes.

        Parameters
        ----------
        row : int
            Position of the row.
        side : {"lowest", "highest"}, default="highest"
            Which of the two examples.

        Returns
        -------
        Changes
            A tuple of ``(column, old, new)``, and as text one line of words.
        """
        if side not in ("lowest", "highest"):
            raise ValueError(f'side must be "lowest" or "highest", got side={side!r}.')
        return self._changes(self.X_lowest if side == "lowest" else self.X_highest, row)

    def __repr__(self) -> str:
        unknown = np.count_nonzero(self.status == "unknown")
        width = f"{np.mean(self.highest - self.lowest):.4g}"
        if unknown:  # what was found is less than what may be
            width += f" to {np.mean(self.upper - self.lower):.4g}"
        return (
            f"OutputRange(n_samples={len(self.status)}, threat={self.threat!r}, "
            f"unknown={unknown}, mean_width={width})"
        )


def output_range(
    model: Any,
    X: Any,
    threat: Threat | float,
    *,
    y: Any = None,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> OutputRange:
    """Find the least and the largest output of each row within a threat.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads, with one output. The output of a regression model is its
        prediction, in the units of the target; that of any other is its margin.
    X : array-like of shape (n_samples, n_features)
        Rows. A missing value (NaN) is not moved.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    y : array-like of shape (n_samples,) or None, default=None
        Labels, which say who attacks where the threat has ``only``; None means those that the model
        itself gives. The output of a row that does not attack stays as it is.
    time_limit : float or None, default=None
        Seconds for each of the two sides of a row; what is proven and found by then is returned.
    total_time_limit : float or None, default=None
        Seconds for the whole call, half of them for the least outputs. Rows whose turn never came
        have infinite bounds.
    n_jobs : int or None, default=None
        Number of threads, over rows; -1 means all cores. The answers do not depend on it.
    progress : callable, bool or None, default=None
        As in `minimal_distance`, once through for each side.

    Returns
    -------
    OutputRange
        Bounds that are proven, outputs that were found, and their examples. Ctrl-C ends the search
        early and returns what is proven so far.

    Warns
    -----
    UndecidedWarning
        If rows are left undecided.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> for eps in (0, 0.1):
    ...     model = hw.RobustGradientBoostingRegressor(eps=eps, n_estimators=20, max_depth=3)
    ...     pushed = hw.output_range(model.fit(X, y), X[:50], 0.1)
    ...     print(round(float((pushed.highest - pushed.lowest).mean())))
    56
    15
    """
    threat = threat_of(threat)
    effort = Effort(time_limit, total_time_limit, progress)
    outputs = Outputs.of(model, X, n_jobs)
    given = Given(X, outputs.X, outputs.trees)
    some = np.flatnonzero(outputs.attackers(threat.only, y))
    reach = outputs.reach(replace(threat, only=None))
    half = effort.left() / 2
    least = _pushed(outputs, some, False, threat.norm, reach, effort, half)
    most = _pushed(outputs, some, True, threat.norm, reach, effort)
    exact = (least.proven == least.found) & (most.proven == most.found)
    status = np.where(exact, "exact", "unknown")
    warn_undecided(status, effort)
    return OutputRange(
        lower=outputs.seen(least.proven),
        lowest=outputs.seen(least.found),
        highest=outputs.seen(most.found),
        upper=outputs.seen(most.proven),
        status=status,
        reason=np.where(least.reason == "", most.reason, least.reason),
        X_lowest=given.back(least.X_adv, np.ones(len(status), dtype=bool)),
        X_highest=given.back(most.X_adv, np.ones(len(status), dtype=bool)),
        threat=threat,
        given=given,
    )


def _pushed(
    outputs: Outputs,
    some: npt.NDArray[np.intp],
    up: bool,
    norm: Norm,
    reach: Reach,
    effort: Effort,
    seconds: float = np.inf,
) -> ensemble.Extreme:
    """How far the outputs of some rows can be pushed to one side; those of others stay."""
    own = outputs.output(outputs.X)
    reason = np.full(len(own), "", dtype="<U50")
    pushed = ensemble.Extreme(own.copy(), own, reason, outputs.X.copy())
    if len(some):
        folded, ball = fold_outputs(outputs.some(some), reach)
        part = ensemble.farthest(folded, up, norm, ball, effort, seconds)
        unfold(part.X_adv, reach.groups)
        for name, whole in vars(pushed).items():
            whole[some] = getattr(part, name)
    return pushed
