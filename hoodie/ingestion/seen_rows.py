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

from hoodie.hashes.of_values import mixed, value_hashes

_Hashes = npt.NDArray[np.uint64]
_MOST = 4096
"""So many hashes are kept in a commit, 44 kB. Of more rows only their sum is kept, which tells whether there is a new one."""


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
    note: Mapping[str, Any] = noted if isinstance(noted, dict) else {}
    if not rows.num_rows or not note:
        return Unseen(rows)
    hashes = row_hashes(rows)
    if "rows" in note:
        old_hashes = np.frombuffer(base64.b64decode(note["rows"]), "<u8")
        return Unseen(rows.filter(pa.array(~np.isin(hashes, old_hashes))))
    distinct = np.unique(hashes)
    if len(distinct) == note.get("count") and _sum(distinct) == note.get("sum"):
        return Unseen(rows.slice(0, 0))
    return Unseen(rows, repeats=True)


def row_hashes(rows: pa.Table) -> _Hashes:
    """64 bits of each row. The order of columns does not count, nor do columns in which a row has null: a new column of nulls
    changes no hash.
    """
    total = np.zeros(rows.num_rows, np.uint64)
    for name in rows.schema.names:
        column = rows.column(name)
        of_name = np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))
        hashes = mixed(value_hashes(column) ^ of_name)
        total += np.where(pc.is_valid(column).to_numpy(), hashes, np.uint64(0))
    return total


def _sum(hashes: _Hashes) -> str:
    return str(int(hashes.sum(dtype=np.uint64)))
