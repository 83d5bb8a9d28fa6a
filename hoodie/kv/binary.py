"""Arrow arrays of bytes, whose stubs say little."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

KEYS, VALUES = pa.binary(), pa.large_binary()
Binary: TypeAlias = "pa.Array[Any]"


def listed(array: Binary) -> list[Any]:
    """Its entries: bytes, or None."""
    found: list[Any] = array.to_pylist()
    return found
