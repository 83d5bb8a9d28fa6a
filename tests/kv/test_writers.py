"""One writer a bucket: a second is refused, a dead one's bucket is taken over, and one that was only paused is fenced."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie.kv
from hoodie.errors import (
    CommitOutcomeUnknownError,
    HoodieError,
    LockError,
    MissingFileError,
    OptionError,
    StoreFencedError,
)
from hoodie.kv.manifest import read_newest
from hoodie.kv.settings import StoreOptions
from tests.bucket import BucketStorage
from tests.kv.stores import KINDS, SMALL, Place, abandon, binary, committed

BUCKET = "buckets-00000001/00000"


def test_a_second_writer_is_refused_by_name_until_the_first_is_closed(tmp_path):
    store, other = (hoodie.kv.open_store(tmp_path / "s", buckets=2) for _ in range(2))
    with store.writer(0) as writer:
        with pytest.raises(LockError, match=f"bucket 0 of store .* has a writer: .*{os.getpid()}"):
            other.writer(0)
        with other.writer(1):
            writer.put(b"a", b"1")
            writer.end_window(1)
    with other.writer(0) as writer:
        assert writer.lookup(b"a") == b"1"


@pytest.mark.parametrize("act", ["end_window", "flush"])
def test_a_writer_that_was_paused_while_another_took_over_is_fenced(act):
    place = Place("objects")
    paused = place.store(buckets=1).writer(0)
    paused.put(b"a", b"1")
    paused.end_window(1)
    other = place.elsewhere().store().writer(0)  # the first was paused for so long that it counts as dead
    assert other.last_window == 1
    if act == "end_window":
        paused.put(b"a", b"lost")
        with pytest.raises(StoreFencedError, match="Nothing of the window counts"):
            paused.end_window(2)
        with pytest.raises(HoodieError, match="has failed, open a new one"):
            paused.put(b"a", b"lost")
    else:
        with pytest.raises(StoreFencedError, match="the files that this one flushed do not count, but its log does"):
            paused.flush()
    paused.close()
    other.put(b"b", b"2")
    other.end_window(2)
    assert committed(other) == {b"a": b"1", b"b": b"2"}
    other.close()
    assert dict(place.store().reader(0)) == {b"a": b"1", b"b": b"2"}


def test_where_files_grow_the_log_of_a_paused_writer_is_ended():
    place = Place("files")
    paused = place.store(buckets=1).writer(0)
    paused.put(b"a", b"1")
    paused.end_window(1)
    other = place.elsewhere().store().writer(0)
    paused.put(b"a", b"lost")
    with pytest.raises(StoreFencedError):
        paused.end_window(2)
    abandon(paused)
    other.put(b"b", b"2")
    other.end_window(2)
    assert committed(other) == {b"a": b"1", b"b": b"2"}


def test_a_writer_that_gave_no_sign_of_life_for_too_long_does_not_commit(monkeypatch):
    writer = Place("objects").store(buckets=1).writer(0)
    writer.put(b"a", b"1")
    monkeypatch.setattr("hoodie.kv.ownership.Hold.is_lost", lambda hold: True)
    with pytest.raises(StoreFencedError, match="no sign of life"):
        writer.end_window(1)


def test_a_window_that_was_written_while_another_may_have_taken_over_is_not_acknowledged(monkeypatch):
    """The segment of the one that took over, by which it would have failed, may be dropped again by then."""
    place = Place("objects")
    paused = place.store(buckets=1).writer(0)
    answers = [False]
    monkeypatch.setattr("hoodie.kv.ownership.Hold.is_lost", lambda hold: not answers or answers.pop())
    other_place = place.elsewhere()
    create_new, taken = BucketStorage.create_new, []

    def paused_before(storage, path, data, **how):
        if ".wal" in path and not taken:
            taken.append(path)
            answers.extend([False] * 20)
            with other_place.store().writer(0) as other:
                for window in range(1, 4):
                    other.put(b"theirs", b"%d" % window)
                    other.end_window(window)
                other.flush()
            answers.clear()
        create_new(storage, path, data, **how)

    monkeypatch.setattr(BucketStorage, "create_new", paused_before)
    paused.put(b"ours", b"lost")
    with pytest.raises(CommitOutcomeUnknownError, match="look at its last_window"):
        paused.end_window(1)
    abandon(paused)
    monkeypatch.undo()
    with other_place.store().writer(0) as other:
        assert other.last_window == 3
        assert committed(other) == {b"theirs": b"3"}


@pytest.mark.parametrize("kind", KINDS)
def test_flushes_in_the_background_take_nothing_away_and_memory_is_bounded(kind):
    place = Place(kind)
    options = StoreOptions(flush_size=50, flush_interval_count=1_000, max_file_size=4_000, max_wal_file_size=2_000)
    rows, most = {}, 0
    with place.store(options, buckets=1).writer(0) as writer:
        for window in range(1, 60):
            some = {b"k%03d" % ((window * 37 + n * 11) % 400): b"%d" % window * 20 for n in range(15)}
            writer.put_many(binary(list(some)), binary(list(some.values())))
            writer.end_window(window)
            rows |= some
            most = max(most, len(writer._memory) + (len(writer._frozen.rows) if writer._frozen else 0))
            for key in list(rows)[:: max(1, len(rows) // 7)]:
                assert writer.lookup(key) == rows[key]
        assert most <= 2 * (50 + 15)
        assert committed(writer) == rows
    manifest = read_newest(place(BUCKET))
    assert len(manifest.files) > 3
    assert len({file.run for file in manifest.files}) <= 5


def test_keys_that_only_grow_are_never_rewritten():
    place = Place()
    options = StoreOptions(flush_size=20, flush_interval_count=1_000, max_file_size=1_500)
    with place.store(options, buckets=1).writer(0) as writer:
        for window in range(1, 40):
            for n in range(10):
                writer.put(b"%08d" % (window * 10 + n), b"v" * 20)
            writer.end_window(window)
        writer.flush()
        files = writer.files.manifest.files
        assert {file.run for file in files} == {1}
        assert writer._flusher.written_bytes == sum(file.size_bytes for file in files)
        assert writer.files.manifest.old_files == ()


def test_files_that_were_merged_stay_for_readers_as_long_as_is_said():
    place = Place()
    for keep_replaced_s in (600.0, 0.0):
        options = replace(SMALL, keep_replaced_s=keep_replaced_s)
        with place.store(options, buckets=1).writer(0) as writer:
            for n in range(2):
                writer.put_many(binary([b"%03d" % each for each in range(200)]), binary([b"v%d" % n] * 200))
                writer.end_window((writer.last_window or 0) + 1)
                writer.flush()
            reader = place.store().reader(0, max_age_s=None)
            scan = reader.scan()
            next(scan)
            writer.compact()
            writer.put(b"z", b"z")
            writer.end_window(writer.last_window + 1)
            writer.flush()  # with the next state what nobody needs goes
            if keep_replaced_s:
                assert sum(batch.num_rows for batch in scan) > 0
            else:
                with pytest.raises(MissingFileError, match="keep_replaced_s seconds: scan again"):
                    list(scan)
            assert reader.get(b"007") == b"v1"


def test_windows_are_told_apart_by_their_numbers():
    with Place().store(buckets=1).writer(0) as writer:
        assert writer.last_window is None
        assert writer.end_window(-5)
        assert not writer.end_window(-5)
        assert not writer.end_window(-6)
        assert writer.end_window(7)
        assert writer.last_window == 7
        for wrong in (None, "8", 8.0, True, 2**63):
            with pytest.raises(OptionError, match="not a whole number"):
                writer.end_window(wrong)


def test_wrong_input_is_told_and_changes_nothing():
    with Place().store(buckets=1).writer(0) as writer:
        for key, value in (("a", b"1"), (b"a", "1"), (b"a", None), (None, b"1"), (b"a", 1)):
            with pytest.raises(OptionError, match="takes bytes"):
                writer.put(key, value)
        with pytest.raises(OptionError, match="takes bytes"):
            writer.delete("a")
        with pytest.raises(OptionError, match="1 keys that are null"):
            writer.put_many(binary([b"a", None]), binary([b"1", b"2"]))
        with pytest.raises(OptionError, match="2 keys and 1 values"):
            writer.put_many(binary([b"a", b"b"]), binary([b"1"]))
        with pytest.raises(OptionError, match="not binary"):
            writer.put_many(pa.array(["a"]), binary([b"1"]))
        with pytest.raises(OptionError, match="nor an Arrow array"):
            writer.put_many({b"a"}, binary([b"1"]))
        with pytest.raises(OptionError, match="keys takes bytes, not str"):
            writer.put_many([b"a", "b"], [b"1", b"2"])
        with pytest.raises(OptionError, match="range of keys, or an age"):
            writer.purge()
        writer.end_window(1)
        assert committed(writer) == {}


@pytest.mark.parametrize(("order", "most"), [("lexicographic", 32_767), ("descending", 16_383)])
def test_keys_that_no_hfile_holds_are_refused_before_they_are_in_the_log(order, most):
    with Place().store(buckets=1, order=order).writer(0) as writer:
        writer.put(b"k" * most, b"v")
        told = r"a key for bucket 0 .* takes 32,76[89] bytes; its data files hold keys of at most 32,767"
        for act in (
            lambda key: writer.put(key, b"v"),
            lambda key: writer.put_many(binary([b"a", key]), binary([b"v", b"v"])),
            writer.delete,
            lambda key: writer.delete_many(binary([key])),
        ):
            with pytest.raises(OptionError, match=told):
                act(b"k" * (most + 1))
        writer.end_window(1)
        writer.flush()
        assert writer.lookup(b"k" * most) == b"v"
        assert writer.lookup(b"a") is None


def test_rows_that_are_old_are_purged_by_whole_files():
    place = Place()
    clock = [1_000.0]
    place(BUCKET).clock = lambda: clock[0]
    with place.store(buckets=1).writer(0) as writer:
        for window, age in ((1, 1_000.0), (2, 2_000.0)):
            clock[0] = age
            writer.put(b"k%d" % window, b"v")
            writer.end_window(window)
            writer.flush()
        assert writer.purge(older_than_s=500) > 0
        assert committed(writer) == {b"k2": b"v"}


_VICTIM = """
import sys, hoodie.kv
store = hoodie.kv.open_store(sys.argv[1], buckets=1, flush_size=40, max_wal_file_size=4000, max_file_size=3000)
with store.writer(0) as writer:
    window = (writer.last_window or 0) + 1
    while True:
        for n in range(25):
            key = b"k%d" % ((window * 7 + n) % 100)
            count = int(writer.lookup(key) or b"0")
            writer.put(key, b"%d" % (count + 1))
        writer.end_window(window)
        print(window, flush=True)
        window += 1
