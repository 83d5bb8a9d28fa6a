"""Timestamps of tables that Apache Hudi made: both read the same moments, before hoodie wrote and after."""

import pytest

import hoodie
from tests.mislabelled import mislabelled_table, rows
from tests.rows import rows_of


def same_rows(hudi, path):
    ours = rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow())
    assert hudi.read(path).rows == ours


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_milliseconds_that_were_called_microseconds(hudi, tmp_path, table_type):
    path = tmp_path / "t"
    # Apache Hudi 1.2.0 fails on nested ones where its bundle is not in the class path of the JVM (IllegalAccessError).
    mislabelled_table(path, table_type, nested=False)
    same_rows(hudi, path)
    hoodie.open_table(path).upsert(rows(range(2, 5), 2, "a", nested=False))
    same_rows(hudi, path)
    if table_type == "merge_on_read":
        hoodie.open_table(path).compact()
        same_rows(hudi, path)
