"""The options that hoodie understands: name, kind, default, other names and meaning of each, as data.

Every default stands here once; the option values of the other modules take theirs from here. `known_keys` also has the
names that only Apache Hudi uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Generic, TypeVar

from hoodie.errors import OptionError
from hoodie.model.enums import (
    ChangeFormat,
    CleanPolicy,
    ExpiryStrategy,
    MergeMode,
    PartitionFilter,
    QueryType,
    RowOrder,
    TableType,
    TableVersion,
    UpdateStrategy,
    WriteOperation,
)
from hoodie.options import keygen, merging
from hoodie.options.compaction import Strategy, Trigger, strategies
from hoodie.options.merging import STRATEGIES
from hoodie.options.values import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    ConcurrencyMode,
    DuplicatePolicy,
    Durability,
    Extractor,
    FailedWritesPolicy,
    HiveViews,
    IndexType,
    KeyGeneratorType,
    Kind,
    LockProvider,
    LogBlockFormat,
    MarkersType,
    MorInserts,
    OverwriteMode,
    SortMode,
    ViewStore,
    boolean,
    choice,
    fields,
    fraction,
    lock_provider,
    merger,
    named_class,
    only,
    optional,
    pairs,
    paths,
    pattern,
    payload_class,
    regex,
    table_version,
    text,
    whole,
)

T_co = TypeVar("T_co", covariant=True)

PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.")
"""A key that begins so is ours or Apache Hudi's, and no note for the commit's metadata."""
_EXPIRY_CLASSES = "org.apache.hudi.table.action.ttl.strategy."
_EXPIRY_NAMES = {
    "KeepByTimeStrategy": ExpiryStrategy.KEEP_BY_TIME,
    "KeepByCreationTimeStrategy": ExpiryStrategy.KEEP_BY_CREATION_TIME,
}
_SECRET_WORDS = ("key", "secret", "token", "password", "credential")


@dataclass(frozen=True)
class Key(Generic[T_co]):
    """One option."""

    name: str
    kind: Kind[T_co]
    default: T_co
    """None where unset means something of its own; `doc` says what."""
    doc: str
    also: tuple[str, ...] = ()
    """Other names of it, older ones included; they mean exactly the same."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)

    def parse(self, value: str, *, name: str | None = None) -> T_co:
        """The typed value of a text; `name` is the name by which the user called the option.

        Raises:
            OptionError: the text is no value of it; the message has both and what is allowed.
        """
        try:
            return self.kind.read(value.strip())
        except ValueError as error:
            raise OptionError(f"option {name or self.name}={value!r} {error}") from None


def _check(name: str, value: str, why: str, doc: str, also: tuple[str, ...] = ()) -> Key[str]:
    """An option that would change what is stored or read, accepted only where it says what happens here anyway."""
    return Key(name, only(value, why), value, doc, also)


# -- the table -----------------------------------------------------------------------------------------------------

TABLE_NAME: Key[str | None] = Key(
    "hoodie.table.name",
    text("a name"),
    None,
    "Name of the table. Unset: the last part of the path.",
    also=("hoodie.datasource.write.table.name",),
)
DATABASE_NAME: Key[str | None] = Key(
    "hoodie.database.name", text("a name"), None, "Database that the table belongs to. Unset: none."
)
TABLE_TYPE: Key[TableType] = Key(
    "hoodie.datasource.write.table.type",
    choice({kind.value: kind for kind in TableType}),
    TableType.COPY_ON_WRITE,
    "Rewrite base files at each change, or write logs beside them and merge when reading.",
    also=("hoodie.datasource.write.storage.type", "hoodie.table.type"),
)
RECORD_KEY: Key[tuple[str, ...] | None] = Key(
    "hoodie.datasource.write.recordkey.field",
    fields(),
    None,
    "Columns that identify a record, nested ones by dots. Unset: every row gets a key of its own, `instant_number_number`, "
    "and an upsert adds rows.",
    also=("hoodie.table.recordkey.fields",),
)
PARTITION_PATH: Key[tuple[str, ...] | None] = Key(
    "hoodie.datasource.write.partitionpath.field",
    fields(typed=True),
    None,
    "Columns whose values make the partition path. Unset or empty: not partitioned.",
    also=("hoodie.table.partition.fields",),
)
ORDERING: Key[tuple[str, ...] | None] = Key(
    "hoodie.datasource.write.precombine.field",
    fields(),
    None,
    "Columns that say which of two records of one key is newer. Unset: the later commit wins.",
    also=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
)
KEYGEN_TYPE: Key[KeyGeneratorType | None] = Key(
    "hoodie.datasource.write.keygenerator.type",
    KEY_GENERATOR_TYPE,
    None,
    "How keys and partition paths are made. Unset: NON_PARTITION without partition columns, CUSTOM where these have kinds, "
    "SIMPLE with one key and one partition column, else COMPLEX.",
    also=("hoodie.table.keygenerator.type",),
)
KEYGEN_CLASS: Key[KeyGeneratorType | None] = Key(
    "hoodie.datasource.write.keygenerator.class",
    KEY_GENERATOR_CLASS,
    None,
    "The same by the name of Apache Hudi's Java class.",
    also=("hoodie.table.keygenerator.class",),
)
HIVE_STYLE = Key(
    "hoodie.datasource.write.hive_style_partitioning",
    boolean(),
    False,
    "Partition folders named `column=value`.",
)
URL_ENCODE = Key(
    "hoodie.datasource.write.partitionpath.urlencode",
    boolean(),
    False,
    "Percent-encode partition values, so that `/` and `:` may stand in them.",
)
META_FIELDS: Key[bool] = Key(
    "hoodie.populate.meta.fields",
    boolean(),
    True,
    "Store the five `_hoodie_` columns. False: they are null, keys are made of the rows' columns each time, and most incremental "
    "queries are refused. Needs record key columns and key generator SIMPLE, COMPLEX or NON_PARTITION.",
)
DROP_COLUMNS: Key[bool] = Key(
    "hoodie.datasource.write.drop.partition.columns",
    boolean(),
    False,
    "Leave partition columns out of the files: only the names of folders say them. Copy-on-write tables only; on merge-on-read "
    "ones it is off, as Apache Hudi turns it off for upserts.",
)
TIMESTAMPS_AS_TEXT: Key[bool | None] = Key(
    keygen.TIMESTAMPS_AS_TEXT,
    boolean(),
    None,
    "Timestamps in keys and paths as `2024-01-02 03:04:05.678` in UTC (true) or as microseconds since 1970 (false). Unset: as "
    "the table's files have it, microseconds in a new table.",
)
SLASH_DATES: Key[bool | None] = Key(
    keygen.SLASH_DATES,
    boolean(),
    None,
    "A single partition column's path has `/` for every `-`: folders of years, months and days. Unset: as the table's files "
    "have it, false in a new table.",
)


def _timebased(name: str, kind: Kind[str | None], doc: str) -> Key[str | None]:
    """An option of the timestamp key generator."""
    return Key(name, kind, None, doc, also=(keygen.OLD_PREFIX + name.removeprefix(keygen.PREFIX),))


TIMEBASED: tuple[Key[str | None], ...] = (
    _timebased(
        keygen.TYPE,
        choice({kind.value: kind.value for kind in keygen.TimestampType}),
        "What a partition column of the key generator TIMESTAMP, or of that kind, holds: numbers of a unit, or text.",
    ),
    _timebased(
        keygen.UNIT,
        choice({unit.value: unit.value for unit in keygen.TimeUnit}),
        "With type SCALAR: the unit of the numbers. Unset: SECONDS. Days of a date column: DAYS.",
    ),
    _timebased(
        keygen.INPUT_FORMAT,
        text("a date pattern or a list of them"),
        "With type DATE_STRING or MIXED: patterns of Joda-Time; the first that fits a text counts.",
    ),
    _timebased(
        keygen.INPUT_DELIMITER,
        optional(text("a regular expression")),
        "What stands between the patterns of the list. Unset: a comma.",
    ),
    _timebased(keygen.INPUT_ZONE, optional(text("a time zone")), "Of texts that do not say theirs. Unset: UTC."),
    _timebased(
        keygen.OUTPUT_FORMAT,
        text("a date pattern"),
        "The partition path as a pattern of Joda-Time: `yyyy/MM/dd` makes three folders.",
    ),
    _timebased(
        keygen.OUTPUT_ZONE, optional(text("a time zone")), "Of the path. Unset: that of the text, UTC for numbers."
    ),
    _timebased(keygen.ZONE, optional(text("a time zone")), "Both zones at once; the other two do not count beside it."),
)
CREATE_VERSION: Key[TableVersion] = Key(
    "hoodie.write.table.version", table_version(), TableVersion.V6, "Version of a new table (Apache Hudi's default: 9)."
)
AUTO_UPGRADE = Key(
    "hoodie.write.auto.upgrade", boolean(), False, "Accepted; a table is never upgraded unless that is asked for."
)
MERGE_MODE: Key[MergeMode | None] = Key(
    "hoodie.write.record.merge.mode",
    choice({mode.value: mode for mode in MergeMode if mode is not MergeMode.CUSTOM}, known=[MergeMode.CUSTOM]),
    None,
    "Whether the greater ordering value or the later commit wins. Unset: event time with ordering columns, else commit "
    "time.",
    also=("hoodie.record.merge.mode",),
)
PAYLOAD_CLASS: Key[str | None] = Key(
    "hoodie.datasource.write.payload.class",
    payload_class(),
    None,
    "How records merge, by the name of one of Apache Hudi's payload classes; docs/MERGING.md says what each does. With the last one "
    "an upsert is a delete.",
    also=("hoodie.compaction.payload.class",),
)
MERGE_STRATEGY: Key[MergeMode | None] = Key(
    "hoodie.write.record.merge.strategy.id",
    choice(STRATEGIES),
    None,
    "The merge mode by the id of one of Apache Hudi's built-in strategies.",
    also=(
        "hoodie.datasource.write.record.merger.strategy",
        "hoodie.record.merge.strategy.id",
        "hoodie.compaction.record.merger.strategy",
    ),
)
PYTHON_MERGER: Key[str | None] = Key(
    merging.MERGER,
    merger(),
    None,
    "Merge by a Python function (`hoodie.register_merger`). Only hoodie can write such a table. Unset: by the merge mode.",
)
DELETE_FIELD: Key[str | None] = Key(
    merging.DELETE_FIELD,
    text("a column"),
    None,
    "With the next one: rows whose column holds the marker are deletes, as those with `_hoodie_is_deleted` are.",
)
DELETE_MARKER: Key[str | None] = Key(
    merging.DELETE_MARKER,
    text("a text"),
    None,
    "The marker, compared with the column's value as text.",
)
MOR_INSERTS: Key[MorInserts | None] = Key(
    "hoodie.python.mor.inserts",
    choice({kind.value: kind for kind in MorInserts}, known=("log",)),
    None,
    "Where new rows of a merge-on-read table go: `base_file`, so that every key is in the bloom filter of a base file. "
    "Apache Hudi's writers would not find keys that stand in logs only, and insert them a second time.",
)
ROW_COPIES: Key[bool | None] = Key(
    "hoodie.python.mor.row.copies",
    boolean(),
    None,
    "Merge-on-read: rows that go to logs are written once more, as Parquet in a folder of our own, so that Spark reads them natively. "
    "False: less is written, and Spark's queries with logs are slower. Unset: true beside Avro log blocks, false beside Parquet ones, "
    'which are chosen for few bytes (docs/FORMAT.md, "Avro or Parquet in log blocks").',
)

