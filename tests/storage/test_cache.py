"""What a process keeps: within one bound, the values that were asked for last, and a file's own only."""

import os
import pickle
import threading

import pytest

import hoodie.storage.cache as cache_module
from hoodie.errors import OptionError
from hoodie.storage.cache import Cache, Kind, file_key, process_cache
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage

ONE: Kind[str] = Kind("one")
OTHER: Kind[str] = Kind("other")
ROOM = 64 * 1024


def test_kinds_have_keys_of_their_own():
    cache = Cache()
    cache.put(ONE, "k", "v", 1)
    assert (cache.find(ONE, "k"), cache.find(OTHER, "k")) == ("v", None)


def test_what_is_there_is_not_loaded_again():
    cache, loads = Cache(), []
    for _ in range(3):
        assert cache.get(ONE, "k", lambda: loads.append(1) or "v", len) == "v"
    assert loads == [1]


def test_all_kinds_share_one_bound_and_those_asked_least_recently_go():
    forgotten = []
    counted: Kind[str] = Kind("counted", forget=forgotten.append)
    cache = Cache(ROOM)
    for number in range(20):
        cache.put(counted if number % 2 else ONE, number, f"v{number}", 9 * 1024)
        cache.find(ONE, 0)
    kept = [number for number in range(20) if cache.find(counted if number % 2 else ONE, number)]
    assert kept == [0, 15, 16, 17, 18, 19]
    assert forgotten == [f"v{number}" for number in range(1, 15, 2)]


def test_a_value_is_replaced_and_counted_once():
    cache = Cache(ROOM)
    for number in range(20):
        cache.put(ONE, "k", f"v{number}", 20 * 1024)
    cache.put(ONE, "l", "w", 20 * 1024)
    assert (cache.find(ONE, "k"), cache.find(ONE, "l")) == ("v19", "w")


def test_what_would_take_too_much_of_the_room_is_not_kept_nor_what_it_replaces():
    cache = Cache(ROOM)
    cache.put(ONE, "k", "small", 1)
    cache.put(ONE, "l", "small", 1)
    cache.put(ONE, "k", "large", ROOM // 2)
    assert (cache.find(ONE, "k"), cache.find(ONE, "l")) == (None, "small")


def test_what_is_taken_is_of_one_taker():
    cache, taken = Cache(), []
    cache.put(ONE, "k", "v", 1)
    threads = [threading.Thread(target=lambda: taken.append(cache.take(ONE, "k"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken, key=str) == [*[None] * 7, "v"]


def test_in_another_process_it_is_that_ones_own():
    assert pickle.loads(pickle.dumps(Cache(1))) is process_cache()


@pytest.mark.parametrize("made", [LocalStorage, lambda folder: FaultStorage(LocalStorage(folder))])
def test_two_openings_of_a_folder_have_the_same_files(tmp_path, made):
    (tmp_path / "f").write_bytes(b"1")
    one, other = LocalStorage(tmp_path), made(tmp_path)
    assert file_key(one, one.stat("f")) == file_key(other, other.stat("f"))
    assert file_key(one, one.stat("f")) == file_key(one, one.list("")[0])


def test_two_memories_of_one_uri_have_different_files():
    one, other = MemoryStorage(), MemoryStorage()
    for storage in (one, other):
        storage.create_new("f", b"1")
    assert file_key(one, one.stat("f")) != file_key(other, other.stat("f"))


def put_another_there(path):
    (path.parent / "g").write_bytes(b"1")
    os.utime(path.parent / "g", ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    (path.parent / "g").replace(path)


@pytest.mark.parametrize(
    "change", [lambda path: os.utime(path, (1, 1)), lambda path: path.write_bytes(b"12"), put_another_there]
)
def test_a_file_that_was_replaced_is_another(tmp_path, change):
    storage = LocalStorage(tmp_path)
    (tmp_path / "f").write_bytes(b"1")
    before = file_key(storage, storage.stat("f"))
    change(tmp_path / "f")
    assert file_key(storage, storage.stat("f")) != before


@pytest.mark.parametrize("change", ["replace", "anew", "restore"])
def test_a_file_in_memory_that_was_replaced_at_the_same_moment_is_another(change):
    storage = MemoryStorage(clock=lambda: 1.0)
    storage.create_new("f", b"1")
    before, snapshot = file_key(storage, storage.stat("f")), storage.snapshot()
    if change == "replace":
        storage.replace("f", b"2")
    elif change == "anew":
        storage.delete("f")
        storage.create_new("f", b"2")
    else:
        storage.restore(snapshot)
    assert file_key(storage, storage.stat("f")) != before


@pytest.mark.parametrize(("setting", "megabytes"), [(None, 192), ("", 192), (" 512 ", 512), ("0", 0)])
def test_the_bound_of_a_process_can_be_set(setting, megabytes, monkeypatch):
    monkeypatch.delenv("HOODIE_CACHE_MB", raising=False)
    if setting is not None:
        monkeypatch.setenv("HOODIE_CACHE_MB", setting)
    assert cache_module._of_process.__wrapped__().capacity_bytes == megabytes * 1024 * 1024


def test_a_bound_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("HOODIE_CACHE_MB", "1 GB")
    with pytest.raises(OptionError, match="HOODIE_CACHE_MB='1 GB' is not a whole number of megabytes"):
        cache_module._of_process.__wrapped__()
