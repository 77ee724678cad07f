"""Pictures of models, drawn with matplotlib."""

from typing import Any

from hardwood.model.trees import Trees


def plot_tree(
    trees: Trees, *, ax: Any = None, max_depth: int | None = None, precision: int = 2
) -> Any:
    """Draw one tree, the root on top."""
    raise ImportError('report needs matplotlib. Install it with: pip install "hardwood[report]"')
