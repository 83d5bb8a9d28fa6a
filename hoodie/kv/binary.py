"""Arrow arrays of bytes, whose stubs say little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from hoodie.errors import OptionError

KEYS, VALUES = pa.binary(), pa.large_binary()
Binary: TypeAlias = "pa.Array[Any]"
Many: TypeAlias = "Binary | Sequence[bytes | None]"


def as_bytes(data: object, act: str) -> bytes:
    """A key or a value.

    Raises:
        OptionError: it is not bytes-like.
    """
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = f"; {data!r:.60}.encode() gives them" if isinstance(data, str) else ""
    raise OptionError(f"{act} takes bytes, not {type(data).__name__}: encode them first{hint}")


def as_array(data: Any, kind: pa.DataType, what: str) -> Binary:
    """Keys or values: an Arrow array, or a list of bytes-like objects.

    Raises:
        OptionError: neither, or one of another type.
    """
    if isinstance(data, list | tuple):
        return pa.array([None if each is None else as_bytes(each, what) for each in data], kind)
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if not isinstance(data, pa.Array):
        raise OptionError(f"{what} are neither a list of bytes nor an Arrow array, but {type(data).__name__}")
    if not (pa.types.is_null(data.type) or any(is_a(data.type) for is_a in _BINARY)):
        raise OptionError(f"{what} are {data.type}, not binary: encode them first")
    result: Binary = data.cast(kind)
    return result


_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


def listed(array: Binary) -> list[Any]:
    """Its entries: bytes, or None."""
    result: list[Any] = array.to_pylist()
    return result
