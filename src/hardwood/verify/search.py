"""One door to the exact searches, which chooses by the number of trees."""

import numpy as np

from hardwood.threat import Norm, Reach
from hardwood.verify import ensemble, tree
from hardwood.verify.effort import Effort
from hardwood.verify.found import Found
from hardwood.verify.problem import Problem


def nearest(
    problem: Problem, norm: Norm, reach: Reach, effort: Effort, seconds: float = np.inf
) -> Found:
    """Bounds on the smallest change within reach that fools the model, and its example."""
    if problem.trees.n_trees == 1:
        return tree.nearest(problem, norm, reach, effort)
    return ensemble.nearest(problem, norm, reach, effort, seconds)


def decide(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Whether any change within reach fools the model: lower is infinity where none does."""
    if problem.trees.n_trees == 1:
        return tree.nearest(problem, norm, reach, effort)
    return ensemble.decide(problem, norm, reach, effort)
