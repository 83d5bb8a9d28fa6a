"""Tables with VECTOR columns, which Apache Hudi made: read with their meaning, and written on with it."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import SchemaError, UnsupportedTableError
from tests.golden_tables import FOLDER


@pytest.fixture(params=["v9_cow", "v9_mor"])
def golden(request, tmp_path):
    folder = FOLDER / "with_vectors" / request.param
    path = shutil.copytree(folder / "table", tmp_path / request.param)
    return path, json.loads((folder / "expected.json").read_text())


def rows(scan):
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])


def test_vectors_are_lists_of_a_fixed_size_in_every_view(golden):
    path, expected = golden
    table = hoodie.open_table(path)
    assert table.schema.field("f").type == pa.list_(pa.float32(), 3)
    assert table.schema.field("d").type == pa.list_(pa.float64(), 2)
    assert table.schema.field("i").type == pa.list_(pa.int8(), 4)
    assert rows(table.scan()) == expected
    assert rows(table.changes()) == expected
    first = table.timeline.commits[0]
    assert rows(table.scan(as_of=first.time))[1]["i"] == [2, -128, 127, 0]
    assert rows(table.lookup(["a"], columns=["id", "f"])) == [{"id": "a", "f": expected[0]["f"]}]
    assert [row["after"]["i"][0] for row in table.changes(first, images="before_after").to_arrow().to_pylist()] == [5]
    assert table.scan(["f"], where="ts = 5").to_pandas()["f"][0].tolist() == expected[1]["f"]


def test_writes_and_services_keep_vectors(golden):
    path, expected = golden
    table = hoodie.open_table(path)
    new = {"id": "d", "name": "ours", "f": [1, 2, 3], "d": [0.5, -1], "i": [1, 2, 3, -4], "ts": 9}
    table.upsert([new, {**expected[0], "ts": 8, "f": None}])
    expected = [{**expected[0], "ts": 8, "f": None}, *expected[1:], new]
    assert rows(table.scan()) == expected
    if path.name == "v9_mor":
        assert table.compact()
        assert rows(table.scan()) == expected
        table.upsert([{**new, "ts": 11}], {"hoodie.logfile.data.block.format": "parquet"})
        expected[-1] = {**new, "ts": 11}
        assert rows(table.scan()) == expected
    table.cluster(sort_by=["id"])
    table.upsert([{"id": "b", "name": "partly", "ts": 10}], partial=True)
    expected[1] |= {"name": "partly", "ts": 10}
    assert rows(hoodie.open_table(path).scan()) == expected
    newest = max(path.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    footer = pq.read_metadata(newest).metadata
    assert footer[b"hoodie.vector.columns"] == b"f:VECTOR(3),d:VECTOR(2, DOUBLE),i:VECTOR(4, INT8)"
    assert b'"logicalType":"vector"' in footer[b"parquet.avro.schema"]
    assert pq.read_schema(newest).field("f").type == pa.binary(12)


def test_rows_that_do_not_fit_are_refused(golden):
    path, expected = golden
    table = hoodie.open_table(path)
    for wrong in ([1], [1, 2, 3, 4], [1, None, 3], "text"):
        with pytest.raises(SchemaError, match="f"):
            table.upsert([{**expected[0], "f": wrong, "ts": 99}])
    assert rows(table.scan()) == expected


def test_a_table_with_a_type_that_would_be_lost_is_read_and_not_written(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    row = {"id": "a", "v": {"metadata": b"\1\0\0", "value": b"\f\1"}}
    table.insert([row])
    (commit,) = (tmp_path / "t/.hoodie").glob("*.commit")
    text = commit.read_text()
    named = r"\"name\":\"v\",\"namespace\""
    commit.write_text(text.replace(named, rf"\"logicalType\":\"blob\",{named}"))
    assert commit.read_text() != text
    table = hoodie.open_table(tmp_path / "t")
    assert table.scan().to_arrow().to_pylist() == [row]
    with pytest.raises(UnsupportedTableError, match="column 'v' is a BLOB"):
        table.upsert([row])
    assert not table.timeline.pending()
