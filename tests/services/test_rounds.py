"""A round of a services job: what is due is done in its order, within its time, and whatever happens the next round goes on."""

from functools import cache

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.services import rounds
from hoodie.services.cleaning import CLEANING
from hoodie.services.compaction import COMPACTION
from hoodie.services.rounds import GATE_S, Rounds
from hoodie.services.scheduling import schedule
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.txn.gate import PATIENCE_S
from hoodie.txn.transaction import Transaction
from tests.begun import begun
from tests.effort import long_but
from tests.memory_tables import Input, batch, copy_of, leftovers, new_table, opened, snapshot_of, stray_files

KEEPS_LITTLE = {
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.table.services.enabled": "false",
}
"""Nothing of it is done by the writers."""


def rows(turn):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(4)])


def written(turns, *, table_type="MERGE_ON_READ", more=None):
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock, KEEPS_LITTLE | (more or {}), cache=Cache())
    for turn in range(turns):
        table.upsert(rows(turn))
    return storage, clock, table


def round_of(table, *, budget_s=None, job=None, more=None):
    return (job or Rounds(budget_s)).run(*table._at_work(more))


def named(done):
    return [run.service for run in done.did]


def test_writers_leave_it_all_to_the_job_which_does_what_is_due():
    storage, _, table = written(9)
    assert {i.action for i in table.timeline} == {Action.DELTACOMMIT}
    before = snapshot_of(table)
    done = round_of(table)
    assert named(done) == ["compaction", "clean", "archiving"]
    assert not done.errors
    assert not done.left
    assert not done.unfinished
    assert snapshot_of(table) == before
    assert leftovers(storage) == []
    assert round_of(table).runs == ()
    assert len(table.timeline.commits) == 4


def test_nothing_is_due_before_its_number_is_reached():
    _, _, table = written(2)
    assert round_of(table).runs == ()
    assert not table.timeline.compactions
    table.upsert(rows(2))
    assert named(round_of(table))[0] == "compaction"


def test_a_dead_writer_is_rolled_back_first():
    storage, clock, _ = written(1)
    dying = FaultStorage(storage, [Fault(8)])
    with pytest.raises(InjectedFault):
        opened(dying, clock).upsert(rows(1))
    bare, clock = copy_of(storage)
    (pending,) = opened(bare, clock).timeline.pending()
    done = round_of(opened(bare, clock, KEEPS_LITTLE))
    assert done.runs[0].results == (pending.time,)
    assert named(done) == ["recovery"]
    assert not opened(bare, clock).timeline.pending()
    assert leftovers(bare) == []


def test_plans_that_wait_are_run_oldest_first_whoever_made_them():
    _, _, table = written(6)
    context, options = table._at_work()
    compaction = schedule(COMPACTION, context, options)
    cleaning = schedule(CLEANING, context, options)
    done = round_of(table)
    assert [result.instant for run in done.did[:2] for result in run.results] == [compaction, cleaning]


def test_what_another_process_runs_is_left_to_it_and_no_error():
    storage, clock, table = written(6)
    context, options = table._at_work()
    instant = schedule(COMPACTION, context, options)
    other = opened(storage, clock, KEEPS_LITTLE)
    claimed = Transaction.claim(other._context, Instant(instant, Action.COMPACTION, State.REQUESTED))
    try:
        done = round_of(table)
        assert [run.service for run in done.left] == ["compaction"]
        assert not done.errors
        assert "is being run by" in done.left[0].left
        assert [i.time for i in table.timeline.pending(Action.COMPACTION)] == [instant]
    finally:
        claimed.heartbeat.abandon()
    compacted = [result.instant for run in round_of(table).did for result in run.results if run.service == "compaction"]
    assert compacted == [instant]


