"""Compactions after writes, within budgets and by several at once: no row changes, and no plan is run twice."""

import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.tuning import TUNING
from hoodie.services.budget import ASSUMED_BYTES_A_S, SECONDS, part_bytes
from hoodie.services.compaction import COMPACTION
from hoodie.services.inline import wait_for_background
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.timeline.active import ActiveTimeline
from tests.effort import long_but
from tests.memory_tables import Input, batch, copy_of, create, new_table, opened, snapshot_of

PARTS = "abcdef"
SMALL = replace(TUNING, least_plan_bytes=1, least_room_bytes=1)


def fill(storage, clock, *, rounds=2):
    for value in range(rounds + 1):
        opened(storage, clock).upsert(
            batch([Input(f"k{part}{n}", part, value, value) for part in PARTS for n in range(4)])
        )


@pytest.fixture
def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    fill(storage, clock)
    return opened(storage, clock, tuning=SMALL)


def with_logs(table):
    return sum(1 for file_slice in table._context.snapshot().view.latest_slices() if file_slice.logs)


def test_a_budget_of_nothing_runs_one_small_plan_and_leaves_the_others(table):
    before = snapshot_of(table)
    assert len(table.compact(budget_s=0)) == 1
    waiting = table.pending_compactions()
    assert len(waiting) == len(PARTS) - 1
    assert all(len(table._context.active.read_compaction_plan(i.time).operations) == 1 for i in waiting)
    assert snapshot_of(table) == before
    for left in range(len(PARTS) - 2, -1, -1):
        assert len(table.compact(budget_s=0)) == 1
        assert len(table.pending_compactions()) == left
        assert snapshot_of(table) == before
    assert table.compact(budget_s=0) == []


def test_a_large_budget_runs_all(table):
    (result,) = table.compact(budget_s=3600)
    assert result.files == len(PARTS)
    assert not table.pending_compactions()
    assert with_logs(table) == 0


def test_a_plan_is_as_large_as_the_last_compaction_was_fast(table):
    context = table._context
    assert part_bytes(context, table.timeline, 40.0) == 10 * ASSUMED_BYTES_A_S
    table.compact()
    metadata = context.active.read_commit(table.timeline.commits[-1])
    took_s = float(metadata.extra[SECONDS])
    assert took_s > 0
    io_bytes = sum(s.total_log_bytes_compacted + 2 * s.file_size_bytes for s in metadata.stats())
    assert part_bytes(context, table.timeline, 40.0) == int(io_bytes / took_s * 10)


def test_a_strategy_as_an_argument_and_as_an_option(table):
    table.compact(strategy=lambda slices: [s for s in slices if s.partition_path == "c"])
    assert with_logs(table) == len(PARTS) - 1
    table.compact(strategy="partition_regex", options={"hoodie.compaction.partition.path.regex": "[ab]"})
    assert with_logs(table) == len(PARTS) - 3
    assert (
        table.compact({"hoodie.compaction.strategy": "log_file_num", "hoodie.compaction.logfile.num.threshold": "3"})
        == []
    )
    assert with_logs(table) == len(PARTS) - 3


# -- after writes --------------------------------------------------------------------------------------------------------


TRIGGER = "hoodie.compact.inline.trigger.strategy"
COMMITS = "hoodie.compact.inline.max.delta.commits"
DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"


@pytest.mark.parametrize(
    ("trigger", "commits", "after_s", "due"),
    [
        ("NUM_COMMITS", 3, 0, True),
        ("NUM_COMMITS", 4, 10**6, False),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 3, 0, True),
        ("TIME_ELAPSED", 99, 100, True),
        ("TIME_ELAPSED", 1, 50, False),
        ("NUM_AND_TIME", 3, 100, True),
        ("NUM_AND_TIME", 4, 100, False),
        ("NUM_AND_TIME", 3, 50, False),
        ("NUM_OR_TIME", 4, 100, True),
        ("NUM_OR_TIME", 3, 50, True),
        ("NUM_OR_TIME", 4, 50, False),
    ],
)
def test_triggers(trigger, commits, after_s, due):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    fill(storage, clock, rounds=1)
    clock.now_s += after_s
    options = {"hoodie.compact.inline": "true", TRIGGER: trigger, COMMITS: str(commits), DELTA_SECONDS: "90"}
    table = opened(storage, clock, options)
    table.upsert(batch([Input("ka0", "a", 9, 9)]))
    assert bool(table.timeline.compactions) is due


