"""Print what the package and the extras that are named need, one a line. Run by ``make build``."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *(one for name in sys.argv[1:] for one in extras[name]), sep="\n")
