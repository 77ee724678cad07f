"""Who may know whom, and that the package is quiet."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hardwood as hw

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hardwood"
CORE = ROOT / "cpp" / "hardwood"

# Rooms that speak to the core, and what each C++ room may include beside itself.
SPEAK_TO_THE_CORE = set("threat bins grow ensemble model attack verify distributed".split())
FOUNDATION = set(
    "types threat box interrupt parallel ambiguity buffer pool simd sort part watch".split()
)
INCLUDES = {
    "types": set(),
    "interrupt": set(),
    "parallel": {"interrupt", "simd"},
    "sort": {"interrupt"},
    "threat": {"types"},
    "box": {"types", "threat"},
    "ambiguity": {"box", "threat"},
    "buffer": set(),
    "pool": {"buffer"},
    "part": set(),
    "simd": {"types"},
    "bins": FOUNDATION,
    "model": FOUNDATION,
    "grow": FOUNDATION | {"bins", "model"},
    "ensemble": FOUNDATION | {"bins", "model", "grow"},
    "watch": set(),
    "cells": FOUNDATION | {"model"},
    "verify": FOUNDATION | {"model", "cells"},
    "attack": FOUNDATION | {"model", "cells", "verify"},
}


def room_of(path, root):
    return path.relative_to(root).parts[0].partition(".")[0]


def imports_the_core(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if any(name.startswith("hardwood._core") for name in names):
            return True
    return False


def test_only_the_rooms_of_kernels_import_the_core():
    speaking = {
        room_of(path, PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if imports_the_core(path.read_text())
    }
    assert {"threat", "grow", "model", "verify"} <= speaking <= SPEAK_TO_THE_CORE


def test_the_core_of_a_model_is_asked_for_by_name():
    for path in PACKAGE.rglob("*.py"):
        if room_of(path, PACKAGE) != "model":
            assert not re.search(r"trees_?\._core\b", path.read_text()), (
                f"{path}: say core_of(trees)"
            )


def sources():
    return sorted([*CORE.rglob("*.hpp"), *CORE.rglob("*.cpp")])


def test_core_rooms_include_only_rooms_below_them():
    assert {room_of(path, CORE) for path in sources()} == set(INCLUDES)
    for path in sources():
        room = room_of(path, CORE)
        for included in re.findall(r'#include "hardwood/(\w+)[./]', path.read_text()):
            assert included in INCLUDES[room] | {room}, f"{path} includes {included}"


def test_core_knows_neither_python_nor_threads():
    for path in sources():
        headers = set(re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text()))
        assert not {h for h in headers if re.match("Python|nanobind|pybind|numpy", h)}, path
        knows_threads = bool(headers & {"thread", "condition_variable", "pthread.h", "omp.h"})
        assert knows_threads == (path.name == "parallel.cpp"), path


def python(code):
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )


def test_import_is_quiet_and_light():
    heavy = ["sklearn", "scipy", "matplotlib", "pandas", "joblib", "rich", "typer"]
    done = python(
        "import hardwood, sys; hardwood.Threat; hardwood.Trees; "
        f"print([module for module in {heavy} if module in sys.modules])"
    )
    assert done.stdout == "[]\n"
    assert done.stderr == ""


@pytest.mark.parametrize("name", hw.__all__)
def test_every_public_name_resolves_and_is_documented(name):
    value = getattr(hw, name)
    assert getattr(value, "__name__", repr(value)).removeprefix("hardwood.") == name
    assert value.__doc__
    assert name in dir(hw)


def test_the_list_of_public_names_is_one():
    assert hw.__all__ == sorted([*hw._HOME, "dask", "datasets", "distributed"])
    with pytest.raises(AttributeError, match="module 'hardwood' has no attribute 'Oak'"):
        _ = hw.Oak
