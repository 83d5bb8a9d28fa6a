"""What a table is: asked for in options, and remembered in `hoodie.properties`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.model.enums import MergeMode, TableType, TableVersion
from hoodie.model.names import PROPERTIES
from hoodie.options.values import (
    COMMIT_TIME_PAYLOAD,
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_PAYLOAD,
    EVENT_TIME_STRATEGY,
    KEY_GENERATOR_CLASSES,
    KEY_GENERATOR_TYPES,
    PAYLOADS,
    STRATEGIES,
    SUPPORTED_KEY_GENERATORS,
    KeyGeneratorType,
    MorInserts,
)

T = TypeVar("T")

_NAME = "hoodie.table.name"
_DATABASE = "hoodie.database.name"
_TYPE = "hoodie.table.type"
_VERSION = "hoodie.table.version"
_LAYOUT = "hoodie.timeline.layout.version"
_CHECKSUM = "hoodie.table.checksum"
_RECORD_KEY = "hoodie.table.recordkey.fields"
_PARTITION = "hoodie.table.partition.fields"
_ORDERING = "hoodie.table.ordering.fields"
_PRECOMBINE = "hoodie.table.precombine.field"
_KEYGEN_TYPE = "hoodie.table.keygenerator.type"
_KEYGEN_CLASS = "hoodie.table.keygenerator.class"
_PAYLOAD = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_STRATEGY = "hoodie.record.merge.strategy.id"
_MERGE_MODE = "hoodie.record.merge.mode"
_PARTIAL_MODE = "hoodie.table.partial.update.mode"
_BASE_FORMAT = "hoodie.table.base.file.format"
_LOG_FORMAT = "hoodie.table.log.file.format"
_MANY_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
_BOOTSTRAP = "hoodie.bootstrap.base.path"
_ARCHIVE = "hoodie.archivelog.folder"
_TIMEZONE = "hoodie.table.timeline.timezone"
_META_FIELDS = "hoodie.populate.meta.fields"
_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
_SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
_DROP_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
_CDC = "hoodie.table.cdc.enabled"
_METADATA = "hoodie.table.metadata.partitions"
_METADATA_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
_MOR_INSERTS = "hoodie.python.mor.inserts"

_LAYOUTS = {TableVersion.V6: 1, TableVersion.V8: 2, TableVersion.V9: 2}
_SHOWN = 4
"""Contradictions that one message lists: it stays within eight lines."""


@dataclass(frozen=True)
class TableOptions:
    """What is asked of a table. None: not said. An empty tuple: said to be none."""

    name: str | None = None
    database_name: str | None = None
    table_type: TableType | None = None
    version: TableVersion | None = None
    record_key_fields: tuple[str, ...] | None = None
    partition_fields: tuple[str, ...] | None = None
    ordering_fields: tuple[str, ...] | None = None
    keygen: KeyGeneratorType | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    merge_mode: MergeMode | None = None
    mor_inserts: MorInserts | None = None

    def over(self, other: TableOptions) -> TableOptions:
        """These options, and those of `other` where nothing is said here."""
        chosen = {
            each.name: getattr(other if getattr(self, each.name) is None else self, each.name) for each in fields(self)
        }
        return TableOptions(**chosen)


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
    merge_mode: MergeMode
    timezone: str
    """Of instant times: `UTC`, or `LOCAL` for the zone of whoever wrote them."""
    archive_folder: str
    base_file_format: str
    populate_meta_fields: bool
    metadata_partitions: tuple[str, ...]
    """Partitions of the metadata table, those in the making included: readers of Apache Hudi list files through it."""
    mor_inserts: MorInserts
    raw: Mapping[str, str] = field(repr=False)
    """Every property as it stands, unknown ones too. Not in the repr: some may be secrets."""


def infer_key_generator(record_key_fields: tuple[str, ...], partition_fields: tuple[str, ...]) -> KeyGeneratorType:
    """The key generator of a table that names none, as Apache Hudi chooses it."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if len(record_key_fields) == len(partition_fields) == 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def table_checksum(name: str, database_name: str = "") -> int:
    """`hoodie.table.checksum`: unsigned CRC-32 of `<database>.<table>`; it covers no other property."""
    return zlib.crc32(f"{database_name}.{name}".encode())


