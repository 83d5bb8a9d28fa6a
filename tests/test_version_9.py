"""What writers of versions 8 and 9 have to see to: times of completion, logs of a commit's own, base files beside late logs."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from hoodie.errors import CommitConflictError
from hoodie.format.layout import V9
from hoodie.model.change import Change
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import parse_log_file
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.txn.completion import complete
from hoodie.txn.heartbeat import Heartbeat
from tests.memory_tables import Input, batch, keys, new_table, opened

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
VERSIONS = pytest.mark.parametrize("version", ["8", "9"])


def table_of(kind, version="9", **more):
    return new_table(table_type=kind, more={"hoodie.write.table.version": version}, **more)


def rows_of(storage, clock):
    rows = opened(storage, clock).to_arrow().to_pylist()
    return sorted((row["id"], row["val"]) for row in rows)


def logs_of(storage, part="a"):
    return [name for info in storage.list(part) if (name := parse_log_file(info.name)) is not None]


@KINDS
@VERSIONS
def test_completion_times_grow_and_lie_between_instants(kind, version):
    storage, clock = table_of(kind, version)
    table = opened(storage, clock)
    for n in range(4):
        table.upsert(batch([Input("k", "a", n, n), Input(f"n{n}", "b", n, n)]))
    table.clean(retain_commits=1)
    table.savepoint()
    instants = [i for i in opened(storage, clock).timeline if i.action is not Action.SAVEPOINT]
    assert all(i.completion is not None and i.completion > i.time for i in instants)
    moments = [moment for i in instants for moment in (i.time, i.completion)]
    assert moments == sorted(set(moments))
    assert len(opened(storage, clock).savepoints()) == 1


@VERSIONS
def test_each_commit_has_a_log_of_its_own_in_a_group(version):
    storage, clock = table_of("MERGE_ON_READ", version)
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1)]))
    written = [table.upsert(batch([Input("k", "a", n, n)])).instant for n in (2, 3)]
    assert [(log.base_instant, log.version) for log in logs_of(storage)] == [(time, 1) for time in written]
    stats = [s for i in table.timeline.commits[1:] for s in table._context.active.read_commit(i).stats()]
    base = next(iter(table._context.active.read_commit(table.timeline.commits[0]).stats()))
    assert [(s.prev_commit, s.base_file, len(s.log_files)) for s in stats] == [
        (time, base.path.rpartition("/")[2], 1) for time in written
    ]


@KINDS
def test_a_write_that_died_leaves_nothing(kind):
    storage, clock = table_of(kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    before = sorted(info.name for info in storage.list("a"))
    fault = Fault(_completes_at(kind), "before")
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [fault]), clock).upsert(batch([Input("k", "a", 2, 2)]))
    assert len(storage.list("a")) > len(before)
    assert rows_of(storage, clock) == [("k", 1)]
    assert len(opened(storage, clock).rollback()) == 1
    assert sorted(info.name for info in storage.list("a")) == before
    plan = next(i for i in opened(storage, clock).timeline if i.action is Action.ROLLBACK)
    requests = opened(storage, clock)._context.active.read_rollback_plan(plan.time).requests
    assert all(len(each.files_to_delete) == 1 and not each.log_blocks for each in requests)


def _completes_at(kind):
    """The call that completes that write, in a table of its own."""
    storage, clock = table_of(kind)
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    probe = FaultStorage(storage)
    opened(probe, clock).upsert(batch([Input("k", "a", 2, 2)]))
    return next(
        call.n for call in probe.trace if (i := V9.parse(call.path.rpartition("/")[2])) is not None and i.is_completed
    )


def test_a_base_file_is_not_completed_beside_a_log_that_was_completed_after_it_began():
    """Readers would merge the log onto it once more: the delete would come twice."""
    storage, clock = table_of("MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 5), Input("l", "a", 1, 1)]))
    table.delete(keys([Input("k", "a", 0, None)]))
    # Brings `k` back, which takes a base file.
    result = table.upsert(batch([Input("k", "a", 3, 0)]))
    metadata = table._context.active.read_commit(table.timeline.latest_commit)
    assert [stat.log_version for stat in metadata.stats()] == [None]
    assert rows_of(storage, clock) == [("k", 3), ("l", 1)]
    with ThreadPoolExecutor(4) as pool:
        rows = [[Input(key, "a", n, n)] for n in range(10, 14) for key in ("k", "l")]
        list(pool.map(lambda each: opened(storage, clock).upsert(batch(each)), rows))
    assert rows_of(storage, clock) == [("k", 13), ("l", 13)]
    assert result.instant in opened(storage, clock).timeline.completed_times


def test_a_group_in_a_pending_log_compaction_is_not_compacted_and_the_other_way_round():
    storage, clock = table_of("MERGE_ON_READ")
    table = opened(storage, clock)
    for n in range(4):
        table.upsert(batch([Input("k", "a", n, n)]))
    assert table.schedule_log_compaction(blocks=1) is not None
    assert table.schedule_compaction() is not None  # nobody carries the other plan out
    assert not table.pending_log_compactions()
    assert table.schedule_log_compaction(blocks=1) is None
    table.run_compaction()
    table.upsert(batch([Input("k", "a", 4, 4)]))
    planned = table.schedule_log_compaction(blocks=1)
    busy = Heartbeat(planned, table._context)
    busy.start()
    assert table.schedule_compaction() is None
    busy.abandon()
    assert rows_of(storage, clock) == [("k", 4)]


def test_a_log_compaction_that_finds_its_slice_gone_is_not_completed():
    storage, clock = table_of("MERGE_ON_READ", ordering=None)
    table = opened(storage, clock)
    for n in range(4):
        table.upsert(batch([Input("k", "a", n)]))
    assert table.schedule_log_compaction(blocks=1) is not None
    table.insert_overwrite(batch([Input("k", "a", 9)]))
    table.run_log_compaction()
    assert rows_of(storage, clock) == [("k", 9)]
    assert not opened(storage, clock).timeline.log_compactions


@KINDS
def test_an_action_that_two_carry_on_is_completed_once(kind):
    storage, clock = table_of(kind)
    table = opened(storage, clock)
    for n in range(4):
        table.upsert(batch([Input("k", "a", n, n)]))
    if kind == "MERGE_ON_READ":
        table.compact()
    table.clean(retain_commits=1)
    done = next(i for i in table.timeline if i.action is Action.CLEAN)
    context = opened(storage, clock)._context
    complete(context, Change(Instant(done.time, Action.CLEAN, State.COMPLETED)), b"another", under_lock=False)
    assert [i for i in opened(storage, clock).timeline if i.action is Action.CLEAN] == [done]
    names = [name for name in storage.names(".hoodie/timeline") if name.startswith(f"{done.time}_")]
    assert len(names) == 1


def test_two_that_rewrite_one_group_exclude_each_other():
    storage, clock = table_of("COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: _tries(storage, clock, n), range(2, 10)))
    assert rows_of(storage, clock) == [("k", max(done))]


def _tries(storage, clock, n):
    try:
        opened(storage, clock).upsert(batch([Input("k", "a", n, n)]))
    except CommitConflictError:
        return 0
    return n
