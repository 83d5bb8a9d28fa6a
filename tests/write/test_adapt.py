"""What of a plan stands after others were completed first: values in, tasks out."""

import numpy as np
import pyarrow as pa

from hoodie.filegroup.chunks import make_chunk
from hoodie.index.bloom import pieces_by_partition
from hoodie.model.enums import TableType
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import AppendTask, LookupResult, Matches, MergeTask
from hoodie.write.adapt import adapted
from hoodie.write.plan import Sizing, TaggedBatch, Target, plan_write, rewriting

COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ
T, LATER = "20260101000000000", "20260101000000001"
KEYS = [f"k{n}" for n in range(10)]
CHUNK = make_chunk(pa.table({RECORD_KEY: KEYS, PARTITION_PATH: ["p"] * len(KEYS)}))
PIECES = pieces_by_partition([CHUNK])


def log(version, *, committed=True, file_id="f-0"):
    return LogFile("p", file_id, T, version, f"log{version}", 1, 1 if committed else None)


def file_slice(file_id="f-0", *, base_instant=T, logs=()):
    base = BaseFile("p", file_id, base_instant, f"{file_id}_{base_instant}", 10**9)
    return FileSlice(FileGroupId("p", file_id), base_instant, base, tuple(logs))


def plan(kind, found, *, versions=None, inserts=True, deletes=None):
    """The plan for slices with the rows that were found in each of them: numbers, or the name of a file with them."""
    lookups = [
        LookupResult(
            each.base, (Matches(0, path=rows, count=3) if isinstance(rows, str) else in_memory(rows),), "keys", 99
        )
        for each, rows in found
    ]
    sizing = Sizing(10**9, 0)
    target = Target([each for each, _ in found], kind, sizing, log_versions=versions or {}, deletes=deletes or {})
    return plan_write(TaggedBatch(PIECES, lookups, inserts=inserts), target)


def in_memory(rows):
    return Matches(0, rows=np.array(rows, np.int32), count=len(rows))


def kept(before, now, *, stand_alone=True):
    """For each task of the adapted plan whether it is one of before; numbers never stand twice."""
    found = adapted(before, now, numbers_used=len(before.tasks), logs_stand_alone=stand_alone)
    numbers = [task.number for task in found.tasks]
    assert len(set(numbers)) == len(numbers)
    assert found.based_on == now.based_on
    return [any(task is each for each in before.tasks) for task in found.tasks]


def test_where_nothing_changed_all_stays_and_new_file_groups_keep_their_names():
    for kind in (COW, MOR):
        assert kept(plan(kind, [(file_slice(), [1, 2])]), plan(kind, [(file_slice(), [1, 2])])) == [True, True]


def test_other_rows_or_another_base_file_are_another_task():
    before = plan(COW, [(file_slice(), [1, 2])], inserts=False)
    assert kept(before, plan(COW, [(file_slice(), [1, 3])], inserts=False)) == [False]
    assert kept(before, plan(COW, [(file_slice(base_instant=LATER), [1, 2])], inserts=False)) == [False]


def test_rows_that_are_found_in_another_file_now_are_no_less_known():
    before = plan(MOR, [(file_slice("f-0"), [1]), (file_slice("g-0"), [2])])
    assert kept(before, plan(MOR, [(file_slice("f-0"), [2]), (file_slice("g-0"), [1])])) == [False, False, True]
    assert kept(before, plan(MOR, [(file_slice("f-0"), [1]), (file_slice("g-0"), [2, 3])])) == [True, False, False]


def test_rows_whose_numbers_are_staged_are_the_same_only_in_the_same_file():
    before = plan(MOR, [(file_slice(), "staged/1")], inserts=False)
    assert kept(before, plan(MOR, [(file_slice(), "staged/1")], inserts=False)) == [True]
    assert kept(before, plan(MOR, [(file_slice(), "staged/2")], inserts=False)) == [False]


def test_a_log_does_not_stay_behind_deletes_that_came_meanwhile():
    now, deletes = file_slice(logs=[log(1)]), {FileGroupId("p", "f-0"): (log(1),)}
    before = plan(MOR, [(file_slice(), [1])], inserts=False, versions={FileGroupId("p", "f-0"): 1})
    assert kept(before, plan(MOR, [(now, [1])], inserts=False)) == [True]
    assert kept(before, plan(MOR, [(now, [1])], inserts=False, deletes=deletes)) == [False]


def test_a_new_base_file_takes_the_place_of_all_logs_of_its_file_group_and_stays_the_same():
    groups = {FileGroupId("p", "f-0")}
    logs = plan(MOR, [(file_slice(logs=[log(1)]), [1]), (file_slice("g-0"), [2])], inserts=False)
    before = rewriting(logs, groups)
    assert [type(task) for task in before.tasks] == [MergeTask, AppendTask]
    assert kept(before, rewriting(logs, groups)) == [True, True]
    more = plan(MOR, [(file_slice(logs=[log(1), log(2)]), [1]), (file_slice("g-0"), [2])], inserts=False)
    assert kept(before, rewriting(more, groups)) == [False, True]


def test_a_log_stays_where_its_version_is_above_those_of_the_others():
    before = plan(MOR, [(file_slice(), [1])], versions={FileGroupId("p", "f-0"): 4}, inserts=False)
    assert [task.log_version for task in before.tasks] == [5]
    for version, stays in [(1, True), (4, True), (5, False), (6, False)]:
        assert kept(before, plan(MOR, [(file_slice(logs=[log(version)]), [1])], inserts=False)) == [stays]
    # Nobody reads what is not committed; whoever commits it later has to look again.
    uncommitted = file_slice(logs=[log(6, committed=False)])
    assert kept(before, plan(MOR, [(uncommitted, [1])], inserts=False)) == [True]


def test_what_holds_stored_rows_is_written_again_when_these_have_got_logs():
    before = plan(MOR, [(file_slice(), [1])], versions={FileGroupId("p", "f-0"): 4}, inserts=False)
    now = plan(MOR, [(file_slice(logs=[log(2)]), [1])], inserts=False)
    assert kept(before, now, stand_alone=False) == [False]
    before, now = plan(COW, [(file_slice(), [1])]), plan(COW, [(file_slice(logs=[log(2)]), [1])])
    assert kept(before, now) == [False, True]
