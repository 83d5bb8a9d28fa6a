"""Bytes of the log: what comes back, and what is cut."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.kv.names import wal_file
from hoodie.kv.wal import Replay, Wal
from hoodie.kv.wal_frames import HEADER, End, Rows, end_frame, frames, header, rows_frame
from hoodie.storage.memory import MemoryStorage
from tests.kv.stores import KINDS

ROWS = st.lists(st.tuples(st.binary(max_size=40), st.none() | st.binary(max_size=90)), max_size=8)
WINDOWS = st.lists(st.tuples(st.integers(-(2**62), 2**62), st.lists(ROWS, max_size=3)), max_size=4)


def rows_of(rows):
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    return Rows(pa.array(keys, pa.binary()), pa.array(values, pa.large_binary()))


def plain(rows):
    return list(zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True))


def segment(windows):
    parts = [header(7)]
    for window, groups in windows:
        for rows in groups:
            parts += rows_frame(rows_of(rows))
        parts += end_frame(window)
    return b"".join(parts)


def read(content):
    found, rows = [], []
    for _, frame in frames(memoryview(content)):
        if isinstance(frame, End):
            found.append((frame.window, rows))
            rows = []
        else:
            rows.append(plain(frame))
    return found


@given(WINDOWS)
def test_windows_come_back(windows):
    assert read(segment(windows)) == [(window, [list(rows) for rows in groups]) for window, groups in windows]


@given(ROWS, st.integers(0, 3), st.integers(0, 3))
def test_slices_of_arrays_come_back(rows, start, length):
    whole = rows_of(rows)
    some = Rows(whole.keys.slice(start, length), whole.values.slice(start, length))
    (_, frame) = next(frames(memoryview(header(1) + b"".join(rows_frame(some)))))
    assert plain(frame) == rows[start : start + length]


@given(WINDOWS, st.data())
def test_what_is_torn_or_flipped_is_cut_and_all_before_it_counts(windows, data):
    content = segment(windows)
    whole = read(content)
    at = data.draw(st.integers(HEADER.size, len(content)))
    torn = read(content[:at])
    assert torn == whole[: len(torn)]
    if at < len(content):
        flipped = bytearray(content)
        flipped[at] ^= 1 << data.draw(st.integers(0, 7))
        found = read(bytes(flipped))
        assert found == whole[: len(found)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_lacks_a_segment_is_damaged_and_dropped_rows_are_not_replayed(kind):
    storage = KINDS[kind]()
    log = Wal(storage, 1, 1, most_bytes=100, durable=True)
    for window in range(1, 6):
        log.add(rows_of([(b"lost", b"x")]))
        log.end(None)
        log.add(rows_of([(b"k%d" % window, b"v" * 60)]))
        log.end(window)
    log.close()
    found = list(Replay(storage, 1))
    assert [(each.id, [plain(rows) for rows in each.rows]) for each in found] == [
        (window, [[(b"k%d" % window, b"v" * 60)]]) for window in range(1, 6)
    ]
    assert len({each.segment for each in found}) == 5
    storage.delete(wal_file(found[2].segment))
    with pytest.raises(CorruptFileError, match=r"wal/0000000000\d\d.wal is missing"):
        list(Replay(storage, 1))


def a_log_of(kind, windows, *, most_bytes=10**6):
    storage = KINDS[kind]()
    log = Wal(storage, 1, 1, most_bytes=most_bytes, durable=True)
    for window in windows:
        log.add(rows_of([(b"k%d" % window, b"v" * 20)]))
        log.end(window)
    log.close()
    return storage


def flipped(storage, number, at):
    content = bytearray(storage.read(wal_file(number)))
    content[at] ^= 4
    storage.replace(wal_file(number), bytes(content))


def ids(storage):
    return [each.id for each in Replay(storage, 1)]


def test_what_only_damage_explains_is_told_and_not_cut():
    content = a_log_of("files", range(1, 6)).read(wal_file(1))
    window = (len(content) - HEADER.size) // 5
    end = len(b"".join(end_frame(1)))
    last = len(content) - window
    for at in range(HEADER.size, len(content)):
        storage = a_log_of("files", range(1, 6))
        flipped(storage, 1, at)
        if at >= last:  # a power cut in the last window may have left it so
            assert ids(storage) == [1, 2, 3, 4]
        elif last - end <= at < last - end + 4:  # so it is where the length of the frame says no more what it was
            assert ids(storage) == [1, 2, 3]
        else:
            with pytest.raises(CorruptFileError, match=rf"{wal_file(1)} is damaged at byte \d+, and windows"):
                ids(storage)


def test_so_is_any_damage_in_a_segment_that_was_rolled_and_in_an_object():
    for storage in (a_log_of("files", [1, 2], most_bytes=1), a_log_of("objects", [1])):
        number = 1 + (len(storage.names("wal")) == 2)
        flipped(storage, number, len(storage.read(wal_file(number))) - 1)
        with pytest.raises(CorruptFileError, match=f"{wal_file(number)} is damaged"):
            ids(storage)


def test_the_torn_end_of_a_dead_writer_is_cut_also_when_another_has_written_on():
    storage = a_log_of("files", [1, 2])
    storage.replace(wal_file(1), storage.read(wal_file(1))[:-3])
    log = Wal(storage, 2, 2, most_bytes=100, durable=True)
    log.add(rows_of([(b"k", b"v")]))
    log.end(3)
    log.close()
    assert ids(storage) == [1, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_is_not_rolled_in_a_window(kind):
    storage = KINDS[kind]()
    log = Wal(storage, 1, 1, most_bytes=10**6, durable=True)
    log.add(rows_of([(b"a", b"1")]))
    log.end(1)
    log.add(rows_of([(b"b", b"2")]))
    log.roll()
    log.add(rows_of([(b"c", b"3")]))
    log.end(2)
    log.close()
    assert [len(each.rows) for each in Replay(storage, 1)] == [1, 2]


def test_a_segment_that_begins_otherwise_is_none():
    storage = MemoryStorage()
    storage.create_new(wal_file(1), b"something else entirely")
    with pytest.raises(CorruptFileError, match="does not begin as a segment"):
        list(Replay(storage, 1))
    storage.replace(wal_file(1), b"HKV")  # its writer died when it made it
    assert list(Replay(storage, 1)) == []
