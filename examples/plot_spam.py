"""
Spam: an adversary that can only add
====================================

Messages are described by three numbers. Whoever writes spam can add harmless words and links to
other places, but cannot take words away, and cannot change how old the account is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import hardwood as hw

rng = np.random.default_rng(0)
spam = rng.random(3000) < 0.5
X = pd.DataFrame(
    {
        "harmless words": rng.poisson(np.where(spam, 40, 70)).astype(float),
        "links": rng.poisson(np.where(spam, 5, 1)).astype(float),
        "account age": rng.gamma(2, np.where(spam, 20, 200)),
    }
)
y = np.where(spam, "spam", "mail")
threat = hw.Threat(eps={"harmless words": (0, 40), "links": (0, 2)})  # the age is not named: fixed
print(threat.describe())

# %%
# What counts is the spam that stays caught, whatever is added to it.
is_spam = y[2000:] == "spam"
bars = {}
for name, trained_for in (("natural", hw.Threat(0)), ("robust", threat)):
    model = hw.RobustDecisionTreeClassifier(threat=trained_for, max_depth=4).fit(X[:2000], y[:2000])
    certificate = hw.certify(model, X[2000:][is_spam], y[2000:][is_spam], threat)
    bars[name] = (model.score(X[2000:], y[2000:]), certificate.certified_accuracy)
    print(f"{name}: accuracy {bars[name][0]:.3f}, spam that stays caught {bars[name][1]:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
place = np.arange(2)
for shift, (name, heights) in zip((-0.2, 0.2), bars.items(), strict=True):
    ax.bar(place + shift, heights, width=0.38, label=f"{name} tree")
ax.set_xticks(place, ["accuracy", "spam that stays caught"])
ax.set_ylim(0, 1)
ax.legend()
plt.show()
