import pyarrow as pa
import pytest

from hoodie.engine.local import LocalEngine

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
