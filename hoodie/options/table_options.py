"""Options of a table: it remembers them, so that later writes need none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import ClassVar

from hoodie.model.buckets import BucketEngine, BucketRules
from hoodie.model.enums import ChangeLogMode, MergeMode, TableType, TableVersion
from hoodie.model.plans import DeleteMarker
from hoodie.options import keygen, merging
from hoodie.options.keygen import SLASH_DATES, TIMESTAMPS_AS_TEXT, KeySettings, partition_columns
from hoodie.options.merging import STRATEGIES
from hoodie.options.option import Keys, combined, fixed, key, listed, remembered
from hoodie.options.values import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    IndexType,
    KeyGeneratorType,
    MorInserts,
    boolean,
    choice,
    fields,
    merger,
    one_of,
    optional,
    payload_class,
    table_version,
    text,
)

KEYGEN_TYPE = key(
    "hoodie.datasource.write.keygenerator.type", KEY_GENERATOR_TYPE, None, also=("hoodie.table.keygenerator.type",)
)
"""How keys and partition paths are made. Unset: NON_PARTITION without partition columns, CUSTOM where these have kinds, SIMPLE
with one key and one partition column, else COMPLEX."""
KEYGEN_CLASS = key(
    "hoodie.datasource.write.keygenerator.class", KEY_GENERATOR_CLASS, None, also=("hoodie.table.keygenerator.class",)
)
"""The same by the name of Apache Hudi's Java class."""
TIMEBASED = (
    key(
        keygen.TYPE,
        one_of(map(str, keygen.TimestampType)),
        None,
        "Content of a partition column of the key generator TIMESTAMP, or of that kind: numbers of a unit, or text.",
    ),
    key(
        keygen.UNIT,
        one_of(map(str, keygen.TimeUnit)),
        None,
        "With type SCALAR: the unit of the numbers. Unset: SECONDS. Days of a date column: DAYS.",
    ),
    key(
        keygen.INPUT_FORMAT,
        text("a date pattern or a list of them"),
        None,
        "With type DATE_STRING or MIXED: patterns of Joda-Time; the first that fits a text counts.",
    ),
    key(
        keygen.INPUT_DELIMITER,
        optional(text("a regular expression")),
        None,
        "Separator of the patterns in the list. Unset: a comma.",
    ),
    key(keygen.INPUT_ZONE, optional(text("a time zone")), None, "Time zone of texts that name none. Unset: UTC."),
    key(
        keygen.OUTPUT_FORMAT,
        text("a date pattern"),
        None,
        "The partition path as a pattern of Joda-Time: `yyyy/MM/dd` makes three folders.",
    ),
    key(
        keygen.OUTPUT_ZONE,
        optional(text("a time zone")),
        None,
        "Time zone of the path. Unset: that of the text, UTC for numbers.",
    ),
    key(keygen.ZONE, optional(text("a time zone")), None, "Both time zones at once; it overrides the other two."),
)
MERGE_MODE = key(
    "hoodie.write.record.merge.mode",
    choice({mode.value: mode for mode in MergeMode}),
    None,
    also=("hoodie.record.merge.mode",),
)
"""Whether the greater ordering value or the later commit wins. Unset: event time with ordering columns, else commit time."""
MERGE_STRATEGY = key(
    "hoodie.write.record.merge.strategy.id",
    choice(STRATEGIES),
    None,
    also=("hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy"),
)
"""The merge mode by the id of one of Apache Hudi's built-in strategies."""
PAYLOAD_CLASS = key(
    "hoodie.datasource.write.payload.class", payload_class(), None, also=("hoodie.compaction.payload.class",)
)
"""How records merge, by the name of one of Apache Hudi's payload classes; docs/MERGING.md says what each does. With the last one
an upsert is a delete."""
DELETE_FIELD = key(merging.DELETE_FIELD, text("a column"), None)
"""Column of a delete marker: a row is a delete if the column holds `hoodie.payload.delete.marker`, as with `_hoodie_is_deleted`."""
DELETE_MARKER = key(merging.DELETE_MARKER, text("a text"), None)
"""The marker, compared with the column's value as text."""
MOR_INSERTS = key("hoodie.python.mor.inserts", one_of(MorInserts, unsupported=("log",)), None)
"""Where new rows of a merge-on-read table go: `base_file`, so that every key is in the bloom filter of a base file. Apache
Hudi's writers would not find keys that are in logs only, and would insert them a second time."""


