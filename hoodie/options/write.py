"""Options of a write, and what a write asks of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hoodie.model.enums import BlockKind, WriteOperation
from hoodie.model.plans import DeleteMarker, FileOptions
from hoodie.model.streams import StreamBatch
from hoodie.options import keys
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.compaction import MEMORY_LIMIT, CompactionOptions, LogCompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.expiry import ExpiryOptions
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.keygen import KeySettings
from hoodie.options.table import TableOptions
from hoodie.options.values import (
    DuplicatePolicy,
    IndexType,
    LogBlockFormat,
    MarkersType,
    MorInserts,
    OverwriteMode,
    SortMode,
)
from hoodie.options.view import EMBEDDED, VIEW, EmbeddedOptions, ViewOptions

_PARALLELISM = {
    WriteOperation.UPSERT: keys.UPSERT_PARALLELISM.default,
    WriteOperation.INSERT: keys.INSERT_PARALLELISM.default,
    WriteOperation.BULK_INSERT: keys.BULK_PARALLELISM.default,
    WriteOperation.DELETE: keys.DELETE_PARALLELISM.default,
}


_BLOCK_KINDS = {LogBlockFormat.AVRO: BlockKind.AVRO_DATA, LogBlockFormat.PARQUET: BlockKind.PARQUET_DATA}


MOST_MARKER_FILES = 100


@dataclass(frozen=True)
class IndexOptions:
    type: IndexType = keys.INDEX_TYPE.default
    asked: IndexType | None = None
    """None: not said, the table's own counts. With the two below for a table whose properties do not say its layout."""
    bucket_count: int | None = None
    bucket_fields: tuple[str, ...] | None = None
    bloom_fpp: float = keys.BLOOM_FPP.default
    bloom_num_entries: int | None = keys.BLOOM_ENTRIES.default
    """None: the number of records of the file."""
    bloom_type: str = keys.BLOOM_TYPE.default
    bloom_max_entries: int = keys.BLOOM_MAX_ENTRIES.default
    prune_by_ranges: bool = keys.BLOOM_PRUNE.default


@dataclass(frozen=True)
class StreamRetries:
    """How a streaming sink writes a batch that failed for a reason that may pass."""

    tries: int = keys.STREAM_RETRIES.default
    interval_s: float = keys.STREAM_RETRY_INTERVAL.default / 1000
    """Before the second try; doubled before each further one."""


