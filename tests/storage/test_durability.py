"""What a commit on a disk has synced, and when: before its completed file is there, all that it counts outlives a power cut."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import NamedTuple

import pytest

import hoodie
from hoodie.storage.local import LocalStorage


class Sync(NamedTuple):
    inode: int
    path: str


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[Sync]:
    """What was synced, in order."""
    found: list[Sync] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        real(descriptor)
        found.append(Sync(os.fstat(descriptor).st_ino, os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noted)
    return found


def rows(partitions: int, *, ts: int = 1) -> list[dict[str, object]]:
    return [{"id": n, "day": f"2026/{n:02d}", "ts": ts} for n in range(partitions)]


def new_table(path: Path, table_type: str) -> hoodie.HoodieTable:
    return hoodie.create_table(path, record_key="id", partition_by="day", ordering="ts", table_type=table_type)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("updates", [False, True], ids=["new", "again"])
def test_all_that_a_commit_counts_is_durable_before_it_is_completed(
    tmp_path: Path, syncs: list[Sync], table_type: str, updates: bool
) -> None:
    table = new_table(tmp_path / "t", table_type)
    if updates:
        table.upsert(rows(3))
    before = {path for path in (tmp_path / "t").rglob("*") if ".hoodie/" not in str(path)}
    syncs.clear()
    instant = table.upsert(rows(3, ts=2)).instant
    (completed,) = (tmp_path / "t/.hoodie").glob(f"{instant}.*commit")
    order = [sync.inode for sync in syncs]
    done = order.index(completed.stat().st_ino)
    made = {path for path in (tmp_path / "t").rglob("*") if ".hoodie/" not in str(path)} - before
    files = [path for path in made if path.is_file()]
    assert len(files) == (3 if updates else 6)
    for path in files:
        bytes_of, name_of = order.index(path.stat().st_ino), order.index(path.parent.stat().st_ino)
        assert bytes_of < name_of < done
    for folder in {above for path in files for above in path.parents if above.is_relative_to(tmp_path / "t")}:
        assert folder.stat().st_ino in order[:done]


def test_a_partition_costs_three_waits_and_an_update_of_it_two(tmp_path: Path, syncs: list[Sync]) -> None:
    table = new_table(tmp_path / "t", "MERGE_ON_READ")
    waits = []
    for ts in (1, 2):
        syncs.clear()
        table.upsert(rows(20, ts=ts))
        waits.append(len(syncs))
    assert waits[0] < 3 * 20 + 15
    assert waits[1] < 2 * 20 + 15


def test_a_commit_that_has_to_outlive_the_process_alone_waits_for_its_timeline_files(
    tmp_path: Path, syncs: list[Sync]
) -> None:
    table = new_table(tmp_path / "t", "COPY_ON_WRITE")
    syncs.clear()
    instant = table.upsert(rows(3), {"hoodie.python.durability": "process"}).instant
    (completed,) = (tmp_path / "t/.hoodie").glob(f"{instant}.commit")
    assert completed.stat().st_ino in {sync.inode for sync in syncs}
    assert not {path.stat().st_ino for path in (tmp_path / "t/2026").rglob("*")} & {sync.inode for sync in syncs}
    syncs.clear()
    table.upsert(rows(3))
    assert {path.stat().st_ino for path in (tmp_path / "t/2026").glob("*")} <= {sync.inode for sync in syncs}


def staged(storage: LocalStorage, size_bytes: int, *, at_once: bool) -> int:
    storage.mkdirs("staging")
    if at_once:
        storage.create_all([("staging/f", bytes(size_bytes))], within="staging")
    else:
        with storage.open_output("staging/f", within="staging") as stream:
            stream.write(bytes(size_bytes))
    return storage.stat("staging/f").identity[2]  # type: ignore[index, no-any-return]


@pytest.mark.parametrize("at_once", [False, True], ids=["streamed", "at once"])
@pytest.mark.parametrize(
    ("elsewhere", "size_bytes", "waits"),
    [(False, 1024, False), (False, 2 * 1024 * 1024, True), (True, 1024, True)],
    ids=["small", "large", "in another process"],
)
def test_who_waits_for_a_staged_file(
    tmp_path: Path, syncs: list[Sync], elsewhere: bool, size_bytes: int, waits: bool, at_once: bool
) -> None:
    storage = LocalStorage(tmp_path)
    inode = staged(pickle.loads(pickle.dumps(storage)) if elsewhere else storage, size_bytes, at_once=at_once)
    assert (inode in {sync.inode for sync in syncs}) == waits
    storage.move_new("staging/f", "a/f")
    assert inode in {sync.inode for sync in syncs}
