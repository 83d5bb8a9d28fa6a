"""Cells by their bytes, as one writer or another ends them."""

from contextlib import suppress

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.file_info import GREATEST_VERSION, KEY_VALUE_VERSION, cells_of
from hoodie.hfile.key_value import Column, cells_with, decode_cells, encode_cells
from tests.hfiles import binaries

BARE = cells_of({GREATEST_VERSION: b"\0"})
"""As Apache Hudi's own writer had it before 1.2: a key is the row alone."""


OURS = cells_of({GREATEST_VERSION: bytes(8), KEY_VALUE_VERSION: b"\0\0\0\1"})


def bare(row, value):
    key = len(row).to_bytes(2, "big") + row
    return len(key).to_bytes(4, "big") + len(value).to_bytes(4, "big") + key + value + b"\0"


def test_how_cells_end_is_told_by_the_file_info():
    assert BARE.keys_are_rows
    assert BARE.has_versions
    assert not cells_of({GREATEST_VERSION: bytes(8), KEY_VALUE_VERSION: b"\0\0\0\1"}).keys_are_rows
    assert not cells_of({}).has_versions


@pytest.mark.parametrize("rows", [[b"a", b"b"], [b"a", b"long"], [b"", b"a"]])
def test_keys_that_are_rows(rows):
    data = b"".join(bare(row, row * 2) for row in rows)
    block = decode_cells(memoryview(data), BARE, [(0, len(data))])
    assert block.rows().to_pylist() == rows
    assert block.values().to_pylist() == [row * 2 for row in rows]
    assert block.find(b"a") == b"aa"


def test_a_row_longer_than_its_key_is_damage():
    data = bytearray(bare(b"a", b"x"))
    data[9] = 2
    with pytest.raises(CorruptFileError, match="row of a cell"):
        decode_cells(memoryview(bytes(data)), BARE, [(0, len(data))])


ROWS = [b"a", b"ab", b"b", b"key 1", b"key 10", b"key 2", b"y"]


def wide(data):
    return binaries(data).cast(pa.large_binary())


@pytest.mark.parametrize("wanted", [[], *([row] for row in ROWS), ROWS[:2], ROWS, [b"key"], [b"absent"], [b""]])
def test_cells_of_few_rows_are_those_of_the_whole_block(wanted):
    """Rows that are parts of each other, and of values."""
    values = [b"", b"key 1", b"x" * 9, b"b", b"ab" * 20, b"", b"key 2"]
    _, data = encode_cells(wide(ROWS), wide(values), Column())
    whole = decode_cells(data, OURS, [(0, len(data))])
    found = cells_with(data, OURS, wanted)
    for row in wanted:
        assert (None if found is None else found.find(row)) == whole.find(row)


def test_of_a_block_without_the_row_no_cell_is_looked_at():
    assert cells_with(memoryview(b"no cells at all"), OURS, [b"key"]) is None


def test_a_row_behind_damaged_cells_is_not_missed_in_silence():
    offsets, data = encode_cells(wide(ROWS), wide([b"v" * 20] * len(ROWS)), Column())
    good = bytes(data)
    for at in range(offsets[5]):  # up to the last row that is sought
        bad = memoryview(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        rows = [b"ab", b"key 2"] if at >= offsets[2] else [b"key 2"]
        with suppress(CorruptFileError, UnsupportedTableError):
            found = cells_with(bad, OURS, rows)
            assert [found.find(row) for row in rows] == [b"v" * 20] * len(rows), at