@dataclass(frozen=True)
class WriteOptions:
    """How one write goes about its work; nothing here is remembered by the table."""

    operation: WriteOperation = keys.OPERATION.default
    combine_before_upsert: bool = keys.COMBINE_BEFORE_UPSERT.default
    combine_before_insert: bool = keys.COMBINE_BEFORE_INSERT.default
    combine_before_delete: bool = keys.COMBINE_BEFORE_DELETE.default
    duplicates: DuplicatePolicy = keys.DUPLICATE_POLICY.default
    """What an insert does with rows whose key is stored."""
    drop_duplicates: bool = keys.DROP_DUPLICATES.default
    """The older word for the policy DROP; it also reduces the rows of one key in the batch to one."""
    allow_duplicates_in_merge: bool = keys.ALLOW_DUPLICATES.default
    """Whether an insert into a small file leaves the rows there that have the same key."""
    sort_mode: SortMode = keys.SORT_MODE.default
    partial: bool = keys.PARTIAL_UPSERT.default
    """Upserts: columns that the batch lacks keep their stored values."""
    null_for_missing: bool = keys.NULL_FOR_MISSING.default
    """Columns that the batch lacks are null in its rows; else that is an error."""
    integers_to_floating: bool = keys.INTEGERS_TO_FLOATING.default
    """A batch may make an integer column a floating one."""
    overwrite_mode: OverwriteMode | None = keys.OVERWRITE_MODE.default
    static_partitions: tuple[str, ...] | None = keys.STATIC_OVERWRITE.default
    """Partition paths that an insert_overwrite replaces; None, or none: those of its rows."""
    partitions_to_delete: tuple[str, ...] | None = keys.PARTITIONS_TO_DELETE.default
    """Partition paths, with `*` for any text; None: those of the rows."""
    complex_key_new_encoding: bool | None = keys.COMPLEX_NEW_ENCODING.default
    """COMPLEX keys of one column without its name; None: as the table's files have it."""
    key_settings: KeySettings = field(default_factory=KeySettings)
    """For tables that do not remember how their keys and paths are made."""
    parallelism: Mapping[WriteOperation, int] = field(default_factory=_PARALLELISM.copy)
    """Tasks by operation; 0: derived."""
    delete_marker: DeleteMarker | None = None
    """Of this write, for tables that do not store one."""
    driver_max_bytes: int = keys.DRIVER_MAX_BYTES.default
    memory_limit_bytes: int = MEMORY_LIMIT.default * 1024 * 1024
    max_file_size_bytes: int = keys.MAX_FILE_SIZE.default
    small_file_limit_bytes: int = keys.SMALL_FILE_LIMIT.default
    compression: str = keys.COMPRESSION.default
    """As pyarrow names it."""
    record_size_estimate_bytes: int = keys.RECORD_SIZE.default
    log_max_size_bytes: int = keys.LOG_MAX_SIZE.default
    log_block_format: LogBlockFormat = keys.LOG_BLOCK_FORMAT.default
    log_block_max_size_bytes: int = keys.LOG_BLOCK_MAX_SIZE.default
    mor_inserts: MorInserts | None = keys.MOR_INSERTS.default
    """None: as the table remembers it."""
    row_copies: bool | None = keys.ROW_COPIES.default
    """None: beside Avro blocks; see `copies_rows`."""
    metadata_enable: bool | None = keys.METADATA_ENABLE.default
    index: IndexOptions = field(default_factory=IndexOptions)
    services_enabled: bool = keys.SERVICES_ENABLED.default
    """Whether services follow this write."""
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    log_compaction: LogCompactionOptions = field(default_factory=LogCompactionOptions)
    cleaning: CleaningOptions = field(default_factory=CleaningOptions)
    archiving: ArchivingOptions = field(default_factory=ArchivingOptions)
    expiry: ExpiryOptions = field(default_factory=ExpiryOptions)
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    view: ViewOptions = VIEW
    embedded: EmbeddedOptions = EMBEDDED
    markers: MarkersType | None = keys.MARKERS_TYPE.default
    """None: by the number of files, see `gathers_markers`."""
    hive_sync: HiveSyncOptions = field(default_factory=HiveSyncOptions)
    stream: StreamBatch | None = None
    """The batch of a stream that is written: skipped where the table holds it already."""
    stream_retries: StreamRetries = field(default_factory=StreamRetries)
    commit_entries: Mapping[str, str] = field(default_factory=dict)
    """Options of the user's own that the commit's metadata keep."""

    def gathers_markers(self, files: int) -> bool:
        """Whether so many files are marked by lines of one: a file and a folder for each are a seventh of what a small one costs."""
        if self.markers is None:
            return files > MOST_MARKER_FILES
        return self.markers is MarkersType.TIMELINE_SERVER_BASED

    @property
    def combine(self) -> bool:
        """Whether rows of one key in the batch are reduced to one, for the operation of this write."""
        by_operation = {
            WriteOperation.UPSERT: self.combine_before_upsert,
            WriteOperation.DELETE: self.combine_before_delete,
            WriteOperation.INSERT: self.combine_before_insert
            or self.drop_duplicates
            or not self.allow_duplicates_in_merge,
            WriteOperation.BULK_INSERT: self.combine_before_insert or self.drop_duplicates,
        }
        return by_operation.get(self.operation, self.combine_before_insert)

    @property
    def stored_keys(self) -> DuplicatePolicy:
        """What this write, if it is an insert, does with rows whose key is stored."""
        if self.operation not in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
            return DuplicatePolicy.NONE
        return DuplicatePolicy.DROP if self.drop_duplicates else self.duplicates

    @property
    def copies_rows(self) -> bool:
        """Whether rows that go to logs are written once more for engines that read Parquet."""
        return self.log_block_format is LogBlockFormat.AVRO if self.row_copies is None else self.row_copies

    def for_text_ordering(self) -> WriteOptions:
        """The same for a table that is ordered by texts: always with Avro log blocks.

        Apache Hudi 1.2.0 compares the text of another row when the log has Parquet blocks: updates are lost, for good when it
        compacts, whoever wrote the blocks (integration/test_parquet_log_blocks.py).
        """
        return replace(self, log_block_format=LogBlockFormat.AVRO)

    def file_options(self) -> FileOptions:
        """What the tasks need to know of this."""
        return FileOptions(
            compression=self.compression,
            bloom_type=self.index.bloom_type,
            bloom_fpp=self.index.bloom_fpp,
            bloom_num_entries=self.index.bloom_num_entries,
            bloom_max_entries=self.index.bloom_max_entries,
            max_block_bytes=self.log_block_max_size_bytes,
            block_kind=_BLOCK_KINDS[self.log_block_format],
        )


@dataclass(frozen=True)
class WriteRequest:
    """A parsed option mapping of a write."""

    table: TableOptions
    """Only what was set; for `check_against` where the table exists."""
    write: WriteOptions
    ignored: tuple[str, ...] = ()
    """Options of Apache Hudi that are not needed here, as the user spelled them; the door warns once of all."""
    table_defaults: TableOptions = field(default_factory=TableOptions)
    """Table options of the defaults: they count when a table is created and never contradict one that exists."""
    not_done: tuple[str, ...] = ()
    """What was asked for and is not done, a sentence each: the door warns of it at each write."""

    def to_create(self) -> TableOptions:
        """What a table is created with: what was set, then the defaults."""
        return self.table.over(self.table_defaults)
