"""What all estimators share: checking what the user passes, keeping fits whole."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from numbers import Integral
from pathlib import Path
from types import MethodType
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from hardwood import _check
from hardwood._check import BoolArray, Float32Array, FloatArray, IntArray
from hardwood.errors import HardwoodWarning, ModelFileError, UnitWarning
from hardwood.estimators._columns import (
    MOST_CATEGORIES,
    Categories,
    check_codes,
    encode,
    is_frame,
    known_codes,
    learn_categories,
    whole_columns,
)
from hardwood.grow.grow import ClassTreeRules
from hardwood.grow.newton import NewtonRules
from hardwood.model import file
from hardwood.model.columns import Columns
from hardwood.model.load import load_model
from hardwood.model.trees import LEAF, Trees
from hardwood.threat import Reach, Threat, as_threat


class _of_class_or_instance:
    """A method that an instance answers for itself, and a class with a new instance."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: Any) -> Any:
        return MethodType(self.method, owner() if instance is None else instance)


@dataclass(frozen=True)
class Schema:
    """What is known of the columns of a checked table."""

    n_features: int
    names: list[str] | None
    categories: Categories  # names of the categories, by column
    codes: Mapping[int, IntArray]  # their numbers
    whole: list[int]  # columns of whole numbers

    @property
    def about(self) -> dict[str, Any]:
        """What a model says of its columns."""
        named = [feature for feature, names in self.categories.items() if names]
        return {
            "feature_names": self.names,
            "category_names": self.categories,
            # What training did not see goes where missing values go.
            "columns": Columns(takes_unknown=frozenset(named)) if named else None,
        }

    def name(self, feature: int) -> int | str:
        """What the user calls a column."""
        return feature if self.names is None else self.names[feature]


@dataclass(frozen=True)
class ClassData:
    """Checked training data of a classifier; rows without weight are gone."""

    X: Any
    label: IntArray
    classes: npt.NDArray[Any]
    weight: FloatArray | None
    columns: Schema


@dataclass(frozen=True)
class TargetData:
    """Checked training data of a regressor; rows without weight are gone."""

    X: Any
    y: Float32Array
    weight: FloatArray | None
    columns: Schema


Rules = TypeVar("Rules", ClassTreeRules, NewtonRules)

# What validate_data makes of X unless an estimator accepts more.
_DENSE = {"dtype": np.float64}


