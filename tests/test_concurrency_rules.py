"""The rules of docs/CONCURRENCY.md for one machine, a test for each; the document names them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    InstantNotFoundError,
    LockError,
    TableExistsError,
)
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import Action, BlockKind, State
from hoodie.model.instant import Instant
from hoodie.model.names import (
    HOODIE,
    PROPERTIES,
    PROPERTIES_BACKUP,
    format_instant_file,
    heartbeat_path,
    join,
    parse_log_file,
)
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.options.concurrency import CONCURRENCY
from hoodie.storage.faults import FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.transaction import Transaction
from tests.effort import HUNG_S
from tests.engines import Dies, Meanwhile
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    create,
    keys,
    leftovers,
    new_storage,
    new_table,
    opened,
    plain,
    snapshot_of,
)

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
ROOT = Path(__file__).resolve().parent.parent


def slow(storage, clock, step, act):
    """The table, whose next write lets `act` happen before its step."""
    return open_at(storage, engine=Meanwhile(step, act), sleep=clock.sleep)


def values(storage, clock):
    return {row[0]: row[2] for row in snapshot_of(opened(storage, clock))}


def logs_of(storage):
    found = [parse_log_file(info.name) for info in storage.list("", recursive=True)]
    return [name for name in found if name is not None]


def dead_write(storage, clock, rows):
    """A write that dies after it has written its files and before any has its name; gives its instant."""
    with pytest.raises(InjectedFault):
        open_at(storage, engine=Dies("write files"), sleep=clock.sleep).upsert(batch(rows))
    return opened(storage, clock).timeline.pending_writes[-1].time


# -- writers beside writers ------------------------------------------------------------------------------------------


@KINDS
def test_a_write_that_another_overtook_is_done_again_on_the_new_snapshot(kind):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1), Input("l", "a", 1, 1)]))
    table = slow(storage, clock, "write files", lambda: opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)])))
    result = table.upsert(batch([Input("l", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 2, "l": 3}
    assert result.instant == opened(storage, clock).timeline.latest_commit.time
    assert len(opened(storage, clock).timeline.commits) == 3
    assert leftovers(storage) == []


BRINGS = {
    "insert": lambda table: table.insert(batch([Input("late", "a", 7, 7)])),
    "upsert": lambda table: table.upsert(batch([Input("k", "a", 7, 7)])),
    "overwrite": lambda table: table.insert_overwrite(batch([Input("late", "a", 7, 7)])),
    "delete": lambda table: table.delete(keys([Input("k", "a")])),
    "partition deleted": lambda table: table.delete_partitions(["a"]),
}


@KINDS
@pytest.mark.parametrize("brings", BRINGS)
@pytest.mark.parametrize("whole", [False, True], ids=["partition", "table"])
def test_an_overwrite_replaces_what_another_writer_brought_meanwhile(kind, brings, whole):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1)]))
    table = slow(storage, clock, "write files", lambda: BRINGS[brings](opened(storage, clock)))
    overwrite = table.insert_overwrite_table if whole else table.insert_overwrite
    result = overwrite(batch([Input("n", "a", 3, 3)]))
    assert values(storage, clock) == ({"n": 3} if whole else {"n": 3, "l": 1})
    assert result.instant == opened(storage, clock).timeline.latest_commit.time
    assert leftovers(storage) == []


def test_an_overwrite_of_the_table_replaces_partitions_that_another_writer_made_meanwhile():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    act = lambda: opened(storage, clock).upsert(batch([Input("late", "new", 7, 7)]))  # noqa: E731
    slow(storage, clock, "write files", act).insert_overwrite_table(batch([Input("n", "a", 3, 3)]))
    assert values(storage, clock) == {"n": 3}


@KINDS
@pytest.mark.parametrize("how", ["insert", "upsert"])
def test_a_write_into_a_partition_that_was_overwritten_meanwhile_is_done_again(kind, how):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1)]))
    table = slow(storage, clock, "write files", lambda: opened(storage, clock).delete_partitions(["a"]))
    result = getattr(table, how)(batch([Input("new", "a", 2, 2)]))
    assert values(storage, clock) == {"new": 2, "l": 1}
    # After the partition was deleted, not before: else it would be in neither state of the partition.
    assert result.instant == opened(storage, clock).timeline.latest_commit.time
    assert len(opened(storage, clock).timeline.commits) == 3


@KINDS
@pytest.mark.parametrize("step", ["look up keys", "write files"])
def test_a_partial_upsert_completes_rows_as_they_are_when_it_is_published(kind, step):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 10)]))
    table = slow(storage, clock, step, lambda: opened(storage, clock).upsert(batch([Input("k", "a", 2, 20)])))
    table.upsert(batch([Input("k", "a", 3)]).select(["id", "part", "val"]), partial=True)
    assert [row[:4] for row in snapshot_of(opened(storage, clock))] == [("k", "a", 3, 20)]


@KINDS
@pytest.mark.parametrize("step", ["look up keys", "write files"])
@pytest.mark.parametrize("limit", ["104857600", "0"], ids=["into one small file", "each into a new file"])
def test_two_writers_that_insert_the_same_new_key_make_one_row(kind, step, limit):
    storage, clock = new_table(table_type=kind)
    options = {"hoodie.parquet.small.file.limit": limit}
    opened(storage, clock).upsert(batch([Input("other", "a", 0, 0)]))
    table = slow(storage, clock, step, lambda: opened(storage, clock, options).upsert(batch([Input("k", "a", 1, 1)])))
    table.upsert(batch([Input("k", "a", 2, 2)]), options)
    assert [row[:3] for row in snapshot_of(opened(storage, clock))] == [("k", "a", 2), ("other", "a", 0)]


@KINDS
def test_writers_of_different_partitions_do_not_disturb_each_other(kind):
    storage, clock = new_table(table_type=kind)
    other = []
    table = slow(
        storage, clock, "write files", lambda: other.append(opened(storage, clock).upsert(batch([Input("b", "b", 1)])))
    )
    result = table.upsert(batch([Input("a", "a", 1)]))
    assert result.instant < other[0].instant  # it was not done again
    assert values(storage, clock) == {"a": 1, "b": 1}


@KINDS
def test_threads_that_upsert_one_table_lose_nothing_that_was_acknowledged(kind):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("shared", "a", 0, 0)]))
    acknowledged, refused = set(), []

    def work(name):
        for n in range(6):
            try:
                opened(storage, clock).upsert(batch([Input(f"{name}{n}", "a", n, 1), Input("shared", "a", n, n)]))
                acknowledged.add(f"{name}{n}")
            except CommitConflictError as exc:
                refused.append(str(exc))

    threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = snapshot_of(opened(storage, clock))
    assert len({row[:2] for row in found}) == len(found)
    assert {row[0] for row in found} == acknowledged | {"shared"}
    assert len(acknowledged) + len(refused) == 18
    assert len(acknowledged) >= 6
    assert leftovers(storage) == []


WRITER = """
import sys
from hoodie.errors import CommitConflictError
from hoodie.storage.local import LocalStorage
from tests.memory_tables import Input, batch, opened
folder, name = sys.argv[1:]
for n in range(5):
    rows = batch([Input(f"{name}{n}", "a", n, 1), Input("shared", "a", n, n)])
    while True:
        try:
            opened(LocalStorage(folder)).upsert(rows)
            break
        except CommitConflictError:
            pass
