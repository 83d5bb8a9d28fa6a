"""Repairs take no file that anybody may need, change no row, and can be stopped anywhere."""

import threading
from contextlib import suppress

import pytest

from hoodie.errors import CorruptFileError, InstantNotFoundError, OptionError
from hoodie.format.log_block import scan_blocks
from hoodie.model.enums import Action, HeaderKey, State
from hoodie.model.findings import RepairKind
from hoodie.model.instant import Instant
from hoodie.model.names import PARTITION_METADATA, SET_ASIDE, folder_of, join, name_of, parse_base_file, parse_log_file
from hoodie.options.parse import parse_write_options
from hoodie.services.compaction import COMPACTION
from hoodie.services.scheduling import schedule
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from tests.bucket import BucketStorage
from tests.damaged_tables import (
    AGE_S,
    CHANGES,
    ROWS,
    bases,
    damage_partitions,
    data_files,
    die_before,
    logs,
    make,
    put_strays,
)
from tests.effort import long_but
from tests.memory_tables import FakeClock, Input, batch, copy_of, new_storage, opened, snapshot_of

KINDS = {"memory": MemoryStorage, "bucket": BucketStorage}


@pytest.fixture
def made():
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock)
    return storage, clock


def strays_of(table, **how):
    result = table.repair("stray-files", **how)
    return [each.path for each in result.repairs], {each.path: each.why for each in result.left}


def later_name(path, instant):
    """The same file of another instant."""
    base = parse_base_file(name_of(path))
    return path.replace(f"_{base.instant}", f"_{instant}")


# -- what is a stray, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_whole_table_has_nothing_to_repair(table_type):
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock, table_type)
    clock.sleep(AGE_S)
    found = opened(storage, clock).repair()
    assert (found.repairs, found.left) == ((), ())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_of_a_task_that_was_tried_twice_are_moved_away_and_can_be_put_back(table_type):
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock, table_type)
    strays = put_strays(storage)
    content = {path: storage.read(path) for path in strays}
    clock.sleep(AGE_S)
    table = opened(storage, clock)
    before = snapshot_of(table)
    assert strays_of(table) == (strays, {})
    assert set(strays) <= set(data_files(storage))  # a dry run
    done = table.repair("stray-files", dry_run=False)
    assert [each.path for each in done.repairs] == strays
    assert not set(strays) & set(data_files(storage))
    assert {path: storage.read(join(SET_ASIDE, done.set_aside, path)) for path in strays} == content
    assert snapshot_of(opened(storage, clock)) == before
    assert strays_of(table) == ([], {})
    assert table.undo_repair(done.set_aside) == strays
    assert {path: storage.read(path) for path in strays} == content
    assert not [info for info in storage.list(SET_ASIDE, recursive=True) if not info.is_folder]
    assert strays_of(table) == (strays, {})


def test_young_files_are_left_alone(made):
    storage, clock = made
    strays = put_strays(storage)
    found, left = strays_of(opened(storage, clock), older_than_s=60)
    assert not found
    assert sorted(left) == strays
    assert all("young" in why for why in left.values())
    clock.sleep(61)
    assert strays_of(opened(storage, clock), older_than_s=60)[0] == strays


def test_files_of_a_pending_write_are_its_rollbacks_business(made):
    storage, clock = made
    before = set(data_files(storage))
    die_before(".deltacommit", storage, clock, lambda table: table.upsert(batch([*CHANGES, Input("new", "c", 1, 1)])))
    storage, clock = copy_of(storage)
    assert set(data_files(storage)) > before
    clock.sleep(AGE_S)
    table = opened(storage, clock)
    assert strays_of(table) == ([], {})
    assert len(table.rollback()) == 1
    assert strays_of(table) == ([], {})


def test_a_file_that_comes_after_its_write_was_rolled_back_is_a_stray(made):
    storage, clock = made
    die_before(".deltacommit", storage, clock, lambda table: table.upsert(batch([*CHANGES, Input("new", "c", 1, 1)])))
    storage, clock = copy_of(storage)
    late = {path: storage.read(path) for path in bases(storage)}
    late_logs = {path: storage.read(path) for path in logs(storage)}
    opened(storage, clock).rollback()
    gone = {path: data for path, data in late.items() if not storage.exists(path)}
    assert gone
    for path, data in gone.items():
        storage.create_new(path, data)
    clock.sleep(AGE_S)
    found, left = strays_of(opened(storage, clock))
    assert found == sorted(gone)
    # Its logs stay where they are: a rollback block in their slice says that they do not count.
    assert left == {}
    assert late_logs


