"""VECTOR columns: their Avro types, their bytes, and lists in their place."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import SchemaError
from hoodie.filegroup.conform import as_type
from hoodie.format.avro_codec import decode_records
from hoodie.format.avro_encode import encode_records
from hoodie.format.avro_schema import arrow_from_avro, avro_from_arrow, resolve_record
from hoodie.format.vectors import (
    as_lists,
    bytes_of_vectors,
    footer_entry,
    stored,
    stored_schema,
    vector_of,
    vectors_from,
)

FLOATS, DOUBLES, BYTES = pa.list_(pa.float32(), 3), pa.list_(pa.float64(), 2), pa.list_(pa.int8(), 4)
SCHEMA = pa.schema([("f", FLOATS), ("d", DOUBLES), ("i", BYTES)])
ROWS = pa.table(
    {
        "f": pa.array([[1, 0.1, -2.5], None, [float("inf"), -0.0, 7]], FLOATS),
        "d": pa.array([None, [1e300, 5e-324], [0, 1]], DOUBLES),
        "i": pa.array([[1, -128, 127, 0], [0, 0, 0, 0], None], BYTES),
    }
)


def test_avro_says_what_a_vector_holds_and_reads_it_back():
    avro = avro_from_arrow(SCHEMA, table_name="t")
    kinds = {field["name"]: field["type"][1] for field in avro["fields"]}
    assert (kinds["f"]["size"], kinds["d"]["size"], kinds["i"]["size"]) == (12, 16, 4)
    assert {key: kinds["d"][key] for key in ("logicalType", "dimension", "elementType", "storageBacking")} == {
        "logicalType": "vector",
        "dimension": 2,
        "elementType": "DOUBLE",
        "storageBacking": "FIXED_BYTES",
    }
    assert arrow_from_avro(avro) == SCHEMA
    assert footer_entry(SCHEMA) == {"hoodie.vector.columns": "f:VECTOR(3),d:VECTOR(2, DOUBLE),i:VECTOR(4, INT8)"}


@pytest.mark.parametrize(
    "change", [{"elementType": "HALF"}, {"dimension": 4}, {"dimension": "3"}, {"storageBacking": "ARRAY"}]
)
def test_what_is_no_vector_stays_bytes(change):
    avro = {"type": "fixed", "name": "v", "size": 12, "logicalType": "vector", "dimension": 3, "elementType": "FLOAT"}
    assert vector_of(avro) == FLOATS
    assert vector_of({**avro, **change}) is None
    record = {"type": "record", "name": "r", "fields": [{"name": "c", "type": {**avro, **change}}]}
    assert arrow_from_avro(record).field("c").type == pa.binary(12)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_bytes_and_vectors_are_the_same_from_any_row_on(start):
    for column in ROWS.slice(start).combine_chunks().columns:
        for chunk in [*column.chunks, column.chunk(0).slice(1)]:
            assert vectors_from(bytes_of_vectors(chunk), chunk.type).to_pylist() == chunk.to_pylist()
    assert bytes_of_vectors(ROWS["f"].chunk(0))[0].as_py() == np.array([1, 0.1, -2.5], "<f4").tobytes()
    assert stored(ROWS).schema == stored_schema(SCHEMA)
    assert as_lists(SCHEMA).field("i").type == pa.list_(pa.int8())


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(1), ROWS.slice(0, 0)])
def test_log_records_hold_vectors(rows):
    avro = avro_from_arrow(SCHEMA, table_name="t")
    records = encode_records(rows, avro)
    content = b"".join(each.as_py() for each in records)
    ends = np.cumsum([len(each.as_py()) for each in records]).astype(np.int64)
    found = decode_records(
        memoryview(content), np.concatenate([[0], ends[:-1]])[: len(ends)], ends, resolve_record(avro)
    )
    assert found.to_pylist() == rows.to_pylist()


def test_lists_of_as_many_numbers_become_vectors_and_no_others():
    given = pa.chunked_array([pa.array([[1, 2, 3], None, [4, 5, 6]], pa.list_(pa.int64()))])
    assert as_type(given, FLOATS).to_pylist() == [[1, 2, 3], None, [4, 5, 6]]
    assert as_type(as_type(given, FLOATS), pa.list_(pa.float32())).to_pylist() == [[1, 2, 3], None, [4, 5, 6]]
    assert as_type(pa.nulls(2, pa.list_(pa.float32())), FLOATS).to_pylist() == [None, None]
    assert as_type(pa.array([b"\1\0\0\0", None]), BYTES).to_pylist() == [[1, 0, 0, 0], None]
    for wrong in ([[1, 2]], [[1, 2, 3, 4]], [[]]):
        with pytest.raises(pa.ArrowInvalid, match="a vector has 3 values"):
            as_type(pa.array(wrong, pa.list_(pa.float32())), FLOATS)
    with pytest.raises(pa.ArrowInvalid):
        as_type(pa.array([[300, 0, 0, 0]]), BYTES)
    with pytest.raises(SchemaError, match="a null among its values"):
        encode_records(
            ROWS.set_column(0, "f", pa.array([[1, None, 2]] * 3, FLOATS)), avro_from_arrow(SCHEMA, table_name="t")
        )
