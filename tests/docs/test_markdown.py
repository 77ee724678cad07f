"""The code of the README and of the guide runs and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
)
# A block of code and, right below it, the block of its output.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.M | re.S)


def test_the_readme_has_code():
    assert "README.md" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    names: dict[str, object] = {}
    for code, shown in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        assert printed.getvalue().rstrip() == shown.rstrip(), code
