"""Positions in log blocks of hoodie: Apache Hudi reads and compacts by them what it reads by keys."""

from pathlib import Path

import pytest

import hoodie
import hoodie.filegroup.positions
from hoodie.format.roaring import encode_positions
from integration.change_queries import SCHEMA, rows
from integration.hudi_client import HudiPeer
from integration.turns import COMPACT_NOW
from integration.views import View, by_hudi, by_rust, ours

BY_KEYS = {"hoodie.merge.use.record.positions": "false"}
"""Apache Hudi goes by positions else."""
KEEP = {"hoodie.clean.automatic": "false"}


OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.table.version": "9",
}


def test_wrong_positions_give_wrong_rows(hudi: HudiPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So Apache Hudi goes by them in the other test."""
    monkeypatch.setattr(hoodie.filegroup.positions, "encode_positions", lambda found: encode_positions(found + 1))
    table = hoodie.create_table(tmp_path / "t", SCHEMA, record_key="id", options=OPTIONS)
    table.upsert(rows(*(f"{n}a" for n in range(30)), n=0, ts=10))
    table.upsert(rows("5a", "9a", n=1, ts=20))
    mine = ours(tmp_path / "t", View())
    assert by_hudi(hudi, BY_KEYS)(tmp_path / "t", View()) == mine
    assert by_hudi(hudi)(tmp_path / "t", View()) != mine


def test_of_rows_with_one_key_both_ways_find_the_same(hudi: HudiPeer, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hoodie.create_table(path, SCHEMA, record_key="id", options=OPTIONS)
    table.insert(rows("1a", "2a", "1a", "3a", "1a", n=0, ts=10))
    table.upsert(rows("3a", "1a", n=1, ts=20))
    mine = ours(path, View())
    assert by_hudi(hudi, BY_KEYS)(path, View()) == mine
    assert by_hudi(hudi)(path, View()) == mine
    table.delete(rows("2a", "1a", n=1, ts=20).select(["id", "part"]))
    mine = ours(path, View())
    assert by_hudi(hudi, BY_KEYS)(path, View()) == mine
    assert by_hudi(hudi)(path, View()) == mine


@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_are_found_by_positions(hudi: HudiPeer, tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    options = OPTIONS | {"hoodie.write.table.version": version}
    hoodie.create_table(path, SCHEMA, record_key="id", options=options)

    def check() -> None:
        mine = ours(path, View())
        assert by_hudi(hudi, BY_KEYS)(path, View()) == mine
        assert by_hudi(hudi)(path, View()) == mine
        assert by_rust(path, View()) == mine

    def table() -> hoodie.HoodieTable:
        return hoodie.open_table(path, options=KEEP)

    table().upsert(rows(*(f"{n:03}{part}" for part in "ab" for n in range(300)), n=0, ts=10))
    table().upsert(rows(*(f"{n:03}{part}" for part in "ab" for n in range(299, 0, -3)), n=1, ts=20))
    check()
    table().delete(rows("007a", "299a", "003b", "150b", n=0, ts=0).select(["id", "part"]))
    check()
    hudi.write(
        path, rows("007a", "011a", "300b", n=2, ts=30), {**options, "hoodie.datasource.write.operation": "upsert"}
    )
    table().schedule_compaction()
    table().upsert(rows(*(f"{n:03}{part}" for part in "ab" for n in range(0, 300, 7)), n=3, ts=40))
    check()
    table().run_compaction()
    check()
    table().upsert(rows("000a", "001a", "400a", n=4, ts=50))
    check()
    hudi.run_compaction(path, op="scheduleAndExecute", options=COMPACT_NOW)
    check()
    assert ours(path, View("read_optimized")) == ours(path, View())
