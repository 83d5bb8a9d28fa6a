"""Rows of a batch with their keys and paths, in the table's types, cut into chunks."""

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import KeyFieldError, SchemaError
from hoodie.filegroup.chunks import load_chunk
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.write.prepare import prepare_rows, require_columns, run_prepare
from tests.memory_tables import FakeClock, new_storage
from tests.write.preparing import SCHEMA, preparation, rows


def test_rows_get_key_and_path_in_front_and_no_deletes_without_need():
    found = prepare_rows(rows(("a", "p", 1), ("b", "q", None)), preparation())
    assert found.to_pydict() == {
        RECORD_KEY: ["a", "b"],
        PARTITION_PATH: ["p", "q"],
        "id": ["a", "b"],
        "part": ["p", "q"],
        "v": [1, None],
    }
    assert all(field.nullable for field in found.schema)


@pytest.mark.parametrize(
    ("given", "kind", "key"),
    [
        (pa.array([7], pa.int32()), pa.int64(), "7"),
        (pa.array([7], pa.int32()), pa.float64(), "7.0"),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), pa.decimal128(5, 1), "1.5"),
        (pa.array([0.1], pa.float32()), pa.float64(), "0.1"),
        (pa.array(["x"]).dictionary_encode(), pa.string(), "x"),
    ],
)
def test_keys_are_made_of_the_table_s_types_not_of_the_batch_s(given, kind, key):
    schema = pa.schema([("id", kind), ("part", pa.string())])
    found = prepare_rows(pa.table({"id": given, "part": ["p"]}), preparation(schema))
    assert found[RECORD_KEY].to_pylist() == [key]
    assert found.schema.field("id").type == kind


def test_a_dictionary_of_a_few_long_texts_is_cut_by_what_it_stands_for():
    texts = pa.DictionaryArray.from_arrays(
        pa.array([n % 3 for n in range(300)], pa.int32()), pa.array(["x" * 10_000] * 3)
    )
    schema = SCHEMA.append(pa.field("text", pa.string()))
    given = pa.table({"id": [str(n) for n in range(300)], "part": ["p"] * 300, "v": range(300), "text": texts})
    wanted = replace(preparation(schema), chunk_bytes=1_000_000)
    chunks = list(run_prepare(wanted, None, None, given.to_batches()))
    assert max(chunk.size_bytes for chunk in chunks) < 2_100_000
    assert pa.concat_tables([chunk.table for chunk in chunks])["id"].to_pylist() == given["id"].to_pylist()


def test_columns_are_those_of_the_table_whatever_the_batch_has():
    found = prepare_rows(pa.table({"z": [1], "part": ["p"], "id": ["a"]}), preparation())
    assert found.column_names == [RECORD_KEY, PARTITION_PATH, "id", "part", "v"]
    assert found["v"].to_pylist() == [None]


def test_a_column_that_must_not_be_null_is_told_with_its_number_of_nulls():
    schema = SCHEMA.append(pa.field("must", pa.int64(), False))
    good = rows(("a", "p", 1, 1), names=("id", "part", "v", "must"))
    assert prepare_rows(good, preparation(schema)).num_rows == 1
    with pytest.raises(SchemaError, match="column 'must' of table 't' is not nullable, and 2 of 3 rows"):
        prepare_rows(
            pa.table({"id": ["a", "b", "c"], "part": ["p"] * 3, "v": [1, 1, 1], "must": pa.array([1, None, None])}),
            preparation(schema),
        )
    assert prepare_rows(rows(("a", "p"), names=("id", "part")), preparation(schema, delete=True)).num_rows == 1


def test_rows_without_a_key_are_refused():
    with pytest.raises(KeyFieldError):
        prepare_rows(
            rows(("a", "p", 1), (None, "p", 1)),
            preparation(pa.schema([*SCHEMA][1:]).insert(0, pa.field("id", pa.string()))),
        )


def test_values_that_do_not_fit_are_told_with_the_column():
    with pytest.raises(SchemaError, match="column 'v' of the batch for table 't' is string"):
        prepare_rows(pa.table({"id": ["a"], "part": ["p"], "v": ["x"]}), preparation())


def test_rows_marked_as_deleted_are_marked_for_the_write():
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    batch = rows(("a", "p", 1, True), ("b", "p", 2, False), ("c", "p", 3, None), names=schema.names)
    found = prepare_rows(batch, preparation(schema))
    assert found[DELETED].to_pylist() == [True, False, False]
    assert found["_hoodie_is_deleted"].to_pylist() == [True, False, None]
    assert found["v"].to_pylist() == [1, 2, 3]
    without = prepare_rows(batch.select(["id", "part", "v"]), preparation(schema))
    assert without[DELETED].to_pylist() == [False] * 3


