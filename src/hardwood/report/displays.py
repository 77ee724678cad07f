"""Pictures in scikit-learn's manner: a display keeps its numbers, and `plot` draws them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import FloatArray
from hardwood.model.load import load_model
from hardwood.model.trees import refuse_categories
from hardwood.report import findings, words
from hardwood.report.audit import audit
from hardwood.report.plots import draw_regions, hue
from hardwood.threat import Threat, threat_of
from hardwood.verify.distance import minimal_distance
from hardwood.verify.problem import Problem

_TURNED = "#b93a12"
_MULTIPLES = np.arange(81) / 40  # 0 to 2


class _Display:
    """Where a picture is drawn, and what is known afterwards: ``ax_`` and ``figure_``."""

    ax_: Any
    figure_: Any

    def _begin(self, ax: Any, size: tuple[float, float] | None = None) -> Any:
        if ax is None:
            _, ax = _pyplot().subplots(figsize=size)
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            'Displays need matplotlib. Install it with: pip install "hardwood[report]"'
        ) from None
    return plt


def _measured(
    model: Any, X: Any, y: Any, threat: Threat | float, options: dict[str, Any]
) -> tuple[FloatArray, FloatArray]:
    """Proven and found smallest changes, in multiples of the threat."""
    threat = threat_of(threat)
    found = minimal_distance(model, X, y, norm=threat.norm, threat=threat, **options)
    unit = findings.unit_of(Problem.of(model, X, y, options.get("n_jobs")).reach(threat))
    return found.lower / unit, found.upper / unit


class RobustnessCurveDisplay(_Display):
    """Accuracy as the adversary gets stronger: what is proven below, what was found above.

    Parameters
    ----------
    multiple : ndarray of shape (n_points,)
        Strengths of the adversary, in multiples of the threat.
    certified, attacked : ndarray of shape (n_points,)
        Share of rows proven right, and share of rows not yet fooled.
    name : str or None, default=None
        What the legend calls the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.
    line_ : matplotlib Line2D
        The proven shares.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> display = hw.RobustnessCurveDisplay.from_estimator(tree, X, y, hw.Threat(0.2))
    >>> print(display.certified[0].round(3), display.certified[-1].round(3))
    0.973 0.627
    """

    def __init__(
        self,
        *,
        multiple: FloatArray,
        certified: FloatArray,
        attacked: FloatArray,
        name: str | None = None,
    ) -> None:
        self.multiple = multiple
        self.certified = certified
        self.attacked = attacked
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        threat: Threat | float,
        *,
        multiples: npt.ArrayLike = _MULTIPLES,
        name: str | None = None,
        ax: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        **kwargs: Any,
    ) -> "RobustnessCurveDisplay":
        """Measure the smallest change of every row and draw.

        Parameters
        ----------
        model : object
            Anything that `load_model` reads.
        X, y : array-like
            Rows and their true labels.
        threat : Threat or number
            What the adversary may do.
        multiples : array-like, default=0 to 2 in steps of 1/40
            Strengths to draw, increasing.
        name : str or None, default=None
            What the legend calls the model; None means its class.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        time_limit : float or None, default=None
            Seconds for each row.
        n_jobs : int or None, default=None
            Number of threads.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RobustnessCurveDisplay
            The drawn display.
        """
        lower, upper = _measured(model, X, y, threat, {"time_limit": time_limit, "n_jobs": n_jobs})
        name = name or type(model).__name__
        return cls.from_predictions(lower, upper, multiples=multiples, name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike | None = None,
        *,
        multiples: npt.ArrayLike = _MULTIPLES,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "RobustnessCurveDisplay":
        """Draw from smallest changes that are already known.

        Parameters
        ----------
        lower, upper : array-like of shape (n_samples,)
            Proven and found smallest changes, 0 for rows that are wrong; without `upper` they are
            the same.
        multiples : array-like, default=0 to 2 in steps of 1/40
            Strengths to draw, in the unit of `lower`.
        name : str or None, default=None
            What the legend calls the model.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RobustnessCurveDisplay
            The drawn display.
        """
        low = np.asarray(lower, dtype=np.float64)
        high = low if upper is None else np.asarray(upper, dtype=np.float64)
        grid = np.asarray(multiples, dtype=np.float64)
        certified = np.array([np.mean(low > at) for at in grid])
        attacked = np.array([np.mean(high > at) for at in grid])
        display = cls(multiple=grid, certified=certified, attacked=attacked, name=name)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "RobustnessCurveDisplay":
        """Draw the band.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``plot``.

        Returns
        -------
        RobustnessCurveDisplay
            This display.
        """
        ax = self._begin(ax)
        (self.line_,) = ax.plot(self.multiple, self.certified, **{"label": self.name, **kwargs})
        colour = self.line_.get_color()
        self.band_ = ax.fill_between(
            self.multiple, self.certified, self.attacked, color=colour, alpha=0.25, lw=0
        )
        ax.axvline(1, color="0.5", lw=1, ls=":")
        ax.set_xlabel("strength of the adversary, in multiples of the threat")
        ax.set_ylabel("share of rows proven right")
        ax.set_ylim(0, 1.02)
        ax.set_xlim(self.multiple[0], self.multiple[-1])
        if self.line_.get_label() and not self.line_.get_label().startswith("_"):
            ax.legend(loc="lower left")
        return self


class DistanceDistributionDisplay(_Display):
    """How many rows are how far from being fooled.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_samples,)
        Proven and found smallest changes; 0 for rows that are wrong already.
    name : str or None, default=None
        What the legend calls the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.

    Examples
    --------
    >>> import hardwood as hw
    >>> display = hw.DistanceDistributionDisplay.from_predictions([0, 0.4, 0.9, 1.3])
    >>> display.ax_.get_xlabel()
    'smallest change that fools the model'
    """

    def __init__(self, *, lower: FloatArray, upper: FloatArray, name: str | None = None) -> None:
        self.lower = lower
        self.upper = upper
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        threat: Threat | float,
        *,
        name: str | None = None,
        ax: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        **kwargs: Any,
    ) -> "DistanceDistributionDisplay":
        """Measure the smallest change of every row and draw, in multiples of the threat.

        Parameters
        ----------
        model : object
            Anything that `load_model` reads.
        X, y : array-like
            Rows and their true labels.
        threat : Threat or number
            What the adversary may do.
        name : str or None, default=None
            What the legend calls the model; None means its class.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        time_limit : float or None, default=None
            Seconds for each row.
        n_jobs : int or None, default=None
            Number of threads.
        **kwargs : dict
            Passed to matplotlib's ``hist``.

        Returns
        -------
        DistanceDistributionDisplay
            The drawn display.
        """
        lower, upper = _measured(model, X, y, threat, {"time_limit": time_limit, "n_jobs": n_jobs})
        display = cls(lower=lower, upper=upper, name=name or type(model).__name__)
        display.plot(ax=ax, **kwargs)
        display.ax_.axvline(1, color="0.5", lw=1, ls=":")
        display.ax_.set_xlabel("smallest change that fools the model, × the threat")
        return display

    @classmethod
    def from_predictions(
        cls,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike | None = None,
        *,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "DistanceDistributionDisplay":
        """Draw smallest changes that are already known.

        Parameters
        ----------
        lower, upper : array-like of shape (n_samples,)
            Proven and found smallest changes; without `upper` they are the same.
        name : str or None, default=None
            What the legend calls the model.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``hist``.

        Returns
        -------
        DistanceDistributionDisplay
            The drawn display.
        """
        low = np.asarray(lower, dtype=np.float64)
        high = low if upper is None else np.asarray(upper, dtype=np.float64)
        return cls(lower=low, upper=high, name=name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "DistanceDistributionDisplay":
        """Draw a histogram of what is proven; rows that no change fools are left out.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``hist``.

        Returns
        -------
        DistanceDistributionDisplay
            This display.
        """
        ax = self._begin(ax)
        shown = self.lower[np.isfinite(self.lower) & (self.upper > 0)]
        ax.hist(shown, **{"bins": 30, "alpha": 0.7, "label": self.name, **kwargs})
        ax.set_xlabel("smallest change that fools the model")
        ax.set_ylabel("rows")
        if self.name:
            ax.legend()
        return self


class DecisionBoundaryDisplay(_Display):
    """Regions of a model of two columns, and the boxes an adversary can reach from rows.

    The plane is cut at all thresholds of the model and every cell is asked once, so boundaries are
    exact and not a sampled grid.

    Parameters
    ----------
    trees : Trees
        The model.
    X : ndarray of shape (n_samples, 2)
        Rows to draw.
    y : ndarray of int or None
        Positions of their labels.
    threat : Threat or None, default=None
        What the adversary may do.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> tree = hw.RobustDecisionTreeClassifier(eps=0.1, max_depth=3).fit(X, y)
    >>> display = hw.DecisionBoundaryDisplay.from_estimator(tree, X, y, threat=0.1)
    >>> len(display.ax_.patches)
    60
    """

    def __init__(self, *, trees: Any, X: FloatArray, y: Any, threat: Threat | None = None) -> None:
        self.trees = trees
        self.X = X
        self.y = y
        self.threat = threat

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        threat: Threat | float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "DecisionBoundaryDisplay":
        """Draw a fitted model.

        Parameters
        ----------
        model : object
            Anything that `load_model` reads, of two columns.
        X : array-like of shape (n_samples, 2)
            Rows to draw.
        y : array-like or None, default=None
            Their labels.
        threat : Threat, number or None, default=None
            Boxes to draw around the rows; None draws none.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        DecisionBoundaryDisplay
            The drawn display.
        """
        trees = load_model(model)
        refuse_categories(trees, "DecisionBoundaryDisplay")
        if trees.n_features != 2:
            raise ValueError(
                f"DecisionBoundaryDisplay draws models of 2 columns, but this one has "
                f"{trees.n_features}; train on two columns."
            )
        rows = trees.rows(X)
        label = None
        if y is not None:
            label = _check.labels(y, trees.classes, trees.n_classes, len(rows))
        given = None if threat is None else threat_of(threat)
        return cls(trees=trees, X=rows, y=label, threat=given).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "DecisionBoundaryDisplay":
        """Draw regions, rows and boxes.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        **kwargs : dict
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        DecisionBoundaryDisplay
            This display.
        """
        ax = self._begin(ax)
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        if self.threat is not None:
            from matplotlib.patches import Rectangle

            begin, end = self.threat.ball(self.X, self.trees.feature_names)
            low, high = np.minimum(low, begin.min(axis=0)), np.maximum(high, end.max(axis=0))
            for (left, bottom), size in zip(begin, end - begin, strict=True):
                box = Rectangle((left, bottom), *size, fill=False, ec="0.25", lw=0.6, alpha=0.7)
                ax.add_patch(box)
        room = 0.05 * np.maximum(high - low, 1e-9)
        low, high = low - room, high + room
        draw_regions(ax, self.trees, low, high)
        style = {"s": 14, "edgecolor": "white", "lw": 0.4, **kwargs}
        for position in range(self.trees.n_classes):
            own = self.X if self.y is None else self.X[self.y == position]
            ax.scatter(*own.T, **{"color": "0.2" if self.y is None else hue(position, 1), **style})
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        names = words.names_of(self.trees)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
        return self


class AdversarialGridDisplay(_Display):
    """Images, the examples that fool the model, and what changed.

    Parameters
    ----------
    X, X_adv : ndarray of shape (n_images, height * width)
        Images and examples.
    image : (int, int)
        Height and width.
    titles : sequence of str
        One an image.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (3, n_images)
        Image, example, change.
    figure_ : matplotlib Figure
        Where `plot` drew.

    Examples
    --------
    >>> import hardwood as hw
    >>> display = hw.AdversarialGridDisplay.from_predictions(
    ...     [[0, 1, 0, 1]], [[0, 0.4, 0, 1]], ["3"], ["8"], image=(2, 2))
    >>> display.axes_[0, 0].get_title()
    '3 → 8'
    """

    def __init__(
        self, *, X: FloatArray, X_adv: FloatArray, image: tuple[int, int], titles: Sequence[str]
    ) -> None:
        self.X = X
        self.X_adv = X_adv
        self.image = image
        self.titles = list(titles)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        image: tuple[int, int],
        threat: Threat | float = 1.0,
        n_images: int = 6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> "AdversarialGridDisplay":
        """Find the nearest examples of the first rows that the model gets right, and draw.

        Parameters
        ----------
        model : object
            Anything that `load_model` reads.
        X, y : array-like
            Rows that are images, and their labels.
        image : (int, int)
            Height and width.
        threat : Threat or number, default=1.0
            What the adversary may do; its size does not limit the search.
        n_images : int, default=6
            How many.
        time_limit : float or None, default=None
            Seconds for each row.
        n_jobs : int or None, default=None
            Number of threads.

        Returns
        -------
        AdversarialGridDisplay
            The drawn display.
        """
        threat = threat_of(threat)
        trees = load_model(model)
        table = trees.rows(X)
        label = np.asarray(y)
        right = np.flatnonzero(trees.predict(table) == label)[:n_images]
        found = minimal_distance(
            model,
            table[right],
            label[right],
            norm=threat.norm,
            threat=threat,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )
        there = np.isfinite(found.upper)
        X_adv = np.asarray(found.X_adv, dtype=np.float64)[there]
        return cls.from_predictions(
            table[right][there], X_adv, label[right][there], trees.predict(X_adv), image=image
        )

    @classmethod
    def from_predictions(
        cls,
        X: npt.ArrayLike,
        X_adv: npt.ArrayLike,
        y: npt.ArrayLike,
        y_adv: npt.ArrayLike,
        *,
        image: tuple[int, int],
    ) -> "AdversarialGridDisplay":
        """Draw examples that are already known.

        Parameters
        ----------
        X, X_adv : array-like of shape (n_images, height * width)
            Images and examples.
        y, y_adv : array-like of shape (n_images,)
            What the model says of both.
        image : (int, int)
            Height and width.

        Returns
        -------
        AdversarialGridDisplay
            The drawn display.
        """
        before, after = (np.asarray(one, dtype=np.float64) for one in (X, X_adv))
        if before.shape[1] != image[0] * image[1]:
            raise ValueError(
                f"image={image} has {image[0] * image[1]} pixels but X has {before.shape[1]} "
                f"columns; give the height and width of one row."
            )
        pairs = zip(np.asarray(y).tolist(), np.asarray(y_adv).tolist(), strict=True)
        titles = [f"{one} → {other}" for one, other in pairs]
        return cls(X=before, X_adv=after, image=image, titles=titles).plot()

    def plot(self) -> "AdversarialGridDisplay":
        """Draw three rows of pictures in a new figure.

        Returns
        -------
        AdversarialGridDisplay
            This display.
        """
        n = len(self.X)
        self.figure_, self.axes_ = _pyplot().subplots(
            3, n, squeeze=False, figsize=(1.3 * n, 4.2), layout="constrained"
        )
        step = self.X_adv - self.X
        largest = max(float(np.abs(step).max(initial=0)), 1e-12)
        low, high = float(self.X.min()), float(self.X.max())
        for k, column in enumerate(self.axes_.T):
            for ax, picture in zip(column[:2], (self.X[k], self.X_adv[k]), strict=True):
                ax.imshow(picture.reshape(self.image), cmap="gray", vmin=low, vmax=high)
            column[2].imshow(
                step[k].reshape(self.image), cmap="PuOr_r", vmin=-largest, vmax=largest
            )
            column[0].set_title(self.titles[k], fontsize=10)
        for ax in self.axes_.ravel():
            ax.set_xticks([])
            ax.set_yticks([])
        for ax, word in zip(self.axes_[:, 0], ("row", "example", "change"), strict=True):
            ax.set_ylabel(word)
        self.ax_ = self.axes_[0, 0]
        return self


class ColumnBudgetDisplay(_Display):
    """The columns on which an adversary spends its changes.

    Parameters
    ----------
    names : list of str
        Columns, the most changed one first.
    share : ndarray of shape (n_columns,)
        Share of the examples that need a change of each.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.

    Examples
    --------
    >>> import hardwood as hw
    >>> display = hw.ColumnBudgetDisplay.from_predictions(
    ...     [[1.0, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.5, 5.0]], names=["income", "age"])
    >>> display.names, display.share.tolist()
    (['income', 'age'], [1.0, 0.5])
    """

    def __init__(self, *, names: list[str], share: FloatArray) -> None:
        self.names = names
        self.share = share

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        threat: Threat | float,
        *,
        ax: Any = None,
        n_columns: int = 12,
        **kwargs: Any,
    ) -> "ColumnBudgetDisplay":
        """Audit a model and draw which columns its nearest examples need.

        Parameters
        ----------
        model : object
            Anything that `load_model` reads.
        X, y : array-like
            Rows and their true labels.
        threat : Threat or number
            What the adversary may do.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        n_columns : int, default=12
            How many columns to show.
        **kwargs : dict
            Passed to matplotlib's ``barh``.

        Returns
        -------
        ColumnBudgetDisplay
            The drawn display.
        """
        spent = audit(model, X, y, threat, n_fragile=0).content["spent"]
        names = [one["column"] for one in spent["columns"]]
        share = np.array([one["rows"] / spent["rows"] for one in spent["columns"]])
        return cls(names=names, share=share).plot(ax=ax, n_columns=n_columns, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        X: npt.ArrayLike,
        X_adv: npt.ArrayLike,
        *,
        names: Sequence[str] | None = None,
        ax: Any = None,
        n_columns: int = 12,
        **kwargs: Any,
    ) -> "ColumnBudgetDisplay":
        """Draw which columns differ between rows and examples.

        Parameters
        ----------
        X, X_adv : array-like of shape (n_samples, n_features)
            Rows and examples; rows of NaN are no examples.
        names : sequence of str or None, default=None
            The columns' names.
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        n_columns : int, default=12
            How many columns to show.
        **kwargs : dict
            Passed to matplotlib's ``barh``.

        Returns
        -------
        ColumnBudgetDisplay
            The drawn display.
        """
        before, after = (np.asarray(one, dtype=np.float64) for one in (X, X_adv))
        there = ~np.isnan(after).all(axis=1)
        share = np.mean(before[there] != after[there], axis=0)
        order = np.argsort(-share, kind="stable")
        called = list(names) if names is not None else [f"x{f}" for f in range(before.shape[1])]
        display = cls(names=[called[f] for f in order], share=share[order])
        return display.plot(ax=ax, n_columns=n_columns, **kwargs)

    def plot(self, ax: Any = None, *, n_columns: int = 12, **kwargs: Any) -> "ColumnBudgetDisplay":
        """Draw one bar a column.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None means a new figure.
        n_columns : int, default=12
            How many columns to show.
        **kwargs : dict
            Passed to matplotlib's ``barh``.

        Returns
        -------
        ColumnBudgetDisplay
            This display.
        """
        shown = min(n_columns, len(self.names))
        ax = self._begin(ax, (6.4, 0.8 + 0.32 * max(shown, 1)))
        place = np.arange(shown)
        ax.barh(place, self.share[:shown], **{"color": _TURNED, **kwargs})
        ax.set_yticks(place, self.names[:shown])
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of the nearest examples that change this column")
        return self
