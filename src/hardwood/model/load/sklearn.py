"""scikit-learn's trees, forests, gradient boosting, and bagging and AdaBoost of trees."""

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, Float32Array, FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.decision import cut_of
from hardwood.model.load.gate import Reference, positions
from hardwood.model.trees import LEAF, Trees


def can_load(source: Any) -> bool:
    """Whether this file can read the object; scikit-learn itself is not imported to find out."""
    kind = type(source)
    return kind.__module__.startswith("sklearn.") and kind.__name__ in _READERS


def load(source: Any) -> tuple[Trees, Reference]:
    """Read a fitted model."""
    name = type(source).__name__
    if not any(hasattr(source, fitted) for fitted in ("tree_", "estimators_", "_predictors")):
        raise ValueError(f"This {name} is not fitted yet; call fit first.")
    n_outputs = getattr(source, "n_outputs_", 1)
    if n_outputs != 1:
        raise UnsupportedModelError(
            f"This {name} predicts {n_outputs} targets at once; train one model per target."
        )
    return _READERS[name](source)


def _class_shares(source: Any) -> tuple[Trees, Reference]:
    """Classification trees: leaves keep their class shares, a forest adds them up."""
    members = [source] if hasattr(source, "tree_") else list(source.estimators_)
    shares = [tree.tree_.value[:, 0, :] for tree in members]
    n_classes = shares[0].shape[1]
    trees = _trees(source, members, shares, base=np.zeros(n_classes), **_voting(len(members)))
    return trees, _reference(source, trees, source.predict_proba, leaves=True, ours=_mean_of(trees))


def _voting(n: int) -> dict[str, Any]:
    """The decision of those who add up shares and divide them by the number of trees."""
    return {"link": "share", "divisor": n, "compare": "mean" if n > 1 else "margin"}


def _mean_of(trees: Trees) -> Callable[[FloatArray], FloatArray]:
    return lambda margin: margin / trees.divisor


def _mean(source: Any) -> tuple[Trees, Reference]:
    """Regression trees and their mean."""
    members = [source] if hasattr(source, "tree_") else list(source.estimators_)
    values = [tree.tree_.value[:, 0, :] for tree in members]
    trees = _trees(source, members, values, task="regression", divisor=len(members))
    return trees, _reference(source, trees, source.predict, leaves=True, ours=_mean_of(trees))


def _bagged(source: Any) -> tuple[Trees, Reference]:
    """Bagging: every tree sees columns of its own."""
    members, n = list(source.estimators_), len(source.estimators_)
    _need_trees(source, members)
    columns = [np.asarray(columns) for columns in source.estimators_features_]
    if not hasattr(source, "classes_"):
        values = [tree.tree_.value[:, 0, :] for tree in members]
        trees = _trees(source, members, values, columns=columns, task="regression", divisor=n)
        return trees, _reference(source, trees, source.predict, ours=_mean_of(trees))
    n_classes = len(source.classes_)
    _need_classes(source, members, n_classes)
    shares = [tree.tree_.value[:, 0, :] for tree in members]
    base = np.zeros(n_classes)
    trees = _trees(source, members, shares, base=base, columns=columns, **_voting(n))
    return trees, _reference(source, trees, source.predict_proba, ours=_mean_of(trees))


def _ada_boosted(source: Any) -> tuple[Trees, Reference]:
    """AdaBoost: a tree votes for one class with its weight, and a little against all others."""
    members, n_classes = list(source.estimators_), len(source.classes_)
    _need_trees(source, members)
    _need_classes(source, members, n_classes)
    weights = source.estimator_weights_
    total = weights.sum()
    values = []
    for tree, weight in zip(members, weights[: len(members)], strict=True):
        vote = np.argmax(tree.tree_.value[:, 0, :], axis=1)
        if n_classes == 2:
            values.append(np.where(vote == 1, weight, -weight)[:, None])
        else:
            mine = vote[:, None] == np.arange(n_classes)
            values.append(np.where(mine, weight, -1 / (n_classes - 1) * weight))

    def decision(margin: FloatArray) -> FloatArray:
        share: FloatArray = margin / total
        return share if n_classes > 2 else share + share

    two = n_classes == 2
    trees = _trees(
        source,
        members,
        values,
        base=np.zeros(values[0].shape[1]),
        link="logistic" if two else "identity",
        divisor=total,
        slope=2.0 if two else 1.0,
        cut=cut_of(lambda margin: decision(margin) <= 0, np.float64) if two else None,
        compare=None if two else "mean",
    )
    return trees, _reference(source, trees, source.decision_function, ours=decision)


