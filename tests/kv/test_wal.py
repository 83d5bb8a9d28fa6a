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


def test_a_segment_that_begins_otherwise_is_none():
    storage = MemoryStorage()
    storage.create_new(wal_file(1), b"something else entirely")
    with pytest.raises(CorruptFileError, match="does not begin as a segment"):
        list(Replay(storage, 1))
    storage.replace(wal_file(1), b"HKV")  # its writer died when it made it
    assert list(Replay(storage, 1)) == []
