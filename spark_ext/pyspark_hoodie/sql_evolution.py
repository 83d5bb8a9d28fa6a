"""`MERGE WITH SCHEMA EVOLUTION`: a MERGE of a table that has the columns of the source already which the statement adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from hoodie.write.schema import Leave, reconcile, storable
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.schema import given_schema
from pyspark_hoodie.sql_added import adding
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.table import HoodieTable

Sql = Callable[[str], DataFrame]
"""Runs a statement of Spark's own."""


def evolve(spark: Any, words: Words, run: Sql) -> DataFrame | None:
    """What the statement gives; None for every other one, and for tables of others.

    The source is a view meanwhile: should it read the table itself, it sees no columns that are not there yet.

    Args:
        words: stand at MERGE, behind WITH and its queries.
    """
    before = words.slice(0, words.at)
    if not words.take("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"):
        return None
    start = words.at
    name = quoted_name(words.name("the table of the MERGE"))
    if sql_catalog.is_of_others(spark, name):
        return None
    words.at = words.find("USING")
    words.expect("USING")
    head = words.slice(start, words.at)
    source, alias = words.source()
    rows = run(f"{before} SELECT * FROM {source}")
    on, when = words.at, words.find("WHEN")
    words.at = when
    table = sql_catalog.table_of(spark, name)
    assigned = _assigned(words, rows.columns)
    added = lacking(table, [field for field in rows.schema.fields if field.name.lower() in assigned])
    columns = {each.lower() for each in (*(table.schema or pa.schema([])).names, *added.names)}
    common = [each for each in rows.columns if each.lower() in columns]
    view = f"hoodie_source_{uuid4().hex}"
    rows.createTempView(view)
    try:
        with adding(spark, table.uri, added):
            clauses = _spelled_out(words, when, common, alias)
            return run(f"{before} MERGE INTO {head} {view} AS {alias} {words.slice(on, when)} {clauses}")
    finally:
        spark.catalog.dropTempView(view)


def _assigned(words: Words, names: list[str]) -> set[str]:
    """Columns of the source, in lower case, that a clause gives to the table under their own names."""
    columns = {name.lower() for name in names}
    assigned_names: set[str] = set()
    is_set = is_listed = False
    for at in range(words.at, len(words.tokens)):
        token, before = words.tokens[at], words.tokens[at - 1]
        if token.says("*") and before.says("SET", "INSERT"):
            return columns
        if token.depth == 0 and token.says("SET", "WHEN"):
            is_set = token.says("SET")
        if token.depth == 0 and token.says("(", ")"):
            is_listed = token.says("(") and before.says("INSERT")
        is_next_equal = at + 1 < len(words.tokens) and words.tokens[at + 1].says("=")
        if token.is_name and (is_listed or (is_set and token.depth == 0 and is_next_equal)):
            assigned_names.add(token.name.lower())
    return assigned_names & columns


def lacking(table: HoodieTable, fields: Sequence[StructField]) -> pa.Schema:
    """The columns that the table lacks, in the types that it has for them.

    Raises:
        SchemaError: it has none.
    """
    there = pa.schema([]) if table.schema is None else table.schema
    names = {name.lower() for name in there.names}
    lacking = [each for each in fields if each.name.lower() not in names and not each.name.startswith("_hoodie_")]
    batch = storable(given_schema(StructType(lacking)))
    after = reconcile(there, batch, table_name=table.config.name, leave=Leave(partial=True))
    return pa.schema(list(after)[len(there) :])


def _spelled_out(words: Words, start: int, common: list[str], alias: str) -> str:
    """The clauses, with the columns that both sides have in place of `*`."""
    columns = [f"`{name}`" for name in common]
    out, copied = "", words.tokens[start].start
    for at in range(start, len(words.tokens)):
        token, before = words.tokens[at], words.tokens[at - 1]
        if token.depth or not token.says("*") or not before.says("SET", "INSERT"):
            continue
        out += words.text[copied : token.start]
        if before.says("SET"):
            out += ", ".join(f"{each} = {alias}.{each}" for each in columns)
        else:
            out += f"({', '.join(columns)}) VALUES ({', '.join(f'{alias}.{each}' for each in columns)})"
        copied = token.end
    return out + words.text[copied : words.tokens[-1].end]
