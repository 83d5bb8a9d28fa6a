"""The gate that holds writers back while a compaction is scheduled."""

import threading
import time

import pytest

from hoodie.errors import CommitConflictError
from hoodie.lock.providers import coordinate
from hoodie.txn.gate import GATE, PATIENCE_S, PAUSE_S, closed_gate, wait_at_gate
from hoodie.write.publish import commit_metadata
from hoodie.writer import FIRST_BACK_OFF_S, MAX_BACK_OFF_S, MAX_TRIES
from tests.memory_tables import Input, batch, new_table, opened


def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    return opened(storage, clock)._context, storage, clock


def test_an_open_gate_is_not_waited_at():
    context, _, clock = table()
    wait_at_gate(context)
    assert clock.slept_s == 0


def test_a_writer_waits_at_the_gate_until_it_opens():
    context, storage, clock = table()
    sleep, pauses = clock.sleep, []

    def nap(seconds):
        pauses.append(seconds)
        sleep(seconds)
        if len(pauses) == 5:
            coordinate(storage).liveness.release(GATE)

    clock.sleep = nap
    context = opened(storage, clock)._context
    coordinate(storage).liveness.hold(GATE)
    wait_at_gate(context)
    assert pauses == [PAUSE_S] * 5


def test_the_gate_opens_however_the_block_ends():
    context, storage, _ = table()
    with closed_gate(context):
        assert coordinate(storage).liveness.is_alive(GATE)
    assert not coordinate(storage).liveness.is_alive(GATE)
    with pytest.raises(ZeroDivisionError), closed_gate(context):
        raise ZeroDivisionError
    assert not coordinate(storage).liveness.is_alive(GATE)


def test_a_second_scheduler_goes_in_and_leaves_the_gate_to_the_first():
    context, storage, _ = table()
    with closed_gate(context):
        with closed_gate(context):
            pass
        assert coordinate(storage).liveness.is_alive(GATE)
    assert not coordinate(storage).liveness.is_alive(GATE)


def test_a_scheduler_that_died_keeps_nobody_waiting_and_the_next_closes_the_gate_anew():
    context, storage, clock = table()
    coordinate(storage).liveness.hold(GATE)
    coordinate(storage).liveness.abandon(GATE)  # the mark stands, as a killed process leaves it
    wait_at_gate(context)
    assert clock.slept_s == 0
    with closed_gate(context):
        assert coordinate(storage).liveness.is_alive(GATE)


def test_a_writer_goes_on_when_the_gate_stays_closed_for_long():
    context, storage, clock = table()
    coordinate(storage).liveness.hold(GATE)
    wait_at_gate(context)
    assert clock.slept_s == pytest.approx(2 * PATIENCE_S, abs=2 * PAUSE_S)


def test_a_write_waits_before_it_takes_its_instant():
    _, storage, clock = table()
    sleep = clock.sleep
    seen = []

    def nap(seconds):
        sleep(seconds)
        if coordinate(storage).liveness.is_alive(GATE):
            seen.append(len(opened(storage, clock).timeline))
            coordinate(storage).liveness.release(GATE)

    clock.sleep = nap
    writer = opened(storage, clock)
    coordinate(storage).liveness.hold(GATE)
    writer.upsert(batch([Input("a", "p")]))
    assert seen == [0]
    assert len(opened(storage, clock).timeline.commits) == 1


def test_a_scheduler_gets_its_turn_beside_writers_without_gaps():
    _, storage, clock = table()
    opened(storage, clock).upsert(batch([Input(str(n), "p") for n in range(20)]))
    opened(storage, clock).upsert(batch([Input(str(n), "p", 1, 1) for n in range(20)]))
    over, started, failed = threading.Event(), threading.Barrier(3), []

    def write(key):
        started.wait()
        n = 0
        while not over.is_set():
            n += 1
            try:
                opened(storage).upsert(batch([Input(key, "p", n, n + 1)]))
            except CommitConflictError:
                pass  # the other writer of this file group was faster too often
            except Exception as exc:
                failed.append(exc)
                raise

    # The writers pause in real time here, since the scheduler must meet them in the middle of their work.
    began_s, real_s = clock.now_s, time.monotonic()
    storage.clock = lambda: began_s + time.monotonic() - real_s
    threads = [threading.Thread(target=write, args=(key,)) for key in ("1", "2")]
    for thread in threads:
        thread.start()
    try:
        started.wait()
        instant = opened(storage).schedule_compaction()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failed
    assert [i.time for i in opened(storage).timeline.pending()] == [instant]
    (file_slice,) = opened(storage).files()
    assert file_slice.base_instant == instant


def test_a_write_whose_log_is_there_and_whose_commit_is_not_is_waited_for(monkeypatch):
    """Not "nothing to compact": its log is in no commit yet, and it is the only file group."""
    _, storage, clock = table()
    writer = opened(storage, clock)
    writer.upsert(batch([Input(str(n), "p") for n in range(20)]))
    writer.upsert(batch([Input("1", "p", 1, 1)]))
    waited = []

    def before_it_commits(*args, **kwargs):
        began_s = clock.now_s
        with pytest.raises(CommitConflictError, match="every file group with logs is named by a write in progress"):
            opened(storage, clock).schedule_compaction()
        waited.append(clock.now_s - began_s)
        return commit_metadata(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr("hoodie.write.attempt.commit_metadata", before_it_commits)
        writer.upsert(batch([Input("2", "p", 1, 1)]))
    assert waited[0] >= PATIENCE_S
    assert opened(storage, clock).schedule_compaction() is not None


def test_writers_that_lost_back_off_by_the_clock_s_pause_longer_each_time():
    _, storage, clock = table()
    sleep, pauses = clock.sleep, []

    def nap(seconds):
        pauses.append(seconds)
        sleep(seconds)

    clock.sleep = nap
    loser = opened(storage, clock)

    def lose():
        raise CommitConflictError("another was faster")

    with pytest.raises(CommitConflictError, match="another was faster"):
        loser.writer._retried(loser.writer.context, lose)
    assert len(pauses) == MAX_TRIES - 1
    for tries, pause in enumerate(pauses, 1):
        assert 0 <= pause <= min(MAX_BACK_OFF_S, FIRST_BACK_OFF_S * 2**tries)
