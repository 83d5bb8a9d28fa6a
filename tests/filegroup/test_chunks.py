"""Chunks: sorted by partition, in memory or staged, and the rows picked from them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.chunks import load_chunk, load_rows, make_chunk, make_matches, matched_rows, new_rows, piece_keys
from hoodie.hashes.of_keys import key_hash
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import PLACE, ChunkPiece, Inserts
from tests.memory_tables import FakeClock, new_storage

ROWS = st.lists(st.tuples(st.sampled_from(["", "a", "b", "é"]), st.text("xyzé\U0001f600", max_size=3)), max_size=25)


def table(rows):
    """Rows are (partition path, key); `v` numbers them in arrival order."""
    return pa.table(
        {
            RECORD_KEY: pa.array([key for _, key in rows], pa.string()),
            PARTITION_PATH: pa.array([part for part, _ in rows], pa.string()),
            "v": pa.array(range(len(rows)), pa.int64()),
        }
    )


def chunk_of(rows, storage=None):
    if storage:
        storage.mkdirs("staged")
    return make_chunk(table(rows), storage=storage, stage_to="staged" if storage else None)


def pieces_of(chunks, partition):
    return tuple(
        ChunkPiece(number, chunk, span)
        for number, chunk in enumerate(chunks)
        for span in chunk.ranges
        if span.partition_path == partition
    )


@given(ROWS)
def test_rows_of_a_partition_stand_together_in_arrival_order(rows):
    storage = new_storage(FakeClock())
    chunk = chunk_of(rows)
    found = load_chunk(storage, chunk).to_pylist()
    parts = list(dict.fromkeys(part for part, _ in rows))
    assert [span.partition_path for span in chunk.ranges] == parts
    assert (chunk.rows, [span.start for span in chunk.ranges]) == (
        len(rows),
        np.cumsum([0, *(span.length for span in chunk.ranges)]).tolist()[: len(parts)],
    )
    for span in chunk.ranges:
        inside = found[span.start : span.start + span.length]
        expected = [(at, key) for at, (part, key) in enumerate(rows) if part == span.partition_path]
        assert [(row["v"], row[RECORD_KEY]) for row in inside] == expected
        keys = [key for _, key in expected]
        assert (span.min_key, span.max_key) == (min(keys), max(keys))
        assert piece_keys(storage, ChunkPiece(0, chunk, span)).to_pylist() == keys


@given(ROWS)
def test_staged_chunks_are_those_in_memory(rows):
    storage = new_storage(FakeClock())
    memory, staged = chunk_of(rows), chunk_of(rows, storage)
    assert (memory.path, staged.table) == (None, None)
    assert staged.path.startswith("staged/")
    assert (staged.ranges, staged.rows, staged.size_bytes) == (memory.ranges, memory.rows, memory.size_bytes)
    assert load_chunk(storage, staged).equals(load_chunk(storage, memory))


def test_rows_that_stand_together_are_not_copied():
    given_table = table([("b", "1"), ("b", "2"), ("a", "1")])
    chunk = make_chunk(given_table)
    assert chunk.table["v"].chunk(0).buffers()[1].address == given_table["v"].chunk(0).buffers()[1].address


def test_a_chunk_of_several_arrow_chunks():
    parts = [table([("a", "1")]), table([("b", "2"), ("a", "3")])]
    chunk = make_chunk(pa.concat_tables(parts))
    assert chunk.table[RECORD_KEY].to_pylist() == ["1", "3", "2"]
    assert chunk.table[RECORD_KEY].num_chunks == 1


@pytest.mark.parametrize("staged", [False, True])
def test_matches_come_back_in_memory_and_staged(staged):
    storage = new_storage(FakeClock())
    storage.mkdirs("staged")
    rows = np.array([0, 3, 2**31 - 1], dtype=np.int64)
    matches = make_matches(7, rows, storage=storage if staged else None, stage_to="staged" if staged else None)
    assert (matches.number, matches.count, matches.path is None) == (7, 3, not staged)
    assert load_rows(storage, matches).tolist() == rows.tolist()
    assert load_rows(storage, matches).dtype == np.int32


def test_a_task_that_outlives_its_write_does_not_bring_the_folder_back():
    """A task that Spark has cancelled goes on for a moment; what it staged then would stay for good."""
    storage = new_storage(FakeClock())
    chunk_of([("a", "1")], storage)
    storage.delete_folder("staged")
    with pytest.raises(FileNotFoundError):
        make_chunk(table([("a", "1")]), storage=storage, stage_to="staged")
    with pytest.raises(FileNotFoundError):
        make_matches(0, np.array([0]), storage=storage, stage_to="staged")
    assert list(storage.list("")) == []


@pytest.mark.parametrize("staged", [False, True])
def test_matched_rows_come_chunk_by_chunk_in_arrival_order(staged):
    storage = new_storage(FakeClock())
    where = {"storage": storage, "stage_to": "staged"} if staged else {}
    chunks = [chunk_of([("a", "1"), ("a", "2"), ("b", "3")], where.get("storage")), chunk_of([("a", "4"), ("a", "5")])]
    updates = [
        make_matches(1, np.array([1]), np.array([7]), **where),
        make_matches(0, np.array([0, 1]), **where),
        make_matches(1, np.array([], int)),
        make_matches(1, np.array([0]), np.array([3]), **where),
    ]
    found = matched_rows(storage, pieces_of(chunks, "a"), updates, places=True)
    assert [part[RECORD_KEY].to_pylist() for part in found] == [["1", "2"], ["5", "4"]]
    assert [part[PLACE].to_pylist() for part in found] == [[-1, -1], [7, 3]]
    found = matched_rows(storage, pieces_of(chunks, "a"), updates, places=True, by_place=True)
    assert [part[RECORD_KEY].to_pylist() for part in found] == [["1", "2"], ["4", "5"]]
    found = matched_rows(storage, pieces_of(chunks, "a"), updates)
    assert [part[RECORD_KEY].to_pylist() for part in found] == [["1", "2"], ["5", "4"]]


@settings(max_examples=40)
@given(st.lists(ROWS, min_size=1, max_size=3), st.lists(st.integers(1, 5), min_size=1, max_size=5), st.data())
def test_shares_of_new_rows_part_them_exactly_once_and_keep_equal_keys_together(batches, weights, data):
    storage = new_storage(FakeClock())
    chunks = [chunk_of(rows, storage if number % 2 else None) for number, rows in enumerate(batches)]
    for partition in {part for rows in batches for part, _ in rows}:
        pieces = pieces_of(chunks, partition)
        known, expected = [], []
        for piece in pieces:
            rows = range(piece.span.start, piece.span.start + piece.span.length)
            stored = sorted(data.draw(st.sets(st.sampled_from(rows))))
            known.append(make_matches(piece.number, np.array(stored, dtype=np.int32)))
            here = load_chunk(storage, piece.chunk).to_pylist()
            expected += [here[row] for row in rows if row not in stored]
        bounds = np.cumsum([0, *weights]).tolist()
        owners, found = {}, []
        for share, (low, high) in enumerate(pairwise(bounds)):
            for part in new_rows(storage, Inserts(pieces, tuple(known), low, high, bounds[-1])):
                assert part.num_rows
                found += part.to_pylist()
                for key in part[RECORD_KEY].to_pylist():
                    assert owners.setdefault(key, share) == share
                    assert low <= int(key_hash(pa.array([key]))[0]) % bounds[-1] < high
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_new_rows_without_shares_are_all_that_are_not_known():
    storage = new_storage(FakeClock())
    chunks = [chunk_of([("b", "0"), ("a", "1"), ("a", "2"), ("a", "1")]), chunk_of([("a", "9")])]
    known = (make_matches(0, np.array([2])), make_matches(0, np.array([3])))
    inserts = Inserts(tuple(reversed(pieces_of(chunks, "a"))), known)
    assert [part["v"].to_pylist() for part in new_rows(storage, inserts)] == [[1], [0]]
    everything = (make_matches(0, np.array([1, 2, 3])), make_matches(1, np.array([0])))
    assert new_rows(storage, Inserts(pieces_of(chunks, "a"), everything)) == []
