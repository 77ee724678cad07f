"""The committed tables of the reproduction say what their result files say."""

import json
from pathlib import Path

import pytest

from hardwood.reproduce import tables
from hardwood.reproduce.settings import TABLES, read_table

RESULTS = Path(__file__).parents[2] / "reproduction"
MADE = [key for key in TABLES if (RESULTS / f"{key}.md").exists()]


@pytest.mark.parametrize("key", MADE)
def test_pages_are_made_from_their_results(key):
    assert tables.page(read_table(key), RESULTS) == (RESULTS / f"{key}.md").read_text()


@pytest.mark.parametrize("key", MADE)
def test_no_attack_beats_the_exact_distance(key):
    for path in (RESULTS / key).glob("*.json"):
        answer = json.loads(path.read_text())["answer"]
        for attack in ("cheng", "papernot"):
            found = answer.get(attack)
            if found and found["n"]:
                assert found["exact"] <= found["mean"] + 1e-9, path.name


def test_robust_models_are_farther_from_being_fooled():
    for path in (RESULTS / "table3").glob("*-paper.json"):
        natural = path.with_name(path.name.replace("-paper", "-natural"))
        if natural.exists():
            both = [json.loads(p.read_text())["answer"]["inf"] for p in (path, natural)]
            assert both[0]["lower"] > both[1]["upper"], path.name
