"""From text to frozen options, once, at the doors.

Of every key: one that hoodie understands is parsed; one that only Apache Hudi knows is accepted and named in `ignored`, or
in `not_done` where it asks for more than an effect on speed; one of another system is an error that names ours, and one that
nobody knows an error that suggests the nearest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from hoodie.errors import OptionError
from hoodie.model.enums import MergeMode, PartitionFilter, QueryType, WriteOperation
from hoodie.model.instant import sort_key
from hoodie.model.plans import DeleteMarker
from hoodie.model.streams import StreamBatch
from hoodie.options import keys
from hoodie.options.compaction import Strategy
from hoodie.options.hive import HiveSyncOptions, servers_of
from hoodie.options.keys import Key
from hoodie.options.merging import PAYLOADS, special_payload
from hoodie.options.moments import parse_begin_option, parse_instant_option
from hoodie.options.not_done import names_not_done, not_done
from hoodie.options.other_systems import of_another_system
from hoodie.options.read import ReadOptions, StreamReadOptions
from hoodie.options.services import (
    ArchivingOptions,
    CleaningOptions,
    ClusteringOptions,
    CompactionOptions,
    ConcurrencyOptions,
    ExpiryOptions,
    LogCompactionOptions,
)
from hoodie.options.table import TableOptions
from hoodie.options.values import DuplicatePolicy, MarkersType, OverwriteMode, ViewStore, did_you_mean
from hoodie.options.view import EmbeddedOptions, RemoteOptions, ViewOptions
from hoodie.options.write import IndexOptions, StreamRetries, WriteOptions, WriteRequest

T = TypeVar("T")

NOTHING: Mapping[str, str] = MappingProxyType({})
CONF_DIR = "HOODIE_CONF_DIR"
DEFAULTS_FILE = "hoodie-defaults.conf"
_SHOWN = 5
"""Unknown options that one message lists."""
_LINE = re.compile(r"(?P<key>[^\s=]+)(?:\s*=\s*|\s+)(?P<value>.*)")


class _Given(NamedTuple):
    """One option that was set: the name by which the user called it, and its value."""

    name: str
    text: str
    value: object


Door = Mapping[str, Key[object]]
"""The options that are understood at one place, by each of their names in lower case."""


def _door(understood: Iterable[Key[object]]) -> Door:
    return {name.lower(): key for key in understood for name in key.names}


_WRITES, _READS, _VIEWS = _door(keys.WRITE_KEYS), _door(keys.READ_KEYS), _door(keys.VIEW_KEYS)


class _Options:
    """The options of one mapping that a door understands."""

    def __init__(self, options: Mapping[str, str], door: Door) -> None:
        """Raises OptionError for unknown keys, bad values, and one option with two values."""
        self._given: dict[str, _Given] = {}
        self.ignored: list[str] = []
        self.newest: dict[str, tuple[str, str]] = {}
        """Name and text of each option that Apache Hudi knows, by the newest name of it in lower case."""
        unknown: list[str] = []
        newest = keys.newest_names()
        for name, text in _checked(options).items():
            folded = name.lower()
            if folded in newest:
                self.newest[newest[folded]] = (name, text)
            key = door.get(folded)
            if key is not None:
                self._add(key, _Given(name, text, key.parse(text, name=name)))
            elif folded in keys.known_keys() or folded.startswith(keys.PAYLOAD_PREFIX):
                self.ignored.append(name)
            else:
                unknown.append(name)
        prefix = (self.get(keys.COMMIT_ENTRIES) or keys.COMMIT_ENTRIES.default).lower()
        self.notes = [name for name in unknown if _is_note(name, prefix)]
        """Options of the user's own, for the metadata of the commit."""
        if len(unknown) > len(self.notes):
            raise _unknown([name for name in unknown if name not in self.notes])

    def _add(self, key: Key[object], given: _Given) -> None:
        before = self._given.setdefault(key.name, given)
        if before.value != given.value:
            raise OptionError(
                f"options {before.name}={before.text!r} and {given.name}={given.text!r} are two names of one option "
                "with two values: drop one"
            )

    def find(self, key: Key[T]) -> _Given | None:
        return self._given.get(key.name)

    def get(self, key: Key[T]) -> T | None:
        """The value that was set, else None."""
        given = self.find(key)
        return None if given is None else cast(T, given.value)

    def agreed(self, what: str, *names: Key[T | None]) -> T | None:
        """The one value of several options that say the same thing in different words."""
        given = [found for key in names if (found := self.find(key))]
        if any(each.value != given[0].value for each in given[1:]):
            said = ", ".join(f"{each.name}={each.text!r} ({each.value})" for each in given)
            raise OptionError(f"options contradict each other about the {what}: {said}; drop all but one")
        return cast(T, given[0].value) if given else None

    def table(self) -> TableOptions:
        return TableOptions(
            name=self.get(keys.TABLE_NAME),
            database_name=self.get(keys.DATABASE_NAME),
            table_type=self.get(keys.TABLE_TYPE),
            version=self.get(keys.CREATE_VERSION),
            record_key_fields=self.get(keys.RECORD_KEY),
            partition_fields=self.get(keys.PARTITION_PATH),
            ordering_fields=self.get(keys.ORDERING),
            keygen=self.agreed("key generator", keys.KEYGEN_TYPE, keys.KEYGEN_CLASS),
            hive_style=self.get(keys.HIVE_STYLE),
            url_encode=self.get(keys.URL_ENCODE),
            merge_mode=self.merge_mode(),
            payload=None if (payload := self.get(keys.PAYLOAD_CLASS)) is None else special_payload(payload),
            merger=self.get(keys.PYTHON_MERGER),
            delete_marker=self.delete_marker(),
            mor_inserts=self.get(keys.MOR_INSERTS),
            index=self.get(keys.INDEX_TYPE),
            bucket_count=self.get(keys.BUCKET_COUNT),
            bucket_fields=self.get(keys.BUCKET_FIELDS),
            timebased=self.timebased(),
            timestamps_as_text=self.get(keys.TIMESTAMPS_AS_TEXT),
            slash_dates=self.get(keys.SLASH_DATES),
        )

    def merge_mode(self) -> MergeMode | None:
        mode = self.agreed("merge mode", keys.MERGE_MODE, keys.MERGE_STRATEGY)
        payload = self.find(keys.PAYLOAD_CLASS)
        if payload is None:
            return mode
        by_class = PAYLOADS[str(payload.value)].mode
        given = self.find(keys.MERGE_MODE) or self.find(keys.MERGE_STRATEGY)
        if given is not None and mode is not by_class:
            raise OptionError(
                f"options contradict each other about the merge mode: {payload.name}={payload.text!r} ({by_class}), "
                f"{given.name}={given.text!r} ({mode}); drop all but one"
            )
        return mode if special_payload(str(payload.value)) else by_class

    def delete_marker(self) -> DeleteMarker | None:
        field, marker = self.find(keys.DELETE_FIELD), self.find(keys.DELETE_MARKER)
        if (field is None) != (marker is None):
            there, missing = (field, keys.DELETE_MARKER) if marker is None else (marker, keys.DELETE_FIELD)
            raise OptionError(
                f"option {there.name if there else ''} needs {missing.name} beside it: set both, or neither"
            )
        return DeleteMarker(str(field.value), str(marker.value)) if field and marker else None

    def timebased(self) -> Mapping[str, str] | None:
        said = {key.name: value for key in keys.TIMEBASED if (value := self.get(key)) is not None}
        return said or None


