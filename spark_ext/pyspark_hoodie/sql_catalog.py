"""Tables by name: a catalog of Spark's with ours among the others, for classic sessions.

Its classes are Java text that Spark's own compiler makes classes of (`sql_catalog.java`, `sql_table.java`, `sql_planning.java`).
Spark's catalog keeps the entries: name, location, properties. The table's own files say everything else. Spark's analyzer gives
statements their meaning; what is read and written comes here by a call from Java.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from hoodie.errors import OptionError, SchemaError
from hoodie.options.defaults_file import load_defaults
from hoodie.options.fits import check_against
from hoodie.options.given import WRITES
from hoodie.options.option import key_of
from hoodie.options.parse import parse_write_options
from hoodie.options.table_options import TableOptions
from hoodie.table import HoodieTable, is_table
from hoodie.write.create import create_at
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.callbacks import Callback
from pyspark_hoodie.java_code import load_classes, load_source
from pyspark_hoodie.reach import reached, session_options
from pyspark_hoodie.schema import arrow_schema
from pyspark_hoodie.sql_functions import FUNCTIONS
from pyspark_hoodie.sql_table import CatalogTable, moment_of
from pyspark_hoodie.table import HoodieTable as SparkTable

_JAVA = ("sql_table.java", "sql_planning.java", "sql_catalog.java", "sql_functions.java")
HUDI = "hudi"
"""What Apache Hudi calls its format."""
_SETTING = "spark.sql.catalog.spark_catalog"
_CLASS = "hoodie_spark.HoodieCatalog"
_sessions: WeakSet[SparkSession] = WeakSet()
"""Those whose catalog is ours."""

_SHORT = {
    "type": key_of(TableOptions, "table_type").name,
    "primarykey": key_of(TableOptions, "record_key_fields").name,
    "precombinefield": key_of(TableOptions, "ordering_fields").name,
    "orderingfields": key_of(TableOptions, "ordering_fields").name,
}
"""Names of table properties in Apache Hudi's SQL -> options."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_SPARKS_OWN = {"provider", "location", "comment", "external", "owner", "is_managed_location", "collation", "path"}
_HIVE_STYLE = key_of(TableOptions, "hive_style").name


def prepare(spark: Any, text: str) -> bool:
    """Whether the session's catalog knows our tables; it learns to when a text may be about one. Compiling its classes takes
    half a second of CPU, so nothing does that in vain.

    Args:
        text: of a statement, or a name of a table.
    """
    if not _is_possible(spark):
        return False
    if spark in _sessions or _sessions or _NAMES.search(text) or _is_hive(spark) or _mentions_alias(text):
        _install(spark)
        for name in _USING.findall(text):
            if is_ours(name):
                _tell(spark, name)
    return True


_NAMES = re.compile(r"\b(hoodie|hudi|hudi_\w+|call)\b", re.IGNORECASE)
_USING = re.compile(r"\busing\s+`?([\w.]+)", re.IGNORECASE)


def _mentions_alias(text: str) -> bool:
    return any(hook.is_ours(word) for word in re.findall(r"[\w.]+", text))


def is_ours(provider: str | None) -> bool:
    """Whether tables of this format are ours in SQL: tables of Apache Hudi are those of its jar where that is there."""
    if provider is None:
        return False
    return hook.is_ours(provider) or (
        provider.lower() == HUDI and bool(_sessions) and not _has_jar(next(iter(_sessions)))
    )


def provider_of(spark: Any, name: str) -> str | None:
    """The format of a table of ours in the session's catalog; None for everything else."""
    found = _entry(spark, name)
    return None if found is None else str(found.provider().get())


def _entry(spark: Any, name: str) -> Any:
    """Of a table of ours, as Spark's catalog keeps it; None for everything else."""
    if not _is_possible(spark) or not (_sessions or _is_hive(spark)):
        return None
    _install(spark)
    try:
        parts = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
        found = spark._jsparkSession.sessionState().catalog().getTableMetadata(parts)
    except (PySparkException, import_module("py4j.protocol").Py4JError):
        return None  # Spark will say what is wrong with it
    return found if found.provider().isDefined() and is_ours(found.provider().get()) else None


