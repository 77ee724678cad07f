"""Papernot's attack: the leaf of another class that is nearest in a single tree."""

from hardwood import _core
from hardwood.attack.target import Attempt, Target
from hardwood.verify.effort import Effort


def attack(target: Target, effort: Effort) -> Attempt:
    """Move to the leaf of another label that is the fewest branches away."""
    n_trees = target.white_box.trees.n_trees
    if n_trees != 1:
        raise ValueError(
            f'method="papernot" attacks single trees, but the model has {n_trees}; '
            f'use method="auto".'
        )
    return Attempt(target.ask(_core.papernot, effort), "papernot")