class _Layers(NamedTuple):
    """What was set, over the defaults of a file, over our own."""

    options: _Options
    defaults: _Options

    @classmethod
    def of(cls, options: Mapping[str, str], defaults: Mapping[str, str], door: Door) -> _Layers:
        return cls(_Options(options, door), _Options(defaults, door))

    def get(self, key: Key[T]) -> T:
        given = self.options.find(key) or self.defaults.find(key)
        return key.default if given is None else cast(T, given.value)

    def ignored(self, *, reading: bool) -> tuple[str, ...]:
        """Of the defaults only what no door understands: they are written for all doors at once."""
        useless = [n for n in self.defaults.ignored if n.lower() not in _WRITES and n.lower() not in _READS]
        told = names_not_done(reading=reading)
        found = {*self.options.ignored, *useless, *(self.options.notes if reading else ())}
        return tuple(sorted(name for name in found if keys.newest_names().get(name.lower()) not in told))

    def not_done(self, *, reading: bool) -> tuple[str, ...]:
        return not_done({**self.defaults.newest, **self.options.newest}, reading=reading)


def _checked(options: Mapping[Any, Any]) -> dict[str, str]:
    """The options as texts, as Spark makes them of what it is given: True is `true`."""
    found: dict[str, str] = {}
    for name, value in options.items():
        if not isinstance(name, str):
            raise OptionError(f"option {name!r} is a {type(name).__name__}: names of options are texts")
        if not isinstance(value, str | int | float):
            raise OptionError(f"option {name!r} has a value of type {type(value).__name__}: give it as text")
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _is_note(name: str, prefix: str) -> bool:
    return name.lower().startswith(prefix) and not name.lower().startswith(keys.PREFIXES)


