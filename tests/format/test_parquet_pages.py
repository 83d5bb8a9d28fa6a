"""Rows by the pages that hold them: those that the whole column has there, or nothing."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format import parquet_pages
from hoodie.format.parquet_file import open_parquet
from hoodie.format.parquet_pages import PageReader

ROWS = 3000
HALF = ROWS // 2


def table():
    numbers = range(ROWS)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "some": pa.array([n if n % 3 else None for n in numbers], pa.int32()),
            "text": [f"text {n * 7919 % ROWS}" for n in numbers],
            "kind": [f"kind {n % 5}" if n % 7 else None for n in numbers],
            "raw": pa.array([b"%d" % n for n in numbers], pa.binary()),
            "flag": [n % 2 == 0 for n in numbers],
            "at": pa.array([datetime(2026, 1, 1 + n % 28) for n in numbers], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(20, 2)),
            "deep": [{"n": n, "x": [n]} for n in numbers],
            "none": pa.nulls(ROWS, pa.float64()),
        }
    )


def written(**how):
    sink = pa.BufferOutputStream()
    how = {"data_page_size": 512, "write_batch_size": 32, "store_schema": False, "row_group_size": HALF} | how
    pq.write_table(table(), sink, write_page_checksum=True, **how)
    return sink.getvalue().to_pybytes()


def opened(content):
    file = open_parquet(pa.BufferReader(content), path="f", encode=["kind"])
    return PageReader(file, memoryview(content), path="f")


FLAT = [name for name in table().column_names if name != "deep"]


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "zstd"},
        {"compression": "gzip", "use_dictionary": ["kind"]},
        {"compression": "none", "use_dictionary": False},
        {"compression": "snappy", "data_page_version": "2.0"},
    ],
    ids=lambda how: how["compression"],
)
@pytest.mark.parametrize("rows", [[0], [HALF - 1], [5, 6, 700, 1400]], ids=str)
def test_the_rows_are_those_of_the_whole_column(how, rows):
    pages = opened(written(**how))
    for group in (0, 1):
        found = pages.rows(group, table().column_names, np.array(rows))
        assert {"n", "text", "raw"} <= set(found) <= set(FLAT)
        want = table().slice(group * HALF).take(pa.array(rows))
        for name, column in found.items():
            assert column.equals(want.column(name).combine_chunks()), name


def test_a_column_of_which_most_pages_are_wanted_is_left_to_who_reads_it_whole():
    assert opened(written()).rows(0, ["n", "text"], np.arange(0, HALF, 3)) == {}
    assert opened(written()).rows(0, ["n"], np.empty(0, np.int64)) == {}


def test_files_of_which_types_stand_elsewhere_and_codecs_with_two_forms_are_left():
    assert opened(written(store_schema=True)).rows(0, ["n"], np.array([3])) == {}
    assert opened(written(compression="lz4")).rows(0, ["n"], np.array([3])) == {}


def test_a_damaged_page_is_told_or_the_rows_are_right():
    content = written(compression="zstd")
    chunk = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(0)
    begin, rows = chunk.dictionary_page_offset or chunk.data_page_offset, np.array([3, 900])
    told = 0
    for at in range(begin, begin + chunk.total_compressed_size, 61):
        damaged = bytearray(content)
        damaged[at] ^= 0x41
        try:
            found = opened(bytes(damaged)).rows(0, ["n"], rows)
        except CorruptFileError:
            told += 1
            continue
        assert not found or found["n"].to_pylist() == [3, 900]
    assert told


def texts(values, **how):
    sink = pa.BufferOutputStream()
    how = {"data_page_size": 512, "write_batch_size": 32, "store_schema": False, "row_group_size": HALF} | how
    pq.write_table(pa.table({"n": range(len(values)), "key": values}), sink, write_page_checksum=True, **how)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "snappy", "data_page_version": "2.0", "use_dictionary": False},
        {"compression": "gzip"},
    ],
    ids=lambda how: how["compression"],
)
@pytest.mark.parametrize("letter", ["k", "é", "\U0001f600"])
def test_keys_of_a_sorted_column_are_found_by_bounds_of_pages(how, letter):
    keys = sorted(f"{letter}{n * 7919 % ROWS // 2:05d}" for n in range(ROWS))  # each twice
    pages = opened(texts(keys, **how))
    everywhere = range(0, HALF, 3)
    for wanted in (
        [keys[0]],
        [keys[-1]],
        [f"{letter}00017x"],
        ["", "zzz"],
        [keys[n] for n in (5, 6, 900, HALF, 2_100)],
    ):
        for group in (0, 1):
            stored = keys[group * HALF : (group + 1) * HALF]
            found = pages.rows_of_keys(group, "key", pa.array(sorted(wanted), pa.string()))
            assert found is not None
            assert found[0].tolist() == [n for n, key in enumerate(stored) if key in wanted]
            assert found[1].equals(pa.array([key for key in stored if key in wanted], pa.string()))
    assert pages.rows_of_keys(0, "key", pa.array([keys[n] for n in everywhere])) is None


def test_keys_in_no_order_or_of_another_type_are_left_to_who_reads_the_column():
    keys = [f"k{n * 7919 % ROWS:05d}" for n in range(ROWS)]
    assert opened(texts(keys)).rows_of_keys(0, "key", pa.array(["k00500"])) is None
    assert opened(texts(keys)).rows_of_keys(0, "n", pa.array(["k00500"])) is None
    assert opened(texts(keys)).rows_of_keys(0, "other", pa.array(["k00500"])) is None
    assert opened(texts(sorted(keys), write_statistics=False)).rows_of_keys(0, "key", pa.array(["k00500"])) is None


def test_of_a_column_in_no_order_no_more_than_two_pages_are_looked_at(monkeypatch):
    looked_at = []
    plain = parquet_pages._page_head
    monkeypatch.setattr(parquet_pages, "_page_head", lambda data: looked_at.append(0) or plain(data))
    keys = [f"k{n * 7919 % ROWS:05d}" for n in range(ROWS)]
    assert opened(texts(keys, use_dictionary=False)).rows_of_keys(0, "key", pa.array(["k00500"])) is None
    assert len(looked_at) == 2


def test_bounds_of_pages_that_the_footer_contradicts_do_not_count():
    keys = sorted(f"k{n * 7919 % ROWS:05d}" for n in range(ROWS))
    content = texts(keys, use_dictionary=False, compression="none")
    begin = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(1).data_page_offset
    place = content.index(keys[0].encode(), begin)  # in the head of the first page
    damaged = bytearray(content)
    damaged[place + 1] = ord("9")
    assert opened(content).rows_of_keys(0, "key", pa.array([keys[0]])) is not None
    assert opened(bytes(damaged)).rows_of_keys(0, "key", pa.array([keys[0]])) is None


def test_no_damaged_bound_of_a_page_hides_a_key():
    keys = sorted(f"k{n * 7919 % ROWS:05d}" for n in range(ROWS))
    content = texts(keys, use_dictionary=False, compression="none", row_group_size=ROWS)
    column = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(1)
    first, last = column.data_page_offset, column.data_page_offset + column.total_compressed_size
    tried = 0
    for key in keys[100:-100]:
        # A bound stands in the head of a page, and behind it among the values: the first place is in the head.
        for change in (b"k09999", b"k00000"):
            damaged = bytearray(content)
            place = content.index(key.encode(), first, last)
            is_bound = content.count(key.encode(), first, last) > 1
            if not is_bound:
                break
            damaged[place : place + len(key)] = change
            found = opened(bytes(damaged)).rows_of_keys(0, "key", pa.array([key]))
            assert found is None or found[1].to_pylist() == [key]
            tried += found is not None
    assert tried > ROWS // 100
