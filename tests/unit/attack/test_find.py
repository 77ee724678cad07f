"""What users meet when they attack: foreign models, frames, seeds, budgets, words of errors."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import minmax_scale

import hardwood as hw

HASTY = hw.ChengSettings(n_directions=2, n_samples=2, n_jumps=1, n_iterations=1)
QUICK = hw.ChengSettings(n_directions=5, n_samples=5, n_jumps=5, n_iterations=5)


@pytest.fixture(scope="module")
def table():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X), y


MODELS = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1),
    "forest": lambda: RandomForestClassifier(20, random_state=0),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=20),
    "ours": lambda: hw.RobustGradientBoostingClassifier(eps=0.05, n_estimators=20, max_depth=4),
}


@pytest.mark.parametrize("kind", MODELS)
def test_examples_fool_the_source_itself(kind, table):
    X, y = table
    model = MODELS[kind]().fit(X[:400], y[:400])
    truth = hw.find_adversarial(model, X[400:480], y[400:480], method="exact").distance
    for method in ("auto", "descent", "symbolic", "cheng"):
        settings = QUICK if method == "cheng" else None
        result = hw.find_adversarial(
            model, X[400:480], y[400:480], method=method, settings=settings, random_state=0
        )
        fooled = result.success
        np.testing.assert_array_equal(
            result.status == "misclassified", model.predict(X[400:480]) != y[400:480]
        )
        assert fooled.sum() > 60
        assert (model.predict(result.X_adv[fooled]) != y[400:480][fooled]).all()
        assert (result.distance[fooled] >= truth[fooled]).all()


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_boosters_are_asked_for_their_margins(kind, table):
    X, y = table
    model = MODELS[kind]().fit(X[:400], y[:400])
    booster = model.get_booster() if kind == "xgboost" else model.booster_
    ours = hw.find_adversarial(booster, X[400:430], y[400:430])
    np.testing.assert_array_equal(
        ours.X_adv, hw.find_adversarial(model, X[400:430], y[400:430]).X_adv
    )


def test_frames_and_labels_of_words(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"c{f}" for f in range(X.shape[1])])
    words = np.where(y == 1, "benign", "malignant")
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(frame[:400], words[:400])
    for method in ("auto", "cheng"):
        result = hw.find_adversarial(
            model,
            frame[400:430],
            words[400:430],
            method=method,
            settings=HASTY if method == "cheng" else None,
            random_state=0,
        )
        lines = result.to_frame()
        assert lines.columns[:3].tolist() == ["status", "success", "distance"]
        assert lines.columns[-1] == "c29"
        examples = lines.loc[result.success, frame.columns]
        assert (model.predict(examples) != words[400:430][result.success]).all()


def test_many_classes(table):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, y)
    truth = hw.minimal_distance(model, X, y).upper
    for method in ("descent", "symbolic", "cheng"):
        settings = QUICK if method == "cheng" else None
        result = hw.find_adversarial(model, X, y, method=method, settings=settings, random_state=0)
        assert result.success.mean() > 0.9
        assert (model.predict(result.X_adv[result.success]) != y[result.success]).all()
        assert (result.distance >= truth).all()


def test_norms_are_ordered_row_by_row(table):
    X, y = table
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:400], y[:400])
    found = {
        (method, norm): hw.find_adversarial(
            model, X[400:412], y[400:412], norm=norm, method=method
        ).distance
        for method in ("exact", "kantchelian")
        for norm in ("inf", 2, 1, 0)
    }
    for method in ("exact", "kantchelian"):
        assert (found[method, "inf"] <= found[method, 2] * (1 + 1e-6)).all()
        assert (found[method, 2] <= found[method, 1] * (1 + 1e-6)).all()
    for norm in ("inf", 2, 1, 0):
        np.testing.assert_allclose(found["kantchelian", norm], found["exact", norm], rtol=1e-5)


def test_the_time_limit_of_kantchelian_leaves_honest_bounds(table):
    X, y = table
    model = RandomForestClassifier(30, random_state=0).fit(X[:400], y[:400])
    truth = hw.minimal_distance(model, X[400:405], y[400:405]).upper
    result = hw.find_adversarial(
        model, X[400:405], y[400:405], method="kantchelian", time_limit=0.02
    )
    assert (result.lower <= truth + 2e-6).all()
    assert (result.distance >= truth).all()


def test_auto_says_which_attack_ran(table):
    X, y = table
    forest = RandomForestClassifier(20, random_state=0).fit(X[:400], y[:400])
    tree = forest.estimators_[0]
    assert hw.find_adversarial(tree, X, y.astype(float)).method == "tree"
    assert hw.find_adversarial(forest, X[400:405], y[400:405]).method == "exact"
    hurried = {"total_time_limit": 1e-6}
    assert hw.find_adversarial(forest, X[400:405], y[400:405], **hurried).method == "descent"
    found = hw.find_adversarial(forest, X[400:405], y[400:405], norm=0, **hurried)
    assert found.method == "symbolic"


def test_progress_is_told_by_descent_and_cheng(table):
    X, y = table
    model = RandomForestClassifier(20, random_state=0).fit(X[:400], y[:400])
    for method in ("descent", "cheng"):
        told = []
        hw.find_adversarial(
            model,
            X[400:],
            y[400:],
            method=method,
            settings=HASTY if method == "cheng" else None,
            progress=lambda *state, told=told: told.append(state),
        )
        done, _, rows = map(list, zip(*told, strict=True))
        assert done == sorted(done)
        assert set(rows) == {int((model.predict(X[400:]) == y[400:]).sum())}  # the right ones
        assert done[-1] == rows[-1]


class Stump:
    """A classifier that is no tree to anybody, and counts the rows it is asked about."""

    def __init__(self):
        self.n_asked = 0

    def predict(self, X):
        self.n_asked += len(X)
        return np.where(X[:, 0] + X[:, 1] > 1, "yes", "no")


@pytest.mark.parametrize("norm", ["inf", 2])
def test_cheng_needs_only_labels(norm):
    rng = np.random.default_rng(0)
    X = rng.random((40, 5))
    stump = Stump()
    y = stump.predict(X)
    stump.n_asked = 0
    result = hw.find_adversarial(stump, X, y, method="cheng", norm=norm, random_state=1)
    assert result.success.all()
    assert result.n_queries.sum() == stump.n_asked
    # The plane's own distance: |x0 + x1 - 1| shared by two features.
    truth = np.abs(X[:, 0] + X[:, 1] - 1) / (2 if norm == "inf" else np.sqrt(2))
    assert (result.distance >= truth * (1 - 1e-9)).all()
    assert result.mean_distance < 1.05 * truth.mean()


def test_cheng_is_seeded_and_respects_its_budget():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    runs = [
        hw.find_adversarial(
            model, X, y, method="cheng", random_state=seed, settings=hw.ChengSettings(max_queries=n)
        )
        for seed, n in ((3, 200), (3, 200), (4, 200), (3, 800))
    ]
    np.testing.assert_array_equal(runs[0].X_adv, runs[1].X_adv)
    assert (runs[0].X_adv != runs[2].X_adv).any()
    assert runs[0].n_queries.max() <= 200
    assert 200 < runs[3].n_queries.max() <= 800
    assert runs[3].mean_distance < runs[0].mean_distance


def test_training_rows_help_cheng_to_start():
    rng = np.random.default_rng(0)
    X = rng.random((200, 30))
    y = (X[:, :3].min(axis=1) > 0.5).astype(int)
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    one = X[y == 0][:1]
    alone = hw.find_adversarial(model, one, [0], method="cheng", settings=QUICK, random_state=0)
    helped = hw.find_adversarial(
        model, one, [0], method="cheng", settings=QUICK, random_state=0, X_train=X, y_train=y
    )
    assert helped.success.all()
    assert helped.distance[0] <= alone.distance[0]


def test_a_constant_model_survives(table):
    X, y = table
    model = hw.RobustDecisionTreeClassifier(eps=0, max_depth=1).fit(X, y).trees_
    constant = hw.Trees([-1], [0.0], [-1], [-1], [False], [1.0], [0, 1], n_features=X.shape[1])
    assert model.n_features == constant.n_features
    for method in ("auto", "papernot", "symbolic", "descent", "cheng"):
        result = hw.find_adversarial(constant, X[:5], np.ones(5, dtype=int), method=method)
        assert (result.status == "survived").all()
        assert np.isinf(result.distance).all()
        assert result.attacked_accuracy == 1
        assert np.isnan(result.mean_distance)
        assert hw.find_adversarial(constant, X[:5], np.zeros(5, dtype=int)).distance.max() == 0


def test_errors_say_what_to_do(table):
    X, y = table
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)

    def attack(**given):
        hw.find_adversarial(forest, X[:5], y[:5], **given)

    with pytest.raises(ValueError, match=r'one of "auto", "exact", .*got method=.x.'):
        attack(method="x")
    with pytest.raises(ValueError, match=r"attacks single trees, but the model has 3; use"):
        attack(method="papernot")
    with pytest.raises(ValueError, match='measures in the norms "inf" and 2, got norm=1'):
        attack(method="cheng", norm=1)
    with pytest.raises(ValueError, match='"inf", 1 and 2, got norm=0; use method="symbolic"'):
        attack(method="descent", norm=0)
    with pytest.raises(ValueError, match="threat has norm='inf' but norm=2 was asked for"):
        attack(norm=2, threat=hw.Threat(0.1))
    with pytest.raises(ValueError, match='settings must be a ChengSettings, with method="cheng"'):
        attack(settings=hw.ChengSettings())
    with pytest.raises(ValueError, match="X_train and y_train belong together"):
        attack(method="cheng", X_train=X)
    with pytest.raises(ValueError, match=r"y_train has shape \(3,\) but X_train has 569 rows"):
        attack(method="cheng", X_train=X, y_train=y[:3])
    with pytest.raises(ValueError, match="n_samples must be a whole number >= 1, got n_samples=0"):
        hw.ChengSettings(n_samples=0)
    with pytest.raises(ValueError, match="smoothing must be a number > 0, got smoothing=-1"):
        hw.ChengSettings(smoothing=-1)
    with pytest.raises(hw.UnsupportedModelError, match=r"load_model cannot read builtins\.object"):
        hw.find_adversarial(object(), X, y, method="cheng")
    with pytest.raises(ValueError, match="y contains 7, which the model has not seen"):
        hw.find_adversarial(forest, X[:1], [7], method="cheng")


def test_splits_on_categories_are_attacked():
    frame = pd.DataFrame({"a": [0.1, 0.9] * 20, "c": pd.Categorical(["x", "y", "z", "y"] * 10)})
    y = np.array([0, 1, 1, 0] * 10)
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, enable_categorical=True)
    model.fit(frame, y)
    numbers = hw.find_adversarial(model, frame, y)
    assert (numbers.X_adv["c"] == frame["c"])[numbers.success].all()
    threat = hw.Threat({"c": {"x": ["z"]}})
    changed = hw.find_adversarial(model, frame, y, method="kantchelian", threat=threat)
    fooled = changed.success
    assert fooled.any()
    assert set(frame["c"][fooled]) == {"x"}
    assert set(changed.X_adv["c"][fooled]) == {"z"}
    assert set(changed.distance[fooled]) == {1}


def test_cheng_moves_whole_numbers_of_a_frame_by_whole_steps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 9, 300), "pay": rng.normal(size=300)})
    y = (frame.age + 2 * frame.pay > 4).astype(int)
    models = [
        LogisticRegression().fit(frame, y),  # no trees are known of it
        hw.RobustGradientBoostingClassifier(eps=0, n_estimators=10).fit(frame, y),
    ]
    for model in models:
        for eps in (0.5, 1.5):
            threat = hw.Threat({"age": eps, "pay": 0.4})
            found = hw.find_adversarial(
                model, frame[:40], y[:40], method="cheng", threat=threat, settings=QUICK
            )
            moved = np.abs(found.X_adv.age - frame.age[:40])[found.success]
            assert found.success.any()
            assert set(moved) <= ({0.0} if eps < 1 else {0.0, 1.0})


@pytest.mark.parametrize("method", ["exact", "kantchelian"])
@pytest.mark.parametrize("beyond", [0, 1])
def test_of_two_examples_as_far_as_the_threat_goes_the_one_inside_is_found(method, beyond):
    # From -1 to 1e-35 is a step of 1 after rounding, and yet -1 + 1 is 0.
    threshold = [1.0, 1.0, 1.0]
    threshold[beyond] = 1e-35
    trees = hw.Trees(
        [0, -1, -1, 1, -1, -1, 2, -1, -1],
        np.array([[one, 0, 0] for one in threshold]).ravel(),
        [1, 0, 0] * 3,
        [2, 0, 0] * 3,
        [True, False, False] * 3,
        [0, -1, 3, 0, -1, 3, 0, 0, 0],
        [0, 3, 6, 9],
        n_features=3,
    )
    X = np.zeros((1, 3))
    X[0, beyond] = -1
    result = hw.find_adversarial(trees, X, [0], method=method, threat=hw.Threat(1.0))
    assert result.status.tolist() == ["fooled"]
    np.testing.assert_array_equal(np.flatnonzero(result.X_adv[0] != X[0]), [1 - beyond])
