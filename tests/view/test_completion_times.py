"""File slices of table versions 8 and 9: a log belongs to the newest slice that begins before its delta commit's completion."""

import itertools

import pytest

from hoodie.format.layout import V8
from hoodie.format.plan_avro import encode_compaction_plan, encode_plan
from hoodie.model.enums import Action, State
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant
from hoodie.model.payloads import CompactionOperation, CompactionPlan
from hoodie.storage.cache import Cache
from hoodie.timeline.active import ActiveTimeline
from hoodie.view.listing import StorageListing
from hoodie.view.view import FileSystemView
from tests.memory_tables import FakeClock, new_storage

FOLDER = ".hoodie/timeline"
GROUP = FileGroupId("p", "a")


def t(number):
    return f"20260101000000{number:03d}"


def base(number, file_id="a"):
    return f"{file_id}_0-0-0_{t(number)}.parquet"


def log(number, file_id="a", version=1):
    return f".{file_id}_{t(number)}.log.{version}_0-0-0"


def metadata(names, replaced):
    stats = [
        {
            "fileId": name.removeprefix(".").split("_")[0],
            "path": f"p/{name}",
            "prevCommit": "null",
            "fileSizeInBytes": 1,
            **({"logVersion": 1, "baseFile": "", "logFiles": [name]} if ".log." in name else {}),
        }
        for name in names
    ]
    record = {"partitionToWriteStats": {"p": stats}, "compacted": False, "operationType": "UPSERT"}
    if replaced:
        return encode_plan("HoodieReplaceCommitMetadata", record | {"partitionToReplaceFileIds": {"p": replaced}})
    return encode_plan("HoodieCommitMetadata", record)


class Table:
    def __init__(self):
        self.storage = new_storage(FakeClock())
        self.storage.create_new("p/.hoodie_partition_metadata", b"")

    def commit(self, number, done, *names, kind="deltacommit", replaced=()):
        for name in names:
            self.storage.create_new(f"p/{name}", b"x")
        content = metadata(names, replaced)
        self.storage.create_new(f"{FOLDER}/{t(number)}_{t(done)}.{kind}", content)

    def schedule(self, number, *logs):
        plan = CompactionPlan((CompactionOperation("p", "a", t(1), base(1), logs),))
        self.storage.create_new(f"{FOLDER}/{t(number)}.compaction.requested", encode_compaction_plan(plan))

    def view(self, archived=None):
        active = ActiveTimeline(self.storage, Cache(), layout=V8, folder=FOLDER)
        return FileSystemView(StorageListing(self.storage), active, active.load(), archived)


def shown(file_slice):
    base = file_slice.base.name if file_slice.base else None
    return (int(file_slice.base_instant[14:]), base, [each.name for each in file_slice.logs])


def slices(view, file_id="a"):
    return [shown(file_slice) for file_slice in view.group_of(FileGroupId("p", file_id)).slices]


def test_a_log_that_was_completed_before_a_compaction_began_is_part_of_it():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 4, log(3))
    table.commit(5, 7, base(5), kind="commit")
    table.commit(6, 8, log(6))
    assert slices(table.view()) == [(1, base(1), [log(3)]), (5, base(5), [log(6)])]


def test_a_log_that_was_begun_before_a_compaction_and_completed_after_belongs_behind_it():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 9, log(3))
    table.commit(4, 6, log(4))
    table.commit(5, 8, base(5), kind="commit")
    # 4 was completed at 6, when the compaction of instant 5 had been planned: it is not in its base file either.
    assert slices(table.view()) == [(1, base(1), []), (5, base(5), [log(3), log(4)])]
    (file_slice,) = table.view().latest_slices()
    assert shown(file_slice) == (5, base(5), [log(3), log(4)])


def test_logs_around_a_pending_compaction_are_merged_in_the_order_of_their_instants():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 8, log(3))
    table.commit(4, 5, log(4))
    table.schedule(6, log(4))
    table.commit(7, 9, log(7))
    assert slices(table.view()) == [(1, base(1), [log(4)]), (6, None, [log(3), log(7)])]
    (file_slice,) = table.view().latest_slices()
    assert shown(file_slice) == (6, base(1), [log(3), log(4), log(7)])


