"""Avro schemas as a Hive metastore has them: Hive's types, and Spark's schema in JSON, both as Apache Hudi spells them, to the space.

Witness: integration/test_hive_sync_with_hudi.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from hoodie.errors import UnsupportedTableError
from hoodie.format.avro_schema import AvroType, parse_schema, present, record_type
from hoodie.model.meta_fields import META_COLUMNS

_HIVE = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_SPARK = {**_HIVE, "int": "integer", "long": "long"}


class HiveColumn(NamedTuple):
    """A column of the table as catalogs have it."""

    name: str
    hive_type: str
    spark_type: str
    """As in the JSON of a Spark schema."""
    nullable: bool
    comment: str

    @property
    def spark_json(self) -> str:
        return _spark_field(self.name, self.spark_type, nullable=self.nullable)


def hive_columns(schema_json: str, *, timestamps: bool, meta_columns: bool) -> tuple[HiveColumn, ...]:
    """The columns that an Avro schema states, with the five meta columns in front.

    Args:
        timestamps: Hive's type `timestamp` for them, else `bigint`.
        meta_columns: False leaves the five out.

    Raises:
        UnsupportedTableError: a column has a type that Hive has not.
    """
    docs = {each["name"]: each.get("doc") or "" for each in parse_schema(schema_json)["fields"]}
    record = record_type(schema_json)
    columns = [
        HiveColumn(name, _hive(each, timestamps=timestamps).lower(), _spark(each), _is_nullable(each), str(docs[name]))
        for name, each in record.fields
        if name not in META_COLUMNS
    ]
    meta = [HiveColumn(name, "string", '"string"', nullable=True, comment="") for name in META_COLUMNS]
    return (*(meta if meta_columns else ()), *columns)


def spark_schema_json(columns: Iterable[HiveColumn]) -> str:
    """The JSON of the Spark schema with these columns."""
    return f'{{"type":"struct","fields":[{",".join(column.spark_json for column in columns)}]}}'


def _hive(avro: AvroType, *, timestamps: bool) -> str:
    avro = avro.value
    if avro.logical == "decimal":
        return f"decimal({avro.precision},{avro.scale})"
    if avro.kind == "record":
        inner = [f"{_nested_name(name)}:{_hive(each, timestamps=timestamps)}" for name, each in avro.fields]
        return f"struct<{','.join(inner)}>".replace("-", "_")
    if avro.kind == "array":
        return f"array<{_hive(present(avro), timestamps=timestamps)}>"
    if avro.kind == "map":
        return f"map<string,{_hive(present(avro), timestamps=timestamps)}>"
    if avro.logical == "date":
        return "date"
    if "timestamp" in avro.logical:
        return "timestamp" if timestamps else "bigint"
    return _plain(avro, _HIVE)


def _spark(avro: AvroType) -> str:
    avro = avro.value
    if avro.logical == "decimal":
        return f'"decimal({avro.precision},{avro.scale})"'
    if avro.kind == "record":
        inner = [_spark_field(name, _spark(each), nullable=_is_nullable(each)) for name, each in avro.fields]
        return f'{{"type":"struct","fields":[{",".join(inner)}]}}'
    if avro.kind == "array":
        items = present(avro)
        return f'{{"type":"array", "elementType":{_spark(items)},"containsNull":{_flag(_is_nullable(items))}}}'
    if avro.kind == "map":
        items = present(avro)
        nullable = _flag(_is_nullable(items))
        return f'{{"type":"map", "keyType":"string","valueType":{_spark(items)},"valueContainsNull":{nullable}}}'
    if avro.logical == "date":
        return '"date"'
    if "timestamp" in avro.logical:
        return '"timestamp_ntz"' if avro.logical.startswith("local") else '"timestamp"'
    return f'"{_plain(avro, _SPARK)}"'


def _spark_field(name: str, spark_type: str, *, nullable: bool) -> str:
    name_json = json.dumps(name, ensure_ascii=False)
    return f'{{"name":{name_json},"type":{spark_type},"nullable":{_flag(nullable)},"metadata":{{}}}}'


def _plain(avro: AvroType, names: dict[str, str]) -> str:
    if avro.kind not in names:
        raise UnsupportedTableError(f"column {avro.path!r} has Avro type {avro.kind!r}, which Hive does not have")
    return names[avro.kind]


def _is_nullable(avro: AvroType) -> bool:
    return avro.kind == "null" or avro.null_branch is not None


def _nested_name(name: str) -> str:
    return name.replace("$", "_dollar_")


def _flag(value: bool) -> str:
    return "true" if value else "false"
