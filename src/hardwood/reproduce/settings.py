"""What is to be measured: the configuration files, read into cells."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

TABLES = ("table2", "table3", "trees", "forest", "accuracy")
FIGURES = ("toy", "boundaries", "trees-figure", "depth", "images")


@dataclass(frozen=True)
class Cell:
    """One model of one table: measured in one go, kept in one result file."""

    table: str
    name: str  # of the data set
    training: str  # "natural", or how a robust model is trained
    settings: dict[str, Any]  # everything that makes the answer
    minutes: float = 0.0  # that it takes on two cores, about

    @property
    def file(self) -> str:
        """The name of its result file, below the output directory."""
        return f"{self.table}/{self.name}-{self.training}.json"


@dataclass(frozen=True)
class PaperTable:
    """One table: its cells, and the paper's numbers beside them."""

    key: str
    title: str
    kind: str
    sets: list[dict[str, Any]]  # with the paper's numbers
    cells: list[Cell]


def read_table(key: str, quick: bool = False) -> PaperTable:
    """Read a table's configuration; `quick` takes small slices of everything."""
    content = _read(key)
    common = {k: v for k, v in content.items() if k not in ("title", "set", "quick", "trainings")}
    changes = content["quick"] if quick else {}
    cells = []
    for one in content["set"]:
        for training in content["trainings"]:
            settings = {**common, **_for_training(one, training)}
            trees = settings.get("trees")
            settings |= changes
            if quick and "trees" in one and key != "trees":
                settings["trees"] = min(trees, changes["trees"])
            minutes = 0.0 if quick else one["minutes"] / len(content["trainings"])
            cells.append(Cell(key, one["name"], training, settings, minutes))
    return PaperTable(key, content["title"], content["kind"], content["set"], cells)


def read_figure(key: str, quick: bool = False) -> dict[str, Any]:
    """Read a figure's configuration."""
    content = dict(_read("figures")[key.removesuffix("-figure")])
    changes = content.pop("quick", {})
    return {**content, **(changes if quick else {})}


_NOT_SETTINGS = ("name", "minutes", "robust", "natural", "published", "certified")


def _for_training(one: dict[str, Any], training: str) -> dict[str, Any]:
    """The settings of a set for one way of training, which pairs tell apart."""
    natural = training == "natural"
    settings = {k: v for k, v in one.items() if k not in _NOT_SETTINGS}
    settings["target_eps"] = one["eps"]  # what is defended against, however one trains
    settings["eps"] = 0.0 if natural else one["eps"]
    for pair in ("depth", "learning_rate"):
        if pair in one:
            settings[pair] = one[pair][natural]
    # What only one way of training knows.
    settings |= one.get(training, {}) if training == "certified" else {}
    # The norms that the paper gives; all where it gives none.
    paper = one.get("natural" if natural else "robust", {})
    settings["l1_l2"] = "l1" in paper
    return settings


def _read(key: str) -> dict[str, Any]:
    path = resources.files("hardwood.reproduce") / "settings" / f"{key}.toml"
    return tomllib.loads(path.read_text())
