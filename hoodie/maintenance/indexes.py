"""Indexes of a table as methods: what there is, and how they are built, checked and dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hoodie.repair
import hoodie.services
from hoodie.maintenance.base import OpenTable
from hoodie.options.values import OUTSIDE_INDEXES
from hoodie.storage.refusals import hoodie_errors, plain_errors
from hoodie.txn.heartbeat import changes_table
from hoodie.view.context import TableContext

if TYPE_CHECKING:
    import hoodie.repair.index_check
    import hoodie.services.index_build
    import hoodie.services.index_look
    import hoodie.services.index_rebuild
    from hoodie.model.index_results import IndexCheck, IndexInfo


@dataclass(frozen=True)
class TableIndex:
    """One index of a table, by its name."""

    name: str
    _context: TableContext

    def check(self) -> IndexCheck:
        """Check whether the index agrees with the files of the table. Reads all of the index, and all footers or all record keys.

        Returns:
            What was looked up, and where the index says something else; it is true if it agrees.

        Raises:
            OptionError: the table has no such index, or it is no partition of the metadata table.

        Example:
            >>> assert table.index("record_index").check()
        """
        with plain_errors(self._context.storage.uri):
            return hoodie.repair.index_check.check_index(self._context, self.name)


class Indexes(OpenTable):
    @hoodie_errors
    def indexes(self) -> list[IndexInfo]:
        """The index that upserts use, and the partitions of the metadata table: state, size, coverage, age and use.

        Returns:
            First the index of keys, under its name in `hoodie.index.type`; then the partitions, unfinished ones last.

        Example:
            >>> for index in table.indexes():
            ...     print(index)
        """
        return hoodie.services.index_look.describe_indexes(*self._at_work())

    def index(self, name: str) -> TableIndex:
        """One index of the table, to check it.

        Args:
            name: as `indexes()` has it.

        Returns:
            The index. Nothing is read.

        Example:
            >>> table.index("column_stats").check().problems
        """
        return TableIndex(name, self._at_work()[0])

    @changes_table
    def build_index(self, name: str, options: Mapping[str, str] | None = None) -> str | None:
        """Build an index of an existing table while its writers go on. From then on the writes of every process maintain it.

        The build reads files without the lock; at the end it takes the lock and reads files that were written meanwhile. If the table
        has no metadata table, the build first creates one, at a moment when no write is pending.

        Args:
            name: a partition of the metadata table: "files", "column_stats", "bloom_filters", "record_index", or for tables of
                version 8 or 9 "partition_stats", "expr_index_…", and "secondary_index_…", which needs "record_index". The name of an
                index outside of the table, such as "HBASE", means `rebuild_index`.
            options: of the index, such as `hoodie.metadata.index.column.stats.column.list`; `hoodie.metadata.index.secondary.column`
                is the column of a secondary index, unless its name is that of the column; `hoodie.metadata.index.expression.column`
                and `…options` that of an expression index, and what is made of it.

        Returns:
            The instant of the action `indexing`; None if the index exists already, and for "files", which has none.

        Raises:
            OptionError: there is no such index, or the options say that it is dropped.
            CommitConflictError: another process builds it, or cleans, rollbacks or, for the first index, writes were at work all the
                time (`hoodie.metadata.index.check.timeout.seconds`).
            UnsupportedTableError: a key is in several file groups, so that there can be no record index; the column's type has no
                secondary index, or the values of the expression are not known outside of Spark; or the table's version has a metadata
                table that this release does not write.

        Example:
            >>> table.build_index("record_index")
            >>> table.build_index("secondary_index_by_city", {"hoodie.metadata.index.secondary.column": "city"})
            >>> by_day = {"hoodie.metadata.index.expression.column": "ts", "hoodie.metadata.index.expression.options": "expr=year"}
            >>> table.build_index("expr_index_by_year", by_day)
        """
        at_work = self._at_work(options)
        if name in OUTSIDE_INDEXES:
            hoodie.services.index_rebuild.rebuild_index(*at_work)
            return None
        built: str | None = hoodie.services.index_build.build_index(at_work[0], name)
        return built

    @changes_table
    def drop_index(self, name: str) -> bool:
        """Drop a partition of the metadata table, or with "files" all of it. "record_index" also drops the secondary indexes. Writes
        whose options ask for the index build it again.

        A plan of Apache Hudi to build it is dropped, too.

        Args:
            name: as `indexes()` has it.

        Returns:
            Whether there was one.

        Raises:
            CommitConflictError: a process builds it right now.

        Example:
            >>> table.drop_index("bloom_filters")
        """
        dropped: bool = hoodie.services.index_build.drop_index(self._at_work()[0], name)
        return dropped

    @changes_table
    def rebuild_index(self, options: Mapping[str, str] | None = None) -> int:
        """Put an entry of every row into the index that is kept outside of the table: HBASE, or one of your own.

        Do so if the index has lost entries, if a writer did not maintain it, or to add such an index to a table: the table remembers
        it from then on, and must be opened again. No write may be pending, and none starts until it is done.

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
