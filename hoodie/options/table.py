"""Properties of a table: set by options, and stored in `hoodie.properties`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import hoodie.format
from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.layout import LAYOUTS, NEW, OLDEST_WRITTEN, READ_VERSIONS, V6, V8, Folder, Layout
from hoodie.model.buckets import BucketLayout
from hoodie.model.enums import ChangeLogMode, MergeMode, TableType, TableVersion
from hoodie.model.names import HOODIE, PROPERTIES, is_inside, join
from hoodie.model.plans import DeleteMarker, MergeRule
from hoodie.options.buckets import asked_layout, layout_properties, parse_layout
from hoodie.options.class_names import one_name
from hoodie.options.keygen import (
    KINDS,
    SLASH_DATES,
    SLASH_EXTRACTOR,
    KeySettings,
    PartitionKind,
    key_properties,
    parse_key_settings,
    timestamp_settings,
)
from hoodie.options.mergers import is_registered, not_registered
from hoodie.options.merging import (
    PAYLOAD,
    creation_mode,
    merge_rule,
    merging_properties,
    special_payload,
)
from hoodie.options.table_options import TableOptions
from hoodie.options.values import (
    GLOBAL_INDEXES,
    KEY_GENERATOR_CLASSES,
    KEY_GENERATOR_TYPES,
    OUTSIDE_INDEXES,
    SUPPORTED_KEY_GENERATORS,
    VIRTUAL_KEY_GENERATORS,
    IndexType,
    KeyGeneratorType,
    MorInserts,
    key_generator_class,
)

if TYPE_CHECKING:
    import hoodie.format.properties

T = TypeVar("T")

_NAME = "hoodie.table.name"
_DATABASE = "hoodie.database.name"
_TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
INITIAL_VERSION = "hoodie.table.initial.version"
LAYOUT = "hoodie.timeline.layout.version"
CHECKSUM = "hoodie.table.checksum"
_RECORD_KEY = "hoodie.table.recordkey.fields"
PARTITION = "hoodie.table.partition.fields"
ORDERING = "hoodie.table.ordering.fields"
PRECOMBINE = "hoodie.table.precombine.field"
KEYGEN_TYPE = "hoodie.table.keygenerator.type"
KEYGEN_CLASS = "hoodie.table.keygenerator.class"
_BASE_FORMAT = "hoodie.table.base.file.format"
_LOG_FORMAT = "hoodie.table.log.file.format"
_MANY_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
BOOTSTRAP_BASE = "hoodie.bootstrap.base.path"
_TIMEZONE = "hoodie.table.timeline.timezone"
META_FIELDS = "hoodie.populate.meta.fields"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
DROP_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
CDC = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
METADATA = "hoodie.table.metadata.partitions"
_METADATA_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
_MOR_INSERTS = "hoodie.python.mor.inserts"
INDEX = "hoodie.python.index.type"
INDEX_NAME = "hoodie.python.index.name"
"""Of an index that is kept outside of the table: the table in HBase, or the name of one of the user's own."""
INDEX_NAME_OPTIONS = {IndexType.HBASE: "hoodie.index.hbase.table", IndexType.CUSTOM: "hoodie.index.class"}

PROPERTY_OF: Mapping[str, str] = {
    "record_key_fields": _RECORD_KEY,
    "partition_fields": PARTITION,
    "table_type": _TYPE,
    "ordering_fields": ORDERING,
    "version": VERSION,
    "name": _NAME,
    "keygen": KEYGEN_TYPE,
    "key_settings": KINDS,
    "hive_style": HIVE_STYLE,
    "url_encode": URL_ENCODE,
    "rule": PAYLOAD,
    "populate_meta_fields": META_FIELDS,
    "drops_partition_columns": DROP_COLUMNS,
    "mor_inserts": _MOR_INSERTS,
    "change_logs": CDC,
    "global_index": INDEX,
    "timezone": _TIMEZONE,
    "timeline_folder": V8.timeline.property,
    "history_folder": V6.history.property,
}
"""What of a table's configuration rules how it is written -> the property that says it, or says most of it."""

