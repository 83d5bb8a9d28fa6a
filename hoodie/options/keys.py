"""Options that are not yet fields of the values that have them (`option.py`)."""

from __future__ import annotations

from typing import TypeVar

from hoodie.model.enums import (
    ChangeFormat,
    MergeMode,
    QueryType,
    TableType,
    TableVersion,
    WriteOperation,
)
from hoodie.options import keygen, merging
from hoodie.options.merging import STRATEGIES
from hoodie.options.option import Key
from hoodie.options.values import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    DuplicatePolicy,
    IndexType,
    KeyGeneratorType,
    Kind,
    LogBlockFormat,
    MarkersType,
    MorInserts,
    OverwriteMode,
    SortMode,
    boolean,
    choice,
    fields,
    fraction,
    merger,
    only,
    optional,
    paths,
    payload_class,
    table_version,
    text,
    whole,
)

T_co = TypeVar("T_co", covariant=True)


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

SERVICES_ENABLED = Key(
    "hoodie.table.services.enabled",
    boolean(),
    True,
    "Services after a write, and beside it. false: the writer does none, whatever other options say; a services job does them.",
)
METADATA_ENABLE: Key[bool | None] = Key(
    "hoodie.metadata.enable",
    boolean(),
    None,
    "The metadata table is neither read nor written; true is a warning at each write. One that Apache Hudi made is dropped by the "
    "next write.",
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

MARKERS_TYPE: Key[MarkersType | None] = Key(
    "hoodie.write.markers.type",
    choice({kind.value: kind for kind in MarkersType}),
    None,
    "Mark each file that a commit is about to name by a file, or all by lines of one, as Apache Hudi's timeline server does. Ours "
    "need no server for that. Unset: by lines where a commit names more than 100 files. Apache Hudi: TIMELINE_SERVER_BASED.",
)

# -- registration in a Hive metastore ----------------------------------------------------------------------------------