def test_after_the_last_request_counts_from_plans_that_wait(table):
    storage, clock = copy_of(table._context.storage)
    options = {"hoodie.compact.schedule.inline": "true", TRIGGER: "NUM_COMMITS_AFTER_LAST_REQUEST", COMMITS: "3"}
    for value in range(7):
        opened(storage, clock, options).upsert(batch([Input(f"k{p}0", p, value, 10 + value) for p in PARTS]))
    # Due at once, and again after three more: what was planned stays planned, and its new logs wait.
    found = opened(storage, clock)
    assert [i.state for i in found.timeline if i.action is Action.COMPACTION] == [State.REQUESTED]


@pytest.mark.parametrize("option", ["hoodie.compact.inline", "hoodie.datasource.compaction.async.enable"])
def test_due_compactions_run_before_the_write_returns_or_beside_it(table, option):
    storage, clock = copy_of(table._context.storage)
    other = opened(storage, clock, {option: "true", COMMITS: "1"})
    other.upsert(batch([Input("ka0", "a", 9, 9)]))
    wait_for_background()
    assert other.timeline.compactions
    assert not other.pending_compactions()


def test_whether_it_is_due_is_known_without_a_look_at_the_storage(table):
    storage = FaultStorage(table._context.storage)
    watched = opened(storage)
    write = watched._request({"hoodie.compact.inline": "true"}).write
    watched._context.active.load()
    before = len(storage.trace)
    COMPACTION.is_due(watched._context, write)
    assert len(storage.trace) == before


# -- several -------------------------------------------------------------------------------------------------------------


def test_threads_share_the_plans_and_each_tells_what_it_did(tmp_path):
    storage = LocalStorage(tmp_path / "t")
    create(storage, table_type="MERGE_ON_READ")
    fill(storage, None)
    table = opened(storage, tuning=SMALL)
    before = snapshot_of(table)
    plans = [
        table.schedule_compaction(strategy=lambda found, p=p: [s for s in found if s.partition_path == p])
        for p in PARTS
    ]
    results, errors = [], []

    def work():
        try:
            results.append([r.instant for r in opened(LocalStorage(tmp_path / "t")).run_compaction()])
        except BaseException as error:  # noqa: BLE001 - the test tells
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert sorted(time for result in results for time in result) == plans
    assert snapshot_of(opened(storage)) == before
    assert not opened(storage).pending_compactions()


RUNNER = """
import os, signal, sys
from hoodie.storage.local import LocalStorage
from hoodie.storage.faults import Call, Fault, FaultStorage
from tests.memory_tables import opened

class Killing(FaultStorage):
    def _count(self, verb, path):
        call, fault = super()._count(verb, path)
        if fault is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return call, fault

opened(Killing(LocalStorage(sys.argv[1]), [Fault(int(sys.argv[2]))])).run_compaction()
"""


@pytest.mark.parametrize("at", long_but([], [4, 8, 13, 19]))
def test_others_take_over_the_plan_of_a_killed_compactor(tmp_path, at):
    storage = LocalStorage(tmp_path / "t")
    create(storage, table_type="MERGE_ON_READ")
    fill(storage, None)
    table = opened(storage)
    before = snapshot_of(table)
    for part in PARTS[:3]:
        table.schedule_compaction(strategy=lambda found, p=part: [s for s in found if s.partition_path == p])
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "t"), str(at)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert snapshot_of(opened(storage)) == before
    done = len(opened(storage).timeline.compactions) - len(opened(storage).pending_compactions())
    opened(storage).run_compaction()
    assert snapshot_of(opened(storage)) == before
    assert not opened(storage).pending_compactions()
    assert done <= 3
    assert len([i for i in opened(storage).timeline.commits if i.time in opened(storage).timeline.compactions]) == 3


def test_a_reader_that_was_slow_while_a_pending_compaction_was_run_and_archived_looks_again(monkeypatch):
    """The plan that its timeline names as pending is gone from the active timeline by then."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    writer, reader = opened(storage, clock), opened(storage, clock, cache=Cache())
    for turn in range(3):
        writer.upsert(batch([Input("a", "p", turn, turn), Input("b", "q", turn, turn)]))
    planned = writer.schedule_compaction()
    read, slept = ActiveTimeline.read_compaction_plan, []

    def slowly(active, instant_time, *args):
        if not slept and active is reader._context.active:
            slept.append(instant_time)
            writer.run_compaction()
            for turn in range(3, 9):
                writer.upsert(batch([Input("a", "p", turn, turn), Input("b", "q", turn, turn)]))
            writer.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2)
            assert planned not in [i.time for i in writer.timeline]
        return read(active, instant_time, *args)

    monkeypatch.setattr(ActiveTimeline, "read_compaction_plan", slowly)
    assert {row["val"] for row in reader.scan().to_arrow().to_pylist()} == {8}
    assert slept == [planned]
