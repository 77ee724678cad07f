"""Trees: the flat, read-only model that every room speaks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hardwood import _check, _core
from hardwood._check import FloatArray, IntArray
from hardwood.errors import ModelFileError, UnsupportedModelError

Link = Literal["identity", "logistic", "softmax", "share", "exp"]
LINKS: tuple[Link, ...] = ("identity", "logistic", "softmax", "share", "exp")

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
        Where the margin starts. One output means two classes (a positive margin is the second one)
        or a regression.
    link : {"identity", "logistic", "softmax", "share", "exp"}, default="identity"
        How a margin becomes a probability or a mean; "share" divides by the sum over the outputs.
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
    category_names : mapping or None, default=None
        For features whose categories were not numbers at their source: the names of the categories
        0, 1, ... by feature. A data frame may hold these instead. An empty list: data frames call
        them by their numbers.

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
    missing_left: npt.NDArray[np.bool_]
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
        n_features: int | None = None,
        classes: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        gain: npt.ArrayLike | None = None,
        cover: npt.ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        category_start: npt.ArrayLike | None = None,
        category: npt.ArrayLike | None = None,
        category_names: Mapping[int, Sequence[Any]] | None = None,
    ) -> None:
        if link not in LINKS:
            raise ValueError(f"link must be one of {LINKS}, got link={link!r}.")
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
        self.gain = None if gain is None else _frozen("gain", gain, np.float64, 1)
        self.cover = None if cover is None else _frozen("cover", cover, np.float64, 1)
        self.feature_names = None if feature_names is None else list(feature_names)
        self.metadata = None if metadata is None else dict(metadata)
        if category_start is None:
            category_start = np.zeros(len(self.feature) + 1)
        self.category_start = _frozen("category_start", category_start, np.int64, 1)
        self.category = _frozen("category", () if category is None else category, np.int32, 1)
        self.category_names = {f: list(names) for f, names in (category_names or {}).items()}
        if n_features is None:
            n_features = max(int(self.feature.max(initial=0)) + 1, len(self.feature_names or ()))
        self.n_features = int(n_features)
        if abs(self.n_features) > np.iinfo(np.int32).max:
            raise ModelFileError(f"n_features must fit int32, got n_features={self.n_features}.")
        self.classes = None if classes is None else _read_only(np.asarray(classes))
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
            )
        except ValueError as error:
            raise ModelFileError(str(error)) from None

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
    def categorical(self) -> npt.NDArray[np.bool_]:
        """Which nodes have a set of categories, shape (n_nodes,)."""
        has_set: npt.NDArray[np.bool_] = np.diff(self.category_start) > 0
        return has_set

    @property
    def categorical_features(self) -> npt.NDArray[np.int64]:
        """Features that some split takes for categories, increasing."""
        return np.unique(self.feature[self.categorical]).astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"Trees(n_trees={self.n_trees}, n_leaves={self.n_leaves}, "
            f"n_features={self.n_features}, n_outputs={self.n_outputs}, "
            f"x_dtype={self.x_dtype.name!r}, link={self.link!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Trees.__init__(self, **state)

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
        n_nodes = int(self.tree_start[n_trees])
        cut = self.__getstate__()
        for name in ("feature", "threshold", "left", "right", "missing_left", "value"):
            cut[name] = cut[name][:n_nodes]
        for name in ("gain", "cover"):
            cut[name] = None if cut[name] is None else cut[name][:n_nodes]
        cut["category_start"] = self.category_start[: n_nodes + 1]
        cut["category"] = self.category[: self.category_start[n_nodes]]
        cut["tree_start"] = self.tree_start[: n_trees + 1]
        cut["tree_output"] = self.tree_output[:n_trees]
        return Trees(**cut)

    def rows(self, X: Any) -> FloatArray:
        """Check rows and bring them to the numbers that the trees compare.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value. Categories are whole numbers, or in a data frame the names
            that the model knows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            float64, in C order, columns in the model's order.
        """
        names: dict[int, list[Any] | None] = dict.fromkeys(self.categorical_features.tolist())
        names.update(self.category_names)
        return _check.rows(X, self.n_features, self.feature_names, names)

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
        table = self.rows(X)
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
        table = self.rows(X)
        return np.asarray(self._core.apply(table, n_threads=_check.thread_count(n_jobs)))

    def predict_class(self, X: Any, *, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
        """Decide the position of each row's label in ``classes``.

        One output: the sign of the margin. More: the largest one, the first on ties.

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
        margin = self.margin(X, n_jobs=n_jobs)
        if self.n_outputs == 1:
            return (margin[:, 0] > 0).astype(np.int64)
        largest: npt.NDArray[np.int64] = np.argmax(margin, axis=1)
        return largest

    def predict(self, X: Any, *, n_jobs: int | None = None) -> npt.NDArray[Any]:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        n_jobs : int or None, default=None
            Number of threads; -1 means all cores.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
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

        Its input ``X`` is a table of float32; its outputs are ``label``, the position of the label
        in ``classes``, and ``margin``, in float32.

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
    if trees.categorical.any():
        at = int(np.argmax(trees.categorical))
        tree = int(np.searchsorted(trees.tree_start, at, side="right")) - 1
        feature = int(trees.feature[at])
        column = feature if trees.feature_names is None else trees.feature_names[feature]
        raise UnsupportedModelError(
            f"Tree {tree}, node {at - trees.tree_start[tree]} splits on categories of column "
            f"{column!r}, which {what} cannot express. Retrain with the column one-hot encoded."
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
