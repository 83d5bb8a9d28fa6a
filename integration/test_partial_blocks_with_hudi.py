"""Partial upserts of hoodie as log blocks with some columns only, read by Apache Hudi and hudi-rs, and compacted by Apache Hudi."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.views import View, by_hudi, by_rust, ours

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int32()), ("text", pa.string()), ("ts", pa.int64())]
)
ON = {"hoodie.python.upsert.partial.blocks": "true", "hoodie.clean.automatic": "false"}


def rows(*found: tuple[str, int, str | None, int]) -> pa.Table:
    named = [{"id": key, "part": key[-1], "n": n, "text": text, "ts": ts} for key, n, text, ts in found]
    return pa.Table.from_pylist(named, schema=SCHEMA)


@pytest.mark.parametrize("version", ["8", "9"])
def test_all_readers_see_the_same_rows(hudi: HudiPeer, tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": version,
    }
    hoodie.create_table(path, SCHEMA, record_key="id", options=options)

    def check() -> None:
        mine = ours(path, View())
        assert by_hudi(hudi)(path, View()) == mine
        assert by_rust(path, View()) == mine

    def partial(data: pa.Table, *names: str) -> None:
        hoodie.open_table(path, options=ON).upsert(data.select(["id", "part", *names, "ts"]), partial=True)
        check()

    whole = hoodie.open_table(path, options=ON)
    whole.upsert(rows(*((f"{n}{part}", n, f"t{n}", 10) for n in range(4) for part in "ab")))
    partial(rows(("0a", 100, None, 20), ("1a", 101, None, 5), ("2b", 102, None, 10)), "n")
    partial(rows(("0a", 200, None, 30), ("3a", 203, None, 30)), "n")
    partial(rows(("0a", 0, "u0", 40), ("2b", 0, "u2", 40)), "text")
    hoodie.open_table(path, options=ON).upsert(rows(("0a", 300, "v0", 50), ("1a", 301, None, 50)))
    check()
    hoodie.open_table(path, options=ON).delete(rows(("3a", 0, None, 0), ("3b", 0, None, 0)).select(["id", "part"]))
    check()
    partial(rows(("1b", 401, None, 60), ("2b", 402, None, 5), ("9b", 409, None, 1)), "n")
    hudi.write(
        path,
        rows(("1b", 500, "w1", 70), ("0b", 500, "w0", 70)),
        options | {"hoodie.datasource.write.operation": "upsert"},
    )
    check()
    hudi.run_compaction(path, op="scheduleAndExecute")
    check()
    assert ours(path, View("read_optimized")) == ours(path, View())