def table_properties(options: TableOptions) -> dict[str, str]:
    """`hoodie.properties` of a new table of version 6.

    Both names of the ordering fields are written: Hudi up to 1.0 knows the older one only. Version 6 has no merge mode;
    payload class and strategy id say it. The extractor class is for Hive sync only.

    Raises:
        OptionError: name or record key are not said, or options contradict each other.
        UnsupportedTableError: another version is asked for.
    """
    if options.version not in {None, TableVersion.V6}:
        raise UnsupportedTableError(f"new tables are written in version 6 only, not {options.version}")
    if not options.name:
        raise OptionError("a new table needs a name: set hoodie.table.name")
    keys, partition, ordering = (
        options.record_key_fields or (),
        options.partition_fields or (),
        options.ordering_fields or (),
    )
    if not keys:
        raise OptionError(
            f"table {options.name!r} needs the columns of its record key: set hoodie.datasource.write.recordkey.field"
        )
    if len(ordering) > 1:
        raise OptionError(
            f"table {options.name!r}: several ordering columns ({_names(ordering)}) are not supported by this release; name one"
        )
    keygen = options.keygen or infer_key_generator(keys, partition)
    _check_key_generator(keygen, keys, partition)
    database = options.database_name or ""
    event_time = _creation_mode(options.merge_mode, ordering) is MergeMode.EVENT_TIME_ORDERING
    properties = {
        _NAME: options.name,
        _TYPE: options.table_type or TableType.COPY_ON_WRITE,
        _VERSION: str(int(TableVersion.V6)),
        _LAYOUT: str(_LAYOUTS[TableVersion.V6]),
        _CHECKSUM: str(table_checksum(options.name, database)),
        _DATABASE: database,
        _RECORD_KEY: ",".join(keys),
        _PARTITION: ",".join(partition),
        _ORDERING: ",".join(ordering),
        _PRECOMBINE: ",".join(ordering),
        _KEYGEN_TYPE: keygen,
        _PAYLOAD: EVENT_TIME_PAYLOAD if event_time else COMMIT_TIME_PAYLOAD,
        _STRATEGY: EVENT_TIME_STRATEGY if event_time else COMMIT_TIME_STRATEGY,
        _BASE_FORMAT: "PARQUET",
        "hoodie.table.format": "native",
        _ARCHIVE: "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        _TIMEZONE: "UTC",
        _META_FIELDS: "true",
        _HIVE_STYLE: _text(options.hive_style),
        _URL_ENCODE: _text(options.url_encode),
        _DROP_COLUMNS: "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.partition_extractor_class": f"org.apache.hudi.hive.{_extractor(partition, options.hive_style)}",
        _CDC: "false",
        _MOR_INSERTS: MorInserts.BASE_FILE if options.table_type is TableType.MERGE_ON_READ else "",
    }
    return {key: str(value) for key, value in properties.items() if value}


def _text(flag: bool | None) -> str:
    return "true" if flag else "false"


def _extractor(partition: tuple[str, ...], hive_style: bool | None) -> str:
    if not partition:
        return "NonPartitionedExtractor"
    if len(partition) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if hive_style else "SinglePartPartitionValueExtractor"


def _check_key_generator(keygen: KeyGeneratorType, keys: tuple[str, ...], partition: tuple[str, ...]) -> None:
    if keygen not in SUPPORTED_KEY_GENERATORS:
        raise OptionError(
            f"key generator {keygen} is not supported by this release, which has {', '.join(SUPPORTED_KEY_GENERATORS)}"
        )
    if keygen is KeyGeneratorType.SIMPLE and (len(keys) > 1 or len(partition) > 1):
        raise OptionError(
            "key generator SIMPLE takes one record key and one partition column, but there are "
            f"{_names(keys)} and {_names(partition)}: use COMPLEX, or say none"
        )
    if keygen is KeyGeneratorType.NON_PARTITION and partition:
        raise OptionError(
            f"key generator NON_PARTITION takes no partition column, but there is {_names(partition)}: "
            "drop one of the two options"
        )


def _creation_mode(asked: MergeMode | None, ordering: tuple[str, ...]) -> MergeMode:
    if asked is None:
        return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING
    if asked is MergeMode.CUSTOM:
        raise OptionError("merge mode CUSTOM is not supported by this release: drop the option")
    if asked is MergeMode.EVENT_TIME_ORDERING and not ordering:
        raise OptionError(
            "merge mode EVENT_TIME_ORDERING needs an ordering column: set hoodie.datasource.write.precombine.field, or "
            "drop the merge mode (or payload class) so that the later commit wins"
        )
    return asked


