"""`enable` for SQL and catalog tables: what Spark does not let a format written in Python do is said in one sentence.

Statements go to Spark as they were written. Only those that would make a table which Spark cannot read back are stopped; of
others it is said after they failed what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie.errors import OptionError
from hoodie.model.meta_fields import COMMIT_TIME
from hoodie.model.names import name_of, parse_base_file
from pyspark_hoodie import hook, named_tables

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
_CHANGES = re.compile(r"\bhudi_table_changes\s*\(", re.IGNORECASE)


def enable(spark: SparkSession, aliases: Iterable[str] = ()) -> None:
    """After `hook.enable`, which keeps what it replaces; `hook.disable` undoes it, but for names that SQL has learnt."""
    hook.replace_method(type(spark), "sql", _with_sentences)
    frame = type(spark.range(0))
    hook.replace_method(frame, "writeTo", _not_to_a_catalog)
    if hasattr(frame, "mergeInto"):  # of Spark 4
        hook.replace_method(frame, "mergeInto", _not_into_a_view)
    hook.replace_method(type(spark.catalog), "createTable", _not_in_a_catalog)
    _teach_sql(spark, [aliases] if isinstance(aliases, str) else aliases)


def _teach_sql(spark: SparkSession, aliases: Iterable[str]) -> None:
    """Aliases for CREATE TEMPORARY VIEW … USING; of `hoodie` itself Spark is told when it is needed."""
    if find_spec("pyspark.sql.datasource") is None:
        return
    named = import_module("pyspark_hoodie.datasource").named  # what Spark 3.5 cannot import
    for alias in aliases:
        if alias.lower() != hook.FORMAT:
            hook.register(spark, named(alias))


def _code(query: str) -> str:
    """The statement with its texts emptied and its comments as spaces, wherever they stand."""
    return _NO_CODE.sub(lambda found: "''" if found[1] else " ", query)


def refused(query: str) -> str | None:
    """Why a statement must not run: it would make a catalog table that Spark cannot read, or a view on 3.5."""
    code = _code(query)
    table = _TABLE.match(code)
    if table and hook.is_ours(table[1]):
        return hook.no_catalog_table("this statement")
    directory = _DIRECTORY.match(code)
    if directory and hook.is_ours(directory[1]):
        return (
            f"INSERT OVERWRITE DIRECTORY does not write tables of format {hook.FORMAT!r}: use "
            f"df.write.format('{hook.FORMAT}').mode('overwrite').save(path)"
        )
    view = _VIEW.match(code)
    if view and hook.is_ours(view[1]) and find_spec("pyspark.sql.datasource") is None:
        return (
            f"Spark 3.5 has no formats written in Python, so its SQL does not know {view[1]!r}: make the view with "
            f"spark.read.format({view[1]!r}).load(path).createOrReplaceTempView(name)"
        )
    return None


def instead(query: str) -> str | None:
    """What to do instead of a statement that Spark refused."""
    code = _code(query)
    direct = hook.no_direct_name(code)
    if direct is not None:
        return direct
    if _CHANGES.search(code):
        return (
            "hudi_table_changes is a function of Apache Hudi's jar: make a view of HoodieTable.for_path(spark, path).changes(since), "
            "or of a read with hoodie.datasource.query.type=incremental"
        )
    return None


def _changes_a_view(spark: SparkSession, query: str) -> str | None:
    """Spark changes no rows through a view, and says so in other words for each statement."""
    found = _ROW_CHANGE.match(_code(query))
    if found is None or not _is_view_of_ours(spark, found[2]):
        return None
    words = found[1].lower().split()
    verb = "insert overwrite" if words[1:2] == ["overwrite"] else words[0]
    return (
        f"{found[2]} is a view of a table of format {hook.FORMAT!r}, and {verb.upper()} does not work on views: use "
        f"pyspark_hoodie.HoodieTable.for_path(spark, path).{_VERBS[verb]}"
    )


def _is_view_of_ours(spark: SparkSession, name: str) -> bool:
    try:
        frame = spark.table(name)
        if COMMIT_TIME in frame.columns:
            return True
        return any(parse_base_file(name_of(uri)) for uri in frame.inputFiles())
    except PySparkException:
        return False  # Spark will say what is wrong with it


def _with_sentences(sql: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(sql)
    def call(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:
        refusal = refused(sqlQuery) or _changes_a_view(self, sqlQuery)
        if refusal is not None:
            raise OptionError(refusal)
        view = _VIEW.match(_code(sqlQuery))
        if view and hook.is_ours(view[1]):
            hook.tell_spark(self)
        try:
            if not named_tables.can_have(self):
                return sql(self, sqlQuery, *args, **kwargs)
            with named_tables.at_hand(self, named_tables.named_in(self, sqlQuery)):
                return sql(self, sqlQuery, *args, **kwargs)
        except Exception as error:
            refusal = instead(sqlQuery)
            if refusal is None:
                raise
            raise OptionError(refusal) from error

    return call


def _not_to_a_catalog(write_to: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(write_to)
    def call(self: Any, table: str) -> Any:
        refusal = hook.no_direct_name(table) or hook.no_view_changes(self.sparkSession, table, "writeTo", "insert(df)")
        if refusal is not None:
            raise OptionError(refusal)
        return hook.remembering(_WritingTo, write_to(self, table), self)

    return call


class _WritingTo:
    """In front of Spark's DataFrameWriterV2."""

    def using(self, provider: str) -> Any:
        if hook.is_ours(provider):
            raise OptionError(hook.no_catalog_table("writeTo"))
        return super().using(provider)  # type: ignore[misc]


def _not_into_a_view(merge_into: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(merge_into)
    def call(self: Any, table: str, condition: Any) -> Any:
        refusal = hook.no_view_changes(self.sparkSession, table, "mergeInto", _VERBS["merge"])
        if refusal is not None:
            raise OptionError(refusal)
        return merge_into(self, table, condition)

    return call


def _not_in_a_catalog(create_table: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(create_table)
    def call(self: Any, tableName: str, path: Any = None, source: Any = None, *args: Any, **kwargs: Any) -> Any:
        if source is not None and hook.is_ours(source):
            raise OptionError(hook.no_catalog_table(f"createTable({tableName!r})"))
        return create_table(self, tableName, path, source, *args, **kwargs)

    return call
