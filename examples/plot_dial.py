"""
The dial between clean and robust
=================================

``robustness`` goes from 0, an ordinary boosted model, to 1, trained for the worst case alone. In
between, a little clean accuracy buys many proofs.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

import hardwood as hw

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
scaler = MinMaxScaler(clip=True).fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
threat = hw.Threat(eps=0.1, low=0, high=1)

points = []
for robustness in (0.0, 0.5, 0.9, 1.0):
    model = hw.RobustGradientBoostingClassifier(
        threat=threat, robustness=robustness, n_estimators=60, max_depth=4
    ).fit(X_train, y_train)
    proven = hw.certify(model, X_test, y_test, threat).certified_accuracy
    points.append((proven, model.score(X_test, y_test), robustness))
    print(f"robustness {robustness}: accuracy {points[-1][1]:.3f}, proven {proven:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(*list(zip(*points, strict=True))[:2], marker="o", color="#1c7a4f")
for proven, clean, robustness in points:
    ax.annotate(f"{robustness:g}", (proven, clean), xytext=(6, 4), textcoords="offset points")
ax.set_xlabel("proven accuracy at eps 0.1")
ax.set_ylabel("clean accuracy")
plt.show()
