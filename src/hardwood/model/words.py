"""Values of columns in plain words."""

import math


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
    exact = next((d for d in range(4, 10) if number(new, d) == number(new, 17)), 10)
    enough = exact if number(old, exact) == number(old, 17) else 4
    for digits in range(enough, 17):
        before, after = number(old, digits), number(new, max(digits, exact))
        if before != after:
            return before, after
    return repr(float(old)), repr(float(new))
