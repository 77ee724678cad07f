"""Threats as TOML.

One entry for all columns stands under ``every``, one per column in the list ``eps`` or, by name, in
the table ``eps``; columns by position stand in the table ``eps_at``. An entry is a number, a pair
[down, up], {relative = share} or {relative = [down, up]}, "any", or {changes = {category = [...]}};
where categories are not texts, changes are a list of pairs [category, [...]]. The range is written
in the same way, nan for no limit.
"""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hardwood.threat.steps import ANY, Relative, is_number, is_step, relative

_BY_COLUMN = ("eps", "low", "high")


def write(given: Mapping[str, Any]) -> str:
    """The text of a file with these arguments of a threat."""
    lines, tables = [], []
    for name, value in given.items():
        if name not in _BY_COLUMN:
            lines.append(f"{name} = {_value(value)}")
        elif isinstance(value, Mapping):
            tables += _tables(name, value)
        elif name == "eps" and is_step(value) and not is_number(value):
            lines.append(f"every = {_entry(value)}")
        elif isinstance(value, list | tuple):
            lines.append(f"{name} = [{', '.join(_entry(entry) for entry in value)}]")
        else:
            lines.append(f"{name} = {_entry(value)}")
    return "\n".join([*lines, *tables]) + "\n"


def _tables(name: str, columns: Mapping[Any, Any]) -> list[str]:
    lines = []
    named = {column: entry for column, entry in columns.items() if isinstance(column, str)}
    placed = {column: entry for column, entry in columns.items() if column not in named}
    for title, part in ((name, named), (f"{name}_at", placed)):
        if part or (title == name and not placed):
            lines += ["", f"[{title}]"]
        lines += [f"{_key(str(column))} = {_entry(entry)}" for column, entry in part.items()]
    return lines


def _entry(entry: Any) -> str:
    if isinstance(entry, Relative):
        shares = entry.down if entry.down == entry.up else [entry.down, entry.up]
        return f"{{relative = {_value(shares)}}}"
    if isinstance(entry, Mapping):
        if all(isinstance(category, str) for category in entry):
            ways = [f"{_key(category)} = {_value(to)}" for category, to in entry.items()]
            return f"{{changes = {{{', '.join(ways)}}}}}"
        ways = [f"[{_value(category)}, {_value(to)}]" for category, to in entry.items()]
        return f"{{changes = [{', '.join(ways)}]}}"
    return "nan" if entry is None else _value(entry)


def _value(value: Any) -> str:
    if value is ANY:
        return '"any"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)  # inf and nan are TOML's words, too
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(entry) for entry in value)}]"
    raise ValueError(f"TOML has no way to write {value!r}; use texts and numbers in the threat.")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def read(source: str | Path, known: Sequence[str]) -> dict[str, Any]:
    """The arguments of a threat from a file or a text."""
    is_text = isinstance(source, str) and ("\n" in source or "=" in source)
    where = "the text" if is_text else str(source)
    try:
        text = str(source) if is_text else Path(source).read_text(encoding="utf-8")
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is no TOML: {error}.") from None
    allowed = {*known, "every", *(f"{name}_at" for name in _BY_COLUMN)}
    for name in given:
        if name not in allowed:
            raise ValueError(
                f"{where} has the key {name!r}, which no threat has; known are "
                f"{', '.join(sorted(allowed))}."
            )
    if "every" in given and {"eps", "eps_at"} & given.keys():
        raise ValueError(f"{where} has both every and eps; every is one entry for all columns.")
    arguments = {name: value for name, value in given.items() if name in known}
    for name in _BY_COLUMN:
        if name in arguments:
            arguments[name] = _read_columns(name, arguments[name], where)
        placed = given.get(f"{name}_at")
        if placed is not None:
            by_place = _read_columns(name, placed, where)
            arguments[name] = {**arguments.get(name, {}), **_placed(by_place, f"{name}_at", where)}
    if "every" in given:
        arguments["eps"] = _read_entry(given["every"], "every", where)
    return arguments


def _placed(columns: Any, name: str, where: str) -> dict[int, Any]:
    if not isinstance(columns, Mapping) or not all(column.isdecimal() for column in columns):
        raise ValueError(f"{where}: {name} must be a table by the positions of columns.")
    return {int(column): entry for column, entry in columns.items()}


def _read_columns(name: str, given: Any, where: str) -> Any:
    if isinstance(given, Mapping):
        return {column: _read_entry(entry, column, where) for column, entry in given.items()}
    if isinstance(given, list):
        return [_read_entry(entry, name, where) for entry in given]
    return _read_entry(given, name, where)


def _read_entry(entry: Any, column: str, where: str) -> Any:
    if isinstance(entry, Mapping):
        if set(entry) == {"relative"}:
            shares = entry["relative"]
            return relative(*shares) if isinstance(shares, list) else relative(shares)
        if set(entry) == {"changes"}:
            ways = entry["changes"]
            pairs = ways.items() if isinstance(ways, Mapping) else ways
            return {category: ANY if to == "any" else to for category, to in pairs}
        raise ValueError(
            f"{where}: {column} must be a number, a pair [down, up], {{relative = ...}}, "
            f'{{changes = ...}} or "any", got {entry!r}.'
        )
    if isinstance(entry, list):
        return tuple(entry)
    if isinstance(entry, float) and math.isnan(entry):
        return None
    return ANY if entry == "any" else entry
