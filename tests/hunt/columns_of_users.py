"""Small random models as their users have them: pipelines over raw columns, native categories."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier

import hardwood as hw
from pipelines import CATEGORY_STEPS, MODELS, NUMBER_STEPS

Rng = np.random.Generator
WORDS = {"job": ("clerk", "nurse", "pilot"), "city": ("Aix", "Bonn", "Cork", "Deal")}


@dataclass(frozen=True)
class User:
    """A fitted model, rows of its user's, and what the columns hold."""

    model: Any
    X: pd.DataFrame
    classes: Any
    numbers: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    may_be_blank: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    proba: bool = True  # a threshold can be asked for

    def label(self, X: pd.DataFrame, threshold: float | None) -> np.ndarray:
        if threshold is None:
            return np.asarray(self.model.predict(X)).reshape(len(X))
        second = self.model.predict_proba(X)[:, 1] >= threshold
        return np.asarray(self.classes)[second.astype(int)]


def frame_of(rng: Rng, dtype: str, categories: bool = True) -> pd.DataFrame:
    """Whole numbers, numbers, numbers with blanks, words; a few values each."""
    n = int(rng.integers(24, 49))
    content: dict[str, Any] = {}
    if categories or rng.random() < 0.5:
        for name, words in WORDS.items():
            if name == "job" or rng.random() < 0.5:
                held = [*words, *rng.choice(words, n - len(words))]  # all of them occur
                content[name] = pd.Series(held, dtype=dtype)
    if rng.random() < 0.8:
        content["age"] = rng.integers(0, 6, n)
    if rng.random() < 0.7 or not content:
        content["pay"] = rng.choice(rng.normal(size=4).round(2) * 4, n)
    if rng.random() < 0.5:
        content["debt"] = np.where(rng.random(n) < 0.2, np.nan, rng.integers(-2, 4, n) / 2)
    X = shuffled(rng, pd.DataFrame(content))
    if dtype == "category":
        for name in set(WORDS) & set(X.columns):
            X[name] = X[name].cat.set_categories(WORDS[name])
    return X


def shuffled(rng: Rng, X: pd.DataFrame) -> pd.DataFrame:
    return X.iloc[:, rng.permutation(X.shape[1])]


def labels_of(rng: Rng, X: pd.DataFrame, k: int) -> np.ndarray:
    score = rng.normal(size=len(X)) * 0.5
    for name in X.columns:
        if name in WORDS:
            worth = dict(zip(WORDS[name], rng.normal(size=len(WORDS[name])) * 2, strict=True))
            score += np.array([worth[word] for word in X[name].astype(str)])
        else:
            column = X[name].fillna(rng.normal()).to_numpy(float)
            score += rng.normal() * (column - column.mean()) / (column.std() + 1e-9)
    y = np.argsort(np.argsort(score)) * k // len(X)
    y[:k] = np.arange(k)
    names = [np.arange(k), np.array(["no", "perhaps", "yes"])[:k], np.array([3, 7, 11])[:k]]
    return names[rng.integers(3)][y]


def _user(model: Any, X: pd.DataFrame, classes: Any, **more: Any) -> User:
    group = more.get("group", ())
    categories = {name: WORDS[name] for name in X.columns if name in WORDS}
    taken = {*categories, *group, "note"}
    numbers = tuple(name for name in X.columns if name not in taken)
    return User(model, X, classes, numbers, categories, proba=len(classes) == 2, **more)


# --- native categories ---------------------------------------------------------------------------


def _xgboost(rng: Rng) -> Any:
    return XGBClassifier(
        n_estimators=int(rng.integers(1, 5)),
        max_depth=int(rng.integers(1, 4)),
        learning_rate=float(rng.choice([0.3, 1.0])),
        min_child_weight=0,
        enable_categorical=True,
        max_cat_to_onehot=int(rng.choice([1, 10])),
        n_jobs=1,
    )


