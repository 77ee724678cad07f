"""What boosted classifiers and regressors share: everything but labels."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hardwood import _check
from hardwood._check import Float32Array, FloatArray, thread_count
from hardwood.ensemble.boosting import (
    Booster,
    EarlyStopping,
    EvalsResult,
    Model,
    Monitor,
    Sampling,
    TrainingTable,
    Validation,
    boost,
    has_split,
    log_progress,
)
from hardwood.ensemble.certified import (
    CertifiedBooster,
    CertifiedMonitor,
    CertifiedValidation,
    Ends,
    boost_certified,
    margin_loss,
)
from hardwood.ensemble.loss import KnownLoss, Loss, RefittedLoss
from hardwood.ensemble.ranked import CategorySums, Ranks
from hardwood.estimators._base import (
    Schema,
    TargetData,
    attacker,
    refuse_categories,
    refuse_kinds,
    warn_if_constant,
)
from hardwood.estimators._validation import ValidatedEstimator, accepted, dense
from hardwood.grow.exact import ExactTable
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.model.text import tree_text
from hardwood.model.trees import LEAF, Trees
from hardwood.threat import Reach, as_threat


class BoostingEstimator(ValidatedEstimator):
    """Base of the boosting estimators; parameters are those of the classifier."""

    method: str
    inner: str
    robustness: float
    loss: Any
    n_estimators: int
    learning_rate: float
    max_depth: int | None
    max_leaf_nodes: int | None
    max_bins: int
    reg_lambda: float
    reg_alpha: float
    min_split_gain: float
    min_child_weight: float
    min_samples_leaf: int
    subsample: float
    colsample_bytree: float
    monotonic_cst: Any
    early_stopping: bool
    n_iter_no_change: int
    validation_fraction: float
    scoring: Any
    warm_start: bool
    base_score: Any
    callbacks: Any
    verbose: bool | int

    evals_result_: EvalsResult
    _grown: Trees  # from which more rounds go on: before the leaves of all classes were refitted

    _ranks: Ranks | None = None  # the categories as certified training saw them

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "eps": "no_validation",
        "threat": "no_validation",
        "method": [StrOptions({"hist", "exact"})],
        "inner": [StrOptions({"certified", "exact", "paper"})],
        "robustness": [Interval(Real, 0, 1, closed="both")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "max_bins": [Interval(Integral, 2, 256, closed="both")],
        "reg_lambda": [Interval(Real, 0, None, closed="left")],
        "reg_alpha": [Interval(Real, 0, None, closed="left")],
        "min_split_gain": [Interval(Real, 0, None, closed="left")],
        "min_child_weight": [Interval(Real, 0, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "colsample_bytree": [Interval(Real, 0, 1, closed="right")],
        "monotonic_cst": ["array-like", dict, None],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "early_stopping": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "warm_start": ["boolean"],
        "base_score": "no_validation",
        "callbacks": ["array-like", None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _boost(
        self, data: TargetData, held_out: dict[str, TargetData], loss: Loss, **about: Any
    ) -> None:
        """Train on checked data; `about` goes into the model."""
        loss.check(data.y)
        reach = self._training_reach(data.columns)
        if self._certifies(reach):
            margin_loss(loss)  # refuses those without a worst side
        monotonic = self._signs(data.columns, loss)
        model = self._model_to_start(data, loss, about)
        weight = _check.weights(data.weight)
        rules = self._rules(loss)
        rules = replace(rules, least_gain=rules.least_gain * loss.unit(data.y, weight, model.base))
        sampling = Sampling(self.subsample, self.colsample_bytree, self._seed())
        only = attacker(reach, model.about.get("classes"))
        rows, ranks, threat = data.X, None, reach
        if self._certifies(reach):
            refuse_one_of_many(reach, len(model.base))
            ranks = self._ranks_to_start(data, weight, reach, model)
            rows, threat = as_thresholds(data.X, ranks, reach)
        monitor = self._monitor(model, held_out, loss, reach, ranks, only)
        n_rounds = self.n_estimators - model.n_rounds
        if isinstance(monitor, CertifiedMonitor):
            assert isinstance(loss, KnownLoss)
            certified = CertifiedBooster(
                X=rows,
                y=data.y,
                weight=weight,
                reach=threat,
                attacks=None if only < 0 else data.y == only,
                max_bins=_ALL_CANDIDATES if self.method == "exact" else self.max_bins,
                robustness=float(self.robustness),
                loss=loss,
                monotonic=monotonic,
                sampling=sampling,
                learning_rate=self.learning_rate,
                rules=rules,
                model=model,
            )
            trees, grown = boost_certified(certified, n_rounds, monitor)
            trees = model.for_users(trees)
        else:
            booster = Booster(
                table=self._table(data, weight, reach, only, self.method),
                loss=loss,
                y=data.y,
                weight=weight,
                monotonic=monotonic,
                sampling=sampling,
                learning_rate=self.learning_rate,
                rules=rules,
                model=model,
                margin=self._margin_to_start(model, data.X),
                part=Part.whole(len(data.y)),
            )
            trees = grown = boost(booster, n_rounds, monitor)

        def splits(other: Reach, others: NewtonRules) -> bool:
            method = "hist" if ranks is not None else self.method
            table = self._table(data, weight, other, only, method)
            return has_split(table, loss, data.y, weight, model.base, monotonic, others)

        warn_if_constant(trees, reach, rules, splits, stacklevel=3)
        self.trees_ = trees
        self._grown = grown
        self._ranks = ranks
        self.n_estimators_ = trees.n_trees // trees.n_outputs
        self.evals_result_ = monitor.evals_result

    def _signs(self, columns: Schema, loss: Loss) -> npt.NDArray[np.int8]:
        """Along which features the model must rise or fall."""
        monotonic = self._monotonic(self.monotonic_cst, columns)
        if monotonic.any() and isinstance(loss, RefittedLoss):
            raise ValueError(
                'monotonic_cst cannot be kept with loss="quantile", which refits the leaves; drop '
                "it, or use another loss."
            )
        return monotonic

    def _training_reach(self, columns: Schema) -> Reach:
        """What the adversary may do as far as training is concerned."""
        reach = self._reach(columns)
        if self.inner != "certified":
            if self.robustness != 1:
                raise ValueError(
                    f'robustness is the dial of inner="certified"; with inner={self.inner!r} it '
                    f"must be 1, got robustness={self.robustness}."
                )
            return reach
        norm = as_threat(self.eps, self.threat).norm
        if norm != "inf" and reach.moves:
            raise ValueError(
                f'inner="certified" adds up what the adversary can do to each tree, which is known '
                f"for the maximum norm only; the threat has norm={norm!r}. Use "
                f'Threat(eps, norm="inf"), or inner="exact", which looks at one split at a time.'
            )
        return reach if self.robustness > 0 else reach.still()

    def _certifies(self, reach: Reach) -> bool:
        """Whether training is certified; without an adversary it is ordinary boosting."""
        return self.inner == "certified" and reach.moves

    def _model_to_start(self, data: TargetData, loss: Loss, about: dict[str, Any]) -> Model:
        if self._continues():
            if self.trees_.link != loss.link:
                raise ValueError(
                    f"warm_start continues a model with the link {self.trees_.link!r}, but "
                    f"loss={self.loss!r} needs {loss.link!r}; fit with warm_start=False first."
                )
            if self.n_estimators < self.n_estimators_:
                raise ValueError(
                    f"n_estimators={self.n_estimators} must be larger than or equal to the "
                    f"{self.n_estimators_} rounds of the model that warm_start continues."
                )
            return Model.from_trees(self._grown)  # in the columns that training sees
        base = (
            loss.base(data.y, data.weight)
            if self.base_score is None
            else loss.base_of(self.base_score)
        )
        task = "classification" if "classes" in about else "regression"
        about = {"link": loss.link, "task": task, **data.columns.about, **about}
        return Model(base, data.X.shape[1], about)

    def _ranks_to_start(
        self, data: TargetData, weight: Float32Array | None, reach: Reach, model: Model
    ) -> Ranks | None:
        """In which order certified training sees the categories; a model goes on with its own."""
        if not data.columns.codes:
            return None
        if self._continues():
            ranks = self._ranks
        else:
            n_classes = len(model.about.get("classes", ()))
            sums = CategorySums.learn(data.X, data.y, weight, n_classes, data.columns.codes)
            ranks = Ranks.learn(sums, data.columns.codes, reach.changes)
        if ranks is not None:
            model.for_users = ranks.with_sets
        return ranks

    def _continues(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "trees_")

    def _margin_to_start(self, model: Model, X: Any) -> Float32Array:
        if model.n_nodes:
            return self._margin_of(X, self._grown).astype(np.float32)
        return np.tile(model.base.astype(np.float32), (X.shape[0], 1))

    def _table(
        self, data: TargetData, weight: Float32Array | None, reach: Reach, only: int, method: str
    ) -> TrainingTable:
        n_threads = thread_count(self.n_jobs)
        if method == "exact":
            refuse_categories(data.columns)
            refuse_kinds(reach)
            return ExactTable(dense(data.X), reach, n_threads=n_threads)
        return HistTable(
            data.X,
            reach,
            weight=weight,
            max_bins=self.max_bins,
            n_threads=n_threads,
            categories=data.columns.codes,
            only=only,
        )

    def _rules(self, loss: Loss) -> NewtonRules:
        return NewtonRules(
            inner="paper" if self.inner == "paper" else "exact",
            reg_lambda=float(self.reg_lambda),
            reg_alpha=float(self.reg_alpha),
            min_split_gain=float(self.min_split_gain),
            min_child_weight=float(self.min_child_weight),
            max_delta_step=loss.max_delta_step,
            min_samples_leaf=int(self.min_samples_leaf),
            max_depth=-1 if self.max_depth is None else int(self.max_depth),
            max_leaf_nodes=0 if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            n_threads=thread_count(self.n_jobs),
        )

    def _monitor(
        self,
        model: Model,
        held_out: dict[str, TargetData],
        loss: Loss,
        reach: Reach,
        ranks: Ranks | None,
        only: int,
    ) -> Monitor:
        callbacks = list(self.callbacks or ())
        for callback in callbacks:
            if not callable(callback):
                raise ValueError(f"callbacks must be a list of callables, got {callback!r} in it.")
        if self.verbose:
            callbacks.append(log_progress)
        kind = CertifiedMonitor if self._certifies(reach) else Monitor
        if not held_out:
            return kind(callbacks=callbacks, evals_result=self._history_to_continue())
        name = list(held_out)[-1]
        scorer = None if self.scoring is None else self._scorer(model, held_out[name])
        if self.early_stopping and scorer is None and not isinstance(loss, KnownLoss):
            raise ValueError(
                "early_stopping cannot look at a custom loss, which gives derivatives only; pass "
                "scoring."
            )
        rows = {
            called: self._validation_rows(model, held, reach, ranks, only)
            for called, held in held_out.items()
        }
        return kind(
            validation=rows.pop(name),
            scorer=scorer,
            stopping=EarlyStopping(self.n_iter_no_change) if self.early_stopping else None,
            callbacks=callbacks,
            evals_result=self._history_to_continue(),
            name=name,
            further=rows,
        )

    def _validation_rows(
        self, model: Model, held: TargetData, reach: Reach, ranks: Ranks | None, only: int
    ) -> Validation:
        """Validation rows with what the model so far says of them."""
        weight = _check.weights(held.weight)
        if not self._certifies(reach):
            X = dense(held.X)
            return Validation(X, held.y, weight, self._margin_to_start(model, X), self.n_jobs)
        rows, reach = as_thresholds(held.X, ranks, reach)
        X, n_threads = dense(rows), thread_count(self.n_jobs)
        return CertifiedValidation(
            X,
            held.y,
            weight,
            self._margin_to_start(model, X),
            self.n_jobs,
            Ends.of(model, X, reach, n_threads),
            reach,
            n_threads,
            None if only < 0 else held.y == only,
        )

    def _history_to_continue(self) -> EvalsResult:
        return copy.deepcopy(self.evals_result_) if self._continues() else {}

    def _margin(self, X: Any) -> FloatArray:
        if self._known is not None and X is self._known[0]:
            return self._known[1]
        check_is_fitted(self, "trees_")
        return self._margin_of(self._check_rows(X, **accepted(X)), self.trees_)

    def _margin_of(self, X: Any, trees: Trees) -> FloatArray:
        """Margins of checked rows; sparse ones are written out a block at a time."""
        if not issparse(X):
            return trees.margin(X, n_jobs=self.n_jobs)
        X = X.tocsr()
        return np.concatenate(
            [
                trees.margin(X[i : i + _BLOCK].toarray(), n_jobs=self.n_jobs)
                for i in range(0, X.shape[0], _BLOCK)
            ]
        )

    def _staged_margin(self, X: Any) -> Iterator[FloatArray]:
        """The margin after every round, added up as `Trees.margin` does it."""
        check_is_fitted(self, "trees_")
        trees = self.trees_
        leaf = trees.apply(dense(self._check_rows(X, **accepted(X))), n_jobs=self.n_jobs)
        margin = np.tile(trees.base.astype(np.float32), (len(leaf), 1))
        for k in range(trees.n_trees):
            output = trees.tree_output[k]
            margin[:, output] += trees.value[trees.tree_start[k] + leaf[:, k], 0]
            if output == trees.n_outputs - 1:
                yield margin.astype(np.float64)

    def _after_loading(self) -> None:
        self._grown = self.trees_
        self.n_estimators_ = self.trees_.n_trees // self.trees_.n_outputs
        self.evals_result_ = {}

    def export_text(self, *, tree_index: int = 0, decimals: int = 2) -> str:
        """Write one tree as text.

        Parameters
        ----------
        tree_index : int, default=0
            Which tree; with more than two classes, round r has the trees r * n_classes and on.
        decimals : int, default=2
            Digits of thresholds and values.

        Returns
        -------
        str
            One line per node, in the layout of scikit-learn's ``export_text``, with ``<`` on the
            left.
        """
        check_is_fitted(self, "trees_")
        if not 0 <= tree_index < self.trees_.n_trees:
            raise ValueError(
                f"tree_index must be 0 to {self.trees_.n_trees - 1}, got tree_index={tree_index}."
            )
        return tree_text(self.trees_, tree_index, decimals=decimals)

    def plot_tree(
        self,
        *,
        tree_index: int = 0,
        ax: Any = None,
        max_depth: int | None = None,
        precision: int = 2,
    ) -> Any:
        """Draw one tree with matplotlib.

        Parameters
        ----------
        tree_index : int, default=0
            Which tree; with more than two classes, round r has the trees r * n_classes and on.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure, which is the answer's ``figure``.
        max_depth : int or None, default=None
            Deepest level shown; what lies below is drawn as "...".
        precision : int, default=2
            Digits of thresholds and values.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        from hardwood.report.plots import plot_tree

        check_is_fitted(self, "trees_")
        return plot_tree(
            self.trees_, tree=tree_index, ax=ax, max_depth=max_depth, precision=precision
        )

    @property
    def feature_importances_(self) -> FloatArray:
        """Robust gain that each feature brought, adding up to 1."""
        check_is_fitted(self, "trees_")
        split = self.trees_.feature != LEAF
        assert self.trees_.gain is not None
        brought: FloatArray = np.bincount(
            self.trees_.feature[split],
            weights=self.trees_.gain[split],
            minlength=self.n_features_in_,
        ).astype(np.float64)
        total = brought.sum()
        return brought / total if total > 0 else brought

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_BLOCK = 1024  # rows of a sparse table that are written out at a time
_ALL_CANDIDATES = 1 << 16  # bins of a feature with method="exact": as many as codes can tell


def refuse_one_of_many(reach: Reach, n_outputs: int) -> None:
    """Stop certified training where rows of one class among many attack."""
    if reach.only is not None and n_outputs > 1:
        raise ValueError(
            f'The threat says only={reach.only!r}, which inner="certified" knows for two '
            f'classes only, and there are {n_outputs}; use inner="exact".'
        )


def as_thresholds(X: Any, ranks: Ranks | None, reach: Reach) -> tuple[Any, Reach]:
    """Rows and threat as certified training knows them: numbers that move up and down.

    A column that can be left blank is not split on at all: whoever is on the other side than
    missing values could be brought there.
    """
    rows = X if ranks is None else ranks.rank(X)
    if reach.blank.any():
        rows = dense(rows).copy()
        rows[:, reach.blank] = np.nan
    ends = {} if ranks is None else ranks.ends(reach.changes)
    return rows, replace(reach, changes={}, blank=np.zeros_like(reach.blank), ranks=ends)
