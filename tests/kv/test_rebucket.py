"""More buckets or fewer: the same rows, whatever happens on the way."""

from contextlib import suppress

import pytest

import hoodie.kv
from hoodie.errors import HoodieError, LockError, OptionError, TableChangedError
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.effort import long_but
from tests.kv.stores import KINDS, Place, binary

ROWS = {b"k%03d" % n: b"v%d" % n for n in range(90)}


def filled(kind="files", buckets=2, *, flush=True):
    place = Place(kind)
    store = place.store(buckets=buckets)
    for bucket in range(buckets):
        with store.writer(bucket) as writer:
            some = [key for key in ROWS if store.bucket_of(key) == bucket]
            for window, part in ((1, some[::2]), (2, some[1::2])):
                writer.put_many(binary(part), binary([ROWS[key] for key in part]))
                writer.end_window(window)
                if flush and window == 1:
                    writer.flush()
    return place


def rows_of(store):
    """By looking into data files and logs of all buckets."""
    found = {}
    for bucket in range(store.buckets):
        with store.writer(bucket) as writer:
            writer.flush()
            assert writer.last_window == 2
        for key, value in store.reader(bucket):
            assert store.bucket_of(key) == bucket
            assert found.setdefault(key, value) is value
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_the_rows_are_spread_anew(kind, buckets):
    place = filled(kind)
    store = place.store()
    store.rebucket(buckets)
    assert store.buckets == place.store().buckets == buckets
    assert rows_of(store) == rows_of(place.store()) == ROWS
    assert not place("").exists("buckets-00000001") or kind == "files"


@pytest.mark.parametrize("kind", long_but(["objects"], KINDS))
def test_a_process_that_dies_on_the_way_leaves_the_store_as_it_was_or_as_it_shall_be(kind):
    whole = filled(kind)
    traced = []

    def traces(storage):
        traced.append(FaultStorage(storage))
        return traced[-1]

    other = whole.after_a_crash()
    other.wrap = traces
    other.store().rebucket(3)
    points = [(number, fault) for number, each in enumerate(traced) for fault in crash_points(each.trace)]
    assert len(points) > 50
    for number, fault in points:
        place, seen = whole.after_a_crash(), []

        def dies(storage, seen=seen, number=number, fault=fault):
            seen.append(FaultStorage(storage, [fault] if len(seen) == number else []))
            return seen[-1]

        place.wrap = dies
        with suppress(InjectedFault, HoodieError, OSError):
            place.store().rebucket(3)
        after = place.after_a_crash()
        assert rows_of(after.store()) == ROWS, (number, fault)
        again = place.after_a_crash()
        again.store().rebucket(4)
        assert rows_of(again.store()) == ROWS, (number, fault)


@pytest.mark.parametrize("kind", KINDS)
def test_who_opened_the_store_before_is_told(kind):
    place = filled(kind)
    before, reader = place.store(), place.store().reader(0, max_age_s=None)
    assert dict(reader)
    place.store().rebucket(3)
    for act in (lambda: before.writer(0), lambda: before.reader(1), reader.refresh):
        with pytest.raises(TableChangedError, match="open it again"):
            act()
    assert rows_of(place.store()) == ROWS


def test_a_bucket_with_a_writer_is_not_moved(tmp_path):
    store = hoodie.kv.open_store(tmp_path / "s", buckets=2)
    with store.writer(1), pytest.raises(LockError, match="bucket 1"):
        hoodie.kv.open_store(tmp_path / "s").rebucket(4)
    assert hoodie.kv.open_store(tmp_path / "s").buckets == 2


def test_buckets_at_different_windows_need_a_word_on_which_is_whole():
    place = filled()
    with place.store().writer(0) as writer:
        writer.end_window(3)
    with pytest.raises(OptionError, match="stand at windows 2 to 3: say by window="):
        place.store().rebucket(3)
    with pytest.raises(OptionError, match="stands at window 3, which is beyond window=2"):
        place.store().rebucket(3, window=2)
    place.store().rebucket(3, window=3)
    for bucket in range(3):
        with place.store().writer(bucket) as writer:
            assert writer.last_window == 3


def test_export_and_import(tmp_path):
    store = hoodie.kv.open_store(tmp_path / "s", buckets=2)
    rows = filled().store()
    for bucket in range(2):
        with rows.writer(bucket) as writer:
            writer.flush()
    assert store.import_rows(rows.scan(), 7) == len(ROWS)
    assert store.import_rows(rows.scan(), 7) == len(ROWS)  # it is there already
    assert {key: value for bucket in range(2) for key, value in store.reader(bucket)} == ROWS
    assert store.export_parquet(str(tmp_path / "all.parquet")) == len(ROWS)
    import pyarrow.parquet as pq  # noqa: PLC0415

    found = pq.read_table(tmp_path / "all.parquet").to_pydict()
    assert dict(zip(found["key"], found["value"], strict=True)) == ROWS


def test_a_store_is_what_it_was_made_as(tmp_path):
    hoodie.kv.open_store(tmp_path / "s", buckets=3, order="int64")
    for wrong in ({"buckets": 4}, {"order": "descending"}):
        with pytest.raises(OptionError, match="leave it out to open the store as it is"):
            hoodie.kv.open_store(tmp_path / "s", **wrong)
    assert hoodie.kv.open_store(tmp_path / "s").order == "int64"
    for wrong in (
        {"buckets": 0},
        {"compression": "lzw"},
        {"keep_replaced_s": -1},
        {"file_format": "blocks", "compression": "zstd"},
        {"file_format": "none"},
        {"order": "none"},
        {"flush_size": 0},
        {"sync": "never"},
    ):
        with pytest.raises(OptionError):
            hoodie.kv.open_store(tmp_path / "other", **wrong)
        assert not (tmp_path / "other").exists()
    with pytest.raises(OptionError, match="there is no bucket 3"):
        hoodie.kv.open_store(tmp_path / "s").writer(3)


def test_integers_in_their_order(tmp_path):
    store = hoodie.kv.open_store(tmp_path / "s", buckets=1, order="int64")
    numbers = [5, -3, 2**62, 0, -(2**63), 17]
    with store.writer(0) as writer:
        for n in numbers:
            writer.put(n.to_bytes(8, "little", signed=True), b"%d" % n)
        writer.end_window(1)
        writer.flush()
    assert [int(value) for _, value in store.reader(0)] == sorted(numbers)
    low, high = (n.to_bytes(8, "little", signed=True) for n in (-3, 17))
    found = [value for batch in store.reader(0).scan(low, high) for value in batch["value"].to_pylist()]
    assert found == [b"-3", b"0", b"5"]