TABLE_CHECKS = (
    _check(
        "hoodie.table.base.file.format",
        "PARQUET",
        "other base files are neither read nor written",
        "Format of base files.",
        also=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
    ),
    _check(
        "hoodie.keygen.datetime.parser.class",
        "org.apache.hudi.keygen.parser.HoodieDateTimeParser",
        "dates are read as that class reads them",
        "Java class that reads the dates of partition columns.",
        also=("hoodie.deltastreamer.keygen.datetime.parser.class",),
    ),
)

# -- writing -------------------------------------------------------------------------------------------------------

OPERATION: Key[WriteOperation] = Key(
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
        known=(
            *("bootstrap", "cluster", "compact", "log_compact", "index", "alter_schema", "bucket_rescale"),
            *("insert_prepped", "upsert_prepped", "bulk_insert_prepped", "delete_prepped"),
        ),
    ),
    WriteOperation.UPSERT,
    "What is done with the rows. insert_overwrite replaces the partitions that they are in, insert_overwrite_table all of them; "
    "delete_partition empties partitions.",
)
COMBINE_BEFORE_UPSERT = Key(
    "hoodie.combine.before.upsert",
    boolean(),
    True,
    "Reduce the rows of one key in a batch to one before an upsert.",
)
COMBINE_BEFORE_INSERT = Key(
    "hoodie.combine.before.insert", boolean(), False, "The same before an insert, a bulk_insert or an overwrite."
)
COMBINE_BEFORE_DELETE = Key("hoodie.combine.before.delete", boolean(), True, "The same before a delete.")
DROP_DUPLICATES = Key(
    "hoodie.datasource.write.insert.drop.duplicates",
    boolean(),
    False,
    "Leave rows out of an insert whose key is stored, and reduce the rows of one key in the batch to one. As in Apache Hudi an "
    "upsert becomes an insert then, and a key that only a log has deleted counts as stored until that log is compacted.",
)
DUPLICATE_POLICY = Key(
    "hoodie.datasource.insert.dup.policy",
    choice({policy.value: policy for policy in DuplicatePolicy}),
    DuplicatePolicy.NONE,
    "What an insert does with rows whose key is stored: keep both, drop the row, or fail. drop and fail look the keys up "
    "(a bulk_insert too, where Apache Hudi ignores them), and an upsert becomes an insert. Rows of one new key all stay.",
)
ALLOW_DUPLICATES = Key(
    "hoodie.merge.allow.duplicate.on.inserts",
    boolean(),
    True,
    "Whether an insert that fills up a small file keeps the rows of that file that have the same key. false: they are "
    "replaced as by an upsert, and rows of one key in the batch are reduced to one; rows of other files stay in any case.",
)
SORT_MODE = Key(
    "hoodie.bulkinsert.sort.mode",
    choice({mode.value: mode for mode in SortMode}),
    SortMode.NONE,
    "Order of a bulk_insert or an overwrite: PARTITION_SORT sorts each file by record key; GLOBAL_SORT also gives the files of "
    "a partition ranges of keys that do not overlap (but where rows of one key are combined), so that a later look-up opens few "
    "of them. The other two are as NONE: every file holds one partition.",
)
OVERWRITE_MODE: Key[OverwriteMode | None] = Key(
    "hoodie.datasource.overwrite.mode",
    choice({mode.value: mode for mode in OverwriteMode}),
    None,
    'What Spark\'s mode("overwrite") replaces unless the operation says so: the whole table, or (DYNAMIC) the partitions of the rows. '
    "Unset: as `spark.sql.sources.partitionOverwriteMode` of the session says, and STATIC without `enable`, where the session is not "
    "seen. A table without partitions is replaced as a whole.",
    also=("partitionOverwriteMode",),
)
STATIC_OVERWRITE: Key[tuple[str, ...] | None] = Key(
    "hoodie.static.overwrite.partition.paths",
    paths(),
    None,
    "insert_overwrite replaces exactly these partition paths, wherever its rows go. Unset: the partitions of the rows.",
)
PARTITIONS_TO_DELETE: Key[tuple[str, ...] | None] = Key(
    "hoodie.datasource.write.partitions.to.delete",
    paths(),
    None,
    "delete_partition: paths of partitions; `*` stands for any text, also for `/`. Paths that are not there do not matter. Unset: the "
    "partitions of the rows.",
)
PARTIAL_UPSERT = Key(
    "hoodie.python.upsert.partial",
    boolean(),
    False,
    "Upsert only the columns that the batch has: rows of stored keys keep the others, new rows have null there.",
)
NULL_FOR_MISSING = Key(
    "hoodie.write.set.null.for.missing.columns",
    boolean(),
    False,
    "Columns of the table that a batch lacks are null in its rows, whatever was stored there. Otherwise such a batch is an error.",
)
RECONCILE_SCHEMA = Key(
    "hoodie.datasource.write.reconcile.schema",
    boolean(),
    False,
    "The same by Apache Hudi's older word. Columns that the batch has more are added in any case, and types only widen.",
)
INTEGERS_TO_FLOATING = Key(
    "hoodie.python.write.integers.to.floating",
    boolean(),
    False,
    "A batch of floating point numbers makes an integer column of the table a floating one, for good; beyond 2^53 integers are "
    "rounded then. Otherwise whole numbers are stored as the integers they are, and a fraction is an error. Key columns keep their "
    "types.",
)
COMPLEX_NEW_ENCODING: Key[bool | None] = Key(
    "hoodie.write.complex.keygen.new.encoding",
    boolean(),
    None,
    "COMPLEX keys of a single column as `value` (true, as Hudi 0.14.1 to 1.0.2) or `column:value` (false). Unset: as "
    "the table's files have it, `column:value` in a new table.",
)
_BY_ITSELF = "Accepted, without effect: there is a task for each file, and nothing is shuffled."
UPSERT_PARALLELISM = Key("hoodie.upsert.shuffle.parallelism", whole(0), 0, _BY_ITSELF)
INSERT_PARALLELISM = Key("hoodie.insert.shuffle.parallelism", whole(0), 0, _BY_ITSELF)
BULK_PARALLELISM = Key("hoodie.bulkinsert.shuffle.parallelism", whole(0), 0, _BY_ITSELF)
DELETE_PARALLELISM = Key("hoodie.delete.shuffle.parallelism", whole(0), 0, _BY_ITSELF)
DRIVER_MAX_BYTES = Key(
    "hoodie.python.driver.max.bytes",
    whole(0),
    128 * 1024 * 1024,
    "Spark: the driver itself writes batches of at most so many bytes, as Arrow. If the optimizer expects at most a quarter of it, "
    "the rows come to the driver in one job; else executors stage them. 0: executors write everything.",
)
MEMORY_LIMIT_MB = Key(
    "hoodie.python.memory.limit.mb",
    whole(64),
    1024,
    "Without Spark: how many MB a write may hold of its own. Half of it is for rows of the batch; more rows wait in files, beside a "
    "table on a local disk, otherwise in TMPDIR. As many files are written at once as fit into the other half, at least one. "
    "RECIPES.md says what else counts as memory of the process.",
)
DURABILITY = Key(
    "hoodie.python.durability",
    choice({each.value: each for each in Durability}),
    Durability.POWER_CUT,
    "What a commit on a local disk outlives. `power_cut`: it waits until all its files are on the disk. `process`: it waits for its "
    "timeline files only, so a power cut can take or cut data files that were written in the minute before; reads name them.",
)
LOCK_PROVIDER = Key(
    "hoodie.write.lock.provider",
    lock_provider(),
    LockProvider.IN_PROCESS,
    "Who grants the lock between writers: `storage`, `filesystem`, `zookeeper`, `zookeeper_implicit` or `hive_metastore`, also by the "
    "class names of Apache Hudi's providers. `in_process`, the default: what fits to where the table lies; on a disk all "
    "processes of the machine share a lock file, in an object store all machines do.",
)
STORAGE_LOCK_LEASE = Key(
    "hoodie.write.lock.storage.validity.timeout.secs",
    whole(1),
    300,
    "Seconds for which the lock in an object store is held without being renewed. Other machines wait so long for one that died.",
)
STORAGE_LOCK_RENEWAL = Key(
    "hoodie.write.lock.storage.renew.interval.secs",
    whole(1),
    30,
    "Seconds between two renewals of that lock, at most a tenth of its lease.",
    also=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)
