"""`enable` for SQL and tables by name: before a statement that may name a hoodie table, Spark gets the catalog that knows it.

Statements go to Spark as they were written. A client of Connect cannot have such a catalog: there those that would make a table
which Spark cannot read back are stopped, and of others it is said after they failed what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie.errors import HoodieError, OptionError
from hoodie.model.meta_fields import COMMIT_TIME
from hoodie.model.names import name_of, parse_base_file
from pyspark_hoodie import (
    connect_saves,
    hook,
    sql_catalog,
    sql_connect,
    sql_definitions,
    sql_inserts,
    sql_statements,
    sql_widening,
)
from pyspark_hoodie.frame_marks import is_classic
from pyspark_hoodie.merge_into import MergeInto
from pyspark_hoodie.sql_create import creating
from pyspark_hoodie.sql_words import instants_as_versions, with_named_parameters

_NO_CODE = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|--[^\n]*|/\*.*?\*/", re.DOTALL)
_TABLE = re.compile(r"\s*(?:create|replace)\s(?:[\w\s]*\s)?table\s.*?\busing\s+`?([\w.]+)", re.IGNORECASE | re.DOTALL)
_VIEW = re.compile(r"\s*create\s[\w\s]*\bview\s.*?\busing\s+`?([\w.]+)", re.IGNORECASE | re.DOTALL)
_DIRECTORY = re.compile(
    r"\s*insert\s+overwrite\s+(?:local\s+)?directory\s.*?\busing\s+`?([\w.]+)", re.IGNORECASE | re.DOTALL
)
_ROW_CHANGE = re.compile(
    r"\s*(delete\s+from|update|merge\s+(?:with\s+schema\s+evolution\s+)?into|insert\s+(?:into|overwrite))\s+(?:table\s+)?(`[^`]+`|[\w.]+)",
    re.IGNORECASE,
)
_VERBS = {
    "delete": "delete(where=…)",
    "update": "upsert(df)",
    "merge": "upsert(df) or delete(df)",
    "insert": "insert(df)",
    "insert overwrite": "insert_overwrite_table(df), or insert_overwrite(df) to replace the partitions of its rows",
}
_OWN = re.compile(
    r"\s*(call\s|(show|create|drop)\s+index|insert\s+overwrite\s+(local\s+)?directory"
    r"|(with\s[\s\S]*\)\s*)?(merge|insert)\s+with\s+schema)",
    re.IGNORECASE,
)
"""How statements begin that `sql_statements.py` may know."""
_USING = re.compile(r"\busing\s+`?([\w.]+)", re.IGNORECASE)
_AS_OF_INSTANT = re.compile(r"\bas\s+of\s+['\"]?\d{14}", re.IGNORECASE)
_CHANGES = re.compile(r"\bhudi_table_changes\s*\(", re.IGNORECASE)


def enable(spark: SparkSession, aliases: Iterable[str] = ()) -> None:
    """After `hook.enable`, which keeps what it replaces; `hook.disable` undoes it, but for names that SQL has learnt."""
    hook.tables_by_name[:] = [sql_catalog, connect_saves, sql_widening]
    hook.replace_method(type(spark), "sql", _with_sentences)
    frame = type(spark.range(0))
    hook.replace_method(frame, "writeTo", _to_name)
    if hasattr(frame, "mergeInto"):  # of Spark 4
        hook.replace_method(frame, "mergeInto", _into_name)
    hook.replace_method(type(spark.catalog), "createTable", _in_catalog)
    hook.replace_method(type(spark), "table", _by_name)
    hook.replace_method(type(spark.read), "table", _by_name)
    _teach_sql(spark, [aliases] if isinstance(aliases, str) else aliases)


def _teach_sql(spark: SparkSession, aliases: Iterable[str]) -> None:
    """Aliases for CREATE TEMPORARY VIEW … USING; of `hoodie` itself Spark is told when it is needed."""
    if find_spec("pyspark.sql.datasource") is None:
        return
    source_named = import_module("pyspark_hoodie.datasource").named  # what Spark 3.5 cannot import
    for alias in aliases:
        if alias.lower() != hook.FORMAT:
            hook.register(spark, source_named(alias))


def _code(query: str) -> str:
    """The statement with its texts emptied and its comments as spaces, wherever they stand."""
    return _NO_CODE.sub(lambda match: "''" if match[1] else " ", query)


def refused(query: str, *, has_catalog: bool) -> str | None:
    """Why a statement must not run: it would make a catalog table that Spark cannot read, or a view on 3.5."""
    code = _code(query)
    table = _TABLE.match(code)
    if table and hook.is_ours(table[1]) and not has_catalog:
        return hook.no_catalog_table("this statement")
    directory = _DIRECTORY.match(code)
    if directory and hook.is_ours(directory[1]) and not has_catalog:
        return (
            f"INSERT OVERWRITE DIRECTORY does not write tables of format {hook.FORMAT!r} here: use "
            f"df.write.format('{hook.FORMAT}').mode('overwrite').save(path)"
        )
    view = _VIEW.match(code)
    if view and hook.is_ours(view[1]) and find_spec("pyspark.sql.datasource") is None:
        return (
            f"Spark 3.5 has no formats written in Python, so its SQL does not know {view[1]!r}: make the view with "
            f"spark.read.format({view[1]!r}).load(path).createOrReplaceTempView(name)"
        )
    return None


def instead(query: str, *, has_catalog: bool) -> str | None:
    """What to do instead of a statement that Spark refused."""
    code = _code(query)
    direct = hook.no_direct_name(code)
    if direct is not None:
        return direct
    if _CHANGES.search(code) and not has_catalog:
        return (
            "hudi_table_changes is a function of Apache Hudi's jar: make a view of HoodieTable.for_path(spark, path).changes(since), "
            "or of a read with hoodie.datasource.query.type=incremental"
        )
    return None


def _changes_a_view(spark: SparkSession, query: str, *, is_stored: bool = False) -> str | None:
    """Spark changes no rows through a view, and says so in other words for each statement.

    Args:
        is_stored: a view of the catalog; else a temporary one.
    """
    match = _ROW_CHANGE.match(_code(query))
    if match is None or not _is_view_of_ours(spark, match[2], is_stored=is_stored):
        return None
    words = match[1].lower().split()
    verb = "insert overwrite" if words[1:2] == ["overwrite"] else words[0]
    return (
        f"{match[2]} is a view of a table of format {hook.FORMAT!r}, and {verb.upper()} does not work on views: use "
        f"pyspark_hoodie.HoodieTable.for_path(spark, path).{_VERBS[verb]}"
    )


def _is_view_of_ours(spark: Any, name: str, *, is_stored: bool = False) -> bool:
    if hasattr(spark, "_jsparkSession") and not (_is_stored_view if is_stored else _is_view)(spark, name):
        return False
    try:
        frame = spark.table(name)
        if COMMIT_TIME in frame.columns:
            return True
        return _reads_ours(frame) or any(parse_base_file(name_of(uri)) for uri in frame.inputFiles())
    except PySparkException:
        return False  # Spark will say what is wrong with it


def _reads_ours(frame: Any) -> bool:
    """Whether it reads a table of the catalog that is ours."""
    if not is_classic(frame.sparkSession):
        return False
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    nodes = [leaves.apply(at) for at in range(leaves.size())]
    tables = [leaf.table() for leaf in nodes if leaf.getClass().getSimpleName() == "DataSourceV2Relation"]
    return any(table.getClass().getName() == "hoodie_spark.HoodieTable" for table in tables)


def _is_view(spark: Any, name: str) -> bool:
    """Whether it is a temporary view."""
    plain = name.strip("`")
    return bool(spark._jsparkSession.sessionState().catalog().getTempView(plain).isDefined())


def _is_stored_view(spark: Any, name: str) -> bool:
    state = spark._jsparkSession.sessionState()
    try:
        entry = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
    except (PySparkException, import_module("py4j.protocol").Py4JError):
        return False  # Spark has said what is wrong with it
    return str(entry.tableType().name()) == "VIEW"


def _with_sentences(sql: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(sql)
    def call(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:
        code = _code(sqlQuery)
        has_catalog = sql_catalog.prepare(self, code)
        if not is_classic(self):
            return _on_connect(self, sqlQuery, partial(sql, self), args, kwargs)
        if has_catalog and _AS_OF_INSTANT.search(sqlQuery):
            sqlQuery = instants_as_versions(sqlQuery)
        refusal = refused(sqlQuery, has_catalog=has_catalog) or _changes_a_view(self, sqlQuery)
        if refusal is not None:
            raise OptionError(refusal)
        view = _VIEW.match(code)
        if view and hook.is_ours(view[1]):
            hook.tell_spark(self)
        try:
            if has_catalog and sql_definitions.BEGIN.match(code):
                answer = sql_definitions.answer(self, sqlQuery)
                if answer is not None:
                    return answer
            if has_catalog and _OWN.match(code):
                text, by_name = _by_names(sqlQuery, args, kwargs)
                answer = sql_statements.answer(self, text, lambda part: sql(self, part, **by_name))
                if answer is not None:
                    return answer
            return sql(self, sqlQuery, *args, **kwargs)
        except HoodieError:
            raise
        except Exception as error:
            shown = sql_definitions.instead_of(self, sqlQuery, error)
            if shown is not None:
                return shown
            run = partial(sql, self)
            for rewritten in (sql_inserts.with_all_columns, sql_inserts.without_meta_columns) if has_catalog else ():
                whole = rewritten(self, sqlQuery, error, run)
                if whole is not None:
                    return sql(self, whole, *args, **kwargs)
            refusal = instead(sqlQuery, has_catalog=has_catalog) or _changes_a_view(self, sqlQuery, is_stored=True)
            if refusal is None:
                raise
            raise OptionError(refusal) from error

    return call


def _by_names(query: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement and what else `sql` gets, with names for parameters that have places: its parts get all of them."""
    kwargs = {**dict(zip(("args",), args, strict=False)), **kwargs}
    parameters = kwargs.get("args")
    if parameters is None or isinstance(parameters, Mapping):
        return query, kwargs
    text, names = with_named_parameters(query)
    if len(names) != len(parameters):
        return query, kwargs  # Spark says so
    return text, {**kwargs, "args": dict(zip(names, parameters, strict=True))}