def _unknown(names: list[str], where: str = "") -> OptionError:
    lines = []
    for name in sorted(names)[:_SHOWN]:
        known = of_another_system(name)
        hint = "" if known else did_you_mean(name, keys.known_keys().values(), prefix="hoodie.")
        lines.append((known or f"unknown option {name!r}") + where + (f". {hint}" if hint else ""))
    if len(names) > _SHOWN:
        lines.append(f"and {len(names) - _SHOWN} more")
    return OptionError("\n".join(lines))


def _compaction(given: _Layers) -> CompactionOptions:
    get = given.get
    memory_bytes = get(keys.COMPACT_MEMORY)
    if Strategy.PARTITION_REGEX in get(keys.COMPACT_STRATEGY) and get(keys.COMPACT_REGEX) is None:
        raise OptionError(
            f"the compaction strategy {Strategy.PARTITION_REGEX} needs {keys.COMPACT_REGEX.name}, which says what partitions are taken"
        )
    return CompactionOptions(
        inline=get(keys.COMPACT_INLINE),
        schedules_only=get(keys.COMPACT_SCHEDULE_INLINE),
        in_background=get(keys.COMPACT_ASYNC),
        trigger=get(keys.COMPACT_TRIGGER),
        max_delta_commits=get(keys.COMPACT_DELTA_COMMITS),
        max_delta_s=get(keys.COMPACT_DELTA_SECONDS),
        strategies=get(keys.COMPACT_STRATEGY),
        target_io_mb=get(keys.COMPACT_TARGET_IO),
        min_log_bytes=get(keys.COMPACT_LOG_SIZE),
        min_log_files=get(keys.COMPACT_LOG_COUNT),
        days=get(keys.COMPACT_DAYS),
        partition_regex=get(keys.COMPACT_REGEX),
        memory_bytes=memory_bytes or int(get(keys.MEMORY_LIMIT_MB) * 1024 * 1024 * get(keys.COMPACT_MEMORY_SHARE)),
    )


def _archiving(given: _Layers) -> ArchivingOptions:
    get = given.get
    least, most = get(keys.KEEP_MIN_COMMITS), get(keys.KEEP_MAX_COMMITS)
    if least >= most:
        raise OptionError(
            f"{keys.KEEP_MAX_COMMITS.name}={most} has to be more than {keys.KEEP_MIN_COMMITS.name}={least}: beyond the "
            "first the oldest commits are archived, and so many stay as the second says"
        )
    return ArchivingOptions(
        automatic=get(keys.ARCHIVE_AUTOMATIC),
        in_background=get(keys.ARCHIVE_ASYNC),
        min_commits=least,
        max_commits=most,
        beyond_savepoints=get(keys.ARCHIVE_BEYOND_SAVEPOINT),
        waits_for_cleans=get(keys.ARCHIVE_WAITS_FOR_CLEANS),
    )


def _clustering(given: _Layers) -> ClusteringOptions:
    get = given.get
    columns, selected = get(keys.CLUSTER_SORT), get(keys.CLUSTER_SELECTED)
    mode, begin, end = get(keys.CLUSTER_PARTITIONS), get(keys.CLUSTER_BEGIN), get(keys.CLUSTER_END)
    if mode is PartitionFilter.SELECTED_PARTITIONS and (begin is None or end is None):
        raise OptionError(
            f"{keys.CLUSTER_PARTITIONS.name}={mode.value} needs {keys.CLUSTER_BEGIN.name} and {keys.CLUSTER_END.name}"
        )
    return ClusteringOptions(
        inline=get(keys.CLUSTER_INLINE),
        inline_commits=get(keys.CLUSTER_COMMITS),
        in_background=get(keys.CLUSTER_ASYNC),
        background_commits=get(keys.CLUSTER_ASYNC_COMMITS),
        schedules=get(keys.CLUSTER_SCHEDULE),
        sort_columns=columns or (),
        layout=get(keys.CLUSTER_LAYOUT),
        target_bytes=get(keys.CLUSTER_TARGET_FILE),
        small_file_limit=get(keys.CLUSTER_SMALL_FILE),
        max_group_bytes=get(keys.CLUSTER_GROUP_BYTES),
        max_groups=get(keys.CLUSTER_GROUPS),
        single_files=get(keys.CLUSTER_SINGLE),
        partition_filter=mode,
        regex=get(keys.CLUSTER_REGEX),
        selected=selected or (),
        begin=begin,
        end=end,
        lookback=get(keys.CLUSTER_LOOKBACK),
        skip=get(keys.CLUSTER_SKIP),
        updates=get(keys.CLUSTER_UPDATES),
    )


