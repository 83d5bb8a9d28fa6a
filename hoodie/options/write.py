"""Options of a write, and what a write asks of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import or_

from hoodie.errors import OptionError
from hoodie.model.enums import BlockKind, WriteOperation
from hoodie.model.plans import DeleteMarker, FileOptions
from hoodie.options.bigquery import BigQueryOptions
from hoodie.options.bootstrap import BootstrapOptions
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions, ExpiryOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.commits import CallbackOptions, MetricsOptions, ValidatorOptions
from hoodie.options.compaction import MEMORY_LIMIT, CompactionOptions, LogCompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.files import FileSettings
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.index import IndexOptions
from hoodie.options.keygen import KeySettings
from hoodie.options.option import combined, group, key, option, shared
from hoodie.options.streams import StreamSettings
from hoodie.options.table_options import MOR_INSERTS, TableOptions
from hoodie.options.values import (
    DuplicatePolicy,
    LogBlockFormat,
    MarkersType,
    MorInserts,
    OverwriteMode,
    SortMode,
    boolean,
    choice,
    one_of,
    paths,
    whole,
)
from hoodie.options.view import VIEW, EmbeddedOptions, ViewOptions

_BY_ITSELF = "Accepted, without effect: there is a task for each file, and nothing is shuffled."


def _by_operation(upsert: int, insert: int, bulk_insert: int, delete: int) -> Mapping[WriteOperation, int]:
    return {
        WriteOperation.UPSERT: upsert,
        WriteOperation.INSERT: insert,
        WriteOperation.BULK_INSERT: bulk_insert,
        WriteOperation.DELETE: delete,
    }


_BLOCK_KINDS = {LogBlockFormat.AVRO: BlockKind.AVRO_DATA, LogBlockFormat.PARQUET: BlockKind.PARQUET_DATA}


MOST_MARKER_FILES = 100


_NULL_FOR_MISSING = key("hoodie.write.set.null.for.missing.columns", boolean(), False)
"""Columns of the table that a batch lacks are null in its rows, whatever was stored before. Otherwise such a batch is an error."""
_RECONCILE = key("hoodie.datasource.write.reconcile.schema", boolean(), False)
"""The same by Apache Hudi's older name. New columns of the batch are added in any case, and types only widen."""