FILESYSTEM_LOCK_PATH: Key[str | None] = Key(
    "hoodie.write.lock.filesystem.path",
    text("a folder of the table"),
    None,
    "Folder of the file `lock` that the provider `filesystem` creates, inside the table. Unset: `.hoodie`.",
)
FILESYSTEM_LOCK_EXPIRY = Key(
    "hoodie.write.lock.filesystem.expire",
    whole(0),
    0,
    "Minutes after which a lock file of the provider `filesystem` counts as left behind; 0: never.",
)
ZOOKEEPER_URL: Key[str | None] = Key(
    "hoodie.write.lock.zookeeper.url",
    text("host:port[,host:port…]"),
    None,
    "Servers of ZooKeeper, for the provider `zookeeper`.",
)
ZOOKEEPER_PORT: Key[int | None] = Key(
    "hoodie.write.lock.zookeeper.port", whole(1), None, "Port of those servers whose address names none. Unset: 2181."
)
ZOOKEEPER_BASE_PATH: Key[str | None] = Key(
    "hoodie.write.lock.zookeeper.base_path",
    text("a path in ZooKeeper"),
    None,
    "Node below which the lock stands. All writers of a table, Apache Hudi's too, need the same one.",
)
ZOOKEEPER_LOCK_KEY: Key[str | None] = Key(
    "hoodie.write.lock.zookeeper.lock_key",
    text("a name"),
    None,
    "Name of the lock's node in there.",
)
ZOOKEEPER_SESSION = Key(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    whole(1),
    60_000,
    "Milliseconds after which ZooKeeper gives the lock of a silent writer to the next.",
)
ZOOKEEPER_CONNECTION = Key(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    whole(1),
    15_000,
    "Milliseconds to wait for a connection to ZooKeeper.",
)
HIVE_URIS: Key[str | None] = Key(
    "hoodie.write.lock.hivemetastore.uris",
    text("thrift://host:port[,…]"),
    None,
    "Servers of the Hive metastore, for the provider `hive_metastore`.",
)
HIVE_DATABASE: Key[str | None] = Key(
    "hoodie.write.lock.hivemetastore.database",
    text("a name"),
    None,
    "Database of the table whose name is locked in the Hive metastore.",
)
HIVE_TABLE: Key[str | None] = Key(
    "hoodie.write.lock.hivemetastore.table",
    text("a name"),
    None,
    "The table's name in there. All writers, Apache Hudi's too, need the same one; it need not be registered.",
)

# -- files ---------------------------------------------------------------------------------------------------------

MAX_FILE_SIZE = Key("hoodie.parquet.max.file.size", whole(1), 120 * 1024 * 1024, "Bytes that a base file should have.")
SMALL_FILE_LIMIT = Key(
    "hoodie.parquet.small.file.limit",
    whole(0, clamp=True),
    100 * 1024 * 1024,
    "Base files of fewer bytes get new rows first; 0: never.",
)
COMPRESSION = Key(
    "hoodie.parquet.compression.codec",
    choice(
        # As pyarrow names them.
        {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "uncompressed": "none", "lz4_raw": "lz4"},
        known=("lzo", "lz4", "brotli"),
    ),
    "zstd",
    "Compression of base files (Apache Hudi's default: gzip).",
)
RECORD_SIZE = Key(
    "hoodie.copyonwrite.record.size.estimate",
    whole(1),
    1024,
    "Accepted, without effect: the size of a record is taken from the files of its partition, else from the batch.",
)
FILE_CHECKS = (
    _check(
        "hoodie.parquet.outputtimestamptype",
        "TIMESTAMP_MICROS",
        "timestamps are stored as they come, in the units that Arrow and Spark give them",
        "How timestamps stand in base files.",
    ),
)
LOG_MAX_SIZE = Key(
    "hoodie.logfile.max.size",
    whole(1),
    1024**3,
    "Accepted, without effect: every write makes new log files.",
)
LOG_BLOCK_FORMAT: Key[LogBlockFormat] = Key(
    "hoodie.logfile.data.block.format",
    choice({kind.value: kind for kind in LogBlockFormat}, known=("hfile", "lance")),
    LogBlockFormat.AVRO,
    "Merge-on-read: format of the data blocks of log files; each write says its own, and slices may have both. `parquet` is "
    "compressed as base files are: an upsert writes little more than its batch as Parquet. `avro` is not: 2 to 3 times as much. "
    "Tables with a text as ordering column get `avro` all the same: Apache Hudi misreads Parquet blocks of those.",
)
LOG_BLOCK_MAX_SIZE = Key(
    "hoodie.logfile.data.block.max.size", whole(1), 256 * 1024 * 1024, "Bytes of a log data block at most."
)

# -- index ---------------------------------------------------------------------------------------------------------

INDEX_TYPE: Key[IndexType] = Key(
    "hoodie.index.type",
    choice(
        {kind.value: kind for kind in IndexType},
        known=(
            *("GLOBAL_BLOOM", "GLOBAL_SIMPLE", "INMEMORY", "FLINK_STATE", "HBASE"),
            *("RECORD_INDEX", "RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"),
        ),
    ),
    IndexType.BLOOM,
    "How keys are found in files. SIMPLE is served by the same look-up as BLOOM. BUCKET is a layout: it is chosen when the table "
    "is created (or written first), and later writes need no option; the hash of a key then says where it stands.",
)
BUCKET_COUNT: Key[int | None] = Key(
    "hoodie.bucket.index.num.buckets",
    whole(1),
    None,
    "With index type BUCKET: file groups of a partition; it cannot be changed later. Unset: 256 in a new table (Apache Hudi's "
    "default), in one that Apache Hudi wrote as its files say.",
)
BUCKET_FIELDS: Key[tuple[str, ...] | None] = Key(
    "hoodie.bucket.index.hash.field",
    fields(),
    None,
    "With index type BUCKET: record key columns whose values are hashed. Unset: all of them.",
)
BUCKET_CHECKS = (
    _check(
        "hoodie.index.bucket.engine",
        "SIMPLE",
        "consistent hashing moves keys between file groups by metadata of its own, which would have to be kept up to date",
        "With index type BUCKET: the kind of bucket index.",
    ),
    _check(
        "hoodie.bucket.index.partition.expressions",
        "",
        "every partition has the same number of buckets",
        "With index type BUCKET: numbers of buckets by partition.",
    ),
)
BLOOM_FPP = Key(
    "hoodie.index.bloom.fpp",
    fraction(),
    1e-6,
    "False positive rate of the bloom filters in base files (Apache Hudi's default: 1e-9, half as much again in size and time).",
)
BLOOM_ENTRIES: Key[int | None] = Key(
    "hoodie.index.bloom.num_entries",
    whole(1),
    None,
    "Keys that a bloom filter is sized for. Unset: the records of the file (Apache Hudi's default: 60000).",
)
BLOOM_TYPE = Key(
    "hoodie.bloom.index.filter.type",
    choice({"DYNAMIC_V0": "DYNAMIC_V0", "SIMPLE": "SIMPLE", "PYBLOOM_LIVE": "PYBLOOM_LIVE"}),
    "DYNAMIC_V0",
    "Kind of bloom filter. PYBLOOM_LIVE is for tables that only hoodie reads and needs the extra `pybloom`.",
)
BLOOM_MAX_ENTRIES = Key(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    whole(1),
    100_000,
    "Keys up to which a DYNAMIC_V0 filter grows; with more keys false positives become frequent.",
)
BLOOM_PRUNE = Key(
    "hoodie.bloom.index.prune.by.ranges", boolean(), True, "Skip files whose key range does not hold the key."
)

# -- services and concurrency --------------------------------------------------------------------------------------