def test_the_delete_operation_deletes_every_row_and_takes_its_ordering_value_away():
    found = prepare_rows(rows(("a", "p", 1), ("b", "q", 2)), preparation(delete=True, ordering=("v",)))
    assert found[DELETED].to_pylist() == [True, True]
    assert found["v"].to_pylist() == [None, None]
    assert found["part"].to_pylist() == ["p", "q"]
    assert prepare_rows(rows(("a", "p", 1)), preparation(delete=True))["v"].to_pylist() == [None]
    assert prepare_rows(rows(("a", "p", 1)), preparation(ordering=("v",)))["v"].to_pylist() == [1]


def chunks(batches, *, storage=None, **more):
    return list(run_prepare(replace(preparation(), **more), storage, "rows" if storage else None, batches))


def test_deletes_beside_the_columns_take_their_ordering_values_away_and_may_lack_any_column():
    schema = pa.schema(
        [pa.field("id", pa.string()), pa.field("part", pa.string()), pa.field("v", pa.int64(), nullable=False)]
    )
    wanted = replace(preparation(schema), ordering_columns=("v",))
    given = rows(("a", "p", 1), ("b", "q", 2)).append_column(DELETED, pa.array([True, False]))
    found = prepare_rows(given, wanted)
    assert found["v"].to_pylist() == [None, 2]
    assert found[DELETED].to_pylist() == [True, False]
    lacking = rows(("a", "p", None), ("b", "q", 2)).append_column(DELETED, pa.array([True, False]))
    assert prepare_rows(lacking, wanted)["v"].to_pylist() == [None, 2]
    with pytest.raises(SchemaError, match="1 of 2 rows"):
        prepare_rows(rows(("a", "p", 1), ("b", "q", None)).append_column(DELETED, pa.array([True, False])), wanted)


def test_a_batch_is_cut_into_chunks_at_their_size():
    batches = rows(*((str(n), "p", n) for n in range(40))).to_batches(max_chunksize=4)
    found = chunks(batches, chunk_bytes=batches[0].nbytes * 3 - 1)
    assert [chunk.rows for chunk in found] == [12, 12, 12, 4]
    storage = new_storage(FakeClock())
    assert [load_chunk(storage, chunk)["v"].to_pylist() for chunk in found] == [
        list(range(start, min(start + 12, 40))) for start in (0, 12, 24, 36)
    ]


def test_a_small_batch_is_one_chunk_and_nothing_is_none():
    batches = rows(*((str(n), "p", n) for n in range(9))).to_batches(max_chunksize=2)
    assert [chunk.rows for chunk in chunks(batches)] == [9]
    empty = SCHEMA.empty_table().to_batches()
    assert chunks([]) == chunks([*empty, pa.RecordBatch.from_pylist([], SCHEMA)]) == []
    assert [chunk.rows for chunk in chunks([pa.RecordBatch.from_pylist([], SCHEMA), *batches])] == [9]


def test_chunks_are_staged_where_a_folder_is_given():
    storage = new_storage(FakeClock())
    storage.mkdirs("rows", durable=False)
    (chunk,) = chunks(rows(("a", "q", 1), ("b", "p", 2), ("c", "q", 3)).to_batches(), storage=storage)
    assert chunk.path.startswith("rows/")
    assert load_chunk(storage, chunk)["v"].to_pylist() == [1, 3, 2]


def test_a_missing_column_is_told_with_the_columns_and_the_nearest():
    require_columns(["a", "b"], ["b", "a.x"], what="ordering", table="t")
    with pytest.raises(KeyFieldError) as told:
        require_columns(["uuid", "fare"], ["uid"], what="record key", table="t")
    assert str(told.value).splitlines()[:2] == [
        "record key column 'uid' is not in the data for table 't'; did you mean 'uuid'?",
        "  columns: uuid, fare",
    ]
    for wanted in ("uuid", "uuid.x"):
        with pytest.raises(KeyFieldError) as told:
            require_columns(["UUID", "fare"], [wanted], what="record key", table="t")
        assert str(told.value).splitlines() == [
            f"record key column {wanted!r} is not in the data for table 't'",
            "  CASE      UUID  the table has it as 'uuid'",
            "  columns: UUID, fare",
            "  fix:     write both alike: case matters in names of columns",
        ]
