"""Which file takes which rows: values in, tasks out."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.chunks import make_chunk, make_matches, new_rows
from hoodie.index.bloom import pieces_by_partition
from hoodie.model.enums import TableType
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import AppendTask, CreateTask, LookupResult, MergeTask
from hoodie.model.tuning import TUNING
from hoodie.write.plan import MAX_GROWTH, SPARING_GROWTH, Sizing, TaggedBatch, Target, next_log_version, plan_write
from tests.memory_tables import FakeClock, new_storage

COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ
BOTH = pytest.mark.parametrize("kind", [COW, MOR])
T = "20260101000000000"
LATER = "20260101000000001"
ROW = 10
"""Bytes of a stored row, as the look-ups below say."""


def chunk(count, partition="p", first=0):
    keys = [f"k{n}" for n in range(first, first + count)]
    return make_chunk(pa.table({RECORD_KEY: keys, PARTITION_PATH: [partition] * count}))


def file_slice(file_id, size=100, *, partition="p", logs=(), base_instant=T):
    base = BaseFile(partition, file_id, T, f"{file_id}_0-0-0_{T}.parquet", size)
    found = tuple(LogFile(partition, file_id, instant, version, "", 1) for instant, version in logs)
    return FileSlice(FileGroupId(partition, file_id), base_instant, base, found)


def looked_up(found, *matches):
    """The file holds rows of 10 bytes; `matches` are (chunk number, rows)."""
    rows = tuple(make_matches(number, np.array(numbers)) for number, numbers in matches)
    return LookupResult(found.base, rows, "keys", found.base.size_bytes // ROW)


def plan(
    chunks,
    slices=(),
    lookups=(),
    *,
    kind=COW,
    most=1000,
    small=500,
    growth=MAX_GROWTH,
    busy=(),
    pack=True,
    append=TUNING.append_bytes,
    **tagged,
):
    return plan_write(
        TaggedBatch(pieces_by_partition(chunks), lookups, **tagged),
        Target(
            slices,
            kind,
            Sizing(most, small, growth, append_bytes=append),
            busy=frozenset(FileGroupId("p", file_id) for file_id in busy),
            packs=pack,
        ),
    )


def shown(found):
    return [
        (type(t), t.file_id, sum(m.count for m in t.updates), t.inserts.rows if t.inserts else 0) for t in found.tasks
    ]


def all_new_rows(found, partition="p"):
    """Keys that the tasks would insert, task by task."""
    storage = new_storage(FakeClock())
    return [
        [key for part in new_rows(storage, task.inserts) for key in part[RECORD_KEY].to_pylist()]
        for task in found.tasks
        if task.partition_path == partition and task.inserts is not None
    ]


@BOTH
def test_the_first_rows_of_a_partition_make_a_new_file(kind):
    found = plan([chunk(5), chunk(3, "q"), chunk(4, first=5)], kind=kind, most=10**6)
    assert [(type(t), t.partition_path, t.inserts.rows) for t in found.tasks] == [
        (CreateTask, "p", 9),
        (CreateTask, "q", 3),
    ]
    assert all_new_rows(found) == [[f"k{n}" for n in range(9)]]
    assert found.based_on == {}
    assert found.absent_in == {"p", "q"}


@BOTH
def test_updates_go_to_the_file_that_holds_the_key(kind):
    a, b, c = file_slice("a"), file_slice("b"), file_slice("c")
    lookups = [looked_up(a, (0, [0, 2]), (1, [1])), looked_up(b, (0, [1])), looked_up(c)]
    found = plan([chunk(3), chunk(2)], [a, b, c], lookups, kind=kind, small=0, most=10**6)
    way = MergeTask if kind is COW else AppendTask
    assert shown(found)[:2] == [(way, "a", 3, 0), (way, "b", 1, 0)]
    assert shown(found)[2][::3] == (CreateTask, 1)
    assert [len(t.pieces) for t in found.tasks[:2]] == [2, 2]
    assert (found.tasks[0].slice, found.tasks[1].slice) == (a, b)
    assert found.based_on == {a.group: T, b.group: T}
    assert all_new_rows(found) == [["k0"]]  # the first row of the second chunk


@BOTH
def test_deletes_make_no_inserts_and_touch_no_other_file(kind):
    a, b = file_slice("a"), file_slice("b")
    found = plan([chunk(5)], [a, b], [looked_up(a, (0, [1])), looked_up(b)], kind=kind, inserts=False)
    assert shown(found) == [(MergeTask if kind is COW else AppendTask, "a", 1, 0)]
    assert found.absent_in == {"p"}
    assert plan([chunk(1)], [a], [looked_up(a, (0, [0]))], kind=kind, inserts=False).absent_in == frozenset()
    nothing = plan([chunk(5)], [a], [looked_up(a)], kind=kind, inserts=False)
    assert (nothing.tasks, nothing.based_on) == ((), {})


@BOTH
def test_where_every_row_is_stored_there_is_nothing_to_insert(kind):
    a = file_slice("a")
    assert len(plan([chunk(2)], [a], [looked_up(a, (0, [0, 1]))], kind=kind).tasks) == 1


def test_new_rows_fill_small_files_smallest_first_and_then_make_new_ones():
    a, b, c = file_slice("a", 400), file_slice("b", 100), file_slice("c", 500)
    lookups = [looked_up(found) for found in (a, b, c)]
    found = plan([chunk(200)], [a, b, c], lookups)
    # 1000 bytes a file of 10 bytes a row: b has room for 90 rows, a for 60; c is not small; 50 are left.
    assert shown(found)[:2] == [(MergeTask, "a", 0, 60), (MergeTask, "b", 0, 90)]
    assert shown(found)[2][::3] == (CreateTask, 50)
    assert sorted(key for keys in all_new_rows(found) for key in keys) == sorted(f"k{n}" for n in range(200))
    assert found.based_on == {a.group: T, b.group: T}


def test_the_smallest_file_is_filled_before_another_is_touched():
    a, b = file_slice("a", 400), file_slice("b", 100)
    assert shown(plan([chunk(50)], [a, b], [looked_up(a), looked_up(b)])) == [(MergeTask, "b", 0, 50)]


def test_a_hot_file_that_was_looked_into_by_several_tasks_is_still_one_task():
    a = file_slice("a", 100)
    found = plan([chunk(9)], [a], [looked_up(a, (0, [0, 1])), looked_up(a, (0, [5])), looked_up(a)])
    assert shown(found) == [(MergeTask, "a", 3, 6)]
    assert all_new_rows(found) == [["k2", "k3", "k4", "k6", "k7", "k8"]]


def test_a_small_file_that_takes_all_needs_no_hashing():
    a = file_slice("a", 100)
    (task,) = plan([chunk(90)], [a], [looked_up(a)]).tasks
    assert (type(task), task.inserts.rows) == (MergeTask, 90)
    assert (task.inserts.low, task.inserts.high, task.inserts.of) == (0, 1, 1)


def test_updates_and_inserts_of_one_file_are_one_task():
    a = file_slice("a", 100)
    assert shown(plan([chunk(9)], [a], [looked_up(a, (0, [0, 1]))])) == [(MergeTask, "a", 2, 7)]
    assert shown(plan([chunk(90)], [a], [looked_up(a, (0, [0, 1]))], kind=MOR)) == [(MergeTask, "a", 2, 88)]
    large = file_slice("a", 499)
    found = plan([chunk(9)], [large], [looked_up(large, (0, [0, 1]))], kind=MOR)
    assert [(kind, updates, inserts) for kind, _, updates, inserts in shown(found)] == [
        (AppendTask, 2, 0),
        (CreateTask, 0, 7),
    ]


@BOTH
def test_bulk_insert_makes_new_files_only(kind):
    a = file_slice("a", 100)
    found = plan([chunk(150)], [a], kind=kind, pack=False, concat=True, most=10**6)
    assert [(type(t), t.inserts.rows) for t in found.tasks] == [(CreateTask, 150)]
    assert found.based_on == {}


def test_insert_adds_to_small_files_without_looking_at_keys():
    a = file_slice("a", 100)
    (task,) = plan([chunk(3)], [a], concat=True, most=10**6).tasks
    assert (type(task), task.concat, task.updates) == (MergeTask, True, ())


@pytest.mark.parametrize(("size", "packed"), [(99, True), (100, False), (101, False)])
def test_files_from_the_small_file_limit_on_take_no_rows(size, packed):
    a = file_slice("a", size)
    found = plan([chunk(3)], [a], [LookupResult(a.base, (), "range", 10)], small=100)
    assert (isinstance(found.tasks[0], MergeTask)) == packed


@pytest.mark.parametrize(("rows", "packed"), [(9, False), (10, True), (50, True)])
def test_on_merge_on_read_a_base_file_is_rewritten_for_inserts_only_while_they_are_a_fair_part_of_it(rows, packed):
    a = file_slice("a", MAX_GROWTH * 10 * ROW)
    assert (isinstance(plan([chunk(rows)], [a], [looked_up(a)], kind=MOR).tasks[0], MergeTask)) == packed
    assert isinstance(plan([chunk(rows)], [a], [looked_up(a)], kind=COW).tasks[0], MergeTask)


@pytest.mark.parametrize(("batches", "packed"), [(1, True), (2, False)])
def test_a_sparing_writer_fills_a_base_file_with_two_batches_of_inserts(batches, packed):
    a = file_slice("a", batches * 110)  # a footer makes a file a little larger than its rows
    found = plan([chunk(10)], [a], [looked_up(a)], kind=MOR, growth=SPARING_GROWTH)
    assert (isinstance(found.tasks[0], MergeTask)) == packed


def test_on_merge_on_read_a_slice_with_logs_takes_no_inserts():
    a = file_slice("a", 100, logs=[(T, 1)])
    found = plan([chunk(90)], [a], [looked_up(a, (0, [0]))], kind=MOR)
    assert [type(t) for t in found.tasks] == [AppendTask, CreateTask]


def test_file_groups_of_a_pending_compaction_take_no_inserts_but_updates():
    a, b = file_slice("a", 100), file_slice("b", 100)
    lookups = [looked_up(a, (0, [0])), looked_up(b)]
    found = plan([chunk(60)], [a, b], lookups, kind=MOR, busy=["a"])
    assert shown(found) == [(AppendTask, "a", 1, 0), (MergeTask, "b", 0, 59)]


def test_a_group_without_a_base_file_takes_no_inserts():
    logs_only = file_slice("a", logs=[(T, 1)])._replace(base=None)
    found = plan([chunk(3)], [logs_only], kind=MOR, most=10**6)
    assert [type(t) for t in found.tasks] == [CreateTask]


def test_the_size_of_a_row_is_that_of_the_partition_else_guessed_from_the_batch():
    a, other = file_slice("a", 600), file_slice("o", 100, partition="q")
    small_rows = LookupResult(other.base, (), "keys", 100)  # of 1 byte, in another partition
    assert len(plan([chunk(300)], [a], [looked_up(a), small_rows]).tasks) == 3
    source = chunk(300)
    guessed = source.size_bytes / source.rows / 3
    found = plan([source], [], [small_rows], most=int(guessed * 100))
    assert 3 <= len(found.tasks) <= 4
    assert len(plan([chunk(3)], [], most=1).tasks) == 3  # a row a file at least


@BOTH
@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.lists(st.integers(1, 900), max_size=3),
    st.integers(100, 600),
    st.data(),
)
def test_every_new_row_goes_to_exactly_one_file_and_every_task_has_its_own_number(kind, lengths, sizes, most, data):
    firsts = np.cumsum([0, *lengths]).tolist()
    chunks = [chunk(count, first=first) for count, first in zip(lengths, firsts)]
    chunks.append(chunk(30, "q"))
    slices = [file_slice(f"f{n}", size) for n, size in enumerate(sizes)] + [file_slice("g", 50, partition="q")]
    owner = {
        (number, row): data.draw(st.integers(-1, len(sizes) - 1))
        for number, count in enumerate(lengths)
        for row in range(count)
    }
    lookups = []
    for at, found in enumerate(slices[:-1]):
        rows = [(number, [r for r in range(count) if owner[number, r] == at]) for number, count in enumerate(lengths)]
        lookups.append(looked_up(found, *((number, mine) for number, mine in rows if mine)))
    found = plan(chunks, slices, lookups, kind=kind, most=most)
    inserted = [key for keys in all_new_rows(found) for key in keys]
    assert sorted(inserted) == sorted(f"k{firsts[n] + row}" for (n, row), at in owner.items() if at == -1)
    assert sorted(key for keys in all_new_rows(found, "q") for key in keys) == sorted(f"k{n}" for n in range(30))
    assert [task.number for task in found.tasks] == list(range(len(found.tasks)))
    assert len({(task.partition_path, task.file_id) for task in found.tasks}) == len(found.tasks)
    updated = {(t.file_id, m.number, row) for t in found.tasks for m in t.updates for row in m.rows.tolist()}
    assert updated == {(f"f{at}", n, row) for (n, row), at in owner.items() if at >= 0}
    shares = [t.inserts for t in found.tasks if t.inserts and t.partition_path == "p"]
    assert sum(share.rows for share in shares) >= len(inserted)
    for task in found.tasks:
        assert isinstance(task, CreateTask) or task.slice is not None
        assert (task.partition_path in found.absent_in) or task.inserts is None


@pytest.mark.parametrize(("most", "tasks"), [(1_000_000, 1), (1_000, 3)])
def test_updates_of_a_hot_file_group_are_spread_over_log_files_by_key(most, tasks):
    batch, hot, cool = chunk(200), file_slice("hot", logs=[(T, 4)]), file_slice("cool")
    assert 2_000 < batch.size_bytes <= 3_000
    found = plan(
        [batch], [hot, cool], [looked_up(hot, (0, range(1, 200))), looked_up(cool, (0, [0]))], kind=MOR, append=most
    ).tasks
    mine = [task for task in found if task.file_id == "hot"]
    assert [(task.share, task.of) for task in mine] == [(share, tasks) for share in range(tasks)]
    assert [task.log_version for task in mine] == [5 + share for share in range(tasks)]
    assert [task.number for task in found] == list(range(tasks + 1))
    rewritten = plan([batch], [hot], [looked_up(hot, (0, range(200)))], kind=COW, append=most).tasks
    assert [type(task) for task in rewritten] == [MergeTask]


def test_files_that_are_cheap_to_rewrite_take_few_rows_too():
    tiny, large = file_slice("tiny", 200), file_slice("large", 400)
    for cheap, files in ((0, {CreateTask}), (300, {MergeTask})):
        found = plan_write(
            TaggedBatch(pieces_by_partition([chunk(2)]), [looked_up(tiny), looked_up(large)]),
            Target([large, tiny], MOR, Sizing(1000, 500, MAX_GROWTH, cheap)),
        ).tasks
        assert {type(task) for task in found} == files
        assert all(task.file_id == "tiny" for task in found if isinstance(task, MergeTask))


def test_log_versions_are_above_every_log_of_the_slice_s_own_instant():
    assert next_log_version(file_slice("a")) == 1
    assert next_log_version(file_slice("a", logs=[(T, 1), (T, 7), (T, 3)])) == 8
    # Merged over a pending compaction: the older slice's logs are named with another instant.
    merged = file_slice("a", logs=[(T, 1), (T, 7), (LATER, 2)], base_instant=LATER)
    assert next_log_version(merged) == 3
    assert plan([chunk(1)], [merged], [looked_up(merged, (0, [0]))], kind=MOR).tasks[0].log_version == 3
    assert plan([chunk(1)], [merged], [looked_up(merged, (0, [0]))], kind=MOR).based_on == {merged.group: LATER}


@BOTH
@pytest.mark.parametrize("inserts", [True, False])
def test_planning_goes_over_the_lookups_once_however_many_partitions_there_are(kind, inserts):
    class Counted(list):
        rounds = 0

        def __iter__(self):
            self.rounds += 1
            return super().__iter__()

    rounds = set()
    for partitions in (1, 7, 40):
        slices = [file_slice(f"f{n}", partition=f"p{n}") for n in range(partitions)]
        lookups = Counted(looked_up(found, (n, [0, 1])) for n, found in enumerate(slices))
        chunks = [chunk(3, partition=f"p{n}") for n in range(partitions)]
        found = plan(chunks, slices, lookups, kind=kind, inserts=inserts)
        assert {task.partition_path for task in found.tasks} == {f"p{n}" for n in range(partitions)}
        rounds.add(lookups.rounds)
    assert len(rounds) == 1


def test_a_task_is_as_large_in_a_batch_of_many_partitions_as_in_one_of_few():
    """It travels with its rows' place in the batch, and not with that of all other partitions."""

    def largest_bytes(partitions):
        storage = new_storage(FakeClock())
        storage.mkdirs("staged")
        paths = [f"p{n:04}" for n in range(partitions)]
        rows = pa.table({RECORD_KEY: paths, PARTITION_PATH: paths})
        chunks = [make_chunk(rows, storage=storage, stage_to="staged") for _ in range(3)]
        tasks = plan_write(TaggedBatch(pieces_by_partition(chunks)), Target((), MOR, Sizing(1_000_000, 0))).tasks
        assert len(tasks) == partitions
        return max(len(pickle.dumps(task)) for task in tasks)

    assert largest_bytes(500) < 1.1 * largest_bytes(5)
