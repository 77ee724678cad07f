"""Certified boosting against its plain restatement and against brute force."""

import numpy as np
import pytest

import hardwood as hw
from hardwood.ensemble.boosting import Model, Sampling
from hardwood.ensemble.certified import CertifiedBooster, Ends, OneVsRest
from hardwood.ensemble.loss import BinaryLogistic, Huber, Poisson, Quantile, SquaredError
from hardwood.grow.newton import NewtonRules
from oracle.certified import Rules, Slow, all_thresholds, worst_margins


def make_booster(X, y, threat, *, loss=None, robustness=1.0, max_bins=256, rate=0.5, **rules):
    loss = loss or BinaryLogistic()
    base = loss.base(y.astype(np.float32), None)
    about = {"link": loss.link, "feature_names": None}
    return CertifiedBooster(
        X=X,
        y=y.astype(np.float32),
        weight=None,
        reach=threat.reach(X.shape[1]),
        max_bins=max_bins,
        robustness=robustness,
        loss=loss,
        monotonic=np.empty(0, np.int8),
        sampling=Sampling(),
        learning_rate=rate,
        rules=NewtonRules(inner="exact", **rules),
        model=Model(base, X.shape[1], about),
    )


THREATS = [
    hw.Threat(0.1),
    hw.Threat((0.0, 0.2)),
    hw.Threat((0.15, 0.05)),
    hw.Threat([0.1, 0.3], low=0.1, high=0.8),
    hw.Threat(0.25, fixed=[0]),
]


