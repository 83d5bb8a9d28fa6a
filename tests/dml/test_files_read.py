"""Which files a statement reads: rows of those that bounds leave out cannot be read here."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import HoodieError

LARGE = {"hoodie.parquet.small.file.limit": "0"}


def rows_of(part, first, n=0):
    return [{"id": first + at, "p": part, "n": n} for at in range(5)]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    """Files of keys from 0, 10 and 20, whose columns are damaged in all but the first; footers are whole."""
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", partition_by="p", table_type=request.param)
    for part, first in (("a", 0), ("a", 10), ("b", 20)):
        table.insert(rows_of(part, first), options=LARGE)
    for file in path.rglob("*.parquet"):
        if not has_first(file):
            damage(file)
    return hoodie.open_table(path)


def has_first(file: Path) -> bool:
    return pq.ParquetFile(file).read(["id"]).column("id")[0].as_py() == 0


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:footer] = b"\xff" * (footer - 4)
    file.write_bytes(data)


def merge(table, on, part="a"):
    return table.merge(rows_of(part, 0, 1), on=on).when_matched_update_all()


@pytest.mark.parametrize("on", ["t.id = s.id", "t.id = s.id AND t.p = s.p", "s.id = t.id AND (t.n = 0 OR s.n = 0)"])
def test_a_merge_reads_files_that_may_hold_partners(table, on):
    assert merge(table, on).execute().updated == 5


@pytest.mark.parametrize("on", ["t.id + 0 = s.id", "t.id = s.id OR false"])
def test_where_a_condition_says_less_all_files_are_read(table, on):
    with pytest.raises(HoodieError):
        merge(table, on).execute()


def test_rows_without_partners_may_be_in_all_files(table):
    with pytest.raises(HoodieError):
        merge(table, "t.id = s.id").when_not_matched_by_source_delete().execute()


def test_statements_read_files_that_the_condition_lets_through(table):
    assert table.update({"n": "n + 1"}, where="id < 3").updated == 3
    assert hoodie.sql("UPDATE t SET n = n + 1 WHERE id BETWEEN 1 AND 2", t=table).updated == 2
    assert hoodie.sql("DELETE FROM t WHERE id < 2", t=table).deleted == 2
    assert table.delete(where="id = 2").deleted == 1
