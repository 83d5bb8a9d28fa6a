"""Rows by the pages that hold them: those that the whole column has there, or nothing."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
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
