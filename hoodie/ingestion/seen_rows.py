"""Which rows a source has given before, of those that it looks at again: by a hash of each, in the checkpoint.

A row that has changed has another hash, and is given again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hashes.murmur import murmur_of_rows

_Hashes = npt.NDArray[np.uint64]
_MOST = 4096
"""So many hashes are kept in a commit, 44 kB. Of more rows only their sum is kept, which tells whether there is a new one."""
_ODD, _OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class Unseen(NamedTuple):
    """Of rows that are looked at again, those that are given."""

    rows: pa.Table
    repeats: bool = False
    """Some of them may have been given before."""


def note_rows(rows: pa.Table) -> Mapping[str, object]:
    """What is kept of these rows, as JSON has it."""
    hashes = np.unique(row_hashes(rows))
    if len(hashes) <= _MOST:
        return {"rows": base64.b64encode(hashes.astype("<u8").tobytes()).decode()}
    return {"count": len(hashes), "sum": _sum(hashes)}


def without_noted(rows: pa.Table, noted: object) -> Unseen:
    """The rows without those that `note_rows` was given."""
    known: Mapping[str, Any] = noted if isinstance(noted, dict) else {}
    if not rows.num_rows or not known:
        return Unseen(rows)
    hashes = row_hashes(rows)
    if "rows" in known:
        seen = np.frombuffer(base64.b64decode(known["rows"]), "<u8")
        return Unseen(rows.filter(pa.array(~np.isin(hashes, seen))))
    distinct = np.unique(hashes)
    if len(distinct) == known.get("count") and _sum(distinct) == known.get("sum"):
        return Unseen(rows.slice(0, 0))
    return Unseen(rows, repeats=True)


def row_hashes(rows: pa.Table) -> _Hashes:
    """64 bits of each row. The order of columns does not count, nor do columns in which a row has null: a new column of nulls
    changes no hash.
    """
    total = np.zeros(rows.num_rows, np.uint64)
    for name in rows.schema.names:
        column = rows.column(name)
        first, second = murmur_of_rows(_bytes(column))
        by_name = np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))
        mixed = ((first.astype(np.uint64) << np.uint64(32)) | second) ^ by_name
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ODD
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _OTHER_ODD
        total += np.where(pc.is_valid(column).to_numpy(), mixed, np.uint64(0))
    return total


def _bytes(column: pa.ChunkedArray) -> pa.Array:
    """The values as `large_binary`, null as empty."""
    kind = column.type
    if pa.types.is_nested(kind):
        # Arrow writes no texts of lists. They are few: these are the rows at the border of a round only.
        texts: Any = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    elif pa.types.is_temporal(kind) and not pa.types.is_date32(kind):
        texts = pc.cast(pc.cast(column, pa.int64()), pa.string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        texts = column
    else:
        texts = pc.cast(column, pa.string())
    made = pc.fill_null(pc.cast(texts, pa.large_binary()), b"")
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _sum(hashes: _Hashes) -> str:
    return str(int(hashes.sum(dtype=np.uint64)))
