"""A log that was cut after its writer had ended: committed windows are missing, and that is found."""

import errno
from dataclasses import replace

import pytest

import hoodie.kv
from hoodie.cli.__main__ import main
from hoodie.errors import CommitOutcomeUnknownError, CorruptFileError, StorageFullError
from hoodie.kv.settings import StoreOptions
from hoodie.storage.faults import Fault, FaultStorage
from tests.kv.stores import KINDS, SMALL, Place, abandon, committed

WINDOWS = 5
BUCKET = "buckets-00000001/00000"


def written(place, options=SMALL):
    store = place.store(options, buckets=1)
    with store.writer(0) as writer:
        for window in range(1, WINDOWS + 1):
            writer.put(b"k%d" % window, b"x" * 50)
            writer.end_window(window)
    return place.folders[BUCKET]


def segments(storage):
    return [info.path for info in storage.list("wal")]


@pytest.mark.parametrize("roomy", [True, False], ids=["one segment", "many"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_was_cut_anywhere_is_found(kind, roomy):
    options = SMALL if roomy else replace(SMALL, max_wal_file_size=100)
    place = Place(kind)
    storage = written(place, options)
    path = max((p for p in segments(storage) if storage.stat(p).size_bytes > 40), key=len)
    content = storage.read(path)
    for cut in range(0, len(content), 7):
        storage.replace(path, content[:cut])
        with pytest.raises(CorruptFileError, match=r"\.wal"):
            place.elsewhere().store().writer(0)
    storage.replace(path, content)
    with place.store().writer(0) as writer:
        assert writer.last_window == WINDOWS


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_whose_newest_segment_is_gone_is_found(kind):
    place = Place(kind)
    storage = written(place)
    storage.delete(segments(storage)[-1])
    with pytest.raises(CorruptFileError, match="is missing"):
        place.store().writer(0)


def test_windows_that_are_lost_can_be_gone_without():
    place = Place()
    storage = written(place)
    (path,) = (p for p in segments(storage) if storage.stat(p).size_bytes > 40)
    storage.replace(path, storage.read(path)[: storage.stat(path).size_bytes // 2])
    with pytest.raises(CorruptFileError, match="accept_loss=True"):
        place.store().writer(0)
    with place.store().writer(0, accept_loss=True) as writer:
        assert writer.last_window == 2
        writer.put(b"k3", b"again")
        writer.end_window(3)
    with place.store().writer(0) as writer:
        assert writer.last_window == 3
        assert committed(writer)[b"k3"] == b"again"


def test_a_writer_that_died_may_leave_a_torn_window():
    place = Place()
    store = place.store(buckets=1)
    writer = store.writer(0)
    for window in (1, 2):
        writer.put(b"k%d" % window, b"x" * 50)
        writer.end_window(window)
    abandon(writer)
    storage = place.folders[BUCKET]
    (path,) = segments(storage)
    storage.replace(path, storage.read(path)[:-3])
    with place.store().writer(0) as writer:
        assert writer.last_window == 1


def test_a_full_disk_is_told_by_the_store_and_its_bucket():
    place = Place()
    store = place.store(buckets=1)
    storage = place.folders.get(BUCKET) or place(BUCKET)
    faulty = FaultStorage(storage)
    place.wrap = lambda inner: faulty if inner is storage else inner
    writer = store.writer(0)
    writer.put(b"a", b"1")
    writer.end_window(1)
    faulty.revive([Fault(1, "torn", errno.ENOSPC)])
    writer.put(b"a", b"2")
    with pytest.raises(CommitOutcomeUnknownError, match="No space left"):
        writer.end_window(2)
    writer.close()
    faulty.revive([Fault(n, "before", errno.ENOSPC) for n in range(1, 20)])
    with pytest.raises(StorageFullError, match="make room"):
        store.writer(0)
    assert store.last_window(0) == 1
    faulty.revive()
    with store.writer(0) as again:
        assert again.last_window == 1
        assert committed(again) == {b"a": b"1"}


@pytest.fixture
def store(tmp_path):
    store = hoodie.kv.open_store(tmp_path / "s", buckets=2)
    for bucket in (0, 1):
        with store.writer(bucket) as writer:
            for window in range(1, 4):
                writer[b"k%d" % window] = b"x" * 50
                writer.end_window(window)
                if window == 1:
                    writer.flush()
    return tmp_path / "s"


def damaged_data(bucket):
    (path,) = bucket.glob("data/*")
    content = bytearray(path.read_bytes())
    content[len(content) // 8] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "log cut": (lambda bucket: cut(max(bucket.glob("wal/*"), key=lambda p: p.stat().st_size)), []),
    "data cut": (lambda bucket: cut(next(bucket.glob("data/*"))), []),
    "data gone": (lambda bucket: next(bucket.glob("data/*")).unlink(), []),
    "data damaged": (damaged_data, ["--rows"]),
    "metadata damaged": (lambda bucket: cut(max(bucket.glob("meta/*"))), []),
}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_check_names_the_damaged_bucket(store, damage, capsys):
    assert main(["kv", "check", str(store), "--rows"]) == 0
    assert "all 2 buckets are whole" in capsys.readouterr().out
    harm, flags = DAMAGES[damage]
    harm(store / "buckets-00000001/00001")
    assert main(["kv", "check", str(store), *flags]) == 1
    assert "1 of 2 buckets are damaged" in capsys.readouterr().out


def test_a_check_goes_on_beside_a_writer(store):
    opened = hoodie.kv.open_store(store)
    with opened.writer(0) as writer:
        writer[b"a"] = b"1"
        writer.end_window(9)
        writer[b"b"] = b"of no window yet"
        found = opened.check(rows=True)
    assert [(each.bucket, each.window, each.problem) for each in found] == [(0, 9, ""), (1, 3, "")]


def test_process_durability_states_nothing_that_a_power_cut_may_take():
    place = Place()
    storage = written(place, StoreOptions(sync="process"))
    (path,) = (p for p in segments(storage) if storage.stat(p).size_bytes > 40)
    storage.replace(path, storage.read(path)[:-5])
    with place.store(StoreOptions(sync="process")).writer(0) as writer:
        assert writer.last_window == WINDOWS - 1