def parse_write_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> WriteRequest:
    """The options of a write; `defaults` (see `load_defaults`) stand behind them.

    Raises:
        OptionError: an unknown key, a value that is none of its option, or options that contradict each other.
        UnsupportedTableError: a table version is asked for that this release does not write.
    """
    given = _Layers.of(options, defaults, _WRITES)
    get = given.get
    operation = get(keys.OPERATION)
    mode = given.options.find(keys.OVERWRITE_MODE)
    if operation is WriteOperation.INSERT_OVERWRITE_TABLE and mode and mode.value is OverwriteMode.DYNAMIC:
        raise OptionError(
            f"{mode.name}={mode.text!r} replaces partitions and operation insert_overwrite_table the whole table: drop one of them, "
            "or use operation insert_overwrite"
        )
    if operation is WriteOperation.UPSERT and (
        get(keys.DROP_DUPLICATES) or get(keys.DUPLICATE_POLICY) is not DuplicatePolicy.NONE
    ):
        operation = WriteOperation.INSERT  # as Apache Hudi understands these options beside its default operation
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
        null_for_missing=get(keys.NULL_FOR_MISSING),
        integers_to_floating=get(keys.INTEGERS_TO_FLOATING),
        overwrite_mode=get(keys.OVERWRITE_MODE),
        static_partitions=get(keys.STATIC_OVERWRITE),
        partitions_to_delete=get(keys.PARTITIONS_TO_DELETE),
        complex_key_new_encoding=get(keys.COMPLEX_NEW_ENCODING),
        key_settings=given.options.table().over(given.defaults.table()).key_settings,
        parallelism={
            WriteOperation.UPSERT: get(keys.UPSERT_PARALLELISM),
            WriteOperation.INSERT: get(keys.INSERT_PARALLELISM),
            WriteOperation.BULK_INSERT: get(keys.BULK_PARALLELISM),
            WriteOperation.DELETE: get(keys.DELETE_PARALLELISM),
        },
        delete_marker=given.options.delete_marker() or given.defaults.delete_marker(),
        driver_max_bytes=get(keys.DRIVER_MAX_BYTES),
        memory_limit_bytes=get(keys.MEMORY_LIMIT_MB) * 1024 * 1024,
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
        compaction=_compaction(given),
        log_compaction=LogCompactionOptions(
            enabled=get(keys.LOG_COMPACT_ENABLE),
            inline=get(keys.LOG_COMPACT_INLINE),
            blocks=get(keys.LOG_COMPACT_BLOCKS),
        ),
        cleaning=CleaningOptions(
            automatic=get(keys.CLEAN_AUTOMATIC),
            in_background=get(keys.CLEAN_ASYNC),
            policy=get(keys.CLEAN_POLICY),
            commits=get(keys.CLEAN_COMMITS),
            hours=get(keys.CLEAN_HOURS),
            versions=get(keys.CLEAN_VERSIONS),
            trigger_commits=get(keys.CLEAN_TRIGGER_COMMITS),
            incremental=get(keys.CLEAN_INCREMENTAL),
            at_once=get(keys.CLEAN_AT_ONCE),
            multiple=get(keys.CLEAN_MULTIPLE),
            consumer_hours=get(keys.CONSUMER_HOURS),
        ),
        archiving=_archiving(given),
        expiry=ExpiryOptions(
            inline=get(keys.EXPIRY_INLINE),
            strategy=get(keys.EXPIRY_CLASS) or get(keys.EXPIRY_STRATEGY),
            days=get(keys.EXPIRY_DAYS),
            selected=get(keys.EXPIRY_SELECTED) or None,
            most=get(keys.EXPIRY_MOST),
        ),
        clustering=_clustering(given),
        concurrency=ConcurrencyOptions(
            heartbeat_interval_s=get(keys.HEARTBEAT_INTERVAL) / 1000,
            heartbeat_misses=get(keys.HEARTBEAT_MISSES),
            takes_turns=get(keys.TAKES_TURNS),
            failed_writes=get(keys.FAILED_WRITES),
            lock_provider=get(keys.LOCK_PROVIDER),
            lock_timeout_s=get(keys.LOCK_WAIT) / 1000,
            storage_lease_s=get(keys.STORAGE_LOCK_LEASE),
            storage_renewal_s=get(keys.STORAGE_LOCK_RENEWAL),
            filesystem_path=get(keys.FILESYSTEM_LOCK_PATH),
            filesystem_expiry_s=get(keys.FILESYSTEM_LOCK_EXPIRY) * 60,
            hive_uris=get(keys.HIVE_URIS),
            hive_database=get(keys.HIVE_DATABASE),
            hive_table=get(keys.HIVE_TABLE),
            zookeeper_url=get(keys.ZOOKEEPER_URL),
            zookeeper_port=get(keys.ZOOKEEPER_PORT),
            zookeeper_base_path=get(keys.ZOOKEEPER_BASE_PATH),
            zookeeper_lock_key=get(keys.ZOOKEEPER_LOCK_KEY),
            zookeeper_session_s=get(keys.ZOOKEEPER_SESSION) / 1000,
            zookeeper_connection_s=get(keys.ZOOKEEPER_CONNECTION) / 1000,
        ),
        view=_view(given),
        embedded=EmbeddedOptions(get(keys.EMBED_SERVER), get(keys.EMBED_PORT), get(keys.REMOTE_TOKEN)),
        gathered_markers=get(keys.MARKERS_TYPE) is MarkersType.TIMELINE_SERVER_BASED,
        hive_sync=_hive_sync(given),
        stream=_stream(given),
        stream_retries=StreamRetries(get(keys.STREAM_RETRIES), get(keys.STREAM_RETRY_INTERVAL) / 1000),
        commit_entries={name: str(options[name]) for name in given.options.notes},
    )
    return WriteRequest(
        given.options.table(),
        write,
        given.ignored(reading=False),
        given.defaults.table(),
        given.not_done(reading=False),
    )


