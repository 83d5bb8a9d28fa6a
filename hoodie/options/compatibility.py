"""What may be done to a table: which ones are read only, and which options contradict one that exists."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.format.layout import OLDEST_WRITTEN, VERSIONS
from hoodie.model.buckets import BucketEngine
from hoodie.model.enums import MergeMode, TableType, TableVersion, WriteOperation
from hoodie.model.names import hoodie_command
from hoodie.model.plans import DeleteMarker
from hoodie.options.buckets import compared
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.keygen import compared_settings
from hoodie.options.mergers import is_registered, not_registered
from hoodie.options.merging import PAYLOAD, STRATEGY
from hoodie.options.option import key_of, option_name
from hoodie.options.table import (
    DROP_COLUMNS,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    META_FIELDS,
    TableConfig,
    flag_text,
    names_of,
    no_dropped_columns,
    no_virtual_keys,
)
from hoodie.options.table_options import PAYLOAD_CLASS, TableOptions
from hoodie.options.values import (
    GLOBAL_INDEXES,
    OUTSIDE_INDEXES,
    SUPPORTED_KEY_GENERATORS,
    ConcurrencyMode,
    IndexType,
    KeyGeneratorType,
)
from hoodie.options.write import WriteOptions

_SHOWN = 4
"""Contradictions that one message lists: it stays within eight lines."""


def check_version(config: TableConfig) -> None:
    """Refuse whatever changes a table that is read only; services need no more than this.

    Raises:
        UnsupportedTableError: this release does not write its version.
    """
    if not config.layout.is_written:
        oldest = int(OLDEST_WRITTEN.version)
        command = hoodie_command("upgrade", config.uri, str(oldest), "--yes")
        raise UnsupportedTableError(
            f"table at {config.uri} can be read, not written: it has version {int(config.version)}, and this release writes "
            f"versions {VERSIONS}; upgrade it first, by table.upgrade({oldest}) or {command}"
        )


def check_writable(config: TableConfig) -> None:
    """Refuse tables that can be read but not written.

    Raises:
        UnsupportedTableError: names the first reason.
    """
    check_version(config)
    reason = None
    if not config.populate_meta_fields and no_virtual_keys(config.keygen, config.record_key_fields):
        reason = f"{META_FIELDS}=false: {no_virtual_keys(config.keygen, config.record_key_fields)}"
    elif config.drops_partition_columns and _not_dropped(config):
        reason = f"{DROP_COLUMNS}=true: {_not_dropped(config)}"
    elif config.rule.merger is not None and not is_registered(config.rule.merger.name):
        reason = not_registered(config.rule.merger.name)
    elif config.merge_mode is MergeMode.CUSTOM and config.rule.merger is None:
        merger = config.raw.get(PAYLOAD) or config.raw.get(STRATEGY)
        reason = f"its records are merged by {merger}, which this release does not have"
    elif config.rule.merger is None and config.rule.refusal:
        reason = config.rule.refusal
    elif config.keygen not in SUPPORTED_KEY_GENERATORS:
        key_generator = config.raw.get(KEYGEN_TYPE) or config.raw.get(KEYGEN_CLASS)
        reason = f"its key generator is {key_generator}, this release has {', '.join(SUPPORTED_KEY_GENERATORS)}"
    if reason:
        raise UnsupportedTableError(f"table at {config.uri} can be read, not written: {reason}")


def check_non_blocking(config: TableConfig, operation: WriteOperation | None = None) -> None:
    """Refuse non-blocking writes that would not be right beside others; Apache Hudi refuses all but the last two, too.

    Raises:
        OptionError: names what does not fit, and what does.
    """
    buckets = config.buckets
    reason = None
    if not config.layout.by_completion:
        reason = (
            f"it has version {int(config.version)}, whose instants have no completion times; make it with "
            "hoodie.write.table.version=9, or upgrade it by table.upgrade(9)"
        )
    elif config.table_type is not TableType.MERGE_ON_READ:
        reason = "it is copy-on-write: each write makes new base files; make it a merge-on-read table"
    elif buckets is None or buckets.engine is not BucketEngine.SIMPLE:
        reason = (
            "writers would not put one key into the same file group: make it with hoodie.index.type=BUCKET and "
            "hoodie.index.bucket.engine=SIMPLE"
        )
    elif operation in (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE):
        reason = f"{operation.value.lower()} replaces what other writers may be appending to: leave the mode out for it"
    elif config.change_logs is not None:
        reason = "it has change logs (hoodie.table.cdc.enabled), which need to know the rows before"
    elif config.rule.merger is not None:
        reason = f"its records are merged by {config.rule.merger.name}, for which each write makes new base files"
    if reason:
        mode = f"{option_name(ConcurrencyOptions, 'mode')}={ConcurrencyMode.NON_BLOCKING}"
        raise OptionError(f"table at {config.uri} cannot be written with {mode}: {reason}. Nothing was written")


def _not_dropped(config: TableConfig) -> str | None:
    if config.table_type is TableType.MERGE_ON_READ:
        return "upserts into a merge-on-read table keep partition columns, as those of Apache Hudi"
    return no_dropped_columns(config.keygen, config.partition_fields, config.ordering_fields)


def check_against(config: TableConfig, requested: TableOptions) -> None:
    """Refuse options that contradict the table; what is not said contradicts nothing.

    Raises:
        OptionError: lists each property with the table's value and the one asked for.
    """
    named_keygen = config.raw.get(KEYGEN_TYPE) or config.raw.get(KEYGEN_CLASS)
    pairs: list[tuple[str, object, object]] = [
        ("table name", config.name, requested.name),
        ("database", config.database_name, requested.database_name),
        ("table type", config.table_type, requested.table_type),
        ("table version", config.version, requested.version),
        ("record key", config.record_key_fields, requested.record_key_fields),
        ("partition column", config.partition_fields, _columns_of(requested)),
        ("ordering column", config.ordering_fields, requested.ordering_fields),
        # A table that names no generator has an inferred one: no ground to contradict anybody.
        ("key generator", config.keygen, _asked_keygen(requested) if named_keygen else None),
        ("hive-style partitioning", config.hive_style, requested.hive_style),
        ("url-encoding of partition values", config.url_encode, requested.url_encode),
        ("storing of _hoodie_ columns", config.populate_meta_fields, requested.populate_meta_fields),
        ("leaving out of partition columns", config.drops_partition_columns, _drops(config, requested)),
        ("writing of change logs", config.change_logs is not None, requested.change_logs),
        ("content of change logs", config.change_logs, requested.change_log_mode if config.change_logs else None),
        ("merge mode", config.merge_mode, requested.merge_mode),
        ("payload class", config.payload, requested.payload),
        ("merger", config.merger or "", requested.merger),
        # A table without one may have writers that each bring their own: older versions of Hudi do not store it.
        ("delete marker", _marker(config.delete_marker), _marker(config.delete_marker and requested.delete_marker)),
        *compared_settings(config.key_settings, requested.key_settings),
        ("index type", config.global_index, _other_index(config, requested)),
        ("index", config.index_name, requested.index_name if config.index_name else None),
        *compared(config.buckets, requested),
    ]
    wrong = [
        f"  {what} is {_text_of(stands)} in the table, {_text_of(option_value)} in your options"
        for what, stands, option_value in pairs
        if option_value is not None and option_value != stands
    ]
    if wrong:
        more = [f"  and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise OptionError(
            "\n".join(
                [
                    f"options contradict table {config.name!r} at {config.uri}",
                    *wrong[:_SHOWN],
                    *more,
                    "  drop these options: the table remembers them",
                ]
            )
        )


def check_operation(called: WriteOperation, option_operation: WriteOperation, options: Iterable[str]) -> None:
    """Refuse a method of a table beside an option of the call that says another operation.

    Raises:
        OptionError: names the option.
    """
    telling = key_of(WriteOptions, "operation").names + (
        PAYLOAD_CLASS.names if option_operation is WriteOperation.DELETE else ()
    )
    telling_keys = {key.lower() for key in options} & {name.lower() for name in telling}
    if telling_keys and option_operation is not called:
        raise OptionError(
            f"{telling_keys.pop()} says {option_operation.value.lower()}, but {called.value.lower()}() was called: "
            "drop the option, or call the method that it names"
        )


def _asked_keygen(requested: TableOptions) -> KeyGeneratorType | None:
    kinds = requested.key_settings.partition_kinds
    return requested.keygen or (KeyGeneratorType.CUSTOM if kinds else None)


def _columns_of(requested: TableOptions) -> tuple[str, ...] | None:
    return None if requested.partition_fields is None else requested.partition_columns


def _other_index(config: TableConfig, requested: TableOptions) -> IndexType | None:
    """None where it looks keys up in the files of the whole table, too."""
    in_files = frozenset(GLOBAL_INDEXES) - frozenset(OUTSIDE_INDEXES)
    if config.global_index is None or in_files >= {config.global_index, requested.index}:
        return None
    return requested.index


def _drops(config: TableConfig, requested: TableOptions) -> bool | None:
    """None where it has no effect."""
    return None if config.table_type is TableType.MERGE_ON_READ else requested.drops_partition_columns


def _marker(marker: DeleteMarker | None) -> str | None:
    return f"{marker.field}={marker.marker}" if marker else None


def _text_of(value: object) -> str:
    if isinstance(value, tuple):
        return names_of(value)
    if isinstance(value, bool):
        return flag_text(value)
    return str(int(value)) if isinstance(value, TableVersion) else repr(str(value))
