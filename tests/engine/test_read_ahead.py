"""Readers that are left half read leave no thread behind, and say so when they have failed."""

import gc
import os
import threading

import pyarrow as pa
import pytest

from hoodie.engine import read_ahead
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError

SCHEMA = pa.schema([("n", pa.int64())])


def batches(task):
    for n in range(5):
        yield pa.RecordBatch.from_pydict({"n": [10 * task + n]}, schema=SCHEMA)


def engine(threads):
    return LocalEngine(threads, ahead_bytes=1)  # each batch waits until it is taken


def none_is_left():
    for thread in threading.enumerate():
        if thread.name.startswith("hoodie"):
            thread.join(10)
    return not [thread.name for thread in threading.enumerate() if thread.name.startswith("hoodie")]


def reader(fn=batches, tasks=6):
    return engine(2).read(fn, list(range(tasks)), SCHEMA)


def test_a_reader_that_is_dropped_after_some_batches_ends_its_threads():
    begun = reader()
    assert begun.read_next_batch().column("n").to_pylist() == [0]
    assert not none_is_left_now()
    del begun
    gc.collect()
    assert none_is_left()


def none_is_left_now():
    return not [thread for thread in threading.enumerate() if thread.name.startswith("hoodie")]


def test_a_loop_that_is_left_by_an_error_ends_its_threads():
    def fails():
        for _ in reader():
            raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"):
        fails()
    gc.collect()
    assert none_is_left()


def test_an_error_of_a_task_ends_the_threads_and_is_not_taken_for_the_end():
    def fails(task):
        yield from batches(task)
        if task == 1:
            raise ValueError("task 1 failed")

    for threads in (1, 2):
        begun = engine(threads).read(fails, list(range(4)), SCHEMA)
        with pytest.raises(ValueError, match="task 1 failed"):
            begun.read_all()
        with pytest.raises(HoodieError, match=r"failed earlier .*task 1 failed.*scan again"):
            begun.read_next_batch()
        assert none_is_left()


def test_an_interrupt_reaches_the_consumer_as_itself(monkeypatch):
    for threads in (1, 2):
        begun = engine(threads).read(batches, list(range(4)), SCHEMA)
        begun.read_next_batch()

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(read_ahead, "next", interrupted, raising=False)
            with pytest.raises(KeyboardInterrupt):
                begun.read_all()
        with pytest.raises(HoodieError, match="KeyboardInterrupt"):
            begun.read_next_batch()
        del begun
        gc.collect()
        assert none_is_left()


@pytest.mark.parametrize("of_them", [0, 1])
def test_without_more_threads_the_rows_come_all_the_same(monkeypatch, of_them):
    start, started = threading.Thread.start, []

    def refuse(self):
        if len(started) >= of_them:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    rows = engine(3).read(batches, list(range(6)), SCHEMA).read_all()
    assert rows.column("n").to_pylist() == [10 * task + n for task in range(6) for n in range(5)]
    assert engine(3).run(lambda n: n, range(6), label="count") == list(range(6))
    assert none_is_left()


def test_a_forked_child_is_refused_instead_of_waiting_for_threads_that_it_does_not_have():
    begun = reader()
    begun.read_next_batch()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            begun.read_all()
        except HoodieError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert begun.read_all().num_rows == 29