def test_log_files_of_instants_that_are_not_completed_are_not_there():
    table = Table()
    table.commit(1, 2, base(1))
    table.storage.create_new(f"{FOLDER}/{t(3)}.deltacommit.requested", b"")
    table.storage.create_new(f"{FOLDER}/{t(3)}.deltacommit.inflight", b"")
    table.storage.create_new(f"p/{log(3)}", b"torn")
    assert slices(table.view()) == [(1, base(1), [])]


def test_logs_without_a_base_file_begin_a_slice_that_later_ones_join():
    table = Table()
    table.commit(1, 2, log(1, "b"))
    table.commit(3, 4, log(3, "b"))
    table.commit(5, 7, base(5, "b"), kind="commit")
    table.commit(6, 8, log(6, "b"))
    assert slices(table.view(), "b") == [(1, None, [log(1, "b"), log(3, "b")]), (5, base(5, "b"), [log(6, "b")])]


def test_as_of_an_instant_its_log_is_read_although_it_was_completed_behind_a_later_compaction():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 9, log(3))
    table.commit(5, 8, base(5), kind="commit")
    view = table.view()
    assert shown(view.slice_of(GROUP, until=t(3))) == (1, base(1), [log(3)])
    assert shown(view.slice_of(GROUP, until=t(1))) == (1, base(1), [])
    assert shown(view.slice_of(GROUP, until=t(5))) == (5, base(5), [log(3)])


def test_at_a_position_counts_what_was_completed_by_then():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 9, log(3))
    table.commit(4, 6, log(4))
    table.commit(5, 8, base(5), kind="commit")
    view = table.view()
    seen = {n: shown(view.slice_of(GROUP, until=view.timeline.completed_by(t(n)))) for n in (2, 6, 8, 9)}
    assert seen == {
        2: (1, base(1), []),
        6: (1, base(1), [log(4)]),
        8: (5, base(5), [log(4)]),
        9: (5, base(5), [log(3), log(4)]),
    }


def test_a_group_is_replaced_when_the_replacecommit_is_completed():
    table = Table()
    table.commit(1, 2, base(1))
    table.commit(3, 6, base(3, "c"), kind="replacecommit", replaced=["a"])
    view = table.view()
    assert [file_slice.group.file_id for file_slice in view.latest_slices()] == ["c"]
    before = view.timeline.completed_by(t(5))
    assert [file_slice.group.file_id for file_slice in view.latest_slices(until=before)] == ["a"]
    assert view.is_replaced(GROUP)
    assert not view.is_replaced(GROUP, until=before)


class Archived:
    def __init__(self, **completions):
        self.completions = {t(int(number.removeprefix("t"))): t(done) for number, done in completions.items()}


@pytest.mark.parametrize(("done", "owner"), [(2, 1), (6, 5)])
def test_the_archive_says_when_an_archived_delta_commit_was_completed(done, owner):
    table = Table()
    for name in (base(1), log(2)):
        table.storage.create_new(f"p/{name}", b"x")
    table.commit(5, 7, base(5), kind="commit")
    found = slices(table.view(Archived(t2=done)))
    assert [number for number, _, logs in found if logs] == [owner]


def test_the_slices_of_every_order_of_completion_hold_every_log_once():
    for order in itertools.permutations(range(4)):
        table = Table()
        table.commit(1, 2, base(1))
        done = {number: 20 + place * 10 for number, place in zip((3, 4, 5, 7), order, strict=True)}
        for number in (3, 4, 7):
            table.commit(number, done[number], log(number))
        table.commit(25, 60, base(25), kind="commit")
        view = table.view()
        owned = {name: begins for begins, _, logs in slices(view) for name in logs}
        assert owned == {log(n): 25 if done[n] >= 25 else 1 for n in (3, 4, 7)}
        for position in range(19, 61):
            then = view.timeline.completed_by(t(position))
            file_slice = view.slice_of(GROUP, until=then)
            newest = 25 if position >= 60 else 1
            expected = [n for n in (3, 4, 7) if done[n] <= position and (newest == 1 or done[n] >= 25)]
            assert [each.name for each in file_slice.logs] == [log(n) for n in expected], (order, position)


def test_an_instant_of_layout_2_names_its_file():
    table = Table()
    table.commit(1, 2, base(1))
    active = ActiveTimeline(table.storage, Cache(), layout=V8, folder=FOLDER)
    (commit,) = active.load().commits
    assert commit == Instant(t(1), Action.DELTACOMMIT, State.COMPLETED, t(2))
    assert [stat.path for stat in active.read_commit(commit).stats()] == [f"p/{base(1)}"]
