"""SQL of Connect clients: the client runs statements about hoodie tables.

The server's catalog keeps names and locations. A query reads DataFrames in the place of tables; UPDATE, DELETE and MERGE become one
SELECT of what they change; Spark gives all expressions their meaning, and the client commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn, Protocol, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from hoodie.errors import OptionError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.options.values import OverwriteMode
from pyspark_hoodie import hook, sql_catalog
from pyspark_hoodie.dataframe import session_overwrite_mode
from pyspark_hoodie.sql_changes import TARGET, changes_of
from pyspark_hoodie.sql_create import has_commits, new_table
from pyspark_hoodie.sql_entries import entry_of
from pyspark_hoodie.sql_reads import Parts
from pyspark_hoodie.sql_table import CatalogTable
from pyspark_hoodie.sql_words import Words, quoted_name, text_of, with_short_names
from pyspark_hoodie.where import quoted

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_CREATES = ("CLUSTERED", "CLUSTER", "SORTED", "ROW", "STORED")
"""Clauses of CREATE TABLE that mean nothing here."""
_INSTEAD = {
    "ALTER": "HoodieTable.for_path(spark, path).alter changes columns; drop the name, and create it anew, for everything else",
    "REPLACE": "use DROP TABLE and CREATE TABLE, or INSERT OVERWRITE",
    "CACHE": "cache a DataFrame of the table",
    "TRUNCATE": "CALL truncate_table(table => '…', partitions => '…') empties partitions",
    "SHOW": "CALL show_table_properties(table => '…') gives properties, HoodieTable.for_path(spark, path).partitions() the partitions",
}
"""First words of statements that need a catalog of ours in the server -> what to do instead."""


class Run(Protocol):
    """Runs a statement of Spark's own, in which words stand for these DataFrames."""

    def __call__(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame: ...


def answer(spark: Any, query: str, run: Run) -> DataFrame | None:
    """What a statement gives that reads or changes tables of ours; None for every other one."""
    words = Words(query)
    start = _behind_with(words)
    first = words.tokens[start].text.upper() if words.tokens else ""
    statement = _Statement(spark, words, run, start)
    match first:
        case "CREATE":
            return statement.create()
        case "INSERT":
            words.at = start
            return statement.insert()
        case "UPDATE" | "DELETE" | "MERGE":
            return statement.change(first)
        case "DESCRIBE" | "DESC":
            return statement.describe()
        case "TRUNCATE" if words.tokens[-1].text != ")":
            return statement.truncate()
        case _ if first in _QUERIES:
            return statement.query(0)
        case "SHOW" if not words.tokens[1:2] or not words.tokens[1].says("PARTITIONS", "CREATE", "TBLPROPERTIES"):
            return None
        case _ if first in _INSTEAD:
            statement.refuse(first)
    return None


def _behind_with(words: Words) -> int:
    """Where the statement begins behind WITH and its queries; 0 without them."""
    pairs = enumerate(pairwise(words.tokens), 1)
    ends = (at for at, (one, other) in pairs if one.says(")") and not one.depth and not other.says(",", "AS", "MAX"))
    return next(ends, 0) if words.sees("WITH") else 0


def frame_of(spark: Any, name: str) -> DataFrame | None:
    """The rows of a table of ours by its name; None for every other one."""
    entry = entry_of(spark, Words(name).name("a table"))
    if entry is None:
        return None
    table = Parts(spark).table(entry)
    frame: DataFrame = table.rows(table.schema.names)
    return frame


class _Statement:
    def __init__(self, spark: Any, words: Words, run: Run, start: int) -> None:
        self.spark, self.words, self.run, self.start = spark, words, run, start
        self.parts = Parts(spark)
        self.location: str | None = None
        self.find = partial(sql_catalog.table_of, spark)

    def nothing(self) -> DataFrame:
        found: DataFrame = self.spark.range(0).select()
        return found

    def query(self, start: int) -> DataFrame | None:
        """The rows of a query that reads tables of ours."""
        text = self.parts.put_in(self.words, start, self.find)
        frames = self.parts.frames()
        return self.run(text, frames) if frames else None

    def rows(self, start: int) -> DataFrame:
        """Of any query."""
        text = self.parts.put_in(self.words, start, self.find)
        if self.start:
            text = f"{self.before()} ({text})"
        return self.run(text, self.parts.frames())

    def before(self) -> str:
        """WITH and its queries."""
        words = Words(self.words.slice(0, self.start))
        return self.parts.put_in(words, 0, self.find)

    def refuse(self, first: str) -> None:
        """Raises OptionError where the statement names a table of ours."""
        words = self.words
        while not words.is_over and not words.tokens[words.at].says(
            "TABLE", "FROM", "IN", "PARTITIONS", "TBLPROPERTIES"
        ):
            words.at += 1
        words.at += 1
        words.take("FROM")
        words.take("IN")
        words.take("EXTENDED")
        if words.is_over or not words.tokens[words.at].is_name:
            return
        entry = entry_of(self.spark, words.name("a table"))
        is_of_entry = first == "ALTER" and any(
            words.sees(*each) for each in (("SET", "TBLPROPERTIES"), ("UNSET", "TBLPROPERTIES"))
        )
        if entry is not None and not is_of_entry:
            _refuse(f"{first} of table {entry.name}", _INSTEAD[first])

    def describe(self) -> DataFrame | None:
        words = self.words
        words.at += 1
        words.take("TABLE")
        if not words.take("EXTENDED"):
            words.take("FORMATTED")
        if words.is_over or not words.tokens[words.at].is_name:
            return None
        entry = entry_of(self.spark, words.name("a table"))
        if entry is None or words.at < len(words.tokens):
            return None
        fields = self.parts.table(entry).schema.fields
        rows = [(field.name, field.dataType.simpleString(), field.metadata.get("comment")) for field in fields]
        found: DataFrame = self.spark.createDataFrame(rows, "col_name STRING, data_type STRING, comment STRING")
        return found

    def truncate(self) -> DataFrame | None:
        self.words.expect("TRUNCATE", "TABLE")
        entry = entry_of(self.spark, self.words.name("a table"))
        if entry is None:
            return None
        self.parts.table(entry).truncate()
        return self.nothing()

    # -- CREATE.

    def create(self) -> DataFrame | None:
        words = self.words
        words.expect("CREATE")
        replaces = words.take("OR", "REPLACE")
        if words.take("TEMPORARY", "VIEW") or words.take("TEMP", "VIEW"):
            return self.create_view(replaces=replaces)
        words.take("EXTERNAL")
        if not words.take("TABLE"):
            return None
        may_exist = words.take("IF", "NOT", "EXISTS")
        name = words.name("the name of the table")
        listed = words.at
        if words.sees("("):
            words.parts()
        rest = words.at
        if not words.take("USING") or not hook.is_ours(".".join(words.name("a format"))):
            return None
        if replaces:
            _refuse("CREATE OR REPLACE TABLE", _INSTEAD["REPLACE"])
        stated, by, as_query = self.clauses()
        if may_exist and self.spark.catalog.tableExists(quoted_name(name)):
            return self.nothing()
        rows = None
        if as_query < len(words.tokens):
            rows = self.rows(as_query)
        columns = words.slice(listed, rest)
        declared = StructType([])
        if rows is not None:
            declared = StructType([StructField(field.name, field.dataType) for field in rows.schema.fields])
            columns = ""
        elif columns:
            if any(token.says("DEFAULT", "GENERATED") for token in words.tokens[listed:rest]):
                _refuse("a column's DEFAULT", "name a value in each INSERT")
            declared = cast("StructType", StructType.fromDDL(columns[1:-1]))
        elif self.location is not None and has_commits(self.spark, self.location):
            # Else the server asks the source for them, with options that it does not know.
            declared = CatalogTable(self.spark, ".".join(name), self.location).schema
        if not columns and declared.fields:
            columns = "(" + ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in declared.fields) + ")"
        self.run(f"CREATE TABLE {quoted_name(name)} {columns} {words.slice(rest, self.end_of_clauses(as_query))}", {})
        self.make(name, declared, stated, by, rows)
        return self.nothing()

    def end_of_clauses(self, as_query: int) -> int:
        return (
            as_query - 1
            if as_query < len(self.words.tokens) and self.words.tokens[as_query - 1].says("AS")
            else as_query
        )

    def clauses(self) -> tuple[dict[str, str], list[str], int]:
        """Properties, partition columns, and where the query begins."""
        words = self.words
        stated: dict[str, str] = {}
        by: list[str] = []
        while not words.is_over:
            if words.take("TBLPROPERTIES") or words.take("OPTIONS"):
                stated |= words.options()
            elif words.take("PARTITIONED", "BY"):
                by = ["".join(token.name for token in part) for part in words.parts()]
            elif words.take("COMMENT"):
                words.at += 1
            elif words.take("LOCATION"):
                self.location = text_of(words.tokens[words.at].text)
                words.at += 1
            elif any(words.sees(each) for each in _CREATES):
                _refuse(f"{words.tokens[words.at].text.upper()} BY", "leave it out")
            else:
                words.take("AS")
                break
        self.location = stated.pop("path", None) or self.location
        return stated, by, words.at

    def make(
        self,
        name: Sequence[str],
        declared: StructType,
        stated: Mapping[str, str],
        by: Sequence[str],
        rows: DataFrame | None,
    ) -> None:
        """The table behind a new entry; without it the entry goes again."""
        try:
            entry = entry_of(self.spark, name)
            if entry is None:
                raise OptionError(f"the server's catalog does not say where table {'.'.join(name)} is")
            given = {**stated, "location": entry.path} if self.location is not None else stated
            is_of_query = rows is not None
            table = new_table(self.spark, name[-1], "", entry.path, declared.json(), by, given, None, is_of_query)
            if rows is not None:
                table.write("append", rows, {})
        except BaseException:
            self.run(f"DROP TABLE IF EXISTS {quoted_name(list(name))}", {})
            raise

    def create_view(self, *, replaces: bool) -> DataFrame | None:
        words = self.words
        name = words.name("the name of the view")
        if not words.take("AS"):
            return None
        frame = self.query(words.at)
        if frame is None:
            return None
        (frame.createOrReplaceTempView if replaces else frame.createTempView)(".".join(name))
        return self.nothing()

    # -- Rows.

    def insert(self) -> DataFrame | None:
        words = self.words
        words.expect("INSERT")
        overwrites = words.take("OVERWRITE")
        if not overwrites and not words.take("INTO"):
            return None
        words.take("TABLE")
        if words.is_over or not words.tokens[words.at].is_name:
            return None
        entry = entry_of(self.spark, words.name("a table"))
        if entry is None:
            return None
        table = self.parts.table(entry)
        fixed, dynamic = self.partition() if words.take("PARTITION") else ({}, False)
        by_name = words.take("BY", "NAME")
        names = [name for name in table.schema.names if name.lower() not in fixed]
        if words.sees("(") and not words.tokens[words.at + 1].says(*_QUERIES):
            names = [part[-1].name for part in words.parts()]
        replaced = None
        if words.take("REPLACE", "WHERE"):
            start = words.at
            words.at = words.find(*(word for word in _QUERIES if word != "("))
            replaced = table.paths_where(F.expr(words.slice(start, words.at)), "INSERT … REPLACE WHERE")
        rows = self.rows(words.at)
        whole = filled(table, rows, rows.columns if by_name else names, fixed)
        if replaced is not None:
            table.write("overwrite paths", whole, {}, replaced)
            return self.nothing()
        table.write(*self.mode(fixed, whole, overwrites=overwrites, dynamic=dynamic))
        return self.nothing()

    def partition(self) -> tuple[dict[str, str], bool]:
        """Expressions of the partition columns that have one, and whether others are named."""
        fixed: dict[str, str] = {}
        parts = self.words.parts()
        for part in parts:
            if len(part) > 2 and part[1].says("="):
                fixed[part[0].name.lower()] = self.words.text[part[2].start : part[-1].end]
        return fixed, len(fixed) < len(parts)

    def mode(
        self, fixed: Mapping[str, str], rows: DataFrame, *, overwrites: bool, dynamic: bool
    ) -> tuple[str, DataFrame, dict[str, str], list[str | None]]:
        """How the rows are written."""
        by_rows = session_overwrite_mode(self.spark) is OverwriteMode.DYNAMIC
        if not overwrites:
            return "append", rows, {}, []
        if fixed and not (by_rows and dynamic):
            values: list[str | None] = []
            for name, text in fixed.items():
                value = self.spark.range(1).selectExpr(f"CAST({text} AS STRING)").first()[0]
                values += [next(each for each in rows.columns if each.lower() == name), value]
            return "overwrite values", rows, {}, values
        return ("overwrite partitions" if by_rows else "overwrite"), rows, {}, []

    def change(self, first: str) -> DataFrame | None:
        words = self.words
        words.at = self.start + 1
        if first != "UPDATE" and not words.take("FROM" if first == "DELETE" else "INTO"):
            return None
        start = words.at
        name = words.name("a table")
        entry = entry_of(self.spark, name)
        if entry is None:
            return None
        table = self.parts.table(entry)
        table.require_changeable(first)
        rest = with_short_names(self.parts.put_in(words, words.at, self.find), [name])
        changed = Words(f"{words.slice(start, words.at)} {rest}")
        columns = {field.name: field.dataType.simpleString() for field in table.schema.fields}
        found = changes_of(changed, first, columns)
        needed = [*table.schema.names, *META_COLUMNS]
        self.parts.add(lambda: table.rows(needed), TARGET)
        select = f"{self.before()} {found.select}"
        table.change(lambda: self.run(select, self.parts.frames()), deletes=found.only_deletes)
        return self.nothing()


