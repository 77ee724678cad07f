"""Which rows judge the rounds of boosting: given ones, or some that are held out."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split

from hardwood._check import Float32Array, FloatArray
from hardwood.ensemble.boosting import Model, Scorer, Validation
from hardwood.ensemble.loss import Loss
from hardwood.estimators._base import RobustEstimator, TargetData


def accepted(X: Any) -> dict[str, Any]:
    """What X may be, and become: what float32 holds, as the integers of images, takes no more."""
    dtype = getattr(X, "dtype", None)
    small = isinstance(dtype, np.dtype) and np.can_cast(dtype, np.float32)
    types = (np.float32, np.float64) if small else (np.float64, np.float32)
    return {"dtype": types, "accept_sparse": ("csr", "csc")}


class ValidatedEstimator(RobustEstimator, ABC):
    """An estimator that looks at validation rows while it is trained."""

    early_stopping: bool
    validation_fraction: float
    scoring: Any

    _known: tuple[FloatArray, FloatArray] | None = None  # rows whose margins are at hand

    @abstractmethod
    def _as_numbers(self, y: Any, n_rows: int, loss: Loss) -> Float32Array:
        """Labels or targets as the loss takes them."""

    def _strata(self, data: TargetData) -> Any:
        """What rows that are held out shall have in the same shares as the others."""
        return None

    def _as_given(self, y: Float32Array) -> npt.NDArray[Any]:
        """Labels as the user has them."""
        return y

    def _held_out(
        self, data: TargetData, loss: Loss, X_val: Any, y_val: Any, eval_set: Any
    ) -> tuple[TargetData, dict[str, TargetData]]:
        """The rows to train on, and validation rows by name: given ones, or some held out."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together; pass both or none.")
        given: dict[str, tuple[Any, Any]] = {}
        if X_val is not None:
            given["validation"] = X_val, y_val
        if eval_set is not None:
            if given:
                raise ValueError("X_val and eval_set both give validation rows; pass one of them.")
            given = _named_pairs(eval_set)
        if given:
            return data, {
                name: self._checked_validation(*pair, name, data, loss)
                for name, pair in given.items()
            }
        if not self.early_stopping:
            return data, {}
        data, held = self._hold_out(data, self._strata(data))
        return data, {"validation": held}

    def _hold_out(self, data: TargetData, stratify: Any) -> tuple[TargetData, TargetData]:
        n = data.X.shape[0]
        try:
            kept, held = train_test_split(
                np.arange(n),
                test_size=self.validation_fraction,
                random_state=self._seed(),
                stratify=stratify,
            )
        except ValueError as error:
            raise ValueError(
                f"early_stopping cannot hold out validation_fraction={self.validation_fraction} of "
                f"{n} rows: {str(error).rstrip('.')}. Pass X_val and y_val, or more rows."
            ) from error
        return _some_rows(data, kept), _some_rows(data, held)

    def _checked_validation(
        self, X: Any, y: Any, name: str, data: TargetData, loss: Loss
    ) -> TargetData:
        number = name.removeprefix("validation").removeprefix("_")
        called = ("X_val", "y_val") if not number else (f"eval_set[{number}]",) * 2
        try:
            rows = self._check_rows(X, **accepted(X))
        except ValueError as error:
            raise ValueError(f"{called[0]} cannot be used: {error}") from error
        try:
            numbers = self._as_numbers(y, rows.shape[0], loss)
        except ValueError as error:
            raise ValueError(f"{called[1]} cannot be used: {error}") from error
        return TargetData(rows, numbers, None, data.columns)

    def _scorer(self, model: Model, held_out: TargetData) -> Scorer:
        scorer = check_scoring(self, self.scoring)
        X, y = dense(held_out.X), self._as_given(held_out.y)

        def score(validation: Validation) -> float:
            # A fitted estimator of the rounds so far, that knows the margins of these rows already.
            fitted = copy.copy(self)
            fitted.trees_ = model.for_users(model.trees())
            fitted._known = (X, validation.margin.astype(np.float64))
            kwargs = {} if validation.weight is None else {"sample_weight": validation.weight}
            return float(scorer(fitted, X, y, **kwargs))

        return score


def dense(X: Any) -> FloatArray:
    """A table as float64, written out where it is sparse."""
    return np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def _named_pairs(eval_set: Any) -> dict[str, tuple[Any, Any]]:
    """XGBoost's list of (X, y), with XGBoost's names; one pair alone is a list of one."""
    pairs = [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(pairs, list) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs
    ):
        raise ValueError(f"eval_set must be a list of pairs (X, y), got {type(eval_set).__name__}.")
    return {f"validation_{at}": (pair[0], pair[1]) for at, pair in enumerate(pairs)}


def _some_rows(data: TargetData, rows: npt.NDArray[np.intp]) -> TargetData:
    weight = None if data.weight is None else data.weight[rows]
    return TargetData(data.X[rows], data.y[rows], weight, data.columns)
