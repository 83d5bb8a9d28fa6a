"""What the storage in memory adds: its clock, its snapshots, and the tables that are reached by uri."""

from __future__ import annotations

import pickle

import pytest

from hoodie.storage.memory import MemoryStorage, forget_shared_memory_storage, shared_memory_storage


def test_modification_times_come_from_the_clock() -> None:
    storage = MemoryStorage(clock=lambda: 100.0)
    storage.create_new("p/created", b"x")
    storage.clock = lambda: 200.0
    storage.replace("p/replaced", b"x")
    with storage.open_output("p/written") as stream:
        storage.clock = lambda: 300.0
        stream.write(b"x")
    storage.touch("p/touched")
    storage.clock = lambda: 400.0
    storage.touch("p/touched")
    mtimes = {info.path: info.mtime_s for info in storage.list("p")}
    assert mtimes == {"p/created": 100.0, "p/replaced": 200.0, "p/written": 300.0, "p/touched": 400.0}
    assert storage.stat("p").mtime_s == 100.0
    assert storage.now_s() == 400.0


def test_restore_brings_back_the_content_of_the_snapshot() -> None:
    storage = MemoryStorage(clock=lambda: 1.0)
    storage.create_new("a/f", b"old")
    storage.mkdirs("empty")
    before = storage.snapshot()
    storage.clock = lambda: 2.0
    storage.replace("a/f", b"new")
    storage.delete_folder("empty")
    storage.create_new("b/g", b"new")
    storage.restore(before)
    assert storage.read("a/f") == b"old"
    assert storage.stat("a/f").mtime_s == 1.0
    assert storage.exists("empty")
    assert not storage.exists("b")
    assert storage.snapshot() == before


def test_touch_after_a_snapshot_does_not_change_it() -> None:
    storage = MemoryStorage(clock=lambda: 1.0)
    storage.touch("f")
    before = storage.snapshot()
    storage.clock = lambda: 2.0
    storage.touch("f")
    assert before.files == {"f": (b"", 1.0)}


def test_copy_is_a_table_of_its_own() -> None:
    storage = MemoryStorage("memory://x", clock=lambda: 7.0)
    storage.create_new("f", b"both")
    copy = storage.copy()
    storage.replace("f", b"first")
    copy.create_new("g", b"second")
    assert (copy.uri, copy.now_s()) == ("memory://x", 7.0)
    assert copy.read("f") == b"both"
    assert not storage.exists("g")


def test_it_is_not_sent_to_other_processes() -> None:
    with pytest.raises(TypeError, match="memory://x"):
        pickle.dumps(MemoryStorage("memory://x"))


def test_there_is_no_path_of_the_operating_system() -> None:
    assert MemoryStorage().can.local_path("f") is None


def test_shared_storage_is_one_until_it_is_forgotten() -> None:
    first = shared_memory_storage("memory://shared-in-test")
    try:
        assert shared_memory_storage("memory://shared-in-test") is first
        assert shared_memory_storage("memory://another-in-test") is not first
    finally:
        forget_shared_memory_storage("memory://shared-in-test")
        forget_shared_memory_storage("memory://another-in-test")
    assert shared_memory_storage("memory://shared-in-test") is not first
    forget_shared_memory_storage("memory://shared-in-test")
    forget_shared_memory_storage("memory://shared-in-test")
