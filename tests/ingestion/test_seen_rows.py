"""Rows that were given before are told apart from those that were not, whatever their types are."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.ingestion import database_rows
from hoodie.ingestion.database_rows import note_rows, row_hashes, without_noted

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "tags": [["a", "b"], ["b", "a"], None],
        "s": [{"x": 1, "y": [2]}, {"x": 1, "y": [3]}, {"x": None, "y": []}],
        "at": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        "raw": [b"a", b"", None],
        "n": pa.array([1.5, None, 0.0]),
    }
)


@pytest.mark.parametrize("most", [4096, 2])
def test_noted_rows_are_left_out_and_changed_ones_are_given(monkeypatch, most):
    monkeypatch.setattr(database_rows, "_MOST", most)
    noted = note_rows(ROWS)
    assert without_noted(ROWS, noted).rows.num_rows == 0
    for name, value in (("tags", ["b", "b"]), ("s", {"x": 1, "y": [4]}), ("raw", b"c"), ("n", 2.5)):
        changed = [*ROWS.column(name).to_pylist()[:1], value, *ROWS.column(name).to_pylist()[2:]]
        rows = ROWS.set_column(
            ROWS.schema.get_field_index(name), ROWS.field(name), pa.array(changed, ROWS.field(name).type)
        )
        found = without_noted(rows, noted)
        assert found.rows.column("id").to_pylist() == ([2] if most > 2 else [1, 2, 3]), name
        assert found.repeats == (most == 2)


def test_the_order_of_columns_and_a_new_column_of_nulls_change_no_hash():
    hashes = row_hashes(ROWS)
    assert len(np.unique(hashes)) == 3
    turned = ROWS.select(ROWS.column_names[::-1]).append_column("new", pa.nulls(3, pa.list_(pa.int8())))
    assert (row_hashes(turned) == hashes).all()
    assert (row_hashes(ROWS.rename_columns(["id", "tags", "s", "at", "raw", "m"])) != hashes)[[0, 2]].all()
    assert (row_hashes(ROWS.slice(1)) == hashes[1:]).all()
