"""Small random models over numbers, whole numbers, categories and dummies; rows and threats."""

from dataclasses import dataclass

import numpy as np

import hardwood as hw
from oracle.changes import Column, Plan
from oracle.walk import label_of

N_CODES = 4
GROUP = [4, 5, 6]
KINDS = ["number", "whole", "category", "number", "dummy", "dummy", "dummy"]


@dataclass(frozen=True)
class Mixed:
    """A model, rows of it with their labels, and what a threat may do."""

    trees: hw.Trees
    X: np.ndarray
    y: np.ndarray
    plan: Plan


def mixed(seed, n_outputs=None, norm=None, n_rows=4, max_trees=4):
    rng = np.random.default_rng(seed)
    n_outputs = int(rng.choice([1, 1, 3])) if n_outputs is None else n_outputs
    trees = _trees(rng, n_outputs, int(rng.integers(1, max_trees + 1)))
    X = np.array([_row(rng) for _ in range(n_rows)])
    y = label_of(trees, X)
    return Mixed(trees, X, y, _plan(rng, norm))


def _trees(rng, n_outputs, n_trees):
    nodes, start, output = [], [0], []
    for k in range(n_trees * n_outputs):
        tree = []
        _grow(rng, tree, 0)
        nodes += tree
        start.append(len(nodes))
        output.append(k % n_outputs)
    sets = [node["set"] for node in nodes]
    return hw.Trees(
        feature=[node["feature"] for node in nodes],
        threshold=np.array([node["threshold"] for node in nodes], dtype=np.float32),
        left=[node["left"] for node in nodes],
        right=[node["right"] for node in nodes],
        missing_left=rng.random(len(nodes)) < 0.5,
        value=np.array([[node["value"]] for node in nodes], dtype=np.float32),
        tree_start=start,
        tree_output=output,
        base=np.zeros(n_outputs),
        n_features=len(KINDS),
        category_start=np.cumsum([0, *map(len, sets)]),
        category=[code for one in sets for code in one],
        category_names={2: list(range(N_CODES))},
    )


def _grow(rng, tree, depth):
    at = len(tree)
    tree.append(dict(feature=-1, threshold=0.0, left=-1, right=-1, set=[], value=0.0))
    if depth == 3 or rng.random() < 0.2 * depth:
        tree[at]["value"] = float(rng.integers(-8, 9))
        return at
    feature = int(rng.integers(len(KINDS)))
    kind = KINDS[feature]
    tree[at]["feature"] = feature
    if kind == "category":
        size = int(rng.integers(1, N_CODES))
        tree[at]["set"] = sorted(rng.choice(N_CODES, size, replace=False).tolist())
    elif kind == "dummy":
        tree[at]["threshold"] = float(rng.choice([0.5, 1.0, 1e-6, 0.0, 1.5]))
    else:
        tree[at]["threshold"] = float(rng.choice([-1.5, -1.0, 0.25, 0.5, 0.75, 1.0, 2.0, 2.5]))
    for side in ("left", "right"):
        tree[at][side] = _grow(rng, tree, depth + 1)
    return at


def _row(rng):
    numbers = [float(rng.choice([rng.normal(), 0.0, 1.0, -1.0, 0.5, np.nan])) for _ in range(2)]
    whole, code = float(rng.integers(-2, 4)), float(rng.integers(N_CODES))
    dummies = np.eye(len(GROUP))[rng.integers(len(GROUP))]
    return np.array([numbers[0], whole, code, numbers[1], *dummies])


def _plan(rng, norm):
    def step():
        return float(rng.choice([0, 0.5, 1.0, 1.25, 2.0]))

    blank = rng.random(4) < 0.25
    codes = range(N_CODES)
    some = {c: [o for o in codes if o != c and rng.random() < 0.4] for c in codes}
    to = {c: list(codes) for c in codes} if rng.random() < 0.5 else some
    share = rng.random() < 0.4
    shares = float(rng.choice([0, 0.5, 1.0])), float(rng.choice([0, 0.5, 2.0]))
    high = float(rng.choice([1e30, 2.5]))
    columns = [
        Column(step(), step(), blank=bool(blank[0]), low=float(rng.choice([-1e30, -1.25]))),
        Column(step(), step(), whole=True, blank=bool(blank[1]), high=high),
        Column(to=to, n_codes=N_CODES, blank=bool(blank[2])),
        Column(*(shares if share else (step(), step())), share=share, blank=bool(blank[3])),
        *[Column()] * len(GROUP),
    ]
    return Plan(
        columns,
        norm=["inf", 1, 2, 0][rng.integers(4)] if norm is None else norm,
        max_changes=None if rng.random() < 0.5 else int(rng.integers(1, 4)),
        groups=[GROUP] if rng.random() < 0.7 else [],
    )
