"""Tables with VARIANT columns: read as JSON, written from values and texts, and kept byte by byte by all that rewrites rows."""

import io
import json
from datetime import date
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import OptionError, SchemaError
from hoodie.format.avro_codec import decode_records
from hoodie.format.avro_encode import encode_records
from hoodie.format.avro_schema import arrow_from_avro, avro_from_arrow, record_type, schema_text
from hoodie.format.variant_values import encoded
from hoodie.format.variants import VARIANT
from tests.shredding import NULL, shredded

COLUMNS = {"id": int, "v": "variant", "n": "array<variant>", "ts": int}
BIRTH = {"name": "Ada", "born": date(1815, 12, 10), "of": [1, 2.5, None, True]}
SHOWN = {"name": "Ada", "born": "1815-12-10", "of": [1, 2.5, None, True]}


@pytest.fixture(params=[("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "9")])
def table(request, tmp_path):
    kind, version = request.param
    options = {"hoodie.write.table.version": version}
    made = hoodie.create_table(tmp_path / "t", COLUMNS, record_key="id", table_type=kind, options=options)
    made.upsert(
        [
            {"id": 1, "v": BIRTH, "n": [{"a": 1}, None], "ts": 1},
            {"id": 2, "v": '[1, "x"]', "n": [], "ts": 1},
            {"id": 3, "v": None, "n": None, "ts": 1},
        ]
    )
    return made


def rows(scan):
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])


def values(table):
    return {row["id"]: row["v"] and json.loads(row["v"]) for row in rows(table.scan(["id", "v"]))}


def stored(table):
    """The bytes of the variants."""
    return {row["id"]: row["v"] for row in table._pinned(stored=True)(["id", "v"], None).to_arrow().to_pylist()}


def test_variants_are_read_as_json(table):
    assert table.schema.field("v").type == pa.json_()
    assert table.scan().schema == table.scan().to_arrow().schema == table.schema
    assert values(table) == {1: SHOWN, 2: [1, "x"], 3: None}
    assert rows(table.scan())[0]["n"] == ['{"a":1}', None]
    assert rows(table.changes())[1]["v"] == '[1,"x"]'
    assert table.lookup([2]).limit(1).to_pandas()["v"].tolist() == ['[1,"x"]']
    assert hoodie.open_table(table.uri).scan(where="v is null").count() == 1
    with pytest.raises(OptionError, match="'v'"):
        table.scan(where="v = '1'")


def test_what_rewrites_rows_keeps_their_bytes(table):
    before = stored(table)
    table.upsert([{"id": 1, "ts": 2}], partial=True)
    table.update({"ts": "ts + 1"}, where="id < 3")
    table.merge([{"id": 2, "ts": 7}], on="t.id = s.id").when_matched_update({"ts": "s.ts"}).execute()
    assert stored(table) == before
    if table.config.table_type == "MERGE_ON_READ":
        assert table.compact()
    table.cluster(sort_by=["id"])
    assert stored(table) == before
    assert [row["ts"] for row in rows(table.scan(["id", "ts"]))] == [3, 7, 1]
    newest = max(Path(table.uri).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    group = pq.read_schema(newest).field("v").type
    assert group == pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    assert b'"logicalType":"variant"' in pq.read_metadata(newest).metadata[b"parquet.avro.schema"]


def test_writes_take_values_texts_and_what_scans_give(table):
    table.upsert(pa.table({"id": [4, 5], "v": ['{"k": 1.50}', "null"], "n": pa.nulls(2), "ts": [1, 1]}))
    table.upsert({"id": [6], "v": [7], "n": [[True]], "ts": [1]})
    table.upsert(table.scan(where="id = 4").to_arrow())
    table.update({"v": {"set": True}}, where="id = 6")
    table.update({"v": """'"text"'"""}, where="id = 2")
    assert values(table) == {1: SHOWN, 2: "text", 3: None, 4: {"k": 1.5}, 5: None, 6: {"set": True}}
    assert rows(table.scan(where="id in (4, 5)"))[0]["v"] == '{"k":1.50}'
    assert rows(table.scan(where="v is null")) == [{"id": 3, "v": None, "n": None, "ts": 1}]
    raw = table._pinned(stored=True)(None, None).to_arrow()
    table.upsert(raw)
    assert stored(table) == {row["id"]: row["v"] for row in raw.to_pylist()}


@pytest.mark.parametrize("wrong", ["no JSON", '{"a": 1, "a": 2}', "NaN", [{1, 2}], {1: 2}])
def test_what_is_no_variant_is_refused(table, wrong):
    with pytest.raises(SchemaError, match="'v'"):
        table.upsert([{"id": 9, "v": wrong, "n": None, "ts": 1}])
    assert len(values(table)) == 3


def test_columns_are_added_and_renamed(table):
    table.upsert(table.scan(where="id = 2").to_arrow().append_column("w", pa.array(['{"w": 1}']).cast(pa.json_())))
    table.alter.rename_column("v", "renamed")
    table.alter.add_column("more", "variant")
    assert [table.schema.field(name).type for name in ("w", "renamed", "more")] == [pa.json_()] * 3
    found = rows(hoodie.open_table(table.uri).scan(["id", "renamed", "w", "more"]))
    assert json.loads(found[0].pop("renamed")) == SHOWN
    assert found[:2] == [
        {"id": 1, "w": None, "more": None},
        {"id": 2, "renamed": '[1,"x"]', "w": '{"w":1}', "more": None},
    ]


def test_sql_sees_json(table):
    found = hoodie.sql("SELECT v ->> 'name' AS name FROM t WHERE id = 1", t=table)
    assert found.to_pylist() == [{"name": "Ada"}]


def test_records_name_the_parts_in_either_order():
    """Apache Hudi has written both: the record of a log says which comes first."""
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    data = pa.table([pa.array([{"metadata": b"\1\0\0", "value": b"\f\1"}, None], kind).cast(VARIANT)], names=["v"])
    avro = avro_from_arrow(data.schema, table_name="t")
    assert avro["fields"][0]["type"][1]["logicalType"] == "variant"
    other = json.loads(schema_text(avro))
    other["fields"][0]["type"][1]["fields"].reverse()
    for each, first in ((avro, b"\1\0\0"), (other, b"\f\1")):
        assert arrow_from_avro(each).field("v").type == VARIANT
        encoded = encode_records(data, each)
        content = b"".join(encoded.to_pylist())
        assert content[2 : 2 + len(first)] == first
        ends = [len(encoded[0].as_py()), len(content)]
        found = decode_records(content, np.array([0, ends[0]]), np.array(ends), record_type(schema_text(each)))
        assert found.equals(data)


def test_records_of_logs_may_be_shredded():
    """Where the schema of a table says so, which Apache Hudi can read from it."""
    values = [{"n": 1, "z": [True]}, {"n": "x"}, NULL, 7]
    column = shredded(values, {"n": pa.int64()})
    avro = avro_from_arrow(pa.schema([pa.field("v", VARIANT)]), table_name="t")
    part = {"name": "part", "type": "record", "fields": [_optional("value", "bytes"), _optional("typed_value", "long")]}
    typed = {"name": "typed", "type": "record", "fields": [{"name": "n", "type": part}]}
    record = avro["fields"][0]["type"][1]
    record["fields"][1:] = [_optional("value", "bytes"), _optional("typed_value", typed)]
    contents = []
    for row in column.to_pylist():
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema_text(avro))), {"v": row})
        contents.append(out.getvalue())
    ends = np.cumsum([len(each) for each in contents])
    kind = record_type(schema_text(avro))
    found = decode_records(b"".join(contents), np.array([0, *ends[:-1]]), ends, kind)
    assert arrow_from_avro(avro).field("v").type == VARIANT
    pairs = [tuple(row.values()) if row else None for row in found.column("v").to_pylist()]
    assert pairs == [None if value is NULL else encoded(value) for value in values]


def _optional(name, kind):
    return {"name": name, "type": ["null", kind], "default": None}
