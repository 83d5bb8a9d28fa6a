"""Base file and logs of one slice, as batches."""

import secrets

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError, SchemaError
from hoodie.filegroup import slice_reader
from hoodie.filegroup.rewrite import read_for_rewrite
from hoodie.filegroup.slice_reader import keep_rows, merge_columns, open_base_file, read_base_file, read_task
from hoodie.model.enums import MergeMode
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import InstantRange, InstantTime, VisibleInstants
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, RECORD_KEY, with_meta_fields
from hoodie.model.names import PROPERTIES
from hoodie.model.plans import MergeRule, ReadContext, ReadTask, RowFilter
from hoodie.model.sought import SoughtKeys
from tests.log_blocks import COLUMNS, data, deletes, t
from tests.memory_tables import FakeClock, new_storage

EVENT = MergeRule(MergeMode.EVENT_TIME_ORDERING, ("ts",))
FULL = with_meta_fields(COLUMNS)
BASE = BaseFile("", "f", t(1), f"f_0-0-0_{t(1)}.parquet", 0)


def stored(*rows, schema=COLUMNS, row_group_size=None):
    """A storage with a base file; rows are (key, ts, val)."""
    full = with_meta_fields(schema)
    values = [
        {**dict.fromkeys(META_COLUMNS, ""), RECORD_KEY: row[0], COMMIT_TIME: t(1), **dict(zip(schema.names, row[1:]))}
        for row in rows
    ]
    storage = new_storage(FakeClock())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(values, schema=full), sink, row_group_size=row_group_size)
    storage.create_new(BASE.path, sink.getvalue().to_pybytes())
    return storage


def read(storage, *blocks, columns=(RECORD_KEY, "val"), where=None, span=None, base=BASE, rule=EVENT):
    logs = []
    for version, block in enumerate(blocks, 1):
        name = f".f_{t(1)}.log.{version}_0-0-0"
        storage.create_new(name, block)
        logs.append(LogFile("", "f", t(1), version, name, len(block), len(block)))
    visible = VisibleInstants(frozenset(map(t, range(1, 10))), frozenset(), t(1))
    file_slice = FileSlice(FileGroupId("", "f"), t(1), base, tuple(logs))
    context = ReadContext("/t", FULL, rule, visible, where)
    batches = list(read_task(storage, context, ReadTask(file_slice, columns, span)))
    assert all(tuple(batch.schema.names) == columns for batch in batches)
    return pa.Table.from_batches(batches, pa.schema([FULL.field(name) for name in columns]))


