"""The hardwood command as a user meets it."""

import io
import re
import subprocess
import sys
import warnings

import pytest

import hardwood
from command import run
from hardwood.cli.main import COMMANDS, main


def test_version():
    assert run("--version").stdout == f"hardwood {hardwood.__version__}\n"


def test_an_output_that_knows_no_arrows_gets_question_marks(monkeypatch):
    """Such as a file of Windows, in which the words of an audit ended the command."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["hardwood", "--version"])
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # main has its own
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    out.write("0.3253 → 0.32515")
    out.flush()
    assert out.buffer.getvalue().endswith(b"0.3253 ? 0.32515")


def test_help_names_the_commands():
    done = run("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f" {command} " in done.stdout


def test_demo_prints_the_comparison_and_writes_the_picture(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    picture = tmp_path / "hardwood-demo" / "boundaries.png"
    assert done.stdout.endswith(
        "Decision boundaries: hardwood-demo/boundaries.png\n"
        "Audit, open it in a browser: hardwood-demo/audit.html\n"
    )
    assert "What hardening gives" in (tmp_path / "hardwood-demo" / "audit.html").read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    for fact in ("mean distance", "certified, eps 0.05", "certified, eps 0.1"):
        natural, robust = re.search(rf"{fact} +(\S+) +(\S+) *\n", done.stdout).groups()
        assert float(robust) > float(natural)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "--eps", "inf"), "hardwood: eps must be a finite number >= 0, got eps=inf."),
        (("demonstrate",), "demonstrate"),
    ],
)
def test_mistakes_are_told_without_a_traceback(words, message, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_constant_robust_tree_is_said(tmp_path):
    done = run("demo", "--eps", "0.9", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("hardwood: No split survives the threat (largest step 0.9)")


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_absent_libraries_are_named(absent):
    code = f"import sys; sys.modules[{absent!r}] = None; import hardwood.__main__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "hardwood: the command line needs typer and rich. "
        'Install them with: pip install "hardwood[cli]"\n'
    )
