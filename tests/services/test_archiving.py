"""Archiving: what leaves the active timeline, what can still be read, and what happens when an archiver dies or meets another one."""

from contextlib import suppress
from dataclasses import replace

import pytest

import hoodie
from hoodie.errors import CorruptFileError, OptionError
from hoodie.format.archive import decode_archive_file
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.format.layout import V6
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import name_of
from hoodie.services import archiving
from hoodie.services.inline import wait_for_background
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.active import LISTED_AT_ONCE, ActiveTimeline
from hoodie.timeline.archive_writer import APART, MERGE_FILES, ArchiveWriter
from tests.bucket import BucketStorage
from tests.effort import in_shares, long_but
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    create,
    new_storage,
    new_table,
    opened,
    plain,
    snapshot_of,
)
from tests.placed import in_memory

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
AUTOMATIC = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "5"}
HISTORY = ".hoodie/history"


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def rows(turn):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(4)])


def written(kind, turns, options=None):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock, COMPACTING | (options or {}))
    for turn in range(turns):
        table.upsert(rows(turn))
    return storage, clock, table


def names(storage):
    return {info.name for info in storage.list(".hoodie") if not info.is_folder}


def archived(storage):
    found = []
    for info in storage.list(HISTORY):
        found += decode_archive_file(storage.read(info.path), path=info.path)
    return found


def elsewhere(storage, clock):
    """The table as another process has it."""
    return opened(storage, clock, cache=Cache())


@pytest.mark.parametrize("kind", long_but(["COPY_ON_WRITE"], KINDS))
def test_the_timeline_does_not_grow_without_end(kind):
    storage, clock, table = written(kind, 40, AUTOMATIC)
    assert len(table.timeline.commits) <= 6
    assert len([name for name in names(storage) if name[0].isdigit()]) <= 3 * 7
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {39}
    assert len(storage.list(HISTORY)) <= MERGE_FILES + APART


def test_rows_history_and_pulls_are_as_they_were(kind):
    storage, clock, table = written(kind, 9)
    commits = [i.time for i in table.timeline.commits]
    history = table.history()
    snapshot = snapshot_of(table)
    pulls = {time: plain(table.changes(since=time, meta_columns=True)) for time in commits}
    result = table.archive(min_commits=4)
    assert result.earliest == commits[-4]
    assert set(result.instants) == set(commits[:-4])
    assert [i.time for i in table.timeline.commits] == commits[-4:]
    fresh = elsewhere(storage, clock)
    assert snapshot_of(fresh) == snapshot
    told = fresh.history(archived=True)
    assert [(r.instant, r.inserted, r.updated, r.files) for r in told] == [
        (r.instant, r.inserted, r.updated, r.files) for r in history
    ]
    assert {time: plain(fresh.changes(since=time, meta_columns=True)) for time in commits} == pulls
    fresh.upsert(rows(10))
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {10}


def test_a_marker_that_came_late_goes_with_the_instants_of_its_time(kind):
    storage, _, table = written(kind, 9)
    first, last = table.timeline.commits[0].time, table.timeline.commits[-1].time
    undone, young = f"{int(first) - 1}", f"{int(last) + 1}"
    for instant in (undone, young):
        storage.create_new(f".hoodie/.temp/{instant}/a/f.parquet.marker.CREATE", b"")
    table.archive(min_commits=4)
    assert [info.path for info in storage.list(".hoodie/.temp")] == [f".hoodie/.temp/{young}"]


def test_a_dry_run_says_what_would_leave_and_changes_nothing(kind):
    storage, _, table = written(kind, 9)
    before = storage.snapshot()
    dry = table.archive(min_commits=4, dry_run=True)
    assert storage.snapshot() == before
    assert dry.dry_run
    assert dry.instants == table.archive(min_commits=4).instants
    assert table.archive(min_commits=4).instants == ()


def test_all_states_of_an_instant_are_archived_and_leave(kind):
    storage, _, table = written(kind, 9)
    before = names(storage)
    contents = {name: storage.read(f".hoodie/{name}") for name in before}
    result = table.archive(min_commits=4)
    left = before - names(storage)
    assert {V6.parse(name).time for name in left} == set(result.instants)
    assert not any(V6.parse(name) and V6.parse(name).time in result.instants for name in names(storage))
    assert {(i.time, i.state) for i in archived(storage)} == {(time, State.COMPLETED) for time in result.instants}
    for instant in archived(storage):
        archive = table._context.archived()
        active = ActiveTimeline(MemoryStorage("memory://before"), Cache())
        path = active.path(instant)
        active._storage.create_new(path, contents[name_of(path)])
        before_it = active.read_commit(instant)
        # Bounds of columns are left out: they name values of rows that may be deleted since.
        kept = {name: text for name, text in before_it.extra.items() if name != COLUMN_STATS}
        assert archive.read_commits([instant])[instant.time] == replace(before_it, extra=kept)


