"""Indexes that are kept outside of a table, as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.maintenance.base import OpenTable
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.index_rebuild


class Indexes(OpenTable):
    @changes_table
    def rebuild_index(self, options: Mapping[str, str] | None = None) -> int:
        """Put an entry of every row into the index that is kept outside of the table: HBASE, or one of your own.

        Do so where the index has lost entries, where a writer did not keep it, or to give a table such an index: it remembers it from
        then on, and has to be opened again. No write may be at work, and none starts until it is done.

        Args:
            options: those that say which index it is and where, unless the table was opened with them.

        Returns:
            The number of rows.

        Raises:
            OptionError: neither the table nor the options name such an index.
            CommitConflictError: a write is at work.
            KeyIndexError: the index does not answer.

        Example:
            >>> table.rebuild_index({"hoodie.index.class": "places"})
        """
        rows: int = hoodie.services.index_rebuild.rebuild_index(*self._at_work(options))
        return rows