def _lightgbm(rng: Rng) -> Any:
    return LGBMClassifier(
        n_estimators=int(rng.integers(1, 5)),
        num_leaves=int(rng.integers(2, 7)),
        learning_rate=float(rng.choice([0.3, 1.0])),
        min_child_samples=1,
        min_child_weight=0,
        min_data_per_group=1,
        cat_smooth=0.1,
        max_cat_to_onehot=int(rng.choice([1, 10])),
        min_data_in_bin=1,
        n_jobs=1,
        verbose=-1,
    )


def _catboost(rng: Rng) -> Any:
    return CatBoostClassifier(
        iterations=int(rng.integers(1, 5)),
        depth=int(rng.integers(1, 4)),
        learning_rate=float(rng.choice([0.3, 1.0])),
        one_hot_max_size=int(rng.choice([2, 10])),
        max_ctr_complexity=1,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
        **({"loss_function": "MultiClass"} if rng.random() < 0.4 else {}),  # for two classes, too
    )


def _histogram(rng: Rng) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=int(rng.integers(1, 5)),
        max_depth=int(rng.integers(1, 4)),
        learning_rate=float(rng.choice([0.3, 1.0])),
        min_samples_leaf=1,
        early_stopping=False,
        categorical_features="from_dtype",
    )


def _boosting(rng: Rng) -> Any:
    return hw.RobustGradientBoostingClassifier(
        n_estimators=int(rng.integers(1, 5)),
        max_depth=int(rng.integers(1, 4)),
        learning_rate=float(rng.choice([0.3, 1.0])),
        eps=float(rng.choice([0, 0.3])),
        min_child_weight=0.0,
        inner=str(rng.choice(["exact", "certified"])),
        n_jobs=1,
    )


def _tree(rng: Rng) -> Any:
    return hw.RobustDecisionTreeClassifier(
        max_depth=int(rng.integers(1, 5)), eps=float(rng.choice([0, 0.3]))
    )


def _forest(rng: Rng) -> Any:
    return hw.RobustRandomForestClassifier(
        n_estimators=int(rng.integers(1, 5)),
        max_depth=int(rng.integers(1, 4)),
        eps=float(rng.choice([0, 0.3])),
        criterion=str(rng.choice(["gini", "entropy", "newton"])),
        random_state=0,
        n_jobs=1,
    )


NATIVE = {
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
    "CatBoost": _catboost,
    "HistGradientBoosting": _histogram,
    "our boosting": _boosting,
    "our tree": _tree,
    "our forest": _forest,
}


def native(rng: Rng, make: Callable[[Rng], Any], steps: bool = False) -> User:
    """A model that splits on the categories of a frame itself, alone or after steps of others."""
    X = frame_of(rng, "category")
    k = 3 if rng.random() < 0.25 else 2
    y = labels_of(rng, X, k)
    classes, codes = np.unique(y, return_inverse=True)
    model = make(rng)
    if isinstance(model, XGBClassifier):  # knows no labels but 0, 1, ...
        classes, y = np.arange(k), codes
    blank = tuple(X.columns) if rng.random() < 0.5 else ()
    more = {}
    if isinstance(model, CatBoostClassifier):  # takes no blank categories
        blank = tuple(name for name in blank if name == "debt")
        more["cat_features"] = [name for name in X.columns if name in WORDS]
    elif blank:  # scikit-learn wants to have seen a blank
        for f, name in enumerate(X.columns):
            X.loc[len(X) - 1 - f, name] = np.nan
    if steps:
        numbers = [name for name in X.columns if name not in WORDS]
        step = NUMBER_STEPS[str(rng.choice(["standard", "robust", "negative", "rounded"]))]()
        before = ColumnTransformer(
            [("numbers", step, numbers)], remainder="passthrough", verbose_feature_names_out=False
        )
        model = make_pipeline(before.set_output(transform="pandas"), model)
        more = {f"{model.steps[-1][0]}__{name}": given for name, given in more.items()}
    model.fit(X, y, **more)
    return _user(model, X, classes, may_be_blank=blank)


def passed_through(rng: Rng) -> User:
    """Categories that reach a model behind steps as they are."""
    return native(rng, list(NATIVE.values())[rng.integers(len(NATIVE))], steps=True)