@dataclass(frozen=True)
class TableOptions:
    """What a table is made with, and remembers. None: not said. An empty tuple: said to be none."""

    name: str | None = combined(
        lambda name, of_write: of_write if name is None else name,
        key("hoodie.table.name", text("a name"), None),
        key(
            "hoodie.datasource.write.table.name", text("a name"), None, "The name where `hoodie.table.name` is not set."
        ),
    )
    """Name of the table. Unset: the last part of the path."""
    database_name: str | None = remembered(key("hoodie.database.name", text("a name"), None))
    """Database that the table belongs to. Unset: none."""
    table_type: TableType | None = remembered(
        key("hoodie.datasource.write.table.type", one_of(TableType), "COPY_ON_WRITE", also=("hoodie.table.type",))
    )
    """Rewrite base files at each change, or write logs beside them and merge when reading."""
    version: TableVersion | None = remembered(key("hoodie.write.table.version", table_version(), "6"))
    """Version of a new table (Apache Hudi's default: 9)."""
    record_key_fields: tuple[str, ...] | None = remembered(
        key("hoodie.datasource.write.recordkey.field", fields(), None, also=("hoodie.table.recordkey.fields",))
    )
    """Columns that identify a record, nested ones by dots. Unset: every row gets a key of its own, `instant_number_number`, and an
    upsert adds rows."""
    partition_fields: tuple[str, ...] | None = remembered(
        key(
            "hoodie.datasource.write.partitionpath.field",
            fields(typed=True),
            None,
            also=("hoodie.table.partition.fields",),
        )
    )
    """Columns whose values make the partition path. Unset or empty: not partitioned."""
    ordering_fields: tuple[str, ...] | None = remembered(
        key(
            "hoodie.datasource.write.precombine.field",
            fields(),
            None,
            also=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
        )
    )
    """Columns that say which of two records of one key is newer. Unset: the later commit wins."""
    keygen: KeyGeneratorType | None = listed(KEYGEN_TYPE, KEYGEN_CLASS)
    hive_style: bool | None = remembered(key("hoodie.datasource.write.hive_style_partitioning", boolean(), False))
    """Partition folders named `column=value`."""
    url_encode: bool | None = remembered(key("hoodie.datasource.write.partitionpath.urlencode", boolean(), False))
    """Percent-encode partition values, so that they may contain `/` and `:`."""
    populate_meta_fields: bool | None = remembered(key("hoodie.populate.meta.fields", boolean(), True))
    """Store the five `_hoodie_` columns. False: they are null, keys are computed from the rows' columns, and most
    incremental queries are refused. Needs record key columns and key generator SIMPLE, COMPLEX or NON_PARTITION."""
    drops_partition_columns: bool | None = remembered(
        key("hoodie.datasource.write.drop.partition.columns", boolean(), False)
    )
    """Leave partition columns out of the files: only the folder names hold their values. Copy-on-write tables only; on merge-on-read
    ones it is off, as Apache Hudi turns it off for upserts."""
    merge_mode: MergeMode | None = listed(MERGE_MODE, MERGE_STRATEGY)
    payload: str | None = listed(PAYLOAD_CLASS)
    """A payload class that says more than a merge mode does; empty: one that does not."""
    merger: str | None = remembered(key(merging.MERGER, merger(), None))
    """Merge by a Python function (`hoodie.register_merger`). Only hoodie can write such a table. Unset: by the merge mode."""
    delete_marker: DeleteMarker | None = listed(DELETE_FIELD, DELETE_MARKER)
    mor_inserts: MorInserts | None = remembered(MOR_INSERTS)
    change_logs: bool | None = remembered(key("hoodie.table.cdc.enabled", boolean(), False))
    """Write change logs, which Apache Hudi's change queries need; those of hoodie need none."""
    change_log_mode: ChangeLogMode | None = remembered(
        key("hoodie.table.cdc.supplemental.logging.mode", one_of(ChangeLogMode), "DATA_BEFORE_AFTER")
    )
    """What change logs hold: the record keys of changed rows, the rows before a change, or those before and after it. Readers find
    the rest in the data files."""
    index: IndexType | None = None
    bucket_engine: BucketEngine | None = None
    index_name: str | None = None
    """Which one it is, of indexes that are kept outside of the table."""
    bucket_count: int | None = None
    bucket_fields: tuple[str, ...] | None = None
    bucket_rules: BucketRules | None = None
    metafiles_in_base_format: bool | None = remembered(
        key("hoodie.partition.metafile.use.base.format", boolean(), False)
    )
    """The files that make folders partitions are text, which every reader takes. True: a new table does not say so, because Apache
    Hudi refuses a write whose option differs from the table's property."""
    timebased: Mapping[str, str] | None = listed(*TIMEBASED)
    """Options of the timestamp key generator by their newer names."""
    timestamps_as_text: bool | None = remembered(key(TIMESTAMPS_AS_TEXT, boolean(), None))
    """Timestamps in keys and paths as `2024-01-02 03:04:05.678` in UTC (true) or as microseconds since 1970 (false). Unset: as the
    table's files have it, microseconds in a new table."""
    slash_dates: bool | None = remembered(key(SLASH_DATES, boolean(), None))
    """A single partition column's path has `/` for every `-`: folders of years, months and days. Unset: as the table's files have
    it, false in a new table."""

    OTHERS: ClassVar[Keys] = (
        key(
            "hoodie.write.auto.upgrade",
            boolean(),
            False,
            "Accepted, without effect: a table is never upgraded.",
        ),
        fixed(
            "hoodie.table.base.file.format",
            "PARQUET",
            "other base files are neither read nor written",
            "Format of base files.",
            also=("hoodie.base.file.format",),
        ),
        fixed(
            "hoodie.keygen.datetime.parser.class",
            "org.apache.hudi.keygen.parser.HoodieDateTimeParser",
            "dates are read as that class reads them",
            "Java class that reads the dates of partition columns.",
        ),
    )

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names only; `partition_fields` may be `column:KIND`."""
        return partition_columns(self.partition_fields or ())[0]

    @property
    def key_settings(self) -> KeySettings:
        """What is said of the making of keys, beside the columns."""
        kinds = partition_columns(self.partition_fields or ())[1]
        return KeySettings(self.timebased or {}, kinds, self.timestamps_as_text, self.slash_dates)

    @property
    def drops_columns_here(self) -> bool:
        """Apache Hudi turns the option off when it upserts into a merge-on-read table, and later writes contradict its table."""
        return bool(self.drops_partition_columns) and self.table_type is not TableType.MERGE_ON_READ

    def over(self, other: TableOptions) -> TableOptions:
        """These options, and those of `other` where nothing is said here."""
        chosen = {
            each.name: getattr(other if getattr(self, each.name) is None else self, each.name)
            for each in fields_of(self)
        }
        return TableOptions(**chosen)
