"""Rows of many keys: those of a scan with the same filter, whatever an index knows of the files, and keys that are read once."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import CorruptFileError
from hoodie.index import bloom
from hoodie.options.read import ReadOptions
from hoodie.read.condition import Among
from hoodie.read.rows_of_keys import with_rows_of_keys
from hoodie.read.scan import Scan

ROWS = 600


def filled(path, table_type="MERGE_ON_READ", **create):
    """Three files whose keys lie between each other, one of them with each key twice."""
    table = hoodie.create_table(path, record_key="id", table_type=table_type, **create)
    for part in range(3):
        table.bulk_insert([{"id": n, "v": part, "ts": 1} for n in range(part, ROWS, 3)] * (1 + (part == 2)))
    return table


def scan(table, ids):
    context = table.writer.context
    return Scan(context, ReadOptions(columns=("id", "v"), where=Among("id", pa.array(ids, pa.int64()))))


def rows(found):
    return sorted(map(tuple, (row.values() for row in found.to_arrow().to_pylist())))


@pytest.fixture(autouse=True)
def _(monkeypatch):
    """A write that made a small file remembers its keys, otherwise."""
    monkeypatch.setattr("hoodie.index.stored_keys._SMALL_WRITE_BYTES", 0)


@pytest.fixture
def of_index(monkeypatch):
    """Base files of which the keys were read for an index."""
    read = []

    def noted(file, base, unstored, **how):
        read.append(base)
        return stored_keys(file, base, unstored, **how)

    stored_keys = bloom.stored_keys
    monkeypatch.setattr(bloom, "stored_keys", noted)
    return read


def looked_up(table, ids):
    found = scan(table, ids)
    found.plan = with_rows_of_keys(table.writer.context, found.plan)
    return found


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("ordering", [None, "ts"])
@pytest.mark.parametrize("remembers", [True, False])
def test_the_rows_are_those_of_the_filter(table_type, ordering, remembers, tmp_path, request):
    if not remembers:
        request.getfixturevalue("large")
    table = filled(tmp_path / "t", table_type, ordering=ordering)
    asked = [*range(0, ROWS, 2), 100_000]
    for _ in range(3):
        for ids in (asked, [5], [100_000], []):
            assert rows(looked_up(table, ids)) == rows(scan(table, ids))
        table.upsert([{"id": n, "v": 100, "ts": 2} for n in range(0, ROWS, 7)])
        table.delete([{"id": 4}, {"id": 6}])
    assert {4, 6}.isdisjoint(n for n, _ in rows(looked_up(table, asked)))


def test_a_write_of_these_keys_reads_them_no_more(tmp_path, of_index):
    table = filled(tmp_path / "t")
    ids = [n for n in range(0, ROWS, 2) if n % 3 < 2]  # those that are stored once
    found = looked_up(table, ids).to_arrow()
    assert len(of_index) == len(set(of_index)) == 2  # what a bloom filter leaves
    table.upsert(pa.table({"id": ids, "v": [9] * len(ids), "ts": [2] * len(ids)}))
    assert len(of_index) == 2
    assert set(looked_up(table, ids).to_arrow().column("v").to_pylist()) == {9}
    assert len(of_index) == 2
    assert pc.count_distinct(found.column("id")).as_py() == len(ids)


@pytest.fixture
def large(monkeypatch):
    """The keys of no file can be remembered."""
    monkeypatch.setattr("hoodie.index.stored_keys._LARGEST_SHARE", 10**9)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_of_keys_that_were_sought_in_large_files_reads_no_keys(table_type, tmp_path, of_index, large):
    table = filled(tmp_path / "t", table_type)
    ids = [n for n in range(0, ROWS, 2) if n % 3 < 2]
    asked = [*ids, 100_000]  # whose absence is known, too
    assert rows(looked_up(table, asked)) == rows(scan(table, asked)) != []
    assert len(of_index) == 2
    result = table.upsert([{"id": n, "v": 9, "ts": 2} for n in asked])
    assert (result.updated, result.inserted) == (len(ids), 1)
    assert len(of_index) == 2
    assert sorted(table.scan(("id", "v"), where="v = 9").to_arrow()["id"].to_pylist()) == asked


def test_keys_that_were_not_sought_in_large_files_are_looked_up(tmp_path, of_index, large):
    table = filled(tmp_path / "t")
    looked_up(table, range(0, ROWS, 2))
    told = len(of_index)
    result = table.upsert([{"id": n, "v": 9, "ts": 2} for n in (0, 1, 3, 200_000)])
    assert (result.updated, result.inserted) == (3, 1)
    assert len(of_index) > told


def test_few_keys_are_left_to_the_reader(tmp_path, of_index):
    table = filled(tmp_path / "t")
    assert rows(looked_up(table, [1, 3])) == rows(scan(table, [1, 3])) != []
    assert of_index == []


def test_the_reader_says_what_is_wrong_with_a_file(tmp_path):
    table = filled(tmp_path / "t")
    found = scan(table, range(ROWS))
    base = sorted((tmp_path / "t").glob("*.parquet"))[0]
    base.write_bytes(base.read_bytes()[:-20])
    found.plan = with_rows_of_keys(table.writer.context, found.plan)
    with pytest.raises(CorruptFileError, match=base.name):
        found.to_arrow()
