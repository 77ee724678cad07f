"""The committed tables of the reproduction say what their result files say."""

from pathlib import Path

import pytest

from hardwood.reproduce import tables
from hardwood.reproduce.settings import TABLES, read_table

RESULTS = Path(__file__).parents[2] / "reproduction"


@pytest.mark.parametrize("key", TABLES)
def test_pages_are_made_from_their_results(key):
    assert tables.page(read_table(key), RESULTS) == (RESULTS / f"{key}.md").read_text()
