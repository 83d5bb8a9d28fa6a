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


class _Insert:
    """An INSERT INTO or OVERWRITE a table, read as far as the query of its rows."""

    def __init__(self, words: Words) -> None:
        self.words, self._begin = words, words.at - 2
        words.take("TABLE")
        self.table = quoted_name(words.name("the name of the table"))
        self.replaces = words.sees("REPLACE")
        self.fixed = {part[0].name for part in words.parts()} if words.take("PARTITION") else set()
        words.take("IF", "NOT", "EXISTS")
        self.head = words.slice(0, words.at)
        self.by_name = words.take("BY", "NAME")
        in_list = words.sees("(") and not words.tokens[words.at + 1].says(*_QUERIES)
        self.columns = [part[-1].name for part in words.parts()] if in_list else []
        self.head_and_columns = words.slice(0, words.at)
        self.rows = words.slice(words.at, len(words.tokens))

    @classmethod
    def read(cls, query: str, error: Exception, text: str) -> _Insert | None:
        """None for every other statement, and where Spark's error has not this text."""
        if not isinstance(error, AnalysisException) or text not in str(error):
            return None
        words = Words(query)
        words.at = words.find("INSERT")
        return cls(words) if words.take("INSERT", "INTO") or words.take("INSERT", "OVERWRITE") else None

    def names(self, run: Callable[[str], DataFrame]) -> list[str]:
        """Those that the query gives its columns."""
        return run(f"{self.words.slice(0, self._begin)} {self.rows}").columns


def with_all_columns(spark: Any, query: str, error: Exception, run: Callable[[str], DataFrame]) -> str | None:
    """The INSERT with the columns whose lack was the error; None for every other statement."""
    insert = _Insert.read(query, error, "CANNOT_FIND_DATA")
    if insert is None or sql_catalog.is_of_others(spark, insert.table):
        return None
    names = insert.names(run) if insert.by_name else insert.columns
    present = {each.lower() for each in (*insert.fixed, *names)}
    lacking = [field for field in spark.table(insert.table).schema.fields if field.name.lower() not in present]
    if not names or any(not field.nullable and _DEFAULT not in field.metadata for field in lacking):
        return None
    more = ", ".join(f"{_default_of(field)} AS {quoted(field.name)}" for field in lacking)
    columns = ", ".join(map(quoted, [*names, *(field.name for field in lacking)]))
    words = insert.words
    if words.sees("VALUES") and any(token.says("DEFAULT") for token in words.tokens[words.at :]):
        rows = _longer(words, len(lacking))
    else:
        rows = f"SELECT *, {more} FROM ({insert.rows})"
    return f"{insert.head} {'BY NAME' if insert.by_name else f'({columns})'} {rows}"


def without_meta_columns(spark: Any, query: str, error: Exception, run: Callable[[str], DataFrame]) -> str | None:
    """The INSERT without the meta columns that were the error; None for every other statement."""
    insert = _Insert.read(query, error, COMMIT_TIME)
    if insert is None or insert.replaces or sql_catalog.is_of_others(spark, insert.table):
        return None
    names = insert.names(run)
    if not {*META_COLUMNS} < {*names}:
        return None
    kept = [each for each in names if each not in META_COLUMNS]
    return f"{insert.head_and_columns} SELECT {', '.join(map(quoted, kept))} FROM ({insert.rows})"


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
