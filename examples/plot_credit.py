"""
A lender's pipeline, asked in the lender's own columns
======================================================

A lender has a scikit-learn pipeline: incomes and months are scaled, jobs and purposes are one-hot
encoded, blanks are filled in, and from a probability of default of .3 on a loan is declined.
Applicants who would be declined may round their income up by a fifth, claim up to six more months
in their job, and call an unskilled job a skilled one; whoever lies in more than two fields is found
out. Who gets through?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import hardwood as hw

# %%
# A table like those of lenders, with whole numbers, words and blanks:


def make_loans(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    job = rng.choice(["skilled", "unskilled", "without"], n, p=[0.6, 0.3, 0.1])
    loans = pd.DataFrame(
        {
            "income": np.exp(rng.normal(10.3, 0.4, n)).round(-2) * (1 - 0.4 * (job == "without")),
            "months in job": rng.integers(0, 120, n),
            "job": job,
            "purpose": rng.choice(["car", "house", "business"], n),
            "amount": rng.gamma(3, 3000, n).round(-2),
            "savings": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(1, 4000, n).round()),
        }
    )
    burden = 3 * loans["amount"] / loans["income"] - loans["savings"].fillna(0) / 10_000
    risk = burden + (job == "without") - 0.01 * loans["months in job"] + rng.normal(0, 0.5, n)
    return loans, np.where(risk > 0.8, "default", "repaid")


loans, outcome = make_loans(3000)
defaults = outcome == "default"  # the second class, True, is the one whose probability decides

# %%
# Their pipeline, as it might stand in production:

numbers = ["income", "months in job", "amount", "savings"]
words = ["job", "purpose"]
pipeline = make_pipeline(
    ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("words", OneHotEncoder(handle_unknown="ignore"), words),
        ]
    ),
    GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=0),
)
pipeline.fit(loans[:2000], defaults[:2000])

# %%
# The threat, in the same columns. What is not named cannot be changed, and only those who will
# default lie.

threat = hw.Threat(
    {
        "income": hw.relative(0, 0.2),
        "months in job": (0, 6),
        "job": {"unskilled": ["skilled"], "without": ["unskilled"]},
    },
    max_changes=2,
    only=True,
)
print(threat.describe())

# %%
# The certificate, class by class. Overall accuracy hides that only one of the classes is attacked.

X, y = loans[2000:2300], defaults[2000:2300]
certificate = hw.certify(pipeline, X, y, threat, threshold=0.3)
print(certificate)
print(certificate.by_class().round(3).to_string())

# %%
# The applications that get through with the least of lies, each as a sentence. The distance is a
# multiple of what the threat allows; every example was replayed through the pipeline.

caught = np.flatnonzero((pipeline.predict_proba(X)[:, 1] >= 0.3) & y)
distance = hw.minimal_distance(pipeline, X.iloc[caught], y[caught], threat=threat, threshold=0.3)
for row in np.argsort(distance.upper)[:5]:
    print(f"application {X.index[caught[row]]}, {distance.upper[row]:.2f}: {distance.changes(row)}")

# %%
# Most of those that are caught stay caught: whatever lies right of 1 is out of the threat's reach.

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(distance.upper[np.isfinite(distance.upper)], bins=30)
ax.axvline(1, color="black", linestyle="--")
ax.set(
    xlabel="smallest change that gets through, in multiples of the threat", ylabel="applications"
)