COMPACT_INLINE = Key("hoodie.compact.inline", boolean(), False, "Compact after a write when it is due.")
COMPACT_SCHEDULE_INLINE = Key(
    "hoodie.compact.schedule.inline",
    boolean(),
    False,
    "Schedule a compaction after a write when it is due, and leave it to another process to run it.",
)
COMPACT_ASYNC = Key(
    "hoodie.datasource.compaction.async.enable",
    boolean(),
    False,
    "Compact when it is due in a thread of the writing process, which does not wait for it (Apache Hudi: in streams only, and there "
    "by default).",
)
COMPACT_TRIGGER = Key(
    "hoodie.compact.inline.trigger.strategy",
    choice({trigger.value: trigger for trigger in Trigger}),
    Trigger.NUM_COMMITS,
    "What makes a compaction due after a write: delta commits since the last one, or since the last plan of one, time since then, "
    "both, or one of both.",
)
COMPACT_DELTA_COMMITS = Key(
    "hoodie.compact.inline.max.delta.commits", whole(1), 5, "Delta commits after which compaction is due."
)
COMPACT_DELTA_SECONDS = Key(
    "hoodie.compact.inline.max.delta.seconds",
    whole(1),
    3600,
    "Seconds after which compaction is due, where the trigger looks at time.",
)
COMPACT_STRATEGY: Key[tuple[Strategy, ...]] = Key(
    "hoodie.compaction.strategy",
    strategies(),
    (Strategy.LOG_FILE_SIZE,),
    "Which file slices a compaction takes.",
)
COMPACT_TARGET_IO = Key(
    "hoodie.compaction.target.io",
    whole(0),
    512_000,
    "Megabytes that one compaction reads and writes; the slice that passes them is the last one.",
)
COMPACT_LOG_SIZE = Key(
    "hoodie.compaction.logfile.size.threshold",
    whole(0),
    0,
    "Strategy log_file_size: bytes of logs that a slice has at least.",
)
COMPACT_LOG_COUNT = Key(
    "hoodie.compaction.logfile.num.threshold",
    whole(0),
    0,
    "Strategy log_file_num: log files that a slice has at least.",
)
COMPACT_DAYS = Key(
    "hoodie.compaction.daybased.target.partitions",
    whole(1),
    10,
    "Strategy day_based: so many of the newest days. bounded_partition_aware: days back from today; unbounded_partition_aware: the "
    "days before those.",
)
COMPACT_REGEX: Key[str | None] = Key(
    "hoodie.compaction.partition.path.regex",
    regex(),
    None,
    "Strategy partition_regex: found somewhere in the paths of the partitions that are taken.",
)
COMPACT_MEMORY: Key[int | None] = Key(
    "hoodie.memory.compaction.max.size",
    whole(1),
    None,
    "Bytes that a compaction, or a clustering, may hold in memory, on Spark each of its tasks; what is more goes to disk. Unset: a "
    "part of `hoodie.python.memory.limit.mb`.",
)
COMPACT_MEMORY_SHARE = Key(
    "hoodie.memory.compaction.fraction",
    fraction(),
    0.6,
    "The part of `hoodie.python.memory.limit.mb` that a compaction, or a clustering, may hold, where the option above does not say "
    "it.",
)
LOG_COMPACT_ENABLE = Key(
    "hoodie.log.compaction.enable",
    boolean(),
    False,
    "Merge log files into larger ones when that is due: by a services job, and after writes in the way in which compactions are done, "
    "in the background with `hoodie.datasource.compaction.async.enable`, only planned with `hoodie.compact.schedule.inline`.",
)
LOG_COMPACT_INLINE = Key(
    "hoodie.log.compaction.inline",
    boolean(),
    False,
    "Merge log files into larger ones after a write when that is due.",
)
LOG_COMPACT_BLOCKS = Key(
    "hoodie.log.compaction.blocks.threshold",
    whole(1),
    5,
    "Logs that a file slice has got since its last log compaction when the next one takes it, and delta commits after which to look.",
)
CLEAN_AUTOMATIC = Key(
    "hoodie.clean.automatic",
    boolean(),
    True,
    "Delete old versions of files after a write, once there are more than are kept.",
)
CLEAN_ASYNC = Key(
    "hoodie.clean.async.enabled",
    boolean(),
    False,
    "Clean in a thread of the writing process, which does not wait for it.",
    also=("hoodie.clean.async",),
)
CLEAN_POLICY = Key(
    "hoodie.clean.policy",
    choice({policy.value: policy for policy in CleanPolicy}),
    CleanPolicy.KEEP_LATEST_COMMITS,
    "Which old versions are kept: what the last commits or hours need, or so many versions of each file.",
    also=("hoodie.cleaner.policy",),
)
CLEAN_COMMITS = Key(
    "hoodie.clean.commits.retained",
    whole(1),
    10,
    "Commits whose state can still be read after a clean.",
    also=("hoodie.cleaner.commits.retained",),
)
CLEAN_HOURS = Key(
    "hoodie.clean.hours.retained",
    whole(1),
    24,
    "With policy KEEP_LATEST_BY_HOURS: hours whose commits can still be read after a clean.",
    also=("hoodie.cleaner.hours.retained",),
)
CLEAN_VERSIONS = Key(
    "hoodie.clean.fileversions.retained",
    whole(1),
    3,
    "With policy KEEP_LATEST_FILE_VERSIONS: versions of each file that are kept. Files that an overwrite replaced go at once.",
    also=("hoodie.cleaner.fileversions.retained",),
)
CLEAN_TRIGGER = _check(
    "hoodie.clean.trigger.strategy", "NUM_COMMITS", "there is no other", "What decides when a clean is due."
)
CLEAN_TRIGGER_COMMITS = Key(
    "hoodie.clean.trigger.max.commits",
    whole(1),
    1,
    "Commits since the last clean after which one is due again.",
    also=("hoodie.clean.max.commits",),
)
CLEAN_INCREMENTAL = Key(
    "hoodie.clean.incremental.enabled",
    boolean(),
    True,
    "Plan cleans from the commits since the last one. false: list the whole table each time.",
    also=("hoodie.cleaner.incremental.mode",),
)
CLEAN_AT_ONCE = Key(
    "hoodie.clean.max.commits.to.clean",
    whole(1),
    9223372036854775807,
    "Commits that one clean passes over at most, so that a table that was not cleaned for long is cleaned in steps.",
)
CLEAN_MULTIPLE = Key(
    "hoodie.clean.multiple.enabled",
    boolean(),
    False,
    "Plan a further clean while another one is pending.",
    also=("hoodie.clean.allow.multiple",),
)
CONSUMER_HOURS = Key(
    "hoodie.python.consumer.hours.retained",
    whole(0),
    48,
    "Files and commits that a named consumer of the change feed has not read yet are kept by cleans and archiving for so many hours "
    "after they were committed. 0: not at all.",
)
ARCHIVE_AUTOMATIC = Key(
    "hoodie.archive.automatic",
    boolean(),
    True,
    "Move the oldest commits to the archived timeline after a write, once there are more than `hoodie.keep.max.commits`.",
)
ARCHIVE_ASYNC = Key(
    "hoodie.archive.async",
    boolean(),
    False,
    "Archive in a thread of the writing process, which does not wait for it.",
)
KEEP_MIN_COMMITS = Key(
    "hoodie.keep.min.commits", whole(1), 20, "Commits that stay on the active timeline when others are archived."
)
KEEP_MAX_COMMITS = Key(
    "hoodie.keep.max.commits",
    whole(2),
    30,
    "Commits on the active timeline beyond which the oldest are archived; more than `hoodie.keep.min.commits`.",
)
ARCHIVE_BEYOND_SAVEPOINT = Key(
    "hoodie.archive.beyond.savepoint",
    boolean(),
    False,
    "Archive commits after a savepoint, too. The commits of savepoints stay.",
)
ARCHIVE_WAITS_FOR_CLEANS = Key(
    "hoodie.archive.block.on.latest.clean.ectr",
    boolean(),
    False,
    "Keep the commits that the next clean looks at, also where this writer does not clean.",
)
EXPIRY_INLINE = Key(
    "hoodie.partition.ttl.inline",
    boolean(),
    False,
    "Delete expired partitions after writes, and in the rounds of a services job.",
)
EXPIRY_STRATEGY = Key(
    "hoodie.partition.ttl.management.strategy.type",
    choice({strategy.value: strategy for strategy in ExpiryStrategy}),
    ExpiryStrategy.KEEP_BY_TIME,
    "From when a partition's days are counted: from its last change, or from its creation.",
)
EXPIRY_CLASS: Key[ExpiryStrategy | None] = Key(
    "hoodie.partition.ttl.strategy.class",
    choice({f"{_EXPIRY_CLASSES}{name}": strategy for name, strategy in _EXPIRY_NAMES.items()}),
    None,
    "The strategy by the name of its class; it wins over the type. Classes of your own are not run.",
)
EXPIRY_DAYS = Key(
    "hoodie.partition.ttl.strategy.days.retain",
    whole(-1),
    -1,
    "A partition expires after so many days; 0 and less: never.",
)
EXPIRY_SELECTED: Key[tuple[str, ...] | None] = Key(
    "hoodie.partition.ttl.strategy.partition.selected", paths(), None, "Only these partitions expire. Unset: any may."
)
EXPIRY_MOST = Key(
    "hoodie.partition.ttl.strategy.max.delete.partitions",
    whole(1),
    1000,
    "Partitions that one commit deletes at most, those first that have not been touched for longest.",
)
SERVICES_ENABLED = Key(
    "hoodie.table.services.enabled",
    boolean(),
    True,
    "Services after a write, and beside it. false: the writer does none, whatever other options say; a services job does them.",
)
_CLUSTERING = "hoodie.clustering.plan.strategy."
CLUSTER_INLINE = Key(
    "hoodie.clustering.inline",
    boolean(),
    False,
    "Cluster after a write when it is due: schedule a plan and run it.",
    also=("hoodie.datasource.clustering.inline.enable",),
)
CLUSTER_COMMITS = Key(
    "hoodie.clustering.inline.max.commits",
    whole(1),
    4,
    "Commits since the last clustering after which one is due, with `hoodie.clustering.inline`.",
)
CLUSTER_ASYNC = Key(
    "hoodie.clustering.async.enabled",
    boolean(),
    False,
    "Cluster in a thread of the writing process, which does not wait for it.",
    also=("hoodie.datasource.clustering.async.enable",),
)
CLUSTER_ASYNC_COMMITS = Key(
    "hoodie.clustering.async.max.commits",
    whole(1),
    4,
    "The same number of commits for clusterings in a thread, and for those that are only scheduled.",
)
CLUSTER_SCHEDULE = Key(
    "hoodie.clustering.schedule.inline",
    boolean(),
    False,
    "Only schedule clusterings after writes, and leave it to others to run them.",
)
CLUSTER_SMALL_FILE: Key[int | None] = Key(
    f"{_CLUSTERING}small.file.limit",
    whole(0),
    None,
    "Bytes; larger base files are left as they are. Unset: 314572800, and no limit for `cluster()` that sorts.",
)
CLUSTER_TARGET_FILE = Key(
    f"{_CLUSTERING}target.file.max.bytes", whole(1), 1024**3, "Bytes of the new base files, about."
)
CLUSTER_GROUP_BYTES: Key[int | None] = Key(
    f"{_CLUSTERING}max.bytes.per.group",
    whole(1),
    None,
    "Bytes of files of one partition that are put in order together. Unset: 2147483648, and no limit for `cluster()` that sorts.",
)
CLUSTER_GROUPS: Key[int | None] = Key(
    f"{_CLUSTERING}max.num.groups",
    whole(1),
    None,
    "Groups of files of one plan. Unset: 30, and no limit for `cluster()`.",
)
CLUSTER_SORT: Key[tuple[str, ...] | None] = Key(
    f"{_CLUSTERING}sort.columns",
    fields(),
    None,
    "Columns to sort rows by. Unset: small files are put together as they are.",
)
CLUSTER_SINGLE = Key(
    f"{_CLUSTERING}single.group.clustering.enabled",
    boolean(),
    True,
    "Also plan a group of one file, where rows are sorted or logs merged by that.",
)
CLUSTER_LAYOUT: Key[RowOrder] = Key(
    "hoodie.layout.optimize.strategy",
    choice(
        {"linear": RowOrder.LINEAR, "z-order": RowOrder.ZORDER, "zorder": RowOrder.ZORDER, "hilbert": RowOrder.HILBERT}
    ),
    RowOrder.LINEAR,
    "How rows are sorted by several columns: one after the other, or along a curve that serves filters on each of them.",
)
CLUSTER_PARTITIONS: Key[PartitionFilter] = Key(
    "hoodie.clustering.plan.partition.filter.mode",
    choice({mode.value: mode for mode in PartitionFilter}, known=("DAY_ROLLING",)),
    PartitionFilter.NONE,
    "Which partitions are clustered: all, the last ones by their names, or those between two names.",
)
CLUSTER_REGEX: Key[str | None] = Key(
    f"{_CLUSTERING}partition.regex.pattern",
    pattern(),
    None,
    "Only partitions whose whole path fits this regular expression. Unset: all.",
)
CLUSTER_SELECTED: Key[tuple[str, ...] | None] = Key(
    f"{_CLUSTERING}partition.selected", paths(), None, "Only these partitions. Unset: all."
)
CLUSTER_BEGIN: Key[str | None] = Key(
    f"{_CLUSTERING}cluster.begin.partition", text("a partition path"), None, "With SELECTED_PARTITIONS: the first one."
)
CLUSTER_END: Key[str | None] = Key(
    f"{_CLUSTERING}cluster.end.partition", text("a partition path"), None, "With SELECTED_PARTITIONS: the last one."
)
CLUSTER_LOOKBACK = Key(
    f"{_CLUSTERING}daybased.lookback.partitions", whole(0), 2, "With RECENT_DAYS: so many partitions; 0: all."
)
CLUSTER_SKIP = Key(
    f"{_CLUSTERING}daybased.skipfromlatest.partitions",
    whole(0),
    0,
    "With RECENT_DAYS: so many of the last are left out.",
)
_UPDATES = "org.apache.hudi.client.clustering.update.strategy."
CLUSTER_UPDATES: Key[UpdateStrategy] = Key(
    "hoodie.clustering.updates.strategy",
    choice(
        {
            f"{_UPDATES}SparkRejectUpdateStrategy": UpdateStrategy.REJECT,
            f"{_UPDATES}SparkAllowUpdateStrategy": UpdateStrategy.ALLOW,
            "reject": UpdateStrategy.REJECT,
            "allow": UpdateStrategy.ALLOW,
        },
        known=(f"{_UPDATES}SparkConsistentBucketDuplicateUpdateStrategy",),
    ),
    UpdateStrategy.REJECT,
    "What becomes of a write that changes a file group in a pending clustering: it is refused, or it stands and the clustering fails.",
)
_STRATEGY = "org.apache.hudi.client.clustering."
CLUSTER_PLAN: Key[PartitionFilter | None] = Key(
    "hoodie.clustering.plan.strategy.class",
    choice(
        {
            f"{_STRATEGY}plan.strategy.{engine}{name}ClusteringPlanStrategy": mode
            for name, mode in {
                "SizeBased": None,
                "RecentDays": PartitionFilter.RECENT_DAYS,
                "SelectedPartitions": PartitionFilter.SELECTED_PARTITIONS,
            }.items()
            for engine in ("Spark", "Java")
        },
        known=(
            f"{_STRATEGY}plan.strategy.{name}"
            for name in (
                *("SparkSingleFileSortPlanStrategy", "SparkConsistentBucketClusteringPlanStrategy"),
                *("FlinkSizeBasedClusteringPlanStrategy", "SparkStreamCopyClusteringPlanStrategy"),
            )
        ),
    ),
    None,
    "How files are chosen: small ones of a partition together, up to a size. RecentDays and SelectedPartitions are older words for "
    "the filter modes of partitions.",
)
CLUSTER_CHECKS: tuple[Key[object], ...] = (
    Key(
        "hoodie.clustering.execution.strategy.class",
        choice(
            {
                f"{_STRATEGY}run.strategy.{name}": f"{_STRATEGY}run.strategy.{name}"
                for name in ("SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy")
            },
            known=(
                f"{_STRATEGY}run.strategy.{name}"
                for name in (
                    *("SparkSingleFileSortExecutionStrategy", "SparkConsistentBucketClusteringExecutionStrategy"),
                    *("SparkStreamCopyClusteringExecutionStrategy", "SparkBinaryCopyClusteringExecutionStrategy"),
                )
            ),
        ),
        f"{_STRATEGY}run.strategy.SparkSortAndSizeExecutionStrategy",
        "How rows are put in order: sorted, and cut into files of a size.",
    ),
    _check(
        f"{_CLUSTERING}file.slices.sort.by",
        "SIZE",
        "the largest files of a partition are taken first",
        "Which files of a partition are taken together.",
    ),
    _check(
        "hoodie.clustering.preserve.commit.metadata",
        "true",
        "clustered rows keep their commit times, or every incremental query would show them again",
        "Rows keep their commit times and sequence numbers.",
    ),
    _check(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "false",
        "a write that is allowed beside a pending clustering leaves its plan, which is dropped when it is run",
        "Drop a pending clustering whose file groups a write changes.",
    ),
)
METADATA_ENABLE: Key[bool | None] = Key(
    "hoodie.metadata.enable",
    boolean(),
    None,
    "The metadata table is neither read nor written; true is a warning at each write. One that Apache Hudi made is dropped by the "
    "next write.",
)
HEARTBEAT_INTERVAL = Key(
    "hoodie.client.heartbeat.interval_in_ms",
    whole(1),
    60_000,
    "Milliseconds after which a writer touches its heartbeat file again.",
)
HEARTBEAT_MISSES = Key(
    "hoodie.client.heartbeat.tolerable.misses",
    whole(1),
    2,
    "So many intervals without a heartbeat, and 5 seconds: then a writer on another machine, or of another program, counts as "
    "dead. A writer of ours that was paused for so many intervals refuses to commit.",
)
FAILED_WRITES = Key(
    "hoodie.clean.failed.writes.policy",
    choice({policy.value: policy for policy in FailedWritesPolicy}, known=("NEVER",)),
    FailedWritesPolicy.EAGER,
    "When the writes of dead writers are rolled back: `EAGER` before each write, `LAZY` by a table service or by `rollback()`. "
    "Living writers are left alone in any case. Until a dead write is rolled back, incremental pulls end before it.",
    also=("hoodie.cleaner.policy.failed.writes",),
)
CONCURRENCY_MODE = Key(
    "hoodie.write.concurrency.mode",
    choice({mode.value: mode for mode in ConcurrencyMode}, known=("NON_BLOCKING_CONCURRENCY_CONTROL",)),
    None,
    "Writers always expect others: each takes the table lock for moments, and conflicts are found for each file group. So both "
    "values mean the same. Who grants the lock says `hoodie.write.lock.provider`.",
)
TAKES_TURNS = Key(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    boolean(),
    True,
    "A writer sees what other writes are under way and lets those go first that took their instants before and write the same "
    "file groups, for as long as it would wait for the lock. Apache Hudi fails the later write.",
)
LOCK_WAIT = Key(
    "hoodie.write.lock.wait_time_ms", whole(0), 60_000, "Milliseconds to wait for the table lock before giving up."
)

