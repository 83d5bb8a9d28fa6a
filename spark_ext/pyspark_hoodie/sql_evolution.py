"""`MERGE WITH SCHEMA EVOLUTION`: a MERGE of a table that has the columns of the source already which the statement adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from hoodie.model.nested import with_fields
from hoodie.write.schema import Leave, reconcile, storable, storable_type
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.schema import given_schema
from pyspark_hoodie.sql_added import adding
from pyspark_hoodie.sql_words import Words, quoted_name, within
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
    added = lacking(table, only(rows.schema.fields, _assigned(words, _called(head))))
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


def _called(head: str) -> list[str]:
    """What the MERGE calls the table: an alias before USING, or its name."""
    words = Words(head)
    parts, alias = words.name("the table of the MERGE"), words.tokens[-2].name
    return parts if alias == parts[-1] else [alias]


def _assigned(words: Words, target: Sequence[str]) -> set[tuple[str, ...]] | None:
    """Columns and fields, in lower case, that a clause gives to the table; None: all of the source's.

    Args:
        target: what the statement calls the table.
    """
    assigned: set[tuple[str, ...]] = set()
    is_set = is_listed = False
    at = words.at
    while at < len(words.tokens):
        token, before = words.tokens[at], words.tokens[at - 1]
        at += 1
        if token.says("*") and before.says("SET", "INSERT"):
            return None
        if token.depth == 0 and token.says("SET", "WHEN"):
            is_set = token.says("SET")
        if token.depth == 0 and token.says("(", ")"):
            is_listed = token.says("(") and before.says("INSERT")
        if token.is_name and (is_listed or (is_set and token.depth == 0)):
            words.at = at - 1
            parts = within(words.name("a column"), target)
            at = words.at
            if is_listed or words.sees("="):
                assigned.add(tuple(part.lower() for part in parts))
    return assigned


def only(fields: Sequence[StructField], paths: Iterable[tuple[str, ...]] | None) -> list[StructField]:
    """The columns of a source that stand at these paths, in lower case, with the fields inside of them that do; None: all."""
    if paths is None:
        return list(fields)
    found = []
    for field in fields:
        inner = [path[1:] for path in paths if path[:1] == (field.name.lower(),)]
        kind = field.dataType
        if inner and () not in inner:
            kind = StructType(only(kind.fields, inner) if isinstance(kind, StructType) else [])
        if inner and kind != StructType([]):
            found.append(StructField(field.name, kind))
    return found


def lacking(table: HoodieTable, fields: Sequence[StructField]) -> pa.Schema:
    """The columns that the table lacks, in the types that it has for them, and those in which it lacks fields, with these.

    Raises:
        SchemaError: it has none.
    """
    there = pa.schema([]) if table.schema is None else table.schema
    names = {field.name.lower(): field for field in there}
    given = [each for each in fields if not each.name.startswith("_hoodie_")]
    lacking = [each for each in given if each.name.lower() not in names]
    batch = storable(given_schema(StructType(lacking)))
    after = reconcile(there, batch, table_name=table.config.name, leave=Leave(partial=True))
    grown = []
    for each in given:
        field = names.get(each.name.lower())
        if field is not None and pa.types.is_nested(field.type):
            more = storable_type(given_schema(StructType([each])).field(0).type, each.name)
            kind = field.type if more is None else with_fields(field.type, more)
            grown += [] if kind == field.type else [field.with_type(kind)]
    return pa.schema([*grown, *list(after)[len(there) :]])


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