def random_case(rng, n_classes=2):
    """A small table whose values often fall on thresholds and on ends of balls."""
    n = int(rng.integers(5, 25))
    X = rng.integers(0, 11, size=(n, 2)) / 10
    if rng.random() < 0.5:
        X = X.astype(np.float32).astype(np.float64)
    if rng.random() < 0.3:
        X[rng.random((n, 2)) < 0.2] = np.nan
    y = rng.integers(0, n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.mark.parametrize("threat", THREATS, ids=repr)
@pytest.mark.parametrize("loss", ["logistic", "many", "squared", "huber", "poisson", "quantile"])
def test_certified_margins_hold_wherever_rows_are_moved(threat, loss):
    rng = np.random.default_rng(len(loss))
    losses = {
        "logistic": BinaryLogistic(),
        "many": OneVsRest(3),
        "squared": SquaredError(),
        "huber": Huber(1.0),
        "poisson": Poisson(),
        "quantile": Quantile(0.5),
    }
    for _ in range(40):
        X, y = random_case(rng, 3 if loss == "many" else 2)
        if loss not in ("logistic", "many"):
            y = y + rng.integers(0, 3, size=len(y))
        robustness = float(rng.choice([1.0, 0.6]))
        booster = make_booster(
            X,
            y,
            threat,
            loss=losses[loss],
            robustness=robustness,
            min_child_weight=0.1,
            max_depth=3,
        )
        for _ in range(int(rng.integers(1, 5))):
            booster.step()
        trees = booster.model.trees()
        # The ends of training, by codes, are those of the model, by comparing values.
        ends = Ends.of(booster.model, X, booster.reach, 1)
        assert np.array_equal(booster.ends.low, ends.low)
        assert np.array_equal(booster.ends.high, ends.high)
        for i, x in enumerate(X):
            low, high = worst_margins(trees, x, booster.reach.limits)
            assert (ends.low[i] <= low).all()
            assert (ends.high[i] >= high).all()


def test_one_tree_knows_its_worst_margins_exactly():
    rng = np.random.default_rng(1)
    for _ in range(50):
        X, y = random_case(rng)
        X = np.ascontiguousarray(X[:, :1])
        booster = make_booster(X, y, hw.Threat(0.1), min_child_weight=0.1, max_depth=1)
        booster.step()
        trees = booster.model.trees()
        for i, x in enumerate(X):
            low, high = worst_margins(trees, x, booster.reach.limits)
            assert booster.ends.low[i] == low
            assert booster.ends.high[i] == high


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("min_split_gain", [0.0, 0.4])
def test_trees_are_those_of_the_plain_restatement(seed, min_split_gain):
    rng = np.random.default_rng(seed)
    X = rng.random((60, 3))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=60) > 0.8).astype(int)
    threat = hw.Threat([0.05, 0.02, (0.0, 0.1)])
    booster = make_booster(
        X, y, threat, min_child_weight=0.5, max_depth=3, min_split_gain=min_split_gain
    )
    for _ in range(3):
        margin = np.where(y > 0, booster.ends.low[:, 0], booster.ends.high[:, 0]).astype(float)
        p = 1 / (1 + np.exp(-margin))
        slow = Slow(
            X,
            y == 1,
            p - y,
            p * (1 - p),
            booster.reach.limits,
            [booster.candidates(f) for f in range(3)],
            Rules(min_child_weight=0.5, min_split_gain=min_split_gain),
        )
        slow.grow()
        value = slow.refit(margin)
        booster.step()
        trees = booster.model.last_round()
        assert trees.feature.tolist() == [node[0] for node in slow.nodes]
        split = trees.feature >= 0
        assert trees.threshold[split].tolist() == [t for f, t, _ in slow.nodes if f >= 0]
        assert trees.value[~split, 0] == pytest.approx(0.5 * value[~split], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("limits", [(0.1, 0.1, -9, 9), (0.0, 0.2, -9, 9), (0.1, 0.1, 0.2, 0.7)])
def test_candidates_dominate_all_thresholds(limits):
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = int(rng.integers(3, 20))
        X = rng.random((n, 1)) if rng.random() < 0.5 else rng.integers(0, 9, (n, 1)) / 8
        y = rng.permutation(np.arange(n) % 2)
        threat = hw.Threat([limits[:2]], low=limits[2], high=limits[3])
        booster = make_booster(X, y, threat)
        p = np.full(n, 0.5)
        slow = Slow(
            X, y == 1, p - y, p * (1 - p), np.array([limits]), [], Rules(min_child_weight=0.0)
        )
        rows, weight = np.arange(n), np.ones(n)

        def best(thresholds, slow=slow, rows=rows, weight=weight):
            gains = [
                slow.worst_gain(rows, weight, 0, t, left_is_lower)
                for t in thresholds
                for left_is_lower in (True, False)
            ]
            return max((gain for gain in gains if gain is not None), default=0.0)

        assert best(booster.candidates(0)) >= best(all_thresholds(X[:, 0], limits)) - 1e-12


def test_candidates_beyond_the_bins_are_those_with_few_ambiguous_rows():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 300), rng.normal(8, 1, 300)])[:, None]
    y = (X[:, 0] > 4).astype(int)
    few = make_booster(X, y, hw.Threat(0.1), max_bins=9).candidates(0)
    every = make_booster(X, y, hw.Threat(0.1), max_bins=1 << 16).candidates(0)
    assert len(few) <= 8 < len(every)
    assert set(few) <= set(every)
    n_ambiguous = [((X[:, 0] + 0.1 >= t) & (X[:, 0] - 0.1 < t)).sum() for t in few]
    assert min(n_ambiguous) == 0  # the gap between the two groups is found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certified_accuracy_of_training_is_never_above_the_proof(n_classes):
    rng = np.random.default_rng(n_classes)
    for seed in range(8):
        X = rng.random((120, 3)).round(2)
        y = np.digitize(X[:, 0] + 0.3 * rng.random(120), np.arange(1, n_classes) / n_classes)
        threat = hw.Threat(0.05)
        model = hw.RobustGradientBoostingClassifier(
            threat=threat, n_estimators=6, max_depth=4, random_state=seed
        ).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
        for where, rows in (("train", slice(0, 80)), ("validation", slice(80, None))):
            claimed = model.evals_result_[where]["certified_accuracy"]
            assert len(claimed) == 6
            proven = hw.certify(model, X[rows], y[rows], threat).certified_accuracy
            assert claimed[-1] <= proven


def test_margins_that_round_to_a_tie_are_not_certified():
    def certified(low, high, y):
        ends = Ends(np.array([low], np.float32), np.array([high], np.float32))
        return bool(ends.certified(np.array([y], np.float32))[0])

    # A probability above one half by less than float32 can tell is one half: the first class.
    assert not certified([3e-8], [3e-8], 1)
    assert certified([3e-8], [3e-8], 0)
    assert certified([1e-6], [1.0], 1)
    # So are shares of several classes; of two that round to the same the first wins.
    assert not certified([0.0, 3e-8, -1.0], [0.0, 3e-8, -1.0], 1)
    assert certified([0.0, 1e-5, -1.0], [0.0, 1e-5, -1.0], 1)
