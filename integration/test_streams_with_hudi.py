"""A stream's batches by turns with Apache Hudi's streaming sink: each of them once, whoever writes; and both peers read the table."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from integration.rust_peer import read as read_by_rust

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.insert.drop.duplicates": "false",
}


def rows(*keys):
    return pa.Table.from_pylist([{"id": key, "part": "p", "ts": 1} for key in keys], schema=SCHEMA)


def ours(path, query, number, *keys):
    """One batch as our sink writes it, told to go on from Hudi's record."""
    options = {
        "hoodie.python.stream.id": query,
        "hoodie.python.stream.batch": str(number),
        "hoodie.datasource.write.streaming.checkpoint.identifier": "default_single_writer",
    }
    return hoodie.open_table(str(path)).insert(rows(*keys), options).instant


def keys_of(path):
    return sorted(row["id"] for row in hoodie.open_table(str(path)).scan(columns=["id"]).to_arrow().to_pylist())


def forget_the_last_commit(checkpoint):
    """What Spark knows after a crash between the table's commit and its own."""
    last = max((each for each in (checkpoint / "commits").iterdir() if each.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stream_goes_from_hudi_to_us_and_back_and_no_batch_twice(hudi, tmp_path, kind):
    path, folder, checkpoint = tmp_path / "t", tmp_path / "in", tmp_path / "cp"
    folder.mkdir()
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    for number in range(2):
        pq.write_table(rows(f"k{number}"), folder / f"{number}.parquet")
    query = hudi.stream(path, folder, checkpoint, options)
    assert keys_of(path) == ["k0", "k1"]
    assert json.loads((checkpoint / "metadata").read_text())["id"] == query
    assert ours(path, query, 1, "k1") is None
    assert ours(path, query, 2, "k2") is not None
    pq.write_table(rows("k2"), folder / "2.parquet")
    hudi.stream(path, folder, checkpoint, options)
    assert keys_of(path) == ["k0", "k1", "k2"]  # Hudi took batch 2 for written
    pq.write_table(rows("k3"), folder / "3.parquet")
    hudi.stream(path, folder, checkpoint, options)
    assert ours(path, query, 3, "k3") is None
    assert ours(path, query, 4, "k4") is not None
    expected = ["k0", "k1", "k2", "k3", "k4"]
    assert keys_of(path) == expected
    assert sorted(row["id"] for row in hudi.read(path).table.to_pylist()) == expected
    assert sorted(row["id"] for row in read_by_rust(path)) == expected


def test_streams_that_name_no_identifier_leave_hudis_stream_alone(hudi, tmp_path):
    path, folder, checkpoint = tmp_path / "t", tmp_path / "in", tmp_path / "cp"
    folder.mkdir()
    pq.write_table(rows("k0"), folder / "0.parquet")
    hudi.stream(path, folder, checkpoint, OPTIONS)
    numbered = {"hoodie.python.stream.id": "mine", "hoodie.python.stream.batch": "7"}
    assert hoodie.open_table(str(path)).insert(rows("mine"), numbered).instant is not None
    pq.write_table(rows("k1"), folder / "1.parquet")
    hudi.stream(path, folder, checkpoint, OPTIONS)
    assert keys_of(path) == ["k0", "k1", "mine"]
    forget_the_last_commit(checkpoint)
    hudi.stream(path, folder, checkpoint, OPTIONS)
    assert keys_of(path) == ["k0", "k1", "mine"]  # Hudi found its own record behind ours
