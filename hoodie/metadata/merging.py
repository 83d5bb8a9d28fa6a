"""The records of a file group that replace each other, for its compaction: the newest of each key, as it was written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.partition import Shard, in_order
from hoodie.metadata.payload import encode_record
from hoodie.metadata.slices import HFileRecords, Layer

pc: Any = pyarrow.compute

Flags = Callable[[Any, str], tuple[Any, Any]]
"""Records and their schema -> whether each says that its key is gone, and whether it replaces an older one."""


def merged(layers: Sequence[Layer], schema: str, number: int, flags: Flags) -> Shard:
    """For each key the record of the newest layer that has it, without deleted ones.

    Raises:
        UnsupportedTableError: two records of a key count, neither of which replaces the other.
    """
    keys, values, deletes, alone = [], [], [], []
    for layer in layers:
        if not isinstance(layer, HFileRecords):
            keys.append(layer.keys.cast(BINARY))
            values.append(pa.repeat(pa.scalar(b"", BINARY), len(layer.keys)))
            deletes.append(pa.repeat(True, len(layer.keys)))
            alone.append(pa.repeat(True, len(layer.keys)))
            continue
        for batch in layer.reader.scan():
            records_of_batch = _in_schema(batch.column("value"), layer.schema, schema)
            deleted, replaces = flags(records_of_batch, schema)
            keys.append(batch.column("key").cast(BINARY))
            values.append(records_of_batch.cast(BINARY))
            deletes.append(deleted)
            alone.append(replaces)
    if not keys:
        empty = pa.array([], BINARY)
        return Shard(number, empty, empty)
    every, records = pa.concat_arrays(keys), pa.concat_arrays(values)
    is_gone, is_alone = (pa.concat_arrays(each).to_numpy(zero_copy_only=False) for each in (deletes, alone))
    order = pc.sort_indices(every).to_numpy()  # stable: the newest of a key is the last of it
    sorted_keys = every.take(pa.array(order))
    is_same = pc.equal(sorted_keys.slice(1), sorted_keys.slice(0, len(every) - 1)).to_numpy(zero_copy_only=False)
    older, newer = order[:-1][is_same], order[1:][is_same]
    if (~is_gone[older] & ~is_gone[newer] & ~is_alone[newer]).any():
        raise UnsupportedTableError("it has two records of a file, whose bounds would have to be joined")
    last = order[np.append(~is_same, True)]
    live = pa.array(last[~is_gone[last]])
    return in_order(number, every.take(live), records.take(live))


def _in_schema(values: Any, stored: str, schema: str) -> Any:
    """Records of a writer of another release, in the schema of this file. A row loop, for they have to be written again."""
    if stored == schema or _canonical(stored) == _canonical(schema):
        return values
    parsed = fastavro.parse_schema(json.loads(stored))
    encoded = []
    for value in values.to_pylist():
        record: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed, None, return_named_type=True)
        encoded.append(encode_record(record, schema))
    return pa.array(encoded, BINARY)


def _canonical(schema: str) -> str:
    return fastavro.schema.to_parsing_canonical_form(json.loads(schema))
