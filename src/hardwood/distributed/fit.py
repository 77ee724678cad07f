"""The plain worker function: my rows, a communicator, the parameters."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from hardwood.distributed.communicator import Communicator
from hardwood.distributed.plan import Call, Piece, Plan, encode, hold, make_plan
from hardwood.distributed.train import Checkpoint, Outcome, Report, Share, refuse, train
from hardwood.errors import HardwoodWarning
from hardwood.estimators._base import RobustEstimator
from hardwood.model.trees import LEAF

T = TypeVar("T")
E = TypeVar("E", bound=RobustEstimator)


class WorkerPieces:
    """The pieces of all workers, by rank; each worker has its own at hand."""

    def __init__(self, mine: Sequence[Piece], communicator: Communicator | None) -> None:
        self.mine = mine
        self.communicator = communicator

    def each(self, ask: Callable[[Piece], T]) -> list[T]:
        """Ask every piece."""
        answers = self._tried(lambda: [ask(piece) for piece in self.mine])
        return [answer for of_worker in answers for answer in of_worker]

    def together(self, ask: Callable[[Piece], T], merge: Callable[[list[T]], T]) -> T:
        """Ask every piece and merge; workers send one answer each."""
        return merge(
            [
                answer
                for of_worker in self._tried(lambda: [merge([ask(p) for p in self.mine])])
                for answer in of_worker
            ]
        )

    def _tried(self, ask: Callable[[], list[T]]) -> list[list[T]]:
        """Everybody's answers; what one worker refuses, all refuse."""
        if self.communicator is None:
            return [ask()]
        try:
            mine: Any = ask()
        except Exception as error:
            mine = error
        answers = self.communicator.gather(mine)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


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
    name = "the rows" if communicator is None else f"the rows of worker {communicator.rank}"
    piece = Piece(X, y, sample_weight, name)
    held = None if X_val is None else Piece(X_val, y_val, None, name)
    return fit_pieces(
        estimator,
        [piece],
        None if held is None else [held],
        communicator,
        start=start,
        report=checkpoint,
        every=checkpoint_every,
    )


def fit_pieces(
    estimator: E,
    mine: Sequence[Piece],
    held: Sequence[Piece] | None,
    communicator: Communicator | None,
    *,
    start: Checkpoint | None = None,
    report: Report | None = None,
    every: int = 10,
) -> E:
    """Fit on the pieces of this worker, which are visited several times, one at a time."""
    refuse(estimator, held is not None)
    pieces = WorkerPieces(mine, communicator)
    plan = make_plan(estimator, pieces, estimator.max_bins, has_validation=held is not None)
    rank, counts = 0, [len(mine)]
    if communicator is not None:
        rank = communicator.rank
        counts = communicator.gather(len(mine))
        plan.seeds[:] = communicator.gather(plan.seeds)[0]  # a random_state of None differs
    before = sum(counts[:rank])
    ask = Call(encode, plan, estimator.n_jobs or 1)
    share = Share(
        plan,
        [ask(piece) for piece in mine],
        plan.stretches(range(before, before + len(mine))),
        None if held is None else [hold(plan, piece) for piece in held],
        start,
        every,
        report,
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
