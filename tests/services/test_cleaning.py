"""Cleaning: what goes, what stays readable, and what happens when a cleaner dies or meets another one."""

import pytest

import hoodie
from hoodie.errors import CommitConflictError, InstantNotFoundError, MissingFileError, OptionError
from hoodie.filegroup.missing_file import missing_file_error
from hoodie.format.service_plans import encode_clean_plan
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.instant import Instant
from hoodie.model.names import name_of
from hoodie.model.payloads import CleanPlan
from hoodie.options.parse import parse_write_options
from hoodie.services.clean_plan import plan_clean
from hoodie.services.cleaning import CLEANING, CleaningService
from hoodie.services.inline import wait_for_background
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.effort import in_shares, long_but
from tests.golden_tables import copy_golden
from tests.memory_tables import Input, batch, copy_of, leftovers, new_table, opened, snapshot_of, stray_files
from tests.placed import in_memory
from tests.rows import rows_of

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
AUTOMATIC = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "3"}
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}


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


def data_files(storage):
    return [i.path for p in "ab" for i in storage.list(p) if "metadata" not in i.path]


def states(table):
    return [i.state for i in table.timeline if i.action is Action.CLEAN]


class Counting(FaultStorage):
    """Which folders were listed."""

    def list(self, folder, *, recursive=False):
        self.listed = [*getattr(self, "listed", []), folder]
        return super().list(folder, recursive=recursive)


@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], KINDS))
def test_a_table_does_not_grow_without_end(kind):
    storage, _, table = written(kind, 12, AUTOMATIC)
    before = len(data_files(storage))
    for turn in range(12, 24):
        table.upsert(rows(turn))
    assert len(data_files(storage)) <= before + 4
    assert {row[2] for row in snapshot_of(table)} == {23}
    assert leftovers(storage) == []


def test_every_retained_commit_reads_as_it_was_and_older_ones_are_a_clear_error(kind):
    storage, clock, table = written(kind, 9)
    commits = [i.time for i in table.timeline.commits]
    then = {time: table.scan(as_of=time).to_arrow() for time in commits}
    result = table.clean(retain_commits=4)
    assert result.files > 0
    assert result.bytes_freed > 0
    assert result.earliest_retained == commits[-4]
    fresh = opened(copy_of(storage)[0], clock)
    for time in commits[-4:]:
        assert fresh.scan(as_of=time).to_arrow().equals(then[time])
        fresh.changes(since=commits[-4], until=time).to_arrow()
    with pytest.raises(InstantNotFoundError, match=f"were cleaned.*earliest instant to read is {commits[-4]}"):
        fresh.scan(as_of=commits[0])


def test_a_dry_run_says_what_the_clean_then_does_and_changes_nothing(kind):
    storage, _, table = written(kind, 9)
    before = storage.snapshot()
    dry = table.clean(retain_commits=2, dry_run=True)
    assert storage.snapshot() == before
    done = table.clean(retain_commits=2)
    assert (dry.files, dry.bytes_freed, dry.earliest_retained) == (done.files, done.bytes_freed, done.earliest_retained)
    assert dry.instant is None
    assert dry.files > 0
    assert table.clean(retain_commits=2).instant is None


def test_where_nothing_is_to_go_the_first_commit_is_what_can_be_read(kind):
    _, _, table = written(kind, 3)
    first = table.timeline.commits[0].time
    done, dry = (table.clean(retain_commits=10, dry_run=dry_run) for dry_run in (False, True))
    assert (done.instant, done.files, done.earliest_retained, done.dry_run) == (None, 0, first, False)
    assert (dry.instant, dry.files, dry.earliest_retained, dry.dry_run) == (None, 0, first, True)


def test_what_is_gone_stays_so_where_a_later_clean_keeps_more():
    storage, clock, table = written("COPY_ON_WRITE", 6)
    newest = table.timeline.commits[-1].time
    assert table.clean(retain_versions=1).earliest_retained == newest
    for turn in range(6, 9):
        table.upsert(rows(turn))
    dry = table.clean(retain_commits=8, dry_run=True)
    done = table.clean(retain_commits=8)
    assert done.instant is not None
    assert (dry.earliest_retained, done.earliest_retained) == (newest, newest)
    assert table.clean(retain_commits=8).earliest_retained == newest
    fresh = opened(copy_of(storage)[0], clock)
    with pytest.raises(InstantNotFoundError, match="were cleaned"):
        fresh.scan(as_of=fresh.timeline.commits[2].time)


