"""What an audit looks at beside its findings: the reading of the model, the threat, the units."""

import warnings
from typing import Any

import numpy as np

from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import LEAF, Trees
from hardwood.report import words
from hardwood.threat import Reach, Threat


def refuse_idle(reach: Reach, threat: Threat) -> None:
    """Refuse a threat that changes nothing."""
    if not moving_of(reach).any():
        raise ValueError(
            f"The threat moves no column, so there is nothing to audit, got {threat!r}; give it an "
            f"eps above 0."
        )


def moving_of(reach: Reach) -> BoolArray:
    """Which columns the threat can change at all."""
    moving = np.asarray(reach.limits[:, :2].any(axis=1) | reach.share.any(axis=1), dtype=bool)
    moving |= reach.blank
    changed = [feature for feature, to in reach.changes.items() if any(len(one) > 1 for one in to)]
    grouped = [column for group in reach.groups if group.moves for column in group.columns]
    moving[[*changed, *grouped]] = True
    return moving


def gate_check(trees: Trees, sourced: bool) -> dict[str, Any]:
    """Whether the trees answer as the model that they were read from."""
    if sourced:
        return {
            "name": "the model was read exactly",
            "passed": True,
            "words": "What is audited here answers as the model itself does: compared on rows on "
            "its thresholds, one float to each side of them, and near its decision's edge.",
        }
    metadata = trees.metadata or {}
    dump = metadata.get("checked_against_source") is False
    return {
        "name": "the model was read exactly",
        "passed": None,
        "words": "Not compared with its source: "
        + ("a dump holds the trees alone." if dump else "the trees here are the model itself.")
        + " Pass the fitted object to have both compared.",
    }


def reach_check(trees: Trees, reach: Reach) -> dict[str, Any]:
    """Whether the threat moves anything that the model looks at."""
    used = np.unique(trees.feature[trees.feature != LEAF])
    reached = int(np.count_nonzero(moving_of(reach)[used]))
    return {
        "name": "the threat reaches the model",
        "passed": reached > 0,
        "words": f"The threat moves {words.count(reached)} of the {words.count(len(used))} "
        f"columns that the model looks at.",
    }


def unit_checks(trees: Trees, X: FloatArray, reach: Reach, threat: Threat) -> list[dict[str, Any]]:
    """Whether the size of the threat fits the units of the columns."""
    names, limits, moving = words.names_of(trees), reach.limits, moving_of(reach)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that is all blank
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    spread = np.nan_to_num(high - low)
    step = np.where(np.isfinite(limits[:, :2]), limits[:, :2], 0).max(axis=1)
    numeric = moving & (spread > 0)
    numeric[trees.categorical_features] = False
    swamped = np.flatnonzero(numeric & (step >= spread))
    tiny = np.flatnonzero(numeric & (step > 0) & (step < 1e-6 * spread))
    checks = [
        {
            "name": "no step is larger than its column",
            "passed": len(swamped) == 0,
            "words": "Every step of the threat is smaller than the range of its column."
            if len(swamped) == 0
            else f"The threat can carry {words.listed([names[f] for f in swamped])} across the "
            f"whole range seen in the data; check the units.",
        },
        {
            "name": "no step is lost in its column",
            "passed": len(tiny) == 0,
            "words": "No step of the threat is tiny beside its column."
            if len(tiny) == 0
            else f"The threat moves {words.listed([names[f] for f in tiny])} by less than a "
            f"millionth of the range seen in the data; check the units.",
        },
    ]
    one_size = isinstance(threat.eps, int | float) and threat.norm != 0
    scales = spread[numeric]
    if one_size and len(scales) > 1:
        apart = float(scales.max() / scales.min())
        checks.append(
            {
                "name": "one size suits all columns",
                "passed": apart <= 100,
                "words": f"One eps for all columns, whose ranges differ by a factor of "
                f"{apart:,.0f}"
                + (
                    "."
                    if apart <= 100
                    else "; give each column a step in its own unit, as in "
                    'Threat(eps={"income": 1000, "age": 1}).'
                ),
            }
        )
    outside = np.isfinite(X) & ((X < limits[:, 2]) | (X > limits[:, 3]))
    n_outside = int(outside[:, moving].any(axis=1).sum())
    checks.append(
        {
            "name": "rows lie in the valid range",
            "passed": n_outside == 0,
            "words": f"{words.count(n_outside)} of {words.count(len(X))} rows hold a value "
            f"outside the range that the threat calls valid.",
        }
    )
    return checks


_COLLECTION = "every row of the collection was asked about"


def drawn_check(n_rows: int, n_all: int, seed: int) -> dict[str, Any]:
    """That the rows of a report are not all there are."""
    return {
        "name": _COLLECTION,
        "passed": False,
        "words": f"The {n_rows:,} rows of this report were drawn from the {n_all:,} rows of a "
        f"collection, with seed {seed}.",
    }


def without_drawn(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks that can be made again from the rows of a report."""
    return [one for one in checks if one["passed"] or one["name"] != _COLLECTION]
