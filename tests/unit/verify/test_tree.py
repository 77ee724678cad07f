"""minimal_distance and certify: what they refuse, what they say, and single cases worth naming."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw
from hardwood.verify.problem import Problem

BIGGEST = float(np.finfo(np.float32).max)


def stumps(threshold, x_dtype=np.float64, classes=None, n_trees=1, **options):
    """x[0] < threshold is class 0, else class 1; a missing value goes left."""
    return hw.Trees(
        [0, -1, -1] * n_trees,
        np.array([threshold, 0, 0] * n_trees, dtype=x_dtype),
        [1, 0, 0] * n_trees,
        [2, 0, 0] * n_trees,
        [True, False, False] * n_trees,
        [0.0, -1.0, 1.0] * n_trees,
        range(0, 3 * n_trees + 1, 3),
        n_features=2,
        classes=classes,
        **options,
    )


@pytest.mark.parametrize("question", [hw.minimal_distance, hw.certify], ids=["distance", "certify"])
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (dict(model=RandomForestClassifier()), ValueError, "RandomForestClassifier is not fitted"),
        (
            dict(y=[2]),
            ValueError,
            r"y contains 2, which the model has not seen; its labels are \[0, 1\]",
        ),
        (dict(y=["oak"]), ValueError, r"y contains 'oak', which the model has not seen"),
        (
            dict(y=[0, 1]),
            ValueError,
            r"y has shape \(2,\) but X has 1 rows; pass one label per row",
        ),
        (dict(y=[[0]]), ValueError, r"y has shape \(1, 1\) but X has 1 rows"),
        (dict(X=[[1.0]]), ValueError, "X has 1 features but the model was trained on 2"),
        (dict(X=np.zeros((0, 2)), y=[]), ValueError, "X has no rows; pass at least one"),
        (dict(X=[[0, np.inf]]), ValueError, "infinity or a value too large"),
        (
            dict(time_limit=0),
            ValueError,
            "time_limit must be a number of seconds > 0, got time_limit=0",
        ),
        (dict(time_limit=-1.5), ValueError, "got time_limit=-1.5"),
        (dict(n_jobs=0), ValueError, "n_jobs must not be 0"),
        (dict(threat=hw.Threat([1, 2, 3])), ValueError, "eps has 3 entries but X has 2 features"),
    ],
    ids=str,
)
def test_refusals(question, change, error, words):
    arguments = dict(model=stumps(0.5), X=[[0.0, 0.0]], y=[0], threat=hw.Threat(0.1))
    question(**arguments)
    with pytest.raises(error, match=words):
        question(**{**arguments, **change})


def test_refusals_about_norms():
    arguments = dict(model=stumps(0.5), X=[[0.0, 0.0]], y=[0])
    with pytest.raises(ValueError, match='norm must be "inf", 1, 2 or 0, got norm=3'):
        hw.minimal_distance(**arguments, norm=3)
    with pytest.raises(
        ValueError, match="threat has norm=2 but norm=1 was asked for; make them equal"
    ):
        hw.minimal_distance(**arguments, norm=1, threat=hw.Threat(1, norm=2))
    with pytest.raises(TypeError, match=r"threat must be a hardwood\.Threat, got float"):
        hw.minimal_distance(**arguments, threat=0.1)
    with pytest.raises(ValueError, match="eps must be a finite number >= 0, got eps=-1"):
        hw.certify(**arguments, threat=-1)


def test_labels_are_those_of_the_model():
    model = stumps(0.5, classes=["oak", "elm"])  # not sorted
    X = [[0.0, 0.0], [1.0, 0.0]]
    assert model.predict(X).tolist() == ["oak", "elm"]
    found = hw.minimal_distance(model, X, ["oak", "oak"])
    assert found.status.tolist() == ["exact", "misclassified"]
    assert found.reason.tolist() == ["", "the model gets this row wrong without an attack"]
    assert found.upper.tolist() == [0.5, 0]


def test_an_example_sits_on_the_threshold_or_just_below():
    found = hw.minimal_distance(stumps(0.5), [[0.0, 9.0], [1.0, 9.0]], [0, 1])
    assert found.X_adv.tolist() == [[0.5, 9.0], [np.nextafter(0.5, 0), 9.0]]
    # Rounded up, so that the ball of this size holds the example: 1 - 0.5 alone would not.
    assert found.upper.tolist() == [0.5, np.nextafter(0.5, 1)]
    # In float32, every double that rounds to 0.5 goes right; ties go to the even 0.5.
    halfway = (0.5 + float(np.nextafter(np.float32(0.5), np.float32(0)))) / 2
    found = hw.minimal_distance(stumps(0.5, np.float32), [[0.0, 9.0], [1.0, 9.0]], [0, 1])
    assert found.X_adv.tolist() == [[halfway, 9.0], [np.nextafter(halfway, 0), 9.0]]


@pytest.mark.parametrize("x_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [-BIGGEST, np.inf, -np.inf])
@pytest.mark.parametrize("norm", ["inf", 1, 2, 0])
def test_present_against_missing_cannot_be_crossed(threshold, x_dtype, norm):
    model = stumps(threshold, x_dtype)
    X = np.array([[0.0, 0.0], [np.nan, 0.0], [-BIGGEST, 0.0], [BIGGEST, 0.0]])
    found = hw.minimal_distance(model, X, model.predict(X), norm=norm)
    assert np.isinf(found.lower).all()
    assert np.isnan(found.X_adv).all()
    biggest = hw.Threat(2 if norm == 0 else BIGGEST, norm=norm)
    assert hw.certify(model, X, model.predict(X), biggest).certified_accuracy == 1


@pytest.mark.parametrize("norm", ["inf", 1, 2])
def test_a_step_to_the_end_of_the_ball_is_inside_whatever_the_scale(norm):
    """0.1 / (0.1 / 0.3) is more than 0.3 in floating point."""
    rng = np.random.default_rng(0)
    for eps in [(0.1, 0.3), *rng.random((50, 2))]:
        model = stumps(eps[0])
        threat = hw.Threat(np.array(eps), norm=norm)
        certificate = hw.certify(model, [[0.0, 0.0]], [0], threat)
        assert certificate.status[0] == "broken"
        shorter = hw.Threat([np.nextafter(eps[0], 0), eps[1]], norm=norm)
        assert hw.certify(model, [[0.0, 0.0]], [0], shorter).status[0] == "certified"


def test_a_base_that_float32_cannot_hold_is_rounded_before_the_leaf_is_added():
    # 0.1f - 0.1f is 0, the first class; 0.1 - 0.1f is not 0, and 0.1 alone is not a float32.
    tenth = np.float32(0.1)
    model = hw.Trees(
        [0, -1, -1],
        np.float32([0.5, 0, 0]),
        [1, 0, 0],
        [2, 0, 0],
        [0, 0, 0],
        np.array([0, -tenth, 1 - tenth], dtype=np.float32),
        [0, 3],
        base=0.1 + 1e-9,
        n_features=1,
    )
    assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]
    assert hw.minimal_distance(model, [[0.0]], [0]).status[0] == "exact"
    assert hw.minimal_distance(model, [[1.0]], [1]).upper[0] > 0.5


def test_tiny_distances_are_not_0_in_norm_2():
    found = hw.minimal_distance(stumps(1e-200), [[0.0, 0.0]], [0], norm=2)
    assert found.lower[0] == 1e-200


def test_same_answers_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X, y = rng.random((2000, 5)), rng.integers(0, 3, 2000)
    model = hw.RobustDecisionTreeClassifier(eps=0.02, max_depth=6).fit(X, y)
    one = hw.minimal_distance(model, X, y, norm=2)
    for n_jobs in (2, 7):
        many = hw.minimal_distance(model, X, y, norm=2, n_jobs=n_jobs)
        assert many.upper.tobytes() == one.upper.tobytes()
        assert many.X_adv.tobytes() == one.X_adv.tobytes()


def test_results_say_what_they_are():
    X, y = [[0.0, 0.0], [1.0, 0.0], [0.2, 0.0], [0.4, 0.0]], [0, 0, 0, 0]
    assert repr(hw.minimal_distance(stumps(0.5), X, y)) == (
        "DistanceResult(n_samples=4, norm='inf', misclassified=1, unknown=0, mean_upper=0.3)"
    )
    assert "mean_upper=none" in repr(hw.minimal_distance(stumps(0.5), X[1:2], y[1:2]))
    certificate = hw.certify(stumps(0.5), X, y, 0.2)
    assert certificate.status.tolist() == ["certified", "broken", "certified", "broken"]
    assert certificate.reason.tolist() == ["", "misclassified", "", ""]
    assert repr(certificate) == (
        "Certificate(n_samples=4, threat=Threat(eps=0.2), certified_accuracy=0.5, "
        "attacked_accuracy=0.5, majority_share=1)"
    )


def test_an_example_that_does_not_replay_is_reported_as_a_bug():
    problem = Problem.of(stumps(0.5), [[0.0, 0.0], [1.0, 0.0]], [0, 1], None)
    problem.replay(problem.X[::-1].copy(), np.array([True, True]))
    with pytest.raises(hw.HardwoodError, match="example found for row 1 does not change the label"):
        problem.replay(problem.X, np.array([False, True]))
