"""What the adversary may do: forms, words, and the ends of the ball."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import hardwood as hw

NAN, INF = float("nan"), float("inf")
NAMES = ["height", "girth", "age"]
X = np.array([[0.5, 0.5, 0.5], [-3.0, 7.0, NAN]])


def steps(threat):
    return threat.reach(3, NAMES).limits[:, :2].tolist()


@pytest.mark.parametrize(
    ("eps", "expected"),
    [
        (0.1, [[0.1, 0.1]] * 3),
        (np.float32(0.25), [[0.25, 0.25]] * 3),
        (np.array(2), [[2, 2]] * 3),
        ((0, 3), [[0, 3]] * 3),
        ([0.1, 0.2, 0], [[0.1, 0.1], [0.2, 0.2], [0, 0]]),
        ((0.1, 0.2, 0), [[0.1, 0.1], [0.2, 0.2], [0, 0]]),
        (np.array([0.1, 0.2, 0.3]), [[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]),
        (np.array([[0, 1], [2, 3], [4, 5]]), [[0, 1], [2, 3], [4, 5]]),
        ([(0, 1), 0.5, [0.25, 0]], [[0, 1], [0.5, 0.5], [0.25, 0]]),
        ({"girth": 0.2}, [[0, 0], [0.2, 0.2], [0, 0]]),
        ({"age": (1, 2), 0: 0.1}, [[0.1, 0.1], [0, 0], [1, 2]]),
        ({np.int64(2): np.array([1.0, 0.0])}, [[0, 0], [0, 0], [1, 0]]),
        ({}, [[0, 0]] * 3),
    ],
    ids=str,
)
def test_every_form_of_eps(eps, expected):
    assert steps(hw.Threat(eps)) == expected


@pytest.mark.parametrize(
    ("low", "expected"),
    [
        (0, [0, 0, 0]),
        ([0, -1, None], [0, -1, -float(np.finfo(np.float32).max)]),
        ((1, 2, 3), [1, 2, 3]),
        (np.array([0.5, -INF, 0]), [0.5, -float(np.finfo(np.float32).max), 0]),
        ({"age": 18, 0: -1}, [-1, -float(np.finfo(np.float32).max), 18]),
        (None, [-float(np.finfo(np.float32).max)] * 3),
    ],
    ids=str,
)
def test_every_form_of_the_range(low, expected):
    assert hw.Threat(1, low=low).reach(3, NAMES).limits[:, 2].tolist() == expected
    mirrored = (
        {name: -entry for name, entry in low.items()}
        if isinstance(low, dict)
        else low
        if low is None
        else [None if entry is None else -entry for entry in low]
        if np.ndim(low)
        else -low
    )
    high = hw.Threat(1, high=mirrored).reach(3, NAMES).limits[:, 3]
    assert (-high).tolist() == expected


@pytest.mark.parametrize(
    "fixed",
    [["age", "height"], (2, 0), np.array([0, 2]), {"age", 0}],
    ids=["list", "tuple", "array", "set"],
)
def test_fixed_is_the_same_as_a_step_of_0(fixed):
    threat = hw.Threat([3.0, 1.0, 2.0], fixed=fixed)
    for mine, other in zip(
        vars(threat.reach(3, NAMES)).values(),
        vars(hw.Threat([0, 1.0, 0]).reach(3)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(eps=-0.1), "eps must be a finite number >= 0, got eps=-0.1"),
        (dict(eps=NAN), "eps must be a finite number >= 0, got eps=nan"),
        (dict(eps=[0.1, INF]), "eps must be a finite number >= 0, got eps=inf"),
        (dict(eps={"age": (0, -2)}), "eps must be a finite number >= 0, got eps=-2"),
        (dict(eps="0.1"), r"a pair \(down, up\), one of these per feature, .* got eps='0.1'"),
        (dict(eps=None), "mapping from feature name, got eps=None"),
        (dict(eps=True), "got eps=True"),
        (dict(eps=[(1, 2, 3)]), r"got eps=\(1, 2, 3\)"),
        (dict(eps=[{"age": 1}]), r"got eps=\{'age': 1\}"),
        (dict(eps=1, norm=3), 'norm must be "inf", 1, 2 or 0, got norm=3'),
        (dict(eps=1, norm="2"), "got norm='2'"),
        (dict(eps=1, norm=True), "got norm=True"),
        (
            dict(eps=2, norm=0, max_changes=2),
            "eps is the number of features .* got eps=2 and max_changes=2; leave one of them out",
        ),
        (dict(eps=1, fixed="age"), "fixed must be a sequence of features, got 'age'"),
        (dict(eps=1, fixed=[True]), "fixed must name features or give their positions, got True"),
        (dict(eps=1, fixed=2), "fixed must be a sequence of features, got 2; for one feature"),
        (dict(eps=1, low="a"), "low must be a number, one per feature, or a mapping .* low='a'"),
        (dict(eps=1, high=[1, NAN]), "high must be a number, .* got high=nan"),
    ],
    ids=str,
)
def test_refused_at_once(arguments, words):
    with pytest.raises(ValueError, match=words):
        hw.Threat(**arguments)


@pytest.mark.parametrize(
    ("arguments", "names", "words"),
    [
        (dict(eps=[1, 2]), None, "eps has 2 entries but X has 3 features; pass one number, or one"),
        (dict(eps=[]), None, "eps has 0 entries but X has 3 features"),
        (dict(eps=1, low=[0]), None, "low has 1 entries but X has 3 features"),
        (dict(eps=1, high=(0, 1)), None, "high has 2 entries but X has 3 features"),
        (
            dict(eps={"bark": 1}),
            NAMES,
            "eps names the feature 'bark', but the columns are 'height', 'girth', 'age'",
        ),
        (
            dict(eps=1, fixed=["bark"]),
            ["a", "b", "c"],
            "fixed names the feature 'bark'",
        ),
        (
            dict(eps=1, low={"age": 0}),
            None,
            "low names the feature 'age', but the columns have no names; pass a data frame",
        ),
        (dict(eps={3: 1}), None, r"eps names feature 3, but there are 3 features \(0 to 2\)"),
        (dict(eps=1, fixed=[-1]), None, "fixed names feature -1, but there are 3 features"),
        (dict(eps={0.5: 1}), None, "eps must name features or give their positions, got 0.5"),
        (
            dict(eps=1, low=[0, 2, 0], high={"girth": 1}),
            NAMES,
            "low must not exceed high, got low=2.0 and high=1.0 for feature 1",
        ),
    ],
    ids=str,
)
def test_refused_for_a_table(arguments, names, words):
    with pytest.raises(ValueError, match=words):
        hw.Threat(**arguments).reach(3, names)


def test_ball_needs_a_table():
    with pytest.raises(ValueError, match=r"X must be a table .*, got shape \(3,\)"):
        hw.Threat(1).ball([1, 2, 3])


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (hw.Threat(1), hw.Threat(np.float64(1.0)), hw.Threat(2)),
        (hw.Threat([1, 2]), hw.Threat(np.array([1.0, 2.0])), hw.Threat((1, 2))),
        (hw.Threat({"a": (0, 1)}), hw.Threat({"a": (0.0, 1.0)}), hw.Threat({"b": (0, 1)})),
        (hw.Threat(1, norm=np.inf), hw.Threat(1, norm="inf"), hw.Threat(1, norm=2)),
        (hw.Threat(1, fixed=[0]), hw.Threat(1, fixed=np.array([0])), hw.Threat(1, fixed=[1])),
        (hw.Threat(1, low=0), hw.Threat(1, low=0.0), hw.Threat(1, high=0)),
        # More entries, and more digits, than numpy prints.
        (hw.Threat(np.ones(2000)), hw.Threat([1] * 2000), hw.Threat(np.ones(2000) + 1e-12)),
    ],
    ids=lambda threat: repr(threat)[:30],
)
def test_equal_by_value(one, same, other):
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "threat"


@pytest.mark.parametrize(
    ("threat", "text"),
    [
        (hw.Threat(0.1), "Threat(eps=0.1)"),
        (hw.Threat(3, norm=0), "Threat(eps=3, norm=0)"),
        (
            hw.Threat(np.array([0.1, 0.2]), norm=2.0, low=0, high=[1, np.float64(2)], fixed=["a"]),
            "Threat(eps=[0.1, 0.2], norm=2, low=0, high=[1, 2.0], fixed=('a',))",
        ),
    ],
    ids=str,
)
def test_prints_what_builds_it_again(threat, text):
    assert repr(threat) == text
    assert eval(text, {"Threat": hw.Threat}) == threat


def test_copies_and_stays_as_it_is():
    threat = hw.Threat({"height": (0, 1)}, low=[0, None, 1], fixed=["age"])
    assert pickle.loads(pickle.dumps(threat)) == threat
    assert clone(hw.RobustDecisionTreeClassifier(threat=threat)).threat == threat
    with pytest.raises(AttributeError, match="cannot assign to field 'eps'"):
        threat.eps = 1
    eps = [1.0, 2.0]
    threat = hw.Threat(eps)
    eps[0] = 5.0
    assert threat == hw.Threat([1.0, 2.0])


def test_the_estimator_wants_a_threat():
    with pytest.raises(TypeError, match=r"threat must be a hardwood\.Threat, got float"):
        hw.RobustDecisionTreeClassifier(threat=0.1).fit([[0.0], [1.0]], [0, 1])


VALUES = st.sampled_from((0.0, -0.0, 0.1, 0.5, -3.0, 1e-300, 3e38, -3e38)) | st.floats(-10, 10)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(VALUES, min_size=2, max_size=20),
    st.sampled_from((0, 0.1, 3.0, 1e300)),
    st.sampled_from((0, 0.25, 1e-300)),
    st.sampled_from((None, -1.0, 0.2)),
    st.sampled_from((None, 0.2, 5.0)),
)
def test_ends_of_the_ball(values, down, up, low, high):
    x = np.sort(np.array(values))[:, None]
    lowest, highest = hw.Threat((down, up), low=low, high=high).ball(x)
    # The definition: a step at most, not past the range, and never pushed by it.
    end = np.maximum(x - down, -np.finfo(np.float32).max if low is None else low)
    np.testing.assert_array_equal(lowest, np.where(end < x, end, x))
    end = np.minimum(x + up, np.finfo(np.float32).max if high is None else high)
    np.testing.assert_array_equal(highest, np.where(end > x, end, x))
    assert ((lowest <= x) & (x <= highest)).all()
    assert (np.diff(lowest[:, 0]) >= 0).all()
    assert (np.diff(highest[:, 0]) >= 0).all()


def test_rows_outside_of_the_range_may_come_back_but_are_not_pushed():
    low, high = hw.Threat(1, low=0, high=1).ball([[5.0, -5.0, 1.5, -0.5, NAN]])
    np.testing.assert_array_equal(low, [[4.0, -5.0, 0.5, -0.5, NAN]])
    np.testing.assert_array_equal(high, [[5.0, -4.0, 1.5, 0.5, NAN]])


@pytest.mark.parametrize("norm", [1, 2])
def test_scales_are_relative_to_the_largest_step(norm):
    reach = hw.Threat([(0.5, 1), 2.0, 0], norm=norm).reach(3)
    assert reach.radius == 2
    np.testing.assert_array_equal(reach.down_scale, [0.25, 1, 1])
    np.testing.assert_array_equal(reach.up_scale, [0.5, 1, 1])


@pytest.mark.parametrize(("eps", "step"), [(0, 0), (1, INF), (2.5, INF)])
def test_norm_0_counts_features(eps, step):
    reach = hw.Threat(eps, norm=0, fixed=[1]).reach(2)
    assert reach.limits[:, :2].tolist() == [[step, step], [0, 0]]
    assert reach.radius == eps
