"""Where a value says of itself that it is not there: the marker in the forms that Debezium gives it.

Debezium writes the marker in each column's own type. So a list of texts has it as its one item, and a list of numbers
has its bytes (witness: integration/test_debezium.py).
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def is_unavailable(column: pa.Array | pa.ChunkedArray, marker: str) -> pa.ChunkedArray | None:
    """True for each value that is the marker, never null; None: no value of this type is."""
    kind = column.type
    chunks: Any = [column] if isinstance(column, pa.Array) else column.chunks
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        text = pa.scalar(marker.encode(), pa.binary()).cast(kind)
        return pa.chunked_array([pc.fill_null(pc.equal(each, text), False) for each in chunks], pa.bool_())
    if pa.types.is_list(kind) and (pa.types.is_string(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return pa.chunked_array([_lists(each, marker) for each in chunks], pa.bool_())
    return None


def forms_in_text(marker: str) -> list[str]:
    """What the marker is in texts of JSON: of text, of bytes, and of hstore."""
    return [marker, _base64(marker), f'{{"{marker}":"{marker}"}}']


def _lists(lists: pa.ListArray, marker: str) -> pa.Array:
    is_text = pa.types.is_string(lists.type.value_type)
    wanted = np.frombuffer(marker.encode(), np.uint8)
    size = 1 if is_text else len(wanted)
    places = pc.indices_nonzero(pc.equal(pc.list_value_length(lists), size))
    items = lists.take(places).flatten()
    if is_text:
        same = pc.is_in(items, value_set=pa.array([marker, _base64(marker), _as_uuid(marker)]))
    else:
        same = pc.equal(items, pa.array(np.tile(wanted, len(places))).cast(items.type))
    found = np.zeros(len(lists), bool)
    found[places.to_numpy()] = np.asarray(pc.fill_null(same, False), bool).reshape(-1, size).all(axis=1)
    return pa.array(found)


def _base64(marker: str) -> str:
    return base64.b64encode(marker.encode()).decode()


def _as_uuid(marker: str) -> str:
    """As Java names a UUID by bytes."""
    return str(uuid.UUID(bytes=hashlib.md5(marker.encode(), usedforsecurity=False).digest(), version=3))
