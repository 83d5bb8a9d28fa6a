"""Tables whose files have shredded variants, as Apache Hudi on Spark 4 may write them: read in every view, and rewritten whole."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import UnsupportedTableError
from hoodie.format.variant_values import encoded
from tests.shredding import NULL, shred_files

KIND = {"n": pa.int64(), "tags": [pa.string()], "deep": {"x": pa.string()}}
VALUES = {
    1: {"n": 1, "tags": ["a", None], "other": True},
    2: {"n": "no number", "deep": {"x": "y", "z": 1.5}},
    3: NULL,
    4: [1, 2],
    5: {"deep": "flat"},
    6: None,
}


def rows_of(numbers, ts):
    shown = {each: None if VALUES[each] is NULL else json.dumps(VALUES[each]) for each in numbers}
    return [{"id": each, "v": text, "ts": ts} for each, text in shown.items()]


@pytest.fixture(params=[("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "9")])
def table(request, tmp_path):
    """In which rows 4 to 6 came later."""
    kind, version = request.param
    options = {"hoodie.write.table.version": version, "hoodie.logfile.data.block.format": "parquet"}
    columns = {"id": int, "v": "variant", "ts": int}
    made = hoodie.create_table(tmp_path / "t", columns, record_key="id", table_type=kind, options=options)
    made.upsert(rows_of([1, 2, 3, 4], 1))
    made.upsert(rows_of([4, 5, 6], 2))
    assert shred_files(made, VALUES, KIND) > 1
    return hoodie.open_table(made.uri)


def stored(table):
    return {row["id"]: row["v"] for row in table._pinned(stored=True)(["id", "v"], None).to_arrow().to_pylist()}


def expected():
    pairs = {each: None if value is NULL else encoded(value) for each, value in VALUES.items()}
    return {each: pair and {"metadata": pair[0], "value": pair[1]} for each, pair in pairs.items()}


def by_id(scan):
    return {row["id"]: row["v"] and json.loads(row["v"]) for row in scan.to_arrow().to_pylist()}


def test_every_view_gives_whole_values(table):
    shown = {each: None if value is NULL else value for each, value in VALUES.items()}
    assert stored(table) == expected()
    assert by_id(table.scan()) == shown
    assert by_id(table.lookup([2, 5])) == {2: shown[2], 5: shown[5]}
    assert by_id(table.changes()) == shown
    assert by_id(table.scan(where="v is null")) == {3: None}
    assert table.scan(where="v is not null").count() == 5
    assert by_id(table.scan(as_of=table.history()[-2])).keys() == {1, 2, 3, 4}
    optimized = by_id(table.scan(query="read_optimized"))
    assert {each: optimized[each] for each in (1, 2, 3)} == {each: shown[each] for each in (1, 2, 3)}
    assert hoodie.sql("SELECT v -> 'deep' ->> 'x' AS x FROM t WHERE id = 2", t=table).to_pylist() == [{"x": "y"}]


def test_writes_keep_the_values_and_store_them_whole(table):
    table.upsert([{"id": 1, "ts": 3}], partial=True)
    table.update({"ts": "ts + 1"}, where="id < 3")
    assert stored(table) == expected()
    if table.config.table_type == "MERGE_ON_READ":
        assert table.compact()
    table.cluster(sort_by=["id"])
    assert stored(table) == expected()
    newest = max(Path(table.uri).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert [field.name for field in pq.read_schema(newest).field("v").type] == ["metadata", "value"]


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_their_files_are_not_published(tmp_path, target):
    """Readers of other formats would give null, or objects without some of their fields."""
    table = hoodie.create_table(tmp_path / "t", {"id": int, "v": "variant"}, record_key="id")
    table.upsert([{"id": 1, "v": {"n": 1}}])
    shred_files(table, {1: {"n": 1}}, {"n": pa.int64()})
    table = hoodie.open_table(table.uri)
    with pytest.raises(UnsupportedTableError, match="typed_value"):
        table.publish(target)
    assert table.cluster(sort_by=["id"])
    table.publish(target)
