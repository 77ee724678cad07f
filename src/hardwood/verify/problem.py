"""One question about a model and its rows, checked; every method of this room takes it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import FloatArray, IntArray
from hardwood.errors import HardwoodError
from hardwood.model.load import load_model
from hardwood.model.trees import Trees


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
        table = _check.rows(X, trees.n_features, trees.feature_names)
        label = _check.labels(y, trees.classes, trees.n_classes, len(table))
        return cls(trees, table, label, _check.thread_count(n_jobs))

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
