"""A services job in a thread beside a writer: it works, ends with its block however that ends, and says an error once."""

import logging
import threading

import pytest

from hoodie.errors import OptionError
from hoodie.model.enums import Action
from hoodie.model.service_results import ServiceRound, ServiceRun
from hoodie.services import job as jobs
from hoodie.services.compaction import COMPACTION
from hoodie.services.job import KEPT, LONGEST_BACK_OFF_S, ServicesJob
from hoodie.storage.cache import Cache
from tests.memory_tables import Input, batch, leftovers, new_table, opened, snapshot_of

OPTIONS = {
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "2",
    "hoodie.table.services.enabled": "false",
}


def rows(turn):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(4)])


@pytest.fixture
def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    made = opened(storage, clock, OPTIONS, cache=Cache())
    made.storage = storage
    return made


def alive():
    return [thread for thread in threading.enumerate() if thread.name == "hoodie-services"]


def test_a_block_serves_the_table_while_its_writer_works(table):
    with table.services(every_s=0.01) as job:
        assert job.is_running
        for turn in range(20):
            table.upsert(rows(turn))
            while (
                turn == 10 and not table.timeline.compactions
            ):  # the job gets there beside the writer, or at its next round
                job.join(0.001)
    assert not job.is_running
    assert not alive()
    assert {row[2] for row in snapshot_of(table)} == {19}
    assert any(run.service == "compaction" for done in job.rounds for run in done.did)
    assert job.last == job.rounds[-1]
    assert not [error for done in job.rounds for error in done.errors]
    table.rollback()
    assert all(i.action in (Action.COMPACTION, Action.CLEAN) for i in table.timeline.pending())
    assert leftovers(table.storage) == []


def test_a_block_that_ends_by_an_error_ends_the_job_too(table):
    with pytest.raises(KeyboardInterrupt), table.services(every_s=1000) as job:
        raise KeyboardInterrupt
    assert not job.is_running
    assert not alive()


def test_the_end_waits_for_the_piece_that_has_begun_and_begins_nothing_more(table, monkeypatch):
    for turn in range(6):
        table.upsert(rows(turn))
    at_work, run = threading.Event(), COMPACTION.run

    def slow(self, context, instant, options):
        at_work.set()
        assert job._ended.wait(30)  # the block has ended meanwhile
        return run(context, instant, options)

    monkeypatch.setattr(type(COMPACTION), "run", slow)
    job = table.services(every_s=1000)
    with job:
        assert at_work.wait(30)
    (done,) = job.rounds
    assert [each.service for each in done.did] == ["compaction"]
    assert done.unfinished
    assert not table.timeline.pending()
    assert leftovers(table.storage) == []


def failing(errors, told=None):
    """A job whose rounds end with these errors, one each; None: with none."""
    turns = iter(errors)

    def at_work():
        error = next(turns)
        raise RuntimeError("no error this time") if error is None else OSError(error)

    return ServicesJob(at_work, uri="memory://t", every_s=60, budget_s=None, on_round=told)


def test_the_same_error_is_logged_once_and_so_is_its_end(table, caplog, monkeypatch):
    broken = [True]

    def at_work():
        if broken:
            raise OSError(f"timed out after {len(job.rounds)} s")
        return table._at_work()

    job = ServicesJob(at_work, uri="memory://t", every_s=60, budget_s=None)
    with caplog.at_level(logging.INFO, "hoodie"):
        for _ in range(4):
            assert job.run_once().errors
        assert [each.levelname for each in caplog.records] == ["WARNING"]
        broken.clear()
        job.run_once()
    assert [each.message for each in caplog.records][1:] == ["opening of table memory://t works again"]


def test_another_error_is_said_too(caplog):
    job = failing(["the disk", "the disk", "the network"])
    with caplog.at_level(logging.WARNING, "hoodie"):
        for _ in range(3):
            job.run_once()
    assert len(caplog.records) == 2


def test_failed_rounds_come_later_and_later_up_to_a_bound(monkeypatch):
    job = failing(["gone"] * 20)
    pauses = []
    for _ in range(20):
        pauses.append(job._pause_s())
        job.run_once()
    assert pauses[:5] == [60, 60, 120, 240, 480]
    assert set(pauses[5:]) == {LONGEST_BACK_OFF_S}
    job._every_s = 3600
    assert job._pause_s() == 3600


def test_no_more_than_so_many_rounds_are_kept():
    job = failing(["gone"] * (KEPT + 5))
    for _ in range(KEPT + 5):
        job.run_once()
    assert len(job.rounds) == KEPT


def test_a_job_can_be_started_again(table):
    with table.services(every_s=1000) as job:
        pass
    first = len(job.rounds)
    with job:
        while len(job.rounds) == first:
            job.join(0.001)
    assert not alive()


def test_what_makes_no_sense_is_said_at_once(table):
    with pytest.raises(OptionError, match="every_s"):
        table.services(every_s=-1)
    with pytest.raises(OptionError, match="budget_s"):
        table.services(budget_s="2m")
    with pytest.raises(OptionError, match="no_such"):
        table.services(options={"hoodie.no_such": "x"})


def test_a_round_says_what_was_done():
    done = ServiceRound(
        "memory://t",
        "2026-01-31T12:00:00Z",
        (
            ServiceRun("recovery", ("20260131115900000",)),
            ServiceRun("clean", error="the disk"),
            ServiceRun("x", left="busy"),
        ),
        seconds=1.5,
    )
    assert str(done) == ("services of memory://t: rolled back 20260131115900000; clean failed: the disk; 1.50 s")
    assert [run.service for run in done.left] == ["x"]
    assert done.data()["runs"][0]["results"] == ["20260131115900000"]
    assert jobs.log.name == "hoodie"