def test_a_log_of_a_rolled_back_write_that_no_block_disarms_is_a_stray(made):
    storage, clock = made
    log = logs(storage)[0]
    block = next(iter(scan_blocks(storage.read(log))))
    written = block.header[HeaderKey.INSTANT_TIME]
    unknown = "20251124235959999"
    name = parse_log_file(name_of(log))
    late = join(folder_of(log), name_of(log).replace(f".log.{name.version}_", ".log.9_"))
    storage.create_new(late, storage.read(log).replace(written.encode(), unknown.encode()))
    clock.sleep(AGE_S * 5)
    found, left = strays_of(opened(storage, clock))
    assert (found, left) == ([late], {})


def test_a_log_without_a_whole_block_is_a_stray_unless_work_is_pending(made):
    storage, clock = made
    log = logs(storage)[0]
    torn = log.replace(".log.1_", ".log.8_")
    storage.create_new(torn, storage.read(log)[:30])
    clock.sleep(AGE_S)
    assert strays_of(opened(storage, clock)) == ([torn], {})
    schedule(COMPACTION, opened(storage, clock)._context, parse_write_options({}).write)
    found, left = strays_of(opened(storage, clock))
    assert found == []
    assert list(left) == [torn]


def test_a_file_whose_twin_is_gone_may_be_the_only_copy(made):
    storage, clock = made
    put_strays(storage)
    named = next(path for path in bases(storage) if "7-7-7" not in path)
    storage.delete(named)
    clock.sleep(AGE_S)
    found, left = strays_of(opened(storage, clock))
    only = next(path for path in left)
    assert parse_base_file(name_of(only)).file_id == parse_base_file(name_of(named)).file_id
    assert only not in found
    assert "not there" in left[only]


def test_what_a_compaction_plan_names_stays(made):
    storage, clock = made
    strays = put_strays(storage)
    table = opened(storage, clock)
    planned = schedule(COMPACTION, table._context, parse_write_options({}).write)
    plan = table._context.active.read_compaction_plan(planned)
    named = {join(o.partition_path, n) for o in plan.operations for n in (o.data_file, *o.log_files) if n}
    clock.sleep(AGE_S)
    found, left = strays_of(opened(storage, clock))
    assert not named & set(found)
    assert sorted({*found, *left}) == strays
    before = snapshot_of(opened(storage, clock))
    opened(storage, clock).repair("stray-files", dry_run=False)
    opened(storage, clock).run_compaction()
    assert snapshot_of(opened(storage, clock)) == before


def test_what_an_archived_commit_names_stays_and_what_nobody_knows_is_left():
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock)
    unknown = later_name(bases(storage)[0], "20251124155959000")
    storage.create_new(unknown, storage.read(bases(storage)[0]))
    double = next(iter(put_strays(storage)))
    for number in range(6):
        opened(storage, clock).upsert(batch([Input("other", "z", number, number)]))
    opened(storage, clock).archive(min_commits=2)
    clock.sleep(AGE_S)
    table = opened(storage, clock)
    assert table.archived_instants()
    found, left = strays_of(table)
    assert double in found
    assert not [path for path in found if "7-7-7" not in path]
    assert unknown in left
    assert "not in the archive" in left[unknown]


def test_a_file_that_would_count_by_now_is_not_put_back(made):
    storage, clock = made
    strays = put_strays(storage)
    clock.sleep(AGE_S)
    done = opened(storage, clock).repair("stray-files", dry_run=False)
    for number in range(6):
        opened(storage, clock).upsert(batch([Input("other", "z", number, number)]))
    opened(storage, clock).archive(min_commits=2)
    before = snapshot_of(opened(storage, clock))
    with pytest.raises(OptionError, match="would count its rows"):
        opened(storage, clock).undo_repair(done.set_aside)
    assert not set(strays) & set(data_files(storage))
    assert snapshot_of(opened(storage, clock)) == before
    with pytest.raises(InstantNotFoundError, match=done.set_aside):
        opened(storage, clock).undo_repair("20200101000000000")


def test_a_restore_that_is_pending_lets_nothing_be_told(made):
    storage, clock = made
    put_strays(storage)
    storage.create_new(".hoodie/20251124170000000.restore.inflight", b"")
    clock.sleep(AGE_S)
    found, left = strays_of(opened(storage, clock))
    assert found == []
    assert "restore" in left[""]


