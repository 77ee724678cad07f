"""The model under attack, as its user sees it: rows in, labels out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check, _core
from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.load import open_model
from hardwood.model.trees import Trees
from hardwood.threat import Norm, Reach
from hardwood.verify.budget import budget, core_norm
from hardwood.verify.effort import Effort, watched
from hardwood.verify.problem import Problem

BoolArray = npt.NDArray[np.bool_]
Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class Target:
    """Checked rows, their labels, and how to ask the model.

    Attributes
    ----------
    problem : Problem or None
        The model as trees; None where only its predictions are known.
    n_queries : ndarray of int
        Questions asked on behalf of each row so far.
    """

    predict: Callable[[FloatArray], Labels]
    X: FloatArray
    y: Labels
    norm: Norm
    reach: Reach  # steps of any size
    problem: Problem | None
    n_threads: int
    n_queries: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_queries", np.zeros(len(self.X), dtype=np.int64))

    def fooled(self, Z: FloatArray, row: npt.NDArray[np.int64]) -> BoolArray:
        """Whether the model gives the points another label than the rows they belong to have."""
        if len(Z) == 0:
            return np.zeros(0, dtype=bool)
        np.add.at(self.n_queries, row, 1)
        wrong: BoolArray = np.asarray(self.predict(Z) != self.y[row])
        return wrong

    def rows(self, kept: npt.NDArray[np.int64]) -> "Target":
        """The same model and some of the rows; queries are counted anew."""
        problem = self.problem
        if problem is not None:
            problem = replace(problem, X=self.X[kept], y=problem.y[kept])
        return replace(self, X=self.X[kept], y=self.y[kept], problem=problem)

    @property
    def white_box(self) -> Problem:
        """The problem, for attacks that read the trees."""
        assert self.problem is not None
        return self.problem

    def ask(self, attack: Callable[..., Any], effort: Effort) -> FloatArray:
        """Let an attack of the core that reads the trees look for examples."""
        problem = self.white_box

        def search(watch: _core.Watch) -> Any:
            return attack(
                problem.trees._core,
                problem.X,
                problem.y,
                budget(self.reach, self.norm),
                n_threads=self.n_threads,
                watch=watch,
            )

        return np.asarray(watched(search, effort, effort.tell(len(problem.X))))

    def lengths(self, X_adv: FloatArray) -> FloatArray:
        """How far the points are from the rows; infinity for rows of NaN."""
        return np.asarray(
            _core.lengths(
                self.X,
                np.ascontiguousarray(X_adv),
                norm=core_norm(self.norm),
                down_scale=self.reach.down_scale,
                up_scale=self.reach.up_scale,
            )
        )


@dataclass(frozen=True)
class Attempt:
    """What one attack brings home, before it is replayed and measured."""

    X_adv: FloatArray  # NaN where there is none
    method: str
    lower: FloatArray | None = None


def open_target(
    model: Any,
    X: Any,
    y: Any,
    black_box: bool,
    n_jobs: int | None,
    threshold: float | None = None,
) -> tuple[Callable[[FloatArray], Labels], FloatArray, Labels, Trees | None, list[str] | None]:
    """How to ask the model, its rows and labels as it names them, and its trees if they count."""
    own_predict = hasattr(model, "classes_") and hasattr(model, "predict")
    if black_box and threshold is None and (own_predict or not _readable(model)):
        return _without_trees(model, X, y)
    trees, witness = open_model(model, like=X, threshold=threshold)
    trees.need_labels()
    if len(trees.categorical_features):
        raise UnsupportedModelError(
            f"find_adversarial cannot attack splits on categories, which this model has on the "
            f"features {trees.categorical_features.tolist()}; minimal_distance and certify can."
        )
    table = trees.rows(X)
    position = _check.labels(y, trees.classes, trees.n_classes, len(table))
    names = trees.feature_names or _check.column_names(X)
    threads = _check.thread_count(n_jobs)
    if witness is not None and witness.label is not None:
        return witness.label, table, position, trees, names
    if own_predict and trees.classes is not None and threshold is None:
        return _own(model, X, names), table, trees.classes[position], trees, names
    return lambda Z: trees.predict_class(Z, n_jobs=threads), table, position, trees, names


def _readable(model: Any) -> bool:
    return not hasattr(model, "predict") or type(model).__name__ in ("Booster", "Trees")


def _without_trees(
    model: Any, X: Any, y: Any
) -> tuple[Callable[[FloatArray], Labels], FloatArray, Labels, None, list[str] | None]:
    names = _check.column_names(X)
    n_features = getattr(model, "n_features_in_", None)
    table = _check.rows(X, _check.as_table(X).shape[1] if n_features is None else n_features, names)
    label = np.asarray(y)
    classes = getattr(model, "classes_", None)
    classes = np.unique(label) if classes is None else np.asarray(classes)
    _check.labels(y, classes, len(classes), len(table))
    return _own(model, X, names), table, label, None, names


def _own(model: Any, X: Any, names: list[str] | None) -> Callable[[FloatArray], Labels]:
    """The model's own predict, on tables of the kind that the user passes."""
    kind, room = type(X), type(X).__module__.partition(".")[0]
    keyword = {"pandas": "columns", "polars": "schema"}.get(room)

    def predict(Z: FloatArray) -> Labels:
        table = Z if keyword is None or names is None else kind(Z, **{keyword: names})
        return np.asarray(model.predict(table)).reshape(len(Z))

    return predict
