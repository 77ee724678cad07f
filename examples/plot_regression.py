"""
Regression: how far can a prediction be pushed?
===============================================

A model that predicts a number has no label to turn. Two questions have exact answers all the same:
how far can the prediction be pushed within a threat, and how large a change moves it by so much?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import hardwood as hw

X, y = load_diabetes(return_X_y=True)
model = GradientBoostingRegressor(n_estimators=60, max_depth=3, random_state=0).fit(
    X[:350], y[:350]
)
rows = X[350:410]

# %%
# Every measurement may be off by 0.005, a tenth of its standard deviation.
reach = hw.output_range(model, rows, hw.Threat(eps=0.005))
print(f"mean width of the range {np.mean(reach.upper - reach.lower):.1f}")

# %%
# The smallest error of measurement that moves a prediction by more than 30.
found = hw.minimal_distance(model, rows, change=30)
print(f"smallest change that moves a prediction by 30: median {np.median(found.upper):.4f}")

# %%
said = model.predict(rows)
order = np.argsort(said)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.vlines(np.arange(len(rows)), reach.lower[order], reach.upper[order], color="#b93a12")
ax.plot(np.arange(len(rows)), said[order], ".", color="black", label="prediction")
ax.set_xlabel("rows, by their prediction")
ax.set_ylabel("prediction, and how far it can be pushed")
ax.legend()
plt.show()
