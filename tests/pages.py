"""Pages with code: run the code, and hold what it prints against what the page says."""

import contextlib
import io
import re
from pathlib import Path

# A block of code and, right below it, the block of its output.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.M | re.S)


def run_page(path: Path) -> int:
    """Run all blocks of a page, one after the other; how many there are."""
    names: dict[str, object] = {}
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, path.name, "exec"), names)
        told = printed.getvalue().rstrip()
        if told != shown.rstrip():
            raise AssertionError(f"{path.name} says\n{shown}\nbut\n{code}\nprints\n{told}")
    return len(blocks)