_NUMBER_DIGITS = 10


@dataclass(frozen=True)
class TableConfig:
    """`hoodie.properties`, parsed."""

    uri: str
    name: str
    database_name: str
    """Empty when there is none."""
    table_type: TableType
    version: TableVersion
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    """Column names only, also where a custom key generator's are stored as `field:TYPE`."""
    ordering_fields: tuple[str, ...]
    keygen: KeyGeneratorType
    hive_style: bool
    url_encode: bool
    rule: MergeRule
    """How two records of one key become one."""
    timezone: str
    """Of instant times: `UTC`, or `LOCAL` for the zone of whoever wrote them."""
    archive_folder: str
    timeline_folder: str
    """Of the active timeline, relative to the table."""
    history_folder: str
    """Of the archived timeline, relative to the table."""
    base_file_format: str
    populate_meta_fields: bool
    """Rows store the five `_hoodie_` columns; if not, keys are made of the rows' columns each time."""
    drops_partition_columns: bool
    """Files leave the partition columns out: the names of folders say them."""
    metadata_partitions: tuple[str, ...]
    """Partitions of the metadata table, those in the making included: readers of Apache Hudi list files through it."""
    mor_inserts: MorInserts
    buckets: BucketLayout | None
    """The bucket index, where our properties say it; Apache Hudi's do not. None: another index, or not known."""
    raw: Mapping[str, str] = field(repr=False)
    """Every property as it stands, unknown ones too. Not in the repr: some may be secrets."""
    key_settings: KeySettings = field(default_factory=KeySettings)
    """How keys and paths are made, as far as the properties say it."""
    global_index: IndexType | None = None
    """The index by which keys are unique in the whole table, where our properties say it; of Apache Hudi's only HBASE."""
    index_name: str = ""
    """Which one it is, of those that are kept outside of the table."""
    change_logs: ChangeLogMode | None = None
    """What writers log of changes beside the rows (change data capture); None: nothing."""

    @property
    def index_is_whole(self) -> bool:
        """An index outside of the table has every key: all writes since the table was made, or the index was, have put theirs."""
        return self.raw.get(INDEX, "") in OUTSIDE_INDEXES

    @property
    def bootstrap_base(self) -> str:
        """Where the files stand that the table was bootstrapped from; empty: it was not."""
        return self.raw.get(BOOTSTRAP_BASE, "")

    @property
    def layout(self) -> Layout:
        """What its version settles."""
        return LAYOUTS[self.version]

    @property
    def index(self) -> IndexType | None:
        """The index that the table remembers; None: each write says its own."""
        return self.global_index if self.buckets is None else IndexType.BUCKET

    @property
    def generates_keys(self) -> bool:
        """No columns make the record key: every row gets one of its own when it is written."""
        return not self.record_key_fields

    @property
    def merge_mode(self) -> MergeMode:
        return self.rule.mode

    @property
    def merger(self) -> str | None:
        """Name of the merger of the user's own that the table has."""
        return self.rule.merger.name if self.rule.merger else None

    @property
    def delete_marker(self) -> DeleteMarker | None:
        return self.rule.delete_marker

    @property
    def payload(self) -> str:
        """The payload class where it says more than the merge mode; empty otherwise."""
        name = self.raw.get(PAYLOAD, "").strip()
        return special_payload(name) if name and self.layout.states_payload and self.rule.merger is None else ""