class Ticks:
    """A clock that is a second later each time that it is asked."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_nothing_is_begun_after_the_time_and_the_next_round_goes_on_there():
    _, _, table = written(12)
    job = Rounds(1000.0, clock=Ticks())
    whole = len(job.run(*table._at_work()).runs)
    _, _, table = written(12)
    job = Rounds(6.0, clock=Ticks())
    seen = []
    for _ in range(10):
        done = round_of(table, job=job)
        assert done.unfinished
        assert len(done.did) < whole
        seen += named(done)
    assert seen == ["compaction", "clean", "archiving"]


def test_a_long_queue_of_plans_does_not_keep_the_rest_waiting_for_ever():
    _, _, table = written(9)
    job = Rounds(4.0, clock=Ticks())
    job._pending = lambda *_: False  # there are always more of them
    seen = []
    for _ in range(12):
        seen += named(round_of(table, job=job))
    assert "clean" in seen
    assert "archiving" in seen


def test_a_stopped_job_begins_nothing_more():
    _, _, table = written(9)
    stopped = []
    job = Rounds(None, lambda: bool(stopped))
    clean = CLEANING.plan

    def stops(*args, **more):
        stopped.append(True)
        return clean(*args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(CLEANING), "plan", lambda _, *args, **more: stops(*args, **more))
        done = round_of(table, job=job)
    assert named(done) == ["compaction", "clean"]
    assert done.unfinished
    assert not table.timeline.pending()


def test_an_error_of_one_piece_does_not_keep_the_others_from_their_work(monkeypatch):
    _, _, table = written(9)

    def fails(*_, **__):
        raise OSError(5, "the disk")

    monkeypatch.setattr(type(COMPACTION), "plan", fails)
    done = round_of(table)
    assert [run.service for run in done.errors] == ["compaction"]
    assert "the disk" in done.errors[0].error
    assert named(done) == ["clean", "archiving"]


def test_a_storage_that_cannot_be_reached_ends_the_round_with_one_error(monkeypatch):
    _, _, table = written(9)

    def fails(*_):
        raise OSError(111, "connection refused")

    monkeypatch.setattr(rounds, "recover", fails)
    done = round_of(table)
    assert [run.service for run in done.runs] == ["recovery"]
    assert done.errors == done.runs


@pytest.mark.long
def test_beside_a_living_writer_a_plan_waits_no_longer_than_it_may_and_longer_each_time():
    """The writer names every file group with logs. New ones are held back at the gate meanwhile."""
    _, clock, table = written(4)
    job = Rounds(None)
    with begun(table, rows(50)) as end:
        waited = []
        for _ in range(6):
            before = clock.slept_s
            done = round_of(table, job=job)
            waited.append(round(clock.slept_s - before))
            assert [run.service for run in done.left] == ["compaction"]
        assert waited == [min(GATE_S * 2**n, PATIENCE_S) for n in range(6)]
        end()
    assert "compaction" in named(round_of(table, job=job))
    assert job._patience_s == {}


def test_partitions_expire_in_a_round_only_where_an_option_asks():
    _, clock, table = written(1)
    clock.now_s += 10 * 24 * 3600
    table.upsert(batch([Input("new", "c", 0, 0)]))
    days = {"hoodie.partition.ttl.strategy.days.retain": "5"}
    assert named(round_of(table, more=days)) == []
    assert named(round_of(table, more=days | {"hoodie.partition.ttl.inline": "true"})) == ["partition expiry"]
    assert [row[0] for row in snapshot_of(table)] == ["new"]


def test_two_jobs_share_the_work_and_neither_fails():
    storage, clock, table = written(12)
    before = snapshot_of(table)
    first, second = Rounds(None), Rounds(None)
    other = opened(storage, clock, KEEPS_LITTLE, cache=Cache())
    done, run = [], COMPACTION.run

    def beside(self, context, instant, options):
        if not done:
            done.append("begun")
            done.append(second.run(*other._at_work()))  # between the plan of the first and its claim
        return run(context, instant, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(COMPACTION), "run", beside)
        mine = round_of(table, job=first)
    theirs = done[1]
    assert not mine.errors
    assert not theirs.errors
    assert sorted(named(mine) + named(theirs)) == ["archiving", "clean", "compaction"]
    assert snapshot_of(table) == before
    assert leftovers(storage) == []


# -- a job that dies ---------------------------------------------------------------------------------------------------


TTL = {"hoodie.partition.ttl.strategy.days.retain": "5", "hoodie.partition.ttl.inline": "true"}


def _start():
    """All of it is due: compaction, clean, archiving, a partition that expires, and a writer died."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock, KEEPS_LITTLE, cache=Cache())
    table.upsert(batch([Input("old", "old", 0, 0)]))
    clock.now_s += 10 * 24 * 3600
    for turn in range(8):
        table.upsert(rows(turn))
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [Fault(9)]), clock, KEEPS_LITTLE).upsert(rows(99))
    return copy_of(storage)[0]


