"""What the adversary may do: a threat in the users' words, and its reach in a table."""

from hardwood.threat.reach import Reach
from hardwood.threat.steps import ANY, Relative, relative
from hardwood.threat.threat import (
    NORMS,
    Norm,
    NormLike,
    Threat,
    as_threat,
    check_norm,
    enlarged,
    threat_of,
)

__all__ = [
    "ANY",
    "NORMS",
    "Norm",
    "NormLike",
    "Reach",
    "Relative",
    "Threat",
    "as_threat",
    "check_norm",
    "enlarged",
    "relative",
    "threat_of",
]