class RobustEstimator(BaseEstimator):
    """Base of all estimators: a threat, validation, and fits that are whole or not there."""

    eps: Any
    threat: Threat | None
    categorical_features: Any
    n_jobs: int | None
    random_state: Any

    trees_: Trees
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    feature_importances_: Any
    is_categorical_: BoolArray
    _categories: Categories
    _whole: list[int]

    @contextmanager
    def _whole_fit(self) -> Iterator[None]:
        """Leave the estimator as it was if fitting fails or is interrupted."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _reach(self, columns: Schema) -> Reach:
        names = {
            feature: dict(
                zip(codes.tolist(), columns.categories[feature] or codes.tolist(), strict=True)
            )
            for feature, codes in columns.codes.items()
        }
        threat = as_threat(self.eps, self.threat)
        default = inspect.signature(type(self)).parameters["eps"].default
        if self.threat is not None and not np.array_equal(self.eps, default):
            warnings.warn(
                f"Both eps={self.eps!r} and threat are set; the threat counts, and eps does not.",
                UnitWarning,
                stacklevel=4,
            )
        reach = threat.reach(columns.n_features, columns.names, names, columns.whole)
        return _seen_by_a_split(reach, columns)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _monotonic(self, given: Any, columns: Schema) -> npt.NDArray[np.int8]:
        """Signs per feature, empty if there are none; by position or by name."""
        n_features, feature_names = columns.n_features, columns.names
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
        for feature in columns.categories:
            if signs[feature] != 0:
                raise ValueError(
                    f"monotonic_cst has {signs[feature]} for column "
                    f"{columns.name(feature)!r}, which holds "
                    f"categories; they have no order. Use 0 there."
                )
        return signs.astype(np.int8)

    def _check_class_data(
        self, X: Any, y: Any, sample_weight: Any, class_weight: Any, **accepted: Any
    ) -> ClassData:
        """Check X, y and weights of a classifier; sets the fitted attributes about columns."""
        X, y, weight = self._check_data(X, y, sample_weight, **accepted)
        _refuse_odd_labels(y)
        check_classification_targets(y)
        if class_weight is not None:
            by_class = compute_sample_weight(class_weight, y)
            weight = by_class if weight is None else weight * by_class
        X, y, weight = _without_weightless(X, y, weight, class_weight)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}; a classifier needs rows of two or "
                f"more classes (with positive weight)."
            )
        # Not by np.unique's return_inverse, which sorts the positions of all rows, too.
        label = np.searchsorted(classes, y).astype(np.int32)
        return ClassData(X, label, classes, weight, self._columns(X))

    def _check_target_data(self, X: Any, y: Any, sample_weight: Any, **accepted: Any) -> TargetData:
        """Check X, y and weights of a regressor; sets the fitted attributes about columns."""
        X, y, weight = self._check_data(X, y, sample_weight, y_numeric=True, **accepted)
        X, y, weight = _without_weightless(X, y, weight)
        return TargetData(X, _check.targets(y), weight, self._columns(X))

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, **accepted: Any
    ) -> tuple[Any, Any, FloatArray | None]:
        _check.countable(X)
        if not self._continues():
            self._categories = learn_categories(X, self.categorical_features)
        self._whole = whole_columns(X, self._categories)
        numbered = {  # names become numbers that need no check
            feature: names
            for feature, names in self._categories.items()
            if not (is_frame(X) and 0 < len(names) <= MOST_CATEGORIES)
        }
        names = self._feature_names() if self._continues() else None
        X = encode(X, self._categories, names, unseen=np.nan)
        how = {**_DENSE, **accepted, "ensure_all_finite": False, "multi_output": False}
        table = _check.frame_in_rows(X)
        first = not self._continues()  # trees that are kept know the columns by their places
        if table is None:
            X, y = validate_data(self, X, y, reset=first, **how)
            X = _check.in_rows(X)
        else:  # without a copy of the columns in between
            validate_data(self, X, y, reset=first, skip_check_array=True)
            X, y = check_X_y(table, y, estimator=self, **how)
        _check.finite_float32(X)  # says where, and for float32
        check_codes(X, numbered)
        self.is_categorical_ = np.isin(np.arange(X.shape[1]), list(self._categories))
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return X, y, weight

    def _continues(self) -> bool:
        """Whether `fit` goes on with the model that is there."""
        return False

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _columns(self, X: Any) -> Schema:
        codes = known_codes(X, self._categories)
        return Schema(X.shape[1], self._feature_names(), self._categories, codes, self._whole)

    def _check_rows(self, X: Any, **accepted: Any) -> Any:
        """Check rows against the columns seen in fit."""
        # An estimator that was pickled by an earlier release knows no categories.
        X = encode(X, getattr(self, "_categories", {}), self._feature_names())
        table = validate_data(self, X, reset=False, **(_DENSE | accepted), ensure_all_finite=False)
        table = _check.in_rows(table)
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

    def to_xgboost(self) -> Any:
        """Make an ``xgboost.Booster`` of the fitted model, for SHAP, serving and Spark.

        Returns
        -------
        xgboost.Booster
            Its margins are those of this model, bit for bit.
        """
        check_is_fitted(self, "trees_")
        return self.trees_.to_xgboost()

    @_of_class_or_instance
    def load_model(self, path: str | Path) -> Any:
        """Read a model that `save_model` wrote, as a fitted estimator.

        Called on the class it gives a new estimator; called on an estimator, as XGBoost's method
        of this name is, it fills that one.

        Parameters
        ----------
        path : str or Path
            A file of this kind of estimator.

        Returns
        -------
        estimator
            Fitted, with the parameters of the one that was saved; those that a file cannot hold,
            such as callables, are at their defaults.
        """
        cls, trees = type(self), load_model(path)
        about = trees.metadata or {}
        if about.get("estimator") != cls.__name__:
            raise ModelFileError(
                f"{str(path)!r} holds a model of {about.get('estimator') or 'another origin'}, not "
                f"of {cls.__name__}; hardwood.load_model reads it as Trees."
            )
        model = self
        known = cls(threat=about.get("threat")).get_params(deep=False)
        model.set_params(**known)
        for name in [name for name in vars(model) if name.endswith("_")]:
            delattr(model, name)  # of an earlier fit
        for name, value in about.get("parameters", {}).items():
            if name in known and _can_be(model, name, value):
                model.set_params(**{name: value})
        model.trees_ = trees
        model.n_features_in_ = trees.n_features
        if trees.feature_names is not None:
            model.feature_names_in_ = np.array(trees.feature_names, dtype=object)
        model._categories = trees.category_names
        model._whole = []
        model.is_categorical_ = np.isin(np.arange(trees.n_features), list(trees.category_names))
        if trees.task == "classification":
            model.classes_ = np.arange(trees.n_classes) if trees.classes is None else trees.classes
            model.n_classes_ = len(model.classes_)
        model._after_loading()
        return model

    def _after_loading(self) -> None:
        """Set what an estimator knows of its model beside."""

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the threat are called ``threat__eps`` and so on.

        Parameters
        ----------
        **parameters
            Names and values.

        Returns
        -------
        estimator
            The estimator itself.
        """
        of_threat = {
            name.removeprefix("threat__"): value
            for name, value in parameters.items()
            if name.startswith("threat__")
        }
        if of_threat:
            parameters = {k: v for k, v in parameters.items() if not k.startswith("threat__")}
        super().set_params(**parameters)
        if of_threat:
            threat = as_threat(self.eps, self.threat)
            known = [field.name for field in fields(threat)]
            for name in of_threat:
                if name not in known:
                    raise ValueError(f"A threat has no {name!r}; it has {', '.join(known)}.")
            self.threat = replace(threat, **of_threat)
        return self

    def plot_importance(self, *, ax: Any = None, most: int = 20) -> Any:
        """Draw the shares of the robust gain that features brought.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure, which is the answer's ``figure``.
        most : int, default=20
            How many features are shown, the largest ones.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        from hardwood.report.plots import plot_importance

        check_is_fitted(self, "trees_")
        names = self._feature_names() or [f"feature {f}" for f in range(self.n_features_in_)]
        return plot_importance(self.feature_importances_, names, ax=ax, most=most)

    def _n_parallel_trees(self) -> int:
        """Trees of one round, one output: all of a forest, one in boosting."""
        return 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _can_be(model: BaseEstimator, name: str, value: Any) -> bool:
    """Whether a value from a file is one that the parameter can have."""
    before = model.get_params(deep=False)[name]
    model.set_params(**{name: value})
    try:
        model._validate_params()
    except ValueError:
        return False
    finally:
        model.set_params(**{name: before})
    return True


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
    nobody = reach.still()
    largest = reach.limits[:, :2].max()
    if reach.moves and splits(nobody, rules):
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


def refuse_categories(columns: Schema) -> None:
    """Stop where only thresholds are tried."""
    for feature in columns.categories:
        raise ValueError(
            f'method="exact" tries thresholds, but column {columns.name(feature)!r} holds '
            f'categories, which have no order; use method="hist", or categorical_features=None if '
            f"its values are numbers."
        )


def _seen_by_a_split(reach: Reach, columns: Schema) -> Reach:
    """A threat as far as one split of one column can know it: never less than the threat.

    How many columns change, and that of a one-hot group exactly one is 1, is about several columns;
    each of them is taken by itself.
    """
    if (reach.share > 1).any():
        feature = int(np.argmax((reach.share > 1).any(axis=1)))
        raise ValueError(
            f"The threat moves column {columns.name(feature)!r} by more than its value "
            f"({reach.share[feature].max():g} times), and training needs larger values to stay "
            f"larger; use shares up to 1, or a number."
        )
    limits, whole = reach.limits.copy(), reach.whole.copy()
    for group in reach.groups:
        if group.moves:
            limits[list(group.columns)] = 1.0, 1.0, 0.0, 1.0
            whole[list(group.columns)] = True
    return replace(reach, limits=limits, whole=whole, groups=(), max_changes=0)


def _refuse_odd_labels(y: npt.NDArray[Any]) -> None:
    """Refuse labels that are missing, or that cannot be put in order."""
    if y.dtype.kind != "O":
        return
    for row, label in enumerate(y.tolist()):
        if _check.is_missing(label):
            raise ValueError(f"y[{row}] is {label!r}, which is no label; leave the row out.")
    try:
        np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(
            f"y mixes labels that have no order, of the types {', '.join(kinds)}; make them one "
            f"type, for instance with astype(str)."
        ) from None


def attacker(reach: Reach, classes: npt.NDArray[Any] | None) -> int:
    """The position of the class whose rows alone attack; -1: all do."""
    if reach.only is None:
        return -1
    known = [] if classes is None else classes.tolist()
    if reach.only not in known:
        what = f"the classes are {known!r}" if known else "this is a regression"
        raise ValueError(f"The threat says only={reach.only!r}, but {what}.")
    return known.index(reach.only)


def refuse_kinds(reach: Reach) -> None:
    """Stop where every threshold is tried, and only moves of numbers are known."""
    kinds = {"only=": reach.only is not None, "blank=": bool(reach.blank.any())}
    for word, there in kinds.items():
        if there:
            raise ValueError(
                f'The threat has {word}, which method="exact" does not know; use method="hist".'
            )
