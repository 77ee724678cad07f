"""Numbers, changes and threats in plain words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

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


def number(value: float, digits: int = 6) -> str:
    """A value of a column, short where it is short."""
    if math.isnan(value):
        return "blank"
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    if 1000 <= abs(value) < 1e15:
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    else:
        text = f"{value:.{digits}g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def pair(old: float, new: float) -> tuple[str, str]:
    """Two different values of a column, which look different.

    The new one is told as it is where ten digits are enough, for it is the one to try out; the old
    one stands in the table.
    """
    for digits in range(4, 17):
        before, after = number(old, digits), number(new, digits)
        if before != after and (digits >= 10 or number(new, 17) == after):
            return before, after
    return repr(float(old)), repr(float(new))


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; the first of many."""
    shown = [str(name) for name in names]
    if len(shown) > most:
        shown = [*shown[:most], f"{count(len(shown) - most)} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def told(changes: Sequence[Mapping[str, Any]], label: Any, becomes: Any) -> str:
    """One fragile row as a sentence."""
    steps = [f"{one['column']} {one['shown_from']} → {one['shown_to']}" for one in changes]
    return (
        f"{listed(steps, most=8)} {'turns' if len(steps) == 1 else 'turn'} {label} into {becomes}"
    )


def threat_in_words(threat: Threat, names: Sequence[str], most: int = 16) -> list[str]:
    """What the adversary may do, one sentence a fact; the first of many."""
    lines = [line[:1].upper() + line[1:] for line in threat.describe(names).splitlines()]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"And {count(len(lines) - most + 1)} more such sentences."]
    return lines