"""

COMPACTOR = """
import sys
from hoodie.errors import CommitConflictError
from hoodie.storage.local import LocalStorage
from tests.memory_tables import opened
for n in range(4):
    opened(LocalStorage(sys.argv[1])).compact()
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )


def finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=HUNG_S)
        assert process.returncode == 0, errors.decode()


def test_processes_that_upsert_one_table_and_a_third_that_compacts_it_lose_nothing(tmp_path):
    storage = LocalStorage(tmp_path)
    create(storage, table_type="MERGE_ON_READ")
    opened(storage).upsert(batch([Input("shared", "a", 0, 0)]))
    finish(start(WRITER, tmp_path, "x"), start(WRITER, tmp_path, "y"), start(COMPACTOR, tmp_path))
    opened(storage).run_compaction()
    found = snapshot_of(opened(storage))
    assert sorted(row[0] for row in found) == sorted([f"{name}{n}" for name in "xy" for n in range(5)] + ["shared"])
    assert next(row[2] for row in found if row[0] == "shared") == 4
    times = [instant.time for instant in opened(storage).timeline]
    assert times == sorted(set(times))
    assert leftovers(storage) == []


# -- compaction beside writers ---------------------------------------------------------------------------------------


def table_with_logs():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1), Input("l", "a", 1, 1)]))
    opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]))
    return storage, clock