def rows(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_base_file_alone_is_read_with_the_columns_asked_for():
    storage = stored(("a", 1, "x"), ("b", 2, "y"))
    assert rows(read(storage)) == [("a", "x"), ("b", "y")]
    assert rows(read(storage, columns=("val",))) == [("x",), ("y",)]
    assert read(storage, columns=("ts", RECORD_KEY)).column_names == ["ts", RECORD_KEY]


def test_log_records_replace_delete_and_add_rows():
    storage = stored(("a", 5, "a1"), ("b", 5, "b1"), ("c", 5, "c1"), ("d", 5, "d1"))
    found = read(storage, data(2, ("a", 5, "a2"), ("b", 4, "late"), ("e", 1, "e2")), deletes(3, ("c", None), ("d", 4)))
    assert rows(found) == [("a", "a2"), ("b", "b1"), ("d", "d1"), ("e", "e2")]


def test_without_an_ordering_field_every_log_record_wins():
    storage = stored(("a", 5, "a1"), ("b", 5, "b1"))
    rule = MergeRule(MergeMode.COMMIT_TIME_ORDERING)
    assert rows(read(storage, data(2, ("a", 1, "a2")), deletes(3, ("b", 1)), rule=rule)) == [("a", "a2")]


def test_a_slice_of_logs_only():
    storage = new_storage(FakeClock())
    assert rows(read(storage, data(2, ("a", 1, "a2"), ("b", 1, "b2")), deletes(3, ("b", None)), base=None)) == [
        ("a", "a2")
    ]


def test_columns_that_only_merging_needs_are_not_given():
    found = read(stored(("a", 5, "a1")), data(2, ("a", 6, "a2")), columns=("val",))
    assert rows(found) == [("a2",)]
    assert merge_columns(pa.schema([("val", pa.string())]), EVENT, FULL).names == ["val", RECORD_KEY, "ts"]
    assert merge_columns(FULL, EVENT, FULL) == FULL


def test_a_filter_sees_merged_rows_only_and_its_column_is_not_given():
    where = RowFilter(pc.field("ts") == 5, ("ts",))
    assert rows(read(stored(("a", 5, "a1"), ("b", 5, "b1")), data(2, ("a", 6, "a2")), where=where)) == [("b", "b1")]
    assert rows(read(stored(("a", 5, "a1")), where=RowFilter(pc.field("ts") > 5, ("ts",)))) == []


@pytest.mark.parametrize("same", [None, "val"])
def test_rows_of_sought_keys_are_merged_as_in_a_whole_read(same):
    blocks = data(2, ("k3", 2, "new"), ("k60", 2, "fresh"), ("k61", 2, "k61")), deletes(3, ("k4", 5))
    sought = pa.array(["k3", "k4", "k5", "k60"])
    kept = {"expression": pc.field(RECORD_KEY).isin(sought), "columns": (RECORD_KEY,)}
    base = [(f"k{n}", 1, f"k{n}") for n in range(20)]
    found = read(
        stored(*base, row_group_size=7), *blocks, where=RowFilter(**kept, key_filter=SoughtKeys(sought, same=same))
    )
    assert rows(found) == [("k3", "new"), ("k5", "k5"), ("k60", "fresh")]
    assert rows(found) == rows(read(stored(*base), *blocks, where=RowFilter(**kept)))
    alone = read(stored(*base, row_group_size=7), where=RowFilter(**kept, key_filter=SoughtKeys(sought, same=same)))
    assert rows(alone) == [("k3", "k3"), ("k4", "k4"), ("k5", "k5")]


def test_keys_in_many_row_groups_are_each_met_once():
    storage = stored(*((f"k{n}", 1, "old") for n in range(50)), row_group_size=7)
    found = read(storage, data(2, *((f"k{n}", 2, "new") for n in range(0, 60, 2))))
    assert rows(found) == sorted(
        [(f"k{n}", "old") for n in range(1, 50, 2)] + [(f"k{n}", "new") for n in range(0, 60, 2)]
    )


@pytest.mark.parametrize(
    ("begin", "end", "kept"),
    [
        (None, None, [0, 1, 2, 3, 4]),
        ("20260101000001000", None, [1, 2, 3, 4]),
        (None, "20260101000001500", [0, 1]),
        ("20260101000001", None, [3, 4]),  # 14 digits are the whole second
        (None, "20260101000001", [0, 1, 2]),
        ("20260101000001500", "20260101000002", [2, 3, 4]),
    ],
)
def test_a_span_is_open_at_its_begin_closed_at_its_end_and_knows_14_digits(begin, end, kept):
    times = ["20260101000001000", "20260101000001500", "20260101000001", "20260101000002000", "20260101000002"]
    batch = pa.record_batch({COMMIT_TIME: times, "n": range(5)})
    span = InstantRange(begin and InstantTime(begin), end and InstantTime(end))
    assert keep_rows(batch, None, span).column("n").to_pylist() == kept
    assert [n for n in range(5) if span.contains(times[n])] == kept


def test_a_row_that_does_not_say_its_instant_is_not_passed_over():
    batch = pa.record_batch({COMMIT_TIME: ["20260101000001000", None], "n": range(2)})
    with pytest.raises(CorruptFileError, match="have no _hoodie_commit_time"):
        keep_rows(batch, None, InstantRange(InstantTime("20260101000000000"), None))


def test_in_a_span_stored_rows_of_other_instants_take_no_part_in_the_merge():
    log = data(2, ("a", 4, "late"))
    assert rows(read(stored(("a", 5, "a1"), ("b", 5, "b1")), log, span=InstantRange(t(1), None))) == [("a", "late")]
    assert rows(read(stored(("a", 5, "a1")), log, span=InstantRange(t(0), None))) == [("a", "a1")]
    assert rows(read(stored(("a", 3, "a1")), log, span=InstantRange(t(0), t(1)))) == []


def test_files_of_an_older_schema_get_nulls_and_wider_types():
    storage = stored(("a", 1), schema=pa.schema([("ts", pa.int32())]))
    assert rows(read(storage, columns=("ts", "val"))) == [(1, None)]
    assert rows(read(storage, columns=("val",))) == [(None,)]


def test_a_file_with_none_of_the_columns_gives_its_number_of_rows():
    storage = stored(*((str(n), 1) for n in range(10)), schema=pa.schema([("ts", pa.int32())]))
    batches = list(read_base_file(storage, BASE, pa.schema([("val", pa.string())]), batch_rows=4))
    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    assert batches[0].column("val").null_count == 4


@pytest.mark.parametrize("rewrite", [False, True])
def test_a_batch_has_no_more_bytes_than_is_bounded_however_many_rows_are_asked_for(monkeypatch, rewrite):
    storage = stored(*((f"k{n:03}", n, secrets.token_hex(500)) for n in range(200)))
    monkeypatch.setattr(slice_reader, "BATCH_BYTES", 40_000)

    def read_all():
        if not rewrite:
            return list(read_base_file(storage, BASE, FULL, batch_rows=1000))
        context = ReadContext("/t", FULL, EVENT, VisibleInstants(frozenset([t(1)]), frozenset(), t(1)))
        carried = list(read_for_rewrite(storage, context, FileSlice(FileGroupId("", "f"), t(1), BASE, ()), FULL))
        assert [each.before is not None for each in carried] == [True, *[False] * (len(carried) - 1)]
        return [each.rows for each in carried]

    batches = read_all()
    assert 5 <= len(batches) <= 10
    assert max(batch.nbytes for batch in batches) < 50_000
    assert sum(batch.num_rows for batch in batches) == 200
    narrow = read_base_file(storage, BASE, pa.schema([("ts", pa.int64())]), batch_rows=1000)
    assert [batch.num_rows for batch in narrow] == [200]
    monkeypatch.setattr(slice_reader, "MAPPED_BYTES", -1)  # the file counts as a large one
    assert len(read_all()) >= 10


def test_a_column_that_cannot_be_read_is_told_with_the_file():
    storage = stored(("a", "x"), schema=pa.schema([("ts", pa.string())]))
    with pytest.raises(SchemaError, match=f"column 'ts' of {BASE.path} of table memory://"):
        read(storage, columns=("ts",))


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "not a whole Parquet file"), (b"PAR1 x PAR1", "not a whole Parquet file"), (None, "is gone")],
)
def test_files_that_are_gone_or_torn_are_told_by_name(content, told):
    storage = new_storage(FakeClock())
    storage.create_new(PROPERTIES, b"")
    if content is not None:
        storage.create_new(BASE.path, content)
    with pytest.raises(CorruptFileError, match=rf"{BASE.path} of table memory://.*{told}"):
        open_base_file(storage, BASE).__enter__()


def test_damaged_pages_are_told_by_name():
    storage = stored(*((f"k{n}", n, "x" * n) for n in range(100)))
    content = bytearray(storage.read(BASE.path))
    content[4:400] = b"\xff" * 396
    storage.replace(BASE.path, bytes(content))
    with pytest.raises(CorruptFileError, match=f"{BASE.path} of table memory://.* does not decode"):
        list(read_base_file(storage, BASE, FULL))
