"""One tree as text."""

import numpy as np

from hardwood.model.trees import LEAF, Trees


def tree_text(trees: Trees, tree: int, *, decimals: int = 2, show_weights: bool = False) -> str:
    """Write one tree, a line per node, children indented below their split."""
    start = int(trees.tree_start[tree])
    names = trees.feature_names or [f"feature_{f}" for f in range(trees.n_features)]
    lines: list[str] = []

    def leaf_line(at: int) -> str:
        value = trees.value[at]
        shown = "[" + ", ".join(f"{v:.{decimals}f}" for v in value) + "]"
        if len(value) == 1:
            return f"value: {shown}"
        label = int(np.argmax(value))
        name = label if trees.classes is None else trees.classes[label]
        return f"class: {name}" + (f"  shares: {shown}" if show_weights else "")

    # An explicit stack: unlimited trees can be deeper than Python's recursion.
    open_nodes: list[tuple[int, int, str | None]] = [(0, 0, None)]
    while open_nodes:
        node, depth, heading = open_nodes.pop()
        at = start + node
        if heading is not None:
            lines.append("|   " * (depth - 1) + "|--- " + heading)
        if trees.feature[at] == LEAF:
            lines.append("|   " * depth + "|--- " + leaf_line(at))
            continue
        name = names[trees.feature[at]]
        threshold = f"{trees.threshold[at]:.{decimals}f}"
        missing = ("  or missing", "") if trees.missing_left[at] else ("", "  or missing")
        open_nodes.append((int(trees.right[at]), depth + 1, f"{name} >= {threshold}{missing[1]}"))
        open_nodes.append((int(trees.left[at]), depth + 1, f"{name} <  {threshold}{missing[0]}"))
    return "\n".join(lines) + "\n"