@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], KINDS))
def test_a_write_archives_only_where_an_option_asks_for_it(kind):
    for options in ({}, {**AUTOMATIC, "hoodie.archive.automatic": "false"}):
        _, _, table = written(kind, 9, options)
        assert len(table.timeline.commits) >= 9
    _, _, table = written(kind, 34, {"hoodie.archive.automatic": "true"})
    assert len(table.timeline.commits) <= 31


def test_in_the_background_the_writer_does_not_wait():
    storage, _, table = written("COPY_ON_WRITE", 9, {**AUTOMATIC, "hoodie.archive.async": "true"})
    wait_for_background()
    assert len(table.timeline.commits) <= 6
    assert archived(storage)


def test_options_that_contradict_each_other_are_refused(kind):
    _, _, table = written(kind, 1)
    with pytest.raises(OptionError, match=r"hoodie.keep.max.commits=3 has to be more than hoodie.keep.min.commits=3"):
        table.archive(min_commits=3, max_commits=3)
    with pytest.raises(OptionError, match="min_commits=0 is not a whole number"):
        table.archive(min_commits=0)


def test_a_damaged_commit_is_not_archived(kind):
    storage, _, table = written(kind, 9)
    first = table.timeline.commits[0]
    path = table._context.active.path(first)
    storage.replace(path, b'{"partitionToWriteStats": 1')
    before = storage.snapshot()
    with pytest.raises(CorruptFileError, match=first.time):
        table.archive(min_commits=4)
    assert storage.snapshot() == before


# -- what has to stay --------------------------------------------------------------------------------------------------


def test_files_that_were_replaced_hold_their_replacecommit_until_they_are_cleaned():
    storage, clock, table = written("COPY_ON_WRITE", 3)
    replacing = table.insert_overwrite(rows(3)).instant
    for turn in range(4, 9):
        table.upsert(rows(turn))
    snapshot = snapshot_of(table)
    result = table.archive(min_commits=2)
    assert result.earliest == replacing
    assert "whose replaced files are still there" in result.held_by
    assert snapshot_of(elsewhere(storage, clock)) == snapshot
    table.clean(retain_commits=1)
    assert replacing in table.archive(min_commits=2).instants
    assert snapshot_of(elsewhere(storage, clock)) == snapshot


@in_memory("sets the time of a file")
def test_what_was_committed_after_a_pending_write_began_stays_whatever_its_instant(kind):
    storage, _, table = written(kind, 8)
    commits = table.timeline.commits
    latest = commits[-1]
    # A write that began with the third commit: its instant is later than that of the last one.
    pending = Instant(str(int(latest.time) + 1), latest.action, State.REQUESTED)
    table._context.active.create(pending)
    began_s = storage.stat(table._context.active.path(commits[2])).mtime_s + 2
    storage._files[table._context.active.path(pending)].mtime_s = began_s
    result = table.archive(min_commits=1)
    assert result.earliest in (commits[2].time, commits[3].time)
    assert "which began before it was committed" in result.held_by


def test_an_unfinished_compaction_holds_the_commits_after_it():
    _, clock, table = written("MERGE_ON_READ", 3, {"hoodie.compact.inline": "false"})
    clock.now_s += 10
    planned = table.schedule_compaction()
    for turn in range(3, 9):
        table.upsert(rows(turn))
    before = [i.time for i in table.timeline.commits if i.time < planned][-1]
    result = table.archive(min_commits=1)
    assert result.earliest == before
    assert "pending" in result.held_by
    table.run_compaction()
    assert {row[2] for row in snapshot_of(table)} == {8}