def parse_table_config(properties: Mapping[str, str], *, uri: str) -> TableConfig:
    """The configuration of a table from its `hoodie.properties`; `uri` is the table's.

    Raises:
        UnsupportedTableError: a version, layout, file format or feature that this release does not read.
        CorruptFileError: a property is missing or malformed, or the checksum is wrong.
    """
    read = _Properties({key: value.strip() for key, value in properties.items()}, uri)
    version = read.version()
    name, database = read.required(_NAME), read.get(_DATABASE)
    checksum = read.get(_CHECKSUM)
    if checksum and checksum != str(table_checksum(name, database)):
        raise read.corrupt(
            f"{_CHECKSUM}={checksum}, but name and database {database or 'none'!r} give "
            f"{table_checksum(name, database)}: was it edited?"
        )
    read.refuse_unreadable()
    keys, partition = read.fields(_RECORD_KEY), tuple(each.partition(":")[0] for each in read.fields(_PARTITION))
    ordering = read.fields(_ORDERING) or read.fields(_PRECOMBINE)
    return TableConfig(
        uri=uri,
        name=name,
        database_name=database,
        table_type=read.choice(_TYPE, TableType, TableType.COPY_ON_WRITE),
        version=version,
        record_key_fields=keys,
        partition_fields=partition,
        ordering_fields=ordering,
        keygen=_key_generator(read) or infer_key_generator(keys, partition),
        hive_style=read.flag(_HIVE_STYLE, default=False),
        url_encode=read.flag(_URL_ENCODE, default=False),
        merge_mode=_merge_mode(read, version=version, ordered=bool(ordering)),
        timezone=(read.get(_TIMEZONE) or "LOCAL").upper(),
        archive_folder=read.get(_ARCHIVE) or "archived",
        base_file_format="PARQUET",
        populate_meta_fields=read.flag(_META_FIELDS, default=True),
        metadata_partitions=tuple(dict.fromkeys(read.fields(_METADATA) + read.fields(_METADATA_INFLIGHT))),
        mor_inserts=read.choice(_MOR_INSERTS, MorInserts, MorInserts.BASE_FILE),
        raw=dict(properties),
    )


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
        value = self.get(key).lower() or _text(default)
        if value not in {"true", "false"}:
            raise self.corrupt(f"{key}={self.get(key)!r}, expected true or false")
        return value == "true"

    def choice(self, key: str, make: Callable[[str], T], default: T) -> T:
        if not self.get(key):
            return default
        try:
            return make(self.get(key))
        except ValueError:
            raise self.corrupt(f"{key}={self.get(key)!r} is none of its values") from None

    def version(self) -> TableVersion:
        text = self.get(_VERSION)
        if text and not (text.isascii() and text.isdigit()):
            raise self.corrupt(f"{_VERSION}={text!r} is no number")
        if not text or int(text) not in set(TableVersion):
            raise self.unsupported(
                f"its version is {text or 'not said'}, this release reads 6, 8 and 9: upgrade it to 6 with Apache Hudi"
                if int(text or 0) < TableVersion.V6
                else f"its version is {text}, this release reads 6, 8 and 9"
            )
        version = TableVersion(int(text))
        layout = self.get(_LAYOUT)
        if layout and layout != str(_LAYOUTS[version]):
            raise self.unsupported(f"{_LAYOUT} is {layout}, version {version} has {_LAYOUTS[version]}")
        return version

    def refuse_unreadable(self) -> None:
        if (self.get(_BASE_FORMAT) or "PARQUET").upper() != "PARQUET":
            raise self.unsupported(f"its base files are {self.get(_BASE_FORMAT)}, this release reads PARQUET only")
        if (self.get(_LOG_FORMAT) or "HOODIE_LOG").upper() != "HOODIE_LOG":
            raise self.unsupported(f"its log files are {self.get(_LOG_FORMAT)}, this release reads HOODIE_LOG only")
        if self.flag(_MANY_FORMATS, default=False):
            raise self.unsupported("it mixes base file formats, this release reads PARQUET only")
        if self.get(_BOOTSTRAP):
            raise self.unsupported(
                "it is a bootstrap table: its data stands elsewhere, where this release does not read"
            )
        if self.flag(_DROP_COLUMNS, default=False):
            raise self.unsupported(f"its files lack the partition columns ({_DROP_COLUMNS}=true)")


def _key_generator(read: _Properties) -> KeyGeneratorType | None:
    """From the type, or from the class name of older tables; None when the table names neither."""
    kind, java_class = read.get(_KEYGEN_TYPE), read.get(_KEYGEN_CLASS)
    if kind:
        return KEY_GENERATOR_TYPES.get(kind.upper(), KeyGeneratorType.OTHER)
    return KEY_GENERATOR_CLASSES.get(java_class, KeyGeneratorType.OTHER) if java_class else None


