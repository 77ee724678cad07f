"""
Images: what fools a classifier of digits
=========================================

The nearest example of each image, and what changed. For a natural model a change that nobody sees
is enough; a robust one needs a change that one can see.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import hardwood as hw

X, y = load_digits(return_X_y=True)
X = X / 16
two = (y == 3) | (y == 8)
X, y = X[two], y[two]
threat = hw.Threat(eps=0.2, low=0, high=1)

for name, eps in (("natural", 0), ("robust", 0.2)):
    model = hw.RobustGradientBoostingClassifier(eps=eps, n_estimators=30, max_depth=4)
    model.fit(X[:250], y[:250])
    display = hw.AdversarialGridDisplay.from_estimator(
        model, X[250:], y[250:], image=(8, 8), threat=threat
    )
    step = abs(display.X_adv - display.X).max(axis=1).mean()
    display.figure_.suptitle(f"{name}: mean smallest change {step:.2f} of the range of a pixel")
    print(f"{name}: accuracy {model.score(X[250:], y[250:]):.3f}, mean change {step:.3f}")
plt.show()
