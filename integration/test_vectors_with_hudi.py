"""VECTOR columns: tables of Apache Hudi, read as it reads them, written by both in turns."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer

SETTINGS = {
    "hoodie.spark.sql.insert.into.operation": "upsert",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
}
SHOWN = "id, name, cast(f as string) f, cast(d as string) d, cast(i as string) i, ts"


def floats(*values: float, kind: str = "float") -> str:
    return f"array({', '.join(f'cast({value} as {kind})' for value in values)})"


def row_of(key: str, n: int) -> str:
    return (
        f"('{key}', 'name {n}', {floats(n, 0.1, -2.5)}, {floats(n / 3, 1e300, kind='double')}, "
        f"{floats(n, -128, 127, 0, kind='tinyint')}, {n})"
    )


def shown(hudi: HudiPeer, name: str) -> list[object]:
    hudi.sql(f"refresh table {name}")
    return hudi.sql(f"select id, name, f, d, i, ts from {name} order by id").table.to_pylist()


def mine(path: Path) -> list[object]:
    found = hoodie.open_table(path).scan().to_arrow().select(["id", "name", "f", "d", "i", "ts"])
    return sorted(found.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_vectors_of_both_are_read_by_both(hudi: HudiPeer, tmp_path: Path, kind: str) -> None:
    path, name = tmp_path / "t", f"vectors_{kind}"
    try:
        for key, value in SETTINGS.items():
            hudi.sql(f"set {key}={value}")
        hudi.sql(
            f"create table {name} (id string, name string, f VECTOR(3), d VECTOR(2, DOUBLE), i VECTOR(4, INT8), ts bigint) "
            f"using hudi options(type='{kind}', primaryKey='id', preCombineField='ts') location '{path}'"
        )
        hudi.sql(f"insert into {name} values {row_of('a', 1)}, {row_of('b', 2)}, ('c', null, null, null, null, 1)")
        hudi.sql(f"insert into {name} values {row_of('b', 5)}")
        table = hoodie.open_table(path)
        assert table.schema.field("f").type == pa.list_(pa.float32(), 3)
        assert mine(path) == shown(hudi, name)
        assert mine(path)[1]["i"] == [5, -128, 127, 0]
        table.upsert([{"id": "d", "name": "ours", "f": [1, 2, 3], "d": [0.5, 1e-300], "i": [1, 2, 3, 4], "ts": 9}])
        table.upsert([{"id": "a", "name": "ours", "f": [7.5, 8, 9], "d": None, "i": [0, 0, 0, -1], "ts": 9}])
        assert mine(path) == shown(hudi, name)
        if kind == "mor":
            assert table.compact()
            assert mine(path) == shown(hudi, name)
        table.cluster(sort_by=["id"])
        assert mine(path) == shown(hudi, name)
        hudi.sql(f"insert into {name} values {row_of('d', 11)}")
        assert mine(path) == shown(hudi, name)
    finally:
        hudi.sql("reset")
