"""A job of Apache Hudi's Streamer as one of `ingest`: its flags and properties -> the arguments that say the same."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hoodie.errors import OptionError
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.ingestion.csv_settings import CSV_PREFIX, parse_csv_settings
from hoodie.ingestion.registry import schema_at
from hoodie.ingestion.streamer_properties import PREFIX, read_text
from hoodie.options.parse import parse_write_options
from hoodie.write.schema_input import SchemaLike

log = logging.getLogger("hoodie")

RECORD_KEY = "hoodie.datasource.write.recordkey.field"
_ROOT = f"{PREFIX}source.dfs.root"
_SQL = f"{PREFIX}transformer.sql"
_JDBC = f"{PREFIX}jdbc."
_TABLE = f"{PREFIX}source.hoodieincr.path"
_TOPIC, _SERVERS = f"{PREFIX}source.kafka.topic", "bootstrap.servers"
_KAFKA = {
    f"{PREFIX}{name}"
    for name in (
        *("source.kafka.enable.failOnDataLoss", "source.kafka.append.offsets", "source.kafka.enable.commit.offset"),
        *("source.kafka.value.deserializer.schema", "kafka.source.maxEvents"),
    )
}
_CSV_HEADER, _CSV_SEPARATORS = f"{PREFIX}csv.header", (f"{PREFIX}csv.sep", f"{PREFIX}csv.delimiter")
_SCHEMA_FILES = f"{PREFIX}schemaprovider.target.schema.file", f"{PREFIX}schemaprovider.source.schema.file"
_SCHEMA_URLS = f"{PREFIX}schemaprovider.registry.targetUrl", f"{PREFIX}schemaprovider.registry.url"
_JDBC_KEYS = ("url", "user", "password", "password.file", "table.name", "incr.pull", "table.incr.column.name")
_READ = {
    _ROOT,
    _SQL,
    _TABLE,
    _TOPIC,
    _SERVERS,
    _CSV_HEADER,
    *_CSV_SEPARATORS,
    *_SCHEMA_FILES,
    *_SCHEMA_URLS,
    *(_JDBC + key for key in _JDBC_KEYS),
}
READ_PROPERTIES = frozenset(_READ | _KAFKA)
"""Those that the sources below, the transformation and the schema provider read."""
_FILE_SCHEMAS = "FilebasedSchemaProvider"
_REGISTRY_SCHEMAS = "SchemaRegistryProvider"
_BY_NUMBERS = "AvroKafkaSource"
"""Values name their schemas, in the registry of `schema.registry.url`."""
_SQL_TRANSFORMER = "SqlQueryBasedTransformer"
_SUBQUERY = re.compile(r"\((?P<query>.*)\)\s*(as\s+)?\w*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class StreamerFlags:
    """What the command line of the Streamer says, by its flags."""

    target_base_path: str
    target_table: str
    table_type: str | None = None
    source_class: str = "JsonDFSSource"
    source_ordering_fields: str | None = None
    schemaprovider_class: str | None = None
    transformer_class: str | None = None
    payload_class: str | None = None
    merge_mode: str | None = None
    base_file_format: str = "PARQUET"
    op: str = "UPSERT"
    source_limit: int | None = None
    filter_dupes: bool = False
    enable_sync: bool = False
    sync_tool_classes: str | None = None
    disable_compaction: bool = False


class From(NamedTuple):
    """Where rows come from."""

    source: str
    format: str
    options: Mapping[str, str] = {}
    bound: str = "max_bytes"
    """The argument that Hudi's limit of a source stands for."""

    @property
    def is_files(self) -> bool:
        """Options say also how the storage is reached."""
        return self.bound == "max_bytes"


@dataclass(frozen=True)
class StreamerJob:
    """Arguments of `ingest`."""

    source: From
    target: str
    operation: str
    record_key: str | None
    ordering: str | None
    table_type: str | None
    sql: str | None
    schema: SchemaLike | None
    options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None


def parse_job(flags: StreamerFlags, properties: Mapping[str, str], reached_by: Mapping[str, str]) -> StreamerJob:
    """The job.

    Raises:
        OptionError: a class has no counterpart here, or a property is missing that its source needs.
    """
    name = _simple(flags.source_class)
    if name not in SOURCES:
        raise OptionError(
            f"--source-class {flags.source_class} is not read here; there are {', '.join(sorted(SOURCES))}"
        )
    if flags.base_file_format.upper() != "PARQUET":
        raise OptionError(f"--base-file-format {flags.base_file_format} is not written: base files are Parquet")
    if flags.filter_dupes and flags.op.upper() == "UPSERT":
        raise OptionError("--filter-dupes would drop updates, as --op is UPSERT: drop it, or give --op INSERT")
    rest = {key: value for key, value in properties.items() if key.startswith("hoodie.")}
    source = SOURCES[name](properties)
    options = {key: value for key, value in _options(flags, rest).items() if not key.startswith(PREFIX)}
    parse_write_options(options)  # what is wrong with them is said also where there is nothing new
    unread = sorted(set(properties) - set(options) - set(source.options) - _READ)
    if unread:
        log.warning("properties of Spark and of Hudi's Streamer that have no effect here: %s", ", ".join(unread))
    return StreamerJob(
        source,
        flags.target_base_path,
        flags.op.lower(),
        rest.get(RECORD_KEY),
        flags.source_ordering_fields,
        flags.table_type,
        _transformation(flags, properties),
        _schema(flags, properties, reached_by),
        options,
        flags.source_limit,
    )


