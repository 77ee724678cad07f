"""Tables as Markdown: ours beside the paper's, from the result files."""

import math
from pathlib import Path
from typing import Any

from hardwood.reproduce.cells import known
from hardwood.reproduce.settings import Cell, PaperTable

# Closer than this counts as the same: of an accuracy, and relative for a distance.
_ACCURACY, _DISTANCE = 0.01, 0.1


def page(table: PaperTable, out: Path) -> str:
    """The whole table as a section of a page."""
    render = {"trees": _over_trees, "accuracy": _accuracies}.get(table.kind, _distances)
    return f"## {table.title}\n\n{render(table, out)}\n"


def _distances(table: PaperTable, out: Path) -> str:
    columns = ["accuracy", "inf", "cheng", "papernot", "l1", "l2"]
    columns = [c for c in columns if any(c in one["robust"] for one in table.sets)]
    head = ["data", "training", *(f"{_LABEL[c]}, ours" for c in columns)]
    lines = [head, ["---"] * len(head)]
    factors = [["data", *(f"{_LABEL[c]}, ours / paper" for c in columns[1:])]]
    factors.append(["---"] * len(factors[0]))
    for one in table.sets:
        answers = {}
        for cell in _cells_of(table, one["name"]):
            result = known(cell, out)
            if result is None:
                continue
            answer = answers[cell.training] = result["answer"]
            paper = one["natural" if cell.training == "natural" else "robust"]
            shown = [_beside(c, answer, paper.get(c)) for c in columns]
            lines.append([one["name"], _TRAINING[cell.training], *shown])
        if {"natural", "paper"} <= answers.keys():
            factors.append(
                [one["name"], *(_factor(c, answers, one) for c in columns[1:])],
            )
    text = _markdown(lines)
    return f"{text}\n\nHow many times as far a robust model is from being fooled:\n\n" + _markdown(
        factors
    )


def _over_trees(table: PaperTable, out: Path) -> str:
    sections = []
    for one in table.sets:
        results = {c.training: known(c, out) for c in _cells_of(table, one["name"])}
        answers = {training: r["answer"] for training, r in results.items() if r is not None}
        if not {"natural", "paper"} <= answers.keys():
            continue
        head = ["trees", "accuracy, robust", "accuracy, natural", "distance, robust"]
        lines = [[*head, "distance, natural"], ["---"] * 5]
        for robust, natural in zip(
            answers["paper"]["rows"], answers["natural"]["rows"], strict=True
        ):
            paper = _paper_at(one, robust["trees"])
            lines.append(
                [
                    str(robust["trees"]),
                    _beside("accuracy", robust, paper["robust", "accuracy"]),
                    _beside("accuracy", natural, paper["natural", "accuracy"]),
                    _beside_attack(robust["inf"], paper["robust", "cheng"]),
                    _beside_attack(natural["inf"], paper["natural", "cheng"]),
                ]
            )
        sections.append(f"### {one['name']}\n\n{_markdown(lines)}")
    return "\n\n".join(sections)


def _paper_at(one: dict[str, Any], n_trees: int) -> dict[tuple[str, str], float | None]:
    """The paper's numbers at a number of trees; None where it has none."""
    return {
        (kind, column): one[kind][column][one["trees"].index(n_trees)]
        if n_trees in one["trees"]
        else None
        for kind in ("robust", "natural")
        for column in ("accuracy", "cheng")
    }


def _accuracies(table: PaperTable, out: Path) -> str:
    head = ["data, eps", "training", "clean", "robust, proven to found", "rows", "seconds"]
    lines = [[*head, "published"], ["---"] * 7]
    folds = [["data, eps", "training", "clean", "robust", "spread over folds"], ["---"] * 5]
    for one in table.sets:
        cells = _cells_of(table, one["name"])
        for cell in cells:
            result = known(cell, out)
            if result is None:
                continue
            answer = result["answer"]
            about = [f"{one['name']}, {_number(one['eps'], 3)}", _TRAINING[cell.training]]
            published = " / ".join(_number(v) for v in one["published"])
            proven, found = (_number(answer[k]) for k in ("certified", "attacked"))
            lines.append(
                [
                    *about,
                    _number(answer["clean"]),
                    (proven if proven == found else f"{proven} to {found}")
                    + f" ± {_number(_error(answer))}",
                    str(answer["n"]),
                    f"{answer['fit_seconds']:.1f}",
                    published if cell is cells[-1] else "",
                ]
            )
            if "folds" in answer:
                values = [_number(answer["folds"][k]) for k in ("clean", "certified", "spread")]
                folds.append([*about, *values])
    text = _markdown(lines)
    if len(folds) == 2:
        return text
    return f"{text}\n\nFive folds of the training rows, three times:\n\n" + _markdown(folds)


def _error(answer: dict[str, Any]) -> float:
    """The standard error of a share of the rows."""
    share: float = answer["certified"]
    return math.sqrt(share * (1 - share) / answer["n"])


_ATTACKS = ("cheng", "papernot")
_LABEL = {
    "accuracy": "accuracy",
    "inf": "exact l_inf",
    "cheng": "Cheng l_inf",
    "papernot": "Papernot l_inf",
    "l1": "exact l_1",
    "l2": "exact l_2",
}
_TRAINING = {
    "natural": "natural",
    "paper": 'robust, `inner="paper"`',
    "exact": 'robust, `inner="exact"`',
    "certified": 'robust, `inner="certified"`',
    "gini": "robust, Gini",
}


def value_of(column: str, answer: dict[str, Any]) -> tuple[float | None, str]:
    """The number of a column, and what must be said about it."""
    found = answer.get(column)
    if found is None or isinstance(found, float):
        return found, ""
    if "mean" in found:  # an attack
        if found["error"] is None:
            return found["mean"], ""
        return found["mean"], f" ± {_number(found['error'])}, exact {_number(found['exact'])}"
    if found["settled"] < found["n"]:  # the clock left rows open
        low = "?" if found["lower"] is None else _number(found["lower"])
        return found["upper"], f" (at least {low}; {found['n'] - found['settled']} rows open)"
    return found["upper"], ""


def _beside(column: str, answer: dict[str, Any], paper: float | None) -> str:
    value, remark = value_of(column, answer)
    if value is None:
        return "never fooled" if column in answer else ""
    ours = _number(value) + remark
    if paper is None:
        return ours
    near = _ACCURACY if column == "accuracy" else _DISTANCE * paper
    # A model is better farther away; an attack is better when it comes closer.
    ahead = value < paper if column in _ATTACKS else value > paper
    mark = "same" if abs(value - paper) <= near else "better" if ahead else "worse"
    return f"{ours} (paper {_number(paper)}: {mark})"


def _beside_attack(answer: dict[str, Any], paper: float | None) -> str:
    """Our exact distance beside the paper's attack: two measures, so no mark."""
    ours = _beside("inf", {"inf": answer}, None)
    return ours if paper is None else f"{ours} (paper's attack {_number(paper)})"


def _factor(column: str, answers: dict[str, Any], one: dict[str, Any]) -> str:
    robust, natural = (value_of(column, answers[k])[0] for k in ("paper", "natural"))
    ours = f"{robust / natural:.2f}" if robust and natural else ""
    if column not in one["robust"]:
        return ours
    return f"{ours} / {one['robust'][column] / one['natural'][column]:.2f}"


def _cells_of(table: PaperTable, name: str) -> list[Cell]:
    return [cell for cell in table.cells if cell.name == name]


def _number(value: float, digits: int = 3) -> str:
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