def _isolated(source: Any) -> tuple[Trees, Reference]:
    """IsolationForest: the longer the paths, the more a row is like the others.

    The margin is the sum of path lengths. The score never falls when it grows; a row whose score
    is not negative is class 1, an inlier.
    """
    from sklearn.ensemble._iforest import _average_path_length

    members = list(source.estimators_)
    lengths = zip(source._decision_path_lengths, source._average_path_length_per_tree, strict=True)
    values = [(np.asarray(depth) + below - 1.0)[:, None] for depth, below in lengths]
    unit = len(members) * float(_average_path_length([source._max_samples])[0])

    def score(margin: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            decided: FloatArray = -(2.0 ** -(margin / unit)) - source.offset_
        return decided

    trees = _trees(
        source,
        members,
        values,
        columns=[np.asarray(columns) for columns in source.estimators_features_],
        classes=np.array([-1, 1]),
        task="anomaly",
        cut=cut_of(lambda margin: score(margin) < 0, np.float64),
    )
    return trees, _reference(source, trees, source.decision_function, ours=score, exact=False)


def _gradient_boosted(source: Any) -> tuple[Trees, Reference]:
    """Gradient boosting: the initial estimator is the base, leaves count the learning rate."""
    first = source.init_
    if not (isinstance(first, str) and first == "zero") and type(first).__name__ not in (
        "DummyClassifier",
        "DummyRegressor",
    ):
        raise UnsupportedModelError(
            f"This {type(source).__name__} starts from {first!r}, which is no constant. Retrain "
            f'with init=None or init="zero".'
        )
    base = source._raw_predict_init(np.zeros((1, source.n_features_in_), dtype=np.float32))
    members = list(source.estimators_.ravel())
    n_outputs = source.estimators_.shape[1]
    values = [source.learning_rate * tree.tree_.value[:, 0, :] for tree in members]
    classes = hasattr(source, "classes_")
    trees = _trees(
        source,
        members,
        values,
        base=np.ravel(base),
        tree_output=np.arange(len(members)) % n_outputs,
        slope=2.0 if classes and source.loss == "exponential" else 1.0,
        **_boosted(source, n_outputs),
    )
    margin = source.decision_function if classes else source.predict
    return trees, _reference(source, trees, margin, leaves=True)


def _boosted(source: Any, n_outputs: int) -> dict[str, Any]:
    """Task, link and decision of gradient boosting, which versions of scikit-learn take by ties.

    So they are asked for: a copy whose sums are given says which labels follow from them.
    """
    if not hasattr(source, "classes_"):
        counts = getattr(source, "loss", None) in ("poisson", "gamma")
        return {"task": "regression", "link": "exp" if counts else "identity"}
    if n_outputs > 1:
        # The second of two margins is larger by a bit that is lost in a softmax.
        tied = np.zeros((1, n_outputs))
        tied[0, 1] = 2.0**-60
        by_margin = _labels_of_sums(source, tied)[0] == 1
        return {"link": "softmax", "compare": "margin" if by_margin else "mean"}
    cut = cut_of(lambda margin: _labels_of_sums(source, margin[:, None]) == 0, np.float64)
    return {"link": "logistic", "cut": cut}


def _labels_of_sums(source: Any, margin: FloatArray) -> npt.NDArray[np.int64]:
    """The labels (positions) that the source's own last steps make of sums."""
    probe = copy.copy(source)
    probe._raw_predict = lambda *_, **__: margin.copy()
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        label = probe.predict(np.zeros((len(margin), source.n_features_in_)))
    return positions(label, source.classes_)


def _histogram_boosted(source: Any) -> tuple[Trees, Reference]:
    """Histogram gradient boosting: compares in double, x <= threshold."""
    rounds = source._predictors
    n_outputs = len(rounds[0]) if rounds else 1
    nodes = [predictor.nodes for predictors in rounds for predictor in predictors]
    flat = np.concatenate(nodes)
    leaf = flat["is_leaf"].astype(bool)
    start = np.concatenate([[0], np.cumsum([len(part) for part in nodes])])
    encoding = _Encoding.of(source)
    column = encoding.column[flat["feature_idx"].astype(np.int64)]
    bits = [
        predictor.raw_left_cat_bitsets[node["bitset_idx"]]
        for predictors in rounds
        for predictor in predictors
        for node in predictor.nodes[_splits_on_categories(predictor.nodes)]
    ]
    n_listed, listed = encoding.sets(flat, bits)
    # Members of a set go right here, and nothing does if there are none; there, unknown categories
    # follow the missing values.
    category = _splits_on_categories(flat)
    missing_left = flat["missing_go_to_left"].astype(bool)
    swap = category & ~missing_left
    left, right = (flat[name].astype(np.int64) for name in ("left", "right"))
    threshold = np.where(category, np.inf, np.nextafter(flat["num_threshold"], np.inf))
    threshold[leaf | (n_listed > 0)] = 0.0
    classes = getattr(source, "classes_", None)
    trees = Trees(
        feature=np.where(leaf, LEAF, column),
        threshold=threshold,
        left=np.where(leaf, LEAF, np.where(swap, right, left)),
        right=np.where(leaf, LEAF, np.where(swap, left, right)),
        missing_left=missing_left | category,
        value=flat["value"],
        tree_start=start,
        tree_output=np.arange(len(nodes)) % n_outputs,
        base=np.ravel(source._baseline_prediction),
        **_boosted(source, n_outputs),
        n_features=source.n_features_in_,
        classes=classes,
        feature_names=_names(source),
        gain=np.where(leaf, 0.0, flat["gain"]),
        cover=flat["count"],
        category_start=np.concatenate([[0], np.cumsum(n_listed)]),
        category=listed,
        category_names=encoding.names,
    )
    return trees, _reference(
        source,
        trees,
        source._raw_predict,
        infinite=not encoding.values,
        decode=encoding.decode,
    )


def _splits_on_categories(nodes: npt.NDArray[Any]) -> BoolArray:
    splits: BoolArray = nodes["is_categorical"].astype(bool) & (nodes["is_leaf"] == 0)
    return splits


@dataclass(frozen=True)
class _Encoding:
    """How histogram boosting numbers its columns and their categories.

    ``column`` are the table's columns, those with categories first. ``values`` are, for each column
    with categories, those it has seen; where they are no whole numbers, they have ``names`` and
    are counted, else they keep their numbers and the names are empty.
    """

    column: npt.NDArray[np.int64]
    values: dict[int, npt.NDArray[Any]]
    names: dict[int, list[Any]]
    objects: bool = False  # its encoder saw numbers as objects, and takes no others

    @classmethod
    def of(cls, source: Any) -> "_Encoding":
        is_category = source.is_categorical_
        if is_category is None:
            return cls(np.arange(source.n_features_in_), {}, {})
        first = np.flatnonzero(is_category)
        seen = source._preprocessor.named_transformers_["encoder"].categories_
        values, names = {}, {}
        for position, (f, given) in enumerate(zip(first.tolist(), seen, strict=True)):
            known = [value for value in given.tolist() if value is not None and value == value]
            whole = all(
                isinstance(v, int | float) and 0 <= v < 2**24 and v == int(v) for v in known
            )
            odd = [v for v in known if not whole and not isinstance(v, str)]
            if odd:
                raise UnsupportedModelError(
                    f"Column {f} of this {type(source).__name__} has the category {odd[0]!r}; "
                    f"categories must be strings, or whole numbers from 0 to {2**24 - 1}."
                )
            values[position] = np.array(known if whole else range(len(known)), dtype=np.int64)
            names[f] = [] if whole else known
        objects = any(given.dtype == object for given in seen)
        return cls(np.concatenate([first, np.flatnonzero(~is_category)]), values, names, objects)

    def sets(
        self, nodes: npt.NDArray[Any], bits: Sequence[npt.NDArray[np.uint32]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """How many categories each node lists, and which: all sets one after the other.

        Listed are those of the side to which neither unknown nor missing values go.
        """
        n_listed = np.zeros(len(nodes), dtype=np.int64)
        listed = [np.empty(0, dtype=np.int64)]
        category = np.flatnonzero(_splits_on_categories(nodes))
        for at, words in zip(category, bits, strict=True):
            values = self.values[int(nodes["feature_idx"][at])]
            code = np.arange(len(values))
            goes_left = (words[code // 32] >> (code % 32).astype(np.uint32)) & 1 != 0
            listed.append(values[goes_left != bool(nodes["missing_go_to_left"][at])])
            n_listed[at] = len(listed[-1])
        return n_listed, np.concatenate(listed)

    def decode(self, X: FloatArray) -> npt.NDArray[Any]:
        """Rows as the source takes them, with names."""
        if not any(self.names.values()):
            return X.astype(object) if self.objects else X
        named = X.astype(object)
        for f, names in self.names.items():
            if not names:
                continue
            known = (X[:, f] >= 0) & (X[:, f] < len(names))
            position = np.where(known, X[:, f], 0).astype(np.int64)
            no_name = "?" * (1 + max(map(len, names)))
            named[:, f] = np.where(known, np.array(names, dtype=object)[position], no_name)
            named[np.isnan(X[:, f]), f] = np.nan
        return named


_READERS: dict[str, Callable[[Any], tuple[Trees, Reference]]] = {
    "DecisionTreeClassifier": _class_shares,
    "ExtraTreeClassifier": _class_shares,
    "RandomForestClassifier": _class_shares,
    "ExtraTreesClassifier": _class_shares,
    "DecisionTreeRegressor": _mean,
    "ExtraTreeRegressor": _mean,
    "RandomForestRegressor": _mean,
    "ExtraTreesRegressor": _mean,
    "BaggingClassifier": _bagged,
    "BaggingRegressor": _bagged,
    "AdaBoostClassifier": _ada_boosted,
    "IsolationForest": _isolated,
    "GradientBoostingClassifier": _gradient_boosted,
    "GradientBoostingRegressor": _gradient_boosted,
    "HistGradientBoostingClassifier": _histogram_boosted,
    "HistGradientBoostingRegressor": _histogram_boosted,
}
READS = tuple(_READERS)


def _trees(
    source: Any,
    members: Sequence[Any],
    values: Sequence[FloatArray],
    *,
    columns: Sequence[npt.NDArray[Any]] | None = None,
    **more: Any,
) -> Trees:
    """Put the members' nodes together; `columns` are those that each of them sees."""
    parts = [member.tree_ for member in members]
    more.setdefault("classes", getattr(source, "classes_", None))
    features = []
    for k, tree in enumerate(parts):
        leaf = tree.children_left == LEAF
        seen = np.where(leaf, 0, tree.feature)
        features.append(np.where(leaf, LEAF, seen if columns is None else columns[k][seen]))
    return Trees(
        feature=np.concatenate(features),
        threshold=np.concatenate([strictly_below(tree.threshold) for tree in parts]),
        left=np.concatenate([tree.children_left for tree in parts]),
        right=np.concatenate([tree.children_right for tree in parts]),
        missing_left=np.concatenate([tree.missing_go_to_left.astype(bool) for tree in parts]),
        value=np.concatenate(values),
        tree_start=np.cumsum([0, *(tree.node_count for tree in parts)]),
        n_features=source.n_features_in_,
        feature_names=_names(source),
        cover=np.concatenate([tree.weighted_n_node_samples for tree in parts]),
        takes_missing=source.__sklearn_tags__().input_tags.allow_nan,
        **more,
    )


def _names(source: Any) -> list[str] | None:
    names = getattr(source, "feature_names_in_", None)
    return None if names is None else list(names)


def _need_trees(source: Any, members: Sequence[Any]) -> None:
    for member in members:
        if not hasattr(member, "tree_"):
            raise UnsupportedModelError(
                f"This {type(source).__name__} is made of {type(member).__name__}, which "
                f"load_model cannot read inside it. Use decision trees."
            )


def _need_classes(source: Any, members: Sequence[Any], n_classes: int) -> None:
    for k, member in enumerate(members):
        if len(member.classes_) != n_classes:
            raise UnsupportedModelError(
                f"Tree {k} of this {type(source).__name__} has seen {len(member.classes_)} of "
                f"{n_classes} classes. Retrain with more rows a tree."
            )


def _reference(
    source: Any,
    trees: Trees,
    margin: Callable[[Any], Any],
    *,
    leaves: bool = False,
    ours: Callable[[FloatArray], FloatArray] = lambda m: m,
    exact: bool = True,
    infinite: bool = False,
    decode: Callable[[FloatArray], Any] = lambda X: X,
) -> Reference:
    """The model itself, asked without column names, which it would warn of."""

    def ask(question: Callable[[Any], Any], X: FloatArray) -> npt.NDArray[Any]:
        # The largest numbers overflow where scikit-learn looks for infinity.
        with warnings.catch_warnings(), np.errstate(invalid="ignore", over="ignore"):
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return np.asarray(question(decode(X))).reshape(len(X), -1)

    def leaf(X: FloatArray) -> npt.NDArray[np.int64]:
        return ask(source.apply, X).astype(np.int64)

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        return positions(ask(source.predict, X), trees.classes)

    def predict(X: FloatArray) -> FloatArray:
        if not trees.tells_labels:
            return ask(source.predict, X).astype(np.float64)
        given = ask(source.predict_proba, X)
        return given[:, 1:] if trees.n_outputs == 1 else given

    threads = getattr(source, "n_jobs", None)
    tells_means = trees.task == "regression" or (
        trees.task == "classification" and trees.link != "identity"
    )
    return Reference(
        name=type(source).__name__,
        margin=lambda X: ask(margin, X),
        label=label if trees.tells_labels else None,
        predict=predict if tells_means else None,
        leaf=leaf if leaves else None,
        ours=ours,
        exact=exact and threads in (None, 1),  # threads add in the order in which they finish
        missing=source.__sklearn_tags__().input_tags.allow_nan,
        infinite=infinite,
    )


def strictly_below(threshold: FloatArray) -> Float32Array:
    """Thresholds t' with ``x < t'`` wherever scikit-learn's ``x <= t`` holds, x being float32.

    The largest float32 that still goes left is t rounded down; the next one up is t'.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        lower = np.nextafter(nearest, np.float32(-np.inf))
        last_left = np.where(nearest > threshold, lower, nearest)
        return np.nextafter(last_left, np.float32(np.inf))
