"""Keys and values as Arrow arrays of one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError

BINARY = pa.large_binary()
"""Of what is written and read: arrays of it have no bound below memory's."""
_less: Callable[..., Any] = pc.less


def as_binary(data: Any, what: str) -> Any:
    """An array of (large) binaries or strings as `large_binary`; its bytes are not copied.

    Raises:
        SchemaError: it is of another type, or has nulls.
    """
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
    if not any(is_kind(data.type) for is_kind in kinds):
        raise SchemaError(f"{what} of an HFile are of type {data.type}: give binaries or strings")
    if data.null_count:
        raise SchemaError(f"{data.null_count} {what} of an HFile are null")
    if pa.types.is_string(data.type):
        data = data.cast(pa.binary())
    return data if data.type == BINARY else data.cast(BINARY)


def first_disorder(keys: Any) -> int | None:
    """The number of the first key that is not smaller than the next one; None where there is none."""
    ordered = _less(keys.slice(0, len(keys) - 1), keys.slice(1)) if len(keys) > 1 else None
    if ordered is None or ordered.true_count == len(ordered):
        return None
    return int(ordered.index(False).as_py())
