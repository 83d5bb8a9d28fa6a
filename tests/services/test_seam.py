"""A service that the others know nothing of: planned, run and recovered by its entry in the table alone."""

import logging

import pytest

from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.services import inline, recovery
from hoodie.services.acts import run_pending, schedule
from hoodie.txn.transaction import Transaction
from tests.memory_tables import Input, batch, new_table, opened


class Sweep:
    """A service without output of its own."""

    action = Action.CLEAN
    resumes = False

    def __init__(self, *, due=False, dies=False, late=False):
        self.due, self.dies, self.late = due, dies, late
        self.recovered = []

    def require_fit(self, context):
        pass

    def is_due(self, context, options):
        return self.due

    def in_background(self, options):
        return False

    def plan(self, context, options, *, wait_s):
        instant = context.clock.allot(context.active.load().latest_time)
        context.active.create(Instant(instant, self.action, State.REQUESTED), b"plan")
        return instant

    def run(self, context, instant, options):
        if self.late:
            raise CommitConflictError("another process runs it")
        with Transaction.claim(context, instant):
            if self.dies:
                raise RuntimeError("the runner died")
            context.active.create(Instant(instant.time, self.action, State.COMPLETED), b"done")
        return CommitResult(instant.time, WriteOperation.UNKNOWN)

    def recover(self, context, instant_time):
        self.recovered.append(instant_time)


@pytest.fixture
def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    return opened(storage, clock)


def known(monkeypatch, service):
    for module in (inline, recovery):
        monkeypatch.setattr(module, "SERVICES", {service.action: service})
    return service


def states(table):
    return [i.state for i in table.timeline if i.action is Action.CLEAN]


def test_what_is_due_is_planned_and_run_after_a_write(table, monkeypatch):
    known(monkeypatch, Sweep(due=True))
    table.upsert(batch([Input("a", "p")]))
    assert states(table) == [State.COMPLETED]


def test_a_service_that_fails_after_a_write_is_a_warning_with_its_name(table, monkeypatch, caplog):
    known(monkeypatch, Sweep(due=True, dies=True))
    with caplog.at_level(logging.WARNING, "hoodie"):
        assert table.upsert(batch([Input("a", "p")])).instant
    assert "the commit stands, but the clean after it failed" in caplog.text


def test_a_service_that_another_process_runs_is_no_warning(table, monkeypatch, caplog):
    known(monkeypatch, Sweep(due=True, late=True))
    with caplog.at_level(logging.INFO, "hoodie"):
        table.upsert(batch([Input("a", "p")]))
    assert [(each.levelname, "left to another process" in each.message) for each in caplog.records] == [("INFO", True)]


def test_a_dead_runners_claim_is_taken_back_before_the_next_write(table, monkeypatch):
    sweep = known(monkeypatch, Sweep(dies=True))
    context, options = table._context, table._request(None).write
    instant = schedule(sweep, context, options)
    with pytest.raises(RuntimeError):
        run_pending(sweep, context, options)
    assert states(table) == [State.INFLIGHT]
    table.upsert(batch([Input("a", "p")]))
    assert sweep.recovered == [instant]
    assert states(table) == [State.REQUESTED]


def test_a_plan_is_run_once_and_not_beside_a_living_runner(table):
    sweep = Sweep()
    context, options = table._context, table._request(None).write
    instant = schedule(sweep, context, options)
    with (
        Transaction.claim(context, Instant(instant, Action.CLEAN, State.REQUESTED)),
        pytest.raises(CommitConflictError, match=f"clean {instant} .* is being run by another process"),
    ):
        run_pending(sweep, context, options)
    assert [result.instant for result in run_pending(sweep, context, options)] == [instant]
    assert sweep.recovered == [instant]
    with pytest.raises(InstantNotFoundError, match=f"no clean is pending at instant {instant}"):
        run_pending(sweep, context, options, instant=instant)