def test_logs_written_after_a_compaction_was_scheduled_are_named_with_it():
    storage, clock = table_with_logs()
    first = opened(storage, clock).timeline.commits[0].time
    compaction = opened(storage, clock).schedule_compaction()
    later = opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)])).instant
    assert [name.base_instant for name in logs_of(storage)] == [first, compaction]
    assert later > compaction


def test_a_write_during_a_compaction_is_kept():
    storage, clock = table_with_logs()
    compaction = opened(storage, clock).schedule_compaction()

    def write():
        opened(storage, clock).upsert(batch([Input("k", "a", 3, 3), Input("new", "a", 9, 9)]))

    open_at(storage, engine=Meanwhile("compact t", write), sleep=clock.sleep).run_compaction()
    assert values(storage, clock) == {"k": 3, "l": 1, "new": 9}
    assert not opened(storage, clock).pending_compactions()
    assert compaction in opened(storage, clock).timeline.completed_times


def test_a_write_whose_file_group_was_compacted_meanwhile_is_done_again():
    storage, clock = table_with_logs()
    opened(storage, clock).schedule_compaction()
    table = slow(storage, clock, "write files", lambda: opened(storage, clock).run_compaction())
    table.upsert(batch([Input("k", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 3, "l": 1}
    assert leftovers(storage) == []


@pytest.mark.parametrize("during", [False, True], ids=["before it runs", "while it runs"])
def test_a_deleted_key_that_is_written_again_while_a_compaction_is_pending_stays_one_row(during):
    storage, clock = table_with_logs()
    opened(storage, clock).delete(keys([Input("k", "a")]))
    opened(storage, clock).schedule_compaction()
    again = batch([Input("k", "a", 5, 5)])
    if during:
        slow(storage, clock, "write files", lambda: opened(storage, clock).run_compaction()).upsert(again)
    else:
        opened(storage, clock).upsert(again)
        opened(storage, clock).run_compaction()
    opened(storage, clock).upsert(batch([Input("k", "a", 6, 6)]))
    assert [row[:3] for row in snapshot_of(opened(storage, clock))] == [("k", "a", 6), ("l", "a", 1)]
    opened(storage, clock).compact()
    assert [row[:3] for row in snapshot_of(opened(storage, clock))] == [("k", "a", 6), ("l", "a", 1)]
    opened(storage, clock).delete(keys([Input("k", "a")]))
    assert values(storage, clock) == {"l": 1}


def test_a_compaction_leaves_out_the_file_groups_that_a_pending_write_names():
    storage, clock = table_with_logs()
    opened(storage, clock).upsert(batch([Input("m", "b", 1, 1)]))
    opened(storage, clock).upsert(batch([Input("m", "b", 2, 2)]))
    planned = []

    def schedule():
        instant = opened(storage, clock).schedule_compaction()
        plan = opened(storage, clock)._context.active.read_compaction_plan(instant)
        planned.extend(operation.partition_path for operation in plan.operations)

    slow(storage, clock, "write files", schedule).upsert(batch([Input("k", "a", 3, 3)]))
    assert planned == ["b"]
    assert values(storage, clock) == {"k": 3, "l": 1, "m": 2}


def test_a_compaction_has_one_runner():
    storage, clock = table_with_logs()
    compaction = opened(storage, clock).schedule_compaction()

    def second():
        assert opened(storage, clock).run_compaction() == []
        with pytest.raises(CommitConflictError, match="is being run by another process"):
            opened(storage, clock).run_compaction(compaction)

    engine = Meanwhile("compact t", second)
    open_at(storage, engine=engine, sleep=clock.sleep).run_compaction()
    assert engine.times == 1
    assert values(storage, clock) == {"k": 2, "l": 1}


def test_a_compaction_whose_runner_died_is_run_again_and_never_taken_back():
    storage, clock = table_with_logs()
    compaction = opened(storage, clock).schedule_compaction()
    with pytest.raises(InjectedFault):
        open_at(storage, engine=Dies("compact t"), sleep=clock.sleep).run_compaction()
    opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)]))
    assert [i.time for i in opened(storage, clock).pending_compactions()] == [compaction]
    opened(storage, clock).run_compaction()
    assert values(storage, clock) == {"k": 3, "l": 1}


