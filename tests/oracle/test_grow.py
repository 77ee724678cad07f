"""Every node of a grown tree against the definition of the robust split, row by row."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import hardwood as hw
from oracle.brute import (
    LOWEST,
    Candidate,
    Node,
    can_be_void,
    candidates,
    gain,
    least_gain_of_divided_rows,
    least_gain_of_whole_rows,
    midpoints,
    paper_gain,
    sides,
)
from strategies import Problem, problems

# Threats under which nothing can be split are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")

# Gains are of the order of 1; both sides are sums of a few rounded terms.
CLOSE = 1e-9
WHERE = ("midpoints", "intervals", "edges")
CRITERIA = ("entropy", "gini")


def root_of(problem: Problem) -> Node:
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    return Node(problem.X, weight[:, None] * (problem.y[:, None] == np.unique(problem.y)))


def nodes_of(model: hw.RobustDecisionTreeClassifier, problem: Problem):
    """Each node of the tree as the grower met it: its position, its rows, its split or None."""
    trees = model.trees_
    open_nodes = [(0, root_of(problem))]
    while open_nodes:
        at, node = open_nodes.pop()
        if trees.feature[at] == -1:
            yield at, node, None
            continue
        chosen = Candidate(
            int(trees.feature[at]), trees.threshold[at], bool(trees.missing_left[at])
        )
        yield at, node, chosen
        left = sides(node, problem.ball, chosen).plain_left
        open_nodes += [(trees.left[at], node.part(left)), (trees.right[at], node.part(~left))]


def counts_are_exact(node: Node) -> bool:
    return bool(np.all(node.weight * 2 == np.round(node.weight * 2)))


def check_chosen(node: Node, chosen: Candidate, found: float, problem: Problem, criterion: str):
    """The reported gain is what the adversary leaves of the chosen split."""
    where = sides(node, problem.ball, chosen)
    lower, upper = least_gain_of_divided_rows(node, where, criterion)
    assert upper - lower < 1e-6, "the oracle is too blunt to say anything"
    assert lower - CLOSE <= found <= upper + CLOSE
    whole = least_gain_of_whole_rows(node, where, criterion)
    assert found <= whole + CLOSE
    if np.count_nonzero(node.total) == 2:
        assert found == pytest.approx(whole, abs=CLOSE)
    if counts_are_exact(node):
        assert not can_be_void(node, where)
    plain = node.weight[where.plain_left].sum(axis=0)
    assert found <= gain(plain, node.total, criterion) + CLOSE


def check_tree(problem: Problem, criterion: str, where_to_look: str) -> None:
    if where_to_look == "edges":
        # In float32, as bins are: ends of balls that only doubles tell apart share an edge.
        problem = replace(problem, X=problem.X.astype(np.float32).astype(float))
        model = problem.fit(criterion=criterion, method="hist")
    else:
        model = problem.fit(criterion=criterion, method="exact", candidates=where_to_look)
    for at, node, chosen in nodes_of(model, problem):
        found = model.trees_.gain[at]
        total = node.total
        assert model.trees_.cover[at] == pytest.approx(total.sum())
        np.testing.assert_allclose(model.trees_.value[at], total / total.sum(), atol=1e-7)
        if np.count_nonzero(total) < 2:
            assert chosen is None
            continue
        if chosen is None:
            assert found == 0
        else:
            check_chosen(node, chosen, found, problem, criterion)
            column = node.X[:, chosen.feature]
            if where_to_look == "midpoints":
                assert chosen.threshold in [*midpoints(column[~np.isnan(column)]), LOWEST]
        # There are so few values that there is an edge at every end of a ball.
        tried = "intervals" if where_to_look == "edges" else where_to_look
        for other in candidates(node, problem.ball, tried):
            where = sides(node, problem.ball, other)
            # Whole rows are some of the ways to divide rows: only what passes them needs the
            # costly bound.
            if least_gain_of_whole_rows(node, where, criterion) > found + CLOSE:
                lower, _ = least_gain_of_divided_rows(node, where, criterion)
                assert lower <= found + CLOSE


@pytest.mark.parametrize("where_to_look", WHERE)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(problem=problems(max_classes=2))
def test_two_classes(criterion, where_to_look, problem):
    check_tree(problem, criterion, where_to_look)


@pytest.mark.parametrize("where_to_look", WHERE)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(problem=problems(max_classes=4))
def test_many_classes(criterion, where_to_look, problem):
    check_tree(problem, criterion, where_to_look)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(problem=problems(weights=False))
def test_the_papers_inner_rule(criterion, problem):
    model = problem.fit(criterion=criterion, inner="paper")
    for at, node, chosen in nodes_of(model, problem):
        found = model.trees_.gain[at]
        if np.count_nonzero(node.total) < 2:
            assert chosen is None
            continue
        gains = {
            candidate: paper_gain(node, sides(node, problem.ball, candidate), criterion)
            for candidate in candidates(node, problem.ball, "midpoints")
        }
        assert found == pytest.approx(max(gains.values(), default=0), abs=CLOSE)
        if chosen is not None:
            where = sides(node, problem.ball, chosen)
            assert found == pytest.approx(paper_gain(node, where, criterion), abs=CLOSE)
