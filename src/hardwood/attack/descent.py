"""Our quick attack on ensembles: near examples in microseconds to milliseconds a row."""

import numpy as np

from hardwood import _core
from hardwood.attack.victim import Attempt, Victim
from hardwood.verify.effort import Effort


def attack(victim: Victim, effort: Effort) -> Attempt:
    """Ask the core; what it cannot fool, symbolic prediction tries."""
    if victim.norm == 0:
        raise ValueError(
            'method="descent" measures in the norms "inf", 1 and 2, got norm=0; '
            'use method="symbolic".'
        )
    if not victim.leaves_a_label:
        raise ValueError(
            'method="descent" moves rows away from one label, and with more than two classes that '
            'is not yet towards the wanted one: use method="exact" or "symbolic".'
        )
    X_adv = victim.ask(_core.descent, effort)
    missed = np.flatnonzero(~np.isfinite(victim.lengths(X_adv)))
    if len(missed) and victim.on_numbers and not effort.over:
        X_adv[missed] = victim.rows(missed).ask(_core.symbolic, effort)
    return Attempt(X_adv, "descent")
