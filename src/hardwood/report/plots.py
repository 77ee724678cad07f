"""Pictures of models, drawn with matplotlib; nothing here touches pyplot's current figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardwood import _check
from hardwood._check import FloatArray
from hardwood.model.load import load_model
from hardwood.model.text import split_words
from hardwood.model.trees import LEAF, Trees, refuse_categories

# Hues that stay apart for colour-blind readers.
_HUES = ("#3b76af", "#e08214", "#1b9e77", "#a6559d", "#b8860b", "#5ab4ac", "#c0504d", "#7f7f7f")
_FONT_SIZE = 9.0
_INCHES_PER_LETTER = 0.08  # of that font, on average


def new_figure(width: float, height: float) -> Any:
    """Make a matplotlib Figure of so many inches that no window or global state knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            'report needs matplotlib. Install it with: pip install "hardwood[report]"'
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def plot_tree(
    model: Any, *, tree: int = 0, ax: Any = None, max_depth: int | None = None, precision: int = 2
) -> Any:
    """Draw one tree, the root on top; rows that fulfil a condition go to the left.

    Boxes are coloured by the class with the largest share, the stronger the purer the node. The
    side of missing values is not shown; ``export_text`` says it.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads.
    tree : int, default=0
        Which of its trees.
    ax : matplotlib Axes or None, default=None
        Where to draw; None means a new figure, which is the answer's ``figure``.
    max_depth : int or None, default=None
        Deepest level shown; what lies below is drawn as "...".
    precision : int, default=2
        Digits of thresholds and values.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    trees = load_model(model)
    if not 0 <= tree < trees.n_trees:
        raise ValueError(f"tree must be 0 to {trees.n_trees - 1}, got tree={tree}.")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be None or >= 0, got max_depth={max_depth}.")
    nodes = _laid_out(trees, tree, max_depth, precision)
    columns = 1 + max(node.x for node in nodes)
    levels = 1 + max(node.depth for node in nodes)
    inches = columns * (_INCHES_PER_LETTER * max(node.letters for node in nodes) + 0.25)
    if ax is None:
        ax = new_figure(max(4.0, inches), max(2.0, 0.95 * levels)).subplots()
    frame = ax.get_position()
    size = min(_FONT_SIZE, _FONT_SIZE * ax.figure.get_figwidth() * frame.width / inches)

    ax.set_axis_off()
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(0.5 - levels, 0.5)
    for node in nodes:
        for child in node.children:
            ax.plot([node.x, child.x], [-node.depth, -child.depth], color="0.6", lw=1, zorder=1)
        box = {"boxstyle": "round,pad=0.35", "facecolor": node.colour, "edgecolor": "0.4"}
        ax.text(
            node.x,
            -node.depth,
            node.text,
            ha="center",
            va="center",
            fontsize=size,
            bbox=box if node.text != "..." else None,
        )
    for child, word, side in zip(nodes[0].children, ("yes", "no"), ("right", "left"), strict=False):
        middle = (nodes[0].x + child.x) / 2
        ax.text(middle, -0.45, f"{word:^5}", ha=side, va="bottom", fontsize=size, color="0.3")
    return ax


def plot_importance(
    importance: FloatArray, names: Sequence[str], *, ax: Any = None, most: int = 20
) -> Any:
    """Draw the shares of the gain that features brought, the largest on top.

    Parameters
    ----------
    importance : ndarray of shape (n_features,)
        Shares.
    names : sequence of str
        What the features are called.
    ax : matplotlib Axes or None, default=None
        Where to draw; None means a new figure, which is the answer's ``figure``.
    most : int, default=20
        How many features are shown.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    shown = np.argsort(-importance, kind="stable")[:most][::-1]
    shown = shown[importance[shown] > 0]
    if ax is None:
        ax = new_figure(6.0, 1.0 + 0.28 * max(len(shown), 1)).subplots()
    ax.barh([names[feature] for feature in shown], importance[shown], color=_HUES[0])
    ax.set_xlabel("share of the robust gain")
    return ax


