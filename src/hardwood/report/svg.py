"""The page's charts as SVG: no script, no library, colours from the page's style sheet.

Each chart is drawn twice, for wide and for narrow screens, so that letters stay readable on a
phone; the style sheet shows one of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from hardwood.report import words

Points = Sequence[tuple[float, float]]
Ticks = Sequence[tuple[float, str]]
STRENGTH = "strength of the adversary, in multiples of the threat"


@dataclass(frozen=True)
class Frame:
    """A chart's area and its two scales."""

    width: int
    height: int
    x_end: float
    y_end: float
    left: int = 46
    right: int = 14
    top: int = 26
    bottom: int = 44

    def x(self, value: float) -> float:
        """Where a value lies across."""
        return self.left + (self.width - self.left - self.right) * value / self.x_end

    def y(self, value: float) -> float:
        """Where a value lies, counted from the top."""
        inner = self.height - self.top - self.bottom
        return self.top + inner * (1 - value / self.y_end)

    def path(self, points: Points) -> str:
        """A line through points."""
        return "M" + "L".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)


def both_sizes(draw: Any, title: str) -> str:
    """One chart for wide screens and one for narrow ones."""
    charts = []
    for size, width, height in (("wide", 760, 330), ("narrow", 360, 300)):
        body = draw(width, height)
        charts.append(
            f'<svg class="chart {size}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(title)}"><title>{escape(title)}</title>{body}</svg>'
        )
    return "".join(charts)


def curve_chart(content: dict[str, Any]) -> str:
    """Certified and attacked accuracy over multiples of the threat: proven below, found above."""
    curve, n = content["curve"], content["data"]["n_measured"]
    accuracy = content["accuracy"]
    twin = content.get("twin")

    def draw(width: int, height: int) -> str:
        frame = Frame(width, height, curve[-1]["multiple"], 1.0)
        proven = _stairs(curve, "certified", n, falls_at_once=True)
        found = _stairs(curve, "attacked", n, falls_at_once=False)
        parts = [_grid(frame, STRENGTH, _percents, _ticks(frame.x_end, _multiples))]
        parts.append(f'<path class="below" d="{_area(frame, proven)}"/>')
        between = frame.path([*found, *reversed(proven)])
        parts.append(f'<path class="between" d="{between}Z"/>')
        guess = frame.y(accuracy["majority_rows"] / accuracy["rows"])
        parts.append(
            f'<line class="guess" x1="{frame.left}" x2="{width - frame.right}" y1="{guess:.1f}" '
            f'y2="{guess:.1f}"/>'
        )
        parts.append(_threat_line(frame))
        if twin:
            m = twin["distances"]["rows"]
            other = _stairs(twin["curve"], "certified", m, falls_at_once=True)
            parts.append(f'<path class="line twin" d="{frame.path(other)}"/>')
        parts.append(f'<path class="line proven" d="{frame.path(proven)}"/>')
        parts.append(f'<path class="line found" d="{frame.path(found)}"/>')
        return "".join(parts)

    at_one = next(point for point in curve if point["multiple"] == 1)
    return both_sizes(
        draw,
        f"Accuracy against the strength of the adversary. At the threat itself "
        f"{at_one['certified']} of {n} rows are proven right and {at_one['attacked']} of {n} are "
        f"not broken.",
    )


def _stairs(curve: Any, name: str, n: int, *, falls_at_once: bool) -> list[tuple[float, float]]:
    """A line that stays on its own side of the truth between two points that were computed."""
    points = [(0.0, curve[0][name] / n)]
    for one, following in pairwise(curve):
        at = one["multiple"] if falls_at_once else following["multiple"]
        points += [(at, one[name] / n), (at, following[name] / n)]
    points.append((curve[-1]["multiple"], curve[-1][name] / n))
    return points


def distance_chart(content: dict[str, Any]) -> str:
    """How many rows are how far from being turned."""
    distances = content["distances"]
    bins, counts = distances["bins"], distances["counts"]
    step = bins[1] - bins[0]
    bars = [*zip(bins[:-1], counts, strict=True), (bins[-1] + step, distances["beyond"])]
    most = max(max(count for _, count in bars), 4)

    def draw(width: int, height: int) -> str:
        frame = Frame(width, height, bins[-1] + 2 * step, _round_up(most))
        parts = [
            _grid(
                frame,
                "smallest change that turns the row, × the threat",
                lambda value: f"{value:,.0f}",
                # On a phone the last one would run into the word beside it.
                _ticks(bins[-1], _multiples)[: None if width > 500 else -1],
            )
        ]
        for begin, count in bars:
            x, w = frame.x(begin), frame.x(begin + step) - frame.x(begin)
            y = frame.y(count)
            kind = "near" if begin < 1 else "far"
            parts.append(
                f'<rect class="{kind}" x="{x + 0.5:.1f}" y="{y:.1f}" width="{w - 1:.1f}" '
                f'height="{frame.y(0) - y:.1f}"/>'
            )
        end = frame.x(bins[-1] + 1.5 * step)
        parts.append(f'<text class="tick" x="{end:.1f}" y="{height - 26}">more</text>')
        parts.append(_threat_line(frame))
        return "".join(parts)

    inside = sum(count for begin, count in bars if begin < 1)
    return both_sizes(
        draw,
        f"Distribution of the smallest changes: {inside} of {distances['exact']} rows whose "
        f"distance is known exactly lie within the threat.",
    )


