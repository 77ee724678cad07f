"""The paper's figures, drawn from models trained here and from result files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hardwood as hw
from hardwood.report.plots import new_figure, plot_boundaries
from hardwood.reproduce.cells import Say, known, run, train
from hardwood.reproduce.settings import Cell, read_figure, read_table

NATURAL, ROBUST = "tab:orange", "tab:purple"

# Ten points of which a split on the second feature gets eight right, all of them within the ball;
# a split on the first gets seven right, none of them within it.
TOY_EPS = 0.1
TOY_X = np.array(
    [
        [0.10, 0.42],
        [0.20, 0.45],
        [0.30, 0.47],
        [0.15, 0.44],
        [0.80, 0.59],
        [0.70, 0.56],
        [0.80, 0.53],
        [0.90, 0.58],
        [0.20, 0.55],
        [0.25, 0.41],
    ]
)
TOY_Y = np.array([0] * 5 + [1] * 5)


def draw(key: str, out: Path, quick: bool, say: Say) -> Path:
    """Draw one figure; gives the file."""
    figure = _DRAW[key](read_figure(key, quick), out, quick, say)
    path = out / "figures" / f"{key}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    say(str(path.relative_to(out)))
    return path


def toy_numbers() -> dict[str, tuple[float, float]]:
    """Accuracy and certified accuracy of the natural and of the robust split."""
    numbers = {}
    for name, eps in (("natural", 0.0), ("robust", TOY_EPS)):
        stump = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=1).fit(TOY_X, TOY_Y)
        certificate = hw.certify(stump, TOY_X, TOY_Y, hw.Threat(TOY_EPS))
        numbers[name] = (float(stump.score(TOY_X, TOY_Y)), certificate.certified_accuracy)
    return numbers


def _toy(settings: dict[str, Any], out: Path, quick: bool, say: Say) -> Any:
    figure = new_figure(11, 3.2)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (name, (clean, certified)), eps in zip(
        axes, toy_numbers().items(), (0.0, TOY_EPS), strict=True
    ):
        trees = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=1).fit(TOY_X, TOY_Y).trees_
        line = ax.axvline if trees.feature[0] == 0 else ax.axhline
        line(trees.threshold[0], color="0.2", lw=1.5, ls="--")
        for label, color in enumerate(("tab:blue", "tab:red")):
            points = TOY_X[label == TOY_Y]
            ax.scatter(*points.T, s=45, color=color, label=f"class {label}", zorder=3)
            for x in points:
                ax.add_patch(_square(x, TOY_EPS, color))
        ax.set_title(f"{name} split: accuracy {clean:.1f}, attacked {certified:.1f}")
        ax.set_xlabel("first feature")
        ax.set_aspect("equal")
        ax.set_xlim(-0.05, 1.05)
        ax.set_ylim(0.25, 0.75)
    axes[0].set_ylabel("second feature")
    axes[0].legend(loc="upper left", fontsize=8)
    return figure


def _square(center: Any, radius: float, color: str) -> Any:
    """The ball around a point."""
    from matplotlib.patches import Rectangle

    corner = tuple(center - radius)
    return Rectangle(
        corner, 2 * radius, 2 * radius, facecolor=color, edgecolor=color, alpha=0.18, lw=1
    )


def _boundaries(settings: dict[str, Any], out: Path, quick: bool, say: Say) -> Any:
    from sklearn.datasets import make_circles, make_classification, make_moons
    from sklearn.preprocessing import minmax_scale

    n_rows, radii = settings["rows"], settings["eps"]
    kinds = {
        "moons": make_moons(2 * n_rows, noise=0.2, random_state=0),
        "circles": make_circles(2 * n_rows, noise=0.12, factor=0.5, random_state=0),
        "linear": make_classification(
            2 * n_rows, 2, n_redundant=0, n_clusters_per_class=1, class_sep=0.9, random_state=3
        ),
    }
    figure = new_figure(3.1 * len(radii), 3.2 * len(kinds))
    axes = figure.subplots(len(kinds), len(radii))
    for line, (kind, (X, y)) in zip(axes, kinds.items(), strict=True):
        X = minmax_scale(X)
        trees = {
            ("natural" if eps == 0 else f"eps {eps:g}"): hw.RobustDecisionTreeClassifier(
                eps=eps, max_depth=settings["depth"]
            ).fit(X[:n_rows], y[:n_rows])
            for eps in radii
        }
        rows = {"X_test": X[n_rows:], "y_test": y[n_rows:]}
        plot_boundaries(trees, X[:n_rows], y[:n_rows], **rows, axes=line)
        line[0].set_ylabel(kind)
    return figure


def _over_trees(settings: dict[str, Any], out: Path, quick: bool, say: Say) -> Any:
    figure = new_figure(5 * len(settings["sets"]), 4)
    axes = figure.subplots(1, len(settings["sets"]), squeeze=False)[0]
    for ax, name in zip(axes, settings["sets"], strict=True):
        for cell in read_table("trees", quick).cells:
            if cell.name == name:
                rows = (known(cell, out) or run(cell, out, say))["answer"]["rows"]
                natural = cell.training == "natural"
                _circles(ax, rows, NATURAL if natural else ROBUST, cell.training)
        ax.set_title(name)
        _label(ax)
    return figure


def _depth(settings: dict[str, Any], out: Path, quick: bool, say: Say) -> Any:
    figure = new_figure(3.3 * len(settings["depths"]), 3.6)
    axes = figure.subplots(1, len(settings["depths"]), sharex=True, sharey=True, squeeze=False)[0]
    cells = [cell for cell in read_table("trees", quick).cells if cell.name == settings["set"]]
    for ax, depth in zip(axes, settings["depths"], strict=True):
        for cell in cells:
            kept = {
                k: v for k, v in settings.items() if k not in ("title", "minutes", "set", "depths")
            }
            changed = {**cell.settings, **kept, "depth": depth}
            one = Cell(f"depth-{depth}", cell.name, cell.training, changed)
            rows = run(one, out, say)["answer"]["rows"]
            color = NATURAL if cell.training == "natural" else ROBUST
            _circles(ax, rows, color, cell.training)
        ax.set_title(f"depth {depth}")
        _label(ax)
    return figure


def _circles(ax: Any, rows: list[dict[str, Any]], color: str, training: str) -> None:
    """One circle for each number of trees, larger for more."""
    x = [row["accuracy"] for row in rows]
    y = [row["inf"]["upper"] or np.nan for row in rows]
    size = 15 + 140 * np.array([row["trees"] for row in rows]) / max(r["trees"] for r in rows)
    label = "natural" if training == "natural" else "robust"
    ax.plot(x, y, color=color, lw=0.8, alpha=0.5)
    ax.scatter(x, y, s=size, color=color, alpha=0.6, label=label)
    for row, at_x, at_y in ((rows[0], x[0], y[0]), (rows[-1], x[-1], y[-1])):
        ax.annotate(
            f"{row['trees']} trees",
            (at_x, at_y),
            fontsize=7,
            xytext=(4, 6),
            textcoords="offset points",
        )


def _label(ax: Any) -> None:
    ax.set_xlabel("test accuracy")
    ax.set_ylabel("mean exact l_inf distance")
    ax.set_ylim(0, 1.15 * ax.get_ylim()[1])  # room for the last label
    ax.margins(x=0.15)
    ax.legend(loc="best", fontsize=8)


def _images(settings: dict[str, Any], out: Path, quick: bool, say: Say) -> Any:
    sets, n_rows = settings["sets"], settings["rows"]
    figure = new_figure(1.75 * 3 * len(sets), 2.05 * n_rows)
    axes = figure.subplots(n_rows, 3 * len(sets))
    for at_set, name in enumerate(sets):
        data = hw.datasets.load(name)
        names = _CLASSES.get(name, [str(c) for c in range(data.n_classes)])
        models = {}
        for cell in read_table("table3", quick).cells:
            if cell.name == name:
                changes = {k: v for k, v in settings.items() if k in ("trees", "train_rows")}
                cell = Cell("images", name, cell.training, {**cell.settings, **changes})
                models[cell.training], _ = train(cell, data)
        labels = [model.predict(data.X_test) for model in models.values()]
        right = np.flatnonzero(np.all([label == data.y_test for label in labels], axis=0))
        rows = right[np.linspace(0, len(right) - 1, n_rows).astype(int)]
        for at, row in enumerate(rows):
            x, y = data.X_test[row : row + 1], data.y_test[row : row + 1]
            line = axes[at, 3 * at_set : 3 * at_set + 3]
            _show(line[0], x, f"predicted {names[y[0]]}")
            for ax, (training, model) in zip(line[1:], models.items(), strict=True):
                found = hw.minimal_distance(model, x, y, time_limit=settings["seconds_a_row"])
                kind = "natural" if training == "natural" else "robust"
                fooled = names[int(model.predict(found.X_adv)[0])]
                _show(ax, found.X_adv, f"{kind}: {found.upper[0]:.3f}\npredicted {fooled}")
        say(f"images: {name}")
    return figure


def _show(ax: Any, x: Any, title: str) -> None:
    ax.imshow(x.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(title, fontsize=8)
    ax.set_axis_off()


_CLASSES = {
    "fashion_mnist": [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]
}

_DRAW: dict[str, Callable[[dict[str, Any], Path, bool, Say], Any]] = {
    "toy": _toy,
    "boundaries": _boundaries,
    "trees-figure": _over_trees,
    "depth": _depth,
    "images": _images,
}