def is_of_others(spark: Any, name: str) -> bool:
    """Whether Spark's catalog has a table or view of this name that is none of ours."""
    direct = _PATH.fullmatch(name.strip())
    if _entry(spark, name) is not None or (direct is not None and is_ours(direct[1])):
        return False
    try:
        spark.table(name)
    except PySparkException:
        return False  # there is none: whoever opens it says so
    return True


_PATH = re.compile(r"`?([\w.]+)`?\.`([^`]*/[^`]*)`")


def table_of(spark: Any, name: str) -> SparkTable:
    """The table of ours with this name: one of the catalog, hoodie.`path`, or a path.

    Raises:
        OptionError: it is a table or view of something else. Spark's own error: there is none.
    """
    if "/" in name and "`" not in name:
        return SparkTable.for_path(spark, name)
    direct = _PATH.fullmatch(name.strip())
    if direct and is_ours(direct[1]):
        return SparkTable.for_path(spark, direct[2])
    found = _entry(spark, name)
    if found is None:
        spark.table(name)  # Spark says that there is none
        raise OptionError(f"{name} is no table of format {hook.FORMAT!r}")
    facts = _plain(spark._jvm.hoodie_spark.HoodieCatalog.facts(found))
    stated = {key: text for key, text in facts["properties"].items() if key.lower() in WRITES}
    return SparkTable.for_path(spark, facts["path"], stated)


@contextmanager
def creating(name: str, options: Mapping[str, str]) -> Iterator[None]:
    """While it is entered, a table that is made by this name gets these options: Spark hands those of a writer to the write alone."""
    key = name.replace("`", "").rpartition(".")[2].lower()
    _writer_options[key] = dict(options)
    try:
        yield
    finally:
        _writer_options.pop(key, None)


_writer_options: dict[str, dict[str, str]] = {}


def remove() -> None:
    """Spark's own catalogs are back."""
    spark: Any
    for spark in list(_sessions):
        if spark._jsc.sc().isStopped():
            continue
        spark._jvm.hoodie_spark.Planning.remove(spark._jsparkSession)
        if not _has_jar(spark):
            spark._jvm.hoodie_spark.HoodieFunctions.remove(spark._jsparkSession, list(FUNCTIONS))
        spark.conf.unset(_SETTING)
    _sessions.clear()


def _is_possible(spark: Any) -> bool:
    """Whether the session has a JVM of its own, and no other catalog took the place of Spark's."""
    return hasattr(spark, "_jsparkSession") and (spark.conf.get(_SETTING, None) or _CLASS) in (_CLASS, "builtin")


