"""Makes a table: its properties, whole and once."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import pyarrow as pa

from hoodie.errors import KeyFieldError, OptionError, TableExistsError, UnsupportedTableError
from hoodie.format.avro_schema import avro_from_arrow
from hoodie.format.properties import format_properties
from hoodie.index.rings import keep_rules
from hoodie.keygen.generator import KeyGenerator, key_generator
from hoodie.model.names import BOOTSTRAP_BEGUN, PROPERTIES, hoodie_command, name_of
from hoodie.options.compatibility import check_non_blocking
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.options.table import DROP_COLUMNS, parse_table_config, table_properties
from hoodie.options.table_options import TableOptions
from hoodie.storage.base import Storage
from hoodie.storage.neighbours import enclosing_table, other_format
from hoodie.view.context import lost_properties
from hoodie.view.schema import CREATE_SCHEMA
from hoodie.write.schema import require_ordering_types, require_types, storable

log = logging.getLogger("hoodie")


def create_at(
    storage: Storage,
    table_options: TableOptions,
    *,
    schema: pa.Schema | None = None,
    concurrency: ConcurrencyOptions = CONCURRENCY,
) -> None:
    """Make `hoodie.properties`, whole and never over another one: of several creators one wins.

    `concurrency`: how its first writer means to work.

    Raises:
        UnsupportedTableError: a table of another format is there, or any table above it.
    """
    check_place(storage)
    with_name = TableOptions(name=_checked_name(table_options.name, storage.uri)).over(table_options)
    properties = table_properties(with_name)
    keys = key_generator(
        parse_table_config(properties, uri=storage.uri)
    )  # its patterns and zones, before a row needs them
    if schema is not None:
        stored = storable(schema)
        require_types(stored)
        _require_roles(stored, with_name, keys)
        avro = avro_from_arrow(stored, table_name=str(with_name.name))
        properties[CREATE_SCHEMA] = json.dumps(avro, separators=(",", ":"))
    elif with_name.drops_columns_here and with_name.partition_columns:
        raise OptionError(
            f"table {with_name.name!r} leaves its partition columns out of its files ({DROP_COLUMNS}=true), so it has to be created "
            "with its schema, which says what types they have"
        )
    if with_name.drops_partition_columns and not with_name.drops_columns_here:
        log.warning(
            "table %s keeps its partition columns: on merge-on-read tables %s has no effect, as Apache Hudi turns it off for upserts",
            *(storage.uri, DROP_COLUMNS),
        )
    config = parse_table_config(properties, uri=storage.uri)
    if config.rule.merger is None and config.rule.refusal:
        raise OptionError(f"table {config.name!r}: {config.rule.refusal}; order by a column of the table, or by none")
    if concurrency.non_blocking:
        check_non_blocking(config)
    if config.layout.by_completion:
        storage.mkdirs(
            config.history_folder
        )  # below that of the timeline, which Apache Hudi lists before there is an instant
    now = datetime.now(UTC)
    comment = [f"Properties saved on {now.isoformat()}", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
    try:
        storage.create_new(PROPERTIES, format_properties(properties, comment=comment).encode())
    except NotADirectoryError as exc:
        raise OptionError(f"no table can be made at {storage.uri}: a file stands there; give a folder") from exc
    except FileExistsError as exc:
        _refuse_lost_table(storage)
        raise TableExistsError(
            f"there is a table at {storage.uri} already; open it with hoodie.open_table, or choose another path"
        ) from exc
    if config.buckets is not None:
        keep_rules(storage, config.buckets)


def _require_roles(schema: pa.Schema, options: TableOptions, keys: KeyGenerator) -> None:
    """Raises KeyFieldError where a column that makes keys or partitions, or orders rows, is missing or of a type that does not."""
    ordering, no_rows = options.ordering_fields or (), schema.empty_table()
    for field in (*(options.record_key_fields or ()), *options.partition_columns, *ordering):
        if field.split(".")[0] not in schema.names:
            raise KeyFieldError(
                f"column {field!r} is not in the schema of table {options.name!r}: {', '.join(schema.names)}"
            )
    keys.keys(no_rows)
    keys.partitions(no_rows)
    require_ordering_types(schema, ordering)


def _refuse_lost_table(storage: Storage) -> None:
    """Raises TableExistsError at a table without properties: a new table would take the commits of the old one for its own."""
    damage = lost_properties(storage)
    if damage is not None:
        raise TableExistsError(
            f"there is a table at {storage.uri} already: {damage}. {hoodie_command('repair', storage.uri, 'properties')} shows "
            "what can be put back; or choose another path"
        )
    if storage.exists(BOOTSTRAP_BEGUN):
        raise TableExistsError(
            f"a migration in place makes a table at {storage.uri}: run it again if it died, or choose another path"
        )


def check_place(storage: Storage) -> None:
    """Raises TableExistsError, UnsupportedTableError where something stands at the place of a new table, or around it."""
    _refuse_lost_table(storage)
    other, above = other_format(storage), enclosing_table(storage)
    if other:
        raise UnsupportedTableError(f"no table can be made at {storage.uri}: {other} is there. Choose another path")
    if above:
        folder, what = above
        raise UnsupportedTableError(
            f"no table can be made at {storage.uri}: it lies inside {what}, {folder}, whose readers would find it. Choose another path"
        )


def _checked_name(name: str | None, uri: str) -> str:
    """The table's name without blanks at its ends: properties files do not keep them, and the checksum covers the name."""
    if name is not None and not isinstance(name, str):
        raise OptionError(f"name={name!r} is a {type(name).__name__}: give the table's name as text")
    result = (name_of(uri.rstrip("/")).strip() or "table") if name is None else name.strip()
    if not result or any("\ud800" <= char <= "\udfff" for char in result):
        raise OptionError(f"name={name!r} is not a name of a table: give one of letters and digits, or leave it out")
    return result
