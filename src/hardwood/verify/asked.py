"""A question in the users' terms, put to a search that knows numbers and categories.

Certificates, distances, curves and attacks all ask through here. Rows that do not attack are left
out, one-hot groups become one feature of categories each, and examples come back as dummies.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import Trees
from hardwood.threat.reach import Group, Reach
from hardwood.verify.found import Found
from hardwood.verify.problem import Outputs, Problem, label_position

Ask = Callable[[Problem, Reach], Found]


def asked(problem: Problem, reach: Reach, ask: Ask) -> Found:
    """Let a search answer for the rows that attack; lengths are those of `reach`'s own unit."""
    attacks = attackers(problem, reach)
    folded, folded_reach = fold(problem, replace(reach, only=None))
    some = np.flatnonzero(attacks)
    if len(some) == len(attacks):
        found = ask(folded, folded_reach)
    else:
        found = _nobody(folded)
        if len(some):
            part = ask(folded.some(some), folded_reach)
            for name, whole in vars(found).items():
                whole[some] = getattr(part, name)
    unfold(found.X_adv, reach.groups)
    if reach.groups:
        problem.replay(found.X_adv, np.isfinite(found.upper))
    return found


def in_multiples(found: Found, reach: Reach) -> Found:
    """Distances as multiples of the threat, where its sizes differ between features."""
    if not reach.multiples:
        return found
    return replace(found, lower=found.lower / reach.unit, upper=found.upper / reach.unit)


def attackers(problem: Problem, reach: Reach) -> BoolArray:
    """Which rows attack: those of the class that the threat names, or all."""
    if reach.only is None:
        return np.ones(len(problem.X), dtype=bool)
    only = label_position(problem.trees, reach.only, "only")
    return np.asarray(problem.y == only, dtype=bool)


def _nobody(problem: Problem) -> Found:
    """What is known of rows that nobody changes."""
    wrong = problem.misclassified()
    none: FloatArray = np.where(wrong, 0.0, np.inf)
    X_adv: FloatArray = np.where(wrong[:, None], problem.X, np.nan)
    return Found(
        lower=none.copy(),
        upper=none,
        reason=np.full(len(wrong), "", dtype="<U50"),
        X_adv=X_adv,
        seconds=np.zeros(len(wrong)),
    )


def fold(problem: Problem, reach: Reach) -> tuple[Problem, Reach]:
    """The same with every one-hot group as categories in its first column, its other columns 0."""
    if not reach.groups:
        return problem, reach
    X = fold_rows(problem.X, reach.groups, problem.trees.feature_names)
    trees, source = fold_trees(problem.trees, reach.groups), problem.source

    def of_dummies(Z: FloatArray) -> npt.NDArray[np.int64]:
        assert source is not None
        dummies = Z.copy()
        unfold(dummies, reach.groups)
        return source(dummies)

    folded = replace(problem, trees=trees, X=X, source=None if source is None else of_dummies)
    return folded, fold_reach(reach)


def fold_outputs(outputs: Outputs, reach: Reach) -> tuple[Outputs, Reach]:
    """The same for a question about the output of a model."""
    if not reach.groups:
        return outputs, reach
    X = fold_rows(outputs.X, reach.groups, outputs.trees.feature_names)
    return replace(outputs, trees=fold_trees(outputs.trees, reach.groups), X=X), fold_reach(reach)


def fold_reach(reach: Reach) -> Reach:
    """The same threat on folded rows: groups that move are categories."""
    changes = dict(reach.changes)
    for group in reach.groups:
        if group.moves:
            every = np.arange(len(group.columns), dtype=np.int32)
            changes[group.columns[0]] = (every,) * (len(every) + 1)
    return replace(reach, changes=changes, groups=())


def fold_rows(X: FloatArray, groups: tuple[Group, ...], names: Sequence[str] | None) -> FloatArray:
    """Rows with the place of the 1 in the first column of a group, and 0 in the others."""
    X = X.copy()
    for group in groups:
        first, *others = group.columns
        X[:, first] = _codes(X, group, names)
        X[:, others] = 0.0
    return X


def _codes(X: FloatArray, group: Group, names: Sequence[str] | None) -> FloatArray:
    """Which column of a group is 1, row by row; refused where that is not one."""
    columns = list(group.columns)
    dummies = X[:, columns]
    right = ((dummies == 0) | (dummies == 1)).all(axis=1) & (dummies.sum(axis=1) == 1)
    if not right.all():
        row = int(np.argmin(right))
        called = columns if names is None else [names[column] for column in columns]
        shown = ", ".join(f"{value:g}" for value in dummies[row])
        raise ValueError(
            f"Row {row} is not one-hot in the columns {called!r}: it holds {shown}; exactly one "
            f"of them must be 1 and the others 0."
        )
    code: FloatArray = dummies.argmax(axis=1).astype(np.float64)
    return code


def fold_trees(trees: Trees, groups: tuple[Group, ...]) -> Trees:
    """Splits on dummies as splits on categories: the set of those that go right."""
    feature = trees.feature.copy()
    sets = [
        trees.category[begin:end]
        for begin, end in zip(trees.category_start[:-1], trees.category_start[1:], strict=True)
    ]
    names = dict(trees.category_names)
    for group in groups:
        n_columns = len(group.columns)
        every = np.arange(n_columns, dtype=np.int32)
        for code, column in enumerate(group.columns):
            for node in np.flatnonzero(trees.feature == column):
                feature[node] = group.columns[0]
                if trees.categorical[node]:
                    right_0, right_1 = 0 in sets[node], 1 in sets[node]
                else:
                    right_0, right_1 = (not value < trees.threshold[node] for value in (0, 1))
                chosen = every[(every == code) & right_1 | (every != code) & right_0]
                # A set must hold something: n_columns is nobody's code.
                sets[node] = chosen if len(chosen) else np.array([n_columns], dtype=np.int32)
        called = trees.feature_names
        names[group.columns[0]] = [
            column if called is None else called[column] for column in group.columns
        ]
    return trees.replace(
        feature=feature,
        category_start=np.concatenate([[0], np.cumsum([len(one) for one in sets])]),
        category=np.concatenate([*sets, np.empty(0, dtype=np.int32)]),
        category_names=names,
    )


def unfold(X_adv: FloatArray, groups: tuple[Group, ...]) -> None:
    """Write categories back as dummies, in place; a row of NaN stays one."""
    for group in groups:
        columns = list(group.columns)
        there = np.flatnonzero(~np.isnan(X_adv[:, columns[0]]))
        code = X_adv[there, columns[0]].astype(int)
        X_adv[there[:, None], columns] = np.eye(len(columns))[code]
