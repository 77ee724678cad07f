"""Small boosted models for tests: data with a smooth signal, and estimators that fit it quickly."""

import pickle

import numpy as np

import hardwood as hw

SMALL = {"eps": 0.02, "n_estimators": 8, "max_depth": 3}


def make_data(n=300, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return X, y


def classifier(**params):
    return hw.RobustGradientBoostingClassifier(**{**SMALL, **params})


def regressor(**params):
    return hw.RobustGradientBoostingRegressor(**{**SMALL, **params})


def same_model(a, b):
    return pickle.dumps(a.trees_) == pickle.dumps(b.trees_)
