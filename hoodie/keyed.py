"""Stored rows by their record keys alone, in whatever partition they are: for deletes by those who have nothing but keys."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import KeyFieldError, OptionError, SchemaError
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.read.condition import Among
from hoodie.view.context import TableContext
from hoodie.write.casting import fit
from hoodie.write.keys import table_keys
from hoodie.write.operation_rules import OperationRules
from hoodie.write.prepare import require_columns
from hoodie.write.schema import leave_of, reconcile, storable

_PLAIN = (str, bytes, int, float, Decimal, date)


def record_key_columns(config: TableConfig) -> list[str]:
    """The columns that a record key is made of; of a table that generates keys the one that stores them."""
    return list(dict.fromkeys(name.split(".")[0] for name in config.record_key_fields)) or [RECORD_KEY]


def deletes_by_keys_alone(
    config: TableConfig, operation: WriteOperation, options: WriteOptions, names: Collection[str]
) -> bool:
    """Whether this is a delete of rows by their keys, in whatever partition they are."""
    return operation is WriteOperation.DELETE and (options.in_all_partitions or lacks_partitions(config, names))


def lacks_partitions(config: TableConfig, names: Collection[str]) -> bool:
    """Whether these columns say record keys, and nothing of the partitions that rows are in."""
    apart = [PARTITION_PATH] if config.generates_keys else [name.split(".")[0] for name in config.partition_fields]
    keys = record_key_columns(config)
    return set(keys) <= set(names) and bool(apart) and not {*apart} & set(names)


def keys_of(config: TableConfig, data: Any) -> Any:
    """A list of bare keys as rows of the key column; everything else as it is.

    Raises:
        SchemaError: a text, or bare keys of a table whose keys are made of several columns.
    """
    if isinstance(data, str):
        raise SchemaError(f"cannot take keys from the text {data!r:.60}: a condition goes into where=")
    if not isinstance(data, list | tuple | set | frozenset) or not isinstance(next(iter(data), None), _PLAIN):
        return data
    columns = record_key_columns(config)
    if len(columns) > 1 or "." in (config.record_key_fields or ("",))[0]:
        example = ", ".join(f"{name!r}: …" for name in columns)
        raise SchemaError(
            f"table {config.name!r} makes keys of {', '.join(config.record_key_fields)}: give rows of these columns, such as "
            f"[{{{example}}}]"
        )
    return {columns[0]: list(data)}


def read_keys(config: TableConfig, reader: pa.RecordBatchReader) -> pa.Table:
    """The key columns of what was given."""
    names = record_key_columns(config)
    require_columns(reader.schema.names, names, what="record key", table=config.name)
    schema = pa.schema([reader.schema.field(name) for name in names])
    return pa.Table.from_batches((batch.select(names) for batch in reader), schema)


def key_types(context: TableContext, schema: pa.Schema) -> pa.Schema:
    """The key columns of rows with this schema, in the table's types: of another one the texts of keys would be others.

    Raises:
        OptionError: the table is empty. SchemaError: its types do not hold these.
    """
    config = context.config
    if config.generates_keys:
        return pa.schema([pa.field(RECORD_KEY, pa.string())])
    stored = context.snapshot().schema
    if stored is None:
        raise OptionError(f"table {config.name!r} is empty: no row of it has a key")
    keys = storable(pa.schema([schema.field(name) for name in record_key_columns(config)]))
    leave = leave_of(config, OperationRules.of(WriteOperation.DELETE, WriteOptions()), WriteOptions())
    fields = reconcile(stored, keys, table_name=config.name, leave=leave)
    return pa.schema([fields.field(name).with_nullable(True) for name in keys.names])


def where_keys(context: TableContext, keys: pa.Table, options: WriteOptions) -> Any:
    """A filter for the rows with these keys. Files are left out by it as by every other.

    Raises:
        OptionError: the table is empty. SchemaError, KeyFieldError: the keys do not fit the table's columns.
    """
    config = context.config
    fitting = fit(keys, key_types(context, keys.schema), table=config.name)
    if config.generates_keys:
        return Among(RECORD_KEY, _distinct(fitting.column(RECORD_KEY)))
    if config.populate_meta_fields:
        record_keys = table_keys(context, context.snapshot(), options).keys(fitting)
        return Among(RECORD_KEY, _distinct(record_keys))
    (name, *others) = record_key_columns(config)
    if others or pa.types.is_nested(fitting.column(name).type):
        raise KeyFieldError(
            f"table {config.name!r} does not store its record keys (hoodie.populate.meta.fields=false), and makes them of several "
            f"columns, so rows are not found by them alone: add {', '.join(config.partition_fields)} to the data, or delete by a "
            "condition, where=…"
        )
    return pc.field(name).isin(_distinct(fitting.column(name)))


def _distinct(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    distinct = pc.unique(values)
    return distinct.combine_chunks() if isinstance(distinct, pa.ChunkedArray) else distinct
