"""Rows of a base file by a few record keys: those of a filter, and no more is decoded than that takes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.filegroup import sought_rows as module
from hoodie.filegroup.sought_rows import can_seek, sought_rows
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.sought import SoughtKeys, SoughtRows

GROUP = 10


def keys(*numbers):
    return pa.array(sorted(f"k{n:03}" for n in numbers), pa.string())


@pytest.fixture
def file():
    """A hundred rows in ten row groups, in the order of their keys."""
    rows = {RECORD_KEY: keys(*range(100)), "id": keys(*range(100)), "text": ["same"] * 100, "n": range(100)}
    rows["deep"] = [{"n": n} for n in range(100)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(rows), sink, row_group_size=GROUP)
    return open_parquet(pa.BufferReader(sink.getvalue()), path="f", encode=["text"])


def found(file, sought, names, batch_rows=4):
    read = []

    def columns(wanted, group):
        read.append((tuple(wanted), group))
        return read_batches(file, wanted, batch_rows=batch_rows, path="f", group=group)

    rows = list(sought_rows(file, names, sought, columns, path="f"))
    return [n for numbers, _ in rows for n in numbers.tolist()], [row for _, b in rows for row in b.to_pylist()], read


@pytest.mark.parametrize("batch_rows", [3, 100])
@pytest.mark.parametrize("wanted", [(), (7,), (0, 99), (9, 10, 11), tuple(range(0, 100, 3)), tuple(range(90, 120))])
def test_the_rows_are_those_of_a_filter(file, wanted, batch_rows):
    there = [n for n in wanted if n < 100]
    numbers, rows, read = found(file, SoughtKeys(keys(*wanted)), ["text", "n", RECORD_KEY, "deep", "none"], batch_rows)
    assert numbers == there
    assert rows == [{"text": "same", "n": n, RECORD_KEY: f"k{n:03}", "deep": {"n": n}} for n in there]
    assert [group for _, group in read] == sorted({n // GROUP for n in there})


def test_only_row_groups_whose_bounds_have_a_key_are_looked_into(file, monkeypatch):
    looked = []

    def noted(*args, group, **how):
        looked.append(group)
        return read_batches(*args, group=group, **how)

    monkeypatch.setattr(module, "read_batches", noted)
    assert found(file, SoughtKeys(keys(25, 71)), ["n"])[0] == [25, 71]
    assert looked == [2, 7]


def test_the_column_of_the_keys_is_not_read_again(file):
    _, rows, read = found(file, SoughtKeys(keys(25), same="id"), ["id", RECORD_KEY])
    assert rows == [{"id": "k025", RECORD_KEY: "k025"}]
    assert read == []
    assert found(file, SoughtKeys(keys(25), same="id"), ["id", "n"])[2] == [(("n",), 2)]


def test_of_rows_that_were_looked_up_no_keys_are_read(file, monkeypatch):
    wanted = [9, 10, 25, 99]
    there = SoughtRows(np.array(wanted), keys(*wanted))
    monkeypatch.setattr(module, "_rows_of_keys", None)

    def columns(names, group):
        assert RECORD_KEY not in names
        return read_batches(file, names, batch_rows=4, path="f", group=group)

    rows = list(sought_rows(file, ["n", RECORD_KEY], SoughtKeys(keys(1, 2)), columns, path="f", there=there))
    assert [n for numbers, _ in rows for n in numbers.tolist()] == wanted
    assert [row for _, b in rows for row in b.to_pylist()] == [{"n": n, RECORD_KEY: f"k{n:03}"} for n in wanted]


@pytest.mark.parametrize("encode", [(), ("path", "some", "none")])
def test_a_column_with_one_value_in_a_row_group_is_not_read(encode):
    rows = {RECORD_KEY: keys(*range(30)), "path": ["p"] * 30, "some": ["a"] * 9 + [None] + ["b"] * 20}
    rows |= {"none": pa.array([None] * 30, pa.string()), "same": [1.0] * 30}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(rows), sink, row_group_size=GROUP)
    file = open_parquet(pa.BufferReader(sink.getvalue()), path="f", encode=encode)
    _, there, read = found(file, SoughtKeys(keys(3, 9, 15)), ["path", "some", "none", "same"])
    values = [("p", "a", None, 1.0), ("p", None, None, 1.0), ("p", "b", None, 1.0)]
    assert [tuple(row.values()) for row in there] == values
    assert read == [(("some", "none", "same"), 0), (("none", "same"), 1)]


class Pages:
    """Notes which rows it is asked for, and has none of them."""

    def __init__(self):
        self.asked = []

    def rows_of_keys(self, group, name, keys, spans):
        return None

    def rows(self, group, names, rows):
        self.asked.append(rows.tolist())
        return {}


@pytest.mark.parametrize(
    ("wanted", "picks"), [((7, 8), True), (range(50), True), (range(0, 99, 15), False), (range(99), False)]
)
def test_pages_are_walked_where_many_may_have_no_row(wanted, picks, monkeypatch):
    monkeypatch.setattr(module, "_PAGE_ROWS", 10)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({RECORD_KEY: keys(*range(100)), "n": range(100)}), sink)
    file, pages = open_parquet(pa.BufferReader(sink.getvalue()), path="f"), Pages()

    def columns(names, group):
        return read_batches(file, names, batch_rows=9, path="f", group=group)

    ((numbers, batch),) = sought_rows(file, ["n"], SoughtKeys(keys(*wanted)), columns, path="f", pages=pages)
    assert numbers.tolist() == batch.column("n").to_pylist() == list(wanted)
    assert pages.asked == ([list(wanted)] if picks else [])


def test_texts_that_repeat_are_texts_again(file):
    assert pa.types.is_dictionary(file.schema_arrow.field("text").type)
    ((_, batch),) = sought_rows(
        file,
        ["text"],
        SoughtKeys(keys(5)),
        lambda names, group: read_batches(file, names, batch_rows=9, path="f", group=group),
        path="f",
    )
    assert batch.schema.field("text").type == pa.string()


def test_only_texts_are_sought():
    for stored, is_text in ((pa.array([1]), False), (pa.array(["a"]), True)):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({RECORD_KEY: stored}), sink)
        assert can_seek(pq.ParquetFile(pa.BufferReader(sink.getvalue()))) == is_text
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a"]}), sink)
    assert not can_seek(pq.ParquetFile(pa.BufferReader(sink.getvalue())))
