"""Parquet files: opened with their checksums, held against themselves, read to the last row they claim."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.parquet_file import check_meta_columns, open_parquet, read_batches, stored_schema
from hoodie.model.meta_fields import META_COLUMNS
from tests.golden_tables import FOLDER

ROWS = pa.table({"a": range(1_000), "b": [f"value {number}" for number in range(1_000)]})
FILES = [path for path in sorted(FOLDER.glob("v*/table/**/*.parquet")) if "metadata" not in path.parts]


def stored(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def read(data: bytes, columns: list[str], *, batch_rows: int = 300) -> pa.Table:
    with open_parquet(pa.BufferReader(data), path="p/f.parquet") as file:
        batches = list(read_batches(file, columns, batch_rows=batch_rows, path="p/f.parquet"))
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(FOLDER).parts[0]}-{path.name}")
def test_every_file_of_the_golden_tables_is_read(path):
    data = path.read_bytes()
    with open_parquet(pa.BufferReader(data), path=path.name) as file:
        check_meta_columns(file, path=path.name)
        found = list(read_batches(file, file.schema_arrow.names, batch_rows=10, path=path.name))
    assert pa.Table.from_batches(found).equals(pq.read_table(pa.BufferReader(data)).replace_schema_metadata(None))


def test_columns_come_in_the_file_s_order_of_rows_and_in_pieces():
    assert read(stored(ROWS), ["b"]).equals(ROWS.select(["b"]))
    with open_parquet(pa.BufferReader(stored(ROWS)), path="f") as file:
        assert [batch.num_rows for batch in read_batches(file, ["a"], batch_rows=300, path="f")] == [300, 300, 300, 100]


def test_without_columns_batches_have_a_length_only():
    found = read(stored(ROWS), [])
    assert (found.num_rows, found.num_columns) == (1_000, 0)


def test_a_flipped_bit_in_a_page_is_noticed_by_its_checksum():
    """Neither uncompressed pages nor those of zstd notice it by themselves."""
    for codec in ("none", "zstd", "snappy"):
        data = bytearray(stored(ROWS, compression=codec, write_page_checksum=True, use_dictionary=False))
        data[1_000] ^= 1
        with pytest.raises(CorruptFileError, match=r"p/f\.parquet"):
            read(bytes(data), ["a", "b"])


@pytest.mark.parametrize("missing", META_COLUMNS)
def test_a_base_file_without_one_of_hudi_s_columns_is_an_error(missing):
    table = pa.table({name: ["x"] for name in META_COLUMNS if name != missing} | {"a": [1]})
    with (
        open_parquet(pa.BufferReader(stored(table)), path="f") as file,
        pytest.raises(CorruptFileError, match=f"f has no column {missing}"),
    ):
        check_meta_columns(file, path="f")


@pytest.mark.parametrize(
    ("stored_null", "stated_null", "told"), [(True, True, False), (False, True, True), (True, False, False)]
)
def test_a_column_that_lost_its_nulls_is_an_error(stored_null, stated_null, told):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=stored_null)])
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": ["null", "long"] if stated_null else "long"}],
    }
    data = stored(pa.table({"a": [1, 2]}, schema=schema.with_metadata({"parquet.avro.schema": json.dumps(avro)})))
    if not told:
        assert read(data, ["a"]).num_rows == 2
        return
    with pytest.raises(CorruptFileError, match=r"p/f\.parquet has no nulls in column a by its Parquet schema"):
        read(data, ["a"])


def test_a_file_without_any_of_them_is_one_of_another_kind():
    with open_parquet(pa.BufferReader(stored(ROWS)), path="f") as file:
        check_meta_columns(file, path="f")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"x" * 100, b"PAR1" + b"\xff" * 50 + b"PAR1"])
def test_what_is_no_parquet_file_is_told_with_its_name(data):
    with pytest.raises(CorruptFileError, match=r"p/f\.parquet is not a whole Parquet file"):
        read(data, ["a"])


def test_the_stored_schema_keeps_numbers_of_nested_fields_and_knows_moments_behind_them():
    """By these numbers Iceberg tells columns apart."""

    def numbered(name, kind, number, *, nullable=True):
        return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})

    at = pa.struct([numbered("at", pa.timestamp("ns"), 9), numbered("n", pa.int64(), 8)])
    schema = pa.schema(
        [
            numbered("map", pa.map_(numbered("key", pa.string(), 3, nullable=False), numbered("value", at, 4)), 2),
            numbered("list", pa.list_(numbered("element", at, 6)), 5),
            numbered("large", pa.large_list(numbered("element", at, 11)), 10),
            numbered("fixed", pa.list_(numbered("element", at, 13), 2), 12),
            numbered("last", pa.timestamp("ns"), 1),
        ]
    )
    data = stored(schema.empty_table(), use_deprecated_int96_timestamps=True)
    with open_parquet(pa.BufferReader(data), path="f") as file:
        found = stored_schema(file)
    assert found.field("last").type == pa.timestamp("us", "UTC")
    inner = [
        found.field("map").type.item_type,
        *(found.field(name).type.value_type for name in ("list", "large", "fixed")),
    ]
    assert {str(each) for each in inner} == {"struct<at: timestamp[us, tz=UTC], n: int64>"}
    key, item = found.field("map").type.key_field, found.field("map").type.item_field
    assert [each.metadata[b"PARQUET:field_id"] for each in (key, item, *item.type)] == [b"3", b"4", b"9", b"8"]
    for name, number in (("list", b"6"), ("large", b"11"), ("fixed", b"13")):
        assert found.field(name).type.value_field.metadata[b"PARQUET:field_id"] == number
