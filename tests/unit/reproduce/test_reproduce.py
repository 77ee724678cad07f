"""The reproduction at small scale: what is measured, kept, resumed and written."""

import json

import numpy as np
import pytest

import hardwood as hw
from hardwood.cli.reproduce import cost
from hardwood.datasets import Dataset
from hardwood.reproduce import cells, figures, tables
from hardwood.reproduce.settings import FIGURES, TABLES, Cell, PaperTable, read_figure, read_table


@pytest.fixture
def small(monkeypatch):
    """A data set of two features, under the name of one of the paper's."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 2)).astype(np.float32)
    y = (X[:, 0] > 0.5).astype(np.int32)
    data = Dataset("diabetes", X[:300], y[:300], X[300:], y[300:], "made here")
    monkeypatch.setattr(hw.datasets, "load", lambda name: data)
    return data


def one_table(key, **changes):
    """The diabetes row of a table, with small settings."""
    table = read_table(key, quick=True)
    rows = [one for one in table.sets if one["name"] == "diabetes"]
    chosen = [
        Cell(key, c.name, c.training, {**c.settings, "cheng_rows": 2, "exact_rows": 5, **changes})
        for c in table.cells
        if c.name == "diabetes"
    ]
    return PaperTable(key, table.title, table.kind, rows, chosen)


def run(table, out):
    said = []
    results = [cells.run(cell, out, said.append) for cell in table.cells]
    return results, said


def test_the_ten_points_of_the_paper():
    assert figures.toy_numbers() == {"natural": (0.8, 0.0), "robust": (0.7, 0.7)}


def test_every_configuration_can_be_read_and_is_the_paper_s():
    for key in TABLES:
        for quick in (False, True):
            table = read_table(key, quick)
            assert table.cells
            assert {c.name for c in table.cells} <= set(hw.datasets.names())
    for key in FIGURES:
        assert read_figure(key, quick=True)["title"]
    [robust] = [c for c in read_table("table3").cells if c.file == "table3/ijcnn1-paper.json"]
    assert robust.settings["eps"] == robust.settings["target_eps"] == 0.1
    assert (robust.settings["trees"], robust.settings["depth"]) == (60, 8)
    [natural] = [
        c for c in read_table("table3").cells if c.file == "table3/mnist_2_vs_6-natural.json"
    ]
    assert natural.settings["eps"] == 0
    assert (natural.settings["depth"], natural.settings["learning_rate"]) == (4, 0.02)


@pytest.mark.parametrize("key", ["table2", "table3", "forest", "trees", "accuracy"])
def test_a_table_is_measured_once_and_written_beside_the_paper_s(key, small, tmp_path):
    table = one_table(key, **({"trees": [1, 2]} if key == "trees" else {}))
    results, said = run(table, tmp_path)
    assert all(" s" in line for line in said)
    again, said = run(table, tmp_path)
    assert again == json.loads(json.dumps(results))
    assert all(line.endswith(": kept") for line in said)
    text = tables.page(table, tmp_path)
    assert text.startswith(f"## {table.title}")
    assert "diabetes" in text
    assert {"accuracy": ".766 / .695", "trees": "\n| 2 | "}.get(key, "paper .") in text
    if key == "accuracy":
        assert " ± ." in text
        assert "Five folds of the training rows" in text
    for result in results:
        assert set(result) >= {"settings", "seed", "versions", "seconds", "answer", "data", "date"}


def test_other_settings_are_measured_anew(small, tmp_path):
    [cell, *_] = one_table("accuracy").cells
    cells.run(cell, tmp_path, print)
    other = Cell(cell.table, cell.name, cell.training, {**cell.settings, "depth": 2})
    assert cells.known(cell, tmp_path) is not None
    assert cells.known(other, tmp_path) is None


def test_the_attacks_lie_at_or_above_the_exact_distance(small, tmp_path):
    results, _ = run(one_table("table2", cheng_rows=20, exact_rows=20), tmp_path)
    for answer in (result["answer"] for result in results):
        for attack in ("cheng", "papernot"):
            assert answer[attack]["n"] > 0
            assert answer[attack]["exact"] <= answer[attack]["mean"]


def test_marks_and_words_of_a_cell():
    open_rows = {"inf": {"n": 5, "settled": 3, "lower": 0.1, "upper": 0.2}}
    assert tables._beside("inf", open_rows, 0.1) == (
        ".200 (at least .100; 2 rows open) (paper .100: better)"
    )
    assert tables._beside("accuracy", {"accuracy": 0.95}, 0.955) == ".950 (paper .955: same)"
    attack = {"n": 5, "mean": 0.1, "exact": 0.09, "error": None}  # better when it comes closer
    assert tables._beside("cheng", {"cheng": attack}, 0.2) == ".100 (paper .200: better)"
    assert tables._beside("cheng", {"cheng": attack}, 0.05) == ".100 (paper .050: worse)"
    assert tables._beside_attack(open_rows["inf"], 0.3).endswith("open) (paper's attack .300)")
    never = {"inf": {"n": 5, "settled": 5, "lower": None, "upper": None}}
    assert tables._beside("inf", never, 0.3) == "never fooled"
    assert tables._beside("l1", never, None) == ""


def test_the_cost_is_said_beforehand(tmp_path):
    whole = cost(["table2", "toy"], tmp_path, None)
    assert "12 models to measure and 1 figures to draw" in whole
    assert "about 1 minutes on two cores" in whole
    assert "hours" in cost([*TABLES, *FIGURES], tmp_path, None)
    assert cost(["table3"], tmp_path, ["ionosphere"]).startswith("0 models to measure")