def _merge_mode(read: _Properties, *, version: TableVersion, ordered: bool) -> MergeMode:
    """Version 6: payload class, strategy id, ordering field. Later ones: the stored mode, strategy id, payload class.

    What the two built-in modes alone do not say (an own payload, partial updates) is CUSTOM.
    """
    payload = PAYLOADS.get(read.get(_PAYLOAD), MergeMode.CUSTOM) if read.get(_PAYLOAD) else None
    strategy = STRATEGIES.get(read.get(_STRATEGY), MergeMode.CUSTOM) if read.get(_STRATEGY) else None
    by_ordering = MergeMode.EVENT_TIME_ORDERING if ordered else MergeMode.COMMIT_TIME_ORDERING
    if version is TableVersion.V6:
        return payload or strategy or by_ordering
    legacy = read.get(_LEGACY_PAYLOAD)
    if read.get(_PARTIAL_MODE).upper() not in {"", "NONE"} or (legacy and legacy not in PAYLOADS):
        return MergeMode.CUSTOM
    return read.choice(_MERGE_MODE, MergeMode, strategy or payload or by_ordering)


def check_writable(config: TableConfig) -> None:
    """Refuse tables that can be read but not written.

    Raises:
        UnsupportedTableError: names the first reason.
    """
    flag = _Properties(config.raw, config.uri).flag
    reason = None
    if config.version is not TableVersion.V6:
        reason = f"its version is {int(config.version)}, this release writes 6 only"
    elif not config.populate_meta_fields:
        reason = f"it does not store the _hoodie_ columns ({_META_FIELDS}=false)"
    elif config.merge_mode is MergeMode.CUSTOM:
        merger = config.raw.get(_PAYLOAD) or config.raw.get(_STRATEGY)
        reason = f"its records are merged by {merger}, which this release does not have"
    elif config.keygen not in SUPPORTED_KEY_GENERATORS:
        named = config.raw.get(_KEYGEN_TYPE) or config.raw.get(_KEYGEN_CLASS)
        reason = f"its key generator is {named}, this release has {', '.join(SUPPORTED_KEY_GENERATORS)}"
    elif len(config.ordering_fields) > 1:
        reason = f"it has several ordering columns ({', '.join(config.ordering_fields)}), this release takes one"
    elif not config.record_key_fields:
        reason = "it has no record key columns"
    elif flag(_CDC, default=False):
        reason = f"it keeps change logs ({_CDC}=true), which this release does not write"
    elif flag(_SLASH_DATES, default=False):
        reason = f"its folders are parts of dates ({_SLASH_DATES}=true)"
    if reason:
        raise UnsupportedTableError(f"table at {config.uri} can be read, not written: {reason}")


def check_against(config: TableConfig, requested: TableOptions) -> None:
    """Refuse options that contradict the table; what is not said contradicts nothing.

    Raises:
        OptionError: lists each property with the table's value and the one asked for.
    """
    named_keygen = config.raw.get(_KEYGEN_TYPE) or config.raw.get(_KEYGEN_CLASS)
    pairs: list[tuple[str, object, object]] = [
        ("table name", config.name, requested.name),
        ("database", config.database_name, requested.database_name),
        ("table type", config.table_type, requested.table_type),
        ("table version", config.version, requested.version),
        ("record key", config.record_key_fields, requested.record_key_fields),
        ("partition column", config.partition_fields, requested.partition_fields),
        ("ordering column", config.ordering_fields, requested.ordering_fields),
        # A table that names no generator has an inferred one: no ground to contradict anybody.
        ("key generator", config.keygen, requested.keygen if named_keygen else None),
        ("hive-style partitioning", config.hive_style, requested.hive_style),
        ("url-encoding of partition values", config.url_encode, requested.url_encode),
        ("merge mode", config.merge_mode, requested.merge_mode),
    ]
    wrong = [
        f"  {what} is {_shown(stands)} in the table, {_shown(asked)} in your options"
        for what, stands, asked in pairs
        if asked is not None and asked != stands
    ]
    if wrong:
        more = [f"  and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise OptionError(
            "\n".join(
                [
                    f"options contradict table {config.name!r} at {config.uri}",
                    *wrong[:_SHOWN],
                    *more,
                    "  drop these options: the table remembers them",
                ]
            )
        )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return _names(value)
    if isinstance(value, bool):
        return _text(value)
    return str(int(value)) if isinstance(value, TableVersion) else repr(str(value))


def _names(columns: tuple[str, ...]) -> str:
    return repr(",".join(columns)) if columns else "none"