def _options(flags: StreamerFlags, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Options of writes."""
    options = {"hoodie.table.name": flags.target_table}
    if (flags.table_type or "").upper() == "MERGE_ON_READ":
        options["hoodie.compact.inline"] = str(not flags.disable_compaction).lower()
    if flags.enable_sync:
        options["hoodie.datasource.hive_sync.enable"] = "true"
    if flags.sync_tool_classes:
        options["hoodie.meta.sync.client.tool.class"] = flags.sync_tool_classes
    if flags.filter_dupes:
        options["hoodie.datasource.write.insert.drop.duplicates"] = "true"
    if flags.payload_class:
        options["hoodie.datasource.write.payload.class"] = flags.payload_class
    if flags.merge_mode:
        options["hoodie.write.record.merge.mode"] = flags.merge_mode
    return {**options, **properties}


def _transformation(flags: StreamerFlags, properties: Mapping[str, str]) -> str | None:
    if not flags.transformer_class:
        return None
    if _simple(flags.transformer_class) != _SQL_TRANSFORMER:
        raise OptionError(
            f"--transformer-class {flags.transformer_class} is not run: write it as SQL, for {_SQL_TRANSFORMER} and {_SQL}"
        )
    return _needed(properties, _SQL, flags.transformer_class)


def _schema(flags: StreamerFlags, properties: Mapping[str, str], reached_by: Mapping[str, str]) -> SchemaLike | None:
    """Of the table where it is made: what the transformation gives, else what the source has."""
    provider = _simple(flags.schemaprovider_class or "")
    places = {_FILE_SCHEMAS: _SCHEMA_FILES, _REGISTRY_SCHEMAS: _SCHEMA_URLS}.get(provider, ())
    target = next((key for key in places if key in properties), None)
    if not provider or (target is None and flags.source_class.endswith(_BY_NUMBERS)):
        return None
    if not places:
        raise OptionError(f"--schemaprovider-class {flags.schemaprovider_class} is not run: use {_FILE_SCHEMAS}")
    if target is None:
        raise OptionError(f"--schemaprovider-class {provider} needs the property {places[1]}")
    if flags.transformer_class and target != places[0]:
        return None  # it is the schema before the transformation
    place = properties[target]
    text = schema_at(place) if provider == _REGISTRY_SCHEMAS else read_text(place, reached_by)
    return arrow_from_avro(parse_schema(text))


def _simple(name: str) -> str:
    """A class without its package."""
    return name.rpartition(".")[2]


def _needed(properties: Mapping[str, str], key: str, whose: str) -> str:
    value = properties.get(key, "")
    if not value:
        raise OptionError(f"{whose} needs the property {key}: give it in the file of --props, or by --hoodie-conf")
    return value


def _folder(kind: str) -> Callable[[Mapping[str, str]], From]:
    return lambda properties: From(_needed(properties, _ROOT, "a source of files"), kind)


def _csv(properties: Mapping[str, str]) -> From:
    """Hudi's files have no line of names, unless a property says so."""
    options = {_CSV_HEADER: "false", **{key: text for key, text in properties.items() if key.startswith(CSV_PREFIX)}}
    parse_csv_settings(options)
    return From(_needed(properties, _ROOT, "a source of files"), "csv", options)


def _database(properties: Mapping[str, str]) -> From:
    """Rows of the last value are looked at again, which Hudi does not do: those that were committed meanwhile are not lost."""
    table = _needed(properties, f"{_JDBC}table.name", "JdbcSource")
    query = _SUBQUERY.fullmatch(table.strip())
    options = {"query": query["query"]} if query else {"table": table}
    if properties.get(f"{_JDBC}incr.pull", "false").lower() == "true":
        options["column"] = _needed(properties, f"{_JDBC}table.incr.column.name", "JdbcSource")
    key_of_option = {"user": "user", "password": "password", "password_file": "password.file"}
    options |= {name: properties[_JDBC + key] for name, key in key_of_option.items() if _JDBC + key in properties}
    return From(_needed(properties, f"{_JDBC}url", "JdbcSource"), "database", options, "max_rows")


def _topic(kind: str) -> Callable[[Mapping[str, str]], From]:
    def source(properties: Mapping[str, str]) -> From:
        servers, topic = _needed(properties, _SERVERS, "a topic"), _needed(properties, _TOPIC, "a topic")
        settings = {
            key: value
            for key, value in properties.items()
            if key in _KAFKA or (key != _SERVERS and not key.startswith(("hoodie.", "spark.")))
        }
        return From(f"kafka://{servers}/{topic}", kind, settings, "max_rows")

    return source


SOURCES: Mapping[str, Callable[[Mapping[str, str]], From]] = {
    "JsonDFSSource": _folder("json"),
    "AvroDFSSource": _folder("avro"),
    "ParquetDFSSource": _folder("parquet"),
    "CsvDFSSource": _csv,
    "JdbcSource": _database,
    "HoodieIncrSource": lambda properties: From(_needed(properties, _TABLE, "HoodieIncrSource"), "hudi"),
    "JsonKafkaSource": _topic("json"),
    "AvroKafkaSource": _topic("avro"),
}
"""Class of Hudi's -> where its properties say that rows are."""