def filled(table: CatalogTable, rows: DataFrame, names: Sequence[str], fixed: Mapping[str, str]) -> DataFrame:
    """The rows with all columns of the table, in their types, without the meta columns of another one."""
    if len(rows.columns) != len(names) or {*META_COLUMNS} <= {
        *names
    }:  # else they may be values of columns of other names
        rows, names = hook.without_meta_columns(rows), [each for each in names if each not in META_COLUMNS]
    if len(rows.columns) != len(names):
        raise OptionError(
            f"INSERT into table {table.name} gives {len(rows.columns)} columns, and {len(names)} are wanted: {', '.join(names)}"
        )
    places = {name.lower(): at for at, name in enumerate(names)}
    unknown = [name for name in names if name.lower() not in {each.lower() for each in table.schema.names}]
    if unknown:
        raise OptionError(f"INSERT into table {table.name}: {', '.join(unknown)} is no column of it")
    plain = rows.toDF(*[f"c{at}" for at in range(len(names))])
    made = []
    for field in table.schema.fields:
        key = field.name.lower()
        value = F.expr(fixed[key]) if key in fixed else F.col(f"c{places[key]}") if key in places else F.lit(None)
        made.append(value.cast(field.dataType).alias(field.name))
    return plain.select(*made)


def _refuse(what: str, instead: str) -> NoReturn:
    raise OptionError(f"{what} does not work on Connect for tables of format {hook.FORMAT!r}: {instead}")
