"""Tables by name: a catalog of Spark that also has hoodie tables, for classic sessions.

Its classes are Java text that Spark's own compiler makes classes of (`sql_catalog.java`, `sql_table.java`, `sql_planning.java`).
Spark's catalog keeps the entries: name, location, properties. The table's own files say everything else. Spark's analyzer gives
statements their meaning; what is read and written comes here by a call from Java.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hoodie.errors import OptionError
from hoodie.maintenance.alter import TableAlteration
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import WriteOperation
from hoodie.model.results import CommitResult
from hoodie.options.registry import GROUPS
from hoodie.options.settings import WRITES
from hoodie.table import is_table
from hoodie.write.column_changes import ColumnChange, Together
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.callbacks import Callback
from pyspark_hoodie.frame_marks import is_classic
from pyspark_hoodie.java_code import are_loaded, load_classes, load_source
from pyspark_hoodie.reach import reached, session_options
from pyspark_hoodie.schema import declared_schema
from pyspark_hoodie.sql_create import new_table
from pyspark_hoodie.sql_entries import HUDI, entry_of
from pyspark_hoodie.sql_functions import FUNCTIONS
from pyspark_hoodie.sql_short_names import SHORT_NAMES
from pyspark_hoodie.sql_table import CatalogTable, moment_of
from pyspark_hoodie.sql_words import Words
from pyspark_hoodie.table import HoodieTable as SparkTable

_JAVA = ("sql_table.java", "sql_planning.java", "sql_merging.java", "sql_catalog.java", "sql_functions.java")
_CATALOGS = {
    "spark.sql.catalog.spark_catalog": "hoodie_spark.HoodieCatalog",
    f"spark.sql.catalog.{hook.FORMAT}": "hoodie_spark.HoodieCatalog$Beside",
}
"""Setting -> class. Where the session's own catalog is that of another format, ours has a name of its own."""
_SESSION, _BUILTIN = next(iter(_CATALOGS)), "builtin"
_sessions: WeakSet[SparkSession] = WeakSet()
"""Those whose catalog is ours."""


def prepare(spark: Any, text: str) -> bool:
    """Whether the session's catalog knows our tables; it learns to when a text may be about one. Compiling its classes takes
    half a second of CPU, so nothing does that in vain.

    Args:
        text: of a statement, or a name of a table.
    """
    if not _is_possible(spark):
        return False
    if are_loaded(spark._jvm) or _NAMES.search(text) or _is_hive(spark) or _mentions_alias(text):
        _install(spark)
        for name in filter(is_ours, _USING.findall(text)):
            _tell(spark, name)
            if _MAKES.search(text) and not _is_for_ours(spark, text):
                raise OptionError(
                    f"the session's catalog is {spark.conf.get(_SESSION)}, which does not keep tables of format {name!r}: "
                    f"name the table {hook.FORMAT}.database.table"
                )
    return True


_MAKES = re.compile(r"\btable\b", re.IGNORECASE)
_IN_OURS = re.compile(rf"\b{hook.FORMAT}`?\s*\.", re.IGNORECASE)
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
    entry = _entry(spark, name)
    return None if entry is None else str(entry.provider().get())


def _entry(spark: Any, name: str) -> Any:
    """Of a table of ours, as Spark's catalog keeps it; None for everything else."""
    if not _is_possible(spark) or not (are_loaded(spark._jvm) or _is_hive(spark)):
        return None
    _install(spark)
    try:
        inner = re.sub(rf"^`?{hook.FORMAT}`?\.(?=.*\.)", "", name) if _setting(spark) != _SESSION else name
        parts = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(inner)
        entry = spark._jsparkSession.sessionState().catalog().getTableMetadata(parts)
    except (PySparkException, import_module("py4j.protocol").Py4JError):
        return None  # Spark will say what is wrong with it
    return entry if entry.provider().isDefined() and is_ours(entry.provider().get()) else None


def is_of_ours(spark: Any, name: str) -> bool:
    """Whether it is a name of a table of ours, or such a path."""
    direct = _PATH.fullmatch(name.strip())
    if direct is not None and is_ours(direct[1]):
        return True
    return (_entry(spark, name) if is_classic(spark) else entry_of(spark, Words(name).name("a table"))) is not None


