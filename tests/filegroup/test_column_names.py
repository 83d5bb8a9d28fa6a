"""Columns of older files under their names of today."""

import pyarrow as pa
import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.filegroup.column_names import Renames, renames_for
from hoodie.model.columns import Column, ColumnHistory, ColumnSet

OLD = (
    Column(1, "a"),
    Column(2, "s", (Column(10, "x"), Column(11, "y"))),
    Column(3, "l", (Column(20, "element", (Column(21, "p"),)),)),
    Column(4, "m", (Column(30, "key"), Column(31, "value", (Column(32, "q"),)))),
)
NOW = (
    Column(4, "mm", (Column(30, "key"), Column(31, "value", (Column(32, "qq"),)))),
    Column(2, "s", (Column(12, "x"), Column(11, "yy"), Column(10, "z"))),
    Column(9, "a"),
    Column(3, "l", (Column(20, "element", (Column(21, "pp"),)),)),
)
DATA = pa.table(
    {
        "a": [1, 2, 3],
        "s": pa.array(
            [{"x": 1, "y": "u"}, None, {"x": None, "y": "w"}], pa.struct([("x", pa.int32()), ("y", pa.string())])
        ),
        "l": pa.array([[{"p": 1}, None], None, []], pa.list_(pa.struct([("p", pa.int32())]))),
        "m": pa.array([[("k", {"q": 1})], [], None], pa.map_(pa.string(), pa.struct([("q", pa.int32())]))),
    }
)
RENAMED = [
    {"mm": [("k", {"qq": 1})], "s": {"yy": "u", "z": 1}, "l": [{"pp": 1}, None]},
    {"mm": [], "s": None, "l": None},
    {"mm": None, "s": {"yy": "w", "z": None}, "l": []},
]


@pytest.mark.parametrize("start", range(4))
def test_names_follow_the_ids_at_any_depth(start):
    found = Renames(OLD, NOW).apply(DATA.slice(start))
    found.validate(full=True)
    assert found.to_pylist() == RENAMED[start:]


def test_batches_stay_batches_and_only_what_is_needed_is_read():
    batch = DATA.select(["s"]).to_batches()[0]
    found = Renames(OLD, NOW).apply(batch)
    assert isinstance(found, pa.RecordBatch)
    assert found.schema.names == ["s"]
    assert Renames(OLD, NOW).sources(["l", "a", "mm"]) == ["l", "m"]
    assert Renames(OLD, NOW).targets(["m", "a"]) == ["mm"]


def test_a_struct_of_which_nothing_is_left_is_null_and_a_file_of_which_nothing_is_left_keeps_its_rows():
    gone = (Column(2, "s", (Column(40, "n"),)),)
    assert Renames(OLD, gone).apply(DATA).to_pylist() == [{"s": None}] * 3
    assert Renames(OLD, (Column(50, "new"),)).apply(DATA.to_batches()[0]).num_rows == 3


def test_files_older_than_the_history_are_refused():
    newest = ColumnSet(20260101000000000, NOW, 50)
    history = ColumnHistory("the table", newest, (newest,), {})
    with pytest.raises(
        UnsupportedTableError,
        match="p/f of table the table was written at 20250101000000000, before the history of the table",
    ):
        renames_for(history, "20250101000000000", path="p/f")