def infer_key_generator(record_key_fields: tuple[str, ...], partition_fields: tuple[str, ...]) -> KeyGeneratorType:
    """The key generator of a table that names none, as Apache Hudi chooses it."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if ":" in partition_fields[0]:
        return KeyGeneratorType.CUSTOM
    if len(record_key_fields) <= 1 and len(partition_fields) == 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def table_properties(options: TableOptions) -> dict[str, str]:
    """`hoodie.properties` of a new table.

    In version 6 both names of the ordering fields are written: Hudi up to 1.0 knows the older one only; and the key generator by
    type and by class, because readers of the 0.x age look for the class (integration/test_daft_reads.py). The extractor class is for
    Hive sync only.

    Raises:
        OptionError: name or record key are not said, or options contradict each other.
    """
    layout = NEW if options.version is None else LAYOUTS[options.version]
    if not options.name:
        raise OptionError("a new table needs a name: set hoodie.table.name")
    keys, ordering = options.record_key_fields or (), options.ordering_fields or ()
    partition, settings = options.partition_columns, options.key_settings
    keygen = options.keygen or infer_key_generator(keys, options.partition_fields or ())
    _check_key_generator(keygen, keys, partition, settings, table=options.name)
    _check_unstored(options, keygen, keys)
    database = options.database_name or ""
    if options.merger and not is_registered(options.merger):
        raise OptionError(not_registered(options.merger))
    if options.index in OUTSIDE_INDEXES and not options.index_name:
        raise OptionError(f"hoodie.index.type={options.index} needs the option {INDEX_NAME_OPTIONS[options.index]}")
    mode = creation_mode(
        options.merge_mode, ordering, payload=options.payload, merger=options.merger, table=options.name
    )
    buckets = None
    if options.index is IndexType.BUCKET:
        buckets = asked_layout(
            options.bucket_count,
            options.bucket_fields,
            options.bucket_engine,
            options.bucket_rules,
            record_key=keys,
            table_type=options.table_type or TableType.COPY_ON_WRITE,
            table=options.name,
        )
    base_file_inserts = options.table_type is TableType.MERGE_ON_READ and buckets is None
    properties = {
        _NAME: options.name,
        _TYPE: options.table_type or TableType.COPY_ON_WRITE,
        VERSION: str(int(layout.version)),
        LAYOUT: str(layout.number),
        CHECKSUM: str(hoodie.format.properties.table_checksum(options.name, database)),
        _DATABASE: database,
        _RECORD_KEY: ",".join(keys),
        PARTITION: partition_text(partition, settings, layout),
        ORDERING: ",".join(ordering),
        PRECOMBINE: ",".join(ordering) if layout is V6 else "",
        INITIAL_VERSION: "" if layout is V6 else str(int(layout.version)),
        KEYGEN_TYPE: keygen,
        KEYGEN_CLASS: key_generator_class(keygen) if layout is V6 else "",
        **merging_properties(
            mode, payload=options.payload, merger=options.merger, marker=options.delete_marker, layout=layout
        ),
        _BASE_FORMAT: "PARQUET",
        "hoodie.table.format": "native",
        V6.history.property: "history",
        V8.timeline.property: V8.timeline.default,
        V8.history.property: V8.history.default,
        _TIMEZONE: "UTC",
        META_FIELDS: flag_text(options.populate_meta_fields is not False),
        HIVE_STYLE: flag_text(options.hive_style),
        URL_ENCODE: flag_text(options.url_encode),
        DROP_COLUMNS: flag_text(options.drops_columns_here),
        "hoodie.partition.metafile.use.base.format": "" if options.metafiles_in_base_format else "false",
        "hoodie.table.partition_extractor_class": f"org.apache.hudi.hive.{_extractor(partition, options)}",
        CDC: flag_text(options.change_logs),
        CDC_MODE: (options.change_log_mode or ChangeLogMode.DATA_BEFORE_AFTER) if options.change_logs else "",
        _MOR_INSERTS: MorInserts.BASE_FILE if base_file_inserts else "",
        **layout_properties(buckets),
        INDEX: options.index if options.index in GLOBAL_INDEXES else "",
        INDEX_NAME: options.index_name or "" if options.index in OUTSIDE_INDEXES else "",
        **key_properties(settings),
    }
    return {key: str(value) for key, value in properties.items() if value}


def partition_text(partition: Sequence[str], settings: KeySettings, layout: Layout) -> str:
    """The partition columns as the properties state them: with their kinds, if a custom key generator has them, from version 8 on."""
    if layout is V6 or not settings.partition_kinds:
        return ",".join(partition)
    return ",".join(f"{name}:{kind}" for name, kind in zip(partition, settings.partition_kinds, strict=True))


def flag_text(flag: bool | None) -> str:
    return "true" if flag else "false"


def _extractor(partition: tuple[str, ...], options: TableOptions) -> str:
    if not partition:
        return "NonPartitionedExtractor"
    if len(partition) > 1:
        return "MultiPartKeysValueExtractor"
    if options.slash_dates and not options.hive_style:
        return SLASH_EXTRACTOR.rpartition(".")[2]
    return "HiveStylePartitionValueExtractor" if options.hive_style else "SinglePartPartitionValueExtractor"


def _check_key_generator(
    keygen: KeyGeneratorType, keys: tuple[str, ...], partition: tuple[str, ...], settings: KeySettings, *, table: str
) -> None:
    if keygen not in SUPPORTED_KEY_GENERATORS:
        raise OptionError(
            f"key generator {keygen} is not supported by this release, which has {', '.join(SUPPORTED_KEY_GENERATORS)}"
        )
    if keygen in (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP) and (len(keys) > 1 or len(partition) > 1):
        raise OptionError(
            f"key generator {keygen} takes one record key and one partition column, but there are "
            f"{names_of(keys)} and {names_of(partition)}: use {'COMPLEX, or say none' if keygen == 'SIMPLE' else 'CUSTOM'}"
        )
    if keygen is KeyGeneratorType.TIMESTAMP and not partition:
        raise OptionError(
            "key generator TIMESTAMP needs a partition column: set hoodie.datasource.write.partitionpath.field"
        )
    if (keygen is KeyGeneratorType.CUSTOM) != bool(settings.partition_kinds) and partition:
        raise OptionError(
            f"key generator {keygen} and partition columns {names_of(partition)}: kinds as in column:SIMPLE,other:TIMESTAMP go with "
            "CUSTOM, and it needs them"
        )
    if keygen is KeyGeneratorType.TIMESTAMP or PartitionKind.TIMESTAMP in settings.partition_kinds:
        timestamp_settings(settings.timebased, table=table)
    if settings.slash_dates and (
        len(partition) != 1 or keygen not in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX)
    ):
        raise OptionError(
            f"{SLASH_DATES} takes a single partition column and key generator SIMPLE or COMPLEX, but there are {names_of(partition)} "
            f"and {keygen}: drop it"
        )
    if keygen is KeyGeneratorType.NON_PARTITION and partition:
        raise OptionError(
            f"key generator NON_PARTITION takes no partition column, but there is {names_of(partition)}: "
            "drop one of the two options"
        )


def _check_unstored(options: TableOptions, keygen: KeyGeneratorType, keys: tuple[str, ...]) -> None:
    if options.populate_meta_fields is False:
        reason = no_virtual_keys(keygen, keys)
        if reason:
            raise OptionError(f"{META_FIELDS}=false: {reason}")
    if options.drops_columns_here:
        reason = no_dropped_columns(keygen, options.partition_columns, options.ordering_fields or ())
        if reason:
            raise OptionError(f"{DROP_COLUMNS}=true: {reason}")


def no_virtual_keys(keygen: KeyGeneratorType, keys: tuple[str, ...]) -> str | None:
    """Why a table cannot do without its `_hoodie_` columns; the reasons are Apache Hudi's."""
    if not keys:
        return "keys that are generated stand nowhere but in the _hoodie_ columns; name record key columns"
    if keygen not in VIRTUAL_KEY_GENERATORS:
        return f"only key generators {', '.join(VIRTUAL_KEY_GENERATORS)} go without the _hoodie_ columns, not {keygen}"
    return None