def _on_connect(spark: Any, query: str, sql: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A client carries out what is about tables of ours; DataFrames go to Spark by their names in the statement."""

    def run(text: str, frames: Mapping[str, Any]) -> Any:
        if frames and not kwargs:
            text = text.replace("{", "{{").replace("}", "}}")
        for name in frames:
            text = re.sub(rf"\b{name}\b", f"{{{name}}}", text)
        return sql(text, *args, **kwargs, **frames)

    code = _code(query)
    if any(hook.is_ours(name) for name in _USING.findall(code)):
        hook.tell_spark(spark)
    result = sql_statements.answer(spark, query, spark.sql) if _OWN.match(code) else None
    if result is None and sql_definitions.BEGIN.match(code):
        result = sql_definitions.answer(spark, query)
    if result is None:
        result = sql_connect.answer(spark, query, run)
    if result is not None:
        return result
    refusal = _changes_a_view(spark, query)
    if refusal is not None:
        raise OptionError(refusal)
    return sql(query, *args, **kwargs)


def _by_name(table: Callable[..., Any]) -> Callable[..., Any]:
    """Of a session, or of a reader."""

    @wraps(table)
    def call(self: Any, tableName: str) -> Any:
        state = getattr(self, "_hoodie", None)
        session = self if hasattr(self, "table") and hasattr(self, "sql") else getattr(state, "source", None)
        if session is not None and not is_classic(session):
            frame = sql_connect.frame_of(session, tableName)
            return table(self, tableName) if frame is None else frame
        if session is None or not sql_catalog.prepare(session, tableName):
            refusal = hook.no_direct_name(tableName)
            if refusal is not None:
                raise OptionError(refusal)
        return table(self, tableName)

    return call


def _to_name(write_to: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write_to)
    def call(self: Any, table: str) -> Any:
        refusal = hook.no_view_changes(self.sparkSession, table, "writeTo", "insert(df)")
        if not sql_catalog.prepare(self.sparkSession, table):
            refusal = refusal or hook.no_direct_name(table)
        if refusal is not None:
            raise OptionError(refusal)
        if (
            is_classic(self.sparkSession)
            and COMMIT_TIME in self.columns
            and sql_catalog.is_of_ours(self.sparkSession, table)
        ):
            self = hook.without_meta_columns(self)
        writer = hook.remembering(_WritingTo, write_to(self, table), self)
        writer._name = table
        return writer

    return call


class _WritingTo:
    """In front of Spark's DataFrameWriterV2."""

    _hoodie: Any
    _name: str

    def option(self, key: str, value: Any) -> Any:
        self._hoodie.add({key: value})
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._hoodie.add(options)
        return super().options(**options)  # type: ignore[misc]

    def create(self) -> None:
        with self._creating():
            super().create()  # type: ignore[misc]

    def replace(self) -> None:
        with self._creating():
            super().replace()  # type: ignore[misc]

    def createOrReplace(self) -> None:
        with self._creating():
            super().createOrReplace()  # type: ignore[misc]

    def append(self) -> None:
        with self._widened():
            if not self._written(connect_saves.APPEND):
                super().append()  # type: ignore[misc]

    def overwritePartitions(self) -> None:
        with self._widened():
            if not self._written(connect_saves.OVERWRITE_PARTITIONS):
                super().overwritePartitions()  # type: ignore[misc]

    def overwrite(self, condition: Any) -> None:
        frame, given = self._hoodie.source, dict(self._hoodie.options.values())
        with self._widened():
            if is_classic(frame.sparkSession) or not connect_saves.overwrite(frame, self._name, condition, given):
                super().overwrite(condition)  # type: ignore[misc]

    def _written(self, mode: str) -> bool:
        """Whether a client of Connect has written the rows."""
        frame = self._hoodie.source
        if is_classic(frame.sparkSession):
            return False
        return connect_saves.write(frame, self._name, mode, dict(self._hoodie.options.values()))

    def _widened(self) -> AbstractContextManager[None]:
        return sql_widening.widened(self._hoodie.source, self._name, dict(self._hoodie.options.values()))

    def _creating(self) -> AbstractContextManager[None]:
        return creating(self._name, dict(self._hoodie.options.values()))

    def using(self, provider: str) -> Any:
        session = self._hoodie.source.sparkSession
        if hook.is_ours(provider) and not sql_catalog.prepare(session, f"table {self._name} using {provider}"):
            raise OptionError(hook.no_catalog_table("writeTo"))
        return super().using(provider)  # type: ignore[misc]


def _into_name(merge_into: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(merge_into)
    def call(self: Any, table: str, condition: Any) -> Any:
        spark = self.sparkSession
        sql_catalog.prepare(spark, table)
        if not is_classic(spark) and sql_catalog.is_of_ours(spark, table):
            return MergeInto(self, table, condition, merge_into)
        refusal = hook.no_view_changes(spark, table, "mergeInto", _VERBS["merge"])
        if refusal is not None:
            raise OptionError(refusal)
        is_ours = is_classic(spark) and sql_catalog.is_of_ours(spark, table)
        return MergeInto(self, table, condition, merge_into) if is_ours else merge_into(self, table, condition)

    return call


def _in_catalog(create_table: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(create_table)
    def call(self: Any, tableName: str, path: Any = None, source: Any = None, *args: Any, **kwargs: Any) -> Any:
        if source is not None and hook.is_ours(source):
            session = getattr(self, "_sparkSession", None)
            if session is None or not sql_catalog.prepare(session, f"table {tableName} using {source}"):
                raise OptionError(hook.no_catalog_table(f"createTable({tableName!r})"))
        return create_table(self, tableName, path, source, *args, **kwargs)

    return call
