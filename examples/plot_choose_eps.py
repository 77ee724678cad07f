"""
Choose the eps to train for
===========================

The threat that a model will meet is given; the eps that it is trained for is a choice. A larger one
gives up some accuracy for proofs, and cross-validation shows where that pays.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

import hardwood as hw

THREAT = hw.Threat(eps=0.05, low=0, high=1)  # what the model will meet
SIZES = (0, 0.02, 0.05, 0.1, 0.15)

X, y = load_breast_cancer(return_X_y=True)
folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
means = []
print("trained for eps   accuracy   certified accuracy")
for eps in SIZES:
    scores = []
    for train, test in folds:
        scaler = MinMaxScaler(clip=True).fit(X[train])
        model = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=5)
        model.fit(scaler.transform(X[train]), y[train])
        rows = scaler.transform(X[test])
        certificate = hw.certify(model, rows, y[test], THREAT)
        scores.append((model.score(rows, y[test]), certificate.certified_accuracy))
    means.append(np.mean(scores, axis=0))
    print(f"{eps:>15g}   {means[-1][0]:8.3f}   {means[-1][1]:18.3f}")

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(SIZES, np.array(means), marker="o", label=["accuracy", "certified at eps 0.05"])
ax.set_xlabel("eps that the tree is trained for")
ax.set_ylabel("mean over four folds")
ax.legend()
plt.show()
