"""One tree as text."""

import numpy as np

from hardwood.model.trees import LEAF, Trees


def tree_text(trees: Trees, tree: int, *, decimals: int = 2, show_weights: bool = False) -> str:
    """Write one tree, a line per node, children indented below their split."""
    start = int(trees.tree_start[tree])
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
        left, right = split_words(trees, at, decimals)
        missing = ("  or missing", "") if trees.missing_left[at] else ("", "  or missing")
        open_nodes.append((int(trees.right[at]), depth + 1, right + missing[1]))
        open_nodes.append((int(trees.left[at]), depth + 1, left + missing[0]))
    return "\n".join(lines) + "\n"


def split_words(
    trees: Trees, at: int, decimals: int = 2, unnamed: str = "feature_"
) -> tuple[str, str]:
    """What the rows have in common that go left, and those that go right."""
    feature = int(trees.feature[at])
    name = f"{unnamed}{feature}" if trees.feature_names is None else trees.feature_names[feature]
    listed = trees.category[trees.category_start[at] : trees.category_start[at + 1]].tolist()
    if not listed:
        threshold = f"{trees.threshold[at]:.{decimals}f}"
        return f"{name} <  {threshold}", f"{name} >= {threshold}"
    known = trees.category_names.get(feature) or []
    called = [str(known[code]) if code < len(known) else str(code) for code in listed[:_SHOWN]]
    if len(listed) > _SHOWN:
        called.append(f"{len(listed) - _SHOWN} more")
    words = "{" + ", ".join(called) + "}"
    return f"{name} not in {words}", f"{name} in {words}"


_SHOWN = 8  # categories of a set that are spelled out
