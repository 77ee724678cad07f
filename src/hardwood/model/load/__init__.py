"""The one door for models: anything with trees in, `Trees` out."""

from typing import Any

from hardwood.errors import UnsupportedModelError
from hardwood.model.load import sklearn
from hardwood.model.trees import Trees


def load_model(source: Any) -> Trees:
    """Turn a tree model into `Trees`.

    Parameters
    ----------
    source : object
        A fitted estimator of hardwood, a fitted scikit-learn ``DecisionTreeClassifier``,
        ``RandomForestClassifier`` or ``ExtraTreesClassifier``, or `Trees`, which come back as they
        are.

    Returns
    -------
    Trees
        The same model: the same leaf for every row, rows on thresholds included.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> hw.load_model(tree)
    Trees(n_trees=1, n_leaves=3, n_features=4, n_outputs=3, x_dtype='float32', link='share')
    """
    if isinstance(source, Trees):
        return source
    own = getattr(source, "trees_", None)
    if isinstance(own, Trees):
        return own
    if type(source).__module__.startswith("hardwood.") and hasattr(source, "fit"):
        raise ValueError(f"This {type(source).__name__} is not fitted yet; call fit first.")
    if sklearn.speaks(source):
        return sklearn.load(source)
    raise UnsupportedModelError(
        f"load_model cannot read {type(source).__module__}.{type(source).__name__}; it reads "
        f"hardwood's own estimators, Trees, and scikit-learn's {', '.join(sklearn.READS)}. "
        f"From a pipeline or a search pass the fitted tree model itself, and rows as it sees them."
    )