@in_memory("dies between two steps that a store takes in another order")
def test_a_file_that_came_after_its_write_was_rolled_back_does_not_come_alive():
    storage, clock, table = written("COPY_ON_WRITE", 3)
    doomed = FaultStorage(storage)

    class DiesBeforePublishing(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".commit"):
                raise InjectedFault("died")
            super().create_new(path, data, via=via, durable=durable)

    with pytest.raises(InjectedFault):
        opened(DiesBeforePublishing(doomed), clock).upsert(rows(50))
    late = [i.path for i in storage.list("a") if i.path.endswith(".parquet")]
    dead = next(i for i in table.timeline if not i.is_completed).time
    late = next(path for path in late if dead in path)
    content = storage.read(late)
    for turn in range(3, 9):
        table.upsert(rows(turn))
    storage.create_new(late, content)
    table.archive(min_commits=2)
    assert not storage.exists(late)
    assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {8}


# -- crashes and others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", long_but(["COPY_ON_WRITE"], KINDS))
@pytest.mark.parametrize("store", long_but([MemoryStorage], [MemoryStorage, BucketStorage]))
@in_shares(3)
def test_an_archiver_that_dies_anywhere_loses_nothing_and_the_next_one_ends_it(kind, store, share, monkeypatch):
    merge = ArchiveWriter.merge
    monkeypatch.setattr(ArchiveWriter, "merge", lambda self: merge(self, files=3, apart=0))
    clock = FakeClock()
    start = new_storage(clock, store)
    create(start, table_type=kind)
    table = opened(start, clock, COMPACTING)
    for turn in range(3):
        for one in range(4):
            table.upsert(rows(4 * turn + one))
        if turn < 2:
            table.archive(min_commits=2)
    snapshot = snapshot_of(table)
    history = [r.instant for r in table.history(archived=True)]
    traced = FaultStorage(copy_of(start)[0])
    ended = opened(traced, clock).archive(min_commits=2)
    assert len(traced.trace) > 10
    seen = set()
    for fault in share.of(crash_points(traced.trace)):
        storage, clock = copy_of(start)
        with suppress(InjectedFault, OSError):
            opened(FaultStorage(storage, [fault]), clock).archive(min_commits=2)
        between = elsewhere(storage, clock)
        assert snapshot_of(between) == snapshot, fault
        assert [r.instant for r in between.history(archived=True)] == history, fault
        seen.add(len(between.timeline.commits))
        between.upsert(rows(50))
        again = elsewhere(storage, clock)
        again.archive(min_commits=2)
        assert {row[2] for row in snapshot_of(elsewhere(storage, clock))} == {50}, fault
        assert {r.instant for r in again.history(archived=True)} > set(history), fault
        assert len(again.timeline.commits) <= 4, fault
        found = [(i.time, i.action) for i in archived(storage)]
        assert set(ended.instants) <= {time for time, _ in found}, fault
    assert len(seen) > 2


