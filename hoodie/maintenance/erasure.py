"""Erasure as a method: deletes rows from every file, not only from queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import hoodie.repair
import hoodie.services
from hoodie.errors import CommitConflictError
from hoodie.maintenance.cleaning import Cleans
from hoodie.maintenance.compaction import Compactions
from hoodie.maintenance.savepoints import Savepoints
from hoodie.model.enums import TableType
from hoodie.model.instant import InstantTime
from hoodie.model.results import CommitResult, EraseResult
from hoodie.options.table import TableConfig
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.repair.set_aside
    import hoodie.services.archiving


class Erasure(Compactions, Cleans, Savepoints):
    @abstractmethod
    def delete(self, data: Any = None, options: Mapping[str, str] | None = None) -> CommitResult: ...

    @changes_table
    def erase(self, keys: Any, options: Mapping[str, str] | None = None) -> EraseResult:
        """Delete rows and remove them from every file: compact logs, clean older versions, archive the commits before.

        Afterwards earlier states of the table are not readable, and pulls must start again. docs/ERASURE.md says where deleted rows
        are, and how to erase many at once.

        Args:
            keys: as `delete` takes them; without partition columns the rows are found in all partitions.
            options: Hudi's write options.

        Returns:
            The counts, and `remaining`: the places that may still hold the rows. It is true if there are none.

        Raises:
            CommitConflictError: a savepoint keeps older files. Nothing was done.
            OptionError, SchemaError, KeyFieldError: as `delete` has them.

        Example:
            >>> assert table.erase(["ann@example.org"])
        """
        savepoint_times = [each.instant for each in self.savepoints()]
        if savepoint_times:
            raise CommitConflictError(
                f"savepoints of table {self.uri} keep older files with the rows: {', '.join(savepoint_times)}; nothing was done, "
                "drop them first (drop_savepoint)"
            )
        if isinstance(keys, Iterator | pa.RecordBatchReader):
            keys = list(keys)  # more than one delete reads them
        context, write = self._at_work(options)
        deletes = list(self._deletes(keys, options, context.config))
        last = next((each for each in reversed(deletes) if each.deleted), deletes[0])
        newest = context.active.load().latest_commit  # came after an earlier delete of these rows
        before = None if newest is None else InstantTime(last.instant or newest.time)
        cleaned = self.clean(options, retain_versions=1)
        timeline = context.active.load()
        stay = sum(before is not None and commit.time >= before for commit in timeline.commits)
        keep = replace(write.archiving, min_commits=stay, max_commits=stay)
        # Archiving leaves the commits by which a compaction would be due: of one commit it is told by the newest.
        soon = replace(write.compaction, max_delta_commits=1)
        archived = hoodie.services.archiving.archive(context, replace(write, archiving=keep, compaction=soon))
        return EraseResult(
            last.instant,
            sum(each.deleted for each in deletes),
            cleaned.files,
            len(archived.instants),
            hoodie.repair.set_aside.remains(context, before),
        )

    def _deletes(self, keys: Any, options: Mapping[str, str] | None, config: TableConfig) -> Iterator[CommitResult]:
        """Delete and compact until no row has one of the keys: inserts store a key again, and a delete takes one row of each file."""
        while True:
            deleted = self.delete(keys, options)
            yield deleted
            if config.table_type is TableType.MERGE_ON_READ:
                self.compact(options, strategy="unbounded")
                if config.buckets is not None:  # inserts store no key again there, and deletes of unknown keys count
                    return
            if not deleted.deleted:
                return
