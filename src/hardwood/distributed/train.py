"""Training on pieces that are in codes: every worker runs this, all at the same time."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from hardwood._check import Float32Array, FloatArray, thread_count
from hardwood.distributed.communicator import Communicator, lost
from hardwood.distributed.plan import Coded, Held, Plan
from hardwood.ensemble.boosting import (
    Booster,
    BoostingRound,
    EarlyStopping,
    EvalsResult,
    Model,
    Monitor,
    Rounds,
    Sampling,
    Scorer,
    Validation,
    boost,
    log_progress,
)
from hardwood.ensemble.certified import (
    CertifiedMonitor,
    CertifiedParts,
    CertifiedValidation,
    Ends,
    OneVsRest,
    boost_certified,
    margin_loss,
)
from hardwood.ensemble.forest import train_newton_forest, train_share_forest
from hardwood.ensemble.loss import (
    BinaryLogistic,
    Custom,
    KnownLoss,
    Loss,
    Softmax,
)
from hardwood.estimators._base import RobustEstimator, TargetData
from hardwood.estimators._boosting import BoostingEstimator
from hardwood.estimators.forest import RobustRandomForestClassifier
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.grow.sketch import CodedRows, Cuts, EndCuts, EndRows
from hardwood.model.trees import Trees


@dataclass(frozen=True)
class Checkpoint:
    """A model so far, from which training can go on."""

    trees: Trees
    evals_result: EvalsResult
    best_score: float = -np.inf
    best_round: int = 0

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self.trees.n_trees // self.trees.n_outputs


Report = Callable[[Checkpoint], Any]


@dataclass
class Share:
    """What one worker has of a job."""

    plan: Plan
    pieces: Sequence[Coded]  # let go once they are in a table
    stretches: tuple[tuple[int, int], ...]
    held: Sequence[Held] | None = None
    start: Checkpoint | None = None
    every: int = 0  # rounds between two checkpoints; 0: none
    report: Report | None = None  # who is told; on one worker
    n_threads: int | None = None
    asks: bool = True  # whether this worker calls the callbacks, for all


@dataclass
class Outcome:
    """What every worker has in the end."""

    trees: Trees
    evals_result: EvalsResult = field(default_factory=dict)
    grown: Trees | None = None  # before the leaves of all classes were refitted


def refuse(estimator: RobustEstimator, has_validation: bool) -> None:
    """Say what is not possible on rows in parts, before anything is sent."""
    if getattr(estimator, "warm_start", False):
        raise ValueError("warm_start does not go on with rows in parts; use warm_start=False.")
    if isinstance(estimator, BoostingEstimator):
        if estimator.method == "exact":
            raise ValueError(
                'method="exact" tries every value of every row and needs them in one place; use '
                'method="hist" here.'
            )
        if estimator.early_stopping and not has_validation:
            raise ValueError(
                "early_stopping needs X_val and y_val here: rows in parts are not held out."
            )
    elif isinstance(estimator, RobustRandomForestClassifier):
        if estimator.method == "exact" or estimator.candidates == "intervals":
            raise ValueError(
                "Rows in parts are grown on histograms; drop method and candidates, or fit on one "
                "machine."
            )
        if estimator.oob_score:
            raise ValueError("oob_score needs all rows in one place; use oob_score=False here.")
    else:
        raise TypeError(
            f"Rows in parts train gradient boosting and random forests, not "
            f"{type(estimator).__name__}."
        )


def train(share: Share, communicator: Communicator | None) -> Outcome:
    """Train on one worker's share; everybody gets the same outcome."""
    plan = share.plan
    others = None if communicator is None else communicator.core
    part = Part(share.stretches, plan.n_all, others)
    y = np.concatenate([np.empty(0, np.float32), *(piece.y for piece in share.pieces)])
    weight = None
    if plan.weighted:
        weights = [piece.weight for piece in share.pieces if piece.weight is not None]
        weight = np.concatenate([np.empty(0), *weights])
    assert plan.cuts is not None
    estimator = copy.copy(plan.estimator)
    n_threads = thread_count(share.n_threads)
    estimator.n_jobs = n_threads
    if plan.classes is not None:
        estimator.classes_ = plan.classes
        estimator.n_classes_ = len(plan.classes)
    try:
        if isinstance(plan.cuts, EndCuts):
            assert isinstance(estimator, BoostingEstimator)
            return _Certified(estimator, share, None, part, y, weight, communicator).train()
        rows = [piece.rows for piece in share.pieces if isinstance(piece.rows, CodedRows)]
        if share.start is None:
            share.pieces = ()  # the table has them
        table = HistTable.in_parts(
            rows,
            plan.cuts,
            plan.reach,
            part,
            n_threads,
            plan.only,
        )
        if isinstance(estimator, RobustRandomForestClassifier):
            return Outcome(_forest(estimator, plan, table, part, y, weight))
        assert isinstance(estimator, BoostingEstimator)
        return _Boosting(estimator, share, table, part, y, weight, communicator).train()
    except RuntimeError as error:
        if "another worker does not answer" in str(error):
            raise lost(error) from error
        raise