def test_an_error_of_the_storage_is_a_warning_after_a_commit_and_the_next_write_archives(kind, caplog):
    storage, clock, _ = written(kind, 5, {**AUTOMATIC, "hoodie.archive.automatic": "false"})

    class Full(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.startswith(HISTORY):
                raise OSError(28, "No space left on device", path)
            super().create_new(path, data, via=via, durable=durable)

    for turn in range(5, 8):
        assert opened(Full(storage), clock, AUTOMATIC).upsert(rows(turn)).instant
    assert "archiving after it failed" in caplog.text
    assert archived(storage) == []
    opened(storage, clock, AUTOMATIC).upsert(rows(8))
    assert archived(storage)


def test_two_that_archive_at_once_do_it_once(kind, monkeypatch):
    storage, clock, table = written(kind, 9)
    snapshot = snapshot_of(table)
    other = elsewhere(storage, clock)
    add = ArchiveWriter.add
    met = []

    def meet(self, files, *, timeline):
        add(self, files, timeline=timeline)
        if not met:
            met.append(True)
            met.append(other.archive(min_commits=4))

    monkeypatch.setattr(ArchiveWriter, "add", meet)
    first = table.archive(min_commits=4)
    assert first.instants == ()
    assert met[1].instants
    assert snapshot_of(elsewhere(storage, clock)) == snapshot
    assert len(table.archived_instants()) == len(met[1].instants)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_restore_undoes_while_it_is_archived_stays_in_no_archive(kind, monkeypatch, moment):
    storage, clock, table = written(kind, 9)
    saved = table.timeline.commits[2].time
    kept = plain(table.scan(as_of=saved, meta_columns=True))
    other = elsewhere(storage, clock)
    add = ArchiveWriter.add

    def meet(self, files, *, timeline):
        if moment == "after":
            add(self, files, timeline=timeline)
        other.savepoint(saved)
        other.restore(saved)
        if moment == "before":
            add(self, files, timeline=timeline)

    monkeypatch.setattr(ArchiveWriter, "add", meet)
    table.archive(min_commits=2)
    there = elsewhere(storage, clock)
    assert snapshot_of(there) == kept
    assert max(r.instant for r in there.history(archived=True)) == saved
    assert all(i.time <= saved for i in there.archived_instants())


def test_what_a_restore_undoes_while_archive_files_are_put_together_stays_in_none(kind, monkeypatch):
    """Instants that an archiver who died left on both timelines."""
    storage, clock, table = written(kind, 9)
    saved = table.timeline.commits[-5].time
    kept = plain(table.scan(as_of=saved, meta_columns=True))
    other = elsewhere(storage, clock)
    table.archive(min_commits=len(table.timeline.commits) - 2)
    monkeypatch.setattr(archiving, "_delete", lambda *_: ())
    table.archive(min_commits=2)
    monkeypatch.undo()
    kind_of_storage = type(storage)
    merge, replace = ArchiveWriter.merge, kind_of_storage.replace

    def restored_first(self, path, data):
        monkeypatch.undo()
        other.savepoint(saved)
        other.restore(saved)
        replace(self, path, data)

    def of_all(self):
        monkeypatch.setattr(kind_of_storage, "replace", restored_first)
        return merge(self, files=2, apart=0)

    monkeypatch.setattr(ArchiveWriter, "merge", of_all)
    table.upsert(rows(9))
    assert table.archive(min_commits=len(table.timeline.commits) - 2).instants
    there = elsewhere(storage, clock)
    assert snapshot_of(there) == kept
    assert max(r.instant for r in there.history(archived=True)) == saved


def test_a_savepoint_that_is_made_while_it_is_archived_keeps_its_commit(kind, monkeypatch):
    storage, _, table = written(kind, 9)
    saved = table.timeline.commits[2]
    add = ArchiveWriter.add

    def meet(self, files, *, timeline):
        add(self, files, timeline=timeline)
        storage.create_new(f".hoodie/{saved.time}.savepoint", b"")

    monkeypatch.setattr(ArchiveWriter, "add", meet)
    result = table.archive(min_commits=4)
    assert result.instants
    assert max(result.instants) < saved.time
    assert table.timeline.commits[0] == saved


def test_a_reader_that_began_before_reads_on(kind):
    storage, clock, table = written(kind, 9)
    commits = [i.time for i in table.timeline.commits]
    reader = elsewhere(storage, clock)
    expected = plain(reader.scan(meta_columns=True)), plain(reader.changes(since=commits[1], meta_columns=True))
    late = elsewhere(storage, clock)
    scan = late.scan(meta_columns=True)
    snapshot = elsewhere(storage, clock)._context.snapshot()  # has read no commit yet
    table.archive(min_commits=2)
    assert plain(scan) == expected[0]
    assert [snapshot.active.read_commit(i).stats() for i in snapshot.timeline.commits]
    assert plain(late.changes(since=commits[1], meta_columns=True)) == expected[1]


class Slow(MemoryStorage):
    """While its timeline is listed, somebody archives."""

    seen = 1
    between = staticmethod(lambda: None)

    def names(self, folder):
        return [info.name for info in self.list(folder) if not info.is_folder]

    def list(self, folder, *, recursive=False):
        first = list(super().list(folder, recursive=recursive))
        between, self.between = self.between, lambda: None
        between()
        second = list(super().list(folder, recursive=recursive))
        # The first instant as it was before, the others as they are after.
        return sorted({info.path: info for info in (*first[: self.seen], *second)}.values())


@pytest.mark.parametrize("many", [False, True])
def test_a_listing_with_a_hole_is_not_taken(many):
    """The first commit was seen, and those after it were gone before their turn came."""
    storage = Slow("memory://slow")
    active = ActiveTimeline(storage, Cache(), listed_at_once=3 if many else LISTED_AT_ONCE)
    states = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)
    instants = [Instant(f"2026112112000{n:04d}", Action.COMMIT, State.COMPLETED) for n in range(6)]
    for instant in instants:
        for state in states:
            active.create(instant._replace(state=state))

    def archive():
        for state in states:
            for instant in instants[:3]:
                active.remove(instant._replace(state=state))

    if many:
        storage.seen = 3
    else:  # the requested and inflight files are gone, and the completed ones are just going
        for instant in instants[:3]:
            for state in states[:2]:
                active.remove(instant._replace(state=state))
    storage.between = archive
    assert list(active.load()) == instants[3:]


