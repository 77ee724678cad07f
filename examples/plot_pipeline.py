"""
A pipeline in its own columns
=============================

Models in use are pipelines: scalers, encoders, then trees. A pipeline is read with its steps pulled
back, so that questions are asked, and answered, in the columns that the pipeline itself takes:
dollars and years, not standard deviations.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardwood as hw

rng = np.random.default_rng(3)
n = 1200
X = pd.DataFrame(
    {
        "amount": rng.lognormal(4, 1, n).round(2),
        "hour": rng.uniform(0, 24, n).round(1),
        "days since last": rng.gamma(1.5, 6, n).round(1),
    }
)
odd = (X["amount"] > 120) & ((X["hour"] < 6) | (X["days since last"] > 20))
y = np.where(odd ^ (rng.random(n) < 0.03), "fraud", "fine")
pipeline = make_pipeline(
    StandardScaler(), HistGradientBoostingClassifier(max_iter=40, max_depth=4, random_state=0)
).fit(X[:800], y[:800])
trees = hw.load_model(pipeline, X[800:])
print(trees)

# %%
# A thief can split a payment and wait for an hour, but has no influence on the past.
threat = hw.Threat(eps={"amount": (30, 0), "hour": 1}, low=0)
report = hw.audit(pipeline, X[800:], y[800:], threat)
print(report.summary())

# %%
hw.DistanceDistributionDisplay.from_estimator(pipeline, X[800:], y[800:], threat)
plt.show()
