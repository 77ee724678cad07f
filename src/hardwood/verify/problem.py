"""One question about a model and its rows, checked; every method of this room takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import FloatArray, IntArray
from hardwood.errors import HardwoodError, UnsupportedModelError
from hardwood.model.load import load_model
from hardwood.model.trees import Trees
from hardwood.threat import Reach, Threat


@dataclass(frozen=True)
class Outputs:
    """Checked rows of a model with one output."""

    trees: Trees
    X: FloatArray
    n_threads: int

    @classmethod
    def of(cls, model: Any, X: Any, n_jobs: int | None) -> "Outputs":
        """Load the model and check its rows."""
        trees = load_model(model)
        if trees.n_outputs != 1:
            raise ValueError(
                f"The model has {trees.n_outputs} outputs, one a class; this is about models with "
                f"one output. Ask for its labels with y instead."
            )
        if len(trees.categorical_features):
            raise UnsupportedModelError(
                f"The outputs of splits on categories cannot be bounded; this model has some on "
                f"the features {trees.categorical_features.tolist()}."
            )
        table = _check.rows(X, trees.n_features, trees.feature_names)
        return cls(trees, table, _check.thread_count(n_jobs))

    def output(self, X: FloatArray) -> FloatArray:
        """The only output of every row, in the model's own precision."""
        return self.trees.margin(X, n_jobs=self.n_threads)[:, 0]


@dataclass(frozen=True)
class Problem:
    """Checked rows and labels of a model."""

    trees: Trees
    X: FloatArray
    y: IntArray
    n_threads: int

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, n_jobs: int | None) -> "Problem":
        """Load the model and check its rows and labels."""
        trees = load_model(model)
        table = trees.rows(X)
        label = _check.labels(y, trees.classes, trees.n_classes, len(table))
        return cls(trees, table, label, _check.thread_count(n_jobs))

    def reach(self, threat: Threat) -> Reach:
        """Spell the threat out for the model's features; it changes no category."""
        reach = threat.reach(self.trees.n_features, self.trees.feature_names)
        by_feature = isinstance(threat.eps, Mapping | list)
        for feature in self.trees.categorical_features if by_feature else ():
            if reach.limits[feature, :2].any():
                names = self.trees.feature_names
                column = int(feature) if names is None else names[feature]
                raise UnsupportedModelError(
                    f"The threat moves feature {column!r}, whose values are categories in this "
                    f"model; a change of category cannot be bounded. Give it eps 0."
                )
        return reach

    def by_category(
        self, answer: Callable[["Problem"], tuple[npt.NDArray[Any], ...]]
    ) -> tuple[npt.NDArray[Any], ...]:
        """Ask for rows of the same categories at a time, which decide all splits on these.

        No threat changes a category, so such a split is like one of a missing value: its side is
        known. `answer` gives distances, examples and what else it likes, row by row.
        """
        features = self.trees.categorical_features
        if len(features) == 0:
            return answer(self)
        held = np.nan_to_num(self.X[:, features], nan=-np.inf)  # which no row holds
        _, group = np.unique(held, axis=0, return_inverse=True)
        order, answers = [], []
        for g in range(group.max() + 1):
            rows = np.flatnonzero(group.ravel() == g)
            X = self.X[rows]
            trees = _decided(self.trees, X[0], features)
            X[:, features] = np.nan
            order.append(rows)
            answers.append(answer(replace(self, trees=trees, X=X, y=self.y[rows])))
        back = np.argsort(np.concatenate(order))
        distance, X_adv, *more = (np.concatenate(part)[back] for part in zip(*answers, strict=True))
        found = np.isfinite(distance)
        X_adv[np.ix_(found, features)] = self.X[np.ix_(found, features)]
        self.replay(X_adv, found)
        return distance, X_adv, *more

    def misclassified(self) -> npt.NDArray[np.bool_]:
        """Rows that are wrong before anybody attacks."""
        wrong: npt.NDArray[np.bool_] = (
            self.trees.predict_class(self.X, n_jobs=self.n_threads) != self.y
        )
        return wrong

    def replay(self, X_adv: FloatArray, found: npt.NDArray[np.bool_]) -> None:
        """Send every example through the model's own prediction; all must change the label."""
        if not found.any():
            return
        label = self.trees.predict_class(X_adv[found], n_jobs=self.n_threads)
        fails = label == self.y[found]
        if fails.any():
            row = np.flatnonzero(found)[np.argmax(fails)]
            raise HardwoodError(
                f"The example found for row {row} does not change the label when replayed; "
                f"this is a bug in hardwood, please report it with the model and the row."
            )


def _decided(trees: Trees, x: FloatArray, features: npt.NDArray[np.int64]) -> Trees:
    """The trees for rows that hold x in these features: a missing value goes where x goes."""
    side = np.asarray(trees._core.sides(x)).astype(bool)
    decided = np.isin(trees.feature, features)
    state = trees.__getstate__()
    state["missing_left"] = np.where(decided, side, trees.missing_left)
    return Trees(**{**state, "category_start": None, "category": None})
