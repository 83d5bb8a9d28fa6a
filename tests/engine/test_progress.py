"""Long work says how far it is, short work says nothing. The clock is the test's."""

import logging

import pytest

from hoodie.engine.local import LocalEngine
from hoodie.engine.progress import EVERY_S, Progress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, logger="hoodie")
    return lambda: [record.getMessage() for record in caplog.records]


def test_work_that_ends_early_says_nothing(said):
    clock = Clock()
    progress = Progress("upsert t: write files", 3, clock=clock)
    for _ in range(3):
        clock.now += EVERY_S / 4
        progress.add()
    assert said() == []


def test_long_work_says_every_few_seconds_how_many_of_its_tasks_are_done(said):
    clock = Clock()
    progress = Progress("upsert t: write files", 100, clock=clock)
    for _ in range(100):
        clock.now += 1
        progress.add()
    assert said()[:2] == [
        "upsert t: write files: 5 of 100 tasks done after 5 s",
        "upsert t: write files: 10 of 100 tasks done after 10 s",
    ]
    assert len(said()) == 19  # not of the last task


def test_counts_from_outside_never_go_back_nor_past_the_total(said):
    clock = Clock()
    progress = Progress("read", clock=clock)
    for done in (4, 2, 9):
        clock.now += EVERY_S
        progress.at(done, of=10)
    progress.at(99, of=10)
    assert [line.split()[1] for line in said()] == ["4", "4", "9"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_embedded_engine_says_how_far_a_run_is(threads, said):
    clock = Clock()

    def slow(task):
        clock.now += EVERY_S
        return task

    assert LocalEngine(threads, clock=clock).run(slow, range(4), label="compact t") == [0, 1, 2, 3]
    assert said()
    assert all(line.startswith("compact t: ") and " of 4 tasks done after " in line for line in said())
