"""What a search says, row by row, and whether the model's source agrees."""

from dataclasses import dataclass

import numpy as np

from hardwood._check import FloatArray
from hardwood.verify.problem import Problem
from hardwood.verify.result import StatusArray


@dataclass(frozen=True)
class Found:
    """What a search says, row by row."""

    lower: FloatArray
    upper: FloatArray
    reason: StatusArray
    X_adv: FloatArray
    seconds: FloatArray

    def verdict(self) -> StatusArray:
        """Read the answer to a decision."""
        proven = np.where(np.isinf(self.lower), "certified", "unknown")
        return np.where(np.isfinite(self.upper), "broken", proven)

    def confirmed(self, problem: Problem) -> "Found":
        """See which rows are wrong already, and leave those open whose example the source denies.

        Some sources add leaves in an order or on threads of their own: where a margin is within
        the rounding of its sum, they may decide otherwise than the same sum in tree order.
        """
        never = np.flatnonzero((self.reason != "") & np.isinf(self.upper) & (self.lower == 0))
        # No search is needed to see that a row is wrong already.
        wrong = never[problem.some(never).misclassified()] if len(never) else never
        self.upper[wrong], self.X_adv[wrong], self.reason[wrong] = 0.0, problem.X[wrong], ""
        claimed = np.flatnonzero(np.isfinite(self.upper))
        if problem.source is None or len(claimed) == 0:
            return self
        label = problem.source(self.X_adv[claimed])
        doubt = claimed[~problem.fooled(label, claimed) | (label < 0)]  # or it refuses the row
        self.upper[doubt], self.X_adv[doubt] = np.inf, np.nan
        self.reason[doubt] = "within the rounding of the source's own sum"
        return self