def no_dropped_columns(keygen: KeyGeneratorType, partition: tuple[str, ...], ordering: tuple[str, ...]) -> str | None:
    """Why a table cannot leave its partition columns out of its files."""
    if partition and keygen not in VIRTUAL_KEY_GENERATORS:
        return f"the folders of key generator {keygen} do not say the values of their columns"
    if nested := [name for name in partition if "." in name]:
        return f"{nested[0]} is a part of a column, which stays in the files"
    if both := [name for name in ordering if name in partition]:
        return f"ordering column {both[0]} is a partition column, and rows are ordered by what files hold"
    return None


def parse_table_config(properties: Mapping[str, str], *, uri: str) -> TableConfig:
    """The configuration of a table from its `hoodie.properties`; `uri` is the table's.

    Raises:
        UnsupportedTableError: a version, layout, file format or feature that this release does not read.
        CorruptFileError: a property is missing or malformed, or the checksum is wrong.
    """
    read = _Properties({key: value.strip() for key, value in properties.items()}, uri)
    layout = read.layout()
    name, database = read.required(_NAME), read.get(_DATABASE)
    checksum, right = read.get(CHECKSUM), str(hoodie.format.properties.table_checksum(name, database))
    if checksum and checksum != right:
        raise read.corrupt(
            f"{CHECKSUM}={checksum}, but name and database {database or 'none'!r} give {right}: was it edited?"
        )
    read.required(_TYPE)  # a merge-on-read table whose file lost it would be read without its logs
    read.refuse_unreadable()
    keys, typed = read.fields(_RECORD_KEY), read.fields(PARTITION)
    partition = tuple(each.partition(":")[0] for each in typed)
    ordering = read.fields(ORDERING) or read.fields(PRECOMBINE)
    timeline_folder = read.folder(HOODIE, layout.timeline)
    return TableConfig(
        uri=uri,
        name=name,
        database_name=database,
        table_type=read.choice(_TYPE, TableType, TableType.COPY_ON_WRITE),
        version=layout.version,
        record_key_fields=keys,
        partition_fields=partition,
        ordering_fields=ordering,
        keygen=_key_generator(read) or infer_key_generator(keys, typed),
        hive_style=read.flag(HIVE_STYLE, default=False),
        url_encode=read.flag(URL_ENCODE, default=False),
        rule=read.merge_rule(layout, ordering),
        timezone=(read.get(_TIMEZONE) or "LOCAL").upper(),
        archive_folder=read.get(V6.history.property) or V6.history.default,
        timeline_folder=timeline_folder,
        history_folder=read.folder(timeline_folder, layout.history),
        base_file_format="PARQUET",
        populate_meta_fields=read.flag(META_FIELDS, default=True),
        drops_partition_columns=read.flag(DROP_COLUMNS, default=False),
        metadata_partitions=tuple(dict.fromkeys(read.fields(METADATA) + read.fields(_METADATA_INFLIGHT))),
        mor_inserts=read.choice(_MOR_INSERTS, MorInserts, MorInserts.BASE_FILE),
        buckets=read.buckets(keys),
        raw=dict(properties),
        key_settings=read.key_settings(typed),
        global_index=read.choice(INDEX, IndexType, None) or _of_hudi(read),
        index_name=read.get(INDEX_NAME),
        change_logs=read.change_logs(),
    )


