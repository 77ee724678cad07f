"""Several models as one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.model.load import load_model
from hardwood.model.trees import Trees

# What models must have in common; the rest are trees, which come one after the other.
_ALIKE = (
    "n_features",
    "n_outputs",
    "link",
    "task",
    "divisor",
    "slope",
    "cut",
    "compare",
    "classes",
    "feature_names",
    "category_names",
    "takes_missing",
    "columns",
)
_ONE_A_NODE = ("feature", "threshold", "left", "right", "missing_left", "gain", "cover", "category")


def average(models: Sequence[Any]) -> Trees:
    """Put models together into one whose margins are the mean of theirs.

    Models that differ by what they drew (`random_state` with `colsample_bytree` or `subsample`
    below 1) are more accurate together than each alone, and more robust, on images above all. The
    mean is a model of trees like any other: it can be asked, attacked and certified as a whole.

    Parameters
    ----------
    models : sequence
        At least one of whatever `load_model` takes: of the same columns, classes and link.

    Returns
    -------
    Trees
        All trees, their leaf values divided by the number of models.

    Raises
    ------
    ValueError
        If there is no model, or two differ in what they answer or what they are asked.

    Examples
    --------
    >>> import numpy as np, hardwood as hw
    >>> X = np.random.default_rng(0).random((200, 5))
    >>> y = X[:, 0] + X[:, 1] > 1
    >>> models = [
    ...     hw.RobustGradientBoostingClassifier(eps=0.05, colsample_bytree=0.6, random_state=seed)
    ...     for seed in range(3)
    ... ]
    >>> together = hw.average([model.fit(X, y) for model in models])
    >>> together.n_trees, bool(hw.certify(together, X, y, 0.05).certified_accuracy > 0.5)
    (300, True)
    """
    loaded = [load_model(model) for model in models]
    if not loaded:
        raise ValueError("average needs at least one model, got none.")
    first = loaded[0]
    for k, other in enumerate(loaded[1:], 1):
        for name in _ALIKE:
            ours, theirs = getattr(first, name), getattr(other, name)
            if not _same(ours, theirs):
                raise ValueError(
                    f"models must have the same {name} to be averaged; the first one has {ours!r}, "
                    f"models[{k}] has {theirs!r}. Train them on the same columns and labels."
                )
    n = len(loaded)
    n_nodes = np.concatenate([np.diff(trees.tree_start) for trees in loaded])
    n_categories = np.concatenate([np.diff(trees.category_start) for trees in loaded])
    parts = {name: [getattr(trees, name) for trees in loaded] for name in _ONE_A_NODE}
    return first.replace(
        **{
            name: None if any(part is None for part in several) else np.concatenate(several)
            for name, several in parts.items()
        },
        value=np.concatenate([trees.value / n for trees in loaded]),
        tree_start=np.concatenate([[0], np.cumsum(n_nodes)]),
        tree_output=np.concatenate([trees.tree_output for trees in loaded]),
        category_start=np.concatenate([[0], np.cumsum(n_categories)]),
        base=np.mean([trees.base for trees in loaded], axis=0),
        metadata=None,
    )


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, theirs)
    return bool(ours == theirs)
