"""`hardwood demo`: natural and robust models side by side, and the audit of a boosted one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import hardwood as hw
from hardwood.report.plots import new_figure, plot_boundaries

CERTIFIED_AT = (0.02, 0.05, 0.1, 0.15)
DRAWN_AT = (0.0, 0.02, 0.05, 0.1)
TWO_FEATURES = ["worst concave points", "worst area"]
MAX_DEPTH = 5
AUDITED_AT = 0.05


@dataclass(frozen=True)
class TrainTest:
    """Rows to train on and rows to test on, scaled to [0, 1] by the former."""

    name: str
    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any

    @classmethod
    def of(cls, name: str, X: Any, y: Any, seed: int) -> "TrainTest":
        """Hold out three rows in ten, with the same shares of classes."""
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import MinMaxScaler

        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        scaler = MinMaxScaler(clip=True).fit(X_train)
        return cls(name, scaler.transform(X_train), scaler.transform(X_test), y_train, y_test)

    def tree(self, eps: float) -> "hw.RobustDecisionTreeClassifier":
        """Train the tree of the demo."""
        model = hw.RobustDecisionTreeClassifier(eps=eps, max_depth=MAX_DEPTH)
        return model.fit(self.X_train, self.y_train)


def demo(
    out: Annotated[Path, typer.Option(help="Directory for picture and page.")] = Path(
        "hardwood-demo"
    ),
    eps: Annotated[float, typer.Option(min=0, help="What the robust tree is trained for.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the train/test split.")] = 0,
) -> None:
    """Train natural and robust models, attack and certify them, and audit a boosted one.

    The data are the breast-cancer rows that come with scikit-learn. Writes a picture of decision
    boundaries and the page of the audit.

    \b
    Examples:
      hardwood demo
    """  # noqa: D301
    cancer, planes = _samples(seed)
    out.mkdir(parents=True, exist_ok=True)
    picture, page = out / "boundaries.png", out / "audit.html"
    console = Console(highlight=False)
    console.print(
        f"Breast cancer: {len(cancer.X_train)} rows to train on, {len(cancer.X_test)} to test on, "
        f"{cancer.X_train.shape[1]} features scaled to [0, 1]; trees of depth {MAX_DEPTH}."
    )
    with Progress(
        TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), console=console
    ) as progress:
        task = progress.add_task("", total=2 * (2 + len(CERTIFIED_AT)) + len(planes) + 2)

        def step(what: str) -> None:
            progress.update(task, description=what, advance=1)

        natural = _measured("natural tree", cancer, 0.0, step)
        robust = _measured("robust tree", cancer, eps, step)
        _draw(planes, picture, step)
        report = _audited(cancer, step)
        progress.update(task, description="done")
    console.print(_table(natural, robust, eps))
    console.print(
        "Both are exact. Distance: the smallest eps at which some change of up to eps in every "
        "feature changes the label, over the correctly classified rows. Certified: the share of "
        "rows whose label is correct and stays so under every such change.\n"
    )
    console.print("A boosted model and its robust twin, audited:")
    console.print(report.summary() + "\n", soft_wrap=True)
    report.to_html(page)
    console.print(f"Decision boundaries: {picture}", soft_wrap=True)
    console.print(f"Audit, open it in a browser: {page}", soft_wrap=True)


def _samples(seed: int) -> tuple[TrainTest, list[TrainTest]]:
    from sklearn.datasets import load_breast_cancer, make_circles, make_moons

    cancer = load_breast_cancer()
    pair = cancer.data[:, [list(cancer.feature_names).index(name) for name in TWO_FEATURES]]
    moons, which_moon = make_moons(400, noise=0.25, random_state=seed)
    circles, which_circle = make_circles(400, noise=0.12, factor=0.4, random_state=seed)
    planes = [
        TrainTest.of("breast cancer:\n{1} by {0}".format(*TWO_FEATURES), pair, cancer.target, seed),
        TrainTest.of("two moons", moons, which_moon, seed),
        TrainTest.of("two circles", circles, which_circle, seed),
    ]
    return TrainTest.of("breast cancer", cancer.data, cancer.target, seed), planes


def _measured(
    name: str, sample: TrainTest, eps: float, step: Callable[[str], None]
) -> dict[str, float]:
    """Every number of one column of the table, by its row's name."""
    step(f"{name}: training")
    model = sample.tree(eps)
    X, y = sample.X_test, sample.y_test
    facts = {"accuracy": float(model.score(X, y))}
    step(f"{name}: nearest examples")
    found = hw.minimal_distance(model, X, y)
    facts["mean distance"] = float(np.mean(found.upper[found.status == "exact"]))
    for size in CERTIFIED_AT:
        step(f"{name}: certifying eps {size:g}")
        threat = hw.Threat(size, low=0, high=1)
        facts[f"certified, eps {size:g}"] = hw.certify(model, X, y, threat).certified_accuracy
    return facts


def _audited(sample: TrainTest, step: Callable[[str], None]) -> "hw.Audit":
    """A boosted model as people have it, and its twin for the same columns."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier

    step("boosted models: training")
    names = load_breast_cancer().feature_names
    X_train, X_test = (pd.DataFrame(X, columns=names) for X in (sample.X_train, sample.X_test))
    y_train, y_test = (
        np.where(y == 1, "benign", "malignant") for y in (sample.y_train, sample.y_test)
    )
    model = GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0)
    model.fit(X_train, y_train)
    threat = hw.Threat(AUDITED_AT, low=0, high=1)
    twin = hw.harden(model, X_train, y_train, threat)
    step("boosted models: audit")
    return hw.audit(model, X_test, y_test, threat, twin=twin)


def _table(natural: dict[str, float], robust: dict[str, float], eps: float) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("on the test rows")
    table.add_column("natural tree", justify="right")
    table.add_column(f"robust tree, eps {eps:g}", justify="right")
    for fact, value in natural.items():
        other = robust[fact]
        cells = [f"{value:.3f}", f"{other:.3f}"]
        if value != other:
            better = int(other > value)
            cells[better] = f"[bold green]{cells[better]}[/]"
        table.add_row(fact, *cells, end_section=fact == "mean distance")
    return table


def _draw(planes: list[TrainTest], picture: Path, step: Callable[[str], None]) -> None:
    figure = new_figure(2.5 * len(DRAWN_AT), 2.75 * len(planes))
    grid = figure.subplots(len(planes), len(DRAWN_AT), squeeze=False)
    for axes, plane in zip(grid, planes, strict=True):
        step("drawing " + plane.name.split(":")[0])
        models = {f"robust, eps {e:g}" if e else "natural": plane.tree(e) for e in DRAWN_AT}
        plot_boundaries(
            models,
            plane.X_train,
            plane.y_train,
            X_test=plane.X_test,
            y_test=plane.y_test,
            axes=axes,
        )
        axes[0].set_ylabel(plane.name)
    figure.savefig(picture, dpi=150)