def is_of_others(spark: Any, name: str) -> bool:
    """Whether Spark's catalog has a table or view of this name that is none of ours."""
    if is_of_ours(spark, name):
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
    if not is_classic(spark):
        entry = entry_of(spark, Words(name).name("a table"))
        if entry is not None:
            return SparkTable.for_path(spark, entry.path, _of_writes(entry.properties))
    catalog_entry = _entry(spark, name)
    if catalog_entry is None:
        spark.table(name).schema  # noqa: B018 - Spark says that there is none
        raise OptionError(f"{name} is no table of format {hook.FORMAT!r}")
    facts = _facts(spark, catalog_entry)
    return SparkTable.for_path(spark, facts["path"], _of_writes(facts["properties"]))


def _of_writes(properties: Mapping[str, str]) -> dict[str, str]:
    """What was decided when the table was made is in the table, which an upgrade may have changed."""
    return {key: text for key, text in properties.items() if key.lower() in WRITES and key.lower() not in _OF_TABLES}


_OF_TABLES = {name.lower() for key in GROUPS["Table"] for name in key.names}


def properties_of(spark: Any, name: str) -> dict[str, str]:
    """What the catalog keeps for a table of ours; empty for every other one."""
    if not is_classic(spark):
        entry = entry_of(spark, Words(name).name("a table"))
        return {} if entry is None else dict(entry.properties)
    catalog_entry = _entry(spark, name)
    return {} if catalog_entry is None else dict(_facts(spark, catalog_entry)["properties"])


def remove() -> None:
    """Spark's own catalogs are back. DataFrames that are there are planned as before."""
    spark: Any
    for spark in list(_sessions):
        if spark._jsc.sc().isStopped():
            continue
        if not _has_jar(spark):
            spark._jvm.hoodie_spark.HoodieFunctions.remove(spark._jsparkSession, list(FUNCTIONS))
        spark.conf.unset(str(_setting(spark)))
    _sessions.clear()


def _is_for_ours(spark: Any, text: str) -> bool:
    """Whether a table of this statement comes into our catalog."""
    if _setting(spark) == _SESSION or _IN_OURS.search(text):
        return True
    return bool(spark.catalog.currentCatalog() == hook.FORMAT)


def _is_possible(spark: Any) -> bool:
    """Whether the session has a JVM of its own, and a place for our catalog."""
    return hasattr(spark, "_jsparkSession") and _setting(spark) is not None


def _setting(spark: Any) -> str | None:
    """That of our catalog. None: others have taken both."""
    return next((key for key, ours in _CATALOGS.items() if spark.conf.get(key, _BUILTIN) in (ours, _BUILTIN)), None)


