"""
Audit an XGBoost model
======================

The first question about a model in use is not how to train another one. It is how fragile this one
is: which customers could change their application a little and get another answer?

Here a lender's model is audited against applicants who can shift some income between months and pay
back a little debt, but cannot change their age.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xgboost as xgb

import hardwood as hw

rng = np.random.default_rng(0)
n = 1500
X = pd.DataFrame(
    {
        "income": rng.lognormal(10.6, 0.4, n).round(-2),
        "debt": rng.gamma(2, 6_000, n).round(-2),
        "age": rng.integers(20, 75, n).astype(float),
        "years at job": rng.gamma(2, 3, n).round(1),
    }
)
score = 0.4 * X["income"] - X["debt"] + 300 * X["years at job"] + rng.normal(0, 4_000, n)
y = (score > 6_000).astype(int)
model = xgb.XGBClassifier(n_estimators=80, max_depth=4, learning_rate=0.1).fit(X[:1000], y[:1000])

# %%
# The threat, in the columns' own units: dollars, and a pair (down, up) where one direction is
# easier than the other.
threat = hw.Threat(eps={"income": (500, 1_500), "debt": (1_000, 0), "years at job": 0.25})
print(threat.describe())

# %%
# One call asks everything; ``report.to_html("report.html")`` writes the page.
report = hw.audit(model, X[1000:], y[1000:], threat)
print(report.summary())

# %%
# The most fragile applications, as sentences:
for sentence in report.fragile.sentence[:5]:
    print(sentence)

# %%
# How accuracy falls as applicants get bolder, and which columns they use.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
hw.RobustnessCurveDisplay.from_estimator(model, X[1000:1300], y[1000:1300], threat, ax=left)
hw.ColumnBudgetDisplay.from_estimator(model, X[1000:1300], y[1000:1300], threat, ax=right)
plt.show()
