"""An index that is kept outside of a table: what it has to do, and what an entry of it says."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

INSTANT_TIME, PARTITION_PATH, FILE_ID = "instant_time", "partition_path", "file_id"
PLACES = pa.schema([(name, pa.string()) for name in (INSTANT_TIME, PARTITION_PATH, FILE_ID)])
"""Where a key stands: in which file group of which partition, and the commit that put the entry."""


class KeyIndex(Protocol):
    """Where record keys are stored, kept outside of the table. A record key is unique in the whole table.

    hoodie calls it in batches, on several threads, and on Spark in tasks: there it is pickled, so its data must be where all tasks
    reach it. After a failure calls are repeated with the same values. If a method raises an error, the write fails, and nothing of it
    is visible.

    A write puts its entries before its commit is completed. The table decides whether an entry is valid: if its commit failed or was
    rolled back, or its file group no longer exists, hoodie looks up the key in the files.
    """

    def look_up(self, keys: pa.Array) -> pa.Table:
        """The last entry of each of the record keys, which are all different.

        Returns:
            A row for each key, in their order, with the columns `instant_time`, `partition_path` and `file_id`: all null where
            nothing was put, or where that was deleted.
        """

    def put(self, keys: pa.Array, places: pa.Table) -> None:
        """Store where keys are, in place of earlier entries; `places` as `look_up` returns them."""

    def delete(self, keys: pa.Array) -> None:
        """Remove keys; some may have no entry."""