# -- the instant and the clock ---------------------------------------------------------------------------------------


@KINDS
def test_when_the_clock_is_set_back_instants_still_increase_and_the_commit_waits(kind):
    storage, clock = new_table(table_type=kind)
    first = opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)])).instant
    clock.now_s -= 30
    slept_s = clock.slept_s
    second = opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)])).instant
    assert second > first
    assert clock.slept_s - slept_s >= 30
    info = storage.stat(
        join(HOODIE, format_instant_file(second, opened(storage, clock).timeline.latest_commit.action, State.COMPLETED))
    )
    assert not opened(storage, clock)._context.clock.ahead_of(info.mtime_s, second)


def test_a_clock_that_stands_far_behind_the_timeline_is_an_error_and_not_a_hang():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    clock.now_s -= 3600
    with pytest.raises(LockError, match="ahead of the storage's clock"):
        opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]))
    assert leftovers(storage) == []
    assert values(storage, clock) == {"k": 1}


# -- failed and paused writers ---------------------------------------------------------------------------------------


def start_by_hand(storage, clock):
    table = opened(storage, clock)
    transaction, _ = Transaction.start(
        table._context, Action.DELTACOMMIT, lambda *_: None, lambda plan: CommitMetadata()
    )
    return transaction


def test_a_paused_writer_cannot_publish_after_it_was_rolled_back():
    storage, clock = table_with_logs()
    paused = start_by_hand(storage, clock)
    storage.create_new(f"{paused.staging}/a/file.parquet", b"data")
    paused.heartbeat.abandon()  # to others it looks dead
    opened(storage, clock).upsert(batch([Input("l", "a", 2, 2)]))
    with pytest.raises(FileNotFoundError):
        storage.move_new(f"{paused.staging}/a/file.parquet", "a/file.parquet")
    with pytest.raises(CommitConflictError, match="rolled back"):
        paused.commit(CommitMetadata(), WriteBasis())
    assert paused.instant not in {instant.time for instant in opened(storage, clock).timeline}


def test_a_writer_paused_right_before_it_publishes_is_fenced_by_its_staging_folder():
    storage, clock = table_with_logs()
    paused = start_by_hand(storage, clock)
    paused.heartbeat.abandon()
    opened(storage, clock).rollback()
    with pytest.raises(CommitConflictError, match="it was rolled back"):
        paused._publish(CommitMetadata(), None, paused.started_on)
    assert paused.instant not in {instant.time for instant in opened(storage, clock).timeline}


