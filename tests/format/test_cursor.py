"""The big-endian reader: values, offsets, ends."""

import pytest

from hoodie.errors import CorruptBlockError
from hoodie.format.cursor import Cursor, i32, i64


def test_reads_what_was_written_and_counts_offsets():
    data = i32(-2) + i64(1 << 40) + "é".encode() + b"rest"
    cursor = Cursor(data)
    assert (cursor.i32("a"), cursor.i64("b"), cursor.text(2, "c")) == (-2, 1 << 40, "é")
    assert cursor.offset == 14
    assert bytes(cursor.take(4, "d")) == b"rest"
    assert cursor.remaining == 0


@pytest.mark.parametrize("size", range(4))
def test_refuses_an_int_that_the_end_cuts(size):
    cursor = Cursor(b"\x00" * 8, 2, 2 + size)
    with pytest.raises(CorruptBlockError, match="width of it at offset 2 takes 4 bytes") as caught:
        cursor.i32("width of it")
    assert caught.value.offset == 2
    assert cursor.offset == 2


@pytest.mark.parametrize("size", [-1, 5, 1 << 62])
def test_refuses_a_negative_or_too_long_size(size):
    with pytest.raises(CorruptBlockError):
        Cursor(b"abcd").take(size, "value")


def test_refuses_text_that_is_not_utf8():
    with pytest.raises(CorruptBlockError, match="not UTF-8") as caught:
        Cursor(b"ab\xff").text(3, "name")
    assert caught.value.offset == 0


def test_takes_buffers_of_signed_bytes():
    assert Cursor(memoryview(b"\xff\xff\xff\xfe").cast("b")).i32("value") == -2
