"""An index that is kept outside of a table: what it has to do, and what an entry of it says."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

INSTANT_TIME, PARTITION_PATH, FILE_ID = "instant_time", "partition_path", "file_id"
PLACES = pa.schema([(name, pa.string()) for name in (INSTANT_TIME, PARTITION_PATH, FILE_ID)])
"""Where a key stands: in which file group of which partition, and the commit that put the entry."""


class KeyIndex(Protocol):
    """Where keys stand, kept outside of the table. A record key is unique in the whole table.

    It is called in batches, on several threads, and on Spark by the tasks: there it is pickled, so what it knows has to be where all
    of them reach it. Calls come again after a failure, with the same values. An error ends the write, of which nothing is visible.

    A write puts its entries before its commit is completed. Whether an entry counts the table decides: one of a commit that failed or
    was rolled back, or of a file group that is not there any more, leads to a look into the files.
    """

    def look_up(self, keys: pa.Array) -> pa.Table:
        """What was put last of each of the record keys, which are all different.

        Returns:
            A row for each key, in their order, with the columns `instant_time`, `partition_path` and `file_id`: all null where
            nothing was put, or where that was deleted.
        """

    def put(self, keys: pa.Array, places: pa.Table) -> None:
        """Take note of where keys stand, in place of what was noted before; `places` as `look_up` gives them."""

    def delete(self, keys: pa.Array) -> None:
        """Forget keys; some may not be known."""
