"""Which keys a write gives its rows: what a table's properties leave open about that, its files say.

Hudi's versions and options have made several keys of the same values, and version 6 tables do not say which. Rows written
with other keys than those that are stored would be duplicates, so one of the stored rows is asked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import pyarrow as pa

from hoodie.errors import HoodieError, KeyFieldError, OptionError, UnsupportedTableError
from hoodie.filegroup.slice_reader import open_base_file, stored_batches
from hoodie.keygen.columns import column
from hoodie.keygen.generator import KeyGenerator, key_generator
from hoodie.keygen.virtual_columns import folder_values, repeated
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import folder_of
from hoodie.model.plans import DELETED
from hoodie.options.table import TableConfig
from hoodie.options.values import DuplicatePolicy, KeyGeneratorType
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext

_ASKED = 4
"""Partitions of which a row is looked at before the question is given up: null and short values may leave it open."""


def operation_on(
    config: TableConfig, operation: WriteOperation, options: WriteOptions, names: Sequence[str] = ()
) -> WriteOperation:
    """What an operation comes to on this table: where every row gets a key of its own, an upsert is an insert, as in Hudi.

    An upsert of rows with these columns that were read with their meta columns replaces the rows of those keys, as in Hudi.

    Raises:
        OptionError: it is asked for something that needs keys which come again.
    """
    if not config.generates_keys or carries_keys(config, operation, names):
        return operation
    wrong = None
    inserted = operation in (WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.BULK_INSERT)
    if operation is WriteOperation.UPSERT and options.partial:
        wrong = "update columns of stored rows (hoodie.python.upsert.partial)"
    elif inserted and (options.combine_before_insert or not options.allow_duplicates_in_merge):
        wrong = "reduce rows of one key to one (hoodie.combine.before.insert, hoodie.merge.allow.duplicate.on.inserts)"
    elif inserted and (options.drop_duplicates or options.duplicates is not DuplicatePolicy.NONE):
        wrong = (
            "look for stored keys (hoodie.datasource.write.insert.drop.duplicates, hoodie.datasource.insert.dup.policy)"
        )
    if wrong:
        raise OptionError(
            f"table {config.name!r} has no record key columns, so every row gets a key of its own and a write cannot {wrong}: "
            "drop the option, or make a table with hoodie.datasource.write.recordkey.field"
        )
    return WriteOperation.INSERT if operation is WriteOperation.UPSERT else operation


def carries_keys(config: TableConfig, operation: WriteOperation, names: Sequence[str]) -> bool:
    """Whether rows with these columns bring along the keys that they are stored with: what a statement makes of stored rows, and
    rows to which the table gave keys.
    """
    again = operation in (WriteOperation.UPSERT, WriteOperation.DELETE)
    return again and {RECORD_KEY, PARTITION_PATH} <= set(names) and (config.generates_keys or DELETED in names)


def key_columns(config: TableConfig) -> list[str]:
    """The columns that a delete needs of a stored row: where the table generates its keys, meta columns are among them."""
    stored = (RECORD_KEY, PARTITION_PATH) if config.generates_keys else ()
    names = (*stored, *config.record_key_fields, *config.partition_fields)
    return list(dict.fromkeys(name.split(".")[0] for name in names))


def require_stored_keys(names: Sequence[str], config: TableConfig) -> None:
    """Fail when rows to delete do not carry the keys that a table generated for them."""
    missing = [name for name in (RECORD_KEY, PARTITION_PATH) if name not in names]
    if missing:
        raise KeyFieldError(
            f"table {config.name!r} has no record key columns, and {', '.join(missing)} of the rows to delete is not in the data\n"
            "  fix:     delete by a condition, where=…, or read the rows with their meta columns and give those"
        )


def table_keys(context: TableContext, snapshot: Snapshot, options: WriteOptions) -> KeyGenerator:
    """The key generator for a write to the table as it is now.

    Raises:
        OptionError: neither the table nor the options say how its paths are made.
        UnsupportedTableError: no key generator that the properties and options allow made the stored rows.
    """
    config = context.config
    unnamed = bool(options.complex_key_new_encoding)
    names_key = not unnamed and config.populate_meta_fields
    generator = key_generator(config, options.key_settings, name_single_key=names_key)
    possible = _possible(generator, config, snapshot.schema, options)
    if len(possible) == 1 and _is_remembered(generator, config):
        return generator
    mismatch: tuple[str, str] | None = None
    explained = False
    for path, row in islice(_stored_rows(context, snapshot, generator), _ASKED):
        stored = (row.column(RECORD_KEY)[0].as_py(), row.column(PARTITION_PATH)[0].as_py())
        if not config.populate_meta_fields:
            stored = (None, folder_of(path))
        fitting = [each for each in possible if _made_by(each, row, stored)]
        if fitting:
            possible, explained = fitting, True
        else:
            mismatch = mismatch or (path, str(stored))
        if explained and len(possible) == 1:
            break
    if mismatch is not None and not explained:
        raise UnsupportedTableError(
            f"table {config.name!r} at {config.uri} cannot be written: its properties and your options make other keys or paths "
            f"than those that are stored\n  stored:  {_brief(mismatch[1])} in {mismatch[0]}\n"
            "  fix:     give the options of its first write (hoodie.datasource.write.partitionpath.field with its kinds,\n"
            "           hoodie.keygen.timebased...); text of timestamps in another zone than UTC cannot be made here"
        )
    return possible[0]


def _possible(
    generator: KeyGenerator, config: TableConfig, schema: pa.Schema | None, options: WriteOptions
) -> list[KeyGenerator]:
    """The key generators that properties and options allow, the likeliest first."""
    settings = config.key_settings.over(options.key_settings)
    complex_single = generator.kind is KeyGeneratorType.COMPLEX and len(generator.record_key_fields) == 1
    zoned = schema is not None and any(
        pa.types.is_timestamp(kind) and kind.tz
        for name in (*generator.record_key_fields, *generator.partition_fields)
        if (kind := _type_of(schema, name)) is not None
    )
    # Of a table with hive style folders Hudi's properties do not tell it; of others the extractor class does.
    maybe_slashed = (
        generator.hive_style
        and len(generator.partition_fields) == 1
        and generator.kind in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX)
    )
    unsaid = complex_single and options.complex_key_new_encoding is None and config.populate_meta_fields
    names = (True, False) if unsaid else (generator.name_single_key,)
    texts = (False, True) if zoned and settings.timestamps_as_text is None else (generator.timestamps_as_text,)
    slashes = (False, True) if maybe_slashed and settings.slash_dates is None else (generator.slash_dates,)
    return [
        replace(generator, name_single_key=name, timestamps_as_text=text, slash_dates=slash)
        for name, text, slash in product(names, texts, slashes)
    ]


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    try:
        kind: pa.DataType = column(schema.empty_table(), name, role="record key").type
    except KeyFieldError:
        return None
    return kind


def _is_remembered(generator: KeyGenerator, config: TableConfig) -> bool:
    """Whether the table remembers all settings of the generator."""
    settings = config.key_settings
    return (generator.timestamps is None or bool(settings.timebased)) and generator.partition_kinds == (
        settings.partition_kinds if generator.partition_kinds else ()
    )


def _stored_rows(context: TableContext, snapshot: Snapshot, generator: KeyGenerator) -> Iterator[tuple[str, pa.Table]]:
    """(path of its file, a row) for some partitions: meta columns and the columns that make keys and paths."""
    tops = dict.fromkeys(name.split(".")[0] for name in (*generator.record_key_fields, *generator.partition_fields))
    names, columns = [RECORD_KEY, PARTITION_PATH, *tops], snapshot.schema or pa.schema([])
    folders = None if snapshot.schema is None else folder_values(context.config, snapshot.schema)
    for partition_path in snapshot.view.partitions():
        for piece in snapshot.view.latest_slices([partition_path]):
            if piece.base is None:
                continue
            with open_base_file(context.storage, piece.base) as (file, _):
                batches = stored_batches(
                    context.storage, file, piece.base, columns, names, batch_rows=1, path=piece.base.path
                )
                batch = next(batches, None)
            if batch is not None and batch.num_rows:
                row = pa.Table.from_batches([batch.slice(0, 1)])
                values = {} if folders is None else folders.of(partition_path)
                for name, value in values.items():
                    row = row.drop_columns([name] if name in row.column_names else [])
                    row = row.append_column(name, repeated(value, 1))
                yield piece.base.path, row
                break


def _made_by(generator: KeyGenerator, row: pa.Table, stored: tuple[str | None, str]) -> bool:
    """Whether row has this key (None: it stores none) and path."""
    try:
        keys = generator.keys(row)[0].as_py() if generator.record_key_fields and stored[0] is not None else stored[0]
        return (keys, generator.partitions(row)[0].as_py()) == stored
    except HoodieError:
        return False


def _brief(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
