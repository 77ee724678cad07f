"""Models side by side: how accurate they are, and how much of it is proven under attack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood._check import FloatArray
from hardwood.threat import Reach, Threat, threat_of
from hardwood.verify.curve import AccuracyCurve, certified_accuracy
from hardwood.verify.problem import Problem

_MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Accuracy and certified accuracy of several models; see `compare`.

    Attributes
    ----------
    names : tuple of str
        What the models are called.
    multiples : ndarray of shape (n_sizes,)
        Sizes of the adversary, in multiples of the threat: 0 is no attack, 1 the threat itself.
    curves : tuple of AccuracyCurve
        One a model, over these sizes.
    threat : Threat
        What was certified against.
    """

    names: tuple[str, ...]
    multiples: FloatArray
    curves: tuple[AccuracyCurve, ...]
    threat: Threat

    def to_frame(self) -> Any:
        """Give the figures as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row a model and size: ``model``, ``multiple``, ``certified_accuracy`` (never above
            the truth) and ``attacked_accuracy`` (never below it).
        """
        import pandas

        return pandas.DataFrame(
            [
                {
                    "model": name,
                    "multiple": float(multiple),
                    "certified_accuracy": float(curve.certified_accuracy[at]),
                    "attacked_accuracy": float(curve.attacked_accuracy[at]),
                }
                for name, curve in zip(self.names, self.curves, strict=True)
                for at, multiple in enumerate(self.multiples)
            ]
        )

    def at(self, multiple: float = 1.0) -> dict[str, float]:
        """Give the certified accuracy of each model at one size.

        Parameters
        ----------
        multiple : float, default=1.0
            One of ``multiples``.

        Returns
        -------
        dict
            By the names of the models.
        """
        near = np.flatnonzero(np.isclose(self.multiples, multiple))
        if not len(near):
            raise ValueError(
                f"multiple must be one of {self.multiples.tolist()}, got multiple={multiple}."
            )
        found = int(near[0])
        return {
            name: float(curve.certified_accuracy[found])
            for name, curve in zip(self.names, self.curves, strict=True)
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the certified curves with matplotlib, with what is undecided as a band above.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure, which is the answer's ``figure``.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        from hardwood.report.plots import plot_comparison

        proven = [curve.certified_accuracy for curve in self.curves]
        found = [curve.attacked_accuracy for curve in self.curves]
        return plot_comparison(self.names, self.multiples, proven, found, ax=ax)

    def __repr__(self) -> str:
        clean, attacked = self.at(0.0), self.at(1.0)
        figures = ", ".join(f"{n}: {clean[n]:.3f} -> {attacked[n]:.3f}" for n in self.names)
        return f"Comparison({figures})"


def compare(
    models: Sequence[Any],
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    names: Sequence[str] | None = None,
    multiples: Sequence[float] = _MULTIPLES,
    time_limit: float | None = None,
    total_time_limit: float | None = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare models: accuracy, and how it falls as the adversary gets stronger.

    Parameters
    ----------
    models : sequence
        Anything that `load_model` reads, such as a model and its twin from `harden`.
    X : array-like of shape (n_samples, n_features)
        Rows that no model was trained on.
    y : array-like of shape (n_samples,)
        Their labels.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    names : sequence of str or None, default=None
        What the models are called; None means the names of their classes.
    multiples : sequence of float, default=(0, .25, .5, .75, 1, 1.5, 2)
        Sizes of the adversary, in multiples of the threat; 0 and 1 are always among them.
    time_limit, total_time_limit : float or None, default=None
        Seconds for each decision and for each model; what is open by then is between the two sides.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores.

    Returns
    -------
    Comparison
        With ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    >>> twin = hw.harden(model, X, y, threat=0.05)
    >>> found = hw.compare([model, twin], X, y, 0.05, names=["model", "twin"])
    >>> found.at(1)["model"] < found.at(1)["twin"]
    True
    """
    threat = threat_of(threat)
    if not isinstance(models, Sequence) or isinstance(models, str) or not len(models):
        raise ValueError(
            f"models must be a list of one or more models, got {models!r}; for one model pass a "
            f"list of one."
        )
    called = _names(models, names)
    sizes = np.unique([0.0, 1.0, *map(float, multiples)])
    curves = [
        certified_accuracy(
            model,
            X,
            y,
            sizes * _unit(Problem.of(model, X, y, n_jobs).reach(threat)),
            threat=threat,
            time_limit=time_limit,
            total_time_limit=total_time_limit,
            n_jobs=n_jobs,
        )
        for model in models
    ]
    return Comparison(called, sizes, tuple(curves), threat)


def _unit(reach: Reach) -> float:
    """What the threat itself is called in a list of eps."""
    return 1.0 if reach.multiples else reach.radius


def _names(models: Sequence[Any], names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        if len(names) != len(models) or len(set(names)) != len(names):
            raise ValueError(
                f"names must hold one name for each of the {len(models)} models, no two alike, got "
                f"names={list(names)!r}."
            )
        return tuple(names)
    plain = [type(model).__name__ for model in models]
    return tuple(
        name if plain.count(name) == 1 else f"{name} {plain[: at + 1].count(name)}"
        for at, name in enumerate(plain)
    )
