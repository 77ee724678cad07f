"""Certified boosting: every round learns from the worst margins that the adversary can cause."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from hardwood import _core, _sums
from hardwood._check import BoolArray, Float32Array, FloatArray
from hardwood.ensemble import loss as losses
from hardwood.ensemble.boosting import Model, Monitor, Rounds, Sampling, Validation, boost
from hardwood.ensemble.loss import KnownLoss, Loss, Softmax, Weight
from hardwood.grow.grow import GrownTree
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.grow.sketch import EndCuts, EndRows
from hardwood.model.decision import SOFTMAX_TIE, cut_at
from hardwood.model.trees import LEAF, Trees, core_of
from hardwood.threat import Reach

_N_REFITS = 3  # Newton steps on the leaves of a tree
_N_JOINT_STEPS = 25  # of L-BFGS on all leaves
# Times reg_lambda: all leaves of all classes together fit the training rows all too well. Chosen
# among 1 to 40 on training rows of MNIST and Fashion-MNIST and on made tables.
_JOINT_PENALTY = 10


class OneVsRest(Softmax):
    """Log loss of many classes whose margins are trained one against the rest."""

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        """Log odds of each class."""
        count = self.class_weights(y, weight, others)
        return self.base_of(np.log(count / (count.sum() - count)))


def margin_loss(loss: Loss) -> tuple[_core.MarginLoss, float]:
    """The loss as the core knows it, with its parameter."""
    if isinstance(loss, losses.Huber):
        return _core.MarginLoss.huber, float(loss.slope)
    if isinstance(loss, losses.Quantile):
        return _core.MarginLoss.quantile, loss.quantile
    plain = {
        losses.BinaryLogistic: _core.MarginLoss.logistic,
        OneVsRest: _core.MarginLoss.logistic,
        losses.SquaredError: _core.MarginLoss.squared,
        losses.Poisson: _core.MarginLoss.poisson,
    }
    if type(loss) not in plain:
        raise ValueError(
            'inner="certified" learns from the worst margin of each row, and a callable loss, '
            "which gives derivatives only, does not say which margin is worse; "
            'use inner="exact", or a loss by name.'
        )
    return plain[type(loss)], 0.0


@dataclass
class Ends:
    """The least and the largest margins that the adversary can give rows.

    Of each tree the worst leaf counts that a row can be pushed to, so the true range lies inside.
    """

    low: Float32Array
    high: Float32Array

    @classmethod
    def of(cls, model: Model, X: Any, reach: Reach, n_threads: int) -> "Ends":
        """Those of a model under construction."""
        base = np.tile(model.base.astype(np.float32), (X.shape[0], 1))
        ends = cls(base, base.copy())
        if model.n_nodes:
            ends.add(model.trees(), X, reach, n_threads)
        return ends

    def add(self, trees: Trees, X: Any, reach: Reach, n_threads: int) -> None:
        """Add more trees."""
        _core.add_certified_ends(
            core_of(trees), X, reach.ends, self.low, self.high, n_threads=n_threads
        )

    def worst(self, loss: KnownLoss, y: Float32Array) -> Float32Array:
        """The margins that cost most: the own class low, the others high."""
        if isinstance(loss, Softmax):
            own = y[:, None] == np.arange(loss.n_outputs)
        elif isinstance(loss, losses.BinaryLogistic):
            own = y[:, None] > 0
        else:
            own = (loss.per_row(y, self.low) >= loss.per_row(y, self.high))[:, None]
        worst: Float32Array = np.where(own, self.low, self.high)
        return worst

    def certified(self, y: Float32Array) -> BoolArray:
        """Rows whose label no margin between the ends changes."""
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        if low.shape[1] == 1:
            cut = cut_at(0.5, "logistic", np.float32)
            kept = np.where(y > 0, low[:, 0] > cut, high[:, 0] <= cut)
            return np.asarray(kept, dtype=np.bool_)
        label, rows = y.astype(np.intp), np.arange(len(y))
        # Margins as near as a tie is are not told apart; to count them as lost is sound.
        wins = low[rows, label][:, None] > high + SOFTMAX_TIE["float32"]
        wins[rows, label] = True
        return np.asarray(wins.all(axis=1), dtype=np.bool_)


@dataclass
class CertifiedBooster:
    """Training rows with the ends of their margins, and the model that grows round by round.

    Parameters are those of `Booster`; `robustness` is the share of the loss that is taken at the
    worst margins, the rest is taken at the plain ones: rows come twice then, the second time at
    rest.
    """

    X: Any
    y: Float32Array
    weight: Float32Array | None
    reach: Reach
    max_bins: int
    robustness: float
    loss: KnownLoss
    monotonic: npt.NDArray[np.int8]
    sampling: Sampling
    learning_rate: float
    rules: NewtonRules
    model: Model
    attacks: BoolArray | None = None  # rows that are moved; None: all
    dense: FloatArray | None = None  # X written out, where somebody needs it
    _table: Any = field(init=False)
    _ends: Ends = field(init=False)
    _weights: Float32Array = field(init=False)
    _plain: Float32Array | None = field(init=False, default=None)
    _n_plain: int = field(init=False, default=0)  # rounds in `_plain`

    def __post_init__(self) -> None:
        """Find the candidates, and where the margins stand."""
        self._table = self._make_table()
        self._ends = self._ends_to_start()
        self._weights = np.empty(0, np.float32) if self.weight is None else self.weight
        if self.at_rest:
            weight = np.ones_like(self.y) if self.weight is None else self.weight
            moved = np.full(len(self.y), self.robustness, np.float32)
            if self.attacks is not None:
                moved[~self.attacks] = 0
            self._weights = np.concatenate([weight * moved, weight * (1 - moved)])

    @property
    def at_rest(self) -> bool:
        """Whether rows come twice."""
        return self.robustness < 1 or self.attacks is not None

    @property
    def part(self) -> Part:
        """Which rows of the table these are."""
        return Part.whole(len(self.y))

    def _make_table(self) -> Any:
        how: dict[str, Any] = {
            "max_bins": self.max_bins,
            "at_rest": self.at_rest,
            "n_threads": self.rules.n_threads,
        }
        if not sparse.issparse(self.X):
            return _core.CertifiedBoosting(self.X, self.reach.ends, **how)
        X = self.X.tocsc()
        X.sum_duplicates()  # and brings each column in order
        lines = (X.indptr, X.indices, X.data, X.shape[0])
        return _core.CertifiedBoosting(*lines, self.reach.ends, **how)

    def _ends_to_start(self) -> Ends:
        X = self.rows() if self.model.n_nodes else self.X
        moved = Ends.of(self.model, X, self.reach, self.rules.n_threads)
        if not self.at_rest:
            return moved
        still = Ends.of(self.model, X, self.reach.still(), self.rules.n_threads)
        return Ends(
            np.concatenate([moved.low, still.low]), np.concatenate([moved.high, still.high])
        )

    def rows(self) -> Any:
        """X as a dense table."""
        if not sparse.issparse(self.X):
            return self.X
        if self.dense is None:
            self.dense = np.ascontiguousarray(self.X.toarray(), dtype=np.float64)
        return self.dense

    def candidates(self, feature: int) -> Float32Array:
        """Give the thresholds that trees can choose for a feature, increasing."""
        found: Float32Array = self._table.candidates(feature)
        return found

    @property
    def ends(self) -> Ends:
        """The ends of the margins of the rows as the adversary moves them."""
        n = len(self.y)
        low, high = self._ends.low[:n], self._ends.high[:n]
        if self.attacks is not None:
            stays = ~self.attacks[:, None]
            low = np.where(stays, self._ends.low[n:], low)
            high = np.where(stays, self._ends.high[n:], high)
        return Ends(low, high)

    @property
    def margin(self) -> Float32Array:
        """Plain margins; they are not needed to train, so they are added up when asked for."""
        if self._plain is None:
            self._plain = np.tile(self.model.base.astype(np.float32), (len(self.y), 1))
        n_rounds = self.model.n_rounds
        if self._n_plain < n_rounds:
            self._add_plain(self.model.rounds_from(self._n_plain), self._plain)
            self._n_plain = n_rounds
        return self._plain

    def _add_plain(self, trees: Trees, margin: Float32Array) -> None:
        """Add trees to plain margins."""
        Validation(self.rows(), self.y, None, margin, self.rules.n_threads).add(trees)

    def step(self) -> None:
        """Add one round."""
        n_rounds = self.model.n_rounds
        rows, features = self.sampling.draw(
            n_rounds, self.part, self.model.n_features, len(self.model.base)
        )
        kind, parameter = margin_loss(self.loss)
        arrays = self._table.step(
            self.y,
            self._weights,
            self._ends.low,
            self._ends.high,
            np.empty(0, np.uint8) if rows is None else rows,
            np.empty((0, 0), np.int32) if features is None else features,
            self.monotonic,
            self.rules.core(),
            loss=kind,
            loss_parameter=parameter,
            learning_rate=self.learning_rate,
            n_refits=_N_REFITS,
            seed=n_rounds,
        )
        trees = [GrownTree(*tree) for tree in arrays]
        self.model.add(trees, [tree.value[:, 0] for tree in trees])

    def refit_together(self, trees: Trees) -> Trees:
        """The same trees with leaf values that are best together, for many classes."""
        value = self._joint_values(
            trees,
            np.empty(0, np.float32) if self.weight is None else self.weight,
            robustness=self.robustness,
            penalty=_JOINT_PENALTY * self.rules.reg_lambda,
            n_steps=_N_JOINT_STEPS,
            n_threads=self.rules.n_threads,
        )
        # Of inner nodes the values stay what they were; nobody reads them.
        leaf = trees.feature == LEAF
        return trees.replace(value=np.where(leaf[:, None], value[:, None], trees.value))

    def _joint_values(self, trees: Trees, weight: Float32Array, **how: Any) -> Float32Array:
        return _core.joint_refit(
            core_of(trees), self.rows(), self.y, weight, self.reach.ends, **how
        )

    def look_at(self, trees: Trees) -> tuple[Float32Array, Ends]:
        """Plain margins and their ends, of other trees for the same rows."""
        return _looked_at(trees, self.rows(), self.reach, self.rules.n_threads)


@dataclass
class CertifiedParts(CertifiedBooster):
    """The same for rows in codes, of which others have more; X is not needed.

    `coded` are the rows of this process as `cuts` puts them into codes, `plain` those at rest, if
    somebody looks at plain margins.
    """

    cuts: EndCuts = field(kw_only=True)
    coded: list[EndRows] = field(kw_only=True)  # let go once they are in a table
    plain: list[EndRows] | None = field(kw_only=True, default=None)
    rows_held: Part = field(kw_only=True)
    _plain_table: Any = field(init=False, default=None)

    @property
    def part(self) -> Part:
        """Which rows of the table these are."""
        return self.rows_held

    def _make_table(self) -> Any:
        n_threads = self.rules.n_threads
        table = self.cuts.table(self.coded, self.part, n_threads)
        self.coded.clear()
        if self.plain is not None:
            alone = replace(self.part, others=None)
            self._plain_table = self.cuts.table(self.plain, alone, n_threads, at_rest=False)
            self.plain.clear()
        return table

    def _ends_to_start(self) -> Ends:
        return self._ends_of(self.model.trees()) if self.model.n_nodes else self._ends_of(None)

    def _ends_of(self, trees: Trees | None) -> Ends:
        n_rows = len(self.y) * (2 if self.at_rest else 1)
        base = np.tile(self.model.base.astype(np.float32), (n_rows, 1))
        ends = Ends(base, base.copy())
        if trees is not None:
            self._table.add(core_of(trees), ends.low, ends.high, n_threads=self.rules.n_threads)
        return ends

    def _add_plain(self, trees: Trees, margin: Float32Array) -> None:
        if self.at_rest:
            margin[:] = self._ends.low[len(self.y) :]  # nobody moves these rows
        else:
            self._plain_table.add(
                core_of(trees), margin, margin.copy(), n_threads=self.rules.n_threads
            )

    def _joint_values(self, trees: Trees, weight: Float32Array, **how: Any) -> Float32Array:
        values: Float32Array = self._table.joint_refit(core_of(trees), self.y, weight, **how)
        return values

    def look_at(self, trees: Trees) -> tuple[Float32Array, Ends]:
        """Plain margins and their ends, of other trees for the same rows."""
        ends, n_rows = self._ends_of(trees), len(self.y)
        moved = Ends(ends.low[:n_rows], ends.high[:n_rows])
        if self.at_rest:
            return ends.low[n_rows:], moved
        margin = np.tile(self.model.base.astype(np.float32), (n_rows, 1))
        self._add_plain(trees, margin)
        return margin, moved


def _looked_at(trees: Trees, X: Any, reach: Reach, n_threads: int) -> tuple[Float32Array, Ends]:
    ends = Ends.of(Model.from_trees(trees), X, reach, n_threads)
    if len(X) == 0:  # a part of the validation rows can have none
        return ends.low, ends
    return trees.margin(X, n_jobs=n_threads).astype(np.float32), ends


@dataclass
class CertifiedValidation(Validation):
    """Rows that are not learned from, with the ends of their margins, too."""

    ends: Ends
    reach: Reach
    n_threads: int
    attacks: BoolArray | None = None  # rows that are moved; None: all

    def add(self, trees: Trees) -> None:
        """Add the trees of a round."""
        if len(self.y) == 0:  # of a part
            return
        super().add(trees)
        self.ends.add(trees, self.X, self.reach, self.n_threads)
        if self.attacks is not None:
            for end in (self.ends.low, self.ends.high):
                end[~self.attacks] = self.margin[~self.attacks]


@dataclass
class CertifiedMonitor(Monitor):
    """Looks at certified figures beside the plain ones; early stopping looks at these."""

    def _evaluate(self, booster: Rounds) -> float:
        assert isinstance(booster, CertifiedBooster)
        score = super()._evaluate(booster)
        loss = booster.loss
        of_train = _figures(loss, booster.y, booster.weight, booster.ends, self.others)
        for name, value in of_train:
            self._note("train", name, value)
        for where, held in self.all_held().items():
            if isinstance(held, CertifiedValidation):
                figures = dict(_figures(loss, held.y, held.weight, held.ends, self.others))
                for name, value in figures.items():
                    self._note(where, name, value)
                if self.scorer is None:
                    score = -figures["certified_loss"]
        return score


def _figures(
    loss: KnownLoss, y: Float32Array, weight: Weight, ends: Ends, others: _sums.Others | None
) -> list[tuple[str, float]]:
    figures = [("certified_loss", loss.mean(y, ends.worst(loss, y), weight, others))]
    if isinstance(loss, losses.BinaryLogistic | Softmax):
        figures.append(("certified_accuracy", _sums.mean(ends.certified(y), None, others)))
    return figures


def boost_certified(
    booster: CertifiedBooster,
    n_rounds: int,
    monitor: CertifiedMonitor,
    after: Callable[[Rounds], Any] | None = None,
) -> tuple[Trees, Trees]:
    """Add up to `n_rounds` rounds; with many classes, refit all leaves together at the end.

    Gives the finished model, and the one that more rounds would go on from. The figures of the
    last round that is kept become those of the finished one.
    """
    grown = boost(booster, n_rounds, monitor, after)
    if len(booster.model.base) == 1:
        return grown, grown
    trees = booster.refit_together(grown)
    _correct(monitor, booster, trees, grown.n_trees // grown.n_outputs)
    return trees, grown


def _correct(
    monitor: CertifiedMonitor, booster: CertifiedBooster, trees: Trees, n_kept: int
) -> None:
    """Put the figures of a refitted model in the place of those before."""
    loss, n_threads = booster.loss, booster.rules.n_threads
    held = monitor.all_held()
    for where, history in monitor.evals_result.items():
        rows: Any = booster if where == "train" else held[where]
        y, weight = rows.y, rows.weight
        if where == "train":
            margin, ends = booster.look_at(trees)
        else:
            margin, ends = _looked_at(trees, rows.X, booster.reach, n_threads)
        new = {
            "loss": loss.mean(y, margin, weight, monitor.others),
            **dict(_figures(loss, y, weight, ends, monitor.others)),
        }
        for name, values in history.items():
            # Rounds are counted from the end: an earlier fit may have kept no history.
            at = n_kept - booster.model.n_rounds - 1
            if name in new:
                values[at] = new[name]
