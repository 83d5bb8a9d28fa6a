"""`hoodie.migrate`: arguments become steps, and these a result."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

import hoodie.write.keys
import hoodie.write.schema
from hoodie.errors import DuplicateKeyError, KeyFieldError, OptionError
from hoodie.hashes.of_keys import key_hash
from hoodie.hashes.of_values import mixed
from hoodie.keygen.generator import KeyGenerator
from hoodie.migration.as_files import as_files
from hoodie.migration.copying import check as checked
from hoodie.migration.copying import copy_steps, where_it_is
from hoodie.migration.in_place import InPlace, options_of, require_in_place, version_begun
from hoodie.migration.parquet_source import ParquetSource
from hoodie.migration.progress import start_of, steps
from hoodie.migration.source import MigrationSource, Rows, described
from hoodie.migration.sources import opener_of
from hoodie.model.enums import WriteOperation
from hoodie.model.migration_results import MigrationResult, MigrationStep
from hoodie.model.names import BOOTSTRAP_BEGUN
from hoodie.model.results import format_count
from hoodie.options.arguments import parse_names, parse_options
from hoodie.options.table import TableConfig
from hoodie.storage.refusals import plain_errors
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, create_table, is_table, open_table

MODES = ("copy", "in_place")
STEP_BYTES = 1 << 30
_VERSION = "hoodie.write.table.version"


def migrate(
    source: str | PathLike[str] | Any,
    target: str | PathLike[str],
    *,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_type: str | None = None,
    table_version: int | None = None,
    name: str | None = None,
    format: str | None = None,
    mode: str = "copy",
    step_bytes: int = STEP_BYTES,
    check: bool = True,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    source_options: Mapping[str, str] | None = None,
    on_step: Callable[[MigrationStep], object] | None = None,
) -> MigrationResult:
    """Convert a folder of Parquet files, a Delta table or an Iceberg table into a Hudi table.

    The source does not change. Its rows are copied in steps; each step is a commit that says up to where the source was read. So if a
    run dies, run it again: it goes on. At the end both are read once more and compared. docs/MIGRATION.md says more.

    Args:
        source: the folder, or a table of pyiceberg.
        target: the folder of the new table.
        record_key: the column or columns that identify a row. No two rows of a partition may have the same key.
        partition_by: the columns whose values choose the folder of a row; None: those of the source; an empty list: not partitioned.
        ordering: of two rows with one key the greater value of this column wins in later writes.
        table_type: "COPY_ON_WRITE" or "MERGE_ON_READ"; None: copy-on-write.
        table_version: 6, 8 or 9; None: as `create_table` has it.
        name: the table's name; None: that of its folder.
        format: "parquet", "delta" or "iceberg"; None: by what is in the folder.
        mode: "copy", or "in_place": rows are read from the source's files until writes rewrite them.
        step_bytes: bytes of source files that one step takes at most; it takes one file at least.
        check: compare counts, nulls and hashes of all columns at the end.
        dry_run: open the source, look at all of its keys, and write nothing.
        options: Hudi's table and write options.
        storage_options, source_options: how to reach the storage of the table, and that of the source.
        on_step: is told of each step.

    Returns:
        What was done, and what the check found: see `MigrationResult.ok`.

    Raises:
        DuplicateKeyError: the source has a key twice; nothing was written.
        KeyFieldError: a row of the source has no key, or there is no such column.
        SchemaError: the table cannot hold a column of the source.
        TableChangedError: files of the source are not what they were.
        OptionError: an argument cannot be understood, or the table has other rows.

    Example:
        >>> hoodie.migrate("lake/trips_delta", "lake/trips", record_key="id", ordering="ts")
        >>> print(hoodie.migrate("landing/trips", "lake/trips", record_key="id", dry_run=True))
    """
    started_s = time.monotonic()
    if mode not in MODES:
        raise OptionError(f"mode={mode!r} is not one of {', '.join(MODES)}")
    size: object = step_bytes
    if not isinstance(size, int) or size < 1:
        raise OptionError(f"step_bytes={step_bytes!r} is not a whole number of at least 1")
    parsed = {**parse_options(options), **({} if table_version is None else {_VERSION: str(table_version)})}
    names = None if partition_by is None else parse_names(partition_by, what="partition_by") if partition_by else ()
    if not parse_names(record_key, what="record_key"):
        raise OptionError(f"record_key={record_key!r} names no column")
    in_words = plain_errors(str(source))
    opener = in_words(in_words(opener_of)(source, format, names, source_options))

    def files_of(source: MigrationSource) -> ParquetSource | None:
        return as_files(source, partition_given=names is not None) if mode == "in_place" else None

    def create(
        source: MigrationSource,
        files: ParquetSource | None,
        where: str | PathLike[str],
        reached_by: Mapping[str, str] | None,
    ) -> HoodieTable:
        chosen = source.partition_columns if names is None else names
        chosen_options = parsed if files is None else options_of(files, parsed)
        return create_table(
            where,
            source.schema,
            record_key=record_key,
            partition_by=list(chosen) or None,
            ordering=ordering,
            table_type=table_type,
            name=name or place.uri.rstrip("/").rpartition("/")[2],
            options=chosen_options,
            storage_options=reached_by,
        )

    place = open_storage(target, storage_options)
    is_there = is_table(target, storage_options=storage_options)
    if is_there:
        table = open_table(target, storage_options=storage_options)
        opened, at = where_it_is(table, opener)
        files = files_of(opened)
        planned = create(opened, files, f"memory://{secrets.token_hex(8)}", None)
        _require_same(table, planned.config)
        if at.done and at.mode != mode:
            raise OptionError(
                f"table {table.uri} was begun with mode={at.mode!r}: give the same arguments, or another folder"
            )
    else:
        opened = opener(version_begun(place))
        files = files_of(opened)
        at = start_of(opened)
        _require_apart((files or opened).uri, place.uri)
        table = planned = create(opened, files, f"memory://{secrets.token_hex(8)}", None)
    rows = Rows(opened, hoodie.write.schema.storable(opened.schema))
    if not opened.pieces:
        raise OptionError(f"the {described(opened)} has no files, so no rows: make the table by hoodie.create_table")
    if files is not None and not any(piece.rows for piece in files.pieces):
        raise OptionError(
            f"the {described(opened)} has no rows, and in place its files are the table: migrate it by mode='copy'"
        )
    if files is not None and not is_there:
        require_in_place(files, planned.config, rows.schema)
    context = planned._context
    request = planned._request_for(WriteOperation.BULK_INSERT, parsed).write
    keys, key_columns = (
        hoodie.write.keys.table_keys(context, context.snapshot(), request),
        hoodie.write.keys.key_columns(context.config),
    )
    if not at.done:
        refuse_duplicates(rows, keys, key_columns)
    todo = tuple(opened.pieces)[at.done :]
    counts = [piece.rows for piece in opened.pieces]
    result = MigrationResult(
        source=opened.uri,
        target=place.uri,
        format=opened.format,
        version=opened.version,
        mode=mode,
        files=len(opened.pieces),
        bytes=sum(piece.size_bytes for piece in opened.pieces),
        planned_steps=sum(1 for _ in steps(todo, step_bytes)),
        columns=tuple(rows.schema.names),
        partition_by=tuple(planned.config.partition_fields),
        notes=opened.notes,
        done_before=at.done,
        source_rows=None if None in counts else sum(count for count in counts if count is not None),
        dry_run=dry_run,
    )
    if dry_run:
        return replace(result, seconds=time.monotonic() - started_s)
    results: list[MigrationStep] = []
    if files is not None:
        in_place = InPlace(place, context.config, files, at, Rows(files, rows.schema), keys, key_columns, request)
        if is_there:
            place.delete(BOOTSTRAP_BEGUN)  # of a run that died after its last step
        work: Iterable[MigrationStep] = () if is_there else in_place.steps()
    else:
        if not is_there:
            table = create(opened, None, target, storage_options)
        work = copy_steps(table, rows, step_bytes, parsed)
    for step in work:
        results.append(step)
        if on_step is not None:
            on_step(step)
    if files is not None:
        table = open_table(target, storage_options=storage_options)
    if check:
        comparison = checked(table, rows)
        result = replace(
            result, source_rows=comparison.source_rows, target_rows=comparison.target_rows, checks=comparison.columns
        )
    return replace(result, steps=tuple(results), seconds=time.monotonic() - started_s)


def _require_apart(source: str, target: str) -> None:
    inner, outer = f"{target.rstrip('/')}/", f"{source.rstrip('/')}/"
    if inner.startswith(outer) or outer.startswith(inner):
        raise OptionError(
            f"the table {target} would be in the folder of its source {source}, or around it: give another folder"
        )


def _require_same(table: HoodieTable, config: TableConfig) -> None:
    """A run that goes on has to ask for the table that the first one has made."""
    for what in ("record_key_fields", "partition_fields", "ordering_fields", "table_type", "version"):
        has, wants = getattr(table.config, what), getattr(config, what)
        if has != wants:
            raise OptionError(
                f"table {table.uri} was begun with {what}={has!r}, and this run asks for {wants!r}: give the same "
                "arguments, or another folder"
            )


_SHOWN = 5


def refuse_duplicates(rows: Rows, keys: KeyGenerator, columns: list[str]) -> None:
    """Look at all keys: eight bytes of each are in memory, and only keys whose hashes meet are compared.

    Raises:
        DuplicateKeyError: a key is there twice. KeyFieldError: a row has none.
    """
    hashes = [hashed for _, _, hashed in _keys(rows, keys, columns)]
    sorted_hashes = np.sort(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)
    twice = np.unique(sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]])
    if not len(twice):
        return
    counts: dict[tuple[Any, Any], int] = {}
    for key, path, hashed in _keys(rows, keys, columns):
        at = np.flatnonzero(np.isin(hashed, twice))
        picked = pa.array(at)
        for pair in zip(path.take(picked).to_pylist(), key.take(picked).to_pylist(), strict=True):  # duplicates only
            counts[pair] = counts.get(pair, 0) + 1
    repeated: Mapping[tuple[Any, Any], int] = {pair: count for pair, count in counts.items() if count > 1}
    if not repeated:
        return
    examples = "".join(
        f"\n  {count} times: {key[:80]!r}{f' in partition {path!r}' if path else ''}"
        for (path, key), count in sorted(repeated.items())[:_SHOWN]
    )
    raise DuplicateKeyError(
        f"the {described(rows.source)} has {format_count(len(repeated), 'record key')} more than once, {sum(repeated.values()):,} "
        f"rows; nothing was written{examples}\n  fix:     choose key columns that are unique, remove rows from the source, or upsert "
        "them by hoodie.ingest, which keeps of each key the row with the greatest ordering value"
    )


def _keys(rows: Rows, keys: KeyGenerator, columns: list[str]) -> Iterator[tuple[pa.Array, pa.Array, np.ndarray]]:
    for piece in rows.source.pieces:
        for batch in rows.of(piece, columns):
            table = pa.Table.from_batches([batch])
            try:
                key, path = (each.combine_chunks() for each in (keys.keys(table), keys.partitions(table)))
            except KeyFieldError as exc:
                raise KeyFieldError(f"{piece.path} of the {described(rows.source)}: {exc}") from exc
            with np.errstate(over="ignore"):
                yield key, path, key_hash(key) + mixed(key_hash(path))
