"""How the rows of a round go from the source into the table: as Arrow in this process, or in the way of another engine."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hoodie.dml.duck
from hoodie.engine.base import Records
from hoodie.engine.local import LocalEngine
from hoodie.errors import KeyFieldError, OptionError
from hoodie.filegroup.conform import decoded
from hoodie.ingestion.formats import plain_rows
from hoodie.ingestion.salvage import with_columns_of
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round, Source
from hoodie.keyed import read_keys, where_keys
from hoodie.keygen.columns import column
from hoodie.keygen.generator import key_generator
from hoodie.model.enums import WriteOperation
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.table import HoodieTable
from hoodie.write.casting import fit
from hoodie.write.keys import key_columns

INPUT = "<SRC>"
"""Stands for the rows of the source in a transformation, as in Apache Hudi's SQL transformer; `source` does, too."""
INPUT_NAME = "source"
_MEMORY_BYTES = 1 << 30


class PreparedRound(NamedTuple):
    """The rows of a round as they are written."""

    rows: Records
    size: int
    """How many rows."""
    bad: Sequence[BadRecord] = ()
    """Those without a record key, or with null in a column that holds none."""


NO_ROUND = PreparedRound(pa.table({}), 0)


class Needs(NamedTuple):
    """What rows must have. Those that lack it are set apart."""

    keys: Sequence[str]
    """Columns of the record key; one of them is enough."""
    columns: Sequence[str] = ()
    """Columns that hold no nulls, each of them."""
    null_if_missing: pa.Schema = pa.schema([])
    """Columns among these that are null in all rows, if the rows do not have them."""


