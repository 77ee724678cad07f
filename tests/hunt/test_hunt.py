"""The hunt in short: one model of each kind, and the hunt itself held against planted errors."""

import linecache

import numpy as np
import pytest

import hardwood as hw
import hunt.kinds  # noqa: F401 - enters all kinds
from hunt import columns
from hunt.enumerate import Cells, Contradiction, edges_of, first_not_left
from hunt.hunt import hunt_one
from hunt.questions import Tally, answered, examine
from hunt.source import KINDS, Source


@pytest.mark.parametrize("name", KINDS)
def test_no_answer_is_wrong(name):
    tally = Tally()
    hunt_one(name, seed=0, number=0, tally=tally)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.models == 1


def stump(threshold=0.5, value=1.0):
    return hw.Trees(
        [0, -1, -1],
        np.array([threshold, 0, 0]),
        [1, -1, -1],
        [2, -1, -1],
        [True, False, False],
        np.array([0.0, -value, value]),
        [0, 3],
        n_features=1,
    )


def found_wrong(predict, task="label"):
    """Hunt a stump at .5 whose source says something else."""
    X = np.linspace(0, 1, 12)[:, None]
    tally = Tally()
    for seed in range(5):
        source = Source(stump(), predict, X, task, np.arange(2))
        examine(source, np.random.default_rng(seed), tally)
    return tally.wrong


def test_a_right_model_has_no_wrong_answers():
    assert found_wrong(lambda Z: (Z[:, 0] >= 0.5).astype(int)) == []


@pytest.mark.parametrize(
    ("predict", "word"),
    [
        (lambda Z: (Z[:, 0] < 0.5).astype(int), "Trees.predict"),
        (lambda Z: (Z[:, 0] < 0.5).astype(int), "certify"),
        (lambda Z: np.zeros(len(Z), dtype=int), "minimal_distance"),
        (lambda Z: (Z[:, 0] > 0.5).astype(int), "thresholds"),
        (lambda Z: (Z[:, 0] >= np.nextafter(0.5, 0)).astype(int), "thresholds"),
        (lambda Z: ((Z[:, 0] >= 0.5) & (Z[:, 0] < 0.7)).astype(int), "thresholds"),
    ],
)
def test_a_planted_error_is_found(predict, word):
    assert any(what.startswith(word) for what in found_wrong(predict))


def test_refusals_are_told_from_crashes(monkeypatch):
    """Also where the files that were imported say something else by now."""
    monkeypatch.setattr(linecache, "getline", lambda *_, **__: "")
    tally = Tally()
    answered(tally, "ours", lambda: hw.certify(stump(), np.zeros((2, 1)), [0, 7], 0.1))
    answered(tally, "Python's", lambda: int("seven"))
    assert [text.split(":")[0] for text in tally.refused] == ["ours"]
    assert [text.split(":")[0] for text in tally.wrong] == ["Python's"]


def test_labels_of_a_regressor_are_a_find():
    wrong = found_wrong(lambda Z: np.where(Z[:, 0] < 0.5, -1.0, 1.0), task="value")
    assert any("a model that has none" in what for what in wrong)


def test_cells_that_contradict_themselves_are_told():
    edges = edges_of(stump())
    with pytest.raises(Contradiction, match="elsewhere in the same cell"):
        Cells(edges, False, lambda Z: Z[:, 0], np.random.default_rng(0))


def test_first_not_left_is_where_float32_rounds_over():
    edge = first_not_left(np.float32(0.1), np.float32)
    assert np.float32(edge) >= np.float32(0.1) > np.float32(np.nextafter(edge, 0))


@pytest.mark.parametrize("name", columns.KINDS)
@pytest.mark.parametrize("number", range(3))
def test_no_answer_in_the_columns_of_users_is_wrong(name, number):
    tally = Tally()
    columns.hunt_one(name, seed=0, number=number, tally=tally)
    assert not tally.wrong, "\n".join(tally.wrong)


def test_the_very_limit_of_a_share_is_in_the_threat():
    """3 may sink by a half of itself: to 1.5, which is a threshold of this model, and not below."""
    column = columns.Column("age", down=0.5, up=0.2, share=True)
    options = column.options((3.0,), np.array([1.5, 3.5]))
    assert {o.values[0]: o.sure for o in options} == {
        3.0: True,
        1.5: True,
        np.nextafter(1.5, 0): False,
        np.nextafter(3.5, 0): True,
        3.5: True,
        3.0 + 0.2 * 3.0: True,
    }
    tally = Tally()
    columns.hunt_one("native LightGBM", seed=601, number=18, tally=tally)
    assert tally.asked == 3
    assert not tally.wrong, "\n".join(tally.wrong)


def test_a_step_that_is_no_float_is_infinitely_long():
    """A quarter of the least float is 0: a change of it by a float has no finite size."""
    plan = columns.Plan([], 2, None, None, hw.Threat(1.0))
    assert plan.length(np.array([[np.inf, 1.0], [3.0, 4.0], [0.0, 0.0]])).tolist() == [np.inf, 5, 0]


def test_a_planted_error_in_the_columns_of_users_is_found(monkeypatch):
    """The truth of a source that says the opposite of what was loaded."""

    def opposite(user, X, threshold):
        said = np.asarray(user.model.predict(X)).reshape(len(X))
        return np.asarray(user.classes)[1 - np.searchsorted(user.classes, said)]

    monkeypatch.setattr(columns.User, "label", opposite)
    tally = Tally()
    for number in range(3):
        columns.hunt_one("native our boosting", seed=0, number=number, tally=tally)
    assert {"certify", "minimal_distance"} <= {what.split()[0].strip(":") for what in tally.wrong}


def test_a_source_that_refuses_what_the_threat_allows_does_not_end_the_hunt():
    """A bin without rows, before a one-hot encoder: the pipeline takes no number of this bin."""
    tally = Tally()
    columns.hunt_one("pipeline, again", seed=811, number=67, tally=tally)
    assert not tally.wrong
    assert dict(tally.refused) == {"the source refuses a value that the threat allows": 1}