@in_memory("under a lock that can end, folders of emptied partitions stay")
def test_versions_are_counted_for_each_file_and_replaced_files_go_at_once():
    storage, _, table = written("COPY_ON_WRITE", 6)
    table.clean(retain_versions=2)
    assert len(data_files(storage)) == 4
    table.delete_partitions(["b"])
    table.clean(retain_versions=2)
    assert table.partitions() == ("a",)
    assert not storage.exists("b")
    table.upsert(rows(9))
    assert table.scan().count() == 4


def test_of_the_hours_the_newest_file_before_them_stays():
    storage, clock, table = written("COPY_ON_WRITE", 3)
    clock.now_s += 5 * 3600
    table.upsert(rows(5))
    first = table.timeline.commits[-1].time
    assert table.clean(retain_hours=2).earliest_retained == first
    assert table.scan(as_of=first).count() == 4
    assert len(data_files(storage)) == 4  # of each of the two files what the commit replaced, and what it made


def test_what_is_asked_for_is_one_of_three():
    _, _, table = written("COPY_ON_WRITE", 1)
    with pytest.raises(OptionError, match="retain_commits, retain_versions"):
        table.clean(retain_commits=1, retain_versions=1)
    with pytest.raises(OptionError, match="retain_commits=0"):
        table.clean(retain_commits=0)


def test_after_the_first_clean_only_partitions_with_changes_are_listed():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input(f"k{n}", f"p{n}", 0, 0) for n in range(20)]))
    for turn in range(1, 4):
        table.upsert(batch([Input("k3", "p3", turn, turn)]))
    table.clean(retain_commits=1)
    for turn in range(4, 6):
        table.upsert(batch([Input("k7", "p7", turn, turn)]))
    counting = Counting(storage)
    result = opened(counting, clock, cache=Cache()).clean(retain_commits=1)  # another process
    assert result.partitions == 2  # the last file of p3 has no reader any more either
    assert {folder for folder in counting.listed if not folder.startswith(".hoodie")} == {"p3", "p7"}


def test_rows_that_are_only_added_leave_nothing_to_list():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    options = AUTOMATIC | {"hoodie.parquet.small.file.limit": "0"}
    for turn in range(8):
        opened(storage, clock, options).bulk_insert(batch([Input(f"k{turn}", "a", 0, 0)]))
    listed = []
    for more in ({}, {"hoodie.clean.automatic": "false"}):
        bare, its_clock = copy_of(storage)
        counting = Counting(bare)
        opened(counting, its_clock, options | more, cache=Cache()).bulk_insert(batch([Input("next", "a", 0, 0)]))
        listed.append([folder for folder in counting.listed if not folder.startswith(".hoodie")])
    assert listed[0] == listed[1]


def test_what_a_pending_compaction_reads_stays():
    _, _, table = written("MERGE_ON_READ", 5)
    table.upsert(rows(5))
    table.schedule_compaction()
    for turn in range(6, 12):
        table.upsert(rows(turn), {"hoodie.compact.inline": "false"})
    table.clean(retain_commits=1)
    table.clean(retain_versions=1)
    table.run_compaction()
    assert {row[2] for row in snapshot_of(table)} == {11}


def test_a_query_that_is_being_read_keeps_its_files():
    storage, _, table = written("COPY_ON_WRITE", 4)
    expected = sorted(table.to_arrow()["val"].to_pylist())
    reader = table.scan().to_reader()
    for turn in range(4, 8):
        table.upsert(rows(turn))
    table.clean(retain_commits=1)
    assert sorted(reader.read_all()["val"].to_pylist()) == expected
    reader.close()
    del reader
    table.clean(retain_commits=1)
    assert len(data_files(storage)) == 4


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("service", ["compaction", "clustering"])
@pytest.mark.parametrize("policy", [{"retain_commits": 1}, {"retain_versions": 1}])
def test_a_query_keeps_its_files_where_a_service_of_an_earlier_instant_is_completed_meanwhile(version, service, policy):
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": version})
    table = opened(storage, clock)
    for turn in range(2):
        table.upsert(rows(turn))
    getattr(table, f"schedule_{service}")()
    table.upsert(batch([Input("later", "a", 9, 9)]))
    expected = sorted(table.to_arrow()["val"].to_pylist())
    reader = table.scan().to_reader()
    getattr(table, f"run_{service}")()
    table.clean(**policy)
    assert sorted(reader.read_all()["val"].to_pylist()) == expected
    reader.close()
    del reader
    table.upsert(rows(9))
    assert table.clean(**policy).files > 0


