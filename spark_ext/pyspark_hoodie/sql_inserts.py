"""INSERT whose rows lack columns of the table, or bring meta columns of another one.

Before 4.1 Spark refuses to leave columns out for tables of a catalog, so the statement names their defaults. Meta columns are never
written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.where import quoted

_DEFAULT = "CURRENT_DEFAULT"
"""Where Spark keeps a column's default, as text of SQL."""
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "(")


def with_all_columns(spark: Any, query: str, error: Exception, run: Callable[[str], DataFrame]) -> str | None:
    """The INSERT with the columns whose lack was the error; None for every other statement."""
    if not isinstance(error, AnalysisException) or "CANNOT_FIND_DATA" not in str(error):
        return None
    words = Words(query)
    insert = words.at = words.find("INSERT")
    if not (words.take("INSERT", "INTO") or words.take("INSERT", "OVERWRITE")):
        return None
    words.take("TABLE")
    name = quoted_name(words.name("the name of the table"))
    if sql_catalog.is_of_others(spark, name):
        return None
    fixed = {part[0].name.lower() for part in words.parts()} if words.take("PARTITION") else set()
    words.take("IF", "NOT", "EXISTS")
    head = words.at
    names: list[str] = []
    by_name = words.take("BY", "NAME")
    if words.sees("(") and not words.tokens[words.at + 1].says(*_QUERIES):
        names = [part[-1].name for part in words.parts()]
    rows = words.slice(words.at, len(words.tokens))
    if by_name:
        names = run(f"{words.slice(0, insert)} {rows}").columns
    present = fixed | {each.lower() for each in names}
    lacking = [field for field in spark.table(name).schema.fields if field.name.lower() not in present]
    if not names or any(not field.nullable and _DEFAULT not in field.metadata for field in lacking):
        return None
    more = ", ".join(f"{_default_of(field)} AS {quoted(field.name)}" for field in lacking)
    column_list = "BY NAME" if by_name else f"({', '.join(map(quoted, [*names, *(field.name for field in lacking)]))})"
    if words.sees("VALUES") and any(token.says("DEFAULT") for token in words.tokens[words.at :]):
        rows = _longer(words, len(lacking))
    else:
        rows = f"SELECT *, {more} FROM ({rows})"
    return f"{words.slice(0, head)} {column_list} {rows}"


def without_meta_columns(spark: Any, query: str, error: Exception, run: Callable[[str], DataFrame]) -> str | None:
    """The INSERT without the meta columns that were the error; None for every other statement."""
    if not isinstance(error, AnalysisException) or COMMIT_TIME not in str(error):
        return None
    words = Words(query)
    insert = words.at = words.find("INSERT")
    if not (words.take("INSERT", "INTO") or words.take("INSERT", "OVERWRITE")):
        return None
    words.take("TABLE")
    if sql_catalog.is_of_others(spark, quoted_name(words.name("the name of the table"))) or words.sees("REPLACE"):
        return None
    if words.take("PARTITION"):
        words.parts()
    words.take("IF", "NOT", "EXISTS")
    words.take("BY", "NAME")
    if words.sees("(") and not words.tokens[words.at + 1].says(*_QUERIES):
        words.parts()
    rows = words.slice(words.at, len(words.tokens))
    names = run(f"{words.slice(0, insert)} {rows}").columns
    if not {*META_COLUMNS} < {*names}:
        return None
    kept = [each for each in names if each not in META_COLUMNS]
    return f"{words.slice(0, words.at)} SELECT {', '.join(map(quoted, kept))} FROM ({rows})"


def _default_of(field: StructField) -> str:
    return f"CAST({field.metadata.get(_DEFAULT, 'NULL')} AS {field.dataType.simpleString()})"


def _longer(words: Words, count: int) -> str:
    """VALUES with so many more in each row; only directly below INSERT they may say DEFAULT."""
    out, copied = "", words.tokens[words.at].start
    for at in range(words.at, len(words.tokens)):
        token = words.tokens[at]
        ends_row = at + 1 == len(words.tokens) or words.tokens[at + 1].says(",")
        if token.says(")") and token.depth == 0 and ends_row:
            out += words.text[copied : token.start] + ", DEFAULT" * count
            copied = token.start
    return out + words.text[copied : words.tokens[-1].end]
