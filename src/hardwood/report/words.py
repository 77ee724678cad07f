"""Numbers, changes and threats in plain words."""

from collections.abc import Mapping, Sequence
from typing import Any

from hardwood.model.trees import Trees
from hardwood.model.words import number as number
from hardwood.model.words import pair as pair
from hardwood.threat import Threat


def count(number: int) -> str:
    """A whole number with thousands apart."""
    return f"{number:,}"


def share(part: int, whole: int) -> str:
    """A share, never without its counts."""
    if whole == 0:
        return "none of 0"
    percent = 100 * part / whole
    # "100 %" and "0 %" are said only where they are true.
    if 0 < part < whole:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f} % ({count(part)} of {count(whole)})"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; the first of many."""
    shown = [str(name) for name in names]
    if len(shown) > most:
        shown = [*shown[:most], f"{count(len(shown) - most)} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def told(
    changes: Sequence[Mapping[str, Any]],
    label: Any,
    becomes: Any,
    verb: str = "turns",
    preposition: str = "into",
) -> str:
    """One fragile row as a sentence."""
    steps = [f"{one['column']} {one['shown_from']} → {one['shown_to']}" for one in changes]
    verb = verb if len(steps) == 1 else verb.removesuffix("s")
    return f"{listed(steps, most=8)} {verb} {label} {preposition} {becomes}"


def between(found: float, proven: float | None) -> str:
    """A number that is known from both sides."""
    if proven == found:
        return number(found, 4)
    at_most = "" if proven is None else f", at most {number(proven, 4)}"
    return f"at least {number(found, 4)}{at_most}"


def opening(sentences: Sequence[str], most: int = 6) -> str:
    """The first sentences as one line."""
    return " ".join(sentences[:most]) + (" ..." if len(sentences) > most else "")


def threat_in_words(threat: Threat, names: Sequence[str], most: int = 16) -> list[str]:
    """What the adversary may do, one sentence a fact; the first of many."""
    lines = threat.describe(names).splitlines()
    if len(lines) > most:
        lines = [*lines[: most - 1], f"And {count(len(lines) - most + 1)} more such sentences."]
    return lines


def names_of(trees: Trees) -> list[str]:
    """The columns' names, or numbers in their place."""
    return trees.feature_names or [f"x{f}" for f in range(trees.n_features)]


def label_of(trees: Trees, position: int) -> str:
    """A class as its users call it."""
    return str(position if trees.classes is None else trees.classes.tolist()[position])
