"""VARIANT columns on Spark: its own type since Spark 4, and texts of JSON before."""

import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import hoodie
from hoodie.filegroup.conform import as_type
from hoodie.format.variants import VARIANT
from tests.shredding import shred_files
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

HAS_TYPE = hasattr(T, "VariantType")
COLUMNS = {"id": "string", "part": "string", "v": "variant", "ts": int}


def values(path):
    rows = hoodie.open_table(path).scan(["id", "v"]).to_arrow().to_pylist()
    return {row["id"]: row["v"] and json.loads(row["v"]) for row in rows}


@pytest.mark.skipif(not HAS_TYPE, reason="no such type before Spark 4")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_variants_of_spark_are_written_merged_and_read(enabled, tmp_path, table_type):
    path = tmp_path / "t"

    def save(query):
        options = options_of(hoodie_datasource_write_table_type=table_type)
        enabled.sql(query).write.format("hoodie").options(**options).mode("append").save(str(path))

    save(
        """select 'a' id, 'p' part, 1L ts, parse_json('{"n": 1, "of": [true, 2.5]}') v, array(parse_json('1')) l
        union all select 'b', 'p', 1L, null, null union all select 'c', 'p', 1L, cast(date'2020-01-02' as variant), array()"""
    )
    save("select 'b' id, 'p' part, 2L ts, parse_json('{\"n\": 7}') v, cast(null as array<variant>) l")
    assert hoodie.open_table(path).schema.field("v").type == pa.json_()
    assert values(path) == {"a": {"n": 1, "of": [True, 2.5]}, "b": {"n": 7}, "c": "2020-01-02"}
    hoodie.open_table(path).upsert([{"id": "d", "part": "p", "ts": 1, "v": date(2020, 1, 3), "l": [[1]]}])
    frame = enabled.read.format("hoodie").load(str(path))
    assert isinstance(frame.schema["v"].dataType, T.VariantType)
    found = frame.selectExpr(
        "id", "try_variant_get(v, '$.n', 'int') n", "schema_of_variant(v) kind", "to_json(get(l, 0)) l"
    )
    assert sorted(map(tuple, found.collect())) == [
        ("a", 1, "OBJECT<n: BIGINT, of: ARRAY<VARIANT>>", "1"),
        ("b", 7, "OBJECT<n: BIGINT>", None),
        ("c", None, "DATE", None),
        ("d", None, "DATE", "[1]"),
    ]


@pytest.mark.skipif(not HAS_TYPE, reason="no such type before Spark 4")
def test_shredded_variants_are_read(enabled, tmp_path):
    """In files of Spark itself, and in tables."""
    rows = enabled.sql(
        """select 1 id, parse_json('{"n":1,"l":[1,"x"],"d":{"e":1.5}}') v union all select 2, parse_json('{"n":"x","z":{"n":2}}')
        union all select 3, null union all select 4, parse_json('[{"a":1}]') union all
        select 5, to_variant_object(named_struct('b', cast('x' as binary), 'day', date'2024-01-02', 'n', 7, 't', timestamp'2024-01-01')
        )"""
    )
    kinds = {
        "n": "int",
        "l": "array<bigint>",
        "d": "struct<e: decimal(5,1)>",
        "b": "binary",
        "day": "date",
        "t": "timestamp",
    }
    shredding = {
        "writeShredding.enabled": "true",
        "forceShreddingSchemaForTest": ", ".join(map(" ".join, kinds.items())),
    }
    found = {}
    for name, settings in (("whole", {"writeShredding.enabled": "false"}), ("shredded", shredding)):
        for key, value in settings.items():
            enabled.conf.set(f"spark.sql.variant.{key}", value)
        try:
            rows.coalesce(1).write.parquet(str(tmp_path / name))
        finally:
            for key in settings:
                enabled.conf.unset(f"spark.sql.variant.{key}")
        column = pq.read_table(tmp_path / name).sort_by("id").column("v").combine_chunks()
        assert ("typed_value" in {field.name for field in column.type}) == (name == "shredded")
        found[name] = as_type(as_type(column, VARIANT), pa.string()).to_pylist()
    assert found["shredded"] == found["whole"]
    values = {1: {"n": 1, "rest": [True]}, 2: {"n": "x"}}
    table = hoodie.create_table(tmp_path / "t", {"id": int, "v": "variant"}, record_key="id")
    table.upsert([{"id": each, "v": value} for each, value in values.items()])
    assert shred_files(table, values, {"n": pa.int64()})
    frame = enabled.read.format("hoodie").load(table.uri)
    assert {row.id: json.loads(row.v) for row in frame.selectExpr("id", "to_json(v) v").collect()} == values


@pytest.mark.skipif(HAS_TYPE, reason="Spark 4 has the type")
def test_before_spark_4_variants_are_texts_of_json(enabled, tmp_path):
    table = hoodie.create_table(tmp_path / "t", COLUMNS, record_key="id", partition_by="part")
    table.upsert([{"id": "a", "part": "p", "v": {"n": 1}, "ts": 1}])
    frame = enabled.read.format("hoodie").load(table.uri)
    assert frame.selectExpr("get_json_object(v, '$.n')").collect() == [("1",)]
    frame.selectExpr("'b' id", "part", "'[2]' v", "ts").write.format("hoodie").mode("append").save(table.uri)
    assert values(tmp_path / "t") == {"a": {"n": 1}, "b": [2]}


@pytest.mark.skipif(not HAS_TYPE, reason="no such type before Spark 4")
def test_statements_of_spark_create_and_change_variants(enabled, tmp_path):
    path = tmp_path / "t"
    enabled.sql(
        f"create table variants_of_sql (id string, v variant, ts bigint) using hoodie options (primaryKey 'id') location '{path}'"
    )
    try:
        enabled.sql("insert into variants_of_sql select 'a', parse_json('{\"x\": 5}'), 1L")
        enabled.sql("update variants_of_sql set v = parse_json('{\"x\": 6}') where id = 'a'")
        assert values(path) == {"a": {"x": 6}}
        enabled.sql("create or replace temp view changed as select 'a' id, parse_json('[1]') v, 2L ts")
        enabled.sql(
            "merge into variants_of_sql t using changed s on t.id = s.id "
            "when matched then update set * when not matched then insert *"
        )
        assert values(path) == {"a": [1]}
    finally:
        enabled.sql("drop table variants_of_sql")
