"""Migration by copying: steps that each say how far they have come in their commit, and a comparison of all rows at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.hashes.of_values import mixed, value_hashes
from hoodie.migration.progress import KEY, Checkpoint, newest, start_of, steps
from hoodie.migration.source import MigrationSource, Rows, described
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
        counted = _CountingReader(rows.reader(step))
        commit = table.writer.write(
            counted.reader, rows.schema, WriteOperation.BULK_INSERT, write, engine=table._context.engine
        )
        seconds = time.monotonic() - started_s
        yield MigrationStep(after.step, len(step), after.done, len(pieces), counted.rows, commit.instant, seconds)


class _CountingReader:
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


ROWS = "*"


class Digest:
    """Of the batches that `add` was given."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._names = schema.names
        self.nulls = dict.fromkeys([*schema.names, ROWS], 0)
        self._sums = {name: np.uint64(0) for name in self.nulls}

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        whole = np.zeros(batch.num_rows, np.uint64)
        with np.errstate(over="ignore"):
            for number, name in enumerate(self._names):
                column = batch.column(batch.schema.get_field_index(name))
                self.nulls[name] += column.null_count
                hashes = mixed(value_hashes(column), number)
                self._sums[name] += hashes.sum(dtype=np.uint64)
                whole += hashes
            self._sums[ROWS] += mixed(whole).sum(dtype=np.uint64)

    def hash_of(self, name: str) -> str:
        return f"{int(self._sums[name]):016x}"


def digest(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Digest:
    """Of rows in the types of the schema."""
    result = Digest(schema)
    for batch in batches:
        result.add(batch)
    return result


def compared(source: Digest, target: Digest) -> tuple[ColumnCheck, ...]:
    """Whole rows first, then each column."""
    names = [ROWS, *(name for name in source.nulls if name != ROWS)]
    return tuple(
        ColumnCheck(name, source.nulls[name], target.nulls[name], source.hash_of(name), target.hash_of(name))
        for name in names
    )
