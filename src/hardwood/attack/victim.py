"""The model under attack, as its user sees it: rows in, labels out."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check, _core
from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import core_of
from hardwood.threat import Norm, Reach, Threat, as_threat
from hardwood.verify.asked import attackers, fold, fold_reach, fold_rows, unfold
from hardwood.verify.budget import budget, core_norm
from hardwood.verify.effort import Effort, watched
from hardwood.verify.problem import Problem, kinds_of_columns
from hardwood.verify.towards import of_two

Labels = npt.NDArray[Any]
Predict = Callable[[FloatArray], Labels]


@dataclass(frozen=True)
class Victim:
    """Checked rows, their labels, and how to ask the model.

    Attributes
    ----------
    predict : callable
        The labels of rows, as the model itself says them.
    ball : Reach
        What the threat may do.
    attacking : ndarray of bool
        Which rows attack: those of the class that the threat names, or all.
    problem : Problem or None
        The model as trees; None where only its predictions are known.
    target : label or None
        The label that rows shall get; None: any but their own.
    n_queries : ndarray of int
        Questions asked on behalf of each row so far.
    """

    predict: Predict
    X: FloatArray
    y: Labels
    norm: Norm
    ball: Reach
    attacking: BoolArray
    problem: Problem | None
    n_threads: int
    names: list[str] | None
    target: Any = None
    n_queries: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_queries", np.zeros(len(self.X), dtype=np.int64))

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        threat: Threat | None,
        norm: Norm,
        *,
        black_box: bool,
        target: Any = None,
        n_jobs: int | None = None,
        threshold: float | None = None,
    ) -> "Victim":
        """Open a model; a black box is asked as it is, and its trees are not looked at.

        Without a threat anything may change, by any distance.
        """
        _check.need_values(X)
        given = as_threat(1, threat, norm)
        own_predict = hasattr(model, "classes_") and hasattr(model, "predict")
        n_threads = _check.thread_count(n_jobs)
        closed = own_predict or not _readable(model)
        if black_box and threshold is None and closed and _holds_numbers(X):
            return _without_trees(model, X, y, threat, norm, target, n_threads)
        problem = Problem.of(model, X, y, n_jobs, target, threshold)
        ball = _ball(problem.reach(given), threat)
        attacking = attackers(problem, ball)
        trees, names = problem.trees, problem.trees.feature_names or _check.column_names(X)
        label: Labels = problem.y
        # Where there is no source to ask, the trees are the model; they know categories as codes.
        own_predict = own_predict and threshold is None and problem.source is None
        own_predict = own_predict and not trees.category_names
        if own_predict and trees.classes is not None:
            predict, label = _own(model, X, names), trees.classes[problem.y]
        else:
            target = problem.target
            predict = problem.source or partial(trees.predict_class, n_jobs=n_threads)
        if problem.target is not None and trees.n_classes == 2:
            problem = of_two(problem)
        return cls(
            predict, problem.X, label, norm, ball, attacking, problem, n_threads, names, target
        )

    @property
    def reach(self) -> Reach:
        """The same directions and range, with steps of any size."""
        return self.ball.without_radius(self.norm)

    @property
    def leaves_a_label(self) -> bool:
        """Whether any other label will do, as far as the model's trees can tell."""
        two = self.problem is not None and self.problem.trees.n_classes == 2
        return self.target is None or two

    @property
    def on_numbers(self) -> bool:
        """Whether the core's quick attacks know all there is: numbers, away from one label."""
        if self.problem is None or len(self.problem.trees.categorical_features):
            return False
        ball = self.ball
        more = ball.changes or ball.groups or ball.max_changes or ball.blank.any()
        return self.leaves_a_label and not more

    def fooled(self, Z: FloatArray, row: npt.NDArray[np.int64]) -> BoolArray:
        """Whether the model gives the points a label that the adversary wants."""
        if len(Z) == 0:
            return np.zeros(0, dtype=bool)
        np.add.at(self.n_queries, row, 1)
        label = self.predict(Z)
        wrong = label != self.y[row] if self.target is None else label == self.target
        if self.problem is not None and self.problem.source is not None:
            wrong &= label >= 0  # else the source refuses the point
        return np.asarray(wrong, dtype=bool)

    def rows(self, kept: npt.NDArray[np.int64]) -> "Victim":
        """The same model and some of the rows; queries are counted anew."""
        problem = None if self.problem is None else self.problem.some(kept)
        some = {name: getattr(self, name)[kept] for name in ("X", "y", "attacking")}
        return replace(self, **some, problem=problem)

    def folded(self) -> "Victim":
        """The same with every one-hot group as one feature of categories; see `unfolded`."""
        groups = self.ball.groups
        ball = replace(self.ball, only=None)
        if not groups:
            return replace(self, ball=ball)
        problem = None if self.problem is None else fold(self.problem, ball)[0]

        def predict(Z: FloatArray) -> Labels:
            return self.predict(self.unfolded(Z))

        X = fold_rows(self.X, groups, self.names)
        return replace(self, predict=predict, X=X, ball=fold_reach(ball), problem=problem)

    def unfolded(self, Z: FloatArray) -> FloatArray:
        """Points of the folded victim as points of this one."""
        Z = np.array(Z)
        unfold(Z, self.ball.groups)
        return Z

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
                core_of(problem.trees),
                problem.X,
                problem.y,
                budget(self.reach, self.norm),
                n_threads=self.n_threads,
                watch=watch,
            )

        return np.asarray(watched(search, effort, len(problem.X)))

    def contains(self, X_adv: FloatArray, distance: FloatArray) -> BoolArray:
        """Whether rows at a distance are within the threat."""
        if self.ball.radius == np.inf:
            return np.ones(len(X_adv), dtype=bool)
        if self.norm != "inf" and not self.ball.beyond_numbers:
            return np.asarray(distance <= self.ball.radius, dtype=bool)
        return self.ball.holds(self.X, X_adv, self.norm)

    def lengths(self, X_adv: FloatArray) -> FloatArray:
        """How far the points are from the rows; infinity for rows of NaN."""
        if self.ball.beyond_numbers:
            return self.ball.lengths(self.X, X_adv, self.norm)
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