class Work(Protocol):
    """The seam between a round and the engine that carries its rows."""

    def with_engine(self, table: HoodieTable) -> HoodieTable:
        """The table, with the engine that does its tasks."""
        ...

    def next(self, source: Source, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        """The next round of the source, with its own rows or with records of the engine."""
        ...

    def prepared(
        self, table: HoodieTable, rows: Records, sql: str | None, needs: Needs
    ) -> AbstractContextManager[PreparedRound]:
        """The rows transformed, without those that lack what they need; they are kept until the block ends."""
        ...

    def with_paths(self, table: HoodieTable, rows: Records) -> PreparedRound:
        """The rows without those whose partition column makes no path; asked where a write found one."""
        ...

    def write(self, table: HoodieTable, rows: Records, options: WriteOptions) -> str | None:
        """The instant of their commit."""
        ...


class EmbeddedWork:
    """In this process; the rows of a round are in memory."""

    def with_engine(self, table: HoodieTable) -> HoodieTable:
        return table

    def next(self, source: Source, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        return source.next(after, bounds, schema)

    @contextmanager
    def prepared(self, table: HoodieTable, rows: Records, sql: str | None, needs: Needs) -> Iterator[PreparedRound]:
        whole = with_columns_of(_transformed(rows, sql, table.uri), needs.null_if_missing)
        keyed = _without_bad_keys(whole, needs.keys)
        complete, bad = without_nulls(keyed.rows, needs.columns)
        yield PreparedRound(complete, complete.num_rows, [*keyed.bad, *bad])

    def with_paths(self, table: HoodieTable, rows: Records) -> PreparedRound:
        bad, reasons = without_path(rows, table.config)
        kept = rows.filter(pa.array(~bad))
        return PreparedRound(kept, kept.num_rows, as_bad(rows.filter(pa.array(bad)), reasons))

    def write(self, table: HoodieTable, rows: Records, options: WriteOptions) -> str | None:
        if says_places(table, options):
            return table.writer.write(rows, rows.schema, options.operation, options, engine=LocalEngine()).instant
        return _delete_anywhere(table, rows, options)


EMBEDDED = EmbeddedWork()


def says_places(table: HoodieTable, options: WriteOptions) -> bool:
    """False: rows of this write may be keys to delete that do not say in which partitions."""
    config = table.config
    is_by_partition = config.partition_fields and not config.generates_keys
    return not (options.operation is WriteOperation.DELETE and is_by_partition and table.schema is not None)


def partition_columns(table: HoodieTable, names: Collection[str]) -> list[str]:
    """Those of these columns that say in which partition a row is."""
    return sorted({name.partition(".")[0] for name in table.config.partition_fields} & set(names))


def _delete_anywhere(table: HoodieTable, rows: pa.Table, options: WriteOptions) -> str | None:
    """Delete rows where their partition columns say, and in every partition those of which all of these are null or missing."""
    config, schema = table.config, table.schema
    is_said: Any = pa.repeat(pa.scalar(False), rows.num_rows)
    for name in partition_columns(table, rows.schema.names):
        is_said = pc.or_(is_said, pc.is_valid(rows.column(name)))
    keys, placed = rows.filter(pc.invert(is_said)), rows.filter(is_said)
    if schema is None or not keys.num_rows:
        return table.writer.write(rows, rows.schema, options.operation, options, engine=LocalEngine()).instant
    columns = [*key_columns(config), *(name for name in config.ordering_fields if name in rows.schema.names)]
    placed = fit(placed, pa.schema([schema.field(name) for name in dict.fromkeys(columns)]), table=config.name)
    where = where_keys(table._context, read_keys(config, keys.to_reader()), options)
    here = HoodieTable(replace(table._context, engine=LocalEngine()), table._options)

    def found() -> pa.RecordBatchReader:
        stored = here.scan(placed.schema.names, where).to_arrow()
        return pa.concat_tables([stored, placed.cast(stored.schema)]).to_reader()

    return here._write_found(found, WriteOperation.DELETE, options.of_found_rows()).instant


def keyless(rows: pa.Table, keys: Sequence[str]) -> list[BadRecord]:
    """Rows without a record key, as what is set apart."""
    reason = f"the record key ({', '.join(keys)}) is null or empty"
    return as_bad(rows, [reason] * rows.num_rows)


def without_nulls(rows: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, list[BadRecord]]:
    """The rows that have no null in these columns, and the others as what is set apart."""
    bad: list[BadRecord] = []
    for name in columns:
        if name in rows.schema.names and rows.column(name).null_count:
            found = rows.filter(pc.is_null(rows.column(name)))
            bad += as_bad(found, [f"column {name!r} is null or not there, and must not be null"] * found.num_rows)
            rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows, bad


def without_path(rows: pa.Table, config: TableConfig) -> tuple[np.ndarray, list[str]]:
    """Bool for each row: its partition columns make no path; and for each such row the reason."""
    generator = key_generator(config)
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for name in config.partition_fields:
        values = column(rows, name, role="partition").combine_chunks()
        if isinstance(values, pa.DictionaryArray):
            values = decoded(values)
        encoded = values.dictionary_encode("encode")
        codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]
    _, first, of_row = np.unique(codes, return_index=True, return_inverse=True)
    reasons: dict[int, str] = {}
    for number, row in enumerate(first.tolist()):  # distinct values, each of which stands for a folder
        try:
            generator.partitions(rows.slice(row, 1))
        except KeyFieldError as exc:
            reasons[number] = str(exc).partition("\n")[0].replace(" in row 0 (counted from 0)", "")
    bad = np.isin(of_row, list(reasons))
    return bad, [reasons[number] for number in of_row[bad].tolist()]


def as_bad(rows: pa.Table, reasons: Sequence[str]) -> list[BadRecord]:
    """Rows as what is set apart, each with its reason; they are few."""
    return [BadRecord("rows", why, json.dumps(row, default=str)) for row, why in zip(plain_rows(rows), reasons)]


def _transformed(rows: pa.Table | pa.RecordBatchReader, sql: str | None, uri: str) -> pa.Table:
    if sql is None or not rows.schema.names:
        return rows if isinstance(rows, pa.Table) else rows.read_all()
    with hoodie.dml.duck.connection(uri, memory_bytes=_MEMORY_BYTES) as con:
        con.register(INPUT_NAME, rows)
        statements = con.extract_statements(sql.replace(INPUT, INPUT_NAME))
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            raise OptionError(f"sql={sql!r} is not one query")
        return pa.RecordBatchReader.from_stream(con.sql(statements[0].query)).read_all()


def _without_bad_keys(rows: pa.Table, fields: Sequence[str]) -> PreparedRound:
    columns = {name: found for name in fields if (found := _key_column(rows, name)) is not None}
    if not columns or not rows.num_rows:
        return PreparedRound(rows, rows.num_rows)
    has_key: Any = reduce(pc.or_, map(_is_given, columns.values()))
    if pc.all(has_key).as_py():
        return PreparedRound(rows, rows.num_rows)
    keyed = rows.filter(has_key)
    return PreparedRound(keyed, keyed.num_rows, keyless(rows.filter(pc.invert(has_key)), list(columns)))


def _key_column(rows: pa.Table, name: str) -> pa.ChunkedArray | None:
    """A column, or the field of a struct; None: there is none, or more than one, which the write says."""
    try:
        return column(rows, name, role="record key")
    except KeyFieldError:
        return None


def _is_given(values: pa.ChunkedArray) -> Any:
    """For each row; an empty text is no key."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    given = pc.is_valid(values)
    is_text = any(is_one(values.type) for is_one in _TEXTS)
    return pc.and_(given, pc.fill_null(pc.greater(pc.binary_length(values), 0), False)) if is_text else given


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
