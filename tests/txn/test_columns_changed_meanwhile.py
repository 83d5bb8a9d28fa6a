"""Two writers at once, one of which changes the table's columns: no column and no wider type gets lost."""

import pyarrow as pa
import pytest

from hoodie.errors import SchemaError
from hoodie.model.enums import Action, State, TableType
from hoodie.model.instant import Instant
from hoodie.options.table_options import TableOptions
from hoodie.storage.faults import FaultStorage
from hoodie.txn.conflict import find_schema_conflict
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage
from tests.memory_tables import opened as opened_with

INT = pa.int32()
FIRST = pa.table({"id": ["a", "b"], "part": ["x", "y"], "val": pa.array([1, 2], INT)})
OTHERS = pa.table({"id": ["a"], "part": ["x"], "val": pa.array([10], INT)})
BIG = 2**40


class Interrupted(FaultStorage):
    """Runs `meanwhile` once, when the first data file is about to get its final name."""

    def __init__(self, inner, meanwhile):
        super().__init__(inner)
        self.meanwhile = meanwhile

    def move_new(self, source, target):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().move_new(source, target)


@pytest.fixture(params=list(TableType))
def storage(request):
    clock = FakeClock()
    made = new_storage(clock)
    made.clock = clock
    asked = TableOptions(name="t", table_type=request.param, record_key_fields=("id",), partition_fields=("part",))
    create_at(made, asked)
    opened(made).upsert(FIRST)
    return made


def opened(storage, over=None):
    return opened_with(over or storage, storage.clock)


def rows(storage):
    return sorted(opened(storage).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def upsert_with_another_in_between(storage, mine, others):
    meanwhile = Interrupted(storage, lambda: opened(storage).upsert(others))
    opened(storage, meanwhile).upsert(mine)
    assert meanwhile.meanwhile is None


def test_a_column_added_by_the_smaller_instant_stays_when_it_is_published_last(storage):
    mine = pa.table({"id": ["b"], "part": ["y"], "val": [20], "new": ["hello"]})
    upsert_with_another_in_between(storage, mine, OTHERS)
    assert [row["new"] for row in rows(storage)] == [None, "hello"]


def test_a_column_added_by_the_greater_instant_stays_too(storage):
    mine = pa.table({"id": ["b"], "part": ["y"], "val": [20]})
    upsert_with_another_in_between(storage, mine, OTHERS.append_column("new", pa.array(["hello"])))
    assert [(row["val"], row["new"]) for row in rows(storage)] == [(10, "hello"), (20, None)]


def test_a_column_widened_by_the_smaller_instant_is_read_as_such(storage):
    mine = pa.table({"id": ["b"], "part": ["y"], "val": [BIG]})
    upsert_with_another_in_between(storage, mine, OTHERS)
    assert [row["val"] for row in rows(storage)] == [10, BIG]


def test_two_writers_that_add_different_columns_add_both(storage):
    mine = pa.table({"id": ["b"], "part": ["y"], "val": [20], "mine": [1]})
    upsert_with_another_in_between(storage, mine, OTHERS.append_column("theirs", pa.array([2])))
    assert [(row["mine"], row["theirs"]) for row in rows(storage)] == [(None, 2), (1, None)]


def while_read(storage, data, others):
    """A reader during whose reading another writer commits."""

    def batches():
        opened(storage).upsert(others)
        yield from data.to_batches()

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def test_columns_that_change_while_the_batch_is_read_are_kept(storage):
    mine = FIRST.slice(1)
    others = pa.table({"id": ["a"], "part": ["x"], "val": [BIG], "new": ["hello"]})
    opened(storage).upsert(while_read(storage, mine, others))
    assert [(row["val"], row["new"]) for row in rows(storage)] == [(BIG, "hello"), (2, None)]


def test_a_delete_during_which_a_column_is_added_keeps_it(storage):
    others = OTHERS.append_column("new", pa.array(["hello"]))
    opened(storage).delete(while_read(storage, FIRST.slice(1).select(["id", "part"]), others))
    assert rows(storage) == [{"id": "a", "part": "x", "val": 10, "new": "hello"}]


def test_a_batch_that_does_not_fit_any_more_is_refused(storage):
    mine = pa.table({"id": ["b"], "part": ["y"], "val": [20], "new": [1]})
    others = OTHERS.append_column("new", pa.array(["hello"]))
    with pytest.raises(SchemaError, match="MISMATCH  new  table string, batch int64"):
        opened(storage).upsert(while_read(storage, mine, others))
    assert [row["new"] for row in rows(storage)] == ["hello", None]


OLD, WIDE = pa.schema([("v", pa.int32())]), pa.schema([("v", pa.int64())])


@pytest.mark.parametrize(
    ("theirs_at", "ours", "theirs", "lost"),
    [
        (4, OLD, OLD, False),
        (6, OLD, WIDE, False),
        (4, OLD, WIDE, True),
        (6, WIDE, OLD, True),
        (4, WIDE, OLD, False),
        (6, WIDE, WIDE, False),
        (4, WIDE, None, False),
    ],
)
def test_columns_conflict_where_the_greater_instant_lacks_a_change(theirs_at, ours, theirs, lost):
    other = Instant(f"2026010100000000{theirs_at}", Action.COMMIT, State.COMPLETED)
    reason = find_schema_conflict("20260101000000005", before=OLD, ours=ours, others=[(other, theirs)])
    assert (reason is not None) is lost
