"""Small random pipelines against every move of a threat, through the pipeline's own predict."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import hardwood as hw
from pipelines import CATEGORY_STEPS, MODELS, NUMBER_STEPS

STEPS = ["standard", "passthrough", "yeo-johnson", "one-hot bins", "negative", "imputed, told"]
STEPS += [
    "a marker imputed",
    "missing indicator",
    "union, weighted",
    "bins, scaled",
    "arcus tangens",
]
WORDS = ["clerk", "nurse", "pilot"]


def some_rows(rng, n=40):
    """Whole numbers, with blanks in one column, and words; labels that hang on all of them."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 5, n),
            "job": rng.choice(WORDS, n),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 5, n)),
            "note": rng.choice(["x", "y"], n),
        }
    )
    score = frame["age"] + (frame["job"] == "nurse") * 3 - frame["debt"].fillna(4)
    y = np.array(score + rng.normal(0, 1, n) > 1, dtype=int)
    y[:2] = 0, 1
    return frame, y


def some_pipeline(rng, frame, y):
    encoder = str(rng.choice([name for name in CATEGORY_STEPS if "rare" not in name]))
    numbers = NUMBER_STEPS[str(rng.choice(STEPS))]()
    model = str(rng.choice([name for name in MODELS if name not in ("gradient boosting",)]))
    before = ColumnTransformer(
        [("numbers", numbers, ["age", "debt"]), ("words", CATEGORY_STEPS[encoder](), ["job"])],
        sparse_threshold=0 if "histogram" in model else 0.3,
    )
    source = make_pipeline(before, MODELS[model]())
    if "min_child_samples" in source[-1].get_params():
        source[-1].set_params(min_child_samples=1, min_child_weight=0)
    return source.fit(frame, y)


def some_threat(rng):
    moves = {"age": int(rng.integers(0, 3)), "debt": (int(rng.integers(0, 3)), 1)}
    allowed = {word: set(WORDS) for word in WORDS}
    if rng.random() < 0.5:
        moves["job"] = hw.ANY
    else:
        moves["job"] = {"clerk": ["nurse"], "pilot": ["clerk", "nurse"]}
        allowed = {"clerk": {"clerk", "nurse"}, "nurse": {"nurse"}, "pilot": set(WORDS)}
    more = {"blank": ["debt"]} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        more["max_changes"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        more["only"] = int(rng.integers(2))
    return hw.Threat(moves, integer=["age", "debt"], **more), allowed


def all_moves(row, label, threat, allowed):
    """Every row that the threat allows."""
    if threat.only is not None and label != threat.only:
        return [tuple(row)]
    age, job, debt, note = row
    ages = range(age - threat.eps["age"], age + threat.eps["age"] + 1)
    debts = [debt]
    if not np.isnan(debt):
        down, up = threat.eps["debt"]
        debts = [*np.arange(debt - down, debt + up + 1), *([np.nan] if threat.blank else [])]
    moves = itertools.product(ages, sorted(allowed[job]), debts, [note])
    most = threat.max_changes or 3
    return [move for move in moves if _n_changes(move, row) <= most]


def _n_changes(move, row):
    return sum(
        a != b and not (isinstance(a, float) and np.isnan(a) and np.isnan(b))
        for a, b in zip(move, row, strict=True)
    )


def ask(seed):
    """Compare one random pipeline with enumeration; say how many rows were broken."""
    rng = np.random.default_rng(seed)
    frame, y = some_rows(rng)
    source = some_pipeline(rng, frame, y)
    threat, allowed = some_threat(rng)
    threshold = float(rng.choice([0.3, 0.6])) if rng.random() < 0.4 else None

    def label(rows):
        if threshold is None:
            return source.predict(rows)
        return (source.predict_proba(rows)[:, 1] >= threshold).astype(int)

    certificate = hw.certify(source, frame, y, threat, threshold=threshold, n_jobs=1)
    rows = list(frame.itertuples(index=False, name=None))
    moves = [all_moves(row, k, threat, allowed) for row, k in zip(rows, y, strict=True)]
    table = pd.DataFrame(list(itertools.chain(*moves)), columns=frame.columns)
    wrong = label(table) != np.repeat(y, [len(some) for some in moves])
    ends = np.cumsum([len(some) for some in moves])
    broken = [part.any() for part in np.split(wrong, ends[:-1])]
    np.testing.assert_array_equal(certificate.status == "broken", broken, err_msg=f"seed {seed}")
    np.testing.assert_array_equal(certificate.status == "certified", np.logical_not(broken))
    found = certificate.X_adv[certificate.status == "broken"]
    if len(found):
        assert (label(found) != y[certificate.status == "broken"]).all()
        assert found["age"].dtype == frame["age"].dtype
        for i, row in zip(np.flatnonzero(broken), found.itertuples(index=False), strict=True):
            assert any(_n_changes(tuple(row), move) == 0 for move in moves[i]), f"seed {seed}"
    return int(np.sum(broken))


@pytest.mark.parametrize("seed", range(24))
def test_certificates_are_those_of_enumeration(seed):
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        ask(seed)
