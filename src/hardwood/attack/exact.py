"""The exact engines as attacks: nobody finds anything nearer."""

from hardwood.attack.target import Attempt, Target
from hardwood.verify import ensemble, milp, tree
from hardwood.verify.ensemble import Effort


def attack(target: Target, effort: Effort) -> Attempt:
    """Take the nearest leaf of one tree, or the nearest example of an ensemble."""
    problem = target.white_box
    if problem.trees.n_trees == 1:
        distance, X_adv = tree.nearest(problem, target.norm, target.reach)
        return Attempt(X_adv, "tree", distance)
    found = ensemble.nearest(problem, target.norm, target.reach, effort)
    return Attempt(found.X_adv, "exact", found.lower)


def kantchelian(target: Target, effort: Effort) -> Attempt:
    """Ask a solver of mixed-integer programs, as Kantchelian et al. (2016) did."""
    found = milp.nearest(target.white_box, target.norm, target.reach, effort)
    return Attempt(found.X_adv, "kantchelian", found.lower)
