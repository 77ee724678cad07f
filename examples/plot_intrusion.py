"""
Intrusions: many classes, columns in their own units
====================================================

Connections are normal traffic or one of two attacks. The adversary shapes its traffic: it can slow
down and pad packets, within what keeps the attack working. What an operator asks is class by class:
of these attacks, how many stay recognised?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw

rng = np.random.default_rng(2)
kind = rng.choice(["normal", "scan", "flood"], size=1500, p=[0.6, 0.2, 0.2])
mean = {"normal": (30, 500, 4), "scan": (120, 80, 40), "flood": (900, 300, 3)}
centre = np.array([mean[one] for one in kind])
X = pd.DataFrame(
    rng.gamma(4, centre / 4), columns=["packets a second", "bytes a packet", "ports touched"]
)
forest = RandomForestClassifier(50, max_depth=6, random_state=0).fit(X[:1000], kind[:1000])
threat = hw.Threat(
    eps={"packets a second": (60, 0), "bytes a packet": (0, 100), "ports touched": (5, 0)}, low=0
)
report = hw.audit(forest, X[1000:], kind[1000:], threat)
print(report.summary())

# %%
classes = report.content["classes"]
place = np.arange(len(classes))
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for shift, name, part in ((-0.2, "recall", "right"), (0.2, "proven recall", "certified")):
    ax.bar(place + shift, [one[part] / one["rows"] for one in classes], width=0.38, label=name)
ax.set_xticks(place, [one["label"] for one in classes])
ax.set_ylim(0, 1)
ax.legend(loc="lower right")
plt.show()
