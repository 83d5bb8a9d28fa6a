"""Look-ups in files that say where their keys stand: the rows are those of a whole scan, and few pages are decoded for them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.filegroup import base_writer
from hoodie.filegroup import sought_rows as sought_rows_module
from hoodie.format import key_map as module
from hoodie.format import parquet_pages
from hoodie.format.key_map import key_map_of
from hoodie.read import by_keys

ROWS = 20_000
FILES = 3


@pytest.fixture(autouse=True)
def _all_jobs_write_maps(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "hoodie-defaults.conf").write_text("hoodie.python.parquet.key.map=true\n")
    monkeypatch.setenv("HOODIE_CONF_DIR", str(folder))


def refuse(*_, **__):
    raise AssertionError("this is not needed")


def rows_of(numbers, **columns):
    mixed = np.asarray(numbers, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ids = [f"{n:016x}" for n in mixed.tolist()]
    return pa.table({"id": ids, "ts": [1] * len(ids), "n": pa.array(numbers), **columns})


def filled(path, options=None, **create):
    table = hoodie.create_table(path, record_key="id", ordering="ts", **create)
    for part in range(FILES):
        numbers = np.arange(part, FILES * ROWS, FILES)
        floats = np.where(numbers % 5 == 0, np.nan, numbers - ROWS)
        table.bulk_insert(rows_of(numbers, f=floats, text=[f"t{n % 7}" for n in numbers]), options=options)
    return table


def base_files(path):
    return sorted(file for file in Path(path).glob("*.parquet") if pq.read_metadata(file).num_rows >= ROWS // 2)


def maps(path):
    return [key_map_of(memoryview(file.read_bytes())) for file in base_files(path)]


def numbers(scan):
    return sorted(scan.to_arrow().column("n").to_pylist())


def ids(*wanted):
    return rows_of(list(wanted))["id"].to_pylist()


@pytest.mark.parametrize("group_rows", [None, 3_000])
def test_rows_are_found_by_the_pages_that_may_have_them(group_rows, tmp_path, monkeypatch):
    if group_rows:
        monkeypatch.setattr(base_writer, "ROW_GROUP_ROWS", group_rows)
    table = filled(tmp_path / "t", table_type="COPY_ON_WRITE")
    assert all(each is not None for each in maps(tmp_path / "t"))
    if group_rows is None:
        monkeypatch.setattr(parquet_pages, "_SHARE", 1)  # of any number of pages
        monkeypatch.setattr(sought_rows_module, "_rows_of_keys", refuse)  # of whole chunks
    monkeypatch.setattr(by_keys, "_may_hold", refuse)  # by a bloom filter
    for wanted in ([7], [0, FILES * ROWS - 1], list(range(0, FILES * ROWS, 5_003))):
        for _ in range(2):  # with what is known from the first time
            found = table.lookup(ids(*wanted, FILES * ROWS + 1)).to_arrow().sort_by("n")
            assert found.column("n").to_pylist() == wanted
            assert found.column("text").to_pylist() == [f"t{n % 7}" for n in wanted]
    assert len(table.lookup(ids(7)).plan.tasks) == 1
    assert numbers(table.scan(where=f"id = '{ids(7)[0]}' and n < 8")) == [7]
    assert numbers(table.scan(where=f"id = '{ids(7)[0]}' and n > 8")) == []
    assert numbers(table.lookup(ids(FILES * ROWS + 1))) == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_and_services_keep_maps_up(table_type, tmp_path):
    path = tmp_path / "t"
    table = filled(path, table_type=table_type)
    table.upsert(rows_of([1, 100_000], f=[1.0, 2.0], text=["new", "new"]).set_column(1, "ts", pa.array([2, 2])))
    table.delete(rows_of([2]).select(["id"]))
    wanted = [0, 1, 2, 3, ROWS, 100_000]
    there = [0, 1, 3, ROWS, 100_000]
    assert numbers(table.lookup(ids(*wanted))) == there
    assert table.lookup(ids(1), ["text"]).to_arrow().to_pylist() == [{"text": "new"}]
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert numbers(table.lookup(ids(*wanted))) == there
    table.cluster()
    assert numbers(table.lookup(ids(*wanted))) == there
    assert all(each is not None for each in maps(path))
    assert not table.doctor(deep=True).findings


def test_there_are_no_maps_unless_an_option_asks_for_them(tmp_path, monkeypatch):
    monkeypatch.delenv("HOODIE_CONF_DIR")
    path = tmp_path / "t"
    table = filled(path, table_type="COPY_ON_WRITE")
    assert maps(path) == [None] * FILES
    assert numbers(table.lookup(ids(1, 2, ROWS))) == [1, 2, ROWS]


def test_a_damaged_map_hides_no_row(tmp_path):
    path = tmp_path / "t"
    filled(path, table_type="COPY_ON_WRITE")
    for file in base_files(path):
        data = bytearray(file.read_bytes())
        at = data.rfind(module._MAGIC) - 1_000
        data[at] ^= 1
        file.write_bytes(data)
    assert maps(path) == [None] * FILES
    assert numbers(hoodie.open_table(path).lookup(ids(*range(500)))) == list(range(500))


def test_doctor_finds_a_map_of_other_keys(tmp_path):
    path = tmp_path / "t"
    table = filled(path, table_type="COPY_ON_WRITE")
    first, second = base_files(path)[:2]
    one, other = (file.read_bytes() for file in (first, second))
    at, begin = one.rfind(module._MAGIC) + len(module._MAGIC), other.rfind(module._MAGIC) + len(module._MAGIC)
    size = key_map_of(memoryview(one)).size_bytes + 24
    first.write_bytes(one[: at - size] + other[begin - size : begin] + one[at:])
    assert any("key map" in each.what for each in table.doctor(deep=True).findings)


def test_other_readers_pass_over_maps(tmp_path):
    filled(tmp_path / "t", table_type="COPY_ON_WRITE")
    found = [pq.read_table(file) for file in base_files(tmp_path / "t")]
    assert sorted(n for each in found for n in each.column("n").to_pylist()) == list(range(FILES * ROWS))