# -- streams that are written --------------------------------------------------------------------------------------

STREAM_ID: Key[str | None] = Key(
    "hoodie.python.stream.id",
    text("a name"),
    None,
    "Name of a stream whose batches are each written once. Streams of Spark are known by the id of their query.",
)
STREAM_BATCH: Key[int | None] = Key(
    "hoodie.python.stream.batch",
    whole(0),
    None,
    "With a stream's name: number of the batch. When the table holds this batch of the stream already, or a later one, nothing is "
    "written.",
)
STREAM_IDENTIFIER: Key[str | None] = Key(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    text("a name"),
    None,
    "Name by which Apache Hudi's streaming sink knows the stream (its default: `default_single_writer`). Set it where a job with one "
    "checkpoint goes over from Hudi or to it. Unset: Hudi's records are neither looked at nor written.",
)
STREAM_RETRIES = Key(
    "hoodie.datasource.write.streaming.retry.count",
    whole(1),
    3,
    "Streaming sink: how often a batch is tried that fails for a conflict, a lock or the storage.",
)
STREAM_RETRY_INTERVAL = Key(
    "hoodie.datasource.write.streaming.retry.interval.ms",
    whole(0),
    2000,
    "Streaming sink: milliseconds before the second try; doubled before each further one.",
)
STREAM_CHECKS = (
    _check(
        "hoodie.datasource.write.streaming.ignore.failed.batch",
        "false",
        "a batch that cannot be written stops the stream, its rows would be lost otherwise",
        "Streaming sink: whether failed batches are dropped.",
    ),
)
COMMIT_ENTRIES = Key(
    "hoodie.datasource.write.commitmeta.key.prefix",
    text("a prefix"),
    "_",
    "Options whose keys begin with it, and not with `hoodie.` or `_hoodie.`, are kept in the metadata of the commit.",
)