def _of_hudi(read: _Properties) -> IndexType | None:
    """The index of the whole table that a job of Apache Hudi 0.x has left in the properties."""
    return IndexType.HBASE if read.get("hoodie.index.type").upper() == IndexType.HBASE else None


@dataclass(frozen=True)
class _Properties:
    """Typed looks into the text of `hoodie.properties`, with errors that name the file."""

    values: Mapping[str, str]
    uri: str

    def corrupt(self, what: str) -> CorruptFileError:
        return CorruptFileError(f"{self.uri}/{PROPERTIES}: {what}")

    def unsupported(self, what: str) -> UnsupportedTableError:
        return UnsupportedTableError(f"table at {self.uri}: {what}")

    def get(self, key: str) -> str:
        return self.values.get(key, "")

    def required(self, key: str) -> str:
        if not self.get(key):
            raise self.corrupt(f"there is no {key}; is this the properties file of a table?")
        return self.get(key)

    def fields(self, key: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.get(key).split(",") if name.strip())

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.get(key).lower() or flag_text(default)
        if value not in {"true", "false"}:
            raise self.corrupt(f"{key}={self.get(key)!r}, expected true or false")
        return value == "true"

    def folder(self, above: str, folder: Folder) -> str:
        """A folder below another one; a path that leads elsewhere is damage."""
        path = join(above, self.get(folder.property) or folder.default)
        if not is_inside(path):
            raise self.corrupt(f"{folder.property}={self.get(folder.property)!r} is not a folder inside the table")
        return path

    def choice(self, key: str, make: Callable[[str], T], default: T) -> T:
        if not self.get(key):
            return default
        try:
            return make(self.get(key))
        except ValueError:
            raise self.corrupt(f"{key}={self.get(key)!r} is not a value of this property") from None

    def change_logs(self) -> ChangeLogMode | None:
        mode = self.choice(CDC_MODE, lambda text: ChangeLogMode(text.upper()), ChangeLogMode.DATA_BEFORE_AFTER)
        return mode if self.flag(CDC, default=False) else None

    def key_settings(self, partition_fields: tuple[str, ...]) -> KeySettings:
        try:
            return parse_key_settings(self.values, partition_fields)
        except ValueError as error:
            raise self.corrupt(str(error)) from None

    def buckets(self, record_key: tuple[str, ...]) -> BucketLayout | None:
        try:
            return parse_layout(self.values, record_key)
        except ValueError as error:
            raise self.corrupt(str(error)) from None

    def merge_rule(self, layout: Layout, ordering: tuple[str, ...]) -> MergeRule:
        try:
            return merge_rule(self.values, layout=layout, ordering=ordering)
        except ValueError as error:
            raise self.corrupt(str(error)) from None

    def layout(self) -> Layout:
        text = self.get(VERSION)
        if text and not (text.isascii() and text.isdigit() and len(text) < _NUMBER_DIGITS):
            raise self.corrupt(f"{VERSION}={text[:80]!r} is not a number")
        if not text or int(text) not in set(TableVersion):
            is_older = int(text or 0) < min(LAYOUTS)
            upgrade = f": upgrade it to {int(OLDEST_WRITTEN.version)} with Apache Hudi before 1.0" if is_older else ""
            raise self.unsupported(f"its version is {text or 'not said'}, this release reads {READ_VERSIONS}{upgrade}")
        layout = LAYOUTS[TableVersion(int(text))]
        number = self.get(LAYOUT)
        if number and number != str(layout.number):
            raise self.unsupported(f"{LAYOUT} is {number}, version {layout.version} has {layout.number}")
        return layout

    def refuse_unreadable(self) -> None:
        if (self.get(_BASE_FORMAT) or "PARQUET").upper() != "PARQUET":
            raise self.unsupported(f"its base files are {self.get(_BASE_FORMAT)}, this release reads PARQUET only")
        if (self.get(_LOG_FORMAT) or "HOODIE_LOG").upper() != "HOODIE_LOG":
            raise self.unsupported(f"its log files are {self.get(_LOG_FORMAT)}, this release reads HOODIE_LOG only")
        if self.flag(_MANY_FORMATS, default=False):
            raise self.unsupported("it mixes base file formats, this release reads PARQUET only")


def _key_generator(read: _Properties) -> KeyGeneratorType | None:
    """From the type, or from the class name of older tables; None when the table names neither."""
    kind, java_class = read.get(KEYGEN_TYPE), read.get(KEYGEN_CLASS)
    if kind:
        return KEY_GENERATOR_TYPES.get(kind.upper(), KeyGeneratorType.OTHER)
    return KEY_GENERATOR_CLASSES.get(one_name(java_class), KeyGeneratorType.OTHER) if java_class else None


def names_of(columns: tuple[str, ...]) -> str:
    return repr(",".join(columns)) if columns else "none"