def error_chart(content: dict[str, Any]) -> str:
    """The error of a regression model over multiples of the threat; empty where it has no size."""
    strength, attacked = content["strength"], content["under_attack"]
    if not strength:
        return ""
    found, proven = _errors(strength, "found"), _errors(strength, "proven")
    twin = _errors(content["twin"]["strength"], "proven") if "twin" in content else []
    guess = content["error"]["median_absolute"]
    most = max(guess, *(error for _, error in [*found, *proven, *twin]))

    def draw(width: int, height: int) -> str:
        frame = Frame(width, height, strength[-1]["multiple"], _round_up(most))
        y = frame.y(guess)
        return "".join(
            [
                _grid(frame, STRENGTH, _units, _ticks(frame.x_end, _multiples)),
                f'<line class="guess" x1="{frame.left}" x2="{width - frame.right}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/>',
                _threat_line(frame),
                _dots(frame, twin, "twin") if twin else "",
                _dots(frame, proven, "proven"),
                _dots(frame, found, "found"),
            ]
        )

    at_most = words.between(attacked["found"], attacked["proven"])
    return both_sizes(
        draw,
        f"Mean absolute error against the strength of the adversary. At the threat: {at_most}.",
    )


def _errors(strength: Any, side: str) -> list[tuple[float, float]]:
    """Errors over multiples of the threat, where they are bounded."""
    return [(one["multiple"], one[side]) for one in strength if one[side] is not None]


def _dots(frame: Frame, points: Points, kind: str) -> str:
    """What was measured as dots; the line between them guides the eye."""
    circles = "".join(
        f'<circle class="dot {kind}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>'
        for x, y in points
    )
    return f'<path class="line {kind}" d="{frame.path(points)}"/>{circles}'


def move_chart(content: dict[str, Any]) -> str:
    """How many predictions of a regression model stay within each distance."""
    moves = content["moves"]
    n, end = moves["rows"], moves["curve"][-1]["move"]
    if end == 0:
        return ""
    curve = [{**one, "multiple": one["move"]} for one in moves["curve"]]

    def draw(width: int, height: int) -> str:
        frame = Frame(width, height, end, 1.0)
        proven = _stairs(curve, "proven", n, falls_at_once=False)
        found = _stairs(curve, "found", n, falls_at_once=True)
        return "".join(
            [
                _grid(
                    frame, "distance, in units of the prediction", _percents, _ticks(end, _units)
                ),
                f'<path class="below" d="{_area(frame, proven)}"/>',
                f'<path class="between" d="{frame.path([*found, *reversed(proven)])}Z"/>',
                f'<path class="line proven" d="{frame.path(proven)}"/>',
                f'<path class="line found" d="{frame.path(found)}"/>',
            ]
        )

    middle = moves["quantiles"][2]
    return both_sizes(
        draw,
        f"Share of {n} predictions that stay within a distance. The median one moves by "
        f"{words.between(middle['found'], middle['proven'])}.",
    )


def _area(frame: Frame, points: Points) -> str:
    return frame.path([(0, 0), *points, (points[-1][0], 0)]) + "Z"


def _threat_line(frame: Frame) -> str:
    at = frame.x(1)
    return (
        f'<line class="threat" x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top - 6}" '
        f'y2="{frame.y(0):.1f}"/>'
        f'<text class="threat-word" x="{at:.1f}" y="{frame.top - 12}">the threat</text>'
    )


def _grid(frame: Frame, across: str, word: Callable[[float], str], ticks: Ticks) -> str:
    parts = []
    steps = 4
    for k in range(steps + 1):
        value = frame.y_end * k / steps
        y = frame.y(value)
        parts.append(
            f'<line class="rule" x1="{frame.left}" x2="{frame.width - frame.right}" y1="{y:.1f}" '
            f'y2="{y:.1f}"/><text class="tick side" x="{frame.left - 6}" y="{y + 4:.1f}">'
            f"{word(value)}</text>"
        )
    for k, (value, told) in enumerate(ticks):
        if frame.width < 500 and k % 2:
            continue
        parts.append(
            f'<text class="tick" x="{frame.x(value):.1f}" y="{frame.height - 26}">{told}</text>'
        )
    middle = (frame.left + frame.width - frame.right) / 2
    parts.append(
        f'<text class="axis" x="{middle:.1f}" y="{frame.height - 7}">{escape(across)}</text>'
    )
    return "".join(parts)


def _ticks(end: float, word: Callable[[float], str]) -> Ticks:
    """Seven places, wherever the axis ends: a report that somebody edited may say anything."""
    return [(end * k / 6, word(end * k / 6)) for k in range(7)]


def _multiples(value: float) -> str:
    return f"{value:g}×"


def _percents(value: float) -> str:
    return f"{100 * value:.0f} %"


def _units(value: float) -> str:
    return words.number(value, 3)


def _round_up(most: float) -> float:
    """A round number not below the largest value, in four equal steps."""
    unit = 10.0 ** math.floor(math.log10(most / 4))
    return next(
        4 * unit * times for times in (1, 2, 3, 4, 5, 6, 8, 10, 20) if 4 * unit * times >= most
    )
