"""What all estimators share: checking what the user passes, keeping fits whole."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hardwood import _check
from hardwood._check import FloatArray, IntArray
from hardwood.errors import HardwoodWarning
from hardwood.grow.grow import ClassTreeRules
from hardwood.grow.newton import NewtonRules
from hardwood.model import file
from hardwood.model.trees import LEAF, Trees
from hardwood.threat import Reach, Threat, as_threat


@dataclass(frozen=True)
class ClassData:
    """Checked training data of a classifier; rows without weight are gone."""

    X: Any
    label: IntArray
    classes: npt.NDArray[Any]
    weight: FloatArray | None
    feature_names: list[str] | None


@dataclass(frozen=True)
class TargetData:
    """Checked training data of a regressor; rows without weight are gone."""

    X: Any
    y: npt.NDArray[np.float32]
    weight: FloatArray | None
    feature_names: list[str] | None


Rules = TypeVar("Rules", ClassTreeRules, NewtonRules)

# What validate_data makes of X unless an estimator accepts more.
_DENSE = {"dtype": np.float64, "order": "C"}


class RobustEstimator(BaseEstimator):
    """Base of all estimators: a threat, validation, and fits that are whole or not there."""

    eps: Any
    threat: Threat | None
    n_jobs: int | None
    random_state: Any

    trees_: Trees

    @contextmanager
    def _whole_fit(self) -> Iterator[None]:
        """Leave the estimator as it was if fitting fails or is interrupted."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _reach(self, n_features: int, feature_names: list[str] | None) -> Reach:
        reach = as_threat(self.eps, self.threat).reach(n_features, feature_names)
        return reach.only_numbers("Training")

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _monotonic(
        self, given: Any, n_features: int, feature_names: list[str] | None
    ) -> npt.NDArray[np.int8]:
        """Signs per feature, empty if there are none; by position or by name."""
        if given is None:
            return np.empty(0, dtype=np.int8)
        if isinstance(given, Mapping):
            unknown = [name for name in given if name not in (feature_names or ())]
            if unknown:
                raise ValueError(
                    f"monotonic_cst names the feature {unknown[0]!r}, but the columns are "
                    f"{feature_names!r}."
                )
            given = [given.get(name, 0) for name in feature_names or ()]
        signs = np.asarray(given)
        if signs.shape != (n_features,):
            raise ValueError(
                f"monotonic_cst has {signs.size} entries but X has {n_features} features; "
                f"pass one of -1, 0, 1 per feature."
            )
        if not np.isin(signs, (-1, 0, 1)).all():
            wrong = signs[~np.isin(signs, (-1, 0, 1))][0]
            raise ValueError(f"monotonic_cst must hold -1, 0 or 1, got {wrong}.")
        return signs.astype(np.int8)

    def _check_class_data(
        self, X: Any, y: Any, sample_weight: Any, class_weight: Any, **accepted: Any
    ) -> ClassData:
        """Check X, y and weights of a classifier; sets the fitted attributes about columns."""
        X, y, weight = self._check_data(X, y, sample_weight, **accepted)
        check_classification_targets(y)
        if class_weight is not None:
            by_class = compute_sample_weight(class_weight, y)
            weight = by_class if weight is None else weight * by_class
        X, y, weight = _without_weightless(X, y, weight, class_weight)
        classes, label = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes[0]!r}; a classifier needs rows of two or more "
                f"classes (with positive weight)."
            )
        return ClassData(X, label.astype(np.int32), classes, weight, self._feature_names())

    def _check_target_data(self, X: Any, y: Any, sample_weight: Any, **accepted: Any) -> TargetData:
        """Check X, y and weights of a regressor; sets the fitted attributes about columns."""
        X, y, weight = self._check_data(X, y, sample_weight, y_numeric=True, **accepted)
        X, y, weight = _without_weightless(X, y, weight)
        return TargetData(X, _check.targets(y), weight, self._feature_names())

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, **accepted: Any
    ) -> tuple[Any, Any, FloatArray | None]:
        _check.countable(X)
        X, y = validate_data(
            self, X, y, **(_DENSE | accepted), ensure_all_finite=False, multi_output=False
        )
        _check.finite_float32(X)  # says where, and for float32
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return X, y, weight

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _check_rows(self, X: Any, **accepted: Any) -> Any:
        """Check rows against the columns seen in fit."""
        table = validate_data(self, X, reset=False, **(_DENSE | accepted), ensure_all_finite=False)
        _check.finite_float32(table)
        return table

    def _rows(self, X: Any) -> FloatArray:
        """Rows to predict."""
        check_is_fitted(self, "trees_")
        rows: FloatArray = self._check_rows(X)
        return rows

    def _margin(self, X: Any) -> FloatArray:
        rows = self._rows(X)
        return self.trees_.margin(rows, n_jobs=self.n_jobs)

    def save_model(self, path: str | Path) -> None:
        """Write the fitted model to a file that stock xgboost loads, too.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.json`` or ``.ubj``; `load_model` reads it.
        """
        check_is_fitted(self, "trees_")
        parameters = self.get_params(deep=False)
        file.save(
            self.trees_,
            path,
            metadata={
                "estimator": type(self).__name__,
                "parameters": {k: v for k, v in parameters.items() if k not in ("eps", "threat")},
                "threat": as_threat(self.eps, self.threat),
            },
            n_parallel_trees=self._n_parallel_trees(),
        )

    def _n_parallel_trees(self) -> int:
        """Trees of one round, one output: all of a forest, one in boosting."""
        return 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _check_weight(weight: FloatArray, class_weight: Any) -> None:
    with np.errstate(over="ignore"):
        total = weight.sum()
    if (weight < 0).any() or not np.isfinite(total):
        # Sample weights were checked one by one, so it is the class weights or the sum.
        raise ValueError(
            f"Weights must be >= 0 and have a finite sum, got class_weight={class_weight!r} and a "
            f"sum of {total}; rescale them."
        )
    if not weight.any():
        raise ValueError(
            "All weights are zero (sample_weight times class_weight); give some row a positive one."
        )


