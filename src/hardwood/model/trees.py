"""Trees: the flat, read-only model that every room speaks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hardwood import _check, _core
from hardwood._check import BoolArray, FloatArray, IntArray
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.columns import Columns
from hardwood.model.decision import LINKS, MOST_TIE, TASKS, Link, Task, cut_at, means, tie_of

LEAF = -1


class Trees:
    """A tree model of any origin, as flat read-only arrays.

    A row goes left when ``x < threshold``, x rounded to ``x_dtype`` first; a missing value goes
    left where ``missing_left`` says so. A node with a set of categories has no use for its
    threshold: a row goes right when its value, a whole number, is in the set. Tree k owns the nodes
    ``tree_start[k]`` to ``tree_start[k + 1]``; its leaf's values are added to the outputs of the
    margin from ``tree_output[k]`` on. The margin starts at ``base`` and is added up in tree order,
    in the precision of ``value``.

    Parameters
    ----------
    feature : array-like of int, shape (n_nodes,)
        Feature that a node splits on, -1 for leaves.
    threshold : array-like, shape (n_nodes,)
        Ignored for leaves. Its dtype, float32 or float64, is the model's ``x_dtype``.
    left, right : array-like of int, shape (n_nodes,)
        Children, counted from the first node of their tree; ignored for leaves.
    missing_left : array-like of bool, shape (n_nodes,)
        Whether a missing value goes left.
    value : array-like, shape (n_nodes,) or (n_nodes, n_values)
        Values of the leaves. Its dtype, float32 or float64, is the precision of the margin.
    tree_start : array-like of int, shape (n_trees + 1,)
        First node of every tree, and the number of nodes.
    tree_output : array-like of int, shape (n_trees,) or None, default=None
        First output that a tree adds to; None means 0 for all.
    base : float or array-like, shape (n_outputs,), default=0.0
        Where the margin starts. One output means two classes or a regression.
    link : str, default="identity"
        How a margin becomes a probability or a mean: "identity", "logistic", "softmax", "share" (of
        the sum over the outputs), "exp", "square" (with the margin's sign), "softplus",
        "one_vs_rest" (logistic, each output alone) or "hinge" (1 where positive, else 0).
    n_features : int or None, default=None
        Number of columns; None means as many as the trees use.
    classes : array-like or None, default=None
        Labels, sorted; None means 0, 1, ...
    feature_names : sequence of str or None, default=None
        Column names.
    gain, cover : array-like of float, shape (n_nodes,) or None, default=None
        What training knew of a node: gain of its split, weight of its rows.
    metadata : mapping or None, default=None
        What else the model's file says, such as parameters and the threat it was trained against.
    category_start : array-like of int, shape (n_nodes + 1,) or None, default=None
        The set of node i is ``category[category_start[i]:category_start[i + 1]]``, increasing;
        empty for leaves and for nodes that compare with their threshold. None: no node has a set.
    category : array-like of int or None, default=None
        The categories of all sets, 0 to 2**24 - 1.
    task : {"classification", "regression", "anomaly", "raw"} or None, default=None
        What the outputs are: labels (for "anomaly" -1 and 1), a number in the units of the target,
        or scores without a unit, such as a ranker's. None: a regression where the link gives no
        probabilities ("exp", "square", "softplus"), else a classification.
    divisor, slope : float, default=1.0
        The link is applied to ``slope * (margin / divisor)``.
    cut : float or None, default=None
        Two classes, one output: the largest margin that still means the first class. None: where
        the mean is at most one half, for the link "identity" zero.
    compare : {"margin", "mean"} or None, default=None
        Many outputs: whether the label is the largest margin or the largest mean, which rounding
        can make equal where margins are not; of equals the first one wins. For "share", a mean is
        the margin divided by `divisor`. None: the means for "softmax" and "one_vs_rest".
    tie : float or None, default=None
        Many outputs: margins that are no further apart may be decided either way, for instance by
        a source that rounds otherwise; no proof counts on them. None: as far as rounded means can
        be equal.
    category_names : mapping or None, default=None
        For features whose categories were not numbers at their source: the names of the categories
        0, 1, ... by feature. A data frame may hold these instead. An empty list: data frames call
        them by their numbers.
    takes_missing : bool, default=True
        Whether rows may have missing values; False where the model's source refuses them.
    sparse_missing : bool, default=False
        What a sparse table does not store is a missing value, as it is to XGBoost, and not 0.
    columns : Columns or None, default=None
        For a pipeline: which of its columns may be blank, hold unknown categories, or anything.

    Examples
    --------
    >>> import hardwood as hw
    >>> stump = hw.Trees([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1],
    ...                  [True, False, False], [0.0, -1.0, 1.0], [0, 3], n_features=1)
    >>> stump.predict([[0.2], [0.5]])
    array([0, 1])
    """

    feature: IntArray
    threshold: npt.NDArray[Any]
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    value: npt.NDArray[Any]
    tree_start: npt.NDArray[np.int64]
    tree_output: IntArray
    base: FloatArray
    category_start: npt.NDArray[np.int64]
    category: IntArray

    def __init__(
        self,
        feature: npt.ArrayLike,
        threshold: npt.ArrayLike,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        missing_left: npt.ArrayLike,
        value: npt.ArrayLike,
        tree_start: npt.ArrayLike,
        tree_output: npt.ArrayLike | None = None,
        base: npt.ArrayLike = 0.0,
        *,
        link: Link = "identity",
        task: Task | None = None,
        divisor: float = 1.0,
        slope: float = 1.0,
        cut: float | None = None,
        compare: Literal["margin", "mean"] | None = None,
        tie: float | None = None,
        n_features: int | None = None,
        classes: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        gain: npt.ArrayLike | None = None,
        cover: npt.ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        category_start: npt.ArrayLike | None = None,
        category: npt.ArrayLike | None = None,
        category_names: Mapping[int, Sequence[Any]] | None = None,
        takes_missing: bool = True,
        sparse_missing: bool = False,
        columns: Columns | None = None,
    ) -> None:
        if link not in LINKS:
            raise ValueError(f"link must be one of {LINKS}, got link={link!r}.")
        if task is None:
            task = "regression" if link in ("exp", "square", "softplus") else "classification"
        if task not in TASKS:
            raise ValueError(f"task must be one of {TASKS}, got task={task!r}.")
        for name, number in (("divisor", divisor), ("slope", slope)):
            if not 0 < number < np.inf:
                raise ModelFileError(f"{name} must be a finite number > 0, got {name}={number}.")
        self.feature = _frozen("feature", feature, np.int32, 1)
        self.threshold = _frozen_float("threshold", threshold, 1)
        self.left = _frozen("left", left, np.int32, 1)
        self.right = _frozen("right", right, np.int32, 1)
        self.missing_left = _frozen("missing_left", missing_left, np.bool_, 1)
        self.value = _frozen_float("value", value, 2)
        self.tree_start = _frozen("tree_start", tree_start, np.int64, 1)
        if tree_output is None:
            tree_output = np.zeros(max(len(self.tree_start) - 1, 0), dtype=np.int32)
        self.tree_output = _frozen("tree_output", tree_output, np.int32, 1)
        self.base = _frozen("base", np.atleast_1d(base), np.float64, 1)
        self.link: Link = link
        self.task: Task = task
        self.divisor, self.slope = float(divisor), float(slope)
        self.compare = compare or ("mean" if link in ("softmax", "one_vs_rest") else "margin")
        if self.compare not in ("margin", "mean"):
            raise ModelFileError(f'compare must be "margin" or "mean", got compare={compare!r}.')
        self.tie = tie
        self.cut = self._checked_cut(cut)
        self.gain = None if gain is None else _frozen("gain", gain, np.float64, 1)
        self.cover = None if cover is None else _frozen("cover", cover, np.float64, 1)
        self.feature_names = None if feature_names is None else list(feature_names)
        self.metadata = None if metadata is None else dict(metadata)
        if category_start is None:
            category_start = np.zeros(len(self.feature) + 1)
        self.category_start = _frozen("category_start", category_start, np.int64, 1)
        self.category = _frozen("category", () if category is None else category, np.int32, 1)
        self.category_names = {f: list(names) for f, names in (category_names or {}).items()}
        self.takes_missing = bool(takes_missing)
        self.sparse_missing = bool(sparse_missing)
        self.columns = columns
        if n_features is None:
            n_features = max(int(self.feature.max(initial=0)) + 1, len(self.feature_names or ()))
        self.n_features = int(n_features)
        if abs(self.n_features) > np.iinfo(np.int32).max:
            raise ModelFileError(f"n_features must fit int32, got n_features={self.n_features}.")
        self.classes = None if classes is None else _read_only(np.asarray(classes))
        self._tie = self._find_tie()
        self._check_what_the_core_does_not_see()
        try:
            self._core = _core.Trees(
                self.feature,
                self.threshold.astype(np.float64),
                self.left,
                self.right,
                self.missing_left.view(np.uint8),
                self.value.astype(np.float64),
                self.tree_start,
                self.tree_output,
                self.base,
                n_features=self.n_features,
                x_float32=self.x_dtype == np.float32,
                sum_float32=self.value.dtype == np.float32,
                category_start=self.category_start,
                category=self.category,
                link=getattr(_core.Link, self.link),
                divisor=self.divisor,
                slope=self.slope,
                cut=self.cut,
                of_means=self.compare == "mean",
                tie=self._tie,
            )
        except ValueError as error:
            raise ModelFileError(str(error)) from None

    def _checked_cut(self, cut: float | None) -> float:
        if cut is None:
            if self.link == "identity" or self.n_outputs > 1 or not self.tells_labels:
                return 0.0
            return cut_at(0.5, self.link, self.value.dtype, self.divisor, self.slope)
        if not np.isfinite(cut) or self.value.dtype.type(cut) != cut:
            raise ModelFileError(
                f"cut must be a finite {self.value.dtype.name}, as margins are, got cut={cut}."
            )
        return float(cut)

    def tie_between(self, plus: int, minus: int) -> float:
        """How far one output may lie below another and yet be its equal when a label is decided.

        A negative output is the constant ``cut``, which ties with nothing but itself.
        """
        return self._tie if min(plus, minus) >= 0 else 0.0

    def _find_tie(self) -> float:
        if self.tie is not None:
            return self.tie
        if self.n_outputs == 1 or self.compare == "margin" or not self.tells_labels:
            return 0.0
        lowest, highest = self._margin_range()
        tie = tie_of(self.link, self.value.dtype, self.divisor, self.slope, lowest, highest)
        if tie > MOST_TIE:
            raise UnsupportedModelError(
                f"The label of this model is its largest probability, but its margins get as far "
                f"as {max(-lowest, highest):.4g}, where rounding makes probabilities equal whose "
                f"margins are not. Retrain with a softmax over all classes, or with smaller steps."
            )
        return tie

    def _margin_range(self) -> tuple[float, float]:
        """Between which two numbers all margins lie: every tree at its least or largest leaf."""
        leaf = self.feature == LEAF
        size = np.diff(self.tree_start)
        last = self.tree_output + self.value.shape[1]
        proper = len(self.value) == len(leaf) == size.sum() and len(size) == len(last)
        if not proper or np.any(size < 0) or np.any((last > self.n_outputs) | (last < 1)):
            return 0.0, 0.0  # what is wrong, the core tells
        tree = np.repeat(np.arange(self.n_trees), size)
        low, high = self.base.copy(), self.base.copy()
        for column in range(self.value.shape[1]):
            value = np.where(leaf, self.value[:, column], 0).astype(np.float64)
            least, most = np.full(self.n_trees, np.inf), np.full(self.n_trees, -np.inf)
            np.minimum.at(least, tree[leaf], value[leaf])
            np.maximum.at(most, tree[leaf], value[leaf])
            np.add.at(low, self.tree_output + column, least)
            np.add.at(high, self.tree_output + column, most)
        return float(low.min()), float(high.max())

    def _check_what_the_core_does_not_see(self) -> None:
        for name in ("gain", "cover"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.feature):
                raise ModelFileError(
                    f"{name} has {len(given)} entries but there are {len(self.feature)} nodes."
                )
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ModelFileError(
                f"feature_names has {len(self.feature_names)} entries but the model has "
                f"{self.n_features} features."
            )
        for feature in self.category_names:
            if not 0 <= feature < self.n_features:
                raise ModelFileError(
                    f"category_names names feature {feature}, but the model has "
                    f"{self.n_features} features."
                )
        if self.classes is not None and self.classes.shape != (self.n_classes,):
            raise ModelFileError(
                f"classes has shape {self.classes.shape} but the model tells {self.n_classes} "
                f"classes apart."
            )

    @property
    def x_dtype(self) -> np.dtype[Any]:
        """Precision in which the model compares: x is rounded to it first."""
        return self.threshold.dtype

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_start) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes in all trees."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves in all trees."""
        return int(np.count_nonzero(self.feature == LEAF))

    @property
    def n_outputs(self) -> int:
        """Number of margins a row has."""
        return len(self.base)

    @property
    def n_classes(self) -> int:
        """Number of classes; a margin of one output tells two apart."""
        return max(self.n_outputs, 2)

    @property
    def tells_labels(self) -> bool:
        """Whether the outputs become a label; else they are numbers."""
        return self.task in ("classification", "anomaly")

    @property
    def categorical(self) -> BoolArray:
        """Which nodes have a set of categories, shape (n_nodes,)."""
        has_set: BoolArray = np.diff(self.category_start) > 0
        return has_set

    @property
    def categorical_features(self) -> npt.NDArray[np.int64]:
        """Features that some split takes for categories, increasing."""
        found = np.zeros(self.n_features, dtype=bool)
        found[self.feature[self.categorical]] = True
        return np.flatnonzero(found)

    def __repr__(self) -> str:
        return (
            f"Trees(n_trees={self.n_trees}, n_leaves={self.n_leaves}, "
            f"n_features={self.n_features}, n_outputs={self.n_outputs}, "
            f"x_dtype={self.x_dtype.name!r}, link={self.link!r}, task={self.task!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Trees.__init__(self, **state)

    def replace(self, **changes: Any) -> "Trees":
        """Make the same model with changes.

        Parameters
        ----------
        **changes : array-like, number, str or None
            Parameters of `Trees` by their names.

        Returns
        -------
        Trees
            A new model, checked as any other.

        Examples
        --------
        >>> import hardwood as hw
        >>> stump = hw.Trees([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1],
        ...                  [False] * 3, [0, -1, 1], tree_start=[0, 3], base=[0], n_features=1)
        >>> stump.replace(value=-stump.value).margin([[0.7]])
        array([[-1.]])
        """
        return Trees(**{**self.__getstate__(), **changes})

    def first(self, n_trees: int) -> "Trees":
        """Cut the model after some trees.

        Parameters
        ----------
        n_trees : int
            How many trees to keep, 1 to ``n_trees``. A boosted model of several outputs has one
            tree per output in each round.

        Returns
        -------
        Trees
            The model of the first trees; the margin starts at the same base.
        """
        if not 1 <= n_trees <= self.n_trees:
            raise ValueError(f"n_trees must be 1 to {self.n_trees}, got n_trees={n_trees}.")
        return self.replace(
            **take_nodes(self, np.arange(self.tree_start[n_trees])),
            tree_start=self.tree_start[: n_trees + 1],
            tree_output=self.tree_output[:n_trees],
        )

    def rows(self, X: Any) -> FloatArray:
        """Check rows and bring them to the numbers that the trees compare.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value, and so are None and pandas' NA; they are refused where the
            model's source does. Categories are whole numbers, or in a data frame the names that the
            model knows. A sparse table is written out; what it does not store is 0, or to a model
            of XGBoost a missing value.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            float64, in C order, columns in the model's order.
        """
        names: dict[int, list[Any] | None] = dict.fromkeys(self.categorical_features.tolist())
        names.update(self.category_names)
        if self.sparse_missing and hasattr(X, "tocsr"):
            X = _check.stored(X)
        if self.columns is None:
            table = _check.rows(X, self.n_features, self.feature_names, names)
            if not self.takes_missing:
                _check.nothing_missing(table, self.feature_names)
            return table
        columns = self.columns
        table = _check.rows(
            X, self.n_features, self.feature_names, names, columns.takes_unknown, columns.unread
        )
        columns.check(table, self.feature_names, self.category_names)
        return table

    def _table(self, X: Any) -> FloatArray:
        """Rows, or a table that was made of rows: it may hold what a pipeline refuses."""
        if self.columns is not None and isinstance(X, np.ndarray) and X.dtype == np.float64:
            return _check.rows(X, self.n_features)
        return self.rows(X)

    def known_categories(self, feature: int) -> IntArray:
        """Give the categories of a feature that the model knows.

        Parameters
        ----------
        feature : int
            One of ``categorical_features``, or one with ``category_names``.

        Returns
        -------
        ndarray of int
            Their codes: those that have names, or else those that some split lists.
        """
        names = self.category_names.get(feature)
        if names:
            return np.arange(len(names), dtype=np.int32)
        nodes = np.flatnonzero(self.categorical & (self.feature == feature))
        return np.unique(take_sets(self.category_start, self.category, nodes)[1])

    def margin(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Add up the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Margins, float64, holding exactly what the model's own precision gives.
        """
        table = self._table(X)
        return np.asarray(self._core.margin(table, n_threads=_check.thread_count(n_jobs)))

    def apply(self, X: Any, *, n_jobs: int | None = None) -> IntArray:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Nodes, counted from the first node of their tree.
        """
        table = self._table(X)
        return np.asarray(self._core.apply(table, n_threads=_check.thread_count(n_jobs)))

    def predict_class(self, X: Any, *, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
        """Decide the position of each row's label in ``classes``.

        One output: whether the margin is above ``cut``. More: the largest one, the first on ties
        (see ``compare``). What a loaded model decides is what its source decides.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Positions.
        """
        return self.decide(self.margin(X, n_jobs=n_jobs))

    def decide(self, margin: FloatArray) -> npt.NDArray[np.int64]:
        """Decide the position of the label in ``classes`` from margins.

        Parameters
        ----------
        margin : ndarray of shape (n_samples, n_outputs)
            Margins, as `margin` gives them.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Positions.
        """
        self.need_labels()
        return np.asarray(self._core.labels(margin)).astype(np.int64)

    def need_labels(self) -> None:
        """Refuse a question about labels where the outputs are numbers."""
        if self.tells_labels:
            return
        what = "numbers" if self.task == "regression" else "scores without labels"
        raise UnsupportedModelError(
            f"This model predicts {what} (task={self.task!r}), and the question is about labels. "
            f"Ask minimal_distance(change=...) or output_range how far its output can be moved."
        )

    def means(self, margin: FloatArray) -> FloatArray:
        """Turn margins into means, in the model's own precision.

        Parameters
        ----------
        margin : ndarray of shape (n_samples, n_outputs)
            Margins, as `margin` gives them.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Probabilities (of the second class if there is one output), or the numbers of a
            regression in the units of its target.
        """
        return means(margin, self.link, self.value.dtype, self.divisor, self.slope)

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        if self.task != "classification" or self.link in ("identity", "hinge"):
            raise UnsupportedModelError(
                f"This model has no probabilities (task={self.task!r}, link={self.link!r}); ask "
                f"predict or margin."
            )
        mean = self.means(self.margin(X, n_jobs=n_jobs))
        return np.column_stack([1 - mean, mean]) if self.n_outputs == 1 else mean

    def predict(self, X: Any, *, n_jobs: int | None = None) -> npt.NDArray[Any]:
        """Predict what the model's own users see: labels, or the numbers of a regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; for a regression, numbers in the units of its target; for scores, the margin
            (of shape (n_samples, n_outputs) if there are several).
        """
        if not self.tells_labels:
            mean = self.means(self.margin(X, n_jobs=n_jobs))
            return mean[:, 0] if self.n_outputs == 1 else mean
        position = self.predict_class(X, n_jobs=n_jobs)
        return position if self.classes is None else self.classes[position]

    def leaf_boxes(self, tree: int = 0) -> tuple[IntArray, FloatArray, FloatArray]:
        """Give the region of each leaf of one tree.

        Parameters
        ----------
        tree : int, default=0
            Which tree.

        Returns
        -------
        leaf : ndarray of shape (n_leaves,)
            Nodes, counted from the first node of the tree, from left to right.
        low, high : ndarray of shape (n_leaves, n_features)
            A row of doubles without missing values ends in the leaf if and only if
            ``low <= x < high``. The ends lie where rounding to ``x_dtype`` crosses the threshold,
            so they hold for x as it is, not only for x already rounded. What splits on categories
            ask beside this, `leaf_categories` tells.
        """
        self._check_tree(tree)
        leaf, low, high = self._core.leaf_boxes(tree)
        return np.asarray(leaf), np.asarray(low), np.asarray(high)

    def leaf_categories(self, tree: int = 0) -> list[dict[int, tuple[bool, IntArray]]]:
        """Give the categories with which a row ends in each leaf of one tree.

        Parameters
        ----------
        tree : int, default=0
            Which tree.

        Returns
        -------
        list of dict
            For each leaf, in the order of `leaf_boxes`: by feature, ``(all_but, listed)``. A
            category passes if it is listed, or, where ``all_but``, if it is not. Features that no
            split on the way takes for categories are left out.
        """
        self._check_tree(tree)
        nodes, leaf, feature, all_but, start, listed = map(
            np.asarray, self._core.leaf_categories(tree)
        )
        asked: list[dict[int, tuple[bool, IntArray]]] = [{} for _ in nodes]
        for i, (at, f) in enumerate(zip(leaf, feature, strict=True)):
            asked[at][int(f)] = bool(all_but[i]), listed[start[i] : start[i + 1]]
        return asked

    def _check_tree(self, tree: int) -> None:
        if not 0 <= tree < self.n_trees:
            raise ValueError(f"tree must be 0 to {self.n_trees - 1}, got tree={tree}.")

    def save_model(self, path: str | Path) -> None:
        """Write the model to a file that stock xgboost loads, too.

        A model in float32 gives the same margins there, bit for bit. One that compares or adds in
        float64 comes back from `load_model` unchanged; xgboost reads it with values rounded to
        float32 and finds the same leaves for rows of float32 numbers.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.json`` or ``.ubj``.
        """
        from hardwood.model import file  # it speaks Trees, too

        file.save(self, path)

    def to_xgboost(self) -> Any:
        """Make an ``xgboost.Booster``, with the margins that `save_model` promises.

        Returns
        -------
        xgboost.Booster
            The model, ready to predict.
        """
        from hardwood.model import export

        return export.to_xgboost(self)

    def to_lightgbm(self) -> str:
        """Write the model as LightGBM's text.

        Every row finds the same leaves there (values closer to zero than 1e-35 count as zero);
        LightGBM adds their values in double.

        Returns
        -------
        str
            For ``lightgbm.Booster(model_str=...)``, or a ``.txt`` file.
        """
        from hardwood.model import export

        return export.to_lightgbm(self)

    def to_onnx(self) -> bytes:
        """Write the model as ONNX.

        Its input ``X`` is a table of float32; its outputs are ``margin``, in float32, and
        ``label``, the position of the label in ``classes``, or ``mean``, what a regression
        predicts.

        Returns
        -------
        bytes
            The content of an ``.onnx`` file.
        """
        from hardwood.model import export

        return export.to_onnx(self)

    def to_shap(self) -> dict[str, Any]:
        """Spell the model out for ``shap.TreeExplainer``.

        Returns
        -------
        dict
            Trees as arrays; the SHAP values of a row and the expected value sum to its margin.
        """
        from hardwood.model import export

        return export.to_shap(self)


def take_nodes(trees: Trees, node: npt.NDArray[np.int64]) -> dict[str, Any]:
    """The arrays of some nodes, in this order; children are counted as before."""
    arrays = {name: getattr(trees, name) for name in (*_OF_NODES, "gain", "cover")}
    taken = {name: None if array is None else array[node] for name, array in arrays.items()}
    taken["category_start"], taken["category"] = take_sets(
        trees.category_start, trees.category, node
    )
    return taken


_OF_NODES = ("feature", "threshold", "left", "right", "missing_left", "value")


def core_of(trees: Trees) -> _core.Trees:
    """The model as the core holds it, for the rooms that put questions to the core."""
    return trees._core


def take_sets(
    start: npt.NDArray[np.int64], category: IntArray, node: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], IntArray]:
    """The sets of some nodes, in this order, as ``category_start`` and ``category``."""
    size = np.diff(start)[node]
    new_start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    at = np.repeat(start[node] - new_start[:-1], size) + np.arange(new_start[-1])
    return new_start, category[at]


def refuse_categories(trees: Trees, what: str) -> None:
    """Stop where sets of categories have no place."""
    refuse_columns(trees, what)
    if trees.categorical.any():
        at = int(np.argmax(trees.categorical))
        tree = int(np.searchsorted(trees.tree_start, at, side="right")) - 1
        feature = int(trees.feature[at])
        column = feature if trees.feature_names is None else trees.feature_names[feature]
        raise UnsupportedModelError(
            f"Tree {tree}, node {at - trees.tree_start[tree]} splits on categories of column "
            f"{column!r}, which {what} cannot express. Retrain with the column one-hot encoded."
        )


def refuse_columns(trees: Trees, what: str) -> None:
    """Stop where the columns of a pipeline have no place."""
    if trees.columns is not None and not trees.columns.own:
        raise UnsupportedModelError(
            f"{what} cannot express this model: it was loaded from a pipeline whose columns hold "
            f"names, blanks or what it does not read. Save the pipeline itself, and convert its "
            f"last step."
        )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = array.copy()
    array.flags.writeable = False
    return array


def _frozen(name: str, given: npt.ArrayLike, dtype: Any, ndim: int) -> npt.NDArray[Any]:
    """A read-only copy; refuses what the dtype cannot hold rather than wrap around."""
    kind = np.dtype(dtype).name
    try:
        source = np.asarray(given)
        if source.ndim == 1 and ndim == 2:
            source = source[:, None]
        with np.errstate(invalid="ignore", over="ignore"):
            array = np.ascontiguousarray(source, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{name} must be an array of {kind}: {error}.") from None
    if source.ndim != ndim:
        raise ModelFileError(f"{name} must have {ndim} dimension(s), got shape {source.shape}.")
    if not np.issubdtype(dtype, np.floating) and not np.array_equal(array, source):
        wrong = source[array != source][0]
        raise ModelFileError(f"{name} must hold {kind}, got {wrong}.")
    return _read_only(array)


def _frozen_float(name: str, given: npt.ArrayLike, ndim: int) -> npt.NDArray[Any]:
    dtype = np.float32 if getattr(given, "dtype", None) == np.float32 else np.float64
    return _frozen(name, given, dtype, ndim)
