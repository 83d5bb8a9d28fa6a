import numpy as np
import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.model.buckets import BucketLayout, BucketRows
from hoodie.model.enums import TableType
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.plans import AppendTask, Chunk, ChunkPiece, ChunkRange, CreateTask, Matches, MergeTask
from hoodie.write.by_bucket import FoundBuckets
from hoodie.write.plan import Sizing, Target

COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ
LAYOUT = BucketLayout(4, ("id",))
RANGES = (ChunkRange("a", 0, 6, "k0", "k5"), ChunkRange("b", 6, 2, "k6", "k7"))
CHUNK = Chunk(RANGES, 8, 800, path="chunk")
PIECES = {span.partition_path: [ChunkPiece(0, CHUNK, span)] for span in RANGES}


def rows(partition_path, bucket, *numbers, chunk=0):
    return BucketRows(partition_path, bucket, Matches(chunk, np.array(numbers, dtype=np.int32), count=len(numbers)))


def stored(bucket, *, partition_path="a", logs=0, base=True, suffix="x"):
    file_id = f"{bucket:08d}-{suffix}-0"
    return FileSlice(
        FileGroupId(partition_path, file_id),
        "001",
        BaseFile(partition_path, file_id, "001", f"{file_id}_1-0-1_001.parquet", 100) if base else None,
        tuple(
            LogFile(partition_path, file_id, "001", n + 1, f".{file_id}_001.log.{n + 1}_0-0-0", 10) for n in range(logs)
        ),
    )


def plan(found, slices, *, table_type=MOR, inserts=True):
    target = Target(slices, table_type, Sizing(1000, 500), table="memory://t")
    return FoundBuckets(found, PIECES, LAYOUT, inserts).plan(target)


def test_first_rows_of_a_bucket_make_a_base_file_with_its_number():
    made = plan([rows("a", 3, 0, 1), rows("b", 3, 6)], [])
    assert [(type(task), task.partition_path, task.file_id[:9]) for task in made.tasks] == [
        (CreateTask, "a", "00000003-"),
        (CreateTask, "b", "00000003-"),
    ]
    assert [[m.rows.tolist() for m in task.updates] for task in made.tasks] == [[[0, 1]], [[6]]]
    assert made.based_on == {}
    assert made.absent_in == {"a", "b"}
    assert len({task.file_id for task in made.tasks}) == 2


@pytest.mark.parametrize(("table_type", "kind"), [(MOR, AppendTask), (COW, MergeTask)])
def test_rows_of_a_bucket_that_is_there_go_to_its_file_group_new_keys_too(table_type, kind):
    file_slice = stored(1, logs=2)
    made = plan([rows("a", 1, 2, 3), rows("a", 1, 0, chunk=1)], [file_slice], table_type=table_type)
    (task,) = made.tasks
    assert (type(task), task.file_id, task.slice) == (kind, file_slice.group.file_id, file_slice)
    assert table_type is COW or task.log_version == 3
    assert [m.number for m in task.updates] == [0, 1]
    assert made.based_on == {file_slice.group: "001"}
    assert made.absent_in == frozenset()


def test_a_bucket_that_has_logs_only_gets_another_log():
    (task,) = plan([rows("a", 1, 2)], [stored(1, logs=1, base=False)]).tasks
    assert (type(task), task.log_version) == (AppendTask, 2)


def test_a_bucket_of_another_partition_is_another_bucket():
    made = plan([rows("a", 1, 0), rows("b", 1, 6)], [stored(1)])
    assert [type(task) for task in made.tasks] == [AppendTask, CreateTask]
    assert made.absent_in == {"b"}


def test_deletes_make_no_file_groups():
    made = plan([rows("a", 1, 0), rows("a", 2, 1)], [stored(1)], inserts=False)
    assert [type(task) for task in made.tasks] == [AppendTask]


def test_task_numbers_are_all_different():
    made = plan([rows("a", n, n) for n in range(4)], [stored(2), stored(0)])
    assert [task.number for task in made.tasks] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ([stored(1), stored(1, suffix="y")], "second file group of bucket 1"),
        ([stored(4)], "not one of the 4 buckets"),
        ([stored(1)._replace(group=FileGroupId("a", "7f000001-x-0"))], "not one of the 4 buckets"),
    ],
)
def test_file_groups_that_are_not_one_of_each_bucket_are_refused(slices, message):
    with pytest.raises(UnsupportedTableError, match=message):
        plan([rows("a", 0, 0)], slices)
