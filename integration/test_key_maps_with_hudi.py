"""Base files with key maps: Apache Hudi and hudi-rs read them, and Hudi writes after hoodie."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.key_map import key_map_of
from integration import rust_peer

ROWS = 20_000
MAPS = {"hoodie.python.parquet.key.map": "true"}


def rows(*numbers, ts=1):
    return pa.table({"id": [f"k{n * 7919 % 1_000_003:07}" for n in numbers], "ts": [ts] * len(numbers), "n": numbers})


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_peers_pass_over_key_maps(hudi, tmp_path, table_type):
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type=table_type)
    table.bulk_insert(rows(*range(ROWS)), options=MAPS)
    (file,) = path.glob("*.parquet")
    assert key_map_of(memoryview(file.read_bytes())) is not None
    table.upsert(rows(1, 2, ts=2), MAPS)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
    }
    for turn in range(2):
        assert sorted(hudi.read(path).table.column("n").to_pylist()) == list(range(ROWS + turn))
        assert sorted(row["n"] for row in rust_peer.read(path)) == list(range(ROWS + turn))
        hudi.write(path, rows(2, 3, ROWS + turn, ts=3 + turn), options)
        sought = rows(1, 2, 3, ROWS + turn, 5 * ROWS)["id"].to_pylist()
        found = hoodie.open_table(path).lookup(sought).to_arrow().sort_by("n")
        assert found.column("n").to_pylist() == [1, 2, 3, ROWS + turn]
        assert found.column("ts").to_pylist() == [2, 3 + turn, 3 + turn, 3 + turn]
        hoodie.open_table(path).upsert(rows(4, ts=9), MAPS)
    assert hoodie.open_table(path).validate(deep=True)
