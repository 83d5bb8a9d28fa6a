"""What goes in as rows, and what does not, in one sentence."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.errors import OptionError, SchemaError
from hoodie.write.inputs import reader_of
from tests.effort import long_but

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})
FRAME = ROWS.to_pandas()


class Stream:
    """As a library of Arrow data has it that nobody here knows."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.to_reader().__arrow_c_stream__(requested_schema)


class Batch:
    def __arrow_c_array__(self, requested_schema=None):
        return ROWS.to_batches()[0].__arrow_c_array__(requested_schema)


def runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), values)


def generator(*pieces):
    yield from pieces


def dataset(folder):
    ds.write_dataset(ROWS, folder, format="parquet")
    return ds.dataset(folder, format="parquet")


WRITES = ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
FORMS = {
    "table": lambda _: ROWS,
    "batch": lambda _: ROWS.to_batches()[0],
    "reader": lambda _: ROWS.to_reader(),
    "stream": lambda _: Stream(),
    "array": lambda _: Batch(),
    "dataset": dataset,
    "scanner": lambda folder: dataset(folder).scanner(columns=["id", "n"]),
    "pandas": lambda _: FRAME,
    "list of batches": lambda _: ROWS.to_batches(max_chunksize=1),
    "list of one table": lambda _: [ROWS],
    "generator of batches": lambda _: generator(*ROWS.to_batches(max_chunksize=1)),
    "generator with empty ones": lambda _: generator(
        ROWS.slice(0, 0), ROWS.slice(0, 1), ROWS.slice(0, 0), ROWS.slice(1)
    ),
    "generator of frames": lambda _: generator(FRAME[:1], FRAME[1:]),
    "tuple of different pieces": lambda _: (ROWS.slice(0, 0), Stream(), FRAME[:0]),
    "views": lambda _: pa.table({"id": ROWS["id"].cast(pa.string_view()), "n": ROWS["n"]}),
    "runs": lambda _: pa.table({"id": runs(pa.array(["a", "b"]).cast(pa.string_view())), "n": runs(pa.array([1, 2]))}),
    "dict of lists": lambda _: {"id": ["a", "b"], "n": [1, 2]},
    "dict of arrays": lambda _: {"id": np.array(["a", "b"], dtype=object), "n": range(1, 3)},
    "dict of series": lambda _: dict(FRAME.items()),
    "list of dicts": lambda _: [{"id": "a", "n": 1}, {"id": "b", "n": 2}],
    "generator of dicts": lambda _: ({"id": key, "n": n} for n, key in enumerate("ab", 1)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_rows(form, tmp_path):
    reader = reader_of(FORMS[form](tmp_path / "data"))
    assert reader.schema.names == ["id", "n"]
    assert reader.read_all().to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("write", long_but(["upsert", "bulk_insert"], WRITES))
@pytest.mark.parametrize("form", FORMS)
def test_every_write_takes_them(form, write, tmp_path):
    table = hoodie.create_table(tmp_path / "t", ROWS.schema, record_key="id")
    getattr(table, write)(FORMS[form](tmp_path / "data"))
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [row["id"] for row in ROWS.to_pylist()]
    table.delete(FORMS[form](tmp_path / "keys"))
    assert table.scan().count() == 0


def test_polars_frames_lazy_ones_and_pieces_of_them(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(ROWS.to_pydict())
    for data in (frame, frame.lazy(), [frame, frame.lazy()], (piece for piece in frame.iter_slices(1))):
        assert reader_of(data).read_all().slice(0, 2).to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("name", ["Categorical", "Enum"])
def test_polars_categories_at_any_depth(name, tmp_path):
    pl = pytest.importorskip("polars")
    kind = pl.Categorical() if name == "Categorical" else pl.Enum(["x", "y"])
    frame = pl.DataFrame(
        {
            "id": ["a", "b"],
            "c": pl.Series(["x", None], dtype=kind),
            "l": pl.Series([["x", "y"], None], dtype=pl.List(kind)),
            "s": pl.Series([{"c": "y"}, {"c": None}], dtype=pl.Struct({"c": kind})),
        }
    )
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="c", table_type="MERGE_ON_READ")
    for data in (frame, frame.slice(1), frame.slice(0, 0)):
        table.upsert(data)
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == frame.to_dicts()
    assert table.delete(frame.select("id", "c")).deleted == 2


def test_duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    assert reader_of(duckdb.sql("select 'a' id, 1 n")).read_all().to_pylist() == [{"id": "a", "n": 1}]


def test_a_generator_is_drawn_piece_by_piece():
    drawn = []

    def pieces():
        for batch in ROWS.to_batches(max_chunksize=1):
            drawn.append(batch)
            yield batch

    reader = reader_of(pieces())
    assert len(drawn) == 1
    reader.read_next_batch()
    assert len(drawn) == 1


def test_what_a_generator_raises_is_what_the_write_raises(tmp_path):
    def pieces():
        yield ROWS
        raise KeyError("my own")

    table = hoodie.create_table(tmp_path / "t", record_key="id")
    with pytest.raises(KeyError, match="my own"):
        table.upsert(pieces())
    assert table.scan().count() == 0


def test_pieces_take_the_order_and_the_types_of_the_first():
    later = pa.table({"n": pa.array([3], pa.int32()), "id": ["c"]})
    assert reader_of([ROWS, later]).read_all().to_pylist()[2] == {"id": "c", "n": 3}
    with pytest.raises(SchemaError, match=r"piece 2 of the data does not have the types of the first one in n: .*1.5"):
        reader_of([ROWS, ROWS.set_column(1, "n", pa.array([1.5, 2]))]).read_all()
    with pytest.raises(SchemaError, match=r"piece 3 of the data has other columns than the first one: extra; give all"):
        reader_of([ROWS, ROWS, ROWS.append_column("extra", ROWS["n"])]).read_all()
    with pytest.raises(SchemaError, match=r"cannot take rows from a builtins\.int"):
        reader_of([ROWS, 5]).read_all()


@pytest.mark.parametrize("nothing", [[], {}, (), iter([])])
def test_no_piece_at_all_is_no_row_of_the_table(nothing, tmp_path):
    with pytest.raises(SchemaError, match="neither rows nor columns, and the table has no columns yet"):
        hoodie.create_table(tmp_path / "new", record_key="id").upsert(nothing)


def test_an_empty_input_changes_nothing_and_an_overwrite_with_it_empties(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(ROWS)
    assert table.upsert([]).instant is None
    assert table.delete(iter([])).instant is None
    assert table.scan().count() == 2
    table.insert_overwrite_table([])
    assert table.scan().count() == 0


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"id": "a", "s": "new", "n": 1}, {"id": "b", "n": 9}], "row 1 .* has no 's', which the first row has:"),
        ([{"id": "a", "s": "new"}, {"id": "b", "s": "x", "n": 9}], "row 1 .* has 'n', which the first row has not:"),
        ([{"id": "a", "s": "p"}, {"id": "b", "n": 10}], "row 1 .* has no 's', which the first row has:"),
    ],
)
def test_dicts_of_different_keys_are_refused_before_a_stored_value_becomes_null(rows, told, partial, tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    stored = [{"id": "a", "s": "x", "n": 1}, {"id": "b", "s": "y", "n": 2}]
    table.upsert(stored)
    for data in (rows, iter(rows)):
        with pytest.raises(SchemaError, match=f"{told} give every dict the same keys, None for null"):
            table.upsert(data, partial=partial)
    table.upsert([{"n": 1, "s": None, "id": "a"}, {"id": "b", "s": "y", "n": 2}])
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        stored[0] | {"s": None},
        stored[1],
    ]


