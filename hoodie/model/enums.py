"""The closed vocabularies of the format, spelled as Apache Hudi stores them."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class TableType(StrEnum):
    """How updates are stored: in new versions of the base files, or in log files beside them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class TableVersion(IntEnum):
    """The versions of the table format that are known: 6, 8 and 9 are written, and the ones before are read."""

    V3 = 3
    V4 = 4
    V5 = 5
    V6 = 6
    V8 = 8
    V9 = 9


class Action(StrEnum):
    """What an instant does; the value is the word in its file name."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    REPLACECOMMIT = "replacecommit"
    CLUSTERING = "clustering"
    """While it is pending; a completed one is a `replacecommit`. In timeline layout 1 its files say `replacecommit` from the start,
    and it is told from an overwrite by its plan."""
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"


class State(StrEnum):
    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


class WriteOperation(StrEnum):
    """What a commit did; `operationType` of its metadata."""

    UPSERT = "UPSERT"
    INSERT = "INSERT"
    BULK_INSERT = "BULK_INSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    BOOTSTRAP = "BOOTSTRAP"
    """Files elsewhere become rows of a table."""
    CLUSTER = "CLUSTER"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    """Columns change, and no row."""
    UNKNOWN = "UNKNOWN"


MOVES_ROWS = (WriteOperation.CLUSTER, WriteOperation.COMPACT, WriteOperation.LOG_COMPACT)
"""What they write was written before; their stats count it as inserted or updated."""


class CleanPolicy(StrEnum):
    """What a clean keeps of the older versions of files; the words are Apache Hudi's."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class ExpiryStrategy(StrEnum):
    """From when the days of a partition are counted."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    """Its last change."""
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


class RowOrder(StrEnum):
    """How a clustering orders rows by columns: one column after the other, or along a curve that serves each of them."""

    LINEAR = "linear"
    ZORDER = "z-order"
    HILBERT = "hilbert"


class PartitionFilter(StrEnum):
    """Which partitions a clustering takes; the words are Apache Hudi's."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"


class UpdateStrategy(StrEnum):
    """What becomes of a write that changes a file group in a pending clustering."""

    REJECT = "reject"
    """It is refused."""
    ALLOW = "allow"
    """It stands, and the clustering fails."""


class RowCopies(StrEnum):
    """How rows that a write appends to logs get into a row copy."""

    NONE = "none"
    HELD = "held"
    """Tasks run in the writer's process and hand the rows over: the commit gets one copy."""
    STAGED = "staged"
    """Each task writes a copy of its own."""


class LakeFormat(StrEnum):
    """A table format in whose metadata a table can be published."""

    DELTA = "delta"
    ICEBERG = "iceberg"


class QueryType(StrEnum):
    """What a query reads: the newest rows, base files only, or what was committed in a range."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class ChangeFormat(StrEnum):
    """What an incremental query gives of a change."""

    LATEST_STATE = "latest_state"
    """The row as it is at the end of the range; deletes are not seen."""
    CDC = "cdc"
    """Each change, the row before and after it as JSON text: Apache Hudi's columns op, ts_ms, before, after."""
    BEFORE_AFTER = "before_after"
    """Each change, the row before and after it as structs."""


class ChangeLogMode(StrEnum):
    """What change logs hold of each change, in Apache Hudi's words."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    """What happened, and the record key."""
    DATA_BEFORE = "DATA_BEFORE"
    """The row before it as well."""
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"
    """The rows before and after it."""


class ChangePart(StrEnum):
    """Which changes of one commit in one file group a task tells."""

    WHOLE = "whole"
    DELETES = "deletes"
    REST = "rest"
    """Inserts and updates: another task has told the deletes before."""


class MergeMode(StrEnum):
    """Which of two records of one key counts: the later one, the one with the greater ordering value, or what a merger makes."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class Fill(StrEnum):
    """Which fields of the record that counts are taken from the other record of its key."""

    NULLS = "NULLS"
    """Those that are null."""
    UNAVAILABLE = "UNAVAILABLE"
    """Texts and bytes that are a marker: the source of the change did not send the value."""


class BlockKind(IntEnum):
    """Log block type ordinals."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Log block header and footer key ordinals. On table version 6 only 0-4 are written."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8