@pytest.mark.parametrize("moment", ["rollback.requested", "rollback.inflight", "rollback"])
def test_a_paused_writer_that_wakes_up_during_its_rollback_can_publish_nothing(moment):
    storage, clock = table_with_logs()
    paused = start_by_hand(storage, clock)
    storage.create_new(f"{paused.staging}/a/file.parquet", b"data")
    paused.heartbeat.abandon()
    woken = []

    class WakesTheWriter(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            super().create_new(path, data, via=via, durable=durable)
            if path.endswith(f".{moment}"):
                with pytest.raises(FileNotFoundError):
                    storage.move_new(f"{paused.staging}/a/file.parquet", "a/file.parquet")
                with pytest.raises(CommitConflictError, match="it was rolled back"):
                    paused._publish(CommitMetadata(), None, paused.started_on)
                woken.append(path)

    opened(WakesTheWriter(storage), clock).rollback()
    assert len(woken) == 1
    assert not storage.exists("a/file.parquet")
    assert paused.instant not in {instant.time for instant in opened(storage, clock).timeline}


def test_a_writer_that_published_just_before_it_would_be_rolled_back_has_committed():
    storage, clock = table_with_logs()
    paused = start_by_hand(storage, clock)
    paused.heartbeat.abandon()

    class PublishesFirst(FaultStorage):
        def rename_folder(self, source, target):
            paused._publish(CommitMetadata(), None, paused.started_on)
            super().rename_folder(source, target)

    opened(PublishesFirst(storage), clock).rollback()
    assert paused.instant in opened(storage, clock).timeline.completed_times
    assert [i for i in opened(storage, clock).timeline if i.action is Action.ROLLBACK] == []
    opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 3, "l": 1}
    assert leftovers(storage) == []


def test_a_living_writer_of_this_machine_is_not_rolled_back():
    storage, clock = table_with_logs()
    living = start_by_hand(storage, clock)
    assert opened(storage, clock).rollback() == []
    with pytest.raises(CommitConflictError, match=r"is still being written by thread .* of this process"):
        opened(storage, clock).rollback(living.instant)
    opened(storage, clock).upsert(batch([Input("m", "b", 1, 1)]))
    living.commit(CommitMetadata(), WriteBasis())
    assert living.instant in opened(storage, clock).timeline.completed_times


def foreign_write(storage, clock, *, published):
    """A pending delta commit without our mark of life, as a writer of Apache Hudi leaves it; gives its instant."""
    instant = dead_write(storage, clock, [Input("k", "a", 99, 99)])
    active = opened(storage, clock)._context
    if published:
        for info in storage.list(f".hoodie/.hoodie_py/staging/{instant}"):
            name = info.name
            if parse_log_file(name):
                storage.move_new(info.path, f"a/{name}")
    storage.delete_folder(f".hoodie/.hoodie_py/staging/{instant}")
    active.liveness.release(instant)
    return instant


def test_a_foreign_pending_write_with_a_fresh_heartbeat_is_refused():
    storage, clock = table_with_logs()
    instant = foreign_write(storage, clock, published=True)
    storage.touch(heartbeat_path(instant))
    with pytest.raises(CommitConflictError, match=rf"{instant}.*heartbeat is fresh"):
        opened(storage, clock).upsert(batch([Input("l", "a", 2, 2)]))
    assert [i.time for i in opened(storage, clock).timeline.pending_writes] == [instant]
    assert values(storage, clock) == {"k": 2, "l": 1}


def test_no_instant_is_taken_after_that_of_a_foreign_writer_who_began_a_moment_ago():
    """It reads the timeline later: our commit would be no conflict to it, and its older file would not count beside ours."""
    storage, clock = table_with_logs()
    instant = foreign_write(storage, clock, published=False)
    storage.touch(heartbeat_path(instant))
    before = opened(storage, clock).timeline
    with pytest.raises(CommitConflictError, match=rf"{instant}.*heartbeat is fresh"):
        start_by_hand(storage, clock)  # as if it had begun after we looked for failed writes
    assert tuple(opened(storage, clock).timeline) == tuple(before)


def begins_after_us(storage, clock):
    """A write of Apache Hudi that has its instant, a heartbeat and no more."""
    context = opened(storage, clock)._context
    instant = Instant(context.clock.allot(context.active.load().latest_time), Action.DELTACOMMIT, State.REQUESTED)
    context.active.create(instant)
    context.active.create(instant._replace(state=State.INFLIGHT))
    storage.touch(heartbeat_path(instant.time))
    return instant


