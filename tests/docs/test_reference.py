"""Every public name has its place in the reference."""

import re
from pathlib import Path

import hardwood as hw

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference():
    told = set(re.findall(r"^ +(?:\w+\.)*(\w+)$|:: (?:\w+\.)*(\w+)$", PAGE, re.M))
    named = {name for pair in told for name in pair if name}
    rooms = {"datasets", "distributed", "dask", "ANY"}  # modules, told by what is in them; a mark
    assert set(hw.__all__) - rooms <= named


def test_no_name_is_there_twice():
    listed = re.findall(r"^   ((?:\w+\.)*\w+)$", PAGE, re.M)
    assert sorted(listed) == sorted(set(listed))