def test_what_was_there_before_a_late_compaction_stays_as_long_as_commits_of_then():
    """On version 9 its completion time says how late it was."""
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": "9"})
    table = opened(storage, clock)
    for turn in range(2):
        table.upsert(rows(turn))
    table.schedule_compaction()
    for turn in range(2, 6):
        table.upsert(rows(turn))
    before = table.timeline.commits[-1].position
    expected = sorted(table.to_arrow()["val"].to_pylist())
    table.run_compaction()
    assert table.clean(retain_commits=2).files == 0
    assert sorted(table.changes(until=before).to_arrow()["val"].to_pylist()) == expected
    for turn in range(6, 8):
        table.upsert(rows(turn))
    assert table.clean(retain_commits=2).files > 0


def test_a_scan_that_meets_a_cleaned_file_says_which_clean_it_was():
    _, _, table = written("COPY_ON_WRITE", 3)
    scan = table.scan()
    for turn in range(3, 6):
        table.upsert(rows(turn))
    clean = table.clean(retain_commits=1).instant
    with pytest.raises(MissingFileError, match=f"deleted by the clean of instant {clean}.*Query the table again"):
        list(scan.to_batches())


@pytest.mark.parametrize("kind", long_but(["COPY_ON_WRITE"], KINDS))
@in_shares(2)
def test_a_cleaner_that_dies_anywhere_is_gone_on_with_and_no_reader_notices(kind, share):
    storage, _, table = written(kind, 8)
    table.delete_partitions(["b"])
    table.upsert(rows(9))
    table.upsert(rows(10))
    expected = snapshot_of(table)
    done, its_clock = copy_of(storage)
    traced = FaultStorage(done)
    opened(traced, its_clock).clean(retain_commits=1)
    left = sorted(data_files(done))
    points = list(crash_points(traced.trace))
    for fault in share.of(points):
        dead, its_clock = copy_of(storage)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(dead, [fault]), its_clock).clean(retain_commits=1)
        bare, its_clock = copy_of(dead)
        table = opened(bare, its_clock)
        assert snapshot_of(table) == expected, fault
        table.clean(retain_commits=1)
        assert sorted(data_files(bare)) == left, fault
        assert set(states(table)) == {State.COMPLETED}, fault
        table.upsert(rows(11))
        assert {row[2] for row in snapshot_of(opened(bare, its_clock))} == {11}
        assert leftovers(bare) == [], fault
        assert stray_files(bare, table) == [], fault
    assert len(points) > 20


def test_the_next_write_goes_on_with_a_clean_that_died():
    storage, clock, table = written("COPY_ON_WRITE", 6)
    done, its_clock = copy_of(storage)
    traced = FaultStorage(done)
    opened(traced, its_clock).clean(retain_commits=1)
    at = next(call.n for call in traced.trace if call.verb == "delete" and call.path.startswith("a/"))
    fault = next(f for f in crash_points(traced.trace) if f.at == at)
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [fault]), clock).clean(retain_commits=1)
    bare, clock = copy_of(storage)
    table = opened(bare, clock, AUTOMATIC)
    assert states(table) == [State.INFLIGHT]
    table.upsert(rows(7))
    assert State.INFLIGHT not in states(table)


@pytest.mark.parametrize("times", [1, 3])
def test_a_write_whose_files_are_cleaned_while_it_looks_up_keys_is_run_again(kind, times):
    storage, clock, _ = written(kind, 2)
    met = []

    class Overtaken(FaultStorage):
        def open_input(self, path, *, mapped=True):
            if path.startswith("a/") and len(met) < times:
                met.append(path)
                others = opened(storage, clock, COMPACTING, cache=Cache())
                for turn in range(2, 6):
                    others.upsert(rows(turn))
                others.clean(retain_commits=1)
                assert not storage.exists(path)
            return super().open_input(path, mapped=mapped)

    opened(Overtaken(storage), clock, cache=Cache()).upsert(rows(9))
    assert len(met) == times
    table = opened(storage, clock, cache=Cache())
    assert {row[2] for row in snapshot_of(table)} == {9}
    assert not table.timeline.pending()