def ends(storage, clock, instant):
    """It is completed, with a new row in partition a."""
    active = opened(storage, clock)._context.active
    insert = WriteStat("theirs-0", "a", path=f"a/theirs-0_0-0-0_{instant.time}.parquet", num_inserts=1)
    active.create(
        instant._replace(state=State.COMPLETED),
        active.encode_commit(instant, CommitMetadata(write_stats={"a": (insert,)})),
    )
    storage.delete(heartbeat_path(instant.time))


def test_a_write_is_not_completed_while_a_foreign_writer_is_at_work_who_began_later():
    """It looked for keys before our commit, and would insert those that we insert into a file group of its own."""
    storage, clock = table_with_logs()
    theirs = []

    class Ends(FakeClock):
        def sleep(self, seconds):
            clock.sleep(seconds)
            if theirs and clock.slept_s > 5 and theirs[0] not in ended:
                ended.append(theirs[0])
                ends(storage, clock, theirs[0])

    ended = []
    engine = Meanwhile("write files", lambda: theirs.append(begins_after_us(storage, clock)))
    result = open_at(storage, engine=engine, sleep=Ends().sleep).upsert(batch([Input("new", "a", 3, 3)]))
    assert ended == theirs
    assert result.instant > theirs[0].time  # it began anew


def test_a_foreign_writer_who_does_not_end_is_not_waited_for_for_ever():
    storage, clock = table_with_logs()
    table = slow(storage, clock, "write files", lambda: begins_after_us(storage, clock))
    with pytest.raises(CommitConflictError, match=r"heartbeat is fresh"):
        table.upsert(batch([Input("new", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 2, "l": 1}


@pytest.mark.parametrize("heartbeat", ["old", "none"])
def test_a_foreign_pending_write_that_is_dead_is_rolled_back_with_a_rollback_block(heartbeat):
    storage, clock = table_with_logs()
    instant = foreign_write(storage, clock, published=True)
    if heartbeat == "old":
        storage.touch(heartbeat_path(instant))
        clock.now_s += CONCURRENCY.heartbeat_expiry_s + 1
    else:
        storage.delete(heartbeat_path(instant))
    opened(storage, clock).upsert(batch([Input("l", "a", 2, 2)]))
    timeline = opened(storage, clock).timeline
    assert instant not in {i.time for i in timeline}
    assert [i.action for i in timeline if i.action is Action.ROLLBACK] == [Action.ROLLBACK]
    blocks = [
        (block.kind, block.header)
        for info in storage.list("a")
        if parse_log_file(info.name)
        for block in scan_blocks(storage.read(info.path))
        if isinstance(block, LogBlock)
    ]
    targets = [list(header.values()) for kind, header in blocks if kind is BlockKind.COMMAND]
    assert len(targets) == 1
    assert instant in targets[0]
    assert values(storage, clock) == {"k": 2, "l": 2}
    assert leftovers(storage) == []


def test_a_late_log_file_of_a_dead_attempt_is_not_seen():
    storage, clock = table_with_logs()
    other, other_clock = copy_of(storage)
    late = opened(other, other_clock).upsert(batch([Input("k", "a", 666, 6)])).instant
    assert opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)])).instant == late
    rows = snapshot_of(opened(storage, clock))
    (path,) = [info.path for info in other.list("a") if ".log.2_" in info.path]
    assert not storage.exists(path)  # every attempt has a write token of its own
    storage.create_new(path, other.read(path))
    assert values(storage, clock) == {"k": 3, "l": 1}
    assert snapshot_of(opened(storage, clock)) == rows
    opened(storage, clock).compact()
    assert snapshot_of(opened(storage, clock)) == rows


# -- readers ---------------------------------------------------------------------------------------------------------