@dataclass
class _Boosting:
    estimator: BoostingEstimator
    share: Share
    table: HistTable | None
    part: Part
    y: Float32Array
    raw_weight: FloatArray | None
    communicator: Communicator | None

    def train(self) -> Outcome:
        estimator, plan, part = self.estimator, self.share.plan, self.part
        weight = plan.weights(self.raw_weight)
        loss = self._loss()
        loss.check(self.y)
        model, margin = self._start(loss)
        assert self.table is not None
        booster = Booster(
            table=self.table,
            loss=loss,
            y=self.y,
            weight=weight,
            monotonic=estimator._signs(plan.columns, loss),
            sampling=Sampling(estimator.subsample, estimator.colsample_bytree, plan.seeds[0]),
            learning_rate=estimator.learning_rate,
            rules=self._rules(loss, model),
            model=model,
            margin=margin,
            part=part,
        )
        monitor = self._monitor(model, loss)
        n_rounds = self._rounds_left(model, monitor)
        trees = boost(booster, n_rounds, monitor, lambda rounds: self._report(rounds, monitor))
        return Outcome(trees, monitor.evals_result)

    def _rules(self, loss: Loss, model: Model) -> NewtonRules:
        rules = self.estimator._rules(loss)
        weight = self.share.plan.weights(self.raw_weight)
        unit = loss.unit(self.y, weight, model.base, self.part.others)
        return replace(rules, least_gain=rules.least_gain * unit)

    def _rounds_left(self, model: Model, monitor: Monitor) -> int:
        return 0 if _stopped(monitor) else self.estimator.n_estimators - model.n_rounds

    def _report(self, rounds: Rounds, monitor: Monitor) -> None:
        """Let somebody keep the model so far, now and then."""
        share, n_rounds = self.share, rounds.model.n_rounds
        if share.report is None or not share.every or n_rounds % share.every:
            return
        checkpoint = Checkpoint(rounds.model.trees(), copy.deepcopy(monitor.evals_result))
        if monitor.stopping is not None:
            checkpoint = replace(
                checkpoint,
                best_score=monitor.stopping.best_score,
                best_round=monitor.stopping.best_round,
            )
        share.report(checkpoint)

    def _loss(self) -> Loss:
        classes, given = self.share.plan.classes, self.estimator.loss
        if classes is None:
            return self.estimator._loss()  # type: ignore[no-any-return]
        n_outputs = 1 if len(classes) == 2 else len(classes)
        if callable(given):
            return Custom(given, n_outputs, "logistic" if n_outputs == 1 else "softmax")
        if n_outputs == 1:
            return BinaryLogistic()
        return OneVsRest(n_outputs) if self.share.plan.certified else Softmax(n_outputs)

    def _start(self, loss: Loss) -> tuple[Model, Float32Array]:
        plan, start = self.share.plan, self.share.start
        if start is not None:
            assert isinstance(plan.cuts, Cuts)
            parts = [
                plan.cuts.margin(start.trees, piece.rows)
                for piece in self.share.pieces
                if isinstance(piece.rows, CodedRows)
            ]
            none = np.empty((0, start.trees.n_outputs), np.float32)
            return Model.from_trees(start.trees), np.concatenate([none, *parts])
        model = self._model_to_start(loss)
        return model, np.tile(model.base.astype(np.float32), (len(self.y), 1))

    def _model_to_start(self, loss: Loss) -> Model:
        plan = self.share.plan
        base = (
            loss.base(self.y, self.raw_weight, self.part.others)
            if self.estimator.base_score is None
            else loss.base_of(self.estimator.base_score)
        )
        about: dict[str, Any] = {
            "link": loss.link,
            "task": "regression" if plan.classes is None else "classification",
            **plan.columns.about,
        }
        if plan.classes is not None:
            about["classes"] = plan.classes
        return Model(base, plan.n_features, about)

    def _monitor(self, model: Model, loss: Loss) -> Monitor:
        estimator, share = self.estimator, self.share
        callbacks = list(estimator.callbacks or ())
        if estimator.verbose:
            callbacks.append(log_progress)
        if callbacks and not share.asks:
            callbacks = [_agrees]
        start = share.start
        kind = CertifiedMonitor if share.plan.certified else Monitor
        monitor = kind(callbacks=callbacks, others=self.part.others)
        if start is not None:
            monitor.evals_result = copy.deepcopy(start.evals_result)
        if share.held is None:
            return monitor
        known = estimator.scoring is not None or isinstance(loss, KnownLoss)
        if estimator.early_stopping and not known:
            raise ValueError(
                "early_stopping cannot look at a custom loss, which gives derivatives only; pass "
                "scoring."
            )
        dtype = share.plan.held_dtype
        empty = Held(np.empty((0, share.plan.n_features), dtype), np.empty(0, np.float32))
        X = np.concatenate([empty.X, *(piece.X for piece in share.held)])
        y = np.concatenate([empty.y, *(piece.y for piece in share.held)])
        loss.check(y)
        if estimator.scoring is not None:
            monitor.scorer = self._scorer(model, y)
        margin = np.tile(model.base.astype(np.float32), (len(y), 1))
        if start is not None and len(y):
            margin = start.trees.margin(X, n_jobs=estimator.n_jobs).astype(np.float32)
        monitor.validation = self._held_rows(model, X, y, margin)
        if estimator.early_stopping:
            monitor.stopping = EarlyStopping(estimator.n_iter_no_change)
            if start is not None:
                monitor.stopping.best_score = start.best_score
                monitor.stopping.best_round = start.best_round
        return monitor

    def _held_rows(
        self, model: Model, X: FloatArray, y: Float32Array, margin: Float32Array
    ) -> Validation:
        return _HeldRows(X, y, None, margin, self.estimator.n_jobs)

    def _scorer(self, model: Model, y: Float32Array) -> Scorer:
        """A scorer that looks at the margins of all workers' validation rows."""
        everyone = np.concatenate(self._of_all(y))
        # Margins are at hand, so nobody looks at the rows themselves.
        rows = TargetData(np.zeros((len(everyone), 1)), everyone, None, self.share.plan.columns)
        score_all = self.estimator._scorer(model, rows)

        def score(validation: Validation) -> float:
            margin = np.concatenate(self._of_all(validation.margin))
            return score_all(Validation(rows.X, everyone, None, margin, 1))

        return score

    def _of_all(self, mine: Float32Array) -> list[Float32Array]:
        return [mine] if self.communicator is None else self.communicator.gather(mine)