def _is_hive(spark: Any) -> bool:
    return bool(spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive")


def _install(spark: Any) -> None:
    setting = str(_setting(spark))
    if spark in _sessions:
        if spark.conf.get(setting, _BUILTIN) == _BUILTIN:  # after RESET
            spark.conf.set(setting, _CATALOGS[setting])
        return
    jvm = spark._jvm
    names = {*hook.formats(), *(() if _has_jar(spark) else (HUDI,))}
    load_classes(jvm, *_JAVA)
    import_module("pyspark.java_gateway").ensure_callback_server_started(spark.sparkContext._gateway)
    jvm.hoodie_spark.HoodieCatalog.connect(Callback(_answers), sorted(names))
    jvm.hoodie_spark.Planning.install(spark._jsparkSession)
    if not _has_jar(spark):
        jvm.hoodie_spark.HoodieFunctions.install(spark._jsparkSession, list(FUNCTIONS))
    spark.conf.set(setting, _CATALOGS[setting])
    _sessions.add(spark)


def _tell(spark: Any, provider: str) -> None:
    """See to it that Spark knows the format: else it refuses statements before any catalog is asked."""
    if find_spec("pyspark.sql.datasource") is None:
        load_source(spark._jvm, provider)  # which Spark looks up as it is written
        return
    hook.tell_spark(spark)
    if provider.lower() == HUDI and not hook.is_ours(HUDI) and spark not in _warned:
        _warned.add(spark)
        hook.register(spark, import_module("pyspark_hoodie.datasource").named(HUDI))


_warned: WeakSet[SparkSession] = WeakSet()


def _has_jar(spark: Any) -> bool:
    answers = [is_there for client, is_there in _jars if client is spark._jvm._gateway_client]
    if answers:
        return answers[0]
    sources = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource
    try:
        source = sources.lookupDataSource(HUDI, spark._jsparkSession.sessionState().conf())
        is_there = str(source.getName()).startswith("org.apache.hudi")
    except (PySparkException, import_module("py4j.protocol").Py4JError):
        is_there = False
    _jars.append((spark._jvm._gateway_client, is_there))
    return is_there


_jars: list[tuple[Any, bool]] = []
"""The way to a JVM, and whether it has Apache Hudi."""


def _answers(what: str, arguments: Sequence[Any]) -> Any:
    java_session, *rest = arguments
    spark = next((each for each in _sessions if each._jsparkSession.equals(java_session)), None)
    if spark is None:
        raise OptionError("this session has no tables of format 'hoodie': call pyspark_hoodie.enable(spark)")
    match what:
        case "open":
            return _open(spark, json.loads(rest[0]), *rest[1:])
        case "open path":
            return _at_path(spark, *rest)
        case "exists":
            return "yes" if is_table(rest[0], storage_options=session_options(spark, rest[0]) or None) else None
        case "create":
            return new_table(spark, *rest).in_java()
        case "alter":
            return _alter(spark, json.loads(rest[0]), rest[1])
        case "function":
            name, values = rest
            table = partial(table_of, spark)
            return FUNCTIONS[name](spark, table, list(values))._jdf.queryExecution().analyzed()
    raise OptionError(f"no answer to {what!r}")


def _facts(spark: Any, catalog_entry: Any) -> dict[str, Any]:
    java = spark._jvm.hoodie_spark
    facts: dict[str, Any] = json.loads(java.HoodieTable.json(java.HoodieCatalog.facts(catalog_entry)))
    return facts


def _at_path(spark: Any, path: str, moment: Any, thread: int) -> Any:
    if not is_table(path, storage_options=session_options(spark, path) or None):
        return None
    return CatalogTable(spark, f"{hook.FORMAT}.`{path}`", path, moment=moment_of(moment), thread=thread).in_java()


def _open(spark: Any, facts: Mapping[str, Any], moment: Any, thread: int) -> Any:
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
        thread=thread,
    ).in_java()


def _alter(spark: Any, facts: Mapping[str, Any], changes: Iterable[Any]) -> None:
    """Properties change in the entry, columns in the table."""
    properties = dict(facts["properties"])
    alter = _AlterationAtOnce(dataframe.open_table(reached(facts["path"], None, spark)[0], spark))
    for change in changes:
        match str(change.getClass().getSimpleName()):
            case "SetProperty" if change.property() == "location":
                raise OptionError(
                    f"ALTER TABLE {facts['name']}: its files stay where they are; DROP TABLE, and CREATE it there"
                )
            case "SetProperty":
                properties[change.property()] = change.value()
            case "RemoveProperty":
                properties.pop(change.property(), None)
            case "AddColumn" if change.defaultValue() is not None:
                raise OptionError(
                    f"ALTER TABLE {facts['name']}: an added column has no DEFAULT, as its stored rows are null; add it without, "
                    "and UPDATE sets a value"
                )
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
        key for key in properties if key.lower() in SHORT_NAMES and properties[key] != facts["properties"].get(key)
    )
    if fixed:
        raise OptionError(
            f"property {fixed[0]!r} of table {facts['name']} cannot change after the table was created: create another table"
        )
    alter.commit()
    if properties != facts["properties"]:
        comment = properties.pop("comment", facts["comment"])
        spark._jvm.hoodie_spark.HoodieCatalog.alter(facts["database"], facts["table"], properties, comment)


class _AlterationAtOnce(TableAlteration):
    """Changes that are one commit: of all of them, or none."""

    def __init__(self, table: OpenTable) -> None:
        super().__init__(table)
        self._changes: list[ColumnChange] = []

    def _commit(self, change: ColumnChange) -> CommitResult:
        self._changes.append(change)
        return CommitResult(None, WriteOperation.ALTER_SCHEMA)

    def commit(self) -> None:
        if self._changes:
            super()._commit(Together(tuple(self._changes)))


def _path(change: Any) -> str:
    return ".".join(change.fieldNames())


def _place(position: Any) -> dict[str, Any]:
    if position is None:
        return {}
    return {"first": True} if position.getClass().getSimpleName() == "First" else {"after": position.column()}


def _arrow_type(kind: Any) -> pa.DataType:
    field = {"name": "c", "type": json.loads(kind.json()), "nullable": True, "metadata": {}}
    result: pa.DataType = declared_schema(StructType.fromJson({"type": "struct", "fields": [field]})).field(0).type
    return result