def plot_comparison(
    names: Sequence[str],
    multiples: FloatArray,
    proven: Sequence[FloatArray],
    found: Sequence[FloatArray],
    *,
    ax: Any = None,
) -> Any:
    """Draw certified accuracy over the size of the adversary, a line a model.

    Parameters
    ----------
    names : sequence of str
        What the models are called.
    multiples : ndarray of shape (n_sizes,)
        Sizes of the adversary, in multiples of the threat.
    proven, found : sequence of ndarray of shape (n_sizes,)
        Certified and attacked accuracy of each model; between them nothing is known.
    ax : matplotlib Axes or None, default=None
        Where to draw; None means a new figure, which is the answer's ``figure``.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    if ax is None:
        ax = new_figure(6.0, 4.0).subplots()
    for at, name in enumerate(names):
        hue = _HUES[at % len(_HUES)]
        ax.plot(multiples, proven[at], marker="o", color=hue, label=name)
        ax.fill_between(multiples, proven[at], found[at], color=hue, alpha=0.2, lw=0)
    ax.axvline(1.0, color="0.6", lw=1, ls=":")
    ax.set_xlabel("size of the adversary, in multiples of the threat")
    ax.set_ylabel("certified accuracy")
    ax.set_ylim(0, 1)
    ax.legend()
    return ax


def plot_boundaries(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    axes: Any = None,
) -> Any:
    """Draw the decision boundaries of models of two features side by side.

    The plane is cut at all thresholds of a model and every cell asked once, so the boundaries are
    exact and not a sampled grid.

    Parameters
    ----------
    models : mapping from str to object
        A title and anything that `load_model` reads, each.
    X : array-like of shape (n_samples, 2)
        Rows to draw.
    y : array-like of shape (n_samples,)
        Their labels.
    X_test : array-like of shape (n_test, 2) or None, default=None
        Rows for the accuracy in the titles; None means `X`.
    y_test : array-like of shape (n_test,) or None, default=None
        Their labels.
    axes : sequence of matplotlib Axes or None, default=None
        Where to draw, one per model; None means a new figure, which is the ``figure`` of each.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes drawn on.
    """
    loaded = {title: load_model(model) for title, model in models.items()}
    for trees in loaded.values():
        refuse_categories(trees, "plot_boundaries")
    for title, trees in loaded.items():
        if trees.n_features != 2:
            raise ValueError(
                f"plot_boundaries draws models of 2 features, but {title!r} has "
                f"{trees.n_features}; train on two columns."
            )
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together; pass both or neither.")
    if axes is None:
        axes = new_figure(2.6 * len(loaded), 3.0).subplots(1, len(loaded), squeeze=False)[0]
    axes = np.atleast_1d(axes)
    if len(axes) != len(loaded):
        raise ValueError(f"axes has {len(axes)} entries but there are {len(loaded)} models.")

    for ax, (title, trees) in zip(axes, loaded.items(), strict=True):
        rows = _check.rows(X, 2, trees.feature_names)
        label = _check.labels(y, trees.classes, trees.n_classes, len(rows))
        margin = 0.05 * np.maximum(np.ptp(rows, axis=0), 1e-9)
        low, high = rows.min(axis=0) - margin, rows.max(axis=0) + margin
        draw_regions(ax, trees, low, high)
        for position in range(trees.n_classes):
            own = rows[label == position]
            ax.scatter(*own.T, s=9, color=hue(position, 1), edgecolor="white", lw=0.3)
        asked, truth = (X, y) if X_test is None else (X_test, y_test)
        accuracy = np.mean(trees.predict(asked) == np.asarray(truth))
        ax.set_title(f"{title}\n{'accuracy' if X_test is None else 'test accuracy'} {accuracy:.3f}")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.set_xticks([])
        ax.set_yticks([])
    return axes


def hue(position: int, strength: float) -> tuple[float, ...]:
    """The colour of a class, from white (strength 0) to full (1)."""
    code = _HUES[position % len(_HUES)]
    return tuple(1 - strength * (1 - int(code[i : i + 2], 16) / 255) for i in (1, 3, 5))


@dataclass(eq=False)
class _Node:
    """A box of the picture: a column and a level, counted from the left and from the root."""

    text: str
    depth: int
    colour: tuple[float, ...] = (1.0, 1.0, 1.0)
    x: float = 0.0
    children: list["_Node"] = field(default_factory=list)

    @property
    def letters(self) -> int:
        return max(len(line) for line in self.text.split("\n"))


def _laid_out(trees: Trees, tree: int, max_depth: int | None, precision: int) -> list[_Node]:
    """The nodes to draw, the root first: ends evenly spaced, parents over their children."""
    start = int(trees.tree_start[tree])
    root = _node(trees, start, 0, precision)
    drawn: list[_Node] = []
    open_nodes = [(start, root)]  # an explicit stack: trees can be deeper than Python's recursion
    n_ends = 0
    while open_nodes:
        at, node = open_nodes.pop()
        drawn.append(node)
        if at < 0 or trees.feature[at] == LEAF:
            node.x = n_ends
            n_ends += 1
        elif max_depth is not None and node.depth == max_depth:
            node.children = [_Node("...", node.depth + 1)]
            open_nodes.append((-1, node.children[0]))
        else:
            below = [start + int(trees.left[at]), start + int(trees.right[at])]
            node.children = [_node(trees, child, node.depth + 1, precision) for child in below]
            open_nodes += reversed(list(zip(below, node.children, strict=True)))
    for node in reversed(drawn):  # children come after their parents
        if node.children:
            node.x = sum(child.x for child in node.children) / len(node.children)
    return drawn


def _node(trees: Trees, at: int, depth: int, precision: int) -> _Node:
    value = trees.value[at]
    lines = []
    if trees.feature[at] != LEAF:
        left, _ = split_words(trees, at, precision, "feature ")
        lines.append(left.replace(" <  ", " < "))
    if trees.cover is not None:
        lines.append(f"weight {trees.cover[at]:g}")
    if trees.link != "share":  # only leaves have values that mean something
        if trees.feature[at] == LEAF:
            lines.append("value " + ", ".join(f"{v:.{precision}f}" for v in value))
        return _Node("\n".join(lines), depth)
    largest = int(np.argmax(value))
    share = float(value[largest] / value.sum())
    label = largest if trees.classes is None else trees.classes[largest]
    lines.append(f"class {label}: {share:.{precision}f}")
    even = 1 / len(value)
    return _Node("\n".join(lines), depth, hue(largest, 0.75 * (share - even) / (1 - even)))


def draw_regions(ax: Any, trees: Trees, low: FloatArray, high: FloatArray) -> None:
    """Colour the plane between two corners by what the model says, cell by cell."""
    edges = [_cuts(trees, feature, low[feature], high[feature]) for feature in (0, 1)]
    centres = np.meshgrid(*((cuts[1:] + cuts[:-1]) / 2 for cuts in edges))
    position = trees.predict_class(np.column_stack([axis.ravel() for axis in centres]))
    colours = np.array([hue(k, 0.3) for k in range(trees.n_classes)])
    ax.pcolormesh(*edges, colours[position].reshape(*centres[0].shape, 3))


def _cuts(trees: Trees, feature: int, low: float, high: float) -> FloatArray:
    cuts = trees.threshold[trees.feature == feature].astype(np.float64)
    inside = cuts[(low < cuts) & (cuts < high)]
    return np.unique(np.concatenate([[low], inside, [high]]))
