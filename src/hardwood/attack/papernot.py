"""Papernot's attack: the leaf of another class that is nearest in a single tree."""

import numpy as np

from hardwood import _core
from hardwood._check import BoolArray, FloatArray
from hardwood.attack.victim import Attempt, Victim
from hardwood.model.trees import LEAF, Trees, core_of
from hardwood.verify.choices import Layout, columns_of
from hardwood.verify.effort import Effort

Way = list[tuple[int, bool]]  # nodes on the way to a leaf, and whether it leaves them to the left


def attack(victim: Victim, effort: Effort) -> Attempt:
    """Move to the leaf of another label that is the fewest branches away."""
    n_trees = victim.white_box.trees.n_trees
    if n_trees != 1:
        raise ValueError(
            f'method="papernot" attacks single trees, but the model has {n_trees}; '
            f'use method="auto".'
        )
    if victim.on_numbers and not victim.ball.beyond_numbers:
        return Attempt(victim.ask(_core.papernot, effort), "papernot")
    return Attempt(_by_choices(victim, effort), "papernot")


def _by_choices(victim: Victim, effort: Effort) -> FloatArray:
    """The same over the values that the threat lets each column take, of whatever kind."""
    trees = victim.white_box.trees
    ways, layout = _ways(trees), Layout.of(trees)
    X_adv = np.full_like(victim.X, np.nan)
    for i, x in enumerate(victim.X):
        if effort.over:
            break
        leaf = int(trees.apply(x[None])[0, 0])
        choices = [column.choices() for column in columns_of(layout, x, victim.norm, victim.ball)]
        for other in sorted(ways, key=lambda one: _branches(ways[leaf], ways[one])):
            z = _enter(trees, x, choices, ways[other])
            if z is None or not victim.ball.holds(x[None], z[None], victim.norm)[0]:
                continue
            if victim.fooled(z[None], np.array([i]))[0]:
                X_adv[i] = z
                break
    return X_adv


def _ways(trees: Trees) -> dict[int, Way]:
    """The way to every leaf of the first tree."""
    ways: dict[int, Way] = {}
    waiting: list[tuple[int, Way]] = [(0, [])]
    while waiting:
        node, way = waiting.pop()
        if trees.feature[node] == LEAF:
            ways[node] = way
            continue
        for child, left in ((trees.left[node], True), (trees.right[node], False)):
            waiting.append((int(child), [*way, (node, left)]))
    return ways


def _branches(one: Way, other: Way) -> int:
    """How many branches lie between two leaves."""
    shared = sum(a == b for a, b in zip(one, other, strict=False))
    return len(one) + len(other) - 2 * shared


def _enter(
    trees: Trees, x: FloatArray, choices: list[tuple[FloatArray, FloatArray]], way: Way
) -> FloatArray | None:
    """The nearest point of a leaf, if the columns can take such values."""
    z = x.copy()
    for f in {int(trees.feature[node]) for node, _ in way}:
        value, step = choices[f]
        passes = np.ones(len(value), dtype=bool)
        for node, left in way:
            if trees.feature[node] == f:
                passes &= _goes_left(trees, node, value) == left
        if not passes.any():
            return None
        z[f] = value[passes][np.argmin(step[passes])]
    return z


def _goes_left(trees: Trees, node: int, value: FloatArray) -> BoolArray:
    """Where values of its feature go at a node of the first tree."""
    rows = np.zeros((len(value), trees.n_features))
    rows[:, trees.feature[node]] = value
    sides = [np.asarray(core_of(trees).sides(row))[node] for row in rows]
    return np.array(sides, dtype=bool)
