"""
Which norm?
===========

The norm says how changes of several columns are counted together. In the maximum norm every column
moves by up to eps at once; in norm 1 the sizes of all changes add up; norm 2 lies between. The same
model looks different in each, so choose the one that your adversary pays by.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import minmax_scale

import hardwood as hw

X, y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)
forest = RandomForestClassifier(12, max_depth=4, random_state=0).fit(X[:400], y[:400])

figure, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
for norm in ("inf", 2, 1):
    found = hw.minimal_distance(forest, X[400:], y[400:], norm=norm)
    attacked = found.status != "misclassified"
    ax.ecdf(found.upper[attacked], label=f"norm {norm}")
    print(f"norm {norm}: mean smallest change {found.upper[attacked].mean():.3f}")
ax.set_xlabel("smallest change that fools the forest")
ax.set_ylabel("share of rows")
ax.legend()
plt.show()
