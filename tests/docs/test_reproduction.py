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


@pytest.mark.parametrize("key", ["table3", "forest"])
def test_robust_models_are_farther_from_being_fooled(key):
    pairs = [
        (path, path.with_name(path.name.replace("-paper", "-natural")))
        for path in (RESULTS / key).glob("*-paper.json")
    ]
    assert len(pairs) == len(read_table(key).sets)
    for pair in pairs:
        robust, natural = (json.loads(path.read_text())["answer"] for path in pair)
        for norm in {"inf", "l1", "l2"} & robust.keys():
            assert robust[norm]["lower"] > natural[norm]["upper"], (pair[0].name, norm)
        assert robust["cheng"]["mean"] > natural["cheng"]["mean"], pair[0].name
