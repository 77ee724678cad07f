"""Choose the eps to train for: accuracy against certified accuracy, by cross-validation."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

import hardwood as hw

THREAT = hw.Threat(eps=0.05, low=0, high=1)  # what the model will meet


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    print(f"certified against {THREAT}, five folds")
    print("trained for eps   accuracy   certified accuracy")
    for eps in (0, 0.02, 0.05, 0.1, 0.15):
        scores = []
        for train, test in folds:
            scaler = MinMaxScaler(clip=True).fit(X[train])
            model = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=5)
            model.fit(scaler.transform(X[train]), y[train])
            rows = scaler.transform(X[test])
            certificate = hw.certify(model, rows, y[test], THREAT)
            scores.append((model.score(rows, y[test]), certificate.certified_accuracy))
        accuracy, certified = np.mean(scores, axis=0)
        print(f"{eps:>15g}   {accuracy:8.3f}   {certified:18.3f}")


if __name__ == "__main__":
    main()
