"""Cells by their bytes, as one writer or another ends them."""

import pytest

from hoodie.errors import CorruptFileError
from hoodie.hfile.file_info import GREATEST_VERSION, KEY_VALUE_VERSION, cells_of
from hoodie.hfile.key_value import decode_cells

BARE = cells_of({GREATEST_VERSION: b"\0"})
"""As Apache Hudi's own writer had it before 1.2: a key is the row alone."""


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
