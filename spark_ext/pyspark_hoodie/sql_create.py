"""CREATE TABLE, CREATE TABLE AS SELECT and REPLACE TABLE: files come first, the name in Spark's catalog last.

Nobody sees a table whose rows are not there. A process that dies on the way leaves files without a commit and without a name: the
next statement about that name takes them over, or away where it makes another table. Those of a table that was to come in the place of
another one are in a folder of their own, with a mark that says whether its statement still runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from hoodie.errors import OptionError, SchemaError, TableExistsError
from hoodie.format.variants import VARIANT, schema_with
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.options.compatibility import check_against
from hoodie.options.defaults_file import load_defaults
from hoodie.options.option import key_of
from hoodie.options.parse import parse_write_options
from hoodie.options.table import TableConfig, parse_table_config, table_properties
from hoodie.options.table_options import TableOptions
from hoodie.storage.base import Storage
from hoodie.table import HoodieTable, is_table
from hoodie.view.context import TableContext
from hoodie.write.create import create_at
from hoodie.write.schema import storable
from pyspark_hoodie import dataframe
from pyspark_hoodie.reach import reached, session_options
from pyspark_hoodie.schema import declared_schema
from pyspark_hoodie.sql_short_names import SHORT_NAMES, with_full_names
from pyspark_hoodie.sql_table import CatalogTable

_SPARKS_OWN = {"provider", "location", "comment", "external", "owner", "is_managed_location", "collation", "path"}
_SNAPSHOT = {"dbt_scd_id", "dbt_valid_from", "dbt_valid_to"}
"""Columns of a snapshot of dbt. It has many rows of one `unique_key`, which dbt gives as the primary key all the same."""
_HIVE_STYLE = key_of(TableOptions, "hive_style").name
_NAME = key_of(TableOptions, "name").name
_REPLACING = "replacing"
"""The mark of a statement in the folder of the table that is to come in the place of another one."""


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


class NewTable(CatalogTable):
    """A table that a statement makes, with files and without its name.

    Args:
        entry: what Spark's catalog keeps of it, as `HoodieCatalog.register` takes it.
        replaces: a table of this name is there, which goes when this one gets the name. None: there must be none.
        is_new: the statement made the folder, and all that is in it.
    """

    def __init__(
        self, spark: Any, declared: StructType, entry: Sequence[Any], *, replaces: str | None, is_new: bool
    ) -> None:
        table, database, provider, location, managed, _, _, properties, comment = entry
        own_properties = {**properties, "provider": provider} | ({} if comment is None else {"comment": comment})
        # A query's rows come in the order of its own columns.
        super().__init__(
            spark,
            f"{database}.{table}",
            location,
            properties=own_properties,
            managed=managed,
            declared=declared,
            order=[each for each in declared.names if each not in META_COLUMNS],
        )
        self._names = declared.names
        self._meta = [field for field in declared.fields if field.name in META_COLUMNS]
        self._entry, self._replaces, self._is_new = entry, replaces, is_new

    @property
    def schema(self) -> StructType:
        """With the meta columns that rows of another table bring, so that Spark hands all over; the write leaves them out."""
        fields = super().schema.fields
        if not self._meta:
            return StructType(fields)
        return StructType(sorted([*self._meta, *fields], key=lambda field: self._names.index(field.name)))

    def _answers(self, what: str, arguments: Sequence[Any]) -> Any:
        match what:
            case "name":
                self._give_name()
                return self._core.writer.context.liveness.release(_REPLACING)
            case "undo":
                self._core.writer.context.liveness.release(_REPLACING)
                return _delete(self._spark, self._path) if self._is_new else None
        return super()._answers(what, arguments)

    def _give_name(self) -> None:
        catalog = self._spark._jvm.hoodie_spark.HoodieCatalog
        table, database, _, location, *_, properties, comment = self._entry
        if self._replaces is None:
            catalog.register(*self._entry)
        elif _is_same_place(self._spark, self._replaces, location):
            catalog.alter(database, table, properties, comment)
        else:
            catalog.replace(*self._entry)


def new_table(
    spark: Any,
    name: str,
    database: str,
    default_location: str,
    schema_json: str,
    partitions: Iterable[str],
    properties: Mapping[str, str],
    replaced: Mapping[str, Any] | None,
    is_of_query: bool,
) -> NewTable:
    """Make the files of a table, or take the table that is there.

    Args:
        default_location: that of a table without LOCATION.
        replaced: the entry of the table in whose place it comes; one of another format has no path.
        is_of_query: rows follow.
    """
    declared = StructType.fromJson(json.loads(schema_json))
    all_properties, by = dict(properties), list(partitions)
    if others := [each for each in by if "(" in each]:
        raise OptionError(
            f"CREATE TABLE {name}: tables of format 'hoodie' are partitioned by columns, not by {others[0]}: buckets are made by "
            "hoodie.index.type=BUCKET, rows in an order by clustering"
        )
    own_properties = {
        key.removeprefix("option."): text
        for key, text in all_properties.items()
        if key.removeprefix("option.") not in _SPARKS_OWN
    }
    if "primaryKey" in own_properties and set(declared.names) >= _SNAPSHOT:
        own_properties["primaryKey"] = "dbt_scd_id"
    options = {**table_options(_writer_options.get(name.lower(), {})), **table_options(own_properties)}
    request = parse_write_options(options, defaults=load_defaults())
    if by and request.to_create().partition_fields is None:
        options = {_HIVE_STYLE: "true", key_of(TableOptions, "partition_fields").name: ",".join(by), **options}
    settings = parse_write_options({_NAME: name, **options}, defaults=load_defaults())
    creation = settings.to_create()
    schema = declared_schema(declared)

    old = str(replaced["path"]) if replaced and "path" in replaced else None
    stays_managed = replaced is not None and old is not None and bool(replaced["managed"])
    location = all_properties.get("location")
    if location is not None and stays_managed and old is not None and _is_same_place(spark, location, old):
        location = None  # saveAsTable names the place that the table has anyway
    managed = location is None
    if location is None and old is not None and stays_managed and _is_same(_open(spark, old), creation, schema):
        location = old
    elif location is None:
        location = default_location if replaced is None else f"{default_location}_{uuid4().hex}"
    if managed and replaced is not None:
        _remove_left_behind(spark, default_location)

    storage, _ = reached(location, None, spark)
    there = _open(spark, location)
    has_files = False
    if there is not None and managed and not there.timeline.commits and not _is_same(there, creation, schema):
        _delete(spark, location)
        there = None
    if there is None:
        if not declared.fields:
            raise SchemaError(f"there is no table at {location}, and CREATE TABLE {name} names no columns: name them")
        has_files = bool(storage.list("", recursive=True))
        if (is_of_query or managed) and has_files:
            raise OptionError(f"there are files at {location}, where table {name} would be: choose another LOCATION")
        create_at(storage, creation, schema=schema, concurrency=settings.write.concurrency)
    else:
        if is_of_query and replaced is None and there.timeline.commits:
            raise TableExistsError(
                f"there is a table with rows at {location} already: name it by CREATE TABLE {name} USING … LOCATION '{location}', "
                "replace its rows by INSERT OVERWRITE, or choose another LOCATION"
            )
        check_against(there.config, request.table)
        _require_same_partitions(there, by)
    config = (there or dataframe.open_table(storage, spark)).config
    columns = in_sql_order(CatalogTable(spark, name, location, declared=declared).schema, config.partition_fields)
    entry = (
        *(name, database, all_properties.get("provider", "hoodie").lower(), location, managed),
        *(columns.json(), list(config.partition_fields), own_properties, all_properties.get("comment")),
    )
    replaces = None if replaced is None else old or ""
    if there is None and managed and replaced is not None:
        _context(spark, location).liveness.hold(_REPLACING)
    return NewTable(spark, declared, entry, replaces=replaces, is_new=there is None and not has_files)


def _open(spark: Any, path: str) -> HoodieTable | None:
    if not is_table(path, storage_options=session_options(spark, path) or None):
        return None
    return dataframe.open_table(reached(path, None, spark)[0], spark)


def has_commits(spark: Any, path: str) -> bool:
    """Whether a table with commits is at the path."""
    there = _open(spark, path)
    return there is not None and bool(there.timeline.commits)


def _is_same(table: HoodieTable | None, creation: TableOptions, schema: pa.Schema) -> bool:
    """Whether the table is as the options and the schema would make it, but for its rows."""
    if table is None or table.schema is None:
        return False
    config = parse_table_config(table_properties(creation), uri=table.uri)
    names = [(field.name, field.type) for field in schema_with(table.schema, VARIANT)]
    return _comparable(config) == _comparable(table.config) and names == [(f.name, f.type) for f in storable(schema)]


def _comparable(config: TableConfig) -> TableConfig:
    return replace(config, uri="", name="", metadata_partitions=(), raw={})


def _is_same_place(spark: Any, one: str, other: str) -> bool:
    return bool(one) and reached(one, None, spark)[0].uri == reached(other, None, spark)[0].uri


def _delete(spark: Any, path: str) -> None:
    above, _, name = path.rstrip("/").rpartition("/")
    storage: Storage = reached(above or "/", None, spark)[0]
    storage.delete_folder(name)


def _context(spark: Any, path: str) -> TableContext:
    return dataframe.open_table(reached(path, None, spark)[0], spark).writer.context


def _remove_left_behind(spark: Any, location: str) -> None:
    """Folders of tables that were to come in the place of the one here, and whose statements died."""
    above, _, name = location.rstrip("/").rpartition("/")
    folder = re.compile(rf"{re.escape(name)}_[0-9a-f]{{32}}")
    for info in reached(above or "/", None, spark)[0].list(""):
        path = f"{above}/{info.path}"
        is_table_there = folder.fullmatch(info.path) and _open(spark, path) is not None
        if is_table_there and _context(spark, path).liveness.is_alive(_REPLACING) is False:
            _delete(spark, path)


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Options of a table, from properties of a statement: others than Apache Hudi's are left out."""
    result: dict[str, str] = {}
    for key, text in properties.items():
        if key.lower() in SHORT_NAMES:
            result |= with_full_names({key: text})
        elif key.startswith("hoodie."):
            result[key] = text
    return result


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
