"""`enable` for tables by name: those that a Hive metastore has of format `hudi`, in `spark.table` and in SQL.

Spark keeps plans of tables that it has resolved, and looks there before it looks for a table's format. So while a query is
analyzed, the plan of each table of ours that it names stands there: the same as by path, and of the snapshot of that moment. It is
taken away again afterwards, so that a query that comes by another way fails, and never sees an older state. Only where the
session's catalog is a Hive metastore can there be such tables; elsewhere nothing is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hoodie.errors import OptionError
from hoodie.options.option import option_name
from hoodie.options.read import ReadOptions
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.frame_marks import marked

FORMAT = "hudi"
"""As Apache Hudi and we register it."""
_SESSION_CATALOG = "spark_catalog"
_READS_OPTIMIZED = "hoodie.query.as.ro.table"
_NAMED = re.compile(r"'Unresolved(?:Relation|Table|TableOrView) \[(.*?)\]")
"""In the text of a plan that is parsed and not analyzed."""
_DEEPEST_VIEW = 20


class _Table(NamedTuple):
    key: Any
    """By which Spark keeps the plan."""
    path: str
    read_optimized: bool


@contextmanager
def at_hand(spark: Any, names: Iterable[Sequence[str]], options: Mapping[str, str] | None = None) -> Iterator[None]:
    """While it is entered, Spark finds the tables of ours among these names; read with these options."""
    kept: list[Any] = []
    catalog = spark._jsparkSession.sessionState().catalog()
    try:
        for table in _tables(spark, names):
            query = {option_name(ReadOptions, "query"): "read_optimized"} if table.read_optimized else {}
            query |= options or {}
            frame = marked(spark, dataframe.read(spark, table.path, query), table.path, query)
            with _guard:
                catalog.cacheTable(table.key, frame._jdf.queryExecution().analyzed())
                _in_use[id(spark), table.key.toString()] += 1
            kept.append(table.key)
        yield
    finally:
        for key in kept:
            with _guard:
                _in_use[id(spark), key.toString()] -= 1
                if not _in_use[id(spark), key.toString()]:
                    del _in_use[id(spark), key.toString()]
                    catalog.invalidateCachedTable(key)


_guard = Lock()
_in_use: Counter[tuple[int, str]] = Counter()
"""Queries that are being analyzed in this moment, by session and table."""


def can_have(spark: Any) -> bool:
    """Whether the session's catalog is a Hive metastore. Connect's clients do not see it."""
    if not hasattr(spark, "_jsparkSession"):
        return False
    return bool(spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive")


def named_in(spark: Any, query: str) -> list[tuple[str, ...]]:
    """The names of tables in a statement, also in its subqueries; none where Spark does not understand it."""
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
    except _failures():
        return []  # Spark will say what is wrong with it
    return sorted({tuple(name.split(", ")) for name in _NAMED.findall(plan.treeString())})


def parts_of(spark: Any, name: str) -> tuple[str, ...]:
    """Of a name as `spark.table` takes it."""
    try:
        found = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    except _failures():
        return ()
    return _texts(found)


def enable(spark: SparkSession) -> None:
    """After `hook.enable`, whose `disable` undoes it. SQL asks here by itself (`sql_hook.py`)."""
    hook.replace_method(type(spark), "table", _of_session)
    hook.replace_method(type(spark.read), "table", _of_reader)


def _of_session(table: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    @wraps(table)
    def call(self: Any, tableName: str) -> DataFrame:
        _refuse_direct(tableName)
        if not can_have(self):
            return table(self, tableName)
        with at_hand(self, [parts_of(self, tableName)]):
            return table(self, tableName)

    return call


def _of_reader(table: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    @wraps(table)
    def call(self: Any, tableName: str) -> DataFrame:
        _refuse_direct(tableName)
        state = getattr(self, "_hoodie", None)  # of readers that were made before `enable` nothing is known
        if state is None or not can_have(state.source):
            return table(self, tableName)
        with at_hand(state.source, [parts_of(state.source, tableName)], dict(state.options.values())):
            return table(self, tableName)

    return call


def _refuse_direct(name: str) -> None:
    refusal = hook.no_direct_name(name)
    if refusal is not None:
        raise OptionError(refusal)


# -- which of them are ours --------------------------------------------------------------------------------------------


def _tables(spark: Any, names: Iterable[Sequence[str]], depth: int = 0) -> list[_Table]:
    """Those of ours, also those that views are made of."""
    found: list[_Table] = []
    for name in names:
        metadata = _metadata(spark, name)
        if metadata is None:
            continue
        if metadata.tableType().name() == "VIEW":
            if depth < _DEEPEST_VIEW and metadata.viewText().isDefined():
                space = _texts(metadata.viewCatalogAndNamespace())
                inner = named_in(spark, metadata.viewText().get())
                found += _tables(spark, [(*space, *each) if len(each) == 1 else each for each in inner], depth + 1)
        elif metadata.provider().isDefined() and _is_ours(spark, metadata.provider().get()):
            found.append(_table(spark, metadata))
    return found


def _metadata(spark: Any, name: Sequence[str]) -> Any:
    """What the session's own catalog has by this name, a view included; None for nothing, and for names of other catalogs."""
    state, jvm = spark._jsparkSession.sessionState(), spark._jvm
    try:
        manager = state.catalogManager()
        named = len(name) > 1 and manager.isCatalogRegistered(name[0])
        catalog = name[0] if named else manager.currentCatalog().name()
        rest = tuple(name[1:] if named else name)
        if catalog != _SESSION_CATALOG or not 0 < len(rest) <= 2:
            return None
        database = jvm.scala.Option.apply(rest[0] if len(rest) == 2 else None)
        identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(rest[-1], database)
        return state.catalog().getTempViewOrPermanentTableMetadata(identifier)
    except _failures():
        return None  # Spark will say what is wrong with it


def _is_ours(spark: Any, provider: str) -> bool:
    """Tables of Apache Hudi are those of its jar where that is there, unless `hudi` was made an alias."""
    if hook.is_ours(provider):
        return True
    return provider.lower() == FORMAT and not _has_jar(spark)


def _has_jar(spark: Any) -> bool:
    answers = [found for client, found in _jars if client is spark._jvm._gateway_client]
    if answers:
        return answers[0]
    sources = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource
    try:
        sources.lookupDataSource(FORMAT, spark._jsparkSession.sessionState().conf())
        found = True
    except _failures():
        found = False
    _jars.append((spark._jvm._gateway_client, found))
    return found


_jars: list[tuple[Any, bool]] = []
"""The way to a JVM, and whether it has Apache Hudi."""


def _table(spark: Any, metadata: Any) -> _Table:
    jvm, storage, identifier = spark._jvm, metadata.storage(), metadata.identifier()
    optimized = storage.properties().get(_READS_OPTIMIZED)
    path = jvm.org.apache.hadoop.fs.Path(storage.locationUri().get()).toString()
    names = (metadata.database(), identifier.table())
    qualified = jvm.org.apache.spark.sql.catalyst.QualifiedTableName
    try:
        key = qualified(_SESSION_CATALOG, *names)
    except _failures():  # of an older Spark
        key = qualified(*names)
    return _Table(key, path, optimized.isDefined() and optimized.get().lower() == "true")


def _texts(sequence: Any) -> tuple[str, ...]:
    return tuple(str(sequence.apply(number)) for number in range(sequence.size()))


def _failures() -> tuple[type[Exception], ...]:
    return (PySparkException, import_module("py4j.protocol").Py4JError, TypeError)
