"""Rows that are images, as small pictures for the page."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray, as_table

_MOST_SHOWN = 8


def image_rows(content: dict[str, Any], X: Any, shape: tuple[int, int]) -> dict[str, Any]:
    """The most fragile rows as images: the row, the example, and what changed."""
    table = as_table(X)
    height, width = shape
    if height * width != table.shape[1]:
        raise ValueError(
            f"image={shape} has {height * width} pixels but X has {table.shape[1]} columns; give "
            f"the height and width of one row."
        )
    names = content["columns"]
    position = {name: at for at, name in enumerate(names)}
    low, high = float(np.nanmin(table)), float(np.nanmax(table))
    shown = []
    for one in content["fragile"][:_MOST_SHOWN]:
        row = table[one["row"]]
        changed = row.copy()
        for change in one["changes"]:
            changed[position[change["column"]]] = np.nan if change["to"] is None else change["to"]
        shown.append(
            {
                "row": one["row"],
                "label": one["label"],
                "becomes": one["becomes"],
                "before": _grey(row.reshape(shape), low, high),
                "after": _grey(changed.reshape(shape), low, high),
                "change": _signed((changed - row).reshape(shape)),
            }
        )
    return {"height": height, "width": width, "shown": shown}


def _grey(image: FloatArray, low: float, high: float) -> str:
    scaled = (np.nan_to_num(image, nan=low) - low) / max(high - low, 1e-300)
    level = np.clip(scaled * 255, 0, 255).astype(np.uint8)
    return _png(np.repeat(level[:, :, None], 3, axis=2))


def _signed(step: FloatArray) -> str:
    """Up in orange, down in blue, nothing in white."""
    size = np.nan_to_num(step) / max(float(np.nanmax(np.abs(step))), 1e-300)
    up, down = np.array([194, 89, 10]), np.array([30, 96, 170])
    hue = np.where(size[:, :, None] > 0, up, down)
    strength = np.sqrt(np.abs(size))[:, :, None]
    return _png((255 - strength * (255 - hue)).astype(np.uint8))


def _png(pixels: npt.NDArray[np.uint8]) -> str:
    """A PNG file as a data address; no library is needed for plain RGB."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    lines = b"".join(b"\x00" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    file += chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(file).decode()
