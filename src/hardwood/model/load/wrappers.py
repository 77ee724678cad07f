"""What scikit-learn puts around a classifier: searches, decision thresholds, calibration.

A search is its best model. A threshold and a calibration change which margin decides; where, is
found by bisection over the margins, through the wrapper's own code.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.decision import SOFTMAX_TIE, cut_of
from hardwood.model.load.gate import Reference, largest_sum, own_reference, positions, sum_error
from hardwood.model.trees import LEAF, Trees, take_nodes

Loaded = tuple[Trees, Reference]

_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
_THRESHOLDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
WRAPPERS = (*_SEARCHES, *_THRESHOLDS, "CalibratedClassifierCV", "FrozenEstimator")
_REFUSED = {
    "TransformedTargetRegressor": "predicts another target than its trees; pass its regressor_",
    "VotingClassifier": "decides by a vote of several models; ask about each of them",
    "StackingClassifier": "feeds models with the predictions of others; ask about each of them",
    "OneVsRestClassifier": "scales the predictions of several models; ask about each of them",
    "OneVsOneClassifier": "decides by a vote of several models; ask about each of them",
    "MultiOutputClassifier": "predicts several targets at once; ask about each of its estimators_",
}


def can_load(source: Any) -> bool:
    """Whether the object is such a wrapper; scikit-learn itself is not imported to find out."""
    kind = type(source)
    known = kind.__name__ in WRAPPERS or kind.__name__ in _REFUSED
    return kind.__module__.startswith("sklearn.") and known


def load(source: Any, load_inner: Callable[[Any], Loaded]) -> Loaded:
    """Read the model inside, and decide as the wrapper does."""
    kind = type(source).__name__
    if kind in _REFUSED:
        raise UnsupportedModelError(
            f"load_model cannot look through {kind}, which {_REFUSED[kind]}. The black-box attack "
            f'works on it: find_adversarial(..., method="cheng").'
        )
    if kind == "FrozenEstimator":
        return load_inner(source.estimator)
    if kind in _SEARCHES:
        return load_inner(_best(source, kind))
    if not hasattr(source, "classes_"):
        raise ValueError(f"This {kind} is not fitted yet; call fit first.")
    if kind == "CalibratedClassifierCV":
        return _calibrated(source, load_inner)
    return _thresholded(source, load_inner)


def decide_at(trees: Trees, reference: Reference | None, threshold: float) -> tuple[Trees, Any]:
    """The same model, which says the second class from a probability on; and its reference."""
    if not (isinstance(threshold, int | float | np.floating) and 0 < threshold < 1):
        raise ValueError(
            f"threshold must be a probability between 0 and 1, both excluded, got "
            f"threshold={threshold!r}."
        )
    trees.need_labels()
    if trees.n_classes > 2:
        raise ValueError(
            f"threshold={threshold} is for two classes, but the model has {trees.n_classes}: one "
            f"probability does not decide between them. Leave it out."
        )
    if trees.task == "anomaly" or (trees.link in ("identity", "hinge") and not _told(reference)):
        raise UnsupportedModelError(
            f"threshold={threshold} needs a probability, and this model has none "
            f"(task={trees.task!r}, link={trees.link!r}). Leave it out."
        )
    asked = reference or own_reference(trees, "model")
    # As numpy compares a source's probabilities with a number: in their precision.
    threshold = float(np.dtype(asked.dtype).type(threshold))

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        decided: npt.NDArray[np.int64] = (_second(asked, X) >= threshold).astype(np.int64)
        return decided

    if _has_two_sums(trees):
        changed, after = _between_two_sums(trees, asked, threshold)
        return changed, replace(after, label=label if asked.predict is not None else None)
    one, its, probability = _one_output(trees, asked, 1)
    changed, after = _with_cut(one, its, lambda m: probability(m) < threshold)
    after = replace(after, label=None if reference is None or reference.predict is None else label)
    return changed, None if reference is None else replace(after, probability=probability)


def _told(reference: Reference | None) -> bool:
    return reference is not None and reference.probability is not None


def _second(reference: Reference, X: FloatArray) -> FloatArray:
    """The probability of the second class, as the source tells it."""
    assert reference.predict is not None
    return np.asarray(reference.predict(X)[:, -1])


def _best(source: Any, kind: str) -> Any:
    if hasattr(source, "best_estimator_"):
        return source.best_estimator_
    if hasattr(source, "cv_results_"):
        raise ValueError(f"This {kind} has refit=False and so no model; fit the best one yourself.")
    raise ValueError(f"This {kind} is not fitted yet; call fit first.")


def _thresholded(source: Any, load_inner: Callable[[Any], Loaded]) -> Loaded:
    inner = getattr(source, "estimator_", source.estimator)
    trees, reference = load_inner(inner)
    last = int(_positive(source) != source.classes_[0])
    if _has_two_sums(trees):
        return _thresholded_sums(source, inner, trees, reference)
    one, its, probability = _one_output(trees, reference, last)

    def is_first(margin: FloatArray) -> Any:
        probe = copy.copy(source)
        probe.estimator_ = _given(inner, its, margin, probability(margin), last)
        return probe.predict(np.zeros((len(margin), 1))) == source.classes_[0]

    asked = _asked(source, its)
    if last == 1:
        asked = replace(asked, probability=probability)  # for another threshold
    return _with_cut(one, asked, is_first)


def _positive(source: Any) -> Any:
    """The class whose probability is compared."""
    if hasattr(source, "_curve_scorer"):
        return source._curve_scorer._get_pos_label()
    return source.classes_[1] if source.pos_label is None else source.pos_label


def _calibrated(source: Any, load_inner: Callable[[Any], Loaded]) -> Loaded:
    members = source.calibrated_classifiers_
    if len(members) > 1:
        raise UnsupportedModelError(
            f"This CalibratedClassifierCV averages {len(members)} models, each with a calibration "
            f"of its own, so no sum of trees decides. Set ensemble=False."
        )
    if len(source.classes_) > 2:
        raise UnsupportedModelError(
            f"This CalibratedClassifierCV has {len(source.classes_)} classes, which it scales one "
            f"by one; load_model looks through two classes."
        )
    inner = members[0].estimator
    trees, reference = load_inner(inner)
    one, its, probability = _one_output(trees, reference, 1)

    def calibrated(margin: FloatArray) -> FloatArray:
        probe, member = copy.copy(source), copy.copy(members[0])
        member.estimator = _given(inner, its, margin, probability(margin), 1)
        probe.calibrated_classifiers_ = [member]
        return np.asarray(probe.predict_proba(np.zeros((len(margin), 1))), dtype=np.float64)

    # Its probabilities are no link of ours; the margin stays as it is, and the cut moves.
    asked = replace(_asked(source, its), predict=None, probability=lambda m: calibrated(m)[:, 1])
    # The model inside may have been trained on numbers of the classes.
    one = one.replace(link="identity", classes=source.classes_)
    return _with_cut(one, asked, lambda m: np.argmax(calibrated(m), axis=1) == 0)


def _asked(source: Any, reference: Reference) -> Reference:
    """The wrapper itself says the label."""

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        return positions(source.predict(reference.decode(X)), source.classes_)

    def own_label(X: Any) -> npt.NDArray[np.int64]:
        return positions(source.predict(X), source.classes_)

    name = f"{type(source).__name__} of {reference.name}"
    return replace(reference, name=name, label=label, own_label=own_label)


def _one_output(
    trees: Trees, reference: Reference, last: int
) -> tuple[Trees, Reference, Callable[[FloatArray], FloatArray]]:
    """The model with one output, from which the probability of one of two classes follows."""
    if trees.n_classes > 2 or trees.task != "classification":
        raise UnsupportedModelError(
            f"A threshold or a calibration of a model with {trees.n_classes} classes "
            f"(task={trees.task!r}) cannot be looked through; two classes can."
        )
    if trees.n_outputs == 2 and trees.link == "one_vs_rest":
        trees, reference = _alone(trees, reference, last)
        return trees, reference, lambda margin: trees.means(margin[:, None])[:, 0]
    if trees.n_outputs == 2 and trees.n_trees == 1 and not _adds_shares(trees):
        trees, reference = _told_by_leaves(trees, reference, last)
        return trees, reference, lambda margin: margin
    if trees.n_outputs == 1:
        told = reference.probability

        def probability(margin: FloatArray) -> FloatArray:
            p = trees.means(margin[:, None])[:, 0] if told is None else told(margin)
            return p if last == 1 else 1 - p

        return trees, reference, probability
    if not _adds_shares(trees):
        raise UnsupportedModelError(
            f"This model has an output for each of two classes (link={trees.link!r}), whose "
            f"rounded probabilities are calibrated; train it with one output."
        )
    # Shares are added up class by class and divided by the number of trees.
    one = trees.replace(
        value=trees.value[:, last : last + 1].astype(np.float64),
        tree_output=None,
        base=trees.base[last : last + 1],
        link="identity",
        cut=None,
        compare=None,
    )
    return one, _of_one(reference, last), lambda margin: margin / trees.divisor


def _of_one(reference: Reference, last: int) -> Reference:
    """What a source says of one of two outputs."""
    return replace(
        reference,
        margin=lambda X: reference.margin(X)[:, last : last + 1],
        predict=None if reference.predict is None else lambda X: _both(reference, X, last),
    )


def _adds_shares(trees: Trees) -> bool:
    """Whether probabilities are sums of shares, divided by the number of trees, in double."""
    leaf = trees.feature == LEAF
    return (
        trees.link == "share"
        and trees.value.dtype == np.float64
        and trees.divisor == trees.n_trees
        and np.allclose(trees.value[leaf].sum(axis=1), 1)
    )


def _has_two_sums(trees: Trees) -> bool:
    """Whether the probability of one of two classes follows from two sums, and from no one."""
    alone = trees.n_trees == 1 or trees.link == "one_vs_rest" or _adds_shares(trees)
    return trees.n_outputs == 2 and not alone


def _alone(trees: Trees, reference: Reference, last: int) -> Loaded:
    """One of two outputs whose probabilities do not know each other."""
    if trees.value.shape[1] == 2:
        kept = {"value": trees.value[:, last : last + 1]}
    else:
        mine, size = trees.tree_output == last, np.diff(trees.tree_start)
        kept = take_nodes(trees, np.flatnonzero(np.repeat(mine, size)))
        kept["tree_start"] = np.concatenate([[0], np.cumsum(size[mine])])
    one = trees.replace(
        **kept,
        tree_output=None,
        base=trees.base[last : last + 1],
        link="logistic",
        cut=None,
        compare=None,
    )
    return one, replace(_of_one(reference, last), leaf=None)


def _told_by_leaves(trees: Trees, reference: Reference, last: int) -> Loaded:
    """A single tree whose leaves hold the probability of a class itself."""
    leaf = (trees.feature == LEAF)[:, None]
    told = trees.means(np.where(leaf, trees.base + trees.value, 1.0))[:, last : last + 1]
    one = trees.replace(
        value=np.where(leaf, told, 0.0),
        tree_output=None,
        base=0.0,
        link="identity",
        cut=None,
        compare=None,
    )

    def margin(X: FloatArray) -> FloatArray:
        return trees.means(reference.margin(X))[:, last : last + 1]

    return one, replace(_of_one(reference, last), margin=margin)


def _between_two_sums(trees: Trees, reference: Reference, threshold: float) -> Loaded:
    """The model that says the second class where its probability reaches a threshold.

    A probability p of two sums a and b reaches it where b reaches ``a * threshold / (1 -
    threshold)``, or, after a softmax, ``a + log(threshold / (1 - threshold))``: again the larger of
    two sums decides. What the source may round otherwise is a tie, of which the source is asked.
    """
    odds = np.log(threshold) - np.log1p(-threshold)
    weight, shift = np.array([threshold, 1 - threshold]), np.zeros(2)
    rounding = 0.0 if _adds_exactly(trees) else sum_error(trees)
    if trees.link == "softmax":
        scale = trees.divisor / trees.slope
        weight, shift = np.ones(2), np.array([odds * scale, 0.0])
        # How far a margin moves while the probability moves by its rounding.
        close = SOFTMAX_TIE[trees.value.dtype.name] / (threshold * (1 - threshold))
        rounding += float(close * scale)
    tree = np.repeat(np.arange(trees.n_trees), np.diff(trees.tree_start))
    output = trees.tree_output[tree][:, None] + np.arange(trees.value.shape[1])
    two = trees.replace(
        value=trees.value.astype(np.float64) * weight[output],
        base=trees.base * weight + shift,
        link="identity",
        divisor=1.0,
        slope=1.0,
        compare="margin",
    )
    # Where both are equal before rounding, the second class is said; our own rounding is less.
    equal = 4 * sum_error(two)
    two = two.replace(base=two.base - [equal, 0], tie=equal / 2 + rounding)

    def margin(X: FloatArray) -> FloatArray:
        weighted: FloatArray = reference.margin(X) * weight + shift - [equal, 0]
        return weighted

    return two, replace(reference, margin=margin, leaf=None, predict=None, exact=False)


def _adds_exactly(trees: Trees) -> bool:
    """Whether no sum of leaves is ever rounded, as those of leaves of one class."""
    scale = np.exp2(np.ceil(np.log2(max(largest_sum(trees), 1e-300))))
    leaf = trees.value[trees.feature == LEAF].astype(np.float64)
    steps = np.append(leaf, trees.base) / (scale * np.finfo(trees.value.dtype).epsneg)
    return bool(np.all(steps == np.trunc(steps)))


def _thresholded_sums(source: Any, inner: Any, trees: Trees, reference: Reference) -> Loaded:
    """A threshold around a model of two sums, found by bisection over the probabilities."""
    if source.response_method == "decision_function":
        raise UnsupportedModelError(
            f"This {type(source).__name__} compares decision_function of a model with an output "
            f'for each of two classes; set response_method="predict_proba".'
        )

    def is_first(p: FloatArray) -> Any:
        probe = copy.copy(source)
        probe.estimator_ = _given(inner, reference, None, p, 1)
        return probe.predict(np.zeros((len(p), 1))) == source.classes_[0]

    before = cut_of(is_first, reference.dtype)
    threshold = float(np.nextafter(reference.dtype(before), reference.dtype(np.inf)))
    if not 0 < threshold < 1:
        raise UnsupportedModelError(
            f"This {type(source).__name__} gives every row the same label: the second class "
            f"from a probability of {threshold:g} on."
        )
    return _between_two_sums(trees, _asked(source, reference), threshold)


def _both(reference: Reference, X: FloatArray, last: int) -> FloatArray:
    assert reference.predict is not None
    return reference.predict(X)[:, last : last + 1]


def _given(
    inner: Any, reference: Reference, margin: FloatArray | None, probability: FloatArray, last: int
) -> Any:
    """A classifier that says what it is told, in the ways in which the model inside speaks."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    told = probability.astype(reference.dtype)
    both = np.column_stack([1 - told, told])
    score = None if margin is None else reference.ours(margin[:, None])[:, 0]

    def predict_proba(self: Any, X: Any) -> Any:
        return both if last == 1 else both[:, ::-1]

    def decision_function(self: Any, X: Any) -> Any:
        return score

    says: dict[str, Any] = {"fit": None, "__sklearn_is_fitted__": lambda self: True}
    for way in (predict_proba,) if margin is None else (predict_proba, decision_function):
        if hasattr(inner, way.__name__):
            says[way.__name__] = way
    given = type("Given", (ClassifierMixin, BaseEstimator), says)()
    given.classes_ = inner.classes_
    return given


def _with_cut(trees: Trees, reference: Reference, is_first: Callable[[FloatArray], Any]) -> Loaded:
    """The model that says the first class where it is told to."""
    dtype = trees.value.dtype
    # Beyond what leaves add up to, a wrapper's own steps may overflow.
    most = 2 * largest_sum(trees) + 1

    def within(margin: FloatArray) -> Any:
        return is_first(np.clip(margin, -most, most))

    with np.errstate(all="ignore"):
        low, high = np.asarray(within(np.array([-most, most])), dtype=bool)
        if high and not low:  # the first class is that of large margins
            trees, reference = _negated(trees, reference)
            cut = cut_of(lambda m: within(-m), dtype)
        else:
            cut = cut_of(within, dtype)
    return trees.replace(cut=cut), reference


def _negated(trees: Trees, reference: Reference) -> Loaded:
    told = reference.probability
    negated = trees.replace(value=-trees.value, base=-trees.base, link="identity")
    return negated, replace(
        reference,
        margin=lambda X: -reference.margin(X),
        ours=lambda margin: -reference.ours(-margin),
        predict=None,
        probability=None if told is None else lambda margin: told(-margin),
    )