# -- reading -------------------------------------------------------------------------------------------------------

QUERY_TYPE: Key[QueryType] = Key(
    "hoodie.datasource.query.type",
    choice({**{kind.value: kind for kind in QueryType}, "realtime": QueryType.SNAPSHOT}),
    QueryType.SNAPSHOT,
    "Newest rows; base files only; or rows changed in a range of instants. `realtime` is the old name of snapshot.",
    also=("hoodie.datasource.view.type",),
)
BEGIN_INSTANT: Key[str | None] = Key(
    "hoodie.datasource.read.begin.instanttime",
    text("an instant"),
    None,
    "Incremental queries: rows changed after this instant (exclusive); `000` or `earliest`: from the beginning.",
)
END_INSTANT: Key[str | None] = Key(
    "hoodie.datasource.read.end.instanttime",
    text("an instant"),
    None,
    "Incremental queries: rows changed up to this instant (inclusive). Unset: the latest.",
)
INCREMENTAL_FORMAT: Key[ChangeFormat] = Key(
    "hoodie.datasource.query.incremental.format",
    choice({kind.value: kind for kind in ChangeFormat}),
    ChangeFormat.LATEST_STATE,
    "Incremental queries: the changed rows as they are now; or each change with the row before and after it, as JSON text "
    "(`cdc`: columns op, ts_ms, before, after) or as structs (`before_after`: op, instant, before, after).",
)
FULL_SCAN_FALLBACK = Key(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    boolean(),
    False,
    "Incremental queries: read a range whose commits were archived, or whose files were cleaned, from the whole table. false: that is "
    "an error. Where the files of the end are gone, rows that were changed after it are not in the answer, as in Apache Hudi.",
)
AS_OF: Key[str | None] = Key(
    "as.of.instant",
    text("an instant"),
    None,
    "Read the table as it was at this instant: 17 or 14 digits, `yyyy-MM-dd`, `yyyy-MM-dd HH:mm:ss[.SSS]`, ISO 8601, "
    "`2 hours ago` (seconds to weeks), `today` or `yesterday`. Times without an offset are of the table's time zone.",
)
TIMESTAMP_AS_OF: Key[str | None] = Key(
    "timestampAsOf",
    text("a time"),
    None,
    "The same by Delta Lake's and Spark's name: a date or time without an offset is one of the session's time zone. Without `enable` "
    "the session is not seen, and an offset is needed.",
)
MERGE_SCHEMA = _check(
    "mergeSchema",
    "true",
    "columns that the data has more are always added, and a query always has all columns of the table",
    "Delta Lake's and Spark's name for what is always done.",
)
WHERE: Key[str | None] = Key("where", text("a condition"), None, "Rows to read, as SQL-like text.")
COLUMNS: Key[tuple[str, ...] | None] = Key("columns", fields(), None, "Columns to read. Unset: all.")
START_OFFSET = Key(
    "hoodie.datasource.streaming.startOffset",
    text("earliest, latest or an instant"),
    "earliest",
    "Streaming source without a checkpoint: begin with all rows, with what is committed from now on, or after an instant.",
)
MAX_COMMITS: Key[int | None] = Key(
    "maxCommitsPerTrigger",
    whole(1),
    None,
    "Streaming source: commits that one batch takes at most. Unset: all there are.",
)
MAX_BYTES: Key[int | None] = Key(
    "maxBytesPerTrigger",
    whole(1),
    None,
    "Streaming source: bytes that the commits of one batch wrote at most; one commit is always taken. Unset: no bound.",
)
READ_CHECKS = (
    _check(
        "hoodie.datasource.merge.type",
        "payload_combine",
        "logs are always merged; use query type read_optimized for base files only",
        "Whether a snapshot merges logs.",
    ),
)

_VIEW = "hoodie.filesystem.view."
VIEW_SYNC: Key[bool | None] = Key(
    f"{_VIEW}incr.timeline.sync.enable",
    boolean(),
    None,
    "List a partition once, and afterwards follow its files by what instants say: docs/TIMELINE_SERVICE.md. "
    "Unset: on object stores and HDFS, from the second listing of a process on.",
)
VIEW_TYPE: Key[ViewStore] = Key(
    f"{_VIEW}type",
    choice({store.value: store for store in ViewStore}),
    ViewStore.MEMORY,
    "Where the files that are followed are kept: in memory, in bounded memory and a file, or in RocksDB.",
)
VIEW_SECONDARY: Key[ViewStore] = Key(
    f"{_VIEW}secondary.type",
    choice({store.value: store for store in ViewStore if not store.is_remote}),
    ViewStore.MEMORY,
    "The same where a timeline server is asked and does not answer.",
)
VIEW_SPILL_BYTES = Key(
    f"{_VIEW}spillable.mem",
    whole(0),
    100 * 1024 * 1024,
    "Bytes of files that SPILLABLE_DISK keeps in memory.",
)
VIEW_SPILL_DIR: Key[str | None] = Key(
    f"{_VIEW}spillable.dir",
    text("a folder of this machine"),
    None,
    "Where SPILLABLE_DISK has its file. Unset: where the machine has such files.",
)
VIEW_ROCKSDB_DIR: Key[str | None] = Key(
    f"{_VIEW}rocksdb.base.path",
    text("a folder of this machine"),
    None,
    "Where EMBEDDED_KV_STORE makes a folder. Unset: where the machine has such files.",
)
VIEW_CHECKPOINT: Key[str | None] = Key(
    "hoodie.python.view.checkpoint.path",
    text("a folder, or an address as of a table"),
    None,
    "Where what is known of the files is left, so that the next process lists nothing. Unset: nowhere.",
)
_REMOTE = f"{_VIEW}remote."
REMOTE_HOST = Key(
    f"{_REMOTE}host",
    text("a host name or address"),
    "localhost",
    "Where the timeline server is that REMOTE_FIRST and REMOTE_ONLY ask. The token may stand before it: hoodie:TOKEN@10.0.0.1.",
)
REMOTE_PORT = Key(f"{_REMOTE}port", whole(1), 26754, "Its port.")
REMOTE_TOKEN: Key[str | None] = Key(
    "hoodie.python.view.remote.token",
    text("a token"),
    None,
    "What the server asks for, where it is not in the host's name.",
)
REMOTE_TIMEOUT = Key(
    f"{_REMOTE}timeout.secs",
    whole(1),
    60,
    "Seconds that an answer is waited for, retries included. Then the partitions concerned are listed. Apache Hudi: 300, each time.",
)
REMOTE_RETRY = Key(
    f"{_REMOTE}retry.enable",
    boolean(),
    True,
    "Send a request again that a connection has failed. Apache Hudi: false.",
)
REMOTE_RETRIES = Key(f"{_REMOTE}retry.max_numbers", whole(0), 3, "How often.")
REMOTE_FIRST_PAUSE = Key(
    f"{_REMOTE}retry.initial_interval_ms", whole(0), 100, "Milliseconds before the first retry; each time it doubles."
)
REMOTE_MAX_PAUSE = Key(f"{_REMOTE}retry.max_interval_ms", whole(0), 2000, "The longest such pause.")
REMOTE_KEYS: tuple[Key[object], ...] = (
    *(REMOTE_HOST, REMOTE_PORT, REMOTE_TOKEN, REMOTE_TIMEOUT, REMOTE_RETRY, REMOTE_RETRIES),
    *(REMOTE_FIRST_PAUSE, REMOTE_MAX_PAUSE),
)
MARKERS_TYPE: Key[MarkersType | None] = Key(
    "hoodie.write.markers.type",
    choice({kind.value: kind for kind in MarkersType}),
    None,
    "Mark each file that a commit is about to name by a file, or all by lines of one, as Apache Hudi's timeline server does. Ours "
    "need no server for that. Unset: by lines where a commit names more than 100 files. Apache Hudi: TIMELINE_SERVER_BASED.",
)
EMBED_SERVER = Key(
    "hoodie.embed.timeline.server",
    boolean(),
    False,
    "Answer as a timeline server while a write runs. Tasks of ours ask nobody, so it is for others. Apache Hudi: true.",
)
EMBED_PORT = Key("hoodie.embed.timeline.server.port", whole(0), 0, "Where it listens; 0: at a port that is free.")
VIEW_KEYS: tuple[Key[object], ...] = (
    *(VIEW_SYNC, VIEW_TYPE, VIEW_SECONDARY, VIEW_SPILL_BYTES, VIEW_SPILL_DIR, VIEW_ROCKSDB_DIR, VIEW_CHECKPOINT),
    *REMOTE_KEYS,
)

