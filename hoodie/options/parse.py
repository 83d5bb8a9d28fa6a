"""What each door makes of the options that were set: frozen values, parsed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from hoodie.errors import OptionError
from hoodie.model.enums import MergeMode, QueryType, WriteOperation
from hoodie.model.instant import sort_key
from hoodie.model.plans import DeleteMarker
from hoodie.model.streams import StreamBatch
from hoodie.options import keys
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.compaction import MEMORY_LIMIT, CompactionOptions, LogCompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.expiry import ExpiryOptions
from hoodie.options.given import NOTHING, READS, VIEWS, WRITES, Given, GivenOptions, Layers
from hoodie.options.hive import HiveSyncOptions, not_registered
from hoodie.options.merging import DELETING_PAYLOAD, PAYLOADS, special_payload
from hoodie.options.moments import parse_begin_option, parse_instant_option
from hoodie.options.option import Key
from hoodie.options.read import ReadOptions, StreamReadOptions
from hoodie.options.table import TableOptions
from hoodie.options.values import DuplicatePolicy, OverwriteMode
from hoodie.options.view import EmbeddedOptions, RemoteOptions, ViewOptions
from hoodie.options.write import IndexOptions, StreamRetries, WriteOptions, WriteRequest


def _table(given: GivenOptions) -> TableOptions:
    return TableOptions(
        name=given.get(keys.TABLE_NAME),
        database_name=given.get(keys.DATABASE_NAME),
        table_type=given.get(keys.TABLE_TYPE),
        version=given.get(keys.CREATE_VERSION),
        record_key_fields=given.get(keys.RECORD_KEY),
        partition_fields=given.get(keys.PARTITION_PATH),
        ordering_fields=given.get(keys.ORDERING),
        keygen=given.attempt(lambda: given.agreed("key generator", keys.KEYGEN_TYPE, keys.KEYGEN_CLASS)),
        hive_style=given.get(keys.HIVE_STYLE),
        url_encode=given.get(keys.URL_ENCODE),
        populate_meta_fields=given.get(keys.META_FIELDS),
        drops_partition_columns=given.get(keys.DROP_COLUMNS),
        merge_mode=given.attempt(lambda: _merge_mode(given)),
        payload=special_payload(str(payload.value)) if (payload := _payload(given)) else None,
        merger=given.get(keys.PYTHON_MERGER),
        delete_marker=given.attempt(lambda: _delete_marker(given)),
        mor_inserts=given.get(keys.MOR_INSERTS),
        index=given.get(keys.INDEX_TYPE),
        bucket_count=given.get(keys.BUCKET_COUNT),
        bucket_fields=given.get(keys.BUCKET_FIELDS),
        timebased=_timebased(given),
        timestamps_as_text=given.get(keys.TIMESTAMPS_AS_TEXT),
        slash_dates=given.get(keys.SLASH_DATES),
    )


def _payload(given: GivenOptions) -> Given | None:
    """The payload class of the table, as the options say it."""
    payload = given.find(keys.PAYLOAD_CLASS)
    return None if payload is None or payload.value == DELETING_PAYLOAD else payload


def _merge_mode(given: GivenOptions) -> MergeMode | None:
    mode = given.agreed("merge mode", keys.MERGE_MODE, keys.MERGE_STRATEGY)
    payload = _payload(given)
    if payload is None:
        return mode
    by_class = PAYLOADS[str(payload.value)].mode
    said = given.find(keys.MERGE_MODE) or given.find(keys.MERGE_STRATEGY)
    if said is not None and mode is not by_class:
        raise OptionError(
            f"options contradict each other about the merge mode: {payload.name}={payload.text!r} ({by_class}), "
            f"{said.name}={said.text!r} ({mode}); drop all but one"
        )
    return mode if special_payload(str(payload.value)) else by_class


def _delete_marker(given: GivenOptions) -> DeleteMarker | None:
    field, marker = given.find(keys.DELETE_FIELD), given.find(keys.DELETE_MARKER)
    if (field is None) != (marker is None):
        there, missing = (field, keys.DELETE_MARKER) if marker is None else (marker, keys.DELETE_FIELD)
        raise OptionError(f"option {there.name if there else ''} needs {missing.name} beside it: set both, or neither")
    return DeleteMarker(str(field.value), str(marker.value)) if field and marker else None


def _timebased(given: GivenOptions) -> Mapping[str, str] | None:
    said = {key.name: value for key in keys.TIMEBASED if (value := given.get(key)) is not None}
    return said or None


def parse_write_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> WriteRequest:
    """The options of a write; `defaults` (see `load_defaults`) stand behind them.

    Raises:
        OptionError: unknown keys, values that are none of their options, what is not supported, and options that contradict
            each other: all that is wrong with the options, in one error.
        UnsupportedTableError: nothing is wrong but the table version, which this release does not write.
    """
    given = Layers(options, defaults, WRITES)
    get, attempt = given.get, given.faults.attempt
    table, unsaid = _table(given.options), _table(given.defaults)
    not_done = given.not_done(reading=False)
    operation = attempt(lambda: _operation(given))
    compaction, log_compaction = given.make(CompactionOptions), given.make(LogCompactionOptions)
    cleaning, archiving, expiry = (given.make(CleaningOptions), given.make(ArchivingOptions), given.make(ExpiryOptions))
    clustering, concurrency = given.make(ClusteringOptions), given.make(ConcurrencyOptions)
    hive_sync = given.make(HiveSyncOptions)
    view = attempt(lambda: _view(given))
    stream = attempt(lambda: _stream(given))
    key_settings = attempt(lambda: table.over(unsaid).key_settings)
    given.faults.say()
    write = WriteOptions(
        operation=operation,
        combine_before_upsert=get(keys.COMBINE_BEFORE_UPSERT),
        combine_before_insert=get(keys.COMBINE_BEFORE_INSERT),
        combine_before_delete=get(keys.COMBINE_BEFORE_DELETE),
        duplicates=get(keys.DUPLICATE_POLICY),
        drop_duplicates=get(keys.DROP_DUPLICATES),
        allow_duplicates_in_merge=get(keys.ALLOW_DUPLICATES),
        sort_mode=get(keys.SORT_MODE),
        partial=get(keys.PARTIAL_UPSERT),
        null_for_missing=get(keys.NULL_FOR_MISSING) or get(keys.RECONCILE_SCHEMA),
        integers_to_floating=get(keys.INTEGERS_TO_FLOATING),
        overwrite_mode=get(keys.OVERWRITE_MODE),
        static_partitions=get(keys.STATIC_OVERWRITE),
        partitions_to_delete=get(keys.PARTITIONS_TO_DELETE),
        complex_key_new_encoding=get(keys.COMPLEX_NEW_ENCODING),
        key_settings=key_settings,
        parallelism={
            WriteOperation.UPSERT: get(keys.UPSERT_PARALLELISM),
            WriteOperation.INSERT: get(keys.INSERT_PARALLELISM),
            WriteOperation.BULK_INSERT: get(keys.BULK_PARALLELISM),
            WriteOperation.DELETE: get(keys.DELETE_PARALLELISM),
        },
        delete_marker=table.delete_marker or unsaid.delete_marker,
        driver_max_bytes=get(keys.DRIVER_MAX_BYTES),
        memory_limit_bytes=get(MEMORY_LIMIT) * 1024 * 1024,
        max_file_size_bytes=get(keys.MAX_FILE_SIZE),
        small_file_limit_bytes=get(keys.SMALL_FILE_LIMIT),
        compression=get(keys.COMPRESSION),
        record_size_estimate_bytes=get(keys.RECORD_SIZE),
        log_max_size_bytes=get(keys.LOG_MAX_SIZE),
        log_block_format=get(keys.LOG_BLOCK_FORMAT),
        log_block_max_size_bytes=get(keys.LOG_BLOCK_MAX_SIZE),
        mor_inserts=get(keys.MOR_INSERTS),
        row_copies=get(keys.ROW_COPIES),
        metadata_enable=get(keys.METADATA_ENABLE),
        index=IndexOptions(
            type=get(keys.INDEX_TYPE),
            asked=given.options.get(keys.INDEX_TYPE),
            bucket_count=given.options.get(keys.BUCKET_COUNT),
            bucket_fields=given.options.get(keys.BUCKET_FIELDS),
            bloom_fpp=get(keys.BLOOM_FPP),
            bloom_num_entries=get(keys.BLOOM_ENTRIES),
            bloom_type=get(keys.BLOOM_TYPE),
            bloom_max_entries=get(keys.BLOOM_MAX_ENTRIES),
            prune_by_ranges=get(keys.BLOOM_PRUNE),
        ),
        services_enabled=get(keys.SERVICES_ENABLED),
        compaction=compaction,
        log_compaction=log_compaction,
        cleaning=cleaning,
        archiving=archiving,
        expiry=expiry,
        clustering=clustering,
        concurrency=concurrency,
        view=view,
        embedded=given.make(EmbeddedOptions),
        markers=get(keys.MARKERS_TYPE),
        hive_sync=hive_sync,
        stream=stream,
        stream_retries=StreamRetries(get(keys.STREAM_RETRIES), get(keys.STREAM_RETRY_INTERVAL) / 1000),
        commit_entries={name: str(options[name]) for name in given.options.notes},
    )
    return WriteRequest(
        table,
        write,
        given.ignored(reading=False),
        unsaid,
        (*not_done, *not_registered(given.get)),
    )


def _operation(given: Layers) -> WriteOperation:
    operation, mode = given.get(keys.OPERATION), given.options.find(keys.OVERWRITE_MODE)
    if operation is WriteOperation.INSERT_OVERWRITE_TABLE and mode and mode.value is OverwriteMode.DYNAMIC:
        raise OptionError(
            f"{mode.name}={mode.text!r} replaces partitions and operation insert_overwrite_table the whole table: drop one of them, "
            "or use operation insert_overwrite"
        )
    if given.get(keys.PAYLOAD_CLASS) == DELETING_PAYLOAD:
        if operation not in (WriteOperation.UPSERT, WriteOperation.DELETE):
            raise OptionError(
                f"{keys.PAYLOAD_CLASS.name}={DELETING_PAYLOAD!r} deletes, and operation {operation.value.lower()} does not: "
                "drop one of them"
            )
        return WriteOperation.DELETE
    if operation is WriteOperation.UPSERT and (
        given.get(keys.DROP_DUPLICATES) or given.get(keys.DUPLICATE_POLICY) is not DuplicatePolicy.NONE
    ):
        return WriteOperation.INSERT  # as Apache Hudi understands these options beside its default operation
    return operation


def parse_view_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> ViewOptions:
    """The options of the file system view among any others, which are not judged here.

    Raises:
        OptionError: a value that is none of its option.
    """
    ours, unsaid = ({n: v for n, v in each.items() if n.lower() in VIEWS} for each in (options, defaults))
    given = Layers(ours, unsaid, VIEWS)
    view = given.faults.attempt(lambda: _view(given))
    given.faults.say()
    return view


def _view(given: Layers) -> ViewOptions:
    view = given.make(ViewOptions)
    return replace(view, remote=RemoteOptions.at(**vars(given.make(RemoteOptions)))) if view.type.is_remote else view


def _stream(given: Layers) -> StreamBatch | None:
    name, number = given.get(keys.STREAM_ID), given.get(keys.STREAM_BATCH)
    if (name is None) != (number is None):
        raise OptionError(f"{keys.STREAM_ID.name} and {keys.STREAM_BATCH.name} go together: set both, or none of them")
    return None if name is None or number is None else StreamBatch(name, number, given.get(keys.STREAM_IDENTIFIER))


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
    given = Layers(options, defaults, READS)
    attempt = given.faults.attempt
    given.not_done(reading=True)  # of a query all of it is refused
    begin = attempt(lambda: _instant(given, keys.BEGIN_INSTANT, parse_begin_option, zone))
    end = attempt(lambda: _instant(given, keys.END_INSTANT, parse_instant_option, zone))
    as_of = attempt(lambda: _as_of(given, zone, session_zone))
    view = attempt(lambda: _view(given))
    attempt(lambda: _check_range(given, begin, end, as_of))
    given.faults.say()
    return ReadOptions(
        query=given.get(keys.QUERY_TYPE),
        begin=begin,
        end=end,
        as_of=as_of,
        changes=given.get(keys.INCREMENTAL_FORMAT),
        full_scan_fallback=given.get(keys.FULL_SCAN_FALLBACK),
        where=given.get(keys.WHERE),
        columns=given.get(keys.COLUMNS),
        stream=StreamReadOptions(given.get(keys.START_OFFSET), given.get(keys.MAX_COMMITS), given.get(keys.MAX_BYTES)),
        view=view,
        ignored=given.ignored(reading=True),
    )


def _check_range(given: Layers, begin: str | None, end: str | None, as_of: str | None) -> None:
    """The instants fit the query type, and each other."""
    query = given.get(keys.QUERY_TYPE)
    incremental = query is QueryType.INCREMENTAL
    for key, value, fits in (
        (keys.BEGIN_INSTANT, begin, incremental),
        (keys.END_INSTANT, end, incremental),
        (keys.AS_OF, as_of, not incremental),
    ):
        if value is not None and not fits:
            raise OptionError(
                f"option {key.name} does not go with {keys.QUERY_TYPE.name}={query}: "
                f"drop it, or ask for {'a snapshot' if incremental else 'incremental'}"
            )
    if incremental and begin is None:
        raise OptionError(
            f"an incremental query needs {keys.BEGIN_INSTANT.name}, the instant after which changes are read; "
            "000 for all of them"
        )
    if begin is not None and end is not None and sort_key(begin) > sort_key(end):
        raise OptionError(f"{keys.BEGIN_INSTANT.name}={begin} is after {keys.END_INSTANT.name}={end}: swap them")


def _as_of(given: Layers, zone: tzinfo | None, session_zone: tzinfo | None) -> str | None:
    as_of = _instant(given, keys.AS_OF, parse_instant_option, zone)
    text = given.get(keys.TIMESTAMP_AS_OF)
    if text is None:
        return as_of
    if as_of is not None:
        raise OptionError(f"options {keys.AS_OF.name} and {keys.TIMESTAMP_AS_OF.name} say one thing: drop one of them")
    value: object = text
    if not text.isdigit():
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is None:
            if session_zone is None:
                raise OptionError(
                    f"option {keys.TIMESTAMP_AS_OF.name}={text!r} has no offset, and the session's time zone is not seen here: write "
                    f"{text.strip()}+00:00 for UTC, use {keys.AS_OF.name}, or call pyspark_hoodie.enable(spark)"
                )
            value = moment.replace(tzinfo=session_zone)
    return parse_instant_option(value, name=keys.TIMESTAMP_AS_OF.name, zone=zone)


def _instant(given: Layers, key: Key[str | None], parse: Callable[..., str], zone: tzinfo | None) -> str | None:
    text = given.get(key)
    return None if text is None else parse(text, name=key.name, zone=zone)
