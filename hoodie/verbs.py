"""What an open table tells of itself and its verbs that write, with one set of signatures: embedded and on Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

import hoodie.metadata
import hoodie.read
from hoodie.errors import OptionError
from hoodie.format.variants import shown_schema
from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant
from hoodie.model.names import is_partition_path
from hoodie.model.results import CommitResult, History
from hoodie.options.arguments import append_options, parse_options, parse_partitions
from hoodie.options.option import option_name
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.storage.refusals import with_hoodie_errors
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.view.context import TableContext

if TYPE_CHECKING:
    import hoodie.metadata.listing
    import hoodie.read.where
    from hoodie.read.where import Where

Data = TypeVar("Data")


@with_hoodie_errors
class TableVerbs(ABC, Generic[Data]):
    """`Data` is what the writes take: `Rows`, or a DataFrame of Spark."""

    @property
    @abstractmethod
    def _context(self) -> TableContext: ...

    @abstractmethod
    def _write(self, data: Data, operation: WriteOperation, options: Mapping[str, str] | None) -> CommitResult: ...

    @abstractmethod
    def _keys(self, data: Data | Collection[object]) -> Data:
        """Key columns, which may be given as a list of bare keys."""

    @abstractmethod
    def _delete_by(self, where: Where | None, options: Mapping[str, str] | None) -> CommitResult: ...

    @abstractmethod
    def _delete_partitions(self, paths: tuple[str, ...], options: Mapping[str, str] | None) -> CommitResult: ...

    # -- what the table is -------------------------------------------------------------------------------------------

    @property
    def config(self) -> TableConfig:
        """What `hoodie.properties` says of the table: its type and version, key, partition and ordering columns, and more."""
        return self._context.config

    @property
    def uri(self) -> str:
        """The table's address."""
        return self._context.storage.uri

    @property
    def schema(self) -> pa.Schema | None:
        """The table's columns, without the `_hoodie_` columns.

        None as long as nothing has stated them: the table was created without a schema, and nothing was written yet.
        """
        schema = self._context.snapshot().schema
        return None if schema is None else shown_schema(schema)

    @property
    def timeline(self) -> Timeline:
        """The active timeline as it is now: the instants of commits, compactions and rollbacks, and how far each has come."""
        return self._context.snapshot().timeline

    def partitions(self) -> tuple[str, ...]:
        """The paths of the partitions that have rows, sorted; one empty path where the table is not partitioned."""
        slices = self._for_queries.ask(lambda snapshot: snapshot.view.counted_slices(None))
        return tuple(sorted({each.group.partition_path for each in slices}))

    def files(self, partition: str | None = None) -> list[FileSlice]:
        """The newest file slice of each file group: its base file, and the log files that were written since.

        Args:
            partition: the path of one partition, whose folder alone is listed then; None: of all.

        Raises:
            OptionError: `partition` is no path of a partition.

        Example:
            >>> sum(piece.size_bytes for piece in table.files())
        """
        if partition is not None and not (type(partition) is str and is_partition_path(partition)):
            raise OptionError(
                f"files(partition={partition!r:.200}): give the path of a partition, as partitions() has it"
            )
        paths = None if partition is None else [partition]
        return self._for_queries.ask(lambda snapshot: snapshot.view.counted_slices(paths))

    @property
    def _for_queries(self) -> TableContext:
        """With the files by the metadata table where there is one; else that room need not be imported."""
        context = self._context
        return hoodie.metadata.listing.by_metadata(context) if context.config.metadata_partitions else context

    def archived_instants(self) -> tuple[Instant, ...]:
        """The completed instants that were moved off the active timeline, oldest first."""
        there = {(instant.time, instant.action) for instant in self.timeline}
        return tuple(i for i in self._context.archived().instants if (i.time, i.action) not in there)

    def history(self, *, archived: bool = False) -> History:
        """What each completed commit did, oldest first.

        Args:
            archived: also list commits that were moved to the archived timeline.

        Returns:
            A list of `CommitResult`, of which a notebook shows a table.

        Example:
            >>> table.history()[-1].inserted
        """
        active, commits = self._context.active, self.timeline.commits
        older = [i for i in self.archived_instants() if i.action in WRITES] if archived else []
        old = self._context.archived().read_commits(older)
        metadata = [*((i, old[i.time]) for i in older), *((i, active.read_commit(i)) for i in commits)]
        metadata.sort(key=lambda each: each[0].time)  # the commit of a savepoint may have stayed for longer
        return History(
            CommitResult.of(i.time, m.operation, m.stats(), replaced=m.replaced_file_ids, completed=i.completion)
            for i, m in metadata
        )

    # -- writing -----------------------------------------------------------------------------------------------------

    def upsert(
        self, data: Data, options: Mapping[str, str] | None = None, *, partial: bool | None = None
    ) -> CommitResult:
        """Insert rows whose key is new, and replace the stored rows of all other keys.

        With an ordering column a stored row that has a greater value stays; without one the row that is written later wins.

        Args:
            data: Arrow data, a frame of pandas or polars, a dict of columns, a list of dicts, and more: see `Rows`. On Spark a
                DataFrame.
            options: Hudi's write options, for this write (docs/OPTIONS.md).
            partial: replace only the columns that the data has; new rows have null in the others.

        Returns:
            What the write did. Its `instant` is None when there was no row to write.

        Raises:
            SchemaError: the data does not fit the columns of the table.
            KeyFieldError: a key, partition or ordering column is missing, or null where it must not be.
            CommitConflictError: other writers changed the same files first, ten times in a row.
            CommitOutcomeUnknownError: the storage did not say whether the commit landed: look before you write again.

        Example:
            >>> table.upsert([{"id": "a", "fare": 9.5, "ts": 2}])
        """
        partial_option = {} if partial is None else {option_name(WriteOptions, "partial"): str(partial)}
        return self._write(data, WriteOperation.UPSERT, {**parse_options(options), **partial_option})

    def insert(self, data: Data, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows without looking up their keys, unless an option says what to do with stored ones.

        A key that is stored twice stays so: later upserts and deletes change one of its rows in each file group that has it.

        Args:
            data: the rows, as `upsert` takes them.
            options: Hudi's write options, for this write.

        Returns:
            What the write did.

        Raises:
            DuplicateKeyError: an option says that stored keys are an error, and there is one. Others as `upsert` has them.
        """
        return self._write(data, WriteOperation.INSERT, options)

    def bulk_insert(self, data: Data, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows into new files only, which is the fastest way to load a table for the first time.

        Args:
            data: the rows, as `upsert` takes them.
            options: Hudi's write options, for this write.

        Returns:
            What the write did.

        Raises:
            SchemaError, KeyFieldError: as `upsert` has them.
        """
        return self._write(data, WriteOperation.BULK_INSERT, options)

    def append(self, data: Data, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows without looking up keys or rewriting existing files, even if the rows are few.

        This is what `mode="append"` does in other systems: a bulk insert that never looks up keys, whatever the options say. If a key
        is already stored, the table has it twice afterwards. Each append writes a file in each of its partitions; `cluster()` merges
        small files.

        Args:
            data: the rows, as `upsert` takes them.
            options: Hudi's write options, for this write.

        Returns:
            What the write did.

        Raises:
            SchemaError, KeyFieldError: as `upsert` has them.

        Example:
            >>> table.append([{"id": "a", "fare": 9.5, "ts": 2}])
        """
        return self._write(data, WriteOperation.BULK_INSERT, {**parse_options(options), **append_options()})

    def delete(
        self,
        data: Data | Collection[object] | None = None,
        options: Mapping[str, str] | None = None,
        *,
        where: Where | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Delete rows: those with the given keys, or those that a condition finds.

        Args:
            data: the key and partition columns of the rows, in any form that `upsert` takes, or a list of bare keys; more columns are
                ignored. Without partition columns the rows are looked for in all partitions.
            options: Hudi's write options, for this write.
            where: a condition instead of keys, as `scan` takes it.
            params: values for the parameters of the condition: `where="fare > :low", params={"low": 3}`.

        Returns:
            What the write did; its `deleted` says how many rows are gone.

        Raises:
            OptionError: both keys and a condition were given, or neither, or the condition cannot be understood.
            KeyFieldError: a key column is missing in the data, or some of several partition columns are.

        Example:
            >>> table.delete([{"id": "a", "city": "rome"}])
            >>> table.delete(["a", "b"])
            >>> table.delete(where="ts < 1000")
        """
        if (data is None) == (where is None):
            raise OptionError("delete takes either keys or where=…, exactly one of them")
        if data is not None:
            return self._write(self._keys(data), WriteOperation.DELETE, options)
        return self._delete_by(hoodie.read.where.bound(where, params), options)

    def insert_overwrite(self, data: Data, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the partitions of the data; without rows nothing changes.

        Args:
            data: the rows, as `upsert` takes them.
            options: Hudi's write options, for this write.

        Returns:
            What the write did; its `replaced` counts the replaced file groups.
        """
        return self._write(data, WriteOperation.INSERT_OVERWRITE, options)

    def insert_overwrite_table(self, data: Data, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the table; when the data has no rows, the table is empty afterwards.

        Args:
            data: the rows, as `upsert` takes them.
            options: Hudi's write options, for this write.

        Returns:
            What the write did. Earlier states can still be read with `scan(as_of=…)` until their files are cleaned.
        """
        return self._write(data, WriteOperation.INSERT_OVERWRITE_TABLE, options)

    def delete_partitions(self, partitions: Sequence[str], options: Mapping[str, str] | None = None) -> CommitResult:
        """Delete all rows of the given partitions.

        Args:
            partitions: paths as `partitions()` lists them; `*` stands for any text. Paths that do not exist are ignored.
            options: Hudi's write options, for this write.

        Returns:
            What the write did; deleted rows are not counted, because no file is opened.

        Raises:
            OptionError: this is not a list of paths, or the table is empty.

        Example:
            >>> table.delete_partitions(["city=rome", "city=o*"])
        """
        return self._delete_partitions(parse_partitions(partitions), options)
