"""Small tree models, rows where they are hard, and threats, for hypothesis."""

from itertools import chain

import hypothesis.strategies as st
import numpy as np

import hardwood as hw

FLOAT32_MAX = float(np.finfo(np.float32).max)
# Few, so that thresholds repeat along a path and paths contradict each other. The last ones cut
# off everything, overflow, or lie where float32 is denormal; 0.1 is not a float32 double.
THRESHOLDS = (0.0, 0.25, 0.5, 0.1, -0.3, 1e-40, 1e30, FLOAT32_MAX, -FLOAT32_MAX, np.inf, -np.inf)


@st.composite
def trees(
    draw,
    max_trees=4,
    max_features=3,
    max_splits=8,
    max_outputs=3,
    thresholds=THRESHOLDS,
    dtypes=(np.float32, np.float64),
):
    """A model of any shape: stumps, single leaves, chains, several outputs, both precisions."""
    x_dtype, v_dtype = draw(st.sampled_from(dtypes)), draw(st.sampled_from(dtypes))
    n_features = draw(st.integers(1, max_features))
    n_outputs = draw(st.integers(1, max_outputs))
    n_values = draw(st.sampled_from(sorted({1, n_outputs})))
    parts = [
        draw(_tree(n_features, max_splits, thresholds))
        for _ in range(draw(st.integers(1, max_trees)))
    ]
    sizes = [len(part) for part in parts]
    feature, threshold, left, right, missing_left = zip(*chain(*parts), strict=True)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    values = [0.0, 0.1, -0.1, 0.3, 1 / 3, -1.0, 1e7, 16777216.0]
    return hw.Trees(
        feature,
        np.array(threshold, dtype=x_dtype),
        left,
        right,
        missing_left,
        rng.choice(values, (sum(sizes), n_values)).astype(v_dtype),
        np.cumsum([0, *sizes]),
        [draw(st.integers(0, n_outputs - n_values)) for _ in parts],
        rng.choice(values, n_outputs),
        n_features=n_features,
    )


@st.composite
def _tree(draw, n_features, max_splits, thresholds):
    """Nodes of one tree; leaves are split at random places, so children may lie anywhere."""
    nodes = [(-1, 0.0, -1, -1, False)]
    leaves = [0]
    for _ in range(draw(st.integers(0, max_splits))):
        at = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        children = [len(nodes), len(nodes) + 1]
        if draw(st.booleans()):
            children.reverse()
        nodes[at] = (
            draw(st.integers(0, n_features - 1)),
            draw(st.sampled_from(thresholds)),
            *children,
            draw(st.booleans()),
        )
        nodes += [(-1, 0.0, -1, -1, False)] * 2
        leaves += children
    return nodes


def values_near(thresholds):
    """Thresholds, the floats and doubles next to them and halfway to those, and a few others."""
    near = {0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1e-46, FLOAT32_MAX, -FLOAT32_MAX, np.nan}
    for threshold in np.asarray(thresholds, dtype=np.float64):
        with np.errstate(over="ignore"):
            single = np.float32(threshold)
            floats = [
                single,
                np.nextafter(single, np.float32(-9e9)),
                np.nextafter(single, np.float32(9e9)),
            ]
        halves = [(float(floats[0]) + float(other)) / 2 for other in floats]
        for value in [float(threshold), *map(float, floats), *halves]:
            near |= {value, float(np.nextafter(value, -np.inf)), float(np.nextafter(value, np.inf))}
    return sorted((v for v in near if not abs(v) > FLOAT32_MAX), key=lambda v: (v != v, v))


@st.composite
def rows(draw, model, max_rows=20):
    """Rows on the model's thresholds and one float or double to each side, and missing values."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    near = values_near(np.unique(model.threshold[model.feature >= 0]))
    return rng.choice(near, (draw(st.integers(1, max_rows)), model.n_features))


STEPS = (0.0, 0.1, 0.05, 0.25, 0.3, 1.0)


@st.composite
def threats(draw, n_features, norm="inf"):
    """A threat in full: a pair (down, up) per feature, a range, fixed features."""
    steps = st.sampled_from(STEPS)
    if norm == 0:
        eps = draw(st.integers(0, 3))
    elif draw(st.booleans()):
        eps = draw(steps)
    else:
        eps = [(draw(steps), draw(steps)) for _ in range(n_features)]
    low = draw(
        st.none()
        | st.lists(st.sampled_from((-1.0, 0.0, 0.1)), min_size=n_features, max_size=n_features)
    )
    high = draw(
        st.none()
        | st.lists(st.sampled_from((0.1, 0.5, 1.0)), min_size=n_features, max_size=n_features)
    )
    fixed = draw(st.lists(st.integers(0, n_features - 1), unique=True, max_size=n_features - 1))
    return hw.Threat(eps, norm=norm, low=low, high=high, fixed=fixed)