def parse_view_options(options: Mapping[str, str], *, defaults: Mapping[str, str] = NOTHING) -> ViewOptions:
    """The options of the file system view among any others, which are not judged here.

    Raises:
        OptionError: a value that is none of its option.
    """
    given, unsaid = ({n: v for n, v in each.items() if n.lower() in _VIEWS} for each in (options, defaults))
    return _view(_Layers.of(given, unsaid, _VIEWS))


def _view(given: _Layers) -> ViewOptions:
    get = given.get
    follows, checkpoint = get(keys.VIEW_SYNC), get(keys.VIEW_CHECKPOINT)
    return ViewOptions(
        follows=True if follows is None and checkpoint is not None else follows,
        type=get(keys.VIEW_TYPE),
        secondary=get(keys.VIEW_SECONDARY),
        spill_bytes=get(keys.VIEW_SPILL_BYTES),
        spill_folder=get(keys.VIEW_SPILL_DIR),
        rocksdb_folder=get(keys.VIEW_ROCKSDB_DIR),
        remote=_remote(given) if get(keys.VIEW_TYPE).is_remote else None,
        checkpoint=checkpoint,
    )


def _remote(given: _Layers) -> RemoteOptions:
    get = given.get
    return RemoteOptions.at(
        get(keys.REMOTE_HOST),
        port=get(keys.REMOTE_PORT),
        token=get(keys.REMOTE_TOKEN),
        timeout_s=get(keys.REMOTE_TIMEOUT),
        retries=get(keys.REMOTE_RETRIES) if get(keys.REMOTE_RETRY) else 0,
        first_pause_s=get(keys.REMOTE_FIRST_PAUSE) / 1000,
        max_pause_s=get(keys.REMOTE_MAX_PAUSE) / 1000,
        is_only=get(keys.VIEW_TYPE) is ViewStore.REMOTE_ONLY,
    )


