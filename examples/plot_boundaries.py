"""
What a robust boundary looks like
=================================

Around every row lies the box of points that the adversary can turn it into. An ordinary tree cuts
through the boxes; a robust one goes where few boxes are.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

import hardwood as hw

X, y = make_moons(120, noise=0.2, random_state=1)
threat = hw.Threat(eps=0.12)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True, sharey=True)
for ax, eps in zip(axes, (0, 0.12), strict=True):
    tree = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=5).fit(X, y)
    certificate = hw.certify(tree, X, y, threat)
    hw.DecisionBoundaryDisplay.from_estimator(tree, X, y, threat=threat, ax=ax)
    ax.set_title(
        f"trained for eps {eps}: right {tree.score(X, y):.2f}, "
        f"proven {certificate.certified_accuracy:.2f}"
    )
    print(f"eps {eps}: {certificate}")
plt.show()
