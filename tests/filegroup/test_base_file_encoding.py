import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from tests.small_files import set_few_rows


def encodings(path):
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    return {c.path_in_schema: set(c.encodings) for c in columns}


def test_only_columns_whose_values_repeat_get_a_dictionary(tmp_path):
    count = 3000
    batch = pa.table(
        {
            "k": [f"k{i}" for i in range(count)],
            "kind": [["car", "van"][i % 2] for i in range(count)],
            "price": [float(i) for i in range(count)],
            "tags": [[str(i), "x"] for i in range(count)],
        }
    )
    table = hoodie.create_table(tmp_path / "t", batch.schema, record_key="k")
    table.insert(batch)
    (piece,) = table.files()
    found = encodings(tmp_path / "t" / piece.base.path)
    with_dictionary = {
        name for name, kinds in found.items() if "RLE_DICTIONARY" in kinds or "PLAIN_DICTIONARY" in kinds
    }
    assert {"kind", "_hoodie_commit_time", "_hoodie_file_name", "tags.list.element"} <= with_dictionary
    assert not with_dictionary & {"k", "price", "_hoodie_record_key", "_hoodie_commit_seqno"}
    assert table.scan().to_arrow() == batch.cast(table.schema)


def test_a_merge_writes_one_row_group_for_many_small_pieces(tmp_path):
    batch = pa.table({"k": [f"k{i}" for i in range(100)], "v": [1] * 100})
    table = hoodie.create_table(tmp_path / "t", batch.schema, record_key="k")
    table.insert(batch)
    table.upsert(batch.slice(10, 20))
    (piece,) = table.files()
    assert pq.ParquetFile(tmp_path / "t" / piece.base.path).metadata.num_row_groups == 1


def test_files_of_few_rows_have_no_dictionaries_until_they_grow(tmp_path, monkeypatch):
    set_few_rows(monkeypatch, 100)
    batch = pa.table({"k": [f"k{i}" for i in range(101)], "kind": ["car"] * 101})
    table = hoodie.create_table(tmp_path / "t", batch.schema, record_key="k")
    for rows, has_one in ((100, False), (101, True)):
        table.upsert(batch.slice(0, rows))
        (piece,) = table.files()
        assert ("RLE_DICTIONARY" in encodings(tmp_path / "t" / piece.base.path)["kind"]) is has_one
    assert table.scan().to_arrow().num_rows == 101


@pytest.mark.parametrize(("asked", "tiny"), [("zstd", "SNAPPY"), ("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")])
def test_zstd_is_for_files_that_are_worth_its_contexts(tmp_path, asked, tiny):
    options = {"hoodie.parquet.compression.codec": asked}
    table = hoodie.create_table(tmp_path / "t", record_key="k", options=options)
    for rows, codec in ((range(3), tiny), (range(3, 300), asked.upper())):
        table.upsert([{"k": f"k{n}", "text": "x" * 20} for n in rows])
        (piece,) = table.files()
        group = pq.ParquetFile(tmp_path / "t" / piece.base.path).metadata.row_group(0)
        assert {group.column(i).compression for i in range(group.num_columns)} == {codec}