# -- registration in a Hive metastore ----------------------------------------------------------------------------------

_HIVE_SYNC = "hoodie.datasource.hive_sync."
HIVE_SYNC_ENABLE = Key(
    f"{_HIVE_SYNC}enable",
    boolean(),
    False,
    "Register the table in a Hive metastore after each commit (docs/HIVE.md). A failure is a warning; the next one makes up for it.",
)
META_SYNC_ENABLE = Key(
    "hoodie.datasource.meta.sync.enable", boolean(), False, "The same, by Apache Hudi's word for all catalogs."
)
HIVE_SYNC_TOOL = "org.apache.hudi.hive.HiveSyncTool"
META_SYNC_TOOL: Key[tuple[str, ...]] = Key(
    "hoodie.meta.sync.client.tool.class",
    fields("Apache Hudi's classes"),
    (HIVE_SYNC_TOOL,),
    "Where tables are registered. Any class but this one is a warning at each write: the table is not registered there.",
)
HIVE_SYNC_MODE = Key(
    f"{_HIVE_SYNC}mode",
    choice({mode: mode for mode in ("hms", "jdbc", "hiveql", "glue")}),
    "hms",
    "How. The first three mean the same: the metastore's own interface, where Apache Hudi's default goes through a HiveServer. "
    "glue is a warning at each write: the table is not registered there.",
)
HIVE_SYNC_URIS = Key(
    f"{_HIVE_SYNC}metastore.uris",
    text("thrift://host:port[,…]"),
    "thrift://localhost:9083",
    "Servers of one metastore; the first that can be reached is asked.",
)
HIVE_SYNC_DATABASE: Key[str | None] = Key(
    f"{_HIVE_SYNC}database",
    text("a name"),
    None,
    "Database to register in. Unset: `hoodie.database.name` of the table, else `default`.",
)
HIVE_SYNC_TABLE: Key[str | None] = Key(
    f"{_HIVE_SYNC}table", text("a name"), None, "Name to register by. Unset: that of the table."
)
HIVE_SYNC_AUTO_DATABASE = Key(
    f"{_HIVE_SYNC}auto_create_database", boolean(), True, "Make the database when it is not there."
)
HIVE_SYNC_PARTITION_FIELDS: Key[tuple[str, ...] | None] = Key(
    f"{_HIVE_SYNC}partition_fields", fields(), None, "Hive's partition columns. Unset: the table's."
)
HIVE_SYNC_EXTRACTOR: Key[Extractor | None] = Key(
    f"{_HIVE_SYNC}partition_extractor_class",
    named_class(choice({f"org.apache.hudi.hive.{each.value}": each for each in Extractor})),
    None,
    "How values are read from partition paths, by the name of Apache Hudi's class. Unset: what the table's properties say.",
)
HIVE_SYNC_SKIP_RO = Key(
    f"{_HIVE_SYNC}skip_ro_suffix",
    boolean(),
    False,
    "Merge-on-read: the read-optimized view has the name itself, without `_ro`; then nothing else has that name.",
)
HIVE_SYNC_STRATEGY = Key(
    f"{_HIVE_SYNC}table.strategy",
    choice({each.value: each for each in HiveViews}),
    HiveViews.ALL,
    "Merge-on-read: register both views with their suffixes, or only the realtime or the read-optimized one, by the name itself.",
)
META_SYNC_SNAPSHOT_NAME = Key(
    "hoodie.meta.sync.sync_snapshot_with_table_name",
    boolean(),
    True,
    "Merge-on-read: register the realtime view by the name itself, too.",
)
HIVE_SYNC_TIMESTAMP = Key(
    f"{_HIVE_SYNC}support_timestamp",
    boolean(),
    False,
    "Hive's type for timestamps is `timestamp`, else `bigint`. Spark has its own note of the columns, and its own types.",
)
HIVE_SYNC_COMMENT = Key(
    f"{_HIVE_SYNC}sync_comment", boolean(), False, "Register what the table's schema says of its columns as comments."
)
HIVE_SYNC_DATASOURCE = Key(
    f"{_HIVE_SYNC}sync_as_datasource", boolean(), True, "Register for Spark as a table of the format `hudi`, too."
)
HIVE_SYNC_SCHEMA_LENGTH = Key(
    f"{_HIVE_SYNC}schema_string_length_thresh",
    whole(1),
    4000,
    "Characters of one table parameter, by which Spark's note of the columns is cut.",
)
HIVE_SYNC_NO_META = Key(
    f"{_HIVE_SYNC}omit_metadata_fields", boolean(), False, "Register the table without its `_hoodie_` columns."
)
HIVE_SYNC_PROPERTIES: Key[Mapping[str, str] | None] = Key(
    f"{_HIVE_SYNC}table_properties", pairs(), None, "More parameters of the registered table."
)
HIVE_SYNC_SERDE: Key[Mapping[str, str] | None] = Key(
    f"{_HIVE_SYNC}serde_properties", pairs(), None, "More parameters of its SerDe."
)
HIVE_SYNC_MANAGED = Key(
    f"{_HIVE_SYNC}create_managed_table",
    boolean(),
    False,
    "Register without the parameter EXTERNAL: whoever drops the table in Hive may delete its files.",
)
HIVE_SYNC_BATCH = Key(f"{_HIVE_SYNC}batch_num", whole(1), 1000, "Partitions that are registered by one request.")
HIVE_SYNC_RECREATE = Key(
    f"{_HIVE_SYNC}recreate_table_on_error",
    boolean(),
    False,
    "Drop a registration that cannot be changed into what is needed, and make it anew: another path, or columns of other types.",
)
HIVE_SYNC_PUSHDOWN = Key(
    f"{_HIVE_SYNC}filter_pushdown_enabled",
    boolean(),
    False,
    "No difference: the metastore is always asked only for the partitions that matter.",
)
META_SYNC_INCREMENTAL = Key(
    "hoodie.meta.sync.incremental",
    boolean(),
    True,
    "Look at what was committed since the last registration. false: compare all partitions each time.",
)
META_SYNC_NO_PARTITIONS = Key(
    "hoodie.meta.sync.no_partition_metadata", boolean(), False, "Register no partitions, only tables."
)
META_SYNC_TOUCH = Key(
    "hoodie.meta.sync.touch.partitions.enabled",
    boolean(),
    False,
    "Register partitions once more that got rows, so that who listens to the metastore hears of it.",
)
META_SYNC_CONDITIONAL = Key(
    "hoodie.datasource.meta_sync.condition.sync",
    boolean(),
    False,
    "Note the last commit only where columns, parameters or partitions changed.",
)
META_SYNC_SPARK_VERSION: Key[str | None] = Key(
    "hoodie.meta_sync.spark.version",
    text("a version"),
    None,
    "Version of Spark that the registration names as its maker. Unset: that of the session that writes, else none.",
)
META_SYNC_PATH: Key[str | None] = Key(
    "hoodie.datasource.meta.sync.base.path",
    text("a path"),
    None,
    "The table's path as others reach it, such as `s3a://…`. Unset: as the writer has it.",
)
HIVE_SYNC_TIMEOUT = Key(
    "hoodie.python.hive_sync.timeout",
    whole(1),
    60,
    "Seconds that a registration waits for the metastore in all; then it fails, and the commit stands.",
)
HIVE_SYNC_CHECKS = (
    _check(f"{_HIVE_SYNC}base_file_format", "PARQUET", "base files are Parquet", "Format of the base files."),
)

