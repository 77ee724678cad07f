"""Fitted estimators through the tools that keep models."""

import io

import joblib
import numpy as np
import pytest

import hardwood as hw

FITTED = {
    "tree": hw.RobustDecisionTreeClassifier(max_depth=3),
    "forest": hw.RobustRandomForestClassifier(n_estimators=3, max_depth=3, random_state=0),
    "boosting": hw.RobustGradientBoostingClassifier(n_estimators=3, threat=hw.Threat(0.1, low=0)),
}


@pytest.mark.parametrize("name", FITTED)
def test_joblib_and_skops_give_the_model_back(name):
    import skops.io as skops

    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    model = FITTED[name].fit(X, X[:, 0] > 0.5)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    kept = skops.dumps(model)
    types = skops.get_untrusted_types(data=kept)
    assert all(one.startswith("hardwood.") for one in types)  # ours, and nothing else
    for again in (joblib.load(file), skops.loads(kept, trusted=types)):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.trees_.feature.tobytes() == model.trees_.feature.tobytes()
