"""Any history of writes, crashes and compactions gives the rows that a plain model gives, in every view and at every instant.

HOODIE_SOAK=1 runs many more and longer histories.
"""

import pytest

from hoodie.format.layout import V9
from hoodie.options.values import IndexType
from tests.effort import SOAK, long_but
from tests.moving_histories import ByIndexHistories, IndexedHistories, MovingHistories
from tests.random_histories import Histories, play


@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
def test_any_history_reads_as_the_model_says(kind, ordering, more):
    machine = type("Machine", (Histories,), {"table_type": kind, "ordering": ordering})
    examples, steps = (58, 30) if kind == "MERGE_ON_READ" else (20, 30)
    if not more:
        examples, steps = (5, 24) if kind == "MERGE_ON_READ" else (2, 16)
    elif SOAK:
        examples, steps = 200, 60
    play(machine, examples, steps)


NO_META = {"hoodie.populate.meta.fields": "false"}
DROP = {"hoodie.datasource.write.drop.partition.columns": "true"}


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("COPY_ON_WRITE", NO_META),
        ("MERGE_ON_READ", NO_META),
        ("COPY_ON_WRITE", DROP),
        ("COPY_ON_WRITE", NO_META | DROP),
    ],
    ids=["no meta, cow", "no meta, mor", "no columns", "neither"],
)
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
def test_any_history_of_a_table_whose_files_lack_something(kind, left_out, more):
    machine = type("Machine", (Histories,), {"table_type": kind, "ordering": "ts", "left_out": left_out})
    play(machine, *((20, 30) if more else (2, 16)))


@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
def test_any_history_with_rows_that_move_reads_as_the_model_says(kind, ordering, more):
    machine = type("Machine", (MovingHistories,), {"table_type": kind, "ordering": ordering})
    many = 40 if (kind, ordering) == ("MERGE_ON_READ", "ts") else 20
    play(machine, *((many, 30) if more else (3, 16)))


@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
@pytest.mark.parametrize("histories", long_but([Histories], [Histories, MovingHistories]))
def test_any_history_of_a_table_of_version_9_reads_as_the_model_says(kind, ordering, more, histories):
    machine = type("Machine", (histories,), {"table_type": kind, "ordering": ordering, "version": V9})
    play(machine, *((20, 30) if more else (3, 20)))


@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
@pytest.mark.parametrize("histories", [IndexedHistories, ByIndexHistories], ids=["whole", "partitions"])
def test_any_history_by_a_record_index_reads_as_the_model_says(kind, ordering, more, histories):
    machine = type("Machine", (histories,), {"table_type": kind, "ordering": ordering})
    play(machine, *((20, 30) if more else (2, 12)))


@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
def test_any_history_with_an_index_outside_of_the_table_reads_as_the_model_says(ordering, more):
    kind = {"table_type": "COPY_ON_WRITE", "ordering": ordering, "index": IndexType.CUSTOM}
    play(type("Machine", (MovingHistories,), kind), *((20, 30) if more else (2, 16)))
