"""Records of a data block that have one of a few keys: of a block that does not hold them nothing is decoded.

Avro records are not compressed, so the bytes of a key stand in each block that has it: they are searched where keys are few, else the
keys are decoded and no more. Bytes that stand elsewhere, in another column or within a longer key, cost the decoding of their record.
Of a Parquet block the keys are read, and then the other columns where one of them is sought.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.avro_codec import decode_field, decode_records
from hoodie.format.avro_schema import record_type
from hoodie.format.log_content import decode_parquet_data, record_bounds, record_count

_FEW = 2
"""Keys whose bytes are searched. A search costs a third of what the decoding of all keys does."""
_MOST_HITS = 256
"""More of them say that the key is short, and not where it stands."""


def avro_records_with(
    content: memoryview | bytes, schema_text: str, columns: Sequence[str], key: str, keys: pa.Array
) -> tuple[pa.Table | None, int]:
    """The records whose column `key` has one of the texts, or None where there are none; and how many the block has.

    Raises:
        CorruptFileError, UnsupportedTableError: as `decode_avro_data`, of what is looked at.
    """
    count = record_count(content)
    record = record_type(schema_text)
    if key not in (name for name, _ in record.fields):
        raise CorruptFileError(f"an Avro data block has no column {key}")
    hits = _places_of(content, keys)
    if hits is not None and not hits:
        return None, count
    starts, ends = record_bounds(content)
    if hits is None:
        rows = np.flatnonzero(_is_among(decode_field(content, starts, ends, record, key), keys))
    else:
        at = np.unique(np.searchsorted(starts, hits, side="right") - 1)
        at = at[at >= 0]
        rows = at[_is_among(decode_field(content, starts[at], ends[at], record, key), keys)]
    if not len(rows):
        return None, count
    return decode_records(content, starts[rows], ends[rows], record, columns), count


def _places_of(content: memoryview | bytes, keys: pa.Array) -> list[int] | None:
    """Where the bytes of one of the keys stand; None where that is not searched, or too often."""
    if len(keys) > _FEW:
        return None
    data, places = bytes(content), []
    for key in (str(text).encode() for text in keys.to_pylist()):
        at = data.find(key)
        while at >= 0:
            places.append(at)
            if len(places) > _MOST_HITS:
                return None
            at = data.find(key, at + 1)
    return places


def parquet_records_with(
    content: memoryview | bytes, schema_text: str | None, columns: Sequence[str], key: str, keys: pa.Array
) -> tuple[pa.Table | None, int]:
    """As `avro_records_with`, of a Parquet block.

    Raises:
        CorruptFileError: as `decode_parquet_data`.
    """
    stored = decode_parquet_data(content, schema_text, (key,))
    if not stored.num_columns:
        raise CorruptFileError(f"a Parquet data block has no column {key}")
    rows = np.flatnonzero(_is_among(stored.column(0), keys))
    if not len(rows):
        return None, stored.num_rows
    return decode_parquet_data(content, None, columns).take(pa.array(rows)), stored.num_rows


def _is_among(stored: pa.ChunkedArray, keys: pa.Array) -> np.ndarray:
    """For each of the texts; one that is missing is damage, and whoever looks at the record says so."""
    hits = pc.or_(pc.is_in(stored.cast(keys.type), value_set=keys), pc.is_null(stored))
    flags: np.ndarray = hits.to_numpy()
    return flags
