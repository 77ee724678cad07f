"""A threat in plain English."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardwood.threat.steps import ANY, Relative, entries, is_number, is_step, pair

if TYPE_CHECKING:
    from hardwood.threat.threat import Threat


def sentences(threat: "Threat", feature_names: Sequence[str] | None) -> Iterator[str]:
    """One sentence a column, then one for counts, norm, range and who attacks."""

    def name(column: Any) -> str:
        known = feature_names is not None and isinstance(column, int)
        named = known and 0 <= column < len(feature_names or ())
        return str(feature_names[column]) if named and feature_names else _name(column)

    whole = {name(column) for column in threat.integer or ()}
    yield from _steps(threat, name, whole)
    for column in threat.blank:
        yield f"{name(column)} can be left blank."
    for group in threat.one_hot:
        if not set(group) & set(threat.fixed):
            yield f"Of {_listed([name(column) for column in group], 'and')}, another one can be 1."
    for column in threat.fixed:
        yield f"{name(column)} does not change."
    if isinstance(threat.eps, Mapping):
        yield "No other column changes." if threat.eps or threat.blank else "No number changes."
    yield from _counts(threat)
    yield from _range(threat, name)
    if threat.only is not None:
        yield f"Only rows of class {threat.only!r} attack."


def _steps(threat: "Threat", name: Any, whole: set[str]) -> Iterator[str]:
    if threat.norm == 0 and is_number(threat.eps):
        yield f"Any {threat.eps:g} columns can be changed to any value."
    elif is_step(threat.eps):
        yield f"Every column {_can(threat.eps)}."
    else:
        for column, step in entries(threat.eps):
            called = name(column)
            suffix = ", in whole numbers" if called in whole and any(pair(step)) else ""
            yield f"{called} {_can(step)}{suffix}."
            whole.discard(called)
    for called in sorted(whole):
        yield f"{called} holds whole numbers."


def _name(column: Any) -> str:
    return column if isinstance(column, str) else f"Column {column}"


def _can(step: Any) -> str:
    if step is ANY:
        return "can become any other known category"
    if isinstance(step, Mapping):
        ways = [f"from {category!r} to {_targets(to)}" for category, to in step.items()]
        return f"can change {_listed(ways, 'and')}" if ways else "does not change"
    if isinstance(step, Relative):
        down, up, unit = step.down, step.up, " of its value"
        amounts = f"{100 * down:g} %", f"{100 * up:g} %"
    else:
        (down, up), unit = pair(step), ""
        amounts = f"{down:g}", f"{up:g}"
    if down == up == 0:
        return "does not change"
    if down == up:
        return f"can go up or down by up to {amounts[0]}{unit}"
    ways = [f"fall by up to {amounts[0]}"] * (down > 0) + [f"rise by up to {amounts[1]}"] * (up > 0)
    return f"can {' or '.join(ways)}{unit}"


def _targets(to: Any) -> str:
    return "any other" if to is ANY else _listed([repr(category) for category in to], "or")


def _listed(items: Sequence[str], last: str) -> str:
    if len(items) < 2:
        return "".join(items) or "nothing else"
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def _counts(threat: "Threat") -> Iterator[str]:
    most = threat.max_changes
    if most is not None:
        columns = "column changes" if most == 1 else "columns change at once"
        yield f"At most {most} {columns}, each within its own limit."
    if threat.norm in (1, 2):
        total = "sum" if threat.norm == 1 else "root of the sum of squares"
        yield f"Steps are counted as shares of their limit, and their {total} is at most 1."


def _range(threat: "Threat", name: Any) -> Iterator[str]:
    ends: dict[Any, dict[str, float]] = {}
    for side in ("low", "high"):
        for column, limit in entries(getattr(threat, side)):
            if limit is not None:
                ends.setdefault(column, {})[side] = limit
    for column, limits in ends.items():
        whose = "Values" if column is None else f"Values of {name(column)}"
        yield f"{whose} that are changed stay {_between(limits)}."


def _between(limits: Mapping[str, float]) -> str:
    if len(limits) == 2:
        return f"between {limits['low']:g} and {limits['high']:g}"
    side, limit = next(iter(limits.items()))
    return f"{'at or above' if side == 'low' else 'at or below'} {limit:g}"
