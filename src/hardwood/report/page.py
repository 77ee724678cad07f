"""The findings of an audit as one HTML page that needs nothing else."""

import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from hardwood.report import regression, svg, words

_HERE = files("hardwood.report")


def render(content: dict[str, Any]) -> str:
    """The page of an audit."""
    try:
        from jinja2 import TemplateError
    except ImportError:
        raise ImportError(
            'to_html needs jinja2. Install it with: pip install "hardwood[report]"'
        ) from None
    style = (_HERE / "audit.css").read_text("utf-8")
    kind, figures = _figures(content)
    try:
        return str(_environment().get_template(kind).render(**content, style=style, **figures))
    except TemplateError as error:
        raise LookupError(f"a part that the page needs, {error}") from None


@cache  # templates take longer to compile than to fill in
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (_HERE / name).read_text("utf-8")),
    )
    environment.filters.update(
        count=words.count, multiple=_multiple, number=_number, breakable=_breakable
    )
    environment.globals.update(share=words.share, percent=_percent, between=words.between)
    return environment


def _figures(content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of page, and what it shows beside the findings themselves."""
    if content["format"] == regression.FORMAT:
        return "regression.html.jinja", {
            "error_chart": svg.error_chart(content),
            "move_chart": svg.move_chart(content),
            "advice": _regression_advice(content),
        }
    return "audit.html.jinja", {
        "curve_chart": svg.curve_chart(content),
        "distance_chart": svg.distance_chart(content),
        "parts": _parts(content["certificate"]),
        "at_threat": next(one for one in content["curve"] if one["multiple"] == 1),
        "shown_curve": [one for one in content["curve"] if (4 * one["multiple"]).is_integer()],
        "advice": _advice(content),
    }


def framed(text: str) -> str:
    """The page inside a notebook's cell, with a style sheet of its own."""
    return (
        f'<iframe title="hardwood audit" srcdoc="{escape(text)}" '
        f'style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 6px"></iframe>'
    )


def _breakable(name: str) -> Any:
    """A name of a file or class that a narrow column breaks between its words, not inside them."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(r"(?<=[._-])(?=.)|(?<=[a-z])(?=[A-Z])", name))


def _percent(part: int, whole: int) -> str:
    return words.share(part, whole).partition(" (")[0]


def _multiple(value: float | None) -> str:
    if value is not None and 0 < value < 0.001:
        return "less than 0.001×"
    return "∞" if value is None else f"{value:.3g}×"


def _number(value: float | None) -> str:
    return "∞" if value is None else words.number(value, 4)


def _parts(counts: dict[str, int]) -> list[dict[str, Any]]:
    """The bar at the top: every examined row is in one of four parts."""
    told = (
        ("certified", "proven right", "no change that the threat allows turns it"),
        ("unknown", "unknown", "neither proven nor turned within the time"),
        ("broken", "turned", "an example is known, replayed through the model"),
        ("misclassified", "wrong already", "the model errs without any adversary"),
    )
    return [
        {"kind": kind, "name": name, "why": why, "rows": counts[kind]} for kind, name, why in told
    ]


_TRAIN_TWIN = (
    "Train the robust twin: hw.harden(model, X_train, y_train, threat) keeps columns, size and "
    "learning rate, and hw.audit(..., twin=...) shows both models on this page. From a terminal: "
    "hardwood audit ... --harden to look, hardwood harden to keep it."
)


def _advice_on_twin(content: dict[str, Any]) -> str:
    """Whether the second model pays."""
    twin = content["twin"]
    proven, own = (
        words.share(one["certificate"]["certified"], one["certificate"]["rows"])
        for one in (twin, content)
    )
    if twin["certificate"]["certified"] <= content["certificate"]["certified"]:
        return f"This twin does not pay: it is proven right on {proven}, the model on {own}."
    clean, own_clean = (
        words.share(one["accuracy"]["right"], one["accuracy"]["rows"]) for one in (twin, content)
    )
    return (
        f"Use the twin where the adversary is real: it is proven right on {proven}, the model on "
        f"{own}. Without an adversary it is right on {clean}, the model on {own_clean}."
    )


def _regression_advice_on_twin(content: dict[str, Any]) -> str:
    twin = content["twin"]
    attacked, own = (
        words.between(one["under_attack"]["found"], one["under_attack"]["proven"])
        for one in (twin, content)
    )
    proven = twin["under_attack"]["proven"]
    if proven is None or proven >= content["under_attack"]["found"]:
        return (
            f"It is not proven that this twin pays: under attack it errs by {attacked}, the model "
            f"by {own}."
        )
    return (
        f"Use the twin where the adversary is real: under attack it errs by {attacked}, the model "
        f"by {own}. Without an adversary it errs by {words.number(twin['error']['absolute'], 4)}, "
        f"the model by {words.number(content['error']['absolute'], 4)}."
    )


def _advice(content: dict[str, Any]) -> list[str]:
    """What to do, from what was found."""
    counts = content["certificate"]
    right = counts["rows"] - counts["misclassified"]
    advice = []
    if "twin" in content:
        advice.append(_advice_on_twin(content))
    elif counts["certified"] < 0.9 * max(right, 1):
        advice.append(_TRAIN_TWIN)
    alone = [one for one in content["alone"]["columns"] if one["turned"]][:3]
    if alone:
        first = alone[0]
        advice.append(
            f"Guard {words.listed([one['column'] for one in alone])}: "
            f"{first['column']} alone turns "
            f"{words.share(first['turned'], content['alone']['rows'])} of the rows tried. A value "
            f"that is verified, capped or measured twice is one the adversary cannot move; name it "
            f"in Threat(fixed=[...]) and audit again to see what that is worth."
        )
    weakest = min(
        (one for one in content["classes"] if one["rows"]),
        key=lambda one: one["certified"] / one["rows"],
    )
    if weakest["certified"] < 0.9 * weakest["rows"]:
        advice.append(
            f"Look at class {weakest['label']} first: only "
            f"{words.share(weakest['certified'], weakest['rows'])} of its rows are proven to stay "
            f"recognised."
        )
    if counts["unknown"]:
        advice.append(
            f"{words.share(counts['unknown'], counts['rows'])} of the rows are open: a larger "
            f"time_limit decides more of them."
        )
    return advice or ["Nothing stands out: most rows that are right are proven to stay right."]


def _regression_advice(content: dict[str, Any]) -> list[str]:
    """What to do, from what was found."""
    attacked, moves = content["under_attack"], content["moves"]
    advice = []
    if "twin" in content:
        advice.append(_regression_advice_on_twin(content))
    elif attacked["found"] > 1.1 * attacked["clean"]:
        advice.append(_TRAIN_TWIN)
    alone = content["alone"]["columns"][:3]
    if alone and alone[0]["found"] > 0:
        advice.append(
            f"Guard {words.listed([one['column'] for one in alone])}: {alone[0]['column']} alone "
            f"moves a prediction by {words.between(alone[0]['found'], alone[0]['proven'])} on "
            f"average. Name a value that is verified in Threat(fixed=[...]) and audit again to see "
            f"what that is worth."
        )
    n_open = moves["rows"] - moves["exact"]
    if n_open:
        advice.append(
            f"{words.share(n_open, moves['rows'])} of the rows are open: a larger time_limit "
            f"brings what is found and what is proven together."
        )
    return advice or ["Nothing stands out: the adversary moves predictions little."]