class _Certified(_Boosting):
    """The same on certified margins."""

    def train(self) -> Outcome:
        estimator, share, plan = self.estimator, self.share, self.share.plan
        loss = self._loss()
        margin_loss(loss)  # refuses those without a worst side
        assert isinstance(loss, KnownLoss)
        assert isinstance(plan.cuts, EndCuts)
        loss.check(self.y)
        start = share.start
        model = self._model_to_start(loss) if start is None else Model.from_trees(start.trees)
        if plan.ranks is not None:
            model.for_users = plan.ranks.with_sets
        coded = [piece.rows for piece in share.pieces if isinstance(piece.rows, EndRows)]
        plain = [piece.plain for piece in share.pieces if piece.plain is not None]
        share.pieces = ()  # the booster has them
        booster = CertifiedParts(
            X=None,
            y=self.y,
            weight=plan.weights(self.raw_weight),
            reach=plan.threat,
            attacks=None if plan.only < 0 else self.y == plan.only,
            max_bins=estimator.max_bins,
            robustness=float(estimator.robustness),
            loss=loss,
            monotonic=estimator._signs(plan.columns, loss),
            sampling=Sampling(estimator.subsample, estimator.colsample_bytree, plan.seeds[0]),
            learning_rate=estimator.learning_rate,
            rules=self._rules(loss, model),
            model=model,
            cuts=plan.cuts,
            coded=coded,
            plain=plain if plan.watched and not plan.at_rest else None,
            rows_held=self.part,
        )
        monitor = self._monitor(model, loss)
        assert isinstance(monitor, CertifiedMonitor)
        n_rounds = self._rounds_left(model, monitor)
        trees, grown = boost_certified(
            booster, n_rounds, monitor, lambda rounds: self._report(rounds, monitor)
        )
        return Outcome(model.for_users(trees), monitor.evals_result, grown)

    def _held_rows(
        self, model: Model, X: FloatArray, y: Float32Array, margin: Float32Array
    ) -> Validation:
        plan, n_threads = self.share.plan, thread_count(self.estimator.n_jobs)
        return CertifiedValidation(
            X,
            y,
            None,
            margin,
            self.estimator.n_jobs,
            Ends.of(model, X, plan.threat, n_threads),
            plan.threat,
            n_threads,
            None if plan.only < 0 else y == plan.only,
        )