def _hive_sync(given: _Layers) -> HiveSyncOptions:
    get = given.get
    table_properties, serde_properties = get(keys.HIVE_SYNC_PROPERTIES), get(keys.HIVE_SYNC_SERDE)
    return HiveSyncOptions(
        enabled=get(keys.HIVE_SYNC_ENABLE) or get(keys.META_SYNC_ENABLE),
        servers=servers_of(get(keys.HIVE_SYNC_URIS), option=keys.HIVE_SYNC_URIS.name),
        database=get(keys.HIVE_SYNC_DATABASE),
        table=get(keys.HIVE_SYNC_TABLE),
        creates_database=get(keys.HIVE_SYNC_AUTO_DATABASE),
        partition_fields=get(keys.HIVE_SYNC_PARTITION_FIELDS),
        extractor=get(keys.HIVE_SYNC_EXTRACTOR),
        skips_ro_suffix=get(keys.HIVE_SYNC_SKIP_RO),
        views=get(keys.HIVE_SYNC_STRATEGY),
        snapshot_by_name=get(keys.META_SYNC_SNAPSHOT_NAME),
        timestamps=get(keys.HIVE_SYNC_TIMESTAMP),
        comments=get(keys.HIVE_SYNC_COMMENT),
        for_spark=get(keys.HIVE_SYNC_DATASOURCE),
        spark_version=get(keys.META_SYNC_SPARK_VERSION),
        schema_length=get(keys.HIVE_SYNC_SCHEMA_LENGTH),
        meta_columns=not get(keys.HIVE_SYNC_NO_META),
        table_properties=table_properties or {},
        serde_properties=serde_properties or {},
        managed=get(keys.HIVE_SYNC_MANAGED),
        at_once=get(keys.HIVE_SYNC_BATCH),
        recreates=get(keys.HIVE_SYNC_RECREATE),
        incremental=get(keys.META_SYNC_INCREMENTAL),
        with_partitions=not get(keys.META_SYNC_NO_PARTITIONS),
        touches=get(keys.META_SYNC_TOUCH),
        only_changes=get(keys.META_SYNC_CONDITIONAL),
        path=get(keys.META_SYNC_PATH),
        timeout_s=get(keys.HIVE_SYNC_TIMEOUT),
    )


def _stream(given: _Layers) -> StreamBatch | None:
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
        OptionError: an unknown key, a value that is none of its option, or options that contradict each other.
    """
    given = _Layers.of(options, defaults, _READS)
    given.not_done(reading=True)  # of a query all of it is refused
    query = given.get(keys.QUERY_TYPE)
    begin = _instant(given, keys.BEGIN_INSTANT, parse_begin_option, zone)
    end = _instant(given, keys.END_INSTANT, parse_instant_option, zone)
    as_of = _as_of(given, zone, session_zone)
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
    read = ReadOptions(
        query=query,
        begin=begin,
        end=end,
        as_of=as_of,
        changes=given.get(keys.INCREMENTAL_FORMAT),
        full_scan_fallback=given.get(keys.FULL_SCAN_FALLBACK),
        where=given.get(keys.WHERE),
        columns=given.get(keys.COLUMNS),
        stream=StreamReadOptions(given.get(keys.START_OFFSET), given.get(keys.MAX_COMMITS), given.get(keys.MAX_BYTES)),
        view=_view(given),
        ignored=given.ignored(reading=True),
    )
    if begin is not None and end is not None and sort_key(begin) > sort_key(end):
        raise OptionError(f"{keys.BEGIN_INSTANT.name}={begin} is after {keys.END_INSTANT.name}={end}: swap them")
    return read


def _as_of(given: _Layers, zone: tzinfo | None, session_zone: tzinfo | None) -> str | None:
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


def _instant(given: _Layers, key: Key[str | None], parse: Callable[..., str], zone: tzinfo | None) -> str | None:
    text = given.get(key)
    return None if text is None else parse(text, name=key.name, zone=zone)


def load_defaults() -> Mapping[str, str]:
    """Options of `hoodie-defaults.conf` in the folder that the environment variable HOODIE_CONF_DIR names.

    Lines are `key=value` or `key value`; `#` begins a comment line. Without the variable or the file there are none.

    Raises:
        OptionError: the folder is missing, a line has no value, or a key is unknown; the message has file and line.
    """
    folder = os.environ.get(CONF_DIR, "")
    if not folder:
        return NOTHING
    if not Path(folder).is_dir():
        raise OptionError(f"{CONF_DIR}={folder!r} is no folder: set it to the one with {DEFAULTS_FILE}, or unset it")
    path = Path(folder) / DEFAULTS_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return NOTHING
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read: {error}") from error
    return MappingProxyType(parse_defaults(text, path=str(path)))


def parse_defaults(text: str, *, path: str) -> dict[str, str]:
    """The options of a defaults file; see `load_defaults`."""
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if not found:
            raise OptionError(f"{path}:{number}: {line!r} has no value, expected key=value or key value")
        key = found["key"]
        if key.lower() not in keys.known_keys() and not key.lower().startswith(keys.PAYLOAD_PREFIX):
            raise _unknown([key], f" in {path}:{number}")
        options[key] = found["value"].strip()
    return options
