"""Avro schemas as Hive and Spark have them in a metastore; what Apache Hudi makes of them: integration/test_hive_sync_with_hudi.py."""

import json

import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.format.hive_types import hive_columns, spark_schema_json
from hoodie.format.spark_types import arrow_from_spark


def schema(*fields: object) -> str:
    named = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(fields)]
    return json.dumps({"type": "record", "name": "t", "fields": named})


LONG_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
NESTED = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "A-b", "type": ["null", "int"]}, {"name": "x", "type": "string"}],
}


@pytest.mark.parametrize(
    ("avro", "hive", "spark"),
    [
        ("int", "int", '"integer"'),
        (["null", "long"], "bigint", '"long"'),
        ("boolean", "boolean", '"boolean"'),
        ("bytes", "binary", '"binary"'),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "string", '"string"'),
        ({"type": "int", "logicalType": "date"}, "date", '"date"'),
        ({"type": "int", "logicalType": "time-millis"}, "int", '"integer"'),
        (LONG_MICROS, "bigint", '"timestamp"'),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "bigint", '"timestamp_ntz"'),
        (
            {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
            "decimal(10,2)",
            '"decimal(10,2)"',
        ),
        (
            {"type": "array", "items": ["null", "int"]},
            "array<int>",
            '{"type":"array", "elementType":"integer","containsNull":true}',
        ),
        (
            {"type": "map", "values": "double"},
            "map<string,double>",
            '{"type":"map", "keyType":"string","valueType":"double","valueContainsNull":false}',
        ),
        (
            NESTED,
            "struct<a_b:int,x:string>",
            '{"type":"struct","fields":[{"name":"A-b","type":"integer","nullable":true,"metadata":{}},'
            '{"name":"x","type":"string","nullable":false,"metadata":{}}]}',
        ),
    ],
)
def test_types(avro: object, hive: str, spark: str) -> None:
    (column,) = hive_columns(schema(avro), timestamps=False, meta_columns=False)
    assert (column.hive_type, column.spark_type) == (hive, spark)
    assert column.nullable is (isinstance(avro, list))
    arrow_from_spark(spark_schema_json([column]))  # Spark's JSON it is


def test_timestamps_by_name() -> None:
    (column,) = hive_columns(schema(LONG_MICROS), timestamps=True, meta_columns=False)
    assert column.hive_type == "timestamp"


def test_meta_columns_come_first_and_once() -> None:
    text = json.dumps({"type": "record", "name": "t", "fields": [{"name": "_hoodie_commit_time", "type": "string"}]})
    found = hive_columns(text, timestamps=False, meta_columns=True)
    assert [column.name for column in found][:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert len(found) == 5
    assert all(column.nullable for column in found)


def test_comments_are_the_docs_of_the_schema() -> None:
    text = json.dumps({"type": "record", "name": "t", "fields": [{"name": "a", "type": "int", "doc": "in euro"}]})
    assert hive_columns(text, timestamps=False, meta_columns=False)[0].comment == "in euro"


def test_a_type_that_hive_has_not_is_named() -> None:
    with pytest.raises(UnsupportedTableError, match="'c0'"):
        hive_columns(schema(["int", "string"]), timestamps=False, meta_columns=False)