def dummies(rng: Rng) -> User:
    """A model of numbers, three of which are one-hot."""
    X = frame_of(rng, "object", categories=False).select_dtypes("number")
    kind = rng.integers(3, size=len(X))
    group = ("kind a", "kind b", "kind c")
    for k, name in enumerate(group):
        X[name] = (kind == k).astype(int)
    X = shuffled(rng, X)
    y = labels_of(rng, X, 2)
    classes, codes = np.unique(y, return_inverse=True)
    makes = [*NATIVE.values(), lambda rng: RandomForestClassifier(3, max_depth=3, random_state=0)]
    model = makes[rng.integers(len(makes))](rng)
    if isinstance(model, XGBClassifier | LGBMClassifier):
        X = X.rename(columns=lambda name: name.replace(" ", "_"))
        group = tuple(name.replace(" ", "_") for name in group)
    if isinstance(model, XGBClassifier):
        classes, y = np.arange(2), codes
    model.fit(X, y)
    return _user(model, X, classes, group=group)


# --- pipelines -----------------------------------------------------------------------------------


def pipeline(rng: Rng, wrap: str = "") -> User:
    """Steps of any kind before a model of any library."""
    X = frame_of(rng, "object")
    X["note"] = rng.choice(["x", "y"], len(X))
    y = labels_of(rng, X.drop(columns="note"), 2)
    classes, codes = np.unique(y, return_inverse=True)
    numbers = [name for name in X.columns if name not in WORDS and name != "note"]
    words = [name for name in X.columns if name in WORDS]
    # What is undefined for negative numbers, or needs more columns than there are, stays aside.
    steps = [s for s in NUMBER_STEPS if s not in ("box-cox", "log1p", "sqrt, scaled", "chosen")]
    step = NUMBER_STEPS[str(rng.choice(steps))]()
    encoder = CATEGORY_STEPS[str(rng.choice([c for c in CATEGORY_STEPS if "rare" not in c]))]()
    name = str(rng.choice([m for m in MODELS if m != "gradient boosting"]))
    before = ColumnTransformer(
        [("numbers", step, numbers), ("words", encoder, words)],
        sparse_threshold=0 if "histogram" in name else 0.3,
    )
    source = make_pipeline(before, MODELS[name]())
    settings = {"min_child_samples": 1, "min_child_weight": 0, "min_samples_leaf": 1}
    known = source[-1].get_params()
    source[-1].set_params(**{key: value for key, value in settings.items() if key in known})
    source[-1].set_params(**{k: 3 for k in ("n_estimators", "max_iter") if k in known})
    if "max_depth" in known and known["max_depth"] != -1:
        source[-1].set_params(max_depth=3)
    if name == "XGBoost":
        classes, y = np.arange(2), codes
    if wrap == "threshold":
        source = FixedThresholdClassifier(source, threshold=float(rng.choice([0.3, 0.6])))
    elif wrap == "calibrated":
        kind = str(rng.choice(["sigmoid", "isotonic"]))
        source = CalibratedClassifierCV(source, method=kind, ensemble=False, cv=2)
    elif wrap == "search":
        source = GridSearchCV(source, {}, cv=2)
    source.fit(X, y)
    blank = tuple(name for name in numbers if rng.random() < 0.5 and takes_blank(source, X, name))
    return _user(source, X, classes, may_be_blank=blank)


def takes_blank(source: Any, X: pd.DataFrame, name: str) -> bool:
    """Whether a model takes rows without a value in a column."""
    try:
        source.predict(X[:1].assign(**{name: np.nan}))
    except ValueError:
        return False
    return True


KINDS: dict[str, Callable[[Rng], User]] = {
    **{f"native {name}": partial(native, make=make) for name, make in NATIVE.items()},
    "native, after steps": passed_through,
    "dummies": dummies,
    "pipeline": pipeline,
    "pipeline, again": pipeline,
    "pipeline, threshold": partial(pipeline, wrap="threshold"),
    "pipeline, calibrated": partial(pipeline, wrap="calibrated"),
    "pipeline, search": partial(pipeline, wrap="search"),
}