"""


@pytest.mark.long
def test_counts_are_right_after_processes_were_killed(tmp_path):
    acknowledged = 0
    for turn in range(6):
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, str(tmp_path / "s")], stdout=subprocess.PIPE, text=True
        )
        for number, line in enumerate(victim.stdout):
            acknowledged = int(line)
            if number == 3 + 5 * turn:
                os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    assert acknowledged > 20
    with hoodie.kv.open_store(tmp_path / "s").writer(0) as writer:
        last = writer.last_window
        assert last - acknowledged in (0, 1)
        expected = {}
        for window in range(1, last + 1):
            for n in range(25):
                key = b"k%d" % ((window * 7 + n) % 100)
                expected[key] = expected.get(key, 0) + 1
        assert {key: int(value) for key, value in committed(writer).items()} == expected


def test_readers_beside_a_writer_see_whole_states(tmp_path):
    """Each window sets all keys to its number."""
    options = {"flush_size": 1, "max_file_size": 2_000}
    keys = [b"k%03d" % n for n in range(60)]
    store = hoodie.kv.open_store(tmp_path / "s", buckets=1, **options)
    stop, wrong, seen = threading.Event(), [], set()

    def read():
        reader = hoodie.kv.open_store(tmp_path / "s").reader(0, max_age_s=None)
        last = 0
        while not stop.is_set():
            reader.refresh()
            values = {value for _, value in reader}
            if len(values) > 1 or any(int(value) < last for value in values):
                wrong.append(values)
            last = max([last, *map(int, values)])
            seen.add(last)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    with store.writer(0) as writer:
        for window in range(1, 60):
            writer.put_many(binary(keys), binary([b"%d" % window] * len(keys)))
            writer.end_window(window)
            writer.flush()
        while 59 not in seen:
            time.sleep(0.01)
    stop.set()
    for each in readers:
        each.join()
    assert not wrong
