import threading
import time
from functools import partial

import pyarrow as pa
import pytest

from hoodie.engine import local
from hoodie.engine.local import LocalEngine
from tests.interrupts import threads_of_ours

SCHEMA = pa.schema([("n", pa.int64())])


def one_batch(task):
    yield pa.RecordBatch.from_pydict({"n": [task]}, schema=SCHEMA)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("tasks", range(9))
def test_read_gives_the_batches_of_every_task_in_order(threads, tasks):
    rows = LocalEngine(threads).read(one_batch, list(range(tasks)), SCHEMA).read_all()
    assert rows.column("n").to_pylist() == list(range(tasks))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_run_gives_the_result_of_every_task_in_order(threads):
    assert LocalEngine(threads).run(lambda task: task * 2, range(9), label="double") == [n * 2 for n in range(9)]


def test_an_error_of_a_task_reaches_the_reader():
    def fails(task):
        if task == 2:
            raise ValueError("task 2 failed")
        yield from one_batch(task)

    with pytest.raises(ValueError, match="task 2 failed"):
        LocalEngine(2).read(fails, list(range(5)), SCHEMA).read_all()


def test_short_tasks_are_left_to_the_calling_thread():
    assert set(LocalEngine(4, look_s=60.0).run(lambda _: threading.get_ident(), range(20), label="who")) == {
        threading.get_ident()
    }


@pytest.mark.parametrize(("threads", "tasks"), [(2, 2), (3, 3), (3, 7)])
def test_long_tasks_run_beside_each_other(threads, tasks):
    together = threading.Barrier(threads)
    left = tasks - tasks % threads

    def meets(task):
        return together.wait(timeout=30) >= 0 if task < left else True

    assert LocalEngine(threads).run(meets, range(tasks), label="meet") == [True] * tasks


def test_work_that_will_soon_be_done_is_left_to_the_calling_thread_and_other_work_is_not():
    def slow(task):
        time.sleep(0.02)
        return threading.get_ident()

    engine = partial(LocalEngine, 2, look_s=0.3)  # by then some tasks are done
    assert set(engine(alone_s=60.0).run(slow, range(25), label="few")) == {threading.get_ident()}
    assert len(set(engine(alone_s=0.0).run(slow, range(25), label="many"))) == 2


@pytest.mark.parametrize("look_s", [0.0, 60.0])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_no_task_begins_after_one_has_failed_and_the_first_error_is_raised(threads, look_s):
    begun, first, before = [], threading.Event(), threads_of_ours()

    def fails(task):
        begun.append(task)
        if task:
            first.wait(10)
        else:
            first.set()
        raise ValueError(f"task {task} failed")

    with pytest.raises(ValueError, match="task 0 failed"):
        LocalEngine(threads, look_s=look_s).run(fails, range(50), label="fail")
    assert len(begun) <= threads
    assert not threads_of_ours(before)


def test_of_tasks_that_fail_together_the_first_is_told():
    together = threading.Barrier(2)

    def fails(task):
        together.wait(10)
        raise ValueError(f"task {task} failed")

    with pytest.raises(ValueError, match="task 0 failed"):
        LocalEngine(2, look_s=0.0).run(fails, range(2), label="fail")


def test_what_interrupts_the_calling_thread_ends_the_others_first():
    caller, ended = threading.get_ident(), []
    began = threading.Barrier(2)

    def task(number):
        began.wait(10)
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        LocalEngine(2, look_s=0.0).run(task, range(2), label="interrupted")
    assert len(ended) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_helper_ends_though_an_interrupt_kept_its_caller_from_telling_it(fails):
    def work(number):
        if fails:
            raise ValueError(number)

    shared = local._TaskPool(work, range(3), look_s=0.01, alone_s=0.06)
    helper = threading.Thread(target=shared._help, args=(1,), name="hoodie", daemon=True)
    shared._work()
    helper.start()
    helper.join(20)
    assert not helper.is_alive()