# -- partition metadata ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "missing"),
        (b"", "empty"),
        (b"commitTime=2025112416", "damaged"),
        (b"partitionDepth=1\n", "commitTime"),
        (b"commitTime=20251124160000000\npartitionDepth=3\n", "lies 1 deep"),
    ],
)
def test_partition_metadata_are_written_anew_with_the_first_commit(made, content, why):
    storage, clock = made
    first = opened(storage, clock).timeline.commits[0].time
    path = f"a/{PARTITION_METADATA}"
    storage.delete(path)
    if content is not None:
        storage.create_new(path, content)
    table = opened(storage, clock)
    found = table.repair("partition-metadata")
    assert [each.path for each in found.repairs] == [path]
    assert why in found.repairs[0].why
    assert storage.exists(path) is (content is not None)
    table.repair("partition-metadata", dry_run=False)
    said = dict(line.split("=") for line in storage.read(path).decode().splitlines() if "=" in line)
    assert said == {"commitTime": first, "partitionDepth": "1"}
    assert table.repair().repairs == ()
    assert len(snapshot_of(opened(storage, clock))) == len(ROWS)


def test_the_first_commit_of_a_partition_is_found_in_the_archive(made):
    storage, clock = made
    first = opened(storage, clock).timeline.commits[0].time
    for number in range(6):
        opened(storage, clock).upsert(batch([Input("k0", "a", number, 50 + number)]))
    opened(storage, clock).archive(min_commits=2)
    storage.delete(f"a/{PARTITION_METADATA}")
    opened(storage, clock).repair("partition-metadata", dry_run=False)
    assert f"commitTime={first}\n".encode() in storage.read(f"a/{PARTITION_METADATA}")


def test_a_folder_that_only_a_failed_write_began_is_no_partition(made):
    storage, clock = made
    die_before(".deltacommit", storage, clock, lambda table: table.upsert(batch([Input("new", "c", 1, 1)])))
    storage, clock = copy_of(storage)
    assert [path for path in bases(storage) if path.startswith("c/")]
    storage.delete(f"c/{PARTITION_METADATA}")
    assert opened(storage, clock).repair("partition-metadata").repairs == ()


# -- plans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"Obj\x01 and then it died"])
@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK, Action.COMPACTION])
def test_a_damaged_plan_is_removed_when_nobody_can_be_at_it(made, action, content):
    storage, clock = made
    before = snapshot_of(opened(storage, clock))
    clock.sleep(10)
    path = f".hoodie/20251124160005000.{action.value}.requested"
    storage.create_new(path, content)
    table = opened(storage, clock)
    assert [each.path for each in table.repair("plans").left] == [path]  # it may just be written
    clock.sleep(AGE_S)
    assert [each.path for each in table.repair("plans").repairs] == [path]
    table.repair("plans", dry_run=False)
    assert not storage.exists(path)
    assert snapshot_of(opened(storage, clock)) == before
    opened(storage, clock).upsert(batch(CHANGES))


def test_a_damaged_compaction_plan_stays_when_logs_are_named_after_it(made):
    storage, clock = made
    planned = schedule(COMPACTION, opened(storage, clock)._context, parse_write_options({}).write)
    opened(storage, clock).upsert(batch([Input("k0", "a", 7, 70), Input("k1", "b", 7, 70)]))
    assert [path for path in logs(storage) if planned in path]
    path = f".hoodie/{planned}.compaction.requested"
    storage.replace(path, b"")
    clock.sleep(AGE_S)
    found = opened(storage, clock).repair()
    assert found.repairs == ()
    assert "named after it" in found.left[0].why
    with pytest.raises(CorruptFileError, match=planned):
        snapshot_of(opened(storage, clock))


def test_an_empty_completed_clean_is_carried_out_once_more(made):
    storage, clock = made
    for number in range(4):
        opened(storage, clock).insert_overwrite(batch([Input("k0", "a", number, number)]))
    assert opened(storage, clock).clean(retain_commits=1).files
    before = snapshot_of(opened(storage, clock))
    clean = opened(storage, clock).timeline.newest(Action.CLEAN)
    storage.replace(f".hoodie/{clean.time}.clean", b"")
    clock.sleep(AGE_S)
    opened(storage, clock).repair("plans", dry_run=False)
    assert opened(storage, clock).timeline.find(clean.time) == Instant(clean.time, Action.CLEAN, State.INFLIGHT)
    opened(storage, clock).clean(retain_commits=1)
    assert opened(storage, clock).timeline.find(clean.time).is_completed
    assert snapshot_of(opened(storage, clock)) == before


# -- stopped anywhere, twice, at once ----------------------------------------------------------------------------------