def test_pieces_of_different_columns_are_refused():
    for first, second in ((["id"], ["id", "n"]), (["id", "n"], ["id"])):
        pieces = [pa.table({name: [1] for name in names}) for names in (first, second)]
        with pytest.raises(SchemaError, match="piece 2 of the data has other columns than the first one: n"):
            reader_of(pieces).read_all()


def test_numbers_of_python_take_the_tables_narrower_types(tmp_path):
    schema = pa.schema(
        [("id", pa.string()), ("i", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(10, 2)), ("l", pa.int64())]
    )
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id")
    row = {"id": "a", "i": 1, "f": 0.5, "d": Decimal("1.5"), "l": 2**60}
    table.upsert([row])
    table.upsert({name: [value] for name, value in (row | {"id": "b"}).items()})
    assert table.schema.types == schema.types
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda found: found["id"]) == [row, row | {"id": "b"}]
    table.upsert([row | {"i": 2**40}])
    assert table.schema.field("i").type == pa.int64()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "cannot take rows from a builtins.NoneType: give an Arrow table"),
        (5, "cannot take rows from a builtins.int"),
        ("rows.parquet", "cannot take rows from a builtins.str"),
        (b"x", "cannot take rows from a builtins.bytes"),
        (["k1", "k2"], "the items of the list are of type str, which are not rows"),
        ([("a", 1)], "the items of the list are of type tuple"),
        (np.arange(3), "cannot take rows from a numpy.ndarray"),
        (FRAME["n"], "cannot take rows from a pandas.* non-struct type|cannot take rows from a pandas.*Series"),
        (ROWS["n"], "cannot take rows from a pyarrow.lib.ChunkedArray: .*non-struct"),
        ({"id": "ab"}, "column 'id' is 'ab': give a list of values for each column, or a list of dicts"),
        ({"id": "a", "n": 1}, "column 'id' is 'a'"),
        ({"id": ["a"], "n": [1, 2]}, "the columns do not make rows: .*length 1 but got length 2"),
        ({1: ["a"]}, "the column name 1 is a int: give texts"),
        ({"id": [1, "a"]}, "the values of column 'id' have no common type"),
        ([{"id": "a"}, 5], "row 1 is a int, while the first is a dict"),
        ([{}], "the rows have no columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' stands twice in the pandas frame"),
        (pd.DataFrame({"a": [1, "x"]}), "the values of column 'a' have no common type: 1 .int. and 'x' .str."),
    ],
)  # fmt: skip
def test_what_is_no_rows_is_told_in_one_sentence(data, told, tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert([{"id": "k1", "n": 1}])
    if isinstance(data, list) and isinstance(data[0], str):
        assert table.delete(data).deleted == 1  # to delete, texts are keys
        return
    kind = OptionError if data is None else SchemaError
    for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite, table.insert_overwrite_table):
        with pytest.raises(SchemaError, match=told) as caught:
            write(data)
        assert "\n" not in str(caught.value)
    with pytest.raises(kind):
        table.delete(data)
