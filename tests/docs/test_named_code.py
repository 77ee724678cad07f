"""What ARCHITECTURE.md and CONTRIBUTING.md name is there: files, functions, verbs of make."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
FOLDERS = ("src", "cpp", "tests", "docs", "examples", "benchmarks", ".ci", ".github")
KINDS = (".py", ".cpp", ".hpp", ".md", ".json", ".jinja", ".toml")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
PLACES = {
    "/" + path.relative_to(ROOT).as_posix()
    for path in [*FILES, *ROOT.glob("*"), *(ROOT / folder for folder in FOLDERS)]
}
WORDS = {
    word
    for path in FILES
    if path.suffix in (".py", ".cpp", ".hpp") and path.parent.name != "docs"
    for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
}


def spans(page):
    """What the page sets in code."""
    return set(re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8")))


def expanded(span):
    """``a/{b,c}.cpp`` is two names."""
    braces = re.search(r"{([^}]*)}", span)
    if braces is None:
        return [span]
    return [span.replace(braces[0], one) for one in braces[1].split(",")]


def is_there(name):
    """Whether a path of the project ends like this, stars being anything."""
    end = re.escape("/" + name.strip("/")).replace(r"\*", "[^/]*")
    return any(re.search(end + "$", place) for place in PLACES)


@pytest.mark.parametrize("page", PAGES)
def test_named_files_are_there(page):
    named = {name for span in spans(page) for name in expanded(span) if " " not in name}
    paths = {n for n in named if n.endswith(KINDS) or n.startswith(tuple(f + "/" for f in FOLDERS))}
    assert len(paths) > 20
    assert sorted(name for name in paths if not is_there(name)) == []


@pytest.mark.parametrize("page", PAGES)
def test_named_functions_are_there(page):
    named = {span for span in spans(page) if re.fullmatch(r"[A-Za-z_][\w.:]*", span)}
    names = {name for name in named if not name.endswith(KINDS)}
    assert len(names) > 20
    words = {name: re.findall(r"\w+", name) for name in names}
    assert sorted(name for name, parts in words.items() if not WORDS.issuperset(parts)) == []


NAME, FILE = r"`([A-Za-z_][\w.:]*)`", r"`([\w/.]+\.(?:py|cpp|hpp))`"


def told_places(page):
    """Names and the files in which the page says they are: `n` (`f`), `n` in `f`, or `f`, `n`."""
    text = re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))
    pairs = re.findall(rf"{NAME} (?:\(|in |of ){FILE}", text)
    pairs += [(name, file) for file, name in re.findall(rf"{FILE}, {NAME}(?! in| \()", text)]
    return [(name, file) for name, file in pairs if not name.endswith(KINDS)]


@pytest.mark.parametrize("page", PAGES)
def test_names_are_in_the_files_that_the_page_says(page):
    places = told_places(page)
    assert len(places) > 10
    assert [(n, f) for n, f in places if not any(holds(n, file) for file in files_of(f))] == []


@pytest.mark.parametrize("page", PAGES)
def test_members_are_those_of_the_named_class(page):
    for name in spans(page):
        parts = re.fullmatch(r"([A-Z]\w+)(?:\.|::)(\w+)", name)
        if parts and not name.endswith(KINDS):
            homes = [f for f in FILES if re.search(rf"\b(class|struct) {parts[1]}\b", text_of(f))]
            assert any(holds(parts[2], file) for file in homes), f"{page}: {name}"


def files_of(end):
    return [path for path in FILES if f"/{path.relative_to(ROOT).as_posix()}".endswith(f"/{end}")]


def holds(name, path):
    return set(re.findall(r"\w+", name)) <= set(re.findall(r"\w+", text_of(path)))


@cache
def text_of(path):
    return path.read_text(encoding="utf-8") if path.suffix in KINDS[:3] else ""


def test_ci_runs_what_contributing_says():
    steps = re.findall(r"^step make (\w+)", (ROOT / ".ci" / "run").read_text(), flags=re.M)
    said = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    said = said[said.index("`.ci/run`") : said.index("`.github`")]
    assert re.findall(r"`make (\w+)`", said) == steps


@pytest.mark.parametrize("page", PAGES)
def test_named_verbs_are_there(page):
    verbs = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {span.split()[1] for span in spans(page) if re.fullmatch(r"make [\w-]+.*", span)}
    assert named <= verbs


def test_what_is_not_there_is_found():
    assert is_there("grow/grower.hpp")
    assert is_there("examples/plot_*.py")
    assert not is_there("rower.hpp")
    assert not is_there("grow/split.cpp")
    [grower] = files_of("grow/grower.hpp")
    assert holds("Grower", grower)
    assert not holds("Grower.mower", grower)