class _HeldRows(Validation):
    """Validation rows of one worker, who may have none."""

    def add(self, trees: Trees) -> None:
        if len(self.y):
            super().add(trees)


def _stopped(monitor: Monitor) -> bool:
    """Whether the rounds of a checkpoint were enough."""
    stopping = monitor.stopping
    if stopping is None or not stopping.best_round:
        return False
    n_rounds = len(next(iter(monitor.evals_result["validation"].values())))
    return n_rounds - stopping.best_round >= stopping.n_iter_no_change


def _agrees(now: BoostingRound) -> None:
    """Leave it to the worker that asks."""


def _forest(
    estimator: RobustRandomForestClassifier,
    plan: Plan,
    table: HistTable,
    part: Part,
    y: Float32Array,
    raw_weight: FloatArray | None,
) -> Trees:
    assert plan.classes is not None
    # The table as the estimator's rules see it: its size, classes and weights.
    data: Any = SimpleNamespace(
        X=np.broadcast_to(0.0, (plan.n_all, plan.n_features)),
        classes=plan.classes,
        columns=plan.columns,
        weight=raw_weight if plan.weighted else None,
    )
    draw = replace(estimator._draw(plan.n_all), part=part)
    monotonic = estimator._checked_monotonic(data)
    if estimator.criterion == "newton":
        loss: Loss = BinaryLogistic() if len(plan.classes) == 2 else Softmax(len(plan.classes))
        about = {
            "link": loss.link,
            "classes": plan.classes,
            **plan.columns.about,
        }
        model = Model(loss.base(y, raw_weight, part.others), plan.n_features, about)
        newton_rules = estimator._newton_rules(plan.n_features, draw)
        return train_newton_forest(
            table,
            y,
            plan.weights(raw_weight),
            loss,
            model,
            monotonic,
            newton_rules,
            draw,
            plan.seeds,
        )
    estimator._check_inner(data)
    return train_share_forest(
        table,
        y.astype(np.int32),
        plan.classes,
        raw_weight,
        monotonic,
        estimator._rules(data, draw.n_drawn),
        draw,
        plan.seeds,
        {"n_features": plan.n_features, **plan.columns.about},
    )