GROUPS: Mapping[str, tuple[Key[object], ...]] = MappingProxyType(
    {
        "Table": (
            *(TABLE_NAME, DATABASE_NAME, TABLE_TYPE, RECORD_KEY, PARTITION_PATH, ORDERING, KEYGEN_TYPE, KEYGEN_CLASS),
            *(HIVE_STYLE, URL_ENCODE, META_FIELDS, DROP_COLUMNS, TIMESTAMPS_AS_TEXT, SLASH_DATES, *TIMEBASED),
            *(CREATE_VERSION, AUTO_UPGRADE, MERGE_MODE, PAYLOAD_CLASS, MERGE_STRATEGY),
            *(PYTHON_MERGER, DELETE_FIELD, DELETE_MARKER),
            *(MOR_INSERTS, *TABLE_CHECKS),
        ),
        "Writing": (
            *(OPERATION, COMBINE_BEFORE_UPSERT, COMBINE_BEFORE_INSERT, COMBINE_BEFORE_DELETE, COMPLEX_NEW_ENCODING),
            *(DROP_DUPLICATES, DUPLICATE_POLICY, ALLOW_DUPLICATES, SORT_MODE, PARTIAL_UPSERT),
            *(NULL_FOR_MISSING, RECONCILE_SCHEMA, INTEGERS_TO_FLOATING),
            *(OVERWRITE_MODE, STATIC_OVERWRITE, PARTITIONS_TO_DELETE),
            *(UPSERT_PARALLELISM, INSERT_PARALLELISM, BULK_PARALLELISM, DELETE_PARALLELISM, DRIVER_MAX_BYTES),
            MEMORY_LIMIT_MB,
            DURABILITY,
            ROW_COPIES,
        ),
        "Files": (
            *(MAX_FILE_SIZE, SMALL_FILE_LIMIT, COMPRESSION, RECORD_SIZE),
            *(LOG_MAX_SIZE, LOG_BLOCK_FORMAT, LOG_BLOCK_MAX_SIZE, *FILE_CHECKS),
        ),
        "Index": (
            *(INDEX_TYPE, BLOOM_FPP, BLOOM_ENTRIES, BLOOM_TYPE, BLOOM_MAX_ENTRIES, BLOOM_PRUNE),
            *(BUCKET_COUNT, BUCKET_FIELDS, *BUCKET_CHECKS),
        ),
        "Services and concurrency": (
            SERVICES_ENABLED,
            *(COMPACT_INLINE, COMPACT_SCHEDULE_INLINE, COMPACT_ASYNC),
            *(COMPACT_TRIGGER, COMPACT_DELTA_COMMITS, COMPACT_DELTA_SECONDS),
            *(COMPACT_STRATEGY, COMPACT_TARGET_IO, COMPACT_LOG_SIZE, COMPACT_LOG_COUNT, COMPACT_DAYS, COMPACT_REGEX),
            *(COMPACT_MEMORY, COMPACT_MEMORY_SHARE),
            *(LOG_COMPACT_ENABLE, LOG_COMPACT_INLINE, LOG_COMPACT_BLOCKS),
            *(CLEAN_AUTOMATIC, CLEAN_ASYNC, CLEAN_POLICY, CLEAN_COMMITS, CLEAN_HOURS, CLEAN_VERSIONS),
            *(CLEAN_TRIGGER, CLEAN_TRIGGER_COMMITS, CLEAN_INCREMENTAL, CLEAN_AT_ONCE, CLEAN_MULTIPLE),
            CONSUMER_HOURS,
            *(ARCHIVE_AUTOMATIC, ARCHIVE_ASYNC, KEEP_MIN_COMMITS, KEEP_MAX_COMMITS),
            *(ARCHIVE_BEYOND_SAVEPOINT, ARCHIVE_WAITS_FOR_CLEANS),
            *(EXPIRY_INLINE, EXPIRY_STRATEGY, EXPIRY_CLASS, EXPIRY_DAYS, EXPIRY_SELECTED, EXPIRY_MOST),
            *(CLUSTER_INLINE, CLUSTER_COMMITS, CLUSTER_ASYNC, CLUSTER_ASYNC_COMMITS, CLUSTER_SCHEDULE),
            *(CLUSTER_SORT, CLUSTER_LAYOUT, CLUSTER_TARGET_FILE, CLUSTER_SMALL_FILE, CLUSTER_GROUP_BYTES),
            *(CLUSTER_GROUPS, CLUSTER_SINGLE, CLUSTER_PARTITIONS, CLUSTER_REGEX, CLUSTER_SELECTED),
            *(
                CLUSTER_BEGIN,
                CLUSTER_END,
                CLUSTER_LOOKBACK,
                CLUSTER_SKIP,
                CLUSTER_UPDATES,
                CLUSTER_PLAN,
                *CLUSTER_CHECKS,
            ),
            METADATA_ENABLE,
            *(CONCURRENCY_MODE, FAILED_WRITES),
            *(HEARTBEAT_INTERVAL, HEARTBEAT_MISSES, TAKES_TURNS, LOCK_WAIT, LOCK_PROVIDER),
            *(STORAGE_LOCK_LEASE, STORAGE_LOCK_RENEWAL, FILESYSTEM_LOCK_PATH, FILESYSTEM_LOCK_EXPIRY),
            *(ZOOKEEPER_URL, ZOOKEEPER_PORT, ZOOKEEPER_BASE_PATH, ZOOKEEPER_LOCK_KEY),
            *(ZOOKEEPER_SESSION, ZOOKEEPER_CONNECTION, HIVE_URIS, HIVE_DATABASE, HIVE_TABLE),
        ),
        "Registration in a Hive metastore": (
            *(HIVE_SYNC_ENABLE, META_SYNC_ENABLE, META_SYNC_TOOL, HIVE_SYNC_MODE, HIVE_SYNC_URIS, HIVE_SYNC_DATABASE),
            *(HIVE_SYNC_TABLE, HIVE_SYNC_AUTO_DATABASE, HIVE_SYNC_PARTITION_FIELDS, HIVE_SYNC_EXTRACTOR),
            *(HIVE_SYNC_SKIP_RO, HIVE_SYNC_STRATEGY, META_SYNC_SNAPSHOT_NAME, HIVE_SYNC_TIMESTAMP, HIVE_SYNC_COMMENT),
            *(HIVE_SYNC_DATASOURCE, HIVE_SYNC_SCHEMA_LENGTH, HIVE_SYNC_NO_META, HIVE_SYNC_PROPERTIES, HIVE_SYNC_SERDE),
            *(HIVE_SYNC_MANAGED, HIVE_SYNC_BATCH, HIVE_SYNC_RECREATE, HIVE_SYNC_PUSHDOWN, META_SYNC_INCREMENTAL),
            *(META_SYNC_NO_PARTITIONS, META_SYNC_TOUCH, META_SYNC_CONDITIONAL, META_SYNC_SPARK_VERSION, META_SYNC_PATH),
            *(HIVE_SYNC_TIMEOUT, *HIVE_SYNC_CHECKS),
        ),
        "Streams that are written": (
            *(STREAM_ID, STREAM_BATCH, STREAM_IDENTIFIER, STREAM_RETRIES, STREAM_RETRY_INTERVAL, *STREAM_CHECKS),
            COMMIT_ENTRIES,
        ),
        "File system view": (*VIEW_KEYS, EMBED_SERVER, EMBED_PORT, MARKERS_TYPE),
        "Reading": (
            QUERY_TYPE,
            BEGIN_INSTANT,
            END_INSTANT,
            INCREMENTAL_FORMAT,
            FULL_SCAN_FALLBACK,
            AS_OF,
            TIMESTAMP_AS_OF,
            WHERE,
            COLUMNS,
            START_OFFSET,
            MAX_COMMITS,
            MAX_BYTES,
            MERGE_SCHEMA,
            *READ_CHECKS,
        ),
    }
)
READ_KEYS: tuple[Key[object], ...] = (*GROUPS["Reading"], *VIEW_KEYS, METADATA_ENABLE)
WRITE_KEYS: tuple[Key[object], ...] = (
    *(key for title, group in GROUPS.items() if title != "Reading" for key in group),
    MERGE_SCHEMA,
)


@cache
def known_keys() -> Mapping[str, str]:
    """Every known name in lower case -> the name as it is spelled; Apache Hudi's and ours."""
    names = [name for line in _hudi_names() for name in line]
    ours = [name for group in GROUPS.values() for key in group for name in key.names]
    return MappingProxyType({name.lower(): name for name in (*names, *ours)})


def is_known(name: str) -> bool:
    """Whether it is such a name, in lower case, or begins as one that ends in a dot: what follows is the user's."""
    return name in known_keys() or name.startswith(_prefixes())


@cache
def spelled_names() -> tuple[str, ...]:
    """All that a misspelt name may have meant."""
    return tuple(name for name in known_keys().values() if not name.endswith("."))


@cache
def _prefixes() -> tuple[str, ...]:
    return tuple(name for name in known_keys() if name.endswith("."))


@cache
def newest_names() -> Mapping[str, str]:
    """Every name that Apache Hudi knows -> the newest name of the same option, both in lower case."""
    return MappingProxyType({name.lower(): line[0].lower() for line in _hudi_names() for name in line})


def _hudi_names() -> list[list[str]]:
    """The newest name of each option, and the older ones behind it."""
    lines = resources.files("hoodie.options").joinpath("hudi_keys.tsv").read_text(encoding="utf-8").splitlines()
    return [[name for cell in line.split("\t") for name in cell.split(",")] for line in lines[1:]]


@cache
def remembered_names() -> frozenset[str]:
    """Names in lower case of the options that a table remembers once it is there."""
    return frozenset(name.lower() for key in GROUPS["Table"] for name in key.names)


def is_secret(name: str) -> bool:
    """Whether an option's value may be a secret: any name with such a word that is none of our own options."""
    own = {known for group in GROUPS.values() for key in group for known in key.names}
    return name.lower() not in own and any(word in name.lower() for word in _SECRET_WORDS)


def redact(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the values of possible secrets replaced, for messages and logs."""
    return {name: "********" if is_secret(name) else value for name, value in options.items()}
