"""Kantchelian's symbolic prediction: few changed features, quickly."""

from hardwood import _core
from hardwood.attack.target import Attempt, Target
from hardwood.verify.effort import Effort


def attack(target: Target, effort: Effort) -> Attempt:
    """Change one feature after the other, each time the one that helps most."""
    return Attempt(target.ask(_core.symbolic, effort), "symbolic")