def _is_hive(spark: Any) -> bool:
    return bool(spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive")


def _install(spark: Any) -> None:
    if spark in _sessions:
        return
    jvm = spark._jvm
    names = {*hook.formats(), *(() if _has_jar(spark) else (HUDI,))}
    load_classes(jvm, *_JAVA)
    import_module("pyspark.java_gateway").ensure_callback_server_started(spark.sparkContext._gateway)
    jvm.hoodie_spark.HoodieCatalog.connect(Callback(_answers), sorted(names))
    jvm.hoodie_spark.Planning.install(spark._jsparkSession)
    if not _has_jar(spark):
        jvm.hoodie_spark.HoodieFunctions.install(spark._jsparkSession, list(FUNCTIONS))
    spark.conf.set(_SETTING, _CLASS)
    _sessions.add(spark)


def _tell(spark: Any, provider: str) -> None:
    """See to it that Spark knows the format: else it refuses statements before any catalog is asked."""
    if find_spec("pyspark.sql.datasource") is None:
        load_source(spark._jvm, provider.lower())
        return
    hook.tell_spark(spark)
    if provider.lower() == HUDI and not hook.is_ours(HUDI) and spark not in _told:
        _told.add(spark)
        hook.register(spark, import_module("pyspark_hoodie.datasource").named(HUDI))


_told: WeakSet[SparkSession] = WeakSet()


def _has_jar(spark: Any) -> bool:
    answers = [found for client, found in _jars if client is spark._jvm._gateway_client]
    if answers:
        return answers[0]
    sources = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource
    try:
        source = sources.lookupDataSource(HUDI, spark._jsparkSession.sessionState().conf())
        found = str(source.getName()).startswith("org.apache.hudi")
    except (PySparkException, import_module("py4j.protocol").Py4JError):
        found = False
    _jars.append((spark._jvm._gateway_client, found))
    return found


_jars: list[tuple[Any, bool]] = []
"""The way to a JVM, and whether it has Apache Hudi."""


def _answers(what: str, given: Sequence[Any]) -> Any:
    java_session, *rest = given
    spark = next((each for each in _sessions if each._jsparkSession.equals(java_session)), None)
    if spark is None:
        raise OptionError("this session has no tables of format 'hoodie': call pyspark_hoodie.enable(spark)")
    match what:
        case "open":
            return _opened(spark, _plain(rest[0]), rest[1])
        case "open path":
            return _at_path(spark, *rest)
        case "exists":
            return "yes" if is_table(rest[0], storage_options=session_options(spark, rest[0]) or None) else None
        case "create":
            return _create(spark, *rest)
        case "alter":
            return _alter(spark, _plain(rest[0]), rest[1])
        case "function":
            name, values = rest
            table = partial(table_of, spark)
            return FUNCTIONS[name](spark, table, list(values))._jdf.queryExecution().analyzed()
    raise OptionError(f"no answer to {what!r}")


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Java's maps as those of Python."""
    return {name: dict(each) if isinstance(each, Mapping) else each for name, each in dict(facts).items()}


def _at_path(spark: Any, path: str, moment: Any) -> Any:
    if not is_table(path, storage_options=session_options(spark, path) or None):
        return None
    return CatalogTable(spark, f"{hook.FORMAT}.`{path}`", path, moment=moment_of(moment)).in_java()


def _opened(spark: Any, facts: Mapping[str, Any], moment: Any) -> Any:
    comment = {} if facts["comment"] is None else {"comment": facts["comment"]}
    optimized = facts["storage"].get("hoodie.query.as.ro.table", "").lower() == "true"
    return CatalogTable(
        spark,
        facts["name"],
        facts["path"],
        moment=moment_of(moment),
        properties={**facts["properties"], **comment, "provider": facts["provider"]},
        managed=facts["managed"],
        declared=StructType.fromJson(json.loads(facts["schema"])),
        read_optimized=optimized,
        order=list(facts.get("order", [])),
    ).in_java()


def _create(
    spark: Any,
    name: str,
    database: str,
    location: str,
    schema_json: str,
    partitions: Iterable[str],
    properties: Mapping[str, str],
) -> None:
    """Make the table, or take the one that is there, and keep the entry."""
    declared = StructType.fromJson(json.loads(schema_json))
    by, given = list(partitions), dict(properties)
    stated = {
        key.removeprefix("option."): text
        for key, text in given.items()
        if key.removeprefix("option.") not in _SPARKS_OWN
    }
    if "primaryKey" in stated and set(declared.names) >= _SNAPSHOT:
        stated["primaryKey"] = "dbt_scd_id"
    storage, _ = reached(location, None, spark)
    options = {**table_options(_writer_options.get(name.lower(), {})), **table_options(stated)}
    request = parse_write_options(options, defaults=load_defaults())
    if is_table(location, storage_options=session_options(spark, location) or None):
        table = dataframe.open_table(storage, spark)
        check_against(table.config, request.table)
        _require_same_partitions(table, by)
    else:
        if not declared.fields:
            raise SchemaError(f"there is no table at {location}, and CREATE TABLE {name} names no columns: name them")
        made = request.to_create()
        if by and made.partition_fields is None:
            options = {_HIVE_STYLE: "true", key_of(TableOptions, "partition_fields").name: ",".join(by), **options}
        options = {key_of(TableOptions, "name").name: name, **options}
        made = parse_write_options(options, defaults=load_defaults()).to_create()
        create_at(storage, made, schema=arrow_schema(declared))
        table = dataframe.open_table(storage, spark)
    columns = in_sql_order(CatalogTable(spark, name, location, declared=declared).schema, table.config.partition_fields)
    spark._jvm.hoodie_spark.HoodieCatalog.register(
        name,
        database,
        given["provider"].lower(),
        location,
        "location" not in given,
        columns.json(),
        list(table.config.partition_fields),
        stated,
        given.get("comment"),
    )


_SNAPSHOT = {"dbt_scd_id", "dbt_valid_from", "dbt_valid_to"}
"""Columns of a snapshot of dbt. It has many rows of one `unique_key`, which dbt gives as the primary key all the same."""


def _alter(spark: Any, facts: Mapping[str, Any], changes: Iterable[Any]) -> None:
    """Properties change in the entry, columns in the table."""
    properties = dict(facts["properties"])
    alter = dataframe.open_table(reached(facts["path"], None, spark)[0], spark).alter
    for change in changes:
        match str(change.getClass().getSimpleName()):
            case "SetProperty":
                properties[change.property()] = change.value()
            case "RemoveProperty":
                properties.pop(change.property(), None)
            case "AddColumn":
                place = _place(change.position())
                alter.add_column(_path(change), _arrow_type(change.dataType()), doc=change.comment(), **place)
            case "RenameColumn":
                alter.rename_column(_path(change), change.newName())
            case "DeleteColumn":
                alter.drop_column(_path(change))
            case "UpdateColumnType":
                alter.change_type(_path(change), _arrow_type(change.newDataType()))
            case "UpdateColumnPosition":
                alter.move_column(_path(change), **_place(change.position()))
            case "UpdateColumnComment":
                alter.set_doc(_path(change), change.newComment())
            case "UpdateColumnNullability" if change.nullable():
                alter.set_nullable(_path(change))
            case other:
                raise OptionError(f"ALTER TABLE {facts['name']}: tables of format {hook.FORMAT!r} have no {other}")
    fixed = sorted(
        key for key in properties if key.lower() in _SHORT and properties[key] != facts["properties"].get(key)
    )
    if fixed:
        raise OptionError(
            f"property {fixed[0]!r} of table {facts['name']} was decided when the table was made, and stays"
        )
    if properties != facts["properties"]:
        spark._jvm.hoodie_spark.HoodieCatalog.alter(facts["database"], facts["table"], properties)


def _path(change: Any) -> str:
    return ".".join(change.fieldNames())


def _place(position: Any) -> dict[str, Any]:
    if position is None:
        return {}
    return {"first": True} if position.getClass().getSimpleName() == "First" else {"after": position.column()}


def _arrow_type(kind: Any) -> pa.DataType:
    field = {"name": "c", "type": json.loads(kind.json()), "nullable": True, "metadata": {}}
    made: pa.DataType = arrow_schema(StructType.fromJson({"type": "struct", "fields": [field]})).field(0).type
    return made


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Options of a table, from properties of a statement: others than Apache Hudi's are left out."""
    found = {}
    for key, text in properties.items():
        if key.lower() in _SHORT:
            found[_SHORT[key.lower()]] = _TYPES.get(text.lower(), text) if key.lower() == "type" else text
        elif key.startswith("hoodie."):
            found[key] = text
    return found


def _require_same_partitions(table: HoodieTable, partitions: Sequence[str]) -> None:
    stored = list(table.config.partition_fields)
    if partitions and partitions != stored:
        raise OptionError(
            f"table {table.uri} is partitioned by {', '.join(stored) or 'nothing'}, and the statement says "
            f"{', '.join(partitions)}: leave PARTITIONED BY out"
        )


def in_sql_order(schema: StructType, partitions: Sequence[str]) -> StructType:
    """The columns with those of partitions at the end, where Spark's catalog has them."""
    last = [schema[name] for name in partitions if name in schema.names]
    first: list[StructField] = [field for field in schema.fields if field.name not in partitions]
    return StructType([*first, *last])