@KINDS
def test_a_reader_sees_nothing_of_a_write_before_it_is_completed(kind):
    storage, clock = new_table(table_type=kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    before = snapshot_of(opened(storage, clock))
    seen = []
    table = slow(storage, clock, "write files", lambda: seen.append(snapshot_of(opened(storage, clock))))
    pinned = opened(storage, clock).scan(meta_columns=True)
    table.upsert(batch([Input("k", "a", 2, 2), Input("l", "a", 2, 2)]))
    assert seen == [before]
    assert plain(pinned) == before  # a scan stays on the snapshot on which it was made


@KINDS
def test_an_incremental_pull_stops_below_the_earliest_pending_write(kind):
    storage, clock = new_table(table_type=kind)
    first = opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)])).instant
    seen = []

    def others():
        table = opened(storage, clock)
        pending = table.timeline.pending_writes[0].time
        later = table.upsert(batch([Input("b", "b", 1, 1)])).instant
        assert later > pending
        seen.append([row[0] for row in plain(table.changes(meta_columns=True))])
        with pytest.raises(InstantNotFoundError, match=rf"{pending}.*still being written.*until {first}"):
            table.changes(since=first, until=later)

    slow(storage, clock, "write files", others).upsert(batch([Input("k", "a", 2, 2)]))
    assert seen == [["k"]]
    # Once it is done, nothing was missed.
    assert [row[:3] for row in plain(opened(storage, clock).changes(since=first, meta_columns=True))] == [
        ("b", "b", 1),
        ("k", "a", 2),
    ]


@KINDS
@pytest.mark.parametrize("images", ["latest_state", "before_after"])
def test_pulls_that_go_on_from_their_position_miss_no_row_and_read_none_twice(kind, images):
    storage, clock = new_table(table_type=kind)
    assert opened(storage, clock).changes(images=images).position is None
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    pulled, seen = [], None

    def pull():
        nonlocal seen
        scan = opened(storage, clock).changes(since=seen, images=images, meta_columns=True)
        rows = scan.to_arrow()
        keys = (
            rows["after"].combine_chunks().field("_hoodie_record_key")
            if "after" in rows.column_names
            else rows["_hoodie_record_key"]
        )
        pulled.extend(keys.to_pylist())
        seen = scan.position

    def others():
        pull()
        opened(storage, clock).upsert(batch([Input("b", "b", 1, 1)]))  # behind the write in progress
        pull()

    slow(storage, clock, "write files", others).upsert(batch([Input("c", "a", 2, 2)]))
    assert pulled == ["k"]
    pull()
    pull()
    assert sorted(pulled) == ["b", "c", "k"]
    table = opened(storage, clock)
    assert table.scan().position == seen
    assert table.scan(query="read_optimized").position is None
    assert table.scan(as_of=seen).position is None


@KINDS
def test_an_as_of_read_over_a_pending_write_is_an_error(kind):
    storage, clock = new_table(table_type=kind)
    first = opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)])).instant
    raised = []

    def others():
        later = opened(storage, clock).upsert(batch([Input("b", "b", 1, 1)])).instant
        with pytest.raises(InstantNotFoundError, match=rf"still being written.*Read as of {first}"):
            opened(storage, clock).scan(as_of=later)
        raised.append(later)
        assert opened(storage, clock).scan(as_of=first).count() == 1

    slow(storage, clock, "write files", others).upsert(batch([Input("k", "a", 2, 2)]))
    assert opened(storage, clock).scan(as_of=raised[0]).count() == 2


def test_an_empty_completed_file_is_never_a_commit():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    storage.create_new(".hoodie/20990101000000000.commit", b"")
    with pytest.raises(CorruptFileError, match=r"20990101000000000\.commit is empty"):
        snapshot_of(opened(storage, clock))


def test_a_scheduled_compaction_does_not_hold_back_incremental_and_as_of_reads():
    storage, clock = table_with_logs()
    opened(storage, clock).schedule_compaction()
    later = opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)])).instant
    assert plain(opened(storage, clock).changes(meta_columns=True))[0][-1] == later
    assert opened(storage, clock).scan(as_of=later).count() == 2


# -- the table's own files -------------------------------------------------------------------------------------------