@cache
def scene():
    start = _start()
    done, clock = copy_of(start)
    traced = FaultStorage(done)
    outcome = round_of(opened(traced, clock, KEEPS_LITTLE | TTL, cache=Cache()))
    assert named(outcome) == ["recovery", "compaction", "clean", "partition expiry", "archiving"]
    assert not outcome.errors
    return start, traced.trace, rows_of(done, clock)


def rows_of(storage, clock):
    return snapshot_of(opened(storage, clock, cache=Cache()))


def settled(storage, clock):
    """Rounds of later jobs until nothing is left to do."""
    for _ in range(6):
        done = round_of(opened(storage, clock, KEEPS_LITTLE | TTL, cache=Cache()))
        assert not done.errors
        assert not done.left
        if not done.did:
            return
    raise AssertionError("there is always more to do")


@pytest.mark.long
@pytest.mark.parametrize("share", range(6))
def test_a_job_that_dies_anywhere_loses_nothing_and_the_next_one_goes_on(share):
    start, trace, after = scene()
    before = rows_of(*copy_of(start))
    assert [row for row in before if row[0] != "old"] == after
    died = 0
    for fault in list(crash_points(trace))[share::6]:
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            round_of(opened(FaultStorage(storage, [fault]), clock, KEEPS_LITTLE | TTL, cache=Cache()))
        died += 1
        bare, clock = copy_of(storage)
        assert rows_of(bare, clock) in (before, after), fault
        settled(bare, clock)
        assert rows_of(bare, clock) == after, fault
        table = opened(bare, clock)
        assert not table.timeline.pending(), fault
        assert leftovers(bare) == [], fault
        assert stray_files(bare, table) == [], fault
        table.upsert(batch([Input("next", "a", 1, 1)]))
        assert len(rows_of(bare, clock)) == len(after) + 1, fault
    assert died > 10


@pytest.mark.long
def test_a_job_that_dies_while_it_goes_on_for_a_dead_one_loses_nothing_either():
    start, trace, after = scene()
    before = rows_of(*copy_of(start))
    pairs = 0
    for number, fault in enumerate(crash_points(trace)):
        if number % 9:
            continue
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            round_of(opened(FaultStorage(storage, [fault]), clock, KEEPS_LITTLE | TTL, cache=Cache()))
        dead, _ = copy_of(storage)
        undone, clock = copy_of(dead)
        second = FaultStorage(undone)
        round_of(opened(second, clock, KEEPS_LITTLE | TTL, cache=Cache()))
        for again in list(crash_points(second.trace))[number % 7 :: 7]:
            storage, clock = copy_of(dead)
            with pytest.raises(InjectedFault):
                round_of(opened(FaultStorage(storage, [again]), clock, KEEPS_LITTLE | TTL, cache=Cache()))
            bare, clock = copy_of(storage)
            assert rows_of(bare, clock) in (before, after), (fault, again)
            settled(bare, clock)
            assert rows_of(bare, clock) == after, (fault, again)
            assert leftovers(bare) == [], (fault, again)
            pairs += 1
    assert pairs > 50


@pytest.mark.parametrize("share", long_but([0], range(6)))
def test_an_io_error_anywhere_is_an_error_of_the_round_and_the_next_one_goes_on(share):
    start, trace, after = scene()
    before = rows_of(*copy_of(start))
    for call in trace[share::6]:
        storage, clock = copy_of(start)
        faulty = FaultStorage(storage, [Fault(call.n, "after", 5)])
        round_of(opened(faulty, clock, KEEPS_LITTLE | TTL, cache=Cache()))
        assert rows_of(storage, clock) in (before, after), call
        settled(storage, clock)
        assert rows_of(storage, clock) == after, call
        assert leftovers(storage) == [], call
