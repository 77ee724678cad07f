"""Kantchelian's symbolic prediction: few changed features, quickly."""

from hardwood import _core
from hardwood.attack.target import Attempt, Target


def attack(target: Target) -> Attempt:
    """Change one feature after the other, each time the one that helps most."""
    return Attempt(target.ask(_core.symbolic), "symbolic")