def test_while_the_properties_are_being_replaced_the_backup_counts():
    storage, clock = table_with_logs()
    storage.move_new(PROPERTIES, PROPERTIES_BACKUP)
    assert values(storage, clock) == {"k": 2, "l": 1}
    storage.delete(PROPERTIES_BACKUP)
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties is missing"):
        opened(storage, clock)


@pytest.mark.parametrize("local", [False, True])
def test_of_several_creators_of_a_table_one_wins(local, tmp_path):
    storage = LocalStorage(tmp_path / "t") if local else new_storage(FakeClock())
    outcomes = []
    barrier = threading.Barrier(4)

    def make(kind):
        barrier.wait(10)
        try:
            create(storage, table_type=kind)
            outcomes.append(kind)
        except TableExistsError:
            outcomes.append(None)

    kinds = ["COPY_ON_WRITE", "MERGE_ON_READ"] * 2
    threads = [threading.Thread(target=make, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    (winner,) = [kind for kind in outcomes if kind]
    assert len(outcomes) == 4
    assert opened(storage).config.table_type == winner


def test_checksum_twins_of_replaced_and_deleted_files_are_removed_first(tmp_path):
    storage = LocalStorage(tmp_path)
    create(storage, table_type="COPY_ON_WRITE")
    opened(storage).upsert(batch([Input("k", "a", 1, 1)]))
    twin = tmp_path / ".hoodie" / ".hoodie.properties.crc"
    twin.write_bytes(b"stale")
    storage.replace(PROPERTIES, storage.read(PROPERTIES) + b"\n")
    assert not twin.exists()
    # A rollback deletes base files and timeline files: theirs must go as well.
    with pytest.raises(InjectedFault):
        open_at(storage, engine=Dies("write files")).upsert(batch([Input("k", "a", 2, 2)]))
    pending = opened(storage).timeline.pending_writes[0]
    twins = []
    for state in (State.REQUESTED, State.INFLIGHT):
        path = join(HOODIE, format_instant_file(*Instant(pending.time, pending.action, state)))
        twins.append(tmp_path / path.replace(".hoodie/", ".hoodie/.", 1).__add__(".crc"))
        twins[-1].write_bytes(b"stale")
    opened(storage).rollback()
    assert [twin.exists() for twin in twins] == [False, False]


def test_the_lock_is_not_waited_for_for_ever():
    storage, clock = table_with_logs()
    table = opened(storage, clock)
    held = threading.Event()
    done = threading.Event()

    def hold():
        with opened(storage, clock)._context.lock.held(1):
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        with pytest.raises(LockError, match="nothing was written"):
            table.upsert(batch([Input("k", "a", 3, 3)]), {"hoodie.write.lock.wait_time_ms": "0"})
    finally:
        done.set()
        holder.join(10)
    assert values(storage, clock) == {"k": 2, "l": 1}


def test_a_copied_table_goes_on_where_the_other_stands():
    storage, clock = table_with_logs()
    other, other_clock = copy_of(storage)
    opened(other, other_clock).upsert(batch([Input("k", "a", 7, 7)]))
    assert values(other, other_clock) == {"k": 7, "l": 1}
    assert values(storage, clock) == {"k": 2, "l": 1}


def test_a_rollback_plan_of_another_writer_that_was_never_finished_is_taken_away():
    storage, clock = table_with_logs()
    last = opened(storage, clock).timeline.latest_time
    assert last is not None
    plan = f".hoodie/{int(last) + 1}.rollback.requested"
    storage.create_new(plan, b"")
    opened(storage, clock).upsert(batch([Input("k", "a", 3, 3)]))
    assert not storage.exists(plan)
    assert values(storage, clock) == {"k": 3, "l": 1}


def test_a_clock_that_was_set_back_far_ends_the_write_and_not_in_a_hang():
    storage, clock = table_with_logs()

    def set_back():
        clock.now_s -= 3600

    with pytest.raises(LockError, match="set back"):
        slow(storage, clock, "write files", set_back).upsert(batch([Input("k", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 2, "l": 1}
