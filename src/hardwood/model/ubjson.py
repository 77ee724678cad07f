"""UBJSON, the binary form of XGBoost's files: typed arrays become numpy arrays.

A decoder for bytes that nobody vouches for: a length is believed only if the bytes that are left
can hold it, nesting is limited, so memory stays proportional to the input.
"""

import struct
from typing import Any

import numpy as np

from hardwood.errors import ModelFileError

_MAX_DEPTH = 64

# The format is big-endian throughout.
_NUMBERS: dict[bytes, np.dtype[Any]] = {
    b"i": np.dtype("i1"),
    b"U": np.dtype("u1"),
    b"I": np.dtype(">i2"),
    b"l": np.dtype(">i4"),
    b"L": np.dtype(">i8"),
    b"d": np.dtype(">f4"),
    b"D": np.dtype(">f8"),
}
_SCALARS = {
    marker: struct.Struct(">" + code) for marker, code in zip(_NUMBERS, "bBhiqfd", strict=True)
}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _NUMBERS.items()}
_MARKER = {dtype: marker for marker, dtype in _NATIVE.items()}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}


def encode(value: Any) -> bytes:
    """Write dicts, lists, strings, numbers and one-dimensional arrays."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, dict):
        parts.append(b"{")
        for key, item in value.items():
            _write_text(key, parts)
            _write(item, parts)
        parts.append(b"}")
    elif isinstance(value, np.ndarray):
        marker = _MARKER[value.dtype]
        parts.append(b"[$" + marker + b"#L" + struct.pack(">q", len(value)))
        parts.append(value.astype(_NUMBERS[marker]).tobytes())
    elif isinstance(value, list):
        parts.append(b"[#L" + struct.pack(">q", len(value)))
        for item in value:
            _write(item, parts)
    elif isinstance(value, str):
        parts.append(b"S")
        _write_text(value, parts)
    else:
        parts.append(b"L" + struct.pack(">q", value))


def _write_text(text: str, parts: list[bytes]) -> None:
    data = text.encode()
    parts.append(b"L" + struct.pack(">q", len(data)) + data)


def decode(data: bytes) -> Any:
    """Read one value that fills the data; ModelFileError if it is anything else."""
    reader = _Reader(data)
    value = reader.value(reader.take(1), 0)
    if reader.at != len(data):
        raise reader.error(f"{len(data) - reader.at} bytes follow the end")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def error(self, what: str) -> ModelFileError:
        return ModelFileError(f"The file is not UBJSON: {what}, at byte {self.at}.")

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise self.error(
                f"{n} bytes are announced but {len(self.data) - self.at} are left; it may be cut"
            )
        self.at += n
        return self.data[self.at - n : self.at]

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def number(self, marker: bytes) -> int | float:
        scalar = _SCALARS[marker]
        number: int | float = scalar.unpack(self.take(scalar.size))[0]
        return number

    def length(self) -> int:
        marker = self.take(1)
        if marker not in _SCALARS or marker in b"dD":
            raise self.error(f"a length has the type {marker!r}")
        n = int(self.number(marker))
        if n < 0:
            raise self.error(f"the length {n} is negative")
        return n

    def text(self) -> str:
        data = self.take(self.length())
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self.error("a string is not UTF-8") from None

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise self.error(f"it is nested deeper than {_MAX_DEPTH} levels")
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.object(depth)
        if marker == b"S":
            return self.text()
        if marker in _SCALARS:
            return self.number(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise self.error(f"there is no type {marker!r}")

    def array(self, depth: int) -> Any:
        if self.peek() == b"$":
            self.take(1)
            marker = self.take(1)
            if marker not in _NUMBERS:
                raise self.error(f"an array has the type {marker!r}")
            if self.take(1) != b"#":
                raise self.error("a typed array has no length")
            dtype = _NUMBERS[marker]
            data = self.take(self.length() * dtype.itemsize)
            return np.frombuffer(data, dtype).astype(_NATIVE[marker])
        return list(self.items(b"]", lambda: self.value(self.take(1), depth + 1)))

    def object(self, depth: int) -> dict[str, Any]:
        return dict(self.items(b"}", lambda: (self.text(), self.value(self.take(1), depth + 1))))

    def items(self, end: bytes, item: Any) -> Any:
        """The items of a container; each takes at least a byte, so no count outruns the data."""
        if self.peek() == b"#":
            self.take(1)
            for _ in range(self.length()):
                yield item()
            return
        while self.peek() != end:
            yield item()
        self.take(1)
