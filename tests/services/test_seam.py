"""A service that the others know nothing of: planned, run and recovered by its entry in the table alone."""

import logging

import pytest

from hoodie import writer
from hoodie.errors import CommitConflictError, HoodieError, InstantNotFoundError
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.services import inline, scheduling
from hoodie.services.budget import Budget
from hoodie.services.scheduling import run_pending, schedule
from hoodie.txn.transaction import Transaction
from tests.memory_tables import Input, batch, new_table, opened


class Sweep:
    """A service without output of its own."""

    action = Action.CLEAN
    resumes = False

    def __init__(self, *, due=False, dies=False, late=False, only_plans=False):
        self.due, self.dies, self.late, self.only_plans = due, dies, late, only_plans
        self.recovered = []

    def require_fit(self, context):
        pass

    def is_due(self, context, options):
        return self.due

    def in_background(self, options):
        return False

    def only_schedules(self, options):
        return self.only_plans

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

    def withdraw(self, context, instant_time):
        return False

    def recover(self, context, instant_time):
        self.recovered.append(instant_time)


@pytest.fixture
def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    return opened(storage, clock)


def known(monkeypatch, service):
    for module in (scheduling, inline, writer):
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
    with pytest.raises(
        HoodieError, match=f"clean {instant} .* failed, and nothing of it is visible: RuntimeError: the runner died"
    ):
        run_pending(sweep, context, options)
    assert states(table) == [State.INFLIGHT]
    table.upsert(batch([Input("a", "p")]))
    assert sweep.recovered == [instant]
    assert states(table) == [State.REQUESTED]


def test_a_plan_is_run_once_and_not_beside_a_living_runner(table):
    sweep = Sweep()
    context, options = table._context, table._request(None).write
    instant = schedule(sweep, context, options)
    with Transaction.claim(context, Instant(instant, Action.CLEAN, State.REQUESTED)):
        assert run_pending(sweep, context, options) == []
        with pytest.raises(CommitConflictError, match=f"clean {instant} .* is being run by another process"):
            run_pending(sweep, context, options, instant=instant)
    assert [result.instant for result in run_pending(sweep, context, options)] == [instant]
    assert sweep.recovered == [instant]
    with pytest.raises(InstantNotFoundError, match=f"no clean is pending at instant {instant}"):
        run_pending(sweep, context, options, instant=instant)


def test_who_finds_another_at_work_on_a_plan_goes_on_to_the_next(table):
    sweep = Sweep()
    context, options = table._context, table._request(None).write
    first, second, third = (schedule(sweep, context, options) for _ in range(3))
    with Transaction.claim(context, Instant(second, Action.CLEAN, State.REQUESTED)):
        assert [result.instant for result in run_pending(sweep, context, options)] == [first, third]
    assert [result.instant for result in run_pending(sweep, context, options)] == [second]


def test_plans_that_others_complete_meanwhile_are_passed_over(table):
    context, options = table._context, table._request(None).write

    class Slow(Sweep):
        """Another process completes the next plan while this one is run."""

        def run(self, context, instant, options):
            if instant.time == first:
                Sweep().run(context, Instant(second, Action.CLEAN, State.REQUESTED), options)
            return super().run(context, instant, options)

    first, second, third = (schedule(Slow(), context, options) for _ in range(3))
    assert [result.instant for result in run_pending(Slow(), context, options)] == [first, third]


def test_a_conflict_that_is_not_about_who_runs_a_plan_is_raised(table):
    context, options = table._context, table._request(None).write
    schedule(Sweep(), context, options)
    with pytest.raises(CommitConflictError):
        run_pending(Sweep(late=True), context, options)


@pytest.mark.parametrize(
    ("seconds", "ran"), [(0, 1), (9, 1), (10, 1), (19, 1), (20, 2), (39, 3), (40, 4), (1000, 4), (None, 4)]
)
def test_a_budget_begins_one_plan_and_further_ones_that_are_expected_to_end_in_time(table, seconds, ran):
    now = [0.0]

    class Timed(Sweep):
        def run(self, context, instant, options):
            now[0] += 10
            return super().run(context, instant, options)

    context, options = table._context, table._request(None).write
    plans = [schedule(Timed(), context, options) for _ in range(4)]
    results = run_pending(Timed(), context, options, budget=Budget(seconds, lambda: now[0]))
    assert [result.instant for result in results] == plans[:ran]
    assert [i.time for i in table.timeline.pending(Action.CLEAN)] == plans[ran:]


def test_what_is_only_scheduled_is_left_to_another_process(table, monkeypatch):
    sweep = known(monkeypatch, Sweep(due=True, only_plans=True))
    table.upsert(batch([Input("a", "p")]))
    assert states(table) == [State.REQUESTED]
    assert len(run_pending(sweep, table._context, table._request(None).write)) == 1
