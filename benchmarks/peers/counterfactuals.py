"""The smallest change that turns a decision, on a census-like pipeline: ours, treecf's and DiCE's.

Fourteen raw columns, six whole numbers and eight categories, 100 columns after one-hot encoding;
XGBoost, 200 trees of depth 6. Everybody gets the same rows and the same costs: a tenth of a
number's spread costs 1, a change of category costs 1, and sums count (norm 1). Peers are asked if
they are there; they are in no extra of this package: `pip install treecf==0.3.2 dice-ml` into an
environment of its own, beside hardwood. Times are of the processor, on one thread; costs are
computed here, of what was returned, and an answer that does not turn the pipeline's own label
counts as none.
"""

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
import pandas as pd
from census import LEVELS, N_TRAIN, SPREADS, census, pipeline
from sklearn.pipeline import Pipeline

import hardwood as hw


def steps() -> dict[str, float]:
    """What costs 1, by number."""
    return {name: most / 10 for name, most in SPREADS.items()}


def cost(x: pd.Series, z: pd.Series) -> float:
    numbers = sum(abs(float(z[name]) - float(x[name])) / size for name, size in steps().items())
    return numbers + sum(z[name] != x[name] for name in LEVELS)


Answer = tuple[pd.Series | None, bool]  # the changed row, and whether it is proven to be the best


def ours(model: Pipeline, X: pd.DataFrame) -> Callable[[pd.DataFrame, int, float], Answer]:
    eps = {**steps(), **dict.fromkeys(LEVELS, hw.ANY)}
    low, high = dict.fromkeys(SPREADS, 0), dict(SPREADS)
    threat = hw.Threat(eps, norm=1, low=low, high=high, integer=list(SPREADS))
    trees = hw.load_model(model, X=X)

    def ask(row: pd.DataFrame, label: int, seconds: float) -> Answer:
        found = hw.minimal_distance(
            trees, row, [label], norm=1, threat=threat, time_limit=seconds, n_jobs=1
        )
        there = bool(np.isfinite(found.upper[0]))
        return (found.X_adv.iloc[0] if there else None), bool(found.status[0] == "exact")

    return ask


def treecf(model: Pipeline, X: pd.DataFrame) -> Callable[[pd.DataFrame, int, float], Answer]:
    from treecf import Explainer, OneHot, Range, Target

    before, booster = model[0], model[-1].get_booster()
    names = [f"f{k}" for k in range(len(before.get_feature_names_out()))]
    groups, at = {}, 0
    for name, known in zip(LEVELS, before.named_transformers_["words"].categories_, strict=True):
        groups[name] = (names[at : at + len(known)], known)
        at += len(known)
    numbers = dict(zip(SPREADS, names[at:], strict=True))
    # A change of category moves two dummies, so each of them costs a half.
    sigma = {name: 2.0 for name in names[:at]} | {numbers[n]: s for n, s in steps().items()}
    explainer = Explainer(
        booster,
        normalizers=sigma,
        constraints=[
            *(OneHot(tuple(some)) for some, _ in groups.values()),
            *(Range(numbers[name], 0, most) for name, most in SPREADS.items()),
            *(Range(name, 0, 1) for name in names[:at]),
        ],
        value_policy=dict.fromkeys(names, "integer"),
    )

    def ask(row: pd.DataFrame, label: int, seconds: float) -> Answer:
        wanted = (0.0, 0.4999999) if label == 1 else (0.5000001, 1.0)
        x = np.asarray(before.transform(row), dtype=float)[0]
        found: Any = explainer.explain(
            x, Target.probability(range=wanted), backend="exact", time_budget_s=seconds, seed=0
        )
        if not hasattr(found, "changes"):
            return None, False
        z, place = row.iloc[0].copy(), {name: k for k, name in enumerate(names)}
        for column, (_, new) in found.changes.items():
            x[place[column]] = new
        for name, (dummies, known) in groups.items():
            z[name] = known[int(np.argmax([x[place[d]] for d in dummies]))]
        for name, column in numbers.items():
            z[name] = int(x[place[column]])
        return z, found.proof == "optimal"

    return ask


def dice(model: Pipeline, X: pd.DataFrame) -> Callable[[pd.DataFrame, int, float], Answer]:
    import dice_ml

    table = X.assign(label=model.predict(X))
    data = dice_ml.Data(dataframe=table, continuous_features=list(SPREADS), outcome_name="label")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="genetic")

    def ask(row: pd.DataFrame, label: int, seconds: float) -> Answer:
        found = explainer.generate_counterfactuals(
            row, total_CFs=1, desired_class="opposite", verbose=False
        )
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is None or len(frame) == 0:
            return None, False
        z = frame.drop(columns="label").iloc[0].astype(object)
        for name in SPREADS:
            z[name] = int(float(z[name]))
        return z, False

    return ask


ASKED = {"hardwood": ours, "treecf": treecf, "dice_ml": dice}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument(
        "--seconds", type=float, default=20, help="for each row, of who has a clock"
    )
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--who", choices=list(ASKED), help="only ours and this one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = census(N_TRAIN + options.rows, seed=0)
    model = pipeline(X[:N_TRAIN], y[:N_TRAIN], options.trees)
    rows = X[N_TRAIN:]
    labels = model.predict(rows)
    print(f"{options.trees} trees, {len(rows)} rows, {options.seconds:g} s a row, one thread")
    print("| who | seconds a row, mean (max) | turned | proven least | mean cost | of the least |")
    print("|---|---|---|---|---|---|")
    least: dict[int, float] = {}
    for name, make in ASKED.items():
        if options.who not in (None, name) and name != "hardwood":
            continue
        if importlib.util.find_spec(name) is None:
            print(f"| {name} | not installed | | | | |")
            continue
        ask, seconds, costs, proven = make(model, X[:N_TRAIN]), [], {}, 0
        for i in range(len(rows)):
            row, begin = rows.iloc[i : i + 1], time.process_time()
            z, exact = ask(row, int(labels[i]), options.seconds)
            seconds.append(time.process_time() - begin)
            if z is None or model.predict(pd.DataFrame([z], columns=X.columns))[0] == labels[i]:
                continue
            costs[i] = cost(row.iloc[0], z)
            proven += exact
        least = least or costs
        ratio = [costs[i] / least[i] for i in costs if i in least]
        mean = f"{np.mean(list(costs.values())):.3g}" if costs else "-"
        times = f"{np.mean(ratio):.2f} (max {max(ratio):.2f})" if ratio else "-"
        print(
            f"| {name} | {np.mean(seconds):.3g} ({max(seconds):.3g}) | {len(costs)} | {proven} | "
            f"{mean} | {times} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