@dataclass(frozen=True)
class WriteOptions(FileSettings, StreamSettings):
    """How one write goes about its work; nothing here is remembered by the table."""

    operation: WriteOperation = option(
        "hoodie.datasource.write.operation",
        choice(
            {
                "upsert": WriteOperation.UPSERT,
                "insert": WriteOperation.INSERT,
                "bulk_insert": WriteOperation.BULK_INSERT,
                "delete": WriteOperation.DELETE,
                "insert_overwrite": WriteOperation.INSERT_OVERWRITE,
                "insert_overwrite_table": WriteOperation.INSERT_OVERWRITE_TABLE,
                "delete_partition": WriteOperation.DELETE_PARTITION,
            },
            unsupported=(
                *("bootstrap", "cluster", "compact", "log_compact", "index", "alter_schema", "bucket_rescale"),
                *("insert_prepped", "upsert_prepped", "bulk_insert_prepped", "delete_prepped"),
            ),
        ),
        "upsert",
    )
    """The operation of the write. insert_overwrite replaces the partitions of its rows, insert_overwrite_table all of them;
    delete_partition empties partitions."""
    combine_before_upsert: bool = option("hoodie.combine.before.upsert", boolean(), True)
    """Reduce the rows of one key in a batch to one before an upsert."""
    combine_before_insert: bool = option("hoodie.combine.before.insert", boolean(), False)
    """The same before an insert, a bulk_insert or an overwrite."""
    combine_before_delete: bool = option("hoodie.combine.before.delete", boolean(), True)
    """The same before a delete."""
    duplicates: DuplicatePolicy = option("hoodie.datasource.insert.dup.policy", one_of(DuplicatePolicy), "none")
    """What an insert does with rows whose key is stored: keep both, drop the row, or fail. drop and fail look the keys
    up (a bulk_insert too, where Apache Hudi ignores them), and an upsert becomes an insert. Several rows of a new key
    all stay."""
    drop_duplicates: bool = option("hoodie.datasource.write.insert.drop.duplicates", boolean(), False)
    """Drop rows of an insert whose key is stored, and reduce the rows of one key in the batch to one. As in Apache Hudi
    an upsert becomes an insert then, and a key that only a log has deleted counts as stored until that log is
    compacted."""
    allow_duplicates_in_merge: bool = option("hoodie.merge.allow.duplicate.on.inserts", boolean(), True)
    """An insert that fills up a small file keeps the file's rows with the same keys. false: they are replaced as by an
    upsert, and rows of one key in the batch are reduced to one; rows of other files stay in any case."""
    sort_mode: SortMode = option("hoodie.bulkinsert.sort.mode", one_of(SortMode), "NONE")
    """Order of a bulk_insert or an overwrite: PARTITION_SORT sorts each file by record key; GLOBAL_SORT also gives the files of a
    partition ranges of keys that do not overlap (but where rows of one key are combined), so that a later look-up opens few of
    them. The other two are as NONE: every file holds one partition."""
    partial: bool = option("hoodie.python.upsert.partial", boolean(), False)
    """Upsert only the columns that the batch has: rows of stored keys keep the others, new rows have null there."""
    some_columns: bool = option("hoodie.python.upsert.partial.blocks", boolean(), False)
    """A partial upsert into a merge-on-read table of version 8 or 9 writes log blocks with its columns only and reads no stored
    rows, if the table is merged by event time and the batch has the ordering columns. Apache Hudi 1.2.0 reads such blocks, but its
    incremental queries fail on commits that have nothing else."""
    null_for_missing: bool = combined(or_, _NULL_FOR_MISSING, _RECONCILE)
    integers_to_floating: bool = option("hoodie.python.write.integers.to.floating", boolean(), False)
    """true: a batch of floating-point numbers permanently changes an integer column to a floating-point one, in which
    integers beyond 2^53 are rounded. false: whole numbers are stored as integers, and a fraction raises an error. Key
    columns keep their types."""
    overwrite_mode: OverwriteMode | None = option(
        "hoodie.datasource.overwrite.mode", one_of(OverwriteMode), None, also=("partitionOverwriteMode",)
    )
    """Scope of Spark's mode("overwrite"), unless the operation decides it: the whole table, or (DYNAMIC) the partitions of the
    rows. Unset: as `spark.sql.sources.partitionOverwriteMode` of the session says, and STATIC without `enable`, where the
    session is not seen. A table without partitions is replaced as a whole."""
    static_partitions: tuple[str, ...] | None = option("hoodie.static.overwrite.partition.paths", paths(), None)
    """insert_overwrite replaces exactly these partition paths, wherever its rows go. Unset: the partitions of the rows."""
    partitions_to_delete: tuple[str, ...] | None = option("hoodie.datasource.write.partitions.to.delete", paths(), None)
    """delete_partition: paths of partitions; `*` stands for any text, also for `/`. Paths that do not exist are ignored. Unset:
    the partitions of the rows."""
    complex_key_new_encoding: bool | None = option("hoodie.write.complex.keygen.new.encoding", boolean(), None)
    """COMPLEX keys of a single column as `value` (true, as Hudi 0.14.1 to 1.0.2) or `column:value` (false). Unset: as the table's
    files have it, `column:value` in a new table."""
    key_settings: KeySettings = field(default_factory=KeySettings)
    """For tables that do not remember how their keys and paths are made."""
    in_all_partitions: bool = False
    """A delete by key generator GLOBAL_DELETE: of rows with these keys in any partition, whatever partition the batch says."""
    parallelism: Mapping[WriteOperation, int] = combined(
        _by_operation,
        key("hoodie.upsert.shuffle.parallelism", whole(0), 0, _BY_ITSELF),
        key("hoodie.insert.shuffle.parallelism", whole(0), 0, _BY_ITSELF),
        key("hoodie.bulkinsert.shuffle.parallelism", whole(0), 0, _BY_ITSELF),
        key("hoodie.delete.shuffle.parallelism", whole(0), 0, _BY_ITSELF),
    )
    """Tasks by operation; 0: derived."""
    delete_marker: DeleteMarker | None = None
    """Of this write, for tables that do not store one."""
    only_stored: bool = False
    """An upsert leaves rows out whose keys are not stored; where that are all of them there is no commit. For indexes that look keys
    up in a partition."""
    set_columns: tuple[str, ...] | None = None
    """Of a partial upsert: columns that rows of stored keys get from the batch, of which new rows get all columns; None: those that it
    has."""
    driver_max_bytes: int = option("hoodie.python.driver.max.bytes", whole(0), 128 * 1024 * 1024)
    """Spark: the driver itself writes batches of at most so many bytes, as Arrow. If the optimizer expects at most a quarter of
    it, the rows come to the driver in one job; else executors stage them. 0: executors write everything."""
    memory_limit_bytes: int = combined(lambda mb: mb * 1024 * 1024, MEMORY_LIMIT)
    mor_inserts: MorInserts | None = shared(MOR_INSERTS)
    """None: as the table remembers it."""
    row_copies: bool | None = option("hoodie.python.mor.row.copies", boolean(), None)
    """Merge-on-read: write the rows of log files a second time, as Parquet in a folder of hoodie's own, so that Spark
    reads them natively. False: writes are smaller, and Spark's queries with log files are slower. Unset: true with Avro
    log blocks, false with Parquet ones, whose purpose is few bytes (docs/FORMAT.md, "Avro or Parquet in log
    blocks")."""
    index: IndexOptions = group(IndexOptions)
    services_enabled: bool = option("hoodie.table.services.enabled", boolean(), True)
    """Run table services after and during writes. false: the writer runs none, whatever other options say; a services
    job runs them."""
    compaction: CompactionOptions = group(CompactionOptions)
    log_compaction: LogCompactionOptions = group(LogCompactionOptions)
    cleaning: CleaningOptions = group(CleaningOptions)
    archiving: ArchivingOptions = group(ArchivingOptions)
    expiry: ExpiryOptions = group(ExpiryOptions)
    clustering: ClusteringOptions = group(ClusteringOptions)
    concurrency: ConcurrencyOptions = group(ConcurrencyOptions)
    view: ViewOptions = VIEW
    embedded: EmbeddedOptions = group(EmbeddedOptions)
    markers: MarkersType | None = option("hoodie.write.markers.type", one_of(MarkersType), None)
    """Markers of the files of a commit: a file for each (DIRECT), or lines of one file, as Apache Hudi's timeline server writes
    them. hoodie needs no server for that. Unset: lines if a commit names more than 100 files. Apache Hudi:
    TIMELINE_SERVER_BASED."""
    hive_sync: HiveSyncOptions = group(HiveSyncOptions)
    bigquery: BigQueryOptions = group(BigQueryOptions)
    callback: CallbackOptions = group(CallbackOptions)
    metrics: MetricsOptions = group(MetricsOptions)
    publishes_delta: bool = option("hoodie.python.publish.delta", boolean(), False)
    """Publish the table as a Delta table after each commit (docs/PUBLISH.md). A failure is a warning; the next
    publication includes the commit."""
    publishes_iceberg: bool = option("hoodie.python.publish.iceberg", boolean(), False)
    """The same as an Iceberg table."""
    validators: ValidatorOptions = group(ValidatorOptions)
    bootstrap: BootstrapOptions = group(BootstrapOptions)

    def gathers_markers(self, files: int) -> bool:
        """Whether so many files are marked by lines of one: a file and a folder for each are a seventh of what a small one costs."""
        if self.markers is None:
            return files > MOST_MARKER_FILES
        return self.markers is MarkersType.TIMELINE_SERVER_BASED

    def of_found_rows(self) -> WriteOptions:
        """The same for rows that were found in all partitions: they say where they are."""
        return replace(self, in_all_partitions=False)

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
            key_map=self.key_map,
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
        """What a table is created with: what was set, then the defaults.

        Raises:
            OptionError: the options are those of a delete.
        """
        if self.write.in_all_partitions:
            raise OptionError(
                "key generator GLOBAL_DELETE is for deletes from a table that is there: create it with a key generator of its own"
            )
        return self.table.over(self.table_defaults)
