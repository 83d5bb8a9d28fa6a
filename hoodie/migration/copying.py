"""Migration by copying: the rows of some files after those of others, each step one commit that says how far it has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.migration.check import Digest, compared, digest
from hoodie.migration.progress import KEY, Checkpoint, newest, start_of, steps
from hoodie.migration.rows import Rows
from hoodie.migration.source import MigrationSource, described
from hoodie.model.enums import WriteOperation
from hoodie.model.migration_results import ColumnCheck, MigrationStep
from hoodie.options.arguments import append_options
from hoodie.table import HoodieTable


def where_it_is(
    table: HoodieTable, open_source: Callable[[str | None], MigrationSource]
) -> tuple[MigrationSource, Checkpoint]:
    """The source, at the version that an earlier run has begun with, and up to where the table has it.

    Raises:
        OptionError: the table has rows that are not of this source, or the source has changed.
    """
    snapshot = table._context.snapshot()
    checkpoint = newest(snapshot)
    if checkpoint is None:
        if snapshot.timeline.commits:
            raise OptionError(
                f"table {table.uri} has rows, and no migration has written it: migrate into a folder that is not there yet, or add "
                "the rows by hoodie.ingest"
            )
        source = open_source(None)
        return source, start_of(source)
    source = open_source(checkpoint.version)
    first = start_of(source)
    if (checkpoint.format, checkpoint.identity) != (first.format, first.identity):
        raise OptionError(
            f"table {table.uri} has {checkpoint.done} files of the {checkpoint.format} source {checkpoint.source}, and the "
            f"{described(source)} has other files than that had: migrate into another folder"
        )
    return source, checkpoint


def copy_steps(table: HoodieTable, rows: Rows, step_bytes: int, options: Mapping[str, str]) -> Iterator[MigrationStep]:
    """Write what the table has not yet, step by step. Two processes that do so at once write each step once."""
    pieces = tuple(rows.source.pieces)
    while True:
        started_s = time.monotonic()
        at = newest(table._context.snapshot()) or start_of(rows.source)
        step = next(steps(pieces[at.done :], step_bytes), None)
        if step is None:
            return
        after = replace(at, step=at.step + 1, done=at.done + len(step))
        write = table._request_for(WriteOperation.BULK_INSERT, {**options, **append_options()}).write
        entries = {**write.commit_entries, **after.entries}
        write = replace(write, commit_entries=entries, commits_empty=True, stream=after.batch)
        counted = _Counted(rows.reader(step))
        commit = table.writer.write(
            counted.reader, rows.schema, WriteOperation.BULK_INSERT, write, engine=table._context.engine
        )
        seconds = time.monotonic() - started_s
        yield MigrationStep(after.step, len(step), after.done, len(pieces), counted.rows, commit.instant, seconds)


class _Counted:
    """A reader that knows how many rows it gave."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.rows = 0
        self.reader = pa.RecordBatchReader.from_batches(reader.schema, self._counted(reader))

    def _counted(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            self.rows += batch.num_rows
            yield batch


class Check(NamedTuple):
    source_rows: int
    target_rows: int
    columns: tuple[ColumnCheck, ...]


def check(table: HoodieTable, rows: Rows) -> Check:
    """Read the source and the table once more, as the last step left it."""
    source = digest(rows.reader(rows.source.pieces), rows.schema)
    target = Digest(rows.schema)
    for batch in table.scan(rows.schema.names, as_of=_last_step(table)).to_reader():
        target.add(batch)
    return Check(source.rows, target.rows, compared(source, target))


def _last_step(table: HoodieTable) -> str:
    """The instant of the last commit of the migration: others may have written since."""
    snapshot = table._context.snapshot()
    return next(i.time for i in reversed(snapshot.timeline.commits) if KEY in snapshot.active.read_commit(i).extra)
