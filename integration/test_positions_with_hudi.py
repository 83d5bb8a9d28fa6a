"""Positions in log blocks of hoodie: Apache Hudi reads and compacts by them what it reads by keys."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
import hoodie.filegroup.positions
from hoodie.filegroup.positions import encode_positions
from integration.change_queries import SCHEMA, rows
from integration.hudi_client import HudiPeer
from integration.turns import COMPACT_NOW
from integration.views import View, by_hudi, by_rust, ours
from tests.effort import soak_but

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


@pytest.mark.parametrize("index", soak_but(["GLOBAL_SIMPLE"], ["GLOBAL_SIMPLE", "RECORD_INDEX", "SIMPLE", "BUCKET"]))
def test_by_each_index(hudi: HudiPeer, tmp_path: Path, index: str) -> None:
    path, chance = tmp_path / "t", random.Random(7)
    options = OPTIONS | KEEP | {"hoodie.index.type": index}
    if index == "RECORD_INDEX":
        options |= {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
        options |= {"hoodie.record.index.update.partition.path": "true"}
    if index == "BUCKET":
        options |= {"hoodie.bucket.index.num.buckets": "2"}
    hoodie.create_table(path, SCHEMA, record_key="id", options=options)
    names = [f"k{n:03}" for n in range(100)]
    places = {name: chance.choice("ab") for name in names}
    for turn in range(6):
        some = chance.sample(names, 40) if turn else names
        if index in ("GLOBAL_SIMPLE", "RECORD_INDEX"):
            places |= {name: chance.choice("ab") for name in some}
        found = [{"id": name, "part": places[name], "n": turn, "tags": [], "ts": turn} for name in some]
        table = hoodie.open_table(path, options=options)
        table.upsert(pa.Table.from_pylist(found, schema=SCHEMA))
        table.delete(some[:10])
        assert by_hudi(hudi)(path, View()) == ours(path, View()), turn
        if turn == 3:
            table.schedule_compaction()
        if turn == 4:
            table.run_compaction()
