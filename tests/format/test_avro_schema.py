"""Schemas: the names and types that Apache Hudi writes, the way back, and what a hostile schema may not do."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_schema import (
    MAX_DEPTH,
    MAX_TEXT_BYTES,
    arrow_from_avro,
    avro_from_arrow,
    decimal_size,
    parse_schema,
    record_names,
    resolve_record,
    with_meta_columns,
)
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.meta_fields import META_FIELDS, without_meta_fields

GOLDEN = Path(__file__).parent.parent / "golden"


def golden_schemas() -> dict[str, str]:
    """Table -> writer schema in its log blocks, as the DataFrame writer makes it."""
    found = {}
    for path in sorted(GOLDEN.glob("v*/**/.*.log.*")):
        for block in scan_blocks(path.read_bytes()):
            if isinstance(block, LogBlock) and block.kind is BlockKind.AVRO_DATA:
                found[path.relative_to(GOLDEN).parts[0]] = block.header[HeaderKey.SCHEMA]
    return found


@pytest.mark.parametrize("table", sorted(golden_schemas()))
def test_schema_of_a_golden_table_is_made_again_from_its_columns(table):
    text = golden_schemas()[table]
    arrow = arrow_from_avro(parse_schema(text))
    mine = with_meta_columns(avro_from_arrow(without_meta_fields(arrow), table_name=table))
    assert json.dumps(mine, separators=(",", ":")) == text


def test_arrow_types_of_a_golden_table_with_every_kind_of_column():
    schema = arrow_from_avro(parse_schema(golden_schemas()["v6_composite_keys_mor"]))
    assert schema.names[:5] == [field.name for field in META_FIELDS]
    assert schema.field("amount").type == pa.decimal128(12, 3)
    assert schema.field("at").type == pa.timestamp("us", "UTC")
    assert schema.field("day").type == pa.date32()
    assert schema.field("tags").type == pa.list_(pa.field("element", pa.string()))
    assert schema.field("attrs").type == pa.map_(pa.string(), pa.int32())
    assert schema.field("addr").type.field("geo").type.field("lat").type == pa.float64()
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize(
    ("arrow", "avro"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "int"),
        (pa.uint16(), "int"),
        (pa.int32(), "int"),
        (pa.uint32(), "long"),
        (pa.int64(), "long"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.large_binary(), "bytes"),
        (pa.date64(), {"type": "int", "logicalType": "date"}),
        (pa.timestamp("ms", "Europe/Paris"), {"type": "long", "logicalType": "timestamp-millis"}),
        (pa.timestamp("ns"), {"type": "long", "logicalType": "local-timestamp-micros"}),
        (pa.time64("us"), {"type": "long", "logicalType": "time-micros"}),
        (
            pa.decimal64(10, 2),
            {
                "type": "fixed",
                "name": "fixed",
                "namespace": "hoodie.t.t_record.c",
                "size": 5,
                "logicalType": "decimal",
                "precision": 10,
                "scale": 2,
            },
        ),
        (pa.binary(7), {"type": "fixed", "name": "fixed", "namespace": "hoodie.t.t_record.c", "size": 7}),
    ],
)
def test_type_of_a_column(arrow, avro):
    schema = avro_from_arrow(
        pa.schema([pa.field("c", arrow, nullable=False), pa.field("n", pa.int32())]), table_name="t"
    )
    assert schema["fields"][0] == {"name": "c", "type": avro}
    assert schema["fields"][1] == {"name": "n", "type": ["null", "int"], "default": None}


@pytest.mark.parametrize(("digits", "size"), [(1, 1), (2, 1), (3, 2), (10, 5), (12, 6), (18, 8), (30, 13), (38, 16)])
def test_decimal_takes_the_fewest_bytes(digits, size):
    assert decimal_size(digits) == size


@pytest.mark.parametrize(
    ("table", "record"),
    [("trips", "trips"), ("my-table.v2", "my__table__v2"), ("1t", "__t"), ("é", "__")],
)
def test_record_name_masks_what_avro_forbids(table, record):
    assert record_names(table) == (f"{record}_record", f"hoodie.{record}")


@pytest.mark.parametrize(
    "arrow",
    [
        pa.null(),
        pa.uint64(),
        pa.decimal256(40, 2),
        pa.decimal128(5, -2),
        pa.map_(pa.int32(), pa.string()),
        pa.struct([]),
        pa.duration("us"),
        pa.list_(pa.struct([("x", pa.null())])),
    ],
)
def test_type_that_a_table_cannot_hold_is_named(arrow):
    with pytest.raises(SchemaError, match="column 'bad"):
        avro_from_arrow(pa.schema([("bad", arrow)]), table_name="t")


@pytest.mark.parametrize("name", ["a b", "1a", "é", "", "a.b"])
def test_column_name_that_avro_forbids_is_named(name):
    with pytest.raises(SchemaError, match="has a name that Avro does not allow"):
        avro_from_arrow(pa.schema([("s", pa.struct([(name, pa.int32())]))]), table_name="t")


def test_meta_columns_come_in_front_once():
    schema = avro_from_arrow(pa.schema([("a", pa.int32())]), table_name="t")
    once = with_meta_columns(schema)
    assert [field["name"] for field in once["fields"]] == [*(field.name for field in META_FIELDS), "a"]
    assert once["fields"][0] == {"name": "_hoodie_commit_time", "type": ["null", "string"], "doc": "", "default": None}
    assert with_meta_columns(once) == once
    assert len(schema["fields"]) == 1


def record(*fields, name="r", **more):
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": f} for i, f in enumerate(fields)],
        **more,
    }


def nested(levels, inner="int"):
    for level in range(levels):
        inner = record(inner, name=f"n{level}")
    return inner


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": {"type": "long"}}, pa.int64()),
        (["int", "null"], pa.int32()),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "int", "logicalType": "timestamp-micros"}, pa.int32()),  # not a pair of the specification: ignored
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, pa.decimal128(4, 1)),
        ({"type": "fixed", "name": "x", "size": 3}, pa.binary(3)),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
    ],
)
def test_types_of_other_writers_are_read(avro, arrow):
    assert arrow_from_avro(record(avro)).field("f0").type.equals(arrow)


def test_names_are_found_in_the_namespace_around_them():
    inner = record("int", name="inner")
    schema = record(inner, "inner", "a.b.inner", ["null", "inner"], namespace="a.b")
    kinds = [field.type for field in arrow_from_avro(schema)]
    assert len(kinds) == 4
    assert len(set(kinds)) == 1


@pytest.mark.parametrize(
    "avro",
    [
        record("nonsense"),
        record(None),
        record(5),
        record([]),
        record([["null", "int"]]),
        record({"type": "array"}),
        record({"type": "map", "values": {}}),
        record({"type": "fixed", "name": "x", "size": -1}),
        record({"type": "fixed", "name": "x", "size": True}),
        record({"type": "fixed", "name": "x", "size": 0}),
        record({"type": "enum", "name": "x", "symbols": []}),
        record({"type": "record", "fields": []}),
        record({"type": "record", "name": "x", "fields": {}}),
        record({"type": "bytes", "logicalType": "decimal", "precision": 0}),
        record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}),
        record(record("int", name="x"), record("int", name="x")),
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]},
        {"type": "record", "name": "r", "fields": [5]},
        {"type": "string"},
        {},
    ],
)
def test_schema_that_is_none_is_corrupt(avro):
    with pytest.raises(CorruptFileError):
        parse_schema(json.dumps(avro))


@pytest.mark.parametrize("text", ["", "{", "[]", '"string"', "null", "\ud800", '{"type": "record"'])
def test_text_that_is_no_record_schema_is_corrupt(text):
    with pytest.raises(CorruptFileError):
        parse_schema(text)


@pytest.mark.parametrize(
    "avro",
    [
        record(["null", "r"]),
        record({"type": "array", "items": "r"}),
        record(record({"type": "map", "values": "a.r"}, name="x"), namespace="a"),
    ],
)
def test_recursive_schema_is_refused(avro):
    with pytest.raises(UnsupportedTableError, match="contains itself"):
        parse_schema(json.dumps(avro))


def test_depth_is_bounded():
    assert arrow_from_avro(nested(MAX_DEPTH))
    with pytest.raises(UnsupportedTableError, match="deeper"):
        arrow_from_avro(nested(MAX_DEPTH + 1))


def test_depth_of_named_types_counts_where_they_are_used():
    half = nested(MAX_DEPTH // 2)
    name = half["name"]
    wrapped = name
    for level in range(MAX_DEPTH // 2):
        wrapped = record(wrapped, name=f"w{level}")
    with pytest.raises(UnsupportedTableError, match="deeper"):
        arrow_from_avro(record(half, wrapped))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"type":', "}"), ('{"type":"array","items":', "}")])
@pytest.mark.parametrize("levels", [500, 5_000, 50_000])
def test_deep_json_is_an_error_and_no_crash(opening, closing, levels):
    text = '{"type":"record","name":"r","fields":[{"name":"a","type":' + opening * levels + closing * levels + "}]}"
    with pytest.raises((UnsupportedTableError, CorruptFileError)):
        parse_schema(text)


def test_few_names_that_stand_for_billions_of_fields_are_refused():
    doubling = "int"
    fields = []
    for level in range(40):
        fields.append(record(doubling, doubling, name=f"d{level}"))
        doubling = f"d{level}"
    with pytest.raises(UnsupportedTableError, match="fields"):
        parse_schema(json.dumps(record(*fields)))


def test_text_over_a_mebibyte_is_refused():
    text = json.dumps(record("int", doc="x" * MAX_TEXT_BYTES))
    with pytest.raises(UnsupportedTableError, match="1 MiB"):
        parse_schema(text)
    wide = json.dumps(record("int", doc="é" * (MAX_TEXT_BYTES // 2)), ensure_ascii=False)
    assert len(wide) < MAX_TEXT_BYTES
    with pytest.raises(UnsupportedTableError, match="1 MiB"):
        parse_schema(wide)


@pytest.mark.parametrize(
    "avro",
    [
        ["null", "int", "string"],
        ["null"],
        ["int", "string"],
        "null",
        {"type": "record", "name": "x", "fields": []},
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "x", "fields": []}},
        {"type": "bytes", "logicalType": "decimal", "precision": 39},
        {"type": "fixed", "name": "x", "size": 17, "logicalType": "decimal", "precision": 38},
    ],
)
def test_type_that_no_column_can_have_is_refused_by_its_name(avro):
    with pytest.raises(UnsupportedTableError, match="f0"):
        arrow_from_avro(record(avro))


def test_schema_with_wide_unions_passes_validation():
    # The metadata table's records have them; only as a column they cannot be read.
    assert parse_schema(json.dumps(record(["null", "int", "string"])))["name"] == "r"
    assert resolve_record(record(["null", "int", "string"])).fields[0][1].kind == "union"
