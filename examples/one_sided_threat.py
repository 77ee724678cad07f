"""Describe an adversary that can only add, and only to some columns.

Messages are described by three numbers. Whoever writes spam can add harmless words and links to
other places, but cannot take words away, and cannot change how old the account is.
"""

import numpy as np
import pandas as pd

import hardwood as hw

THREAT = hw.Threat(eps={"harmless words": (0, 40), "links": (0, 2)})  # the age is not named: fixed


def make_messages(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    spam = rng.random(n) < 0.5
    table = pd.DataFrame(
        {
            "harmless words": rng.poisson(np.where(spam, 40, 70)),
            "links": rng.poisson(np.where(spam, 5, 1)),
            "account age": rng.gamma(2, np.where(spam, 20, 200)),
        }
    )
    return table, np.where(spam, "spam", "mail")


def main() -> None:
    X, y = make_messages(4000)
    train, test = slice(0, 3000), slice(3000, None)
    is_spam = y[test] == "spam"
    for name, threat in (("natural", hw.Threat(0)), ("robust", THREAT)):
        model = hw.RobustDecisionTreeClassifier(threat=threat, max_depth=4).fit(X[train], y[train])
        certificate = hw.certify(model, X[test][is_spam], y[test][is_spam], THREAT)
        print(
            f"{name:<8} accuracy {model.score(X[test], y[test]):.3f}   "
            f"spam that stays caught {certificate.certified_accuracy:.3f}"
        )
        used = model.feature_importances_.round(2).tolist()
        print(f"         importance {dict(zip(model.feature_names_in_, used, strict=True))}")


if __name__ == "__main__":
    main()
