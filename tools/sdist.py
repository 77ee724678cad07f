"""Make the source distribution, and build it again with its declared requirements alone.

Run by ``make sdist``. The second build gets a folder with the build requirements and no index, and
no git: what is not declared or not packed is missed here and not by users.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def run(*words, **more):
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], check=True, **more)


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "venv", work / "venv")
        pip = [work / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q"]
        run(*pip, "install", "build")
        run(work / "venv" / "bin" / "python", "-m", "build", "--sdist", "-o", work, ROOT)
        [archive] = work.glob("*.tar.gz")
        requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
        # cmake and ninja are asked for by the build backend where the machine has none.
        run(*pip, "download", "-d", work / "index", *requires, "cmake", "ninja")
        run(*pip, "wheel", "--no-deps", "--no-index", "--find-links", work / "index",
            "-w", work / "built", archive, cwd=work)  # fmt: skip
        [wheel] = (work / "built").glob("*.whl")
        version = archive.name.removesuffix(".tar.gz").rpartition("-")[2]
        assert wheel.name.split("-")[1] == version, f"{wheel.name} is not of version {version}"
        DIST.mkdir(exist_ok=True)
        shutil.copy(archive, DIST)
        size = archive.stat().st_size / 1e6
        print(f"dist/{archive.name}: {size:.1f} MB, builds to {wheel.name} without an index")


if __name__ == "__main__":
    main()
