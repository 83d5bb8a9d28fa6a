"""Rows that move between partitions, beside other writers, and by every rule that makes one record of two."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.options.values import IndexType
from hoodie.table import open_at
from tests.engines import Meanwhile
from tests.kept_keys import index_options
from tests.memory_tables import Input, batch, keys, new_table, opened, snapshot_of

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
STEPS = pytest.mark.parametrize("step", ["look up", "write files", "update the index"])
WHOLE = {}
"""Options of the index that a test is about."""


@pytest.fixture(params=[IndexType.GLOBAL_BLOOM, IndexType.CUSTOM], autouse=True)
def index(request):
    if request.param is IndexType.GLOBAL_BLOOM and "update the index" in request.node.name:
        pytest.skip("there is no such step")
    WHOLE.clear()
    WHOLE.update(index_options(request.param))


def moving_table(kind, ordering="ts", **more):
    storage, clock = new_table(table_type=kind, ordering=ordering, more=WHOLE | more)
    opened(storage, clock).upsert(batch([Input(f"k{n}", "a", n, 5) for n in range(3)]))
    return storage, clock


def rows_of(storage):
    return [row[:3] for row in snapshot_of(opened(storage))]


OTHERS = {
    "moves it elsewhere": lambda table: table.upsert(batch([Input("k1", "d", 20, 6)])),
    "moves it to the same partition": lambda table: table.upsert(batch([Input("k1", "b/c", 20, 6)])),
    "updates it": lambda table: table.upsert(batch([Input("k1", "a", 20, 6)])),
    "deletes it": lambda table: table.delete(keys([Input("k1", "a")])),
    "clusters": lambda table: table.cluster(["val"]),
    "moves another": lambda table: table.upsert(batch([Input("k2", "b/c", 20, 6)])),
}


@KINDS
@STEPS
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event_time", "commit_time"])
def test_a_row_that_moves_is_there_once_whatever_another_writer_does_meanwhile(kind, step, other, ordering):
    storage, clock = moving_table(kind, ordering)
    table = open_at(storage, engine=Meanwhile(step, lambda: OTHERS[other](opened(storage, clock))), sleep=clock.sleep)
    table.upsert(batch([Input("k1", "b/c", 30, 7), Input("k9", "a", 9)]))
    k2 = ("k2", "b/c", 20) if other == "moves another" else ("k2", "a", 2)
    assert rows_of(storage) == [("k0", "a", 0), ("k1", "b/c", 30), k2, ("k9", "a", 9)]


@KINDS
@STEPS
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event_time", "commit_time"])
def test_a_delete_finds_a_row_that_another_writer_moves_meanwhile(kind, step, ordering):
    storage, clock = moving_table(kind, ordering)

    def act():
        opened(storage, clock).upsert(batch([Input("k1", "b/c", 20, 6)]))

    open_at(storage, engine=Meanwhile(step, act), sleep=clock.sleep).delete(keys([Input("k1", "a")]))
    assert rows_of(storage) == [("k0", "a", 0), ("k2", "a", 2)]


@KINDS
@pytest.mark.parametrize("step", ["look up", "write files"])
def test_an_update_finds_a_row_that_another_writer_moves_meanwhile(kind, step):
    storage, clock = moving_table(kind)

    def act():
        opened(storage, clock).upsert(batch([Input("k1", "b/c", 20, 8)]))

    open_at(storage, engine=Meanwhile(step, act), sleep=clock.sleep).upsert(batch([Input("k1", "a", 30, 7)]))
    assert rows_of(storage) == [("k0", "a", 0), ("k1", "b/c", 20), ("k2", "a", 2)]


@KINDS
@STEPS
def test_two_writers_that_insert_one_new_key_into_two_partitions_make_one_row(kind, step):
    storage, clock = moving_table(kind)

    def act():
        opened(storage, clock).upsert(batch([Input("k9", "b/c", 20, 6)]))

    open_at(storage, engine=Meanwhile(step, act), sleep=clock.sleep).upsert(batch([Input("k9", "a", 30, 7)]))
    assert [row for row in rows_of(storage) if row[0] == "k9"] == [("k9", "a", 30)]


FILLS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


@KINDS
@pytest.mark.parametrize("payload", [FILLS, PARTIAL])
@pytest.mark.parametrize("ts", [4, 6])
def test_a_moved_row_takes_values_of_the_stored_one_for_nulls(kind, payload, ts):
    storage, clock = moving_table(kind, **{"hoodie.datasource.write.payload.class": payload})
    opened(storage, clock).upsert(batch([Input("k1", "b/c", None, ts)]))
    moves = ts == 6 or payload is FILLS
    assert rows_of(storage) == [("k0", "a", 0), ("k1", "b/c" if moves else "a", 1), ("k2", "a", 2)]


@KINDS
def test_a_merger_decides_where_a_row_goes(kind, monkeypatch):
    def add(older, newer):
        at = newer.column_names.index("val")
        return newer.set_column(at, newer.schema.field(at), pa.compute.add(older.column("val"), newer.column("val")))

    hoodie.register_merger("add_of_moved_rows", add)
    storage, clock = moving_table(kind, **{"hoodie.python.merger": "add_of_moved_rows"})
    opened(storage, clock).upsert(batch([Input("k1", "b/c", 10), Input("k2", "a", 10)]))
    assert rows_of(storage) == [("k0", "a", 0), ("k1", "b/c", 11), ("k2", "a", 12)]


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("COPY_ON_WRITE", "hoodie.populate.meta.fields=false"),
        ("MERGE_ON_READ", "hoodie.populate.meta.fields=false"),
        ("COPY_ON_WRITE", "hoodie.datasource.write.drop.partition.columns=true"),
    ],
)
def test_rows_move_in_tables_whose_files_lack_something(kind, left_out):
    storage, clock = moving_table(kind, **dict([left_out.split("=")]))
    for n, part in enumerate(["b/c", "a", "b/c"]):
        opened(storage, clock).upsert(batch([Input("k1", part, n, 6 + n), Input("k0", part, 9, 1)]))
        assert rows_of(storage) == [("k0", "a", 0), ("k1", part, n), ("k2", "a", 2)]


@KINDS
@pytest.mark.parametrize("small", ["0", "104857600"])
def test_many_rows_move_at_once_from_several_file_groups(kind, small):
    more = {"hoodie.parquet.small.file.limit": small}
    storage, clock = new_table(table_type=kind, ordering="ts", more=WHOLE)
    table = opened(storage, clock, more)
    for n in range(4):
        table.upsert(batch([Input(f"k{10 * n + each}", "ab"[n % 2], 0, 1) for each in range(10)]))
    expected = {}
    for turn in range(2, 5):
        rows = [Input(f"k{n}", "abc"[(n + turn) % 3], turn, turn) for n in range(0, 40, turn)]
        table.upsert(batch(rows))
        expected |= {row.id: (row.part, turn) for row in rows}
    found = rows_of(storage)
    assert len(found) == 40
    assert {row[0]: row[1:] for row in found if row[2]} == expected