# -- the archive's files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", long_but(["COPY_ON_WRITE"], KINDS))
def test_small_files_are_put_together_and_nothing_is_lost(kind):
    storage, clock, table = written(kind, 3)
    for turn in range(3, 30):
        table.upsert(rows(turn))
        table.archive(min_commits=2)
    assert len(storage.list(HISTORY)) <= MERGE_FILES + APART
    times = [i.time for i in archived(storage)]
    assert len(times) == len(set(times))
    assert len(elsewhere(storage, clock).history(archived=True)) >= 30


def test_a_reader_of_the_archive_meets_files_that_are_put_together(kind):
    storage, clock, table = written(kind, 3)
    for turn in range(3, 8):
        table.upsert(rows(turn))
        table.archive(min_commits=2)
    reader = elsewhere(storage, clock)._context.archived()
    before = reader.files
    assert len(before) > 2
    ArchiveWriter(storage, HISTORY, layout=V6).merge(files=len(before), small_bytes=10_000_000, apart=0)
    assert len(storage.list(HISTORY)) == 1
    assert len(reader.instants) == len(archived(storage))
    assert reader.files == before[-1:]


@pytest.mark.parametrize("sizes", [[100], [100, 100, 20_000]], ids=["alike", "some large"])
def test_files_are_few_and_the_newest_stay_small_and_each_byte_is_written_again_a_few_times(sizes):
    storage, small_bytes = MemoryStorage(), 50_000
    writer = ArchiveWriter(storage, HISTORY, layout=V6)
    written = again = 0
    for number in range(1, 3001):
        data = bytes(sizes[number % len(sizes)])
        storage.create_new(f"{HISTORY}/.commits_.archive.{number}_1-0-1", data)
        written += len(data)
        before = {info.path: info.mtime_s for info in storage.list(HISTORY)}
        if writer.merge(small_bytes=small_bytes):
            (changed,) = (i for i in storage.list(HISTORY) if i.mtime_s != before[i.path])
            again += changed.size_bytes
        infos = {int(info.path.rpartition(".")[2].partition("_")[0]): info for info in storage.list(HISTORY)}
        newest = [infos[n].size_bytes for n in sorted(infos)][-APART:]
        assert max(newest) <= max(sizes), number
    assert sum(info.size_bytes for info in storage.list(HISTORY)) == written
    assert len([info for info in storage.list(HISTORY) if info.size_bytes < small_bytes]) <= 3 * MERGE_FILES + APART
    assert again <= 12 * written


def test_large_files_stay_as_they_are(kind):
    storage, _, table = written(kind, 3)
    for turn in range(3, 9):
        table.upsert(rows(turn))
        table.archive(min_commits=2)
    writer = ArchiveWriter(storage, HISTORY, layout=V6)
    before = storage.list(HISTORY)
    assert writer.merge(files=2, small_bytes=10, apart=0) == 0
    assert storage.list(HISTORY) == before


def test_what_may_be_due_is_told_without_a_look_at_the_storage(kind):
    storage, clock, _ = written(kind, 4, AUTOMATIC)
    traced = FaultStorage(storage)
    table = opened(traced, clock, AUTOMATIC)
    table.upsert(rows(9))
    request = table._request(None).write
    calls = len(traced.trace)
    assert archiving.is_due(table._context, request) is (len(table.timeline.commits) > 5)
    assert len(traced.trace) == calls


def test_a_table_that_is_archived_all_the_time_while_it_is_listed_is_an_error(monkeypatch):
    monkeypatch.setattr("hoodie.timeline.active.time.sleep", lambda _: None)
    storage = Slow("memory://slow")
    active = ActiveTimeline(storage, Cache())
    instants = [Instant(f"2026112112000{n:04d}", Action.COMMIT, State.COMPLETED) for n in range(60)]
    for instant in instants:
        active.create(instant)

    def archive_one():
        active.remove(instants.pop(0))
        storage.between = archive_one

    storage.between = archive_one
    with pytest.raises(hoodie.HoodieError, match="changed during every attempt"):
        active.load()
    storage.between = lambda: None
    assert list(active.load()) == instants
