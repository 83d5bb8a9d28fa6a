"""What each door makes of the options that were set: frozen values, parsed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from hoodie.errors import OptionError
from hoodie.model.enums import MergeMode, QueryType, WriteOperation
from hoodie.model.instant import InstantTime
from hoodie.model.plans import DeleteMarker
from hoodie.options.commits import not_told
from hoodie.options.hbase import HBaseOptions
from hoodie.options.hive import not_registered
from hoodie.options.index import (
    BUCKET_COUNT,
    BUCKET_ENGINE,
    BUCKET_FIELDS,
    BUCKET_RULES,
    INDEX_CLASS,
    INDEX_TYPE,
    IndexOptions,
)
from hoodie.options.merging import DELETING_PAYLOAD, PAYLOADS, special_payload
from hoodie.options.moments import parse_begin_option, parse_instant_option
from hoodie.options.option import Key, key_of
from hoodie.options.read import AS_OF, TIMESTAMP_AS_OF, ReadOptions
from hoodie.options.settings import NOTHING, READS, VIEWS, WRITES, GivenOptions, Layers, UserOption
from hoodie.options.table_options import (
    DELETE_FIELD,
    DELETE_MARKER,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    MERGE_MODE,
    MERGE_STRATEGY,
    PAYLOAD_CLASS,
    TIMEBASED,
    TableOptions,
)
from hoodie.options.values import DuplicatePolicy, IndexType, KeyGeneratorType, OverwriteMode
from hoodie.options.view import RemoteOptions, ViewOptions
from hoodie.options.write import WriteOptions, WriteRequest

_OPERATION: Key[WriteOperation] = key_of(WriteOptions, "operation")
_OVERWRITE_MODE = key_of(WriteOptions, "overwrite_mode")
_DUPLICATES, _DROP_DUPLICATES = key_of(WriteOptions, "duplicates"), key_of(WriteOptions, "drop_duplicates")
_HBASE_TABLE = key_of(HBaseOptions, "table")
_QUERY, _BEGIN, _END = (key_of(ReadOptions, each) for each in ("query", "begin", "end"))


def _table(options: GivenOptions) -> TableOptions:
    payload, keygen = _payload(options), _keygen(options)
    table: TableOptions = options.make(
        TableOptions,
        keygen=keygen,
        merge_mode=options.attempt(lambda: _merge_mode(options)),
        payload=special_payload(str(payload.value)) if payload else None,
        delete_marker=options.attempt(lambda: _delete_marker(options)),
        index=_index(options),
        index_name=_index_name(options),
        bucket_engine=options.get(BUCKET_ENGINE),
        bucket_count=options.get(BUCKET_COUNT),
        bucket_fields=options.get(BUCKET_FIELDS),
        bucket_rules=options.get(BUCKET_RULES),
        timebased={key.name: value for key in TIMEBASED if (value := options.get(key)) is not None} or None,
    )
    # By this one keys are deleted wherever they are: it says nothing of how the table's own are made.
    of_deletes = keygen is KeyGeneratorType.GLOBAL_DELETE
    return replace(table, keygen=None, partition_fields=None) if of_deletes else table


def _keygen(options: GivenOptions) -> KeyGeneratorType | None:
    return options.attempt(lambda: options.agreed("key generator", KEYGEN_TYPE, KEYGEN_CLASS))


def _index(options: GivenOptions) -> IndexType | None:
    return options.get(INDEX_TYPE) if options.get(INDEX_CLASS) is None else IndexType.CUSTOM


def _index_name(options: GivenOptions) -> str | None:
    """The name of an index that is kept outside of the table."""
    return options.get(INDEX_CLASS) or (options.get(_HBASE_TABLE) if _index(options) is IndexType.HBASE else None)


def _payload(options: GivenOptions) -> UserOption | None:
    """The payload class of the table, as the options say it."""
    payload = options.find(PAYLOAD_CLASS)
    return None if payload is None or payload.value == DELETING_PAYLOAD else payload


def _merge_mode(options: GivenOptions) -> MergeMode | None:
    mode = options.agreed("merge mode", MERGE_MODE, MERGE_STRATEGY)
    payload = _payload(options)
    if payload is None:
        return mode
    by_class = PAYLOADS[str(payload.value)].mode
    mode_option = options.find(MERGE_MODE) or options.find(MERGE_STRATEGY)
    if mode is MergeMode.CUSTOM:  # which the class tells
        mode = None if special_payload(str(payload.value)) else by_class
    elif mode_option is not None and mode is not by_class:
        raise OptionError(
            f"options contradict each other about the merge mode: {payload.name}={payload.text!r} ({by_class}), "
            f"{mode_option.name}={mode_option.text!r} ({mode}); drop all but one"
        )
    return mode if special_payload(str(payload.value)) else by_class


def _delete_marker(options: GivenOptions) -> DeleteMarker | None:
    field, marker = options.find(DELETE_FIELD), options.find(DELETE_MARKER)
    if (field is None) != (marker is None):
        there, missing = (field, DELETE_MARKER) if marker is None else (marker, DELETE_FIELD)
        raise OptionError(f"option {there.name if there else ''} needs {missing.name} beside it: set both, or neither")
    return DeleteMarker(str(field.value), str(marker.value)) if field and marker else None


def parse_write_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> WriteRequest:
    """The options of a write; `defaults` (see `load_defaults`) stand behind them.

    Raises:
        OptionError: unknown keys, values that are none of their options, what is not supported, and options that contradict
            each other: all that is wrong with the options, in one error.
        UnsupportedTableError: nothing is wrong but the table version, which this release does not write.
    """
    layers = Layers(options, defaults, WRITES)
    attempt, given_options = layers.faults.attempt, layers.options
    table, table_defaults = _table(given_options), _table(layers.defaults)
    not_done = layers.not_done(reading=False)
    index = layers.make(
        IndexOptions,
        choice=_index(given_options),
        bucket_engine=given_options.get(BUCKET_ENGINE),
        bucket_count=given_options.get(BUCKET_COUNT),
        bucket_fields=given_options.get(BUCKET_FIELDS),
        bucket_rules=given_options.get(BUCKET_RULES),
    )
    write = layers.make(
        WriteOptions,
        operation=attempt(lambda: _operation(layers)),
        key_settings=attempt(lambda: table.over(table_defaults).key_settings),
        delete_marker=table.delete_marker or table_defaults.delete_marker,
        index=index,
        view=attempt(lambda: _view(layers)),
        in_all_partitions=_keygen(given_options) is KeyGeneratorType.GLOBAL_DELETE,
        commit_entries={name: str(options[name]) for name in given_options.notes},
    )
    layers.faults.say()
    ignored = layers.ignored(reading=False)
    return WriteRequest(
        table, write, ignored, table_defaults, (*not_done, *not_registered(layers.get), *not_told(layers.get))
    )


def _operation(layers: Layers) -> WriteOperation:
    operation, mode = layers.get(_OPERATION), layers.options.find(_OVERWRITE_MODE)
    if operation is WriteOperation.INSERT_OVERWRITE_TABLE and mode and mode.value is OverwriteMode.DYNAMIC:
        raise OptionError(
            f"{mode.name}={mode.text!r} replaces partitions and operation insert_overwrite_table the whole table: drop one of them, "
            "or use operation insert_overwrite"
        )
    if layers.get(PAYLOAD_CLASS) == DELETING_PAYLOAD:
        if operation not in (WriteOperation.UPSERT, WriteOperation.DELETE):
            raise OptionError(
                f"{PAYLOAD_CLASS.name}={DELETING_PAYLOAD!r} deletes, and operation {operation.value.lower()} does not: "
                "drop one of them"
            )
        return WriteOperation.DELETE
    if operation is WriteOperation.UPSERT and (
        layers.get(_DROP_DUPLICATES) or layers.get(_DUPLICATES) is not DuplicatePolicy.NONE
    ):
        return WriteOperation.INSERT  # as Apache Hudi understands these options beside its default operation
    return operation


def parse_view_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> ViewOptions:
    """The options of the file system view among any others, which are not judged here.

    Raises:
        OptionError: a value that is none of its option.
    """
    ours, unsaid = ({n: v for n, v in each.items() if n.lower() in VIEWS} for each in (options, defaults))
    layers = Layers(ours, unsaid, VIEWS)
    view = layers.faults.attempt(lambda: _view(layers))
    layers.faults.say()
    return view


def _view(layers: Layers) -> ViewOptions:
    view = layers.make(ViewOptions)
    return replace(view, remote=RemoteOptions.at(**vars(layers.make(RemoteOptions)))) if view.type.is_remote else view


def parse_read_options(
    options: Mapping[str, str],
    *,
    defaults: Mapping[str, str] = NOTHING,
    zone: tzinfo | None = UTC,
    session_zone: tzinfo | None = None,
) -> ReadOptions:
    """The options of a read. `zone` is the table's, None the process's own: instants given with an offset are converted to it.

    Raises:
        OptionError: unknown keys, values that are none of their options, what is not supported, and options that contradict
            each other: all that is wrong with the options, in one error.
    """
    layers = Layers(options, defaults, READS)
    attempt = layers.faults.attempt
    layers.not_done(reading=True)  # of a query all of it is refused
    begin = attempt(lambda: _instant(layers, _BEGIN, parse_begin_option, zone))
    end = attempt(lambda: _instant(layers, _END, parse_instant_option, zone))
    as_of = attempt(lambda: _as_of(layers, zone, session_zone))
    view = attempt(lambda: _view(layers))
    attempt(lambda: _check_range(layers, begin, end, as_of))
    layers.faults.say()
    return layers.make(ReadOptions, begin=begin, end=end, as_of=as_of, view=view, ignored=layers.ignored(reading=True))


def _check_range(layers: Layers, begin: InstantTime | None, end: InstantTime | None, as_of: str | None) -> None:
    """The instants fit the query type, and each other."""
    query = layers.get(_QUERY)
    incremental = query is QueryType.INCREMENTAL
    for key, value, fits in (
        (_BEGIN, begin, incremental),
        (_END, end, incremental),
        (AS_OF, as_of, not incremental),
    ):
        if value is not None and not fits:
            raise OptionError(
                f"option {key.name} does not go with {_QUERY.name}={query}: "
                f"drop it, or ask for {'a snapshot' if incremental else 'incremental'}"
            )
    if incremental and begin is None:
        raise OptionError(
            f"an incremental query needs {_BEGIN.name}, the instant after which changes are read; 000 for all of them"
        )
    if begin is not None and end is not None and begin > end:
        raise OptionError(f"{_BEGIN.name}={begin} is after {_END.name}={end}: swap them")


def _as_of(layers: Layers, zone: tzinfo | None, session_zone: tzinfo | None) -> InstantTime | None:
    as_of = _instant(layers, AS_OF, parse_instant_option, zone)
    text = layers.get(TIMESTAMP_AS_OF)
    if text is None:
        return as_of
    if as_of is not None:
        raise OptionError(f"options {AS_OF.name} and {TIMESTAMP_AS_OF.name} say one thing: drop one of them")
    value: object = text
    if not text.isdigit():
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is None:
            if session_zone is None:
                raise OptionError(
                    f"option {TIMESTAMP_AS_OF.name}={text!r} has no offset, and the session's time zone is not seen here: write "
                    f"{text.strip()}+00:00 for UTC, use {AS_OF.name}, or call pyspark_hoodie.enable(spark)"
                )
            value = moment.replace(tzinfo=session_zone)
    return parse_instant_option(value, name=TIMESTAMP_AS_OF.name, zone=zone)


def _instant(
    layers: Layers, key: Key[str | None], parse: Callable[..., InstantTime], zone: tzinfo | None
) -> InstantTime | None:
    text = layers.get(key)
    return None if text is None else parse(text, name=key.name, zone=zone)
