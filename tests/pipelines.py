"""Pipelines of many kinds over one table of a lender's, and rows around every split of theirs."""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import hardwood as hw

NUMBERS = ["income", "age", "debt", "loans", "ratio"]
CATEGORIES = ["job", "city", "owner", "grade"]


def credit(n=400, seed=0):
    """A frame with numbers, counts, blanks, truth values and words; and labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": np.exp(rng.normal(10, 0.5, n)).round(2),
            "job": rng.choice(["clerk", "driver", "nurse", "pilot", "smith"], n),
            "age": rng.integers(18, 80, n),
            "city": rng.choice(list("ABCDEF"), n, p=[0.4, 0.3, 0.2, 0.07, 0.02, 0.01]),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(1, 5000, n)),
            "owner": rng.random(n) < 0.5,
            "loans": rng.poisson(1, n),
            "grade": rng.choice(np.array(["low", "mid", "high", None], dtype=object), n),
            "ratio": rng.random(n),
            "note": rng.choice(["x", "y"], n),
        }
    )
    score = (frame["income"] > 22000) * 1.0 + frame["job"].isin(["nurse", "pilot"]) * 1.0
    score += (frame["loans"] == 0) + (frame["grade"] == "high") + (frame["debt"] < 3000)
    return frame, (score + rng.normal(0, 0.7, n) > 2).astype(int).to_numpy()


def halved(X):
    return np.asarray(X, dtype=float) / 2 - 1


halved.monotone = "rising"


def mirrored(X):
    return -3 * X


mirrored.monotone = "falling"


def _bins(encode):
    return make_pipeline(
        SimpleImputer(), KBinsDiscretizer(4, encode=encode, quantile_method="averaged_inverted_cdf")
    )


NUMBER_STEPS = {
    "standard": StandardScaler,
    "passthrough": lambda: "passthrough",
    "min max, clipped": lambda: MinMaxScaler((-1, 2), clip=True),
    "robust": RobustScaler,
    "max abs": MaxAbsScaler,
    "yeo-johnson": PowerTransformer,
    "box-cox": lambda: make_pipeline(
        MinMaxScaler((1, 3)), PowerTransformer("box-cox", standardize=False)
    ),
    "uniform quantiles": lambda: QuantileTransformer(n_quantiles=50),
    "normal quantiles": lambda: QuantileTransformer(n_quantiles=50, output_distribution="normal"),
    "bins": lambda: _bins("ordinal"),
    "one-hot bins": lambda: _bins("onehot"),
    "dense one-hot bins": lambda: _bins("onehot-dense"),
    "one-hot of bins": lambda: make_pipeline(_bins("ordinal"), OneHotEncoder()),
    "bins, scaled": lambda: make_pipeline(StandardScaler(), _bins("onehot"), MaxAbsScaler()),
    "binary": lambda: make_pipeline(SimpleImputer(), StandardScaler(), Binarizer(threshold=0.2)),
    "log1p": lambda: make_pipeline(FunctionTransformer(np.log1p), SimpleImputer()),
    "sqrt, scaled": lambda: make_pipeline(FunctionTransformer(np.sqrt), StandardScaler()),
    "negative": lambda: make_pipeline(FunctionTransformer(np.negative), RobustScaler()),
    "rounded": lambda: FunctionTransformer(np.floor),
    "arcus tangens": lambda: make_pipeline(StandardScaler(), FunctionTransformer(np.arctan)),
    "declared": lambda: make_pipeline(FunctionTransformer(halved), FunctionTransformer(mirrored)),
    "imputed, told": lambda: make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    "imputed by a constant": lambda: SimpleImputer(strategy="constant", fill_value=-1),
    "a marker imputed": lambda: make_pipeline(
        SimpleImputer(strategy="constant", fill_value=0),
        SimpleImputer(missing_values=0, strategy="median", add_indicator=True),
    ),
    "missing indicator": lambda: make_union(
        MissingIndicator(), make_pipeline(SimpleImputer(), MinMaxScaler())
    ),
    "union, weighted": lambda: FeatureUnion(
        [("a", _bins("ordinal")), ("b", make_pipeline(SimpleImputer(), StandardScaler()))],
        transformer_weights={"a": -0.5},
    ),
    "chosen": lambda: make_pipeline(SimpleImputer(), SelectKBest(k=3), StandardScaler()),
}

CATEGORY_STEPS = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore"),
    "one-hot, strict": OneHotEncoder,
    "one-hot, dense": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "one-hot, first dropped": lambda: OneHotEncoder(drop="first", handle_unknown="ignore"),
    "one-hot, of two dropped": lambda: OneHotEncoder(drop="if_binary"),
    "one-hot, rare together": lambda: OneHotEncoder(
        min_frequency=30, handle_unknown="infrequent_if_exist"
    ),
    "one-hot, at most three": lambda: OneHotEncoder(max_categories=3, handle_unknown="ignore"),
    "ordinal": lambda: OrdinalEncoder(encoded_missing_value=-2),
    "ordinal, unknown below": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-5
    ),
    "ordinal, unknown above": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=99,
        min_frequency=30,
        encoded_missing_value=-3,
    ),
    "target means": lambda: TargetEncoder(random_state=0),
    "imputed": lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore"),
    ),
    "ordinal, scaled": lambda: make_pipeline(
        OrdinalEncoder(encoded_missing_value=-1), StandardScaler(), FunctionTransformer(np.tanh)
    ),
}

MODELS = {
    "XGBoost": lambda: XGBClassifier(n_estimators=8, max_depth=4, n_jobs=1),
    "LightGBM": lambda: LGBMClassifier(n_estimators=8, num_leaves=8, n_jobs=1, verbose=-1),
    "forest": lambda: RandomForestClassifier(5, max_depth=5, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=8, max_depth=4),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=8, random_state=0),
    "hardwood": lambda: hw.RobustGradientBoostingClassifier(n_estimators=4, eps=0.01, n_jobs=1),
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(5, max_depth=6, random_state=0),
}
_TAKES_NO_BLANKS = ("gradient boosting",)
_TAKES_NOTHING_SPARSE = ("histogram boosting",)


def kinds(n=64):
    """Names of steps, encoders and models, every one several times and in changing company."""
    rng = np.random.default_rng(0)
    some = []
    for k in range(n):
        steps = list(NUMBER_STEPS)[k % len(NUMBER_STEPS)]
        encoder = list(CATEGORY_STEPS)[k % len(CATEGORY_STEPS)]
        some.append((steps, encoder, list(MODELS)[int(rng.integers(len(MODELS)))]))
    return some


def pipeline(steps, encoder, model):
    """A pipeline of these kinds, not fitted."""
    numbers = NUMBER_STEPS[steps]()
    if model in _TAKES_NO_BLANKS:
        numbers = (
            SimpleImputer() if numbers == "passthrough" else make_pipeline(SimpleImputer(), numbers)
        )
    dense = {"sparse_threshold": 0} if model in _TAKES_NOTHING_SPARSE else {}
    before = ColumnTransformer(
        [
            ("numbers", numbers, NUMBERS),
            ("categories", CATEGORY_STEPS[encoder](), CATEGORIES),
        ],
        **dense,
    )
    return make_pipeline(before, MODELS[model]())


def around(trees, frame, n=600, seed=0):
    """Rows on every threshold and one float to each side, with every category, unknowns, blanks."""
    rng = np.random.default_rng(seed)
    rows = {}
    for f, name in enumerate(trees.feature_names):
        if f in trees.columns.unread:
            rows[name] = frame[name].sample(n, replace=True, random_state=0).to_numpy()
            continue
        if f in trees.category_names:
            values = list(trees.category_names[f])
            values += ["never seen"] if f in trees.columns.takes_unknown else []
        else:
            t = np.unique(trees.threshold[trees.feature == f])
            t = t[np.abs(t) < 1e30]  # beyond, some libraries overflow
            for _, low, high in (one for one in trees.columns.refused if one[0] == f):
                t = t[(t < low) | (t > np.nextafter(high, np.inf))]
            values = [*t, *np.nextafter(t, -np.inf), *np.nextafter(t, np.inf), frame[name].max()]
        values += [] if f in trees.columns.needs_value else [np.nan]
        column = np.empty(max(n, len(values)), dtype=object)
        column[:] = [values[i % len(values)] for i in range(len(column))]
        rows[name] = rng.permutation(column)
    n = max(map(len, rows.values()))
    table = pd.DataFrame({name: np.resize(column, n) for name, column in rows.items()})
    for f, name in enumerate(trees.feature_names):
        if f not in trees.category_names and f not in trees.columns.unread:
            table[name] = table[name].astype(float)
    return table
