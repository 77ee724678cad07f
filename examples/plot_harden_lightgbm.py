"""
A LightGBM model and its robust twin
====================================

The twin has as many trees of the same depth, and is trained on what it can still prove when the
adversary has moved every row as far as the threat lets it.
"""

import lightgbm as lgb
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

import hardwood as hw

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
scaler = MinMaxScaler(clip=True).fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
threat = hw.Threat(eps=0.05, low=0, high=1)

model = lgb.LGBMClassifier(n_estimators=60, max_depth=4, verbose=-1).fit(X_train, y_train)
twin = hw.harden(model, X_train, y_train, threat)

# %%
# Clean accuracy is the price, proven accuracy is the gain.
for name, one in (("LightGBM", model), ("its twin", twin)):
    certificate = hw.certify(one, X_test, y_test, threat)
    print(
        f"{name}: accuracy {one.score(X_test, y_test):.3f}, "
        f"proven {certificate.certified_accuracy:.3f}"
    )

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
hw.RobustnessCurveDisplay.from_estimator(model, X_test, y_test, threat, ax=ax, name="LightGBM")
hw.RobustnessCurveDisplay.from_estimator(twin, X_test, y_test, threat, ax=ax, name="its twin")
plt.show()
