"""Long work says how far it is, short work says nothing. The clock is the test's."""

import logging
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.engine.progress import BAR, BAR_AFTER_S, EVERY_S, LOG, SETTING, Progress, draw_bar, in_notebook, shown_as


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


class Drawn:
    """A bar that nobody sees."""

    def __init__(self, *what):
        self.what, self.moved, self.closed = what, [], False

    def update(self, n=1):
        self.moved.append(n)

    def close(self):
        self.closed = True


def drawing(into):
    def draw(*what):
        into.append(Drawn(*what))
        return into[-1]

    return draw


def test_long_work_draws_a_bar_that_goes_when_it_has_ended(said):
    clock, bars = Clock(), []
    with Progress("upsert t", 10, way=BAR, draw=drawing(bars), clock=clock) as progress:
        for _ in range(9):
            clock.now += BAR_AFTER_S / 2
            progress.add()
        (bar,) = bars
        assert (bar.what, bar.moved, bar.closed) == (
            ("upsert t", 10, "tasks", BAR_AFTER_S),
            [2, 1, 1, 1, 1, 1, 1, 1],
            False,
        )
    assert bar.closed
    assert said() == []


def test_short_work_draws_none(said):
    clock, bars = Clock(), []
    with Progress("upsert t", 10, way=BAR, draw=drawing(bars), clock=clock) as progress:
        for _ in range(10):
            clock.now += BAR_AFTER_S / 11
            progress.add()
    assert (bars, said()) == ([], [])


def test_work_that_fails_takes_its_bar_away_and_late_counts_bring_none_back():
    clock, bars = Clock(), []

    def work():
        with Progress("upsert t", 10, way=BAR, draw=drawing(bars), clock=clock) as progress:
            clock.now += BAR_AFTER_S
            progress.add()
            late.append(progress)
            raise ValueError

    late = []
    with pytest.raises(ValueError):
        work()
    late[0].add()
    assert [bar.closed for bar in bars] == [True]


def test_where_no_bar_can_be_drawn_there_are_lines(said):
    clock = Clock()
    progress = Progress("stage", None, unit="rows", way=BAR, draw=lambda *_: None, clock=clock)
    for _ in range(2):
        clock.now += EVERY_S
        progress.add(100)
    assert said() == ["stage: 100 rows done after 5 s", "stage: 200 rows done after 10 s"]


def test_progress_can_be_turned_off(said, monkeypatch):
    clock, bars = Clock(), []
    monkeypatch.setenv(SETTING, "off")
    progress = Progress("upsert t", 10, draw=drawing(bars), clock=clock)
    clock.now += 100
    progress.add()
    assert (bars, said()) == ([], [])


class Stream:
    def __init__(self, terminal):
        self.terminal = terminal

    def isatty(self):
        return self.terminal


class Closed:
    def isatty(self):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize(
    ("stdin", "stderr", "shown"),
    [
        (Stream(True), Stream(True), BAR),
        (Stream(False), Stream(True), LOG),  # a worker of Spark, or a pipe
        (Stream(True), Stream(False), LOG),
        (None, None, LOG),
        (Closed(), Closed(), LOG),
    ],
)
def test_a_bar_wants_a_terminal_before_and_behind(monkeypatch, stdin, stderr, shown):
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stderr", stderr)
    assert shown_as() == shown
    monkeypatch.setenv(SETTING, "Bar")
    assert shown_as() == BAR


def test_a_notebook_has_bars(monkeypatch):
    kernel = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.delenv(SETTING, raising=False)
    assert shown_as() == BAR
    kernel.config.clear()  # IPython in a terminal
    assert not in_notebook()


def test_a_bar_of_tqdm_says_what_is_done(capsys):
    bar = draw_bar("upsert t", 4, "tasks", 2.0)
    bar.update(3)
    bar.close()
    assert "upsert t:" in capsys.readouterr().err


def test_a_long_input_says_how_many_rows_it_has_given(said):
    clock = Clock()

    def batches():
        for _ in range(3):
            clock.now += EVERY_S
            yield pa.record_batch({"a": [1, 2]})

    LocalEngine(1, clock=clock).stage(batches(), lambda _, found: list(found), label="upsert t: stage")
    assert said()[0] == "upsert t: stage: 2 rows done after 5 s"