def test_a_write_that_misses_a_file_of_a_table_that_stands_still_is_not_run_for_ever():
    storage, clock, _ = written("COPY_ON_WRITE", 2)
    asked = []

    class Lost(FaultStorage):
        def open_input(self, path, *, mapped=True):
            if path.startswith("a/"):
                asked.append(path)
                raise FileNotFoundError(2, "no such file", path)
            return super().open_input(path, mapped=mapped)

    with pytest.raises(MissingFileError, match=r"a/.*parquet"):
        opened(Lost(storage), clock, cache=Cache()).upsert(rows(9))
    assert len(asked) == 4  # twice: to hold the properties against the rows, and for the write


def test_two_cleaners_do_not_do_the_same_work():
    storage, clock, table = written("COPY_ON_WRITE", 6)
    told = []

    class Meets(FaultStorage):
        def delete(self, path):
            if path.startswith("a/") and not told:
                told.append(path)
                with pytest.raises(CommitConflictError, match="is being run by another process"):
                    opened(storage, clock).clean(retain_commits=1)
            super().delete(path)

    opened(Meets(storage), clock).clean(retain_commits=1)
    assert told
    assert states(table) == [State.COMPLETED]


def test_a_cleaner_that_was_paused_until_another_one_was_done_ends_well():
    storage, clock, table = written("COPY_ON_WRITE", 6)
    woken = []

    class Paused(FaultStorage):
        def delete(self, path):
            if path.startswith("a/") and not woken:
                woken.append(path)
                clean = opened(storage, clock)
                # Its mark ended with its lease: whoever comes next takes it for dead.
                instant = next(i for i in clean.timeline if i.action is Action.CLEAN)
                clean._context.liveness.abandon(instant.time)
                assert clean.clean(retain_commits=1).files > 0
            super().delete(path)

    opened(Paused(storage), clock).clean(retain_commits=1)
    assert woken
    assert states(table) == [State.COMPLETED]
    assert {row[2] for row in snapshot_of(table)} == {5}


def test_a_plan_that_was_never_written_whole_goes():
    _, _, table = written("COPY_ON_WRITE", 6)
    instant = Instant(table._context.clock.allot(table.timeline.latest_time), Action.CLEAN, State.REQUESTED)
    table._context.active.create(instant)
    assert table.clean(retain_commits=1).files > 0
    assert states(table) == [State.COMPLETED]


@pytest.mark.parametrize("name", ["../x_0-0-0_20260101000000000.parquet", "notes.txt", ".hoodie_partition_metadata"])
def test_a_plan_that_names_anything_but_data_files_deletes_nothing(name):
    storage, _, table = written("COPY_ON_WRITE", 2)
    storage.create_new("a/notes.txt", b"mine")
    instant = Instant(table._context.clock.allot(table.timeline.latest_time), Action.CLEAN, State.REQUESTED)
    plan = CleanPlan(CleanPolicy.KEEP_LATEST_COMMITS, {"a": (name,) if "/" not in name else ()}, None, "")
    if "/" in name:
        plan = CleanPlan(CleanPolicy.KEEP_LATEST_COMMITS, {"../a": (name_of(name),)}, None, "")
    table._context.active.create(instant, encode_clean_plan(plan, uri=storage.uri))
    before = data_files(storage)
    with pytest.raises(ValueError, match="nothing was deleted"):
        table.clean()
    assert data_files(storage) == before


def test_row_copies_of_cleaned_logs_go_and_others_stay():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    for turn in range(3):
        table.upsert(rows(turn))
    copies = ".hoodie/.hoodie_py/rows"
    old = {info.path for info in storage.list(copies)}
    table.compact()
    table.upsert(rows(3))
    young = {info.path for info in storage.list(copies)} - old
    table.upsert(rows(4))
    assert old
    assert young
    table.clean(retain_commits=1)
    there = {info.path for info in storage.list(copies)}
    assert not there & old
    assert young <= there
    assert "was deleted by a clean, while this query" in str(missing_file_error(storage, min(old)))


def test_a_clean_in_the_background_runs_beside_the_writer():
    storage, clock, table = written("COPY_ON_WRITE", 5)
    opened(storage, clock, AUTOMATIC | {"hoodie.clean.async.enabled": "true"}).upsert(rows(6))
    wait_for_background()
    assert states(table) == [State.COMPLETED]


def test_a_clean_is_no_reason_to_list_anew():
    storage, clock, _ = written("COPY_ON_WRITE", 6)
    counting = Counting(storage)
    table = opened(counting, clock, AUTOMATIC)
    table.upsert(rows(6))
    table.upsert(rows(7))
    counting.listed = []
    table.upsert(rows(8))
    assert states(table).count(State.COMPLETED) == 3
    assert not [folder for folder in counting.listed if not folder.startswith(".hoodie")]
    assert sorted(snapshot_of(table), key=repr) == sorted(snapshot_of(opened(copy_of(storage)[0], clock)), key=repr)


