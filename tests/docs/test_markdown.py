"""The code of the README and of the guide runs and prints what the page says it prints."""

from pathlib import Path

import pytest

from pages import run_page

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
)


def test_the_readme_has_code():
    assert "README.md" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    assert run_page(ROOT / page)


def test_a_page_that_says_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md says\n3\n\nbut\nprint\(1 \+ 1\)"):
        run_page(page)
