"""`hardwood convert`: a model file of one tool into that of another."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import hardwood as hw


def convert(
    source: Annotated[
        Path, typer.Argument(help="A model file of hardwood, XGBoost, LightGBM, CatBoost or ONNX.")
    ],
    target: Annotated[
        Path, typer.Argument(help="Its new name: .json or .ubj (XGBoost), .txt (LightGBM), .onnx.")
    ],
) -> None:
    """Read a model file and write it for another tool.

    \b
    Examples:
      hardwood convert model.json model.txt
    """  # noqa: D301
    writers: dict[str, Callable[[hw.Trees], object]] = {
        ".json": lambda trees: trees.save_model(target),
        ".ubj": lambda trees: trees.save_model(target),
        ".txt": lambda trees: target.write_text(trees.to_lightgbm()),
        ".onnx": lambda trees: target.write_bytes(trees.to_onnx()),
    }
    if target.suffix not in writers:
        raise ValueError(
            f"target must end in .json, .ubj, .txt or .onnx, got target={str(target)!r}."
        )
    trees = hw.load_model(source)
    writers[target.suffix](trees)
    typer.echo(f"{target}: {trees!r}")