# -- savepoints of Apache Hudi -------------------------------------------------------------------------------------------


def written_on(path):
    """Commits that leave nothing current of what the savepoint holds."""
    table = hoodie.open_table(path)
    old = table.scan().to_arrow()
    for _ in range(3):
        table.upsert(old)
    return table


def test_what_a_savepoint_holds_stays(tmp_path):
    path = copy_golden("v6_savepoint", tmp_path).path
    saved = next((path / ".hoodie").glob("*.savepoint")).name.split(".")[0]
    before = rows_of(hoodie.open_table(path).scan(as_of=saved).to_arrow())
    table = written_on(path)
    assert table.clean(retain_commits=1).files > 0
    assert rows_of(hoodie.open_table(path).scan(as_of=saved).to_arrow()) == before


def test_a_savepoint_that_comes_after_the_plan_keeps_its_files(tmp_path):
    """By a writer that does not share our lock."""
    path = copy_golden("v6_savepoint", tmp_path).path
    (savepoint,) = (path / ".hoodie").glob("*.savepoint")
    saved, content = savepoint.name.split(".")[0], savepoint.read_bytes()
    before = rows_of(hoodie.open_table(path).scan(as_of=saved).to_arrow())
    savepoint.unlink()
    table = written_on(path)
    options = parse_write_options({"hoodie.clean.commits.retained": "1"}).write
    instant = CLEANING.plan(table._context, options, wait_s=0)
    savepoint.write_bytes(content)
    table.clean()
    assert hoodie.open_table(path).timeline.find(instant, Action.CLEAN).is_completed
    assert rows_of(hoodie.open_table(path).scan(as_of=saved).to_arrow()) == before


def test_a_plan_is_made_anew_when_a_savepoint_comes_before_it_stands(tmp_path):
    path = copy_golden("v6_savepoint", tmp_path).path
    (savepoint,) = (path / ".hoodie").glob("*.savepoint")
    saved, content = savepoint.name.split(".")[0], savepoint.read_bytes()
    savepoint.unlink()
    context = written_on(path)._context
    options = parse_write_options({"hoodie.clean.commits.retained": "1"}).write
    snapshot = context.snapshot()
    planned = plan_clean(context, snapshot, options.cleaning)
    savepoint.write_bytes(content)
    assert CleaningService()._put(context, snapshot, planned.plan) is None
    held = context.active.savepointed_files(context.active.load())
    found = CLEANING.plan(context, options, wait_s=0)
    names = {name for names in context.active.read_clean_plan(found).files.values() for name in names}
    assert held & {name for names in planned.plan.files.values() for name in names}, saved
    assert not held & names


def test_a_read_of_which_another_process_cleans_the_files_goes_on_to_the_newest_state(kind):
    storage, clock, table = written(kind, 3)
    reader = opened(storage, clock, cache=Cache())
    scans = [reader.scan(), reader.scan(where="val >= 0"), reader.scan().limit(3), reader.scan()]
    before = reader.scan(as_of=table.timeline.commits[-1].time)
    pull = reader.changes(since="000")
    for turn in range(3, 9):
        table.upsert(rows(turn))
    assert opened(storage, clock, cache=Cache()).clean(retain_commits=1).files
    assert {row["val"] for row in scans[0].to_arrow().to_pylist()} == {8}
    assert {row["val"] for row in scans[1].to_arrow().to_pylist()} == {8}
    assert scans[2].to_arrow().num_rows == 3
    assert scans[3].count() == 4
    assert scans[0].position == table.timeline.latest_commit.time
    for scan in (before, pull):  # of a moment, and of a range: other rows would be another answer
        with pytest.raises(MissingFileError, match="clean"):
            scan.to_arrow()


def test_a_read_of_a_table_that_stands_still_tells_what_is_missing(kind):
    storage, clock, _ = written(kind, 3)
    scan = opened(storage, clock, cache=Cache()).scan()
    rows = opened(storage, clock).to_arrow().num_rows
    for path in data_files(storage):
        storage.delete(path)
    with pytest.raises(MissingFileError):
        scan.to_arrow()
    if kind == "COPY_ON_WRITE":
        assert scan.count() == rows  # the commits of the snapshot say it
    else:
        with pytest.raises(MissingFileError):
            scan.count()