def _holds_numbers(X: Any) -> bool:
    """Whether a table holds numbers alone, which a black box can be asked about as they are."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return getattr(getattr(X, "dtype", None), "kind", "f") not in "OUT"
    kinds = [str(X[name].dtype).lower() for name in columns]
    return all(kind.startswith(("int", "uint", "float", "bool", "double")) for kind in kinds)


def _readable(model: Any) -> bool:
    return not hasattr(model, "predict") or type(model).__name__ in ("Booster", "Trees")


def _ball(reach: Reach, threat: Threat | None) -> Reach:
    """What the threat may do; without one, steps of any size."""
    return reach if threat is not None else reach.without_radius()


def _without_trees(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | None,
    norm: Norm,
    target: Any,
    n_threads: int,
) -> Victim:
    names = _check.column_names(X)
    n_features = getattr(model, "n_features_in_", None)
    table = _check.rows(X, _check.as_table(X).shape[1] if n_features is None else n_features, names)
    label = np.asarray(y)
    classes = getattr(model, "classes_", None)
    classes = np.unique(label) if classes is None else np.asarray(classes)
    _check.labels(y, classes, len(classes), len(table))
    only = None if threat is None else threat.only
    for what, one in (("target", target), ("only", only)):
        if one is not None and one not in classes.tolist():
            raise ValueError(f"{what}={one!r} is no label of this model: {classes.tolist()!r}.")
    given, kinds = as_threat(1, threat, norm), kinds_of_columns(names, X)
    ball = _ball(given.reach(table.shape[1], names, None, *kinds).measured(), threat)
    attacking = np.asarray(label == only if only is not None else label == label, dtype=bool)
    predict = _own(model, X, names)
    return Victim(predict, table, label, norm, ball, attacking, None, n_threads, names, target)


def _own(model: Any, X: Any, names: list[str] | None) -> Predict:
    """The model's own predict, on tables of the kind that the user passes."""
    kind, room = type(X), type(X).__module__.partition(".")[0]
    keyword = {"pandas": "columns", "polars": "schema"}.get(room)

    def predict(Z: FloatArray) -> Labels:
        table = Z if keyword is None or names is None else kind(Z, **{keyword: names})
        return np.asarray(model.predict(table)).reshape(len(Z))

    return predict