def warn_if_constant(
    trees: Trees,
    reach: Reach,
    rules: Rules,
    splits: Callable[[Reach, Rules], bool],
    stacklevel: int,
) -> None:
    """Say why a model has no split, unless there is nothing to learn.

    `splits` tells whether a first tree would have a split under another threat and other rules.
    """
    if np.any(trees.feature != LEAF):
        return
    nobody = Threat(0).reach(trees.n_features)
    largest = reach.limits[:, :2].max()
    if largest > 0 and splits(nobody, rules):
        why = (
            f"No split survives the threat (largest step {largest:g}): for every "
            f"threshold of {trees.n_features} features the adversary can move enough rows across "
            f"to leave no robust gain. The model is constant; use a smaller eps, or scale the "
            f"features so that eps fits their range."
        )
    else:
        lenient = rules.LENIENT
        strict = {name: getattr(rules, name) for name in lenient}
        strict = {name: value for name, value in strict.items() if value != lenient[name]}
        alone = [name for name in strict if splits(nobody, replace(rules, **{name: lenient[name]}))]
        if not alone and not (strict and splits(nobody, replace(rules, **lenient))):
            return  # the data allow no split
        named = ", ".join(f"{name}={strict[name]:g}" for name in (alone or strict))
        why = f"No split is allowed by {named}, with or without a threat. The model is constant; "
        if alone == ["min_child_weight"]:
            assert trees.cover is not None
            why += (
                f"each side of a split needs that much of the sum of hessians, and all rows "
                f"together have {trees.cover[0]:g}. Use a smaller min_child_weight."
            )
        else:
            why += "use smaller values."
    warnings.warn(why, HardwoodWarning, stacklevel=stacklevel + 1)


def _without_weightless(
    X: Any, y: Any, weight: FloatArray | None, class_weight: Any = None
) -> tuple[Any, Any, Any]:
    """Check the weights, leave out rows that have none; all ones are no weights."""
    if weight is None:
        return X, y, None
    _check_weight(weight, class_weight)
    if not weight.all():
        kept = np.flatnonzero(weight > 0)
        X, y, weight = X[kept], y[kept], weight[kept]
    return X, y, None if np.all(weight == 1) else weight


def count_of(given: Any, n: int) -> int:
    """A number of rows from a number or from a share of n, rounded up."""
    return int(given) if isinstance(given, Integral) else max(1, int(np.ceil(given * n)))


def features_tried(given: Any, n_features: int) -> int:
    """Number of features a node looks at, from scikit-learn's forms of max_features."""
    if given is None:
        return n_features
    if given == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if given == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(given, Integral):
        return min(int(given), n_features)
    return max(1, int(given * n_features))
