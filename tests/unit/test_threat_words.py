"""Threats in the users' words: shares, categories, whole numbers, groups, counts, TOML, English."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardwood as hw
from hardwood.threat import enlarged
from hardwood.verify.problem import kinds_of_columns

NAN, INF = float("nan"), float("inf")
NAMES = ["age", "income", "job", "city"]
CATEGORIES = {2: ["clerk", "manager", "none"], 3: None}
EVERYTHING = hw.Threat(
    {"age": (0, 2), 1: hw.relative(0.1, 0.25), "job": {"clerk": ["manager"], "none": hw.ANY}},
    norm=1,
    low={"age": 18},
    high=[None, 1e6, None, None],
    fixed=["city"],
    integer=["age"],
    one_hot=[["a", "b"], [7, 8, 9]],
    max_changes=2,
    blank=["income"],
    only="bad",
)


def plain(changes):
    return {feature: [codes.tolist() for codes in to] for feature, to in changes.items()}


def test_every_kind_of_column():
    threat = hw.Threat(
        {"age": 2, "income": hw.relative(0.1, 0.2), "job": {"clerk": ["manager"]}, "city": hw.ANY},
        integer=["age"],
        blank=["income", "job"],
        max_changes=3,
        only=1,
    )
    reach = threat.reach(4, NAMES, CATEGORIES)
    assert reach.limits[:, :2].tolist() == [[2, 2], [0, 0], [0, 0], [0, 0]]
    assert reach.share.tolist() == [[0, 0], [0.1, 0.2], [0, 0], [0, 0]]
    assert reach.whole.tolist() == [True, False, False, False]
    assert reach.blank.tolist() == [False, True, True, False]
    assert plain(reach.changes) == {2: [[0, 1], [1], [2], []]}  # nobody tells cities apart
    assert (reach.max_changes, reach.only, reach.radius, reach.unit) == (3, 1, 2, 2)
    assert reach.multiples
    # Scales are steps in units; those of shares count times |x|.
    assert reach.down_scale.tolist() == [1, 0.05, 1, 1]
    assert reach.up_scale.tolist() == [1, 0.1, 1, 1]
    assert reach.ends.shape == (4, 7)


def test_any_category():
    reach = hw.Threat({"job": hw.ANY}).reach(4, NAMES, CATEGORIES)
    assert plain(reach.changes) == {2: [[0, 1, 2]] * 4}
    assert (reach.radius, reach.unit) == (1, 1)
    of_one = hw.Threat({"job": {"none": hw.ANY}}).reach(4, NAMES, CATEGORIES)
    assert plain(of_one.changes) == {2: [[0], [1], [0, 1, 2], []]}
    some = hw.Threat({0: hw.ANY}).reach(1, categories={0: {3: 3, 1: 1}})
    assert plain(some.changes) == {0: [[0], [1, 3], [2], [1, 3], [1, 3]]}


@pytest.mark.parametrize(
    ("threat", "words"),
    [
        (
            hw.Threat({"job": {"clerk": ["king"]}}),
            "the category 'king' of column 'job', which the model does not know; it knows 'clerk'",
        ),
        (hw.Threat({"job": {"queen": hw.ANY}}), "'queen' of column 'job'"),
        (hw.Threat({"job": 1}), "moves column 'job' by 1, but to this model it holds categories"),
        (hw.Threat({"job": hw.relative(0.1)}), r"moves column 'job' by relative\(0.1\)"),
        (hw.Threat({"age": hw.ANY}), "categories of column 'age', but to this model .* numbers"),
        (hw.Threat(1, blank=["wealth"]), "blank names the feature 'wealth', but the columns are"),
        (hw.Threat(1, integer=["wealth"]), "integer names the feature 'wealth'"),
        (hw.Threat(1, one_hot=[["age", "wealth"]]), "one_hot names the feature 'wealth'"),
        (hw.Threat(1, one_hot=[["age", "city"], [0, 1]]), r"one_hot names a column of \[0, 1\]"),
    ],
    ids=str,
)
def test_refused_for_the_columns(threat, words):
    with pytest.raises(ValueError, match=words):
        threat.reach(4, NAMES, CATEGORIES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(eps=1, low=2, high=1), "low must not exceed high, got low=2, high=1"),
        (dict(eps=1, low=[0, 3], high=[1, 2]), "got low=3, high=2 for column 1"),
        (dict(eps=1, low=5, high={"age": 4}), "got low=5, high=4 for column 'age'"),
        (dict(eps=1, max_changes=0), "max_changes must be a whole number >= 1, got max_changes=0"),
        (dict(eps=1, max_changes=1.5), "got max_changes=1.5"),
        (dict(eps=1, max_changes=True), "got max_changes=True"),
        (dict(eps=1, one_hot=[["a", "b"], ["b", "c"]]), "one_hot names the column 'b' twice"),
        (dict(eps=1, one_hot=[["a"]]), r"two or more columns, got \['a'\]"),
        (dict(eps=1, one_hot=["ab"]), "one_hot must be a sequence of features, got 'ab'"),
        (dict(eps=1, one_hot="ab"), "one_hot must be a list of groups of columns, got 'ab'"),
        (dict(eps={"a": 0.5}, one_hot=[["a", "b"]]), "eps has 0.5 for 'a', but .* one-hot group"),
        (dict(eps=1, one_hot=[["a", "b"]], blank=["b"]), "'b' is in blank and in a one-hot group"),
        (dict(eps=1, fixed=["a"], blank=["a"]), "'a' is both in fixed and in blank"),
        (dict(eps=1, blank="age"), "blank must be a sequence of features, got 'age'"),
        (dict(eps=1, integer=3), "integer must be a sequence of features, got 3"),
        (dict(eps=1, integer=[0.5]), "integer must name features or .* positions, got 0.5"),
        (dict(eps=1, only=[1, 2]), r"only must be one label, got only=\[1, 2\]"),
        (dict(eps=hw.ANY), "mapping from feature name, got eps=ANY"),
        (dict(eps={"job": {"a": "b"}}), "got 'a': 'b' for column 'job'"),
        (dict(eps={"job": {"a": 1}}), r"\{category: \[categories it can become\]\}"),
        (dict(eps={"age": -1}), "got eps=-1 for column 'age'"),
        (dict(eps={"age": "x"}), "got eps='x' for column 'age'"),
    ],
    ids=str,
)
def test_refused_at_once(arguments, words):
    with pytest.raises(ValueError, match=words):
        hw.Threat(**arguments)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((-0.1,), "share of the value must be a finite number >= 0, got down=-0.1"),
        ((0, -1), "got up=-1"),
        ((NAN,), "got down=nan"),
        ((0, INF), "got up=inf"),
        (("a",), "got down='a'"),
        ((10,), "at most its whole size, a share of 1, got down=10; shares are no percentages"),
    ],
    ids=str,
)
def test_shares_are_refused_at_once(shares, words):
    with pytest.raises(ValueError, match=words):
        hw.relative(*shares)


VALUES = st.sampled_from((0.0, -0.0, 1.0, -1.0, 2.5, 1e-300, 3e38, -3e38)) | st.floats(-30, 30)
SHARES = st.sampled_from((0.0, 0.1, 0.5, 1 - 2**-53, 1.0)) | st.floats(0, 1)


@given(st.lists(VALUES, min_size=2, max_size=30), SHARES, SHARES, st.booleans(), st.booleans())
def test_ends_of_shares_and_whole_numbers(values, down, up, whole, ranged):
    x = np.sort(np.array(values))
    low, high = (-2.5, 7.5) if ranged else (-3.4028234663852886e38, 3.4028234663852886e38)
    lowest, highest = hw.Threat(
        hw.relative(down, up), low=low, high=high, integer=[0] if whole else []
    ).ball(x[:, None])
    # What is written in the guide, said again for each value.
    for value, least, most in zip(x, lowest[:, 0], highest[:, 0], strict=True):
        first, last = max(value - down * abs(value), low), min(value + up * abs(value), high)
        if whole:
            first, last = np.ceil(first), np.floor(last)
        assert least == (first if first < value else value)
        assert most == (last if last > value else value)
    assert (np.diff(lowest[:, 0]) >= 0).all()
    assert (np.diff(highest[:, 0]) >= 0).all()


@given(st.floats(0.5, 2), st.integers(0, 2000), SHARES)
def test_shares_keep_the_order_of_neighbouring_floats(start, n, share):
    x = start + np.spacing(start) * np.arange(n, n + 50)
    lowest, _ = hw.Threat(hw.relative(share, 0)).ball(x[:, None])
    assert (np.diff(lowest[:, 0]) >= 0).all()
    _, highest = hw.Threat(hw.relative(0, share)).ball(-x[::-1, None])
    assert (np.diff(highest[:, 0]) >= 0).all()


def test_whole_numbers_are_those_of_the_frame_unless_named():
    threat = hw.Threat(1)
    assert threat.reach(3, integer=[0, 2]).whole.tolist() == [True, False, True]
    assert threat.reach(2, categories={1: [7]}, integer=[0, 1]).whole.tolist() == [True, False]
    assert not hw.Threat(1, integer=()).reach(3, integer=[0]).whole.any()
    assert hw.Threat(1, integer=[1]).reach(3, integer=[0]).whole.tolist() == [False, True, False]


def test_integer_columns_of_frames():
    columns = {"a": [1, 2], "b": [0.5, 1.0], "c": [True, False], "d": ["x", "y"]}
    frame = pd.DataFrame(columns)
    frame["e"] = pd.array([1, None], dtype="Int64")
    frame["f"] = pd.Categorical([1, 2])
    assert kinds_of_columns(None, frame) == ((0, 2, 4), (2,))
    assert kinds_of_columns(["e", "b", "a"], frame) == ((0, 2), ())
    assert kinds_of_columns(None, pl.DataFrame(columns)) == ((0, 2), (2,))
    assert kinds_of_columns(None, np.ones((2, 2), dtype=int)) == ((), ())
    # LightGBM writes spaces as underscores.
    spaced = pd.DataFrame({"n loans": [1, 2], "is new": [True, False]})
    assert kinds_of_columns(["is_new", "n_loans"], spaced) == ((0, 1), (0,))
    # Columns that are called by numbers are read in their order, whatever the model calls them.
    numbered = frame.set_axis(range(6), axis=1)
    assert kinds_of_columns(list("abcdef"), numbered) == ((0, 2, 4), (2,))


def test_one_hot_groups():
    def groups(threat):
        return [(group.columns, group.moves) for group in threat.reach(4, NAMES).groups]

    assert groups(hw.Threat(one_hot=[["job", "city"]])) == [((2, 3), True)]
    assert groups(hw.Threat(0.1, one_hot=[[0, 1], [2, 3]])) == [((0, 1), True), ((2, 3), True)]
    assert groups(hw.Threat(1, one_hot=[[0, 1]], fixed=["income"])) == [((0, 1), False)]
    assert groups(hw.Threat([0, 0, 1, 1], one_hot=[[0, 1]])) == [((0, 1), False)]
    assert groups(hw.Threat({"age": 1, "city": 1}, one_hot=[[2, 3]])) == [((2, 3), True)]
    reach = hw.Threat(0.5, one_hot=[[0, 1]]).reach(4)
    assert reach.limits[:, 0].tolist() == [0, 0, 0.5, 0.5]  # dummies are no numbers


@pytest.mark.parametrize(
    ("threat", "radius"),
    [
        (hw.Threat([1, 2, 0, 0], norm=0), 2),
        (hw.Threat((0, 3), norm=0), 3),
        (hw.Threat([1, 2, 0, 0], norm=0, max_changes=3), 3),
        (hw.Threat({"age": 1, "job": hw.ANY, "city": hw.ANY}, norm=0, blank=["age"]), 2),
        (hw.Threat({"job": hw.ANY}, norm=0, blank=["job"]), 1),
    ],
    ids=str,
)
def test_limits_together_with_norm_0(threat, radius):
    reach = threat.reach(4, NAMES, CATEGORIES)
    assert (reach.radius, reach.unit, reach.multiples) == (radius, 1, False)
    np.testing.assert_array_equal(reach.without_radius(0).limits, reach.limits)


@pytest.mark.parametrize(
    ("threat", "multiples"),
    [
        (hw.Threat(2), False),
        (hw.Threat((0, 2), fixed=[1]), False),
        (hw.Threat({0: 2, 3: 2}), False),
        (hw.Threat((1, 2)), True),
        (hw.Threat([1, 2, 1, 1]), True),
        (hw.Threat(hw.relative(0.5)), True),
        (hw.Threat(2, blank=[0]), True),
        (hw.Threat(2, norm=0), False),
    ],
    ids=str,
)
def test_distances_are_multiples_where_sizes_differ(threat, multiples):
    assert threat.reach(4).multiples == multiples


def test_other_sizes_of_a_reach():
    reach = hw.Threat(
        {"age": (1, 2), "income": hw.relative(0.2), "job": hw.ANY}, blank=["age"]
    ).reach(4, NAMES, CATEGORIES)
    half = reach.at(1)
    assert half.limits[:, :2].tolist() == [[0.5, 1], [0, 0], [0, 0], [0, 0]]
    assert half.share.tolist() == [[0, 0], [0.1, 0.1], [0, 0], [0, 0]]
    assert not half.changes
    assert not half.blank.any()
    double = reach.at(4)
    assert double.limits[0, :2].tolist() == [2, 4]
    assert double.changes is reach.changes
    assert reach.at(2) is reach
    far = reach.without_radius()
    assert far.limits[:, :2].tolist() == [[INF, INF], [0, 0], [0, 0], [0, 0]]
    assert far.share[1].tolist() == [INF, INF]
    assert (far.radius, far.unit) == (INF, 2)
    still = reach.still()
    assert not still.limits[:, :2].any()
    assert not still.share.any()
    assert not still.changes
    assert still.limits[:, 2:].tolist() == reach.limits[:, 2:].tolist()


def test_multiplied():
    threat = hw.Threat(
        {"age": 1, "fee": (0, 2), "income": hw.relative(0.1), "job": {"a": ["b"]}}, max_changes=2
    )
    twice = hw.Threat(
        {"age": 2, "fee": (0, 4), "income": hw.relative(0.2), "job": {"a": ["b"]}}, max_changes=2
    )
    assert threat * 2 == 2 * threat == np.float64(2) * threat == twice
    assert hw.Threat([1, 2], norm=2) * 0.5 == hw.Threat([0.5, 1.0], norm=2)
    assert hw.Threat((1, 2)) * 3 == hw.Threat((3, 6))
    with pytest.raises(ValueError, match=r"lowered by at most its whole size.*got down=2\.0"):
        hw.Threat(hw.relative(0.5)) * 4
    with pytest.raises(ValueError, match="multiplied by a finite number >= 0, got -1"):
        threat * -1
    with pytest.raises(ValueError, match="eps=3 counts features"):
        hw.Threat(3, norm=0) * 2
    with pytest.raises(TypeError, match="unsupported operand"):
        threat * {}


@pytest.mark.parametrize(
    "threat",
    [
        EVERYTHING,
        hw.Threat(0.1),
        hw.Threat((0, 3), low=[0, None], high=INF),
        hw.Threat([1, (0, 2), hw.relative(0.5)]),
        hw.Threat(hw.relative(0.1, 2.5), only=0),
        hw.Threat({}, blank=[0], only=True),
        hw.Threat({0: 1.5, "a = b": {1: [2, 3], False: hw.ANY}, 'q"\n': hw.ANY}),
        hw.Threat({"down": 1, "up": 2}, low={0: 1, "up": 2}),
        hw.Threat(2, norm=0),
    ],
    ids=str,
)
def test_copies_and_texts_are_the_same_threat(threat, tmp_path):
    assert pickle.loads(pickle.dumps(threat)) == threat == copy.deepcopy(threat)
    space = {"Threat": hw.Threat, "ANY": hw.ANY, "relative": hw.relative, "inf": INF}
    assert eval(repr(threat), space) == threat
    assert hash(eval(repr(threat), space)) == hash(threat)
    assert hw.Threat.from_toml(threat.to_toml()) == threat
    (tmp_path / "threat.toml").write_text(threat.to_toml())
    assert hw.Threat.from_toml(tmp_path / "threat.toml") == threat
    assert hw.Threat.from_toml(str(tmp_path / "threat.toml")) == threat


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eps =", "the text is no TOML"),
        (
            "eps = 1\nepsilon = 2",
            "has the key 'epsilon', which no threat has; known are blank, eps",
        ),
        ("every = 1\neps = 1", "both every and eps"),
        ("[eps]\nage = {share = 1}", "age must be a number, .* got {'share': 1}"),
        ("[eps_at]\nage = 1", "eps_at must be a table by the positions of columns"),
        ("eps = -1", "eps must be a finite number >= 0, got eps=-1"),
    ],
    ids=str,
)
def test_bad_toml(text, words):
    with pytest.raises(ValueError, match=words):
        hw.Threat.from_toml(text)


def test_described():
    assert EVERYTHING.describe(NAMES).splitlines() == [
        "age can rise by up to 2, in whole numbers.",
        "income can fall by up to 10 % or rise by up to 25 % of its value.",
        "job can change from 'clerk' to 'manager' and from 'none' to any other.",
        "income can be left blank.",
        "Of a and b, another one can be 1.",
        "Of Column 7, Column 8 and Column 9, another one can be 1.",
        "city does not change.",
        "No other column changes.",
        "At most 2 columns change at once, each within its own limit.",
        "Steps are counted as shares of their limit, and their sum is at most 1.",
        "Values of age that are changed stay at or above 18.",
        "Values of income that are changed stay at or below 1e+06.",
        "Only rows of class 'bad' attack.",
    ]
    assert hw.Threat(3, norm=0).describe() == "Any 3 columns can be changed to any value."
    assert hw.Threat((1, 2), max_changes=1, low=0, high=9).describe().splitlines() == [
        "Every column can fall by up to 1 or rise by up to 2.",
        "At most 1 column changes, each within its own limit.",
        "Values that are changed stay between 0 and 9.",
    ]
    assert hw.Threat({0: hw.ANY, 1: 0}).describe().splitlines() == [
        "Column 0 can become any other known category.",
        "Column 1 does not change.",
        "No other column changes.",
    ]


@pytest.mark.parametrize(
    ("step", "down", "up"),
    [
        (hw.ANY, 1, 1),
        ({False: [True]}, 0, 1),
        ({True: hw.ANY, False: []}, 1, 0),
        (1, 1, 1),
        ((0, 1.5), 0, 1.5),
        (0.5, 0.5, 0.5),
    ],
)
def test_truth_values_are_numbers_to_one_model_and_categories_to_another(step, down, up):
    threat = hw.Threat({"owner": step}, integer=[])
    numbers = threat.reach(2, ["age", "owner"], None, [0, 1], truths=[1])
    assert numbers.limits[1, :2].tolist() == [down, up]
    assert numbers.whole.tolist() == [False, True]
    named = threat.reach(2, ["age", "owner"], {1: [False, True]}, [0])
    ways = {1: [[0, 1] if up >= 1 else [0], [0, 1] if down >= 1 else [1]]}
    assert {f: to[:2] for f, to in plain(named.changes).items()} == (
        ways if max(down, up) >= 1 else {}
    )


def test_one_number_turns_truth_values_from_1_on():
    names = {1: [False, True]}
    assert not hw.Threat(0.9).reach(2, None, names).changes
    assert plain(hw.Threat(1).reach(2, None, names).changes) == {1: [[0, 1], [0, 1], []]}
    assert not hw.Threat(1).reach(2, None, names).multiples


def test_words_other_than_truth_values_are_refused_for_them():
    with pytest.raises(ValueError, match=r"category 'yes' of column 'owner', .* knows False, True"):
        hw.Threat({"owner": {"yes": ["no"]}}).reach(1, ["owner"], truths=[0])


def test_a_start_from_a_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "dose": np.r_[np.linspace(0, 100, 999), 1e9],  # one outlier
            "age": rng.integers(18, 90, 1000),
            "few": rng.integers(0, 2, 1000),
            "mostly": np.r_[np.zeros(990), np.full(10, 50.0)],
            "same": 3.0,
            "job": "clerk",
            "owner": rng.random(1000) < 0.5,
        }
    )
    threat = hw.Threat.from_frame(frame, share=0.1)
    assert list(threat.eps) == ["dose", "age", "few", "mostly"]
    assert threat.integer == ("age", "few")
    assert threat.eps["dose"] == pytest.approx(9, rel=0.01)
    assert threat.eps["age"] in (6, 7)
    assert threat.eps["few"] == 1
    assert threat.eps["mostly"] == pytest.approx(0.1 * frame["mostly"].std(), rel=0.01)
    array = hw.Threat.from_frame(np.linspace(0, 100, 1001)[:, None], share=0.5)
    assert array.eps == [pytest.approx(45)]
    assert array.integer is None
    with pytest.raises(ValueError, match="share must be a finite number >= 0, got share=-1"):
        hw.Threat.from_frame(frame, share=-1)


def test_sets_have_no_order():
    for what in ({"eps": {0.1, 0.2}}, {"eps": 0.1, "low": {0, 1}}, {"eps": 0.1, "high": {2}}):
        with pytest.raises(ValueError, match="must not be a set, which has no order"):
            hw.Threat(**what)
    assert hw.Threat({"job": {"a": {"b"}}}).eps == {"job": {"a": ["b"]}}


def test_a_series_of_pandas_names_its_columns():
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 4.0]})
    threat = hw.Threat(frame.max() / 4, low=frame.min(), high=frame.max())
    assert threat == hw.Threat({"a": 0.25, "b": 1.0}, low={"a": 0, "b": 0}, high={"a": 1, "b": 4})
    # In a table with another order of columns these are still the same columns.
    assert threat.reach(2, ["b", "a"]).limits[:, 0].tolist() == [1.0, 0.25]
    assert hw.Threat(pd.Series([0.1, 0.2])) == hw.Threat([0.1, 0.2])


def test_multiples_of_shares_go_beyond_the_whole_value_in_curves_and_in_audits():
    share = hw.Threat(hw.relative(0.6))
    low, high = enlarged(share, 2).ball([[10.0, -10.0]])
    np.testing.assert_allclose([low[0], high[0]], [[-2, -22], [22, 2]])
    stump = hw.Trees(
        [0, -1, -1], [-0.1, 0, 0], [1, -1, -1], [2, -1, -1], [False] * 3, [0, -1, 1], [0, 3]
    )
    curve = hw.certified_accuracy(stump, [[1.0]], [1], [1, 1.8, 2], threat=share)
    proven = [
        hw.certify(stump, [[1.0]], [1], enlarged(share, k)).certified_accuracy for k in (1, 1.8, 2)
    ]
    assert curve.certified_accuracy.tolist() == proven == [1, 1, 0]
    regression = stump.replace(task="regression")
    report = hw.audit(regression, [[1.0], [2.0]], [1.0, 1.0], share, n_jobs=1)
    assert [at["found"] for at in report.content["strength"]] == [0, 0, 0, 0, 0, 0, 2, 2]


def test_a_frame_without_rows_has_no_spread():
    with pytest.raises(ValueError, match="X has no rows"):
        hw.Threat.from_frame(pd.DataFrame({"a": []}))
