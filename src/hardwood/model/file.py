"""Model files: written in XGBoost's format, read as bytes whose first ones tell what they are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hardwood.errors import ModelFileError
from hardwood.model import ubjson
from hardwood.model.trees import Trees
from hardwood.model.xgboost.write import document_of, to_json

MAX_BYTES = 2**32


def save(
    trees: Trees,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    n_parallel_trees: int = 1,
) -> None:
    """Write a model; the name ends in .json or .ubj."""
    path = Path(path)
    writers = {".json": to_json, ".ubj": ubjson.encode}
    if path.suffix not in writers:
        raise ValueError(f'path must end in ".json" or ".ubj", got path={str(path)!r}.')
    document = document_of(trees, metadata=metadata, n_parallel_trees=n_parallel_trees)
    path.write_bytes(writers[path.suffix](document))


# How files begin that hold models all the same, and what to do with them.
_FOREIGN = {
    b"CBM1": "This is CatBoost's binary format; pass the model itself, or save it with "
    "save_model('model.json', format='json').",
    b"\x80": "This is a pickled object, not a model file; open it with joblib or pickle, if it is "
    "yours, and pass the model itself.",
}


def read(path: str | Path) -> bytes:
    """Give the bytes of a model file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    if not path.is_file():
        raise ModelFileError(f"{str(path)!r} is not a file.")
    if path.stat().st_size > MAX_BYTES:
        raise ModelFileError(
            f"{str(path)!r} has {path.stat().st_size} bytes; a model file may have {MAX_BYTES}."
        )
    return path.read_bytes()


def parse(data: bytes) -> dict[str, Any]:
    """Read JSON or UBJSON, whichever it is, into a document."""
    for beginning, told in _FOREIGN.items():
        if data.startswith(beginning):
            raise ModelFileError(told)
    if data[:1] != b"{":
        raise ModelFileError(
            f"A model file begins with '{{' (JSON, UBJSON), 'tree' (LightGBM's text) or byte 8 "
            f"(ONNX), a dump with '['; this one begins with {data[:8]!r}. XGBoost's old binary "
            f"format must be converted: load it with xgboost before 3.1 and call "
            f"save_model('model.json')."
        )
    try:
        text = data[1:2] in b' \t\r\n"}'
        document: dict[str, Any] = json.loads(data) if text else ubjson.decode(data)
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("The file is not a model: its JSON is nested too deeply.") from None
    except ValueError as error:
        raise ModelFileError(f"The file is not JSON, or it is cut: {error}.") from None
    return document
