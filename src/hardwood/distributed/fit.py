"""The plain worker function: my rows, a communicator, the parameters."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from hardwood.distributed.communicator import Communicator
from hardwood.distributed.plan import Piece, Plan, encode, hold, make_plan
from hardwood.distributed.train import Checkpoint, Outcome, Report, Share, refuse, train
from hardwood.errors import HardwoodWarning
from hardwood.estimators._base import RobustEstimator
from hardwood.model.trees import LEAF

T = TypeVar("T")
E = TypeVar("E", bound=RobustEstimator)


class WorkerPieces:
    """The pieces of all workers, one each; a worker has its own at hand."""

    def __init__(self, mine: Piece, communicator: Communicator | None) -> None:
        self.mine = mine
        self.communicator = communicator

    def each(self, ask: Callable[[Piece], T]) -> list[T]:
        """Ask every piece; what one worker refuses, all refuse."""
        if self.communicator is None:
            return [ask(self.mine)]
        try:
            mine: Any = ask(self.mine)
        except Exception as error:
            mine = error
        answers = self.communicator.gather(mine)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def together(self, ask: Callable[[Piece], T], merge: Callable[[list[T]], T]) -> T:
        """Ask every piece and merge."""
        return merge(self.each(ask))


def fit_part(
    estimator: E,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    communicator: Communicator | None = None,
    X_val: Any = None,
    y_val: Any = None,
    start: Checkpoint | None = None,
    checkpoint: Report | None = None,
    checkpoint_every: int = 10,
) -> E:
    """Fit an estimator on rows of which this worker has a part.

    Every worker calls it at the same time with the same parameters and its own rows; each gets the
    same model: the trees of one process that has all rows, in the order of the ranks. Raw rows are
    needed until they are in bins, and never sent: workers exchange values of features (once) and
    sums.

    Parameters
    ----------
    estimator : RobustGradientBoostingClassifier, RobustGradientBoostingRegressor or \
RobustRandomForestClassifier
        The parameters; it is not changed.
    X, y, sample_weight : array-like
        The rows of this worker, as `fit` takes them; there may be none (an array of shape
        (0, n_features)).
    communicator : Communicator or None, default=None
        All workers; None if there is one.
    X_val, y_val : array-like or None, default=None
        Validation rows of this worker; all workers pass some (there may be none), or none does.
    start : Checkpoint or None, default=None
        Where to go on, on the same rows.
    checkpoint : callable or None, default=None
        Gets a `Checkpoint` every `checkpoint_every` rounds; the worker of rank 0 passes one.
    checkpoint_every : int, default=10
        Rounds between two checkpoints.

    Returns
    -------
    estimator
        A fitted one of the same class.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = hw.RobustGradientBoostingClassifier(eps=0.1, inner="exact", n_estimators=5)
    >>> fitted = hw.distributed.fit_part(model, X, y)
    >>> fitted.score(X, y) == model.fit(X, y).score(X, y)
    True
    """
    refuse(estimator, X_val is not None)
    rank = 0 if communicator is None else communicator.rank
    name = "the rows" if communicator is None else f"the rows of worker {rank}"
    piece = Piece(X, y, sample_weight, name, rank)
    everyone = WorkerPieces(piece, communicator)
    plan = make_plan(estimator, everyone, estimator.max_bins, has_validation=X_val is not None)
    if communicator is not None:
        plan.seeds[:] = communicator.gather(plan.seeds)[0]  # a random_state of None differs
    share = Share(
        plan,
        [encode(plan, estimator.n_jobs or 1, piece)],
        plan.stretches([rank]),
        None if X_val is None else [hold(plan, Piece(X_val, y_val, None, name))],
        start,
        checkpoint_every,
        checkpoint,
        estimator.n_jobs,
        asks=rank == 0,
    )
    fitted: E = finished(plan, train(share, communicator))
    return fitted


def finished(plan: Plan, outcome: Outcome) -> Any:
    """An ordinary estimator with this outcome."""
    estimator = clone(plan.estimator)
    for name in ("n_features_in_", "feature_names_in_", "is_categorical_", "_categories", "_whole"):
        if hasattr(plan.estimator, name):
            setattr(estimator, name, getattr(plan.estimator, name))
    if plan.classes is not None:
        estimator.classes_ = plan.classes
        estimator.n_classes_ = len(plan.classes)
    estimator.trees_ = outcome.trees
    if hasattr(estimator, "learning_rate"):
        estimator._grown, estimator._ranks = outcome.grown or outcome.trees, plan.ranks
        estimator.n_estimators_ = outcome.trees.n_trees // outcome.trees.n_outputs
        estimator.evals_result_ = outcome.evals_result
    if not np.any(outcome.trees.feature != LEAF):
        warnings.warn(
            f"No split survives: the threat (largest step {plan.reach.limits[:, :2].max():g}) or "
            f"rules such as min_child_weight leave no gain in {plan.n_all} rows. The model is "
            f"constant; use a smaller eps, or smaller limits.",
            HardwoodWarning,
            stacklevel=3,
        )
    return estimator
