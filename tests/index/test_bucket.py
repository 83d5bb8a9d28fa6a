import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.filegroup.chunks import load_rows, make_chunk, matched_rows
from hoodie.hashes.of_buckets import bucket_hashes, bucket_numbers
from hoodie.index.bucket import (
    Evidence,
    hash_field_choices,
    looks_bucketed,
    plan_buckets,
    run_buckets,
)
from hoodie.model.buckets import BucketLayout
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import ChunkPiece
from hoodie.storage.memory import MemoryStorage

LAYOUT = BucketLayout(4, ("id",))


def chunk_of(keys, partitions, storage=None):
    table = pa.table({RECORD_KEY: keys, PARTITION_PATH: partitions, "row": range(len(keys))})
    if storage:
        storage.mkdirs("rows")
    return make_chunk(table, storage=storage, stage_to="rows" if storage else None)


@given(st.lists(st.tuples(st.text(max_size=4), st.sampled_from("abc")), max_size=40), st.booleans())
def test_every_row_is_in_the_bucket_of_its_key_once_and_in_arrival_order(rows, staged):
    storage = MemoryStorage()
    chunk = chunk_of([key for key, _ in rows], [part for _, part in rows], storage if staged else None)
    tasks = plan_buckets([chunk], LAYOUT, stage_to="rows" if staged else None)
    found = [each for task in tasks for each in run_buckets(storage, task)]
    placed = {}
    for each in found:
        pieces = [ChunkPiece(0, chunk, span) for span in chunk.ranges if span.partition_path == each.partition_path]
        (table,) = matched_rows(storage, pieces, [each.rows])
        assert len(load_rows(storage, each.rows)) == each.rows.count
        assert (each.partition_path, each.bucket) not in placed
        placed[each.partition_path, each.bucket] = table.column("row").to_pylist()
    wanted = {}
    for number, (key, part) in enumerate(rows):
        bucket = int(bucket_numbers(pa.array([key]), LAYOUT.fields, LAYOUT.count)[0])
        wanted.setdefault((part, bucket), []).append(number)
    assert placed == wanted


def test_one_file_is_staged_for_all_buckets_of_a_chunk():
    storage = MemoryStorage()
    chunk = chunk_of([f"k{n}" for n in range(100)], ["a"] * 100, storage)
    (task,) = plan_buckets([chunk], LAYOUT, stage_to="rows")
    found = run_buckets(storage, task)
    assert len(found) == 4
    assert len({each.rows.path for each in found}) == 1
    assert len(storage.list("rows")) == 2


def test_chunks_without_rows_get_no_task_and_numbers_stay():
    chunks = [chunk_of(["a"], ["p"]), chunk_of([], []), chunk_of(["b"], ["p"])]
    assert [task.number for task in plan_buckets(chunks, LAYOUT, stage_to=None)] == [0, 2]


@pytest.mark.parametrize(
    ("file_ids", "bucketed"),
    [
        (["00000000-1", "00000255-1"], True),
        (["00000000-1", "0000000a-1"], False),
        (["12345678-9"], False),  # a plain uuid may begin with digits
        ([], False),
    ],
)
def test_file_ids_of_buckets_are_recognised(file_ids, bucketed):
    assert looks_bucketed(file_ids) is bucketed


@given(st.integers(1, 500), st.integers(0, 10_000))
def test_the_keys_of_one_bucket_show_the_number_of_buckets(count, first):
    keys = pa.array([f"key-{first + n * 7919}" for n in range(40 * count)])
    hashes = (bucket_hashes(keys, ("id",)) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    bucket = count - 1
    differences = np.abs(hashes[hashes % count == bucket] - bucket)
    found = Evidence(("id",), int(np.gcd.reduce(differences, initial=0)), greatest=bucket)
    assert found.possible
    assert found.allows(count)
    assert found.only_count in (count, None)


@pytest.mark.parametrize(
    ("divisor", "greatest", "only"),
    [
        (4, 3, 4),
        (4, 1, None),  # 2 or 4
        (8, 3, None),  # 4 or 8
        (8, 4, 8),
        (0, 3, None),
        (1, 0, 1),
    ],
)
def test_the_number_of_buckets_counts_as_known_only_where_no_other_is_possible(divisor, greatest, only):
    assert Evidence(("id",), divisor, greatest).only_count == only


def test_keys_that_share_no_divisor_above_the_bucket_numbers_are_in_no_buckets():
    assert not Evidence(("id",), 2, 3).possible
    assert Evidence(("id",), 4, 3).possible


def test_hash_fields_may_be_any_of_the_key_all_of_it_first():
    assert hash_field_choices(("a", "b")) == [("a", "b"), ("a",), ("b",)]
    assert hash_field_choices(tuple("abcde")) == [tuple("abcde")]
