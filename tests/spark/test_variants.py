"""VARIANT columns on Spark: its own type since Spark 4, and texts of JSON before."""

import json
from datetime import date

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import hoodie
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