def damaged(kind):
    clock = FakeClock()
    storage = new_storage(clock, KINDS[kind])
    make(storage, clock)
    rows = snapshot_of(opened(storage, clock))
    strays = {path: storage.read(path) for path in put_strays(storage)}
    damage_partitions(storage)
    clock.sleep(AGE_S)
    storage.create_new(".hoodie/20251124170000000.clean.requested", b"")
    clock.sleep(AGE_S)
    return storage, rows, strays


def require_repaired(storage, clock, rows, strays):
    """All is mended, nothing is lost, and the next write finds a table as any other."""
    table = opened(storage, clock)
    assert table.repair().repairs == ()
    assert snapshot_of(table) == rows
    assert not set(strays) & set(data_files(storage))
    aside = [info.path for info in storage.list(SET_ASIDE, recursive=True) if info.path.count("/") > 2]
    kept = {path.split("/", 3)[3]: storage.read(path) for path in aside}
    assert kept == strays
    table.upsert(batch([Input("next", "a", 1, 1)]))
    assert len(snapshot_of(opened(storage, clock))) == len(rows) + 1


@pytest.mark.parametrize("kind", long_but([], KINDS))
def test_after_a_crash_at_any_step_no_row_is_lost_and_the_next_repair_ends_it(kind):
    start, rows, strays = damaged(kind)
    traced, clock = copy_of(start)
    fault_storage = FaultStorage(traced)
    opened(fault_storage, clock).repair(dry_run=False)
    require_repaired(traced, clock, rows, strays)
    points = list(crash_points(fault_storage.trace))
    assert len(points) > 20
    for fault in points:
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(storage, [fault]), clock).repair(dry_run=False)
        bare, clock = copy_of(storage)
        opened(bare, clock).repair(dry_run=False)
        require_repaired(bare, clock, rows, strays)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_while_files_are_put_back_is_gone_on_with(kind):
    start, _, strays = damaged(kind)
    start, clock = copy_of(start)
    name = opened(start, clock).repair(dry_run=False).set_aside
    traced, clock = copy_of(start)
    fault_storage = FaultStorage(traced)
    assert opened(fault_storage, clock).undo_repair(name) == sorted(strays)
    for fault in crash_points(fault_storage.trace):
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(storage, [fault]), clock).undo_repair(name)
        bare, clock = copy_of(storage)
        try:
            opened(bare, clock).undo_repair(name)
        except InstantNotFoundError:  # it was all done
            assert fault.at == len(fault_storage.trace)
        assert {path: bare.read(path) for path in strays} == strays, fault
        assert opened(bare, clock).repair("partition-metadata").repairs == ()


def test_errors_of_the_storage_are_no_silent_half_repair(made):
    start, rows, strays = damaged("memory")
    traced, clock = copy_of(start)
    fault_storage = FaultStorage(traced)
    opened(fault_storage, clock).repair(dry_run=False)
    for call in fault_storage.trace:
        storage, clock = copy_of(start)
        with suppress(OSError):
            opened(FaultStorage(storage, [Fault(call.n, "after", 5)]), clock).repair(dry_run=False)
        opened(storage, clock).repair(dry_run=False)
        require_repaired(storage, clock, rows, strays)


def test_twice_is_once(made):
    storage, clock = made
    put_strays(storage)
    damage_partitions(storage)
    clock.sleep(AGE_S)
    assert opened(storage, clock).repair(dry_run=False).set_aside
    before = storage.snapshot().files
    again = opened(storage, clock).repair(dry_run=False)
    assert (again.repairs, again.set_aside) == ((), None)
    assert storage.snapshot().files == before


def test_two_at_once_move_each_file_once():
    start, rows, strays = damaged("memory")
    storage, clock = copy_of(start)
    results, ready = [], threading.Barrier(2)

    def run():
        table = opened(storage, clock)
        ready.wait()
        results.append(table.repair(dry_run=False))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(each.of(RepairKind.STRAY_FILES)) for each in results) == [0, len(strays)]
    require_repaired(storage, clock, rows, strays)


def test_on_a_disk_and_unknown_repairs_are_refused(tmp_path):
    storage = LocalStorage(tmp_path)
    make(storage, None)
    rows = snapshot_of(opened(storage))
    strays = put_strays(storage)
    damage_partitions(storage)
    done = opened(storage).repair(dry_run=False, older_than_s=0)
    assert sorted(each.path for each in done.of(RepairKind.STRAY_FILES)) == strays
    assert snapshot_of(opened(storage)) == rows
    assert sorted(opened(storage).undo_repair(done.set_aside)) == strays
    with pytest.raises(OptionError, match="take one of partition-metadata, stray-files, plans"):
        opened(storage).repair("everything")
