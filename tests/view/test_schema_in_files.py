"""Tables whose commits and properties state no schema have that of their files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from tests.public_tables import read_view

ROWS = pa.table({"id": [1, 2], "at": pa.array([0, None], pa.timestamp("us", "UTC")), "l": [[1], []]})


def stateless(path):
    """The table, once nothing but its files states its columns."""
    for commit in (path / ".hoodie").glob("*commit"):
        content = json.loads(commit.read_text(encoding="utf-8"))
        del content["extraMetadata"]["schema"]
        commit.write_text(json.dumps(content), encoding="utf-8")
    assert "create.schema" not in (path / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    return hoodie.open_table(path)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_every_view_has_the_columns_of_the_newest_file(tmp_path, table_type):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type=table_type)
    first = table.upsert(ROWS).instant
    table.upsert(ROWS.slice(0, 1).append_column("more", pa.array(["x"])))
    views = {
        "snapshot": lambda table: table.scan(),
        "as of": lambda table: table.scan(as_of=first),
        "pull": lambda table: table.changes(),
        "feed": lambda table: table.changes(images="before_after"),
        "filter": lambda table: table.scan(where="at is null"),
    }
    expected = {name: view(table).to_arrow() for name, view in views.items()}
    schema = table.schema
    table = stateless(tmp_path / "t")
    assert table.schema == schema
    assert {name: view(table).to_arrow() for name, view in views.items()} == expected
    assert table.validate(deep=True).rows == 2
    table.upsert(ROWS.slice(1, 1).append_column("more", pa.array(["y"])))
    assert sorted(table.scan().to_arrow()["more"].to_pylist()) == ["x", "y"]


def test_a_table_of_logs_has_the_columns_of_their_blocks(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="merge_on_read")
    table.upsert(ROWS)
    table.upsert(ROWS)
    first = next((tmp_path / "t").glob("*.parquet"))
    table = stateless(tmp_path / "t")
    first.unlink()
    assert table.schema.names == ROWS.schema.names


def test_a_file_without_an_avro_schema_has_its_parquet_columns(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(ROWS)
    schema = table.schema
    file = next((tmp_path / "t").glob("*.parquet"))
    pq.write_table(pq.read_table(file).replace_schema_metadata(), file, use_deprecated_int96_timestamps=True)
    assert stateless(tmp_path / "t").schema == schema


def test_a_table_whose_files_are_gone_has_no_columns(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(ROWS)
    next((tmp_path / "t").glob("*.parquet")).unlink()
    assert stateless(tmp_path / "t").schema is None


def test_the_public_table(public):
    table = public("commits_load_schema_from_base_file_cow")
    opened = hoodie.open_table(table.path)
    assert opened.schema.names == table.stated["columns"]
    assert read_view(opened, "snapshot") == table.expected("snapshot")
