"""The filter of rows. That HBase reads it: `integration/test_hfiles_with_hbase.py`, and golden files the other way round."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, OptionError
from hoodie.hashes.murmur import murmur_of_row, murmur_of_rows
from hoodie.hfile.bloom import BloomWriter, chunk_size, decode_bloom_meta, might_hold

ROWS = st.lists(st.binary(max_size=30), max_size=40)


def array(rows):
    return pa.array(rows, pa.large_binary())


@pytest.mark.parametrize(
    ("row", "first", "second"),  # by `org.apache.hadoop.hbase.util.MurmurHash` of HBase 2.6.1
    [
        (b"a", 2456313694, 1529584742),
        (b"ab\xff", 2967280045, 2384691613),
        (b"abcd", 646393889, 3770302369),
        (b"\xff\xfe\xfd", 3810540331, 3669550014),
        (b"row 00001", 2133547119, 2581495670),
        (b"\x80" * 7, 891022206, 3915655170),
        (b"k" * 33, 2989583843, 2571358698),
    ],
)
def test_rows_hash_as_in_hbase(row, first, second):
    assert murmur_of_row(row) == (first, second)


@given(ROWS, st.integers(0, 5))
def test_many_rows_hash_as_each_by_itself(rows, skip):
    first, second = murmur_of_rows(array([*[b"skipped"] * skip, *rows]).slice(skip))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [murmur_of_row(row) for row in rows]


def test_a_chunk_has_the_sizes_of_hbase():
    assert chunk_size(128 * 1024, 0.01) == (131072, 7, 109306)
    assert chunk_size(1, 0.01)[0] == 128


@pytest.mark.parametrize("count", [1, 2, 30, 107, 500])
def test_no_row_is_denied_and_few_strangers_are_let_in(count):
    rows = [b"row %05d" % number for number in range(count)]
    writer = BloomWriter(128, 0.01)
    chunks = writer.add(array(rows[: count // 3])) + writer.add(array(rows[count // 3 :])) + writer.finish()
    for number, (first, bits) in enumerate(chunks):
        writer.placed(first, number, len(bits))
    meta = decode_bloom_meta(memoryview(writer.meta()))
    assert meta is not None
    assert writer.keys == count
    let_in = 0
    for number, (first, bits) in enumerate(chunks):
        end = chunks[number + 1][0] if number + 1 < len(chunks) else b"s"
        own = [row for row in rows if first <= row < end]
        assert might_hold(memoryview(bits), meta.hashes, array(own)).all()
        strangers = array([b"x%d" % stranger for stranger in range(400)])
        let_in += int(np.count_nonzero(might_hold(memoryview(bits), meta.hashes, strangers)))
    assert let_in <= 0.05 * 400 * len(chunks)


def test_a_chunk_with_few_rows_is_folded():
    writer = BloomWriter(128 * 1024, 0.01)
    assert writer.add(array([b"a", b"b"])) == []
    ((first, bits),) = writer.finish()
    assert first == b"a"
    assert len(bits) == 4  # as HBase folds it
    assert might_hold(memoryview(bits), 7, array([b"a", b"b"])).all()
    assert writer.finish() == []


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(OptionError, match="between 0 and 1"):
        chunk_size(128, rate)
    with pytest.raises(OptionError, match="holds no key"):
        chunk_size(128, 5e-324)


def test_a_filter_of_another_hash_is_not_used_and_a_cut_one_is_refused():
    writer = BloomWriter(128, 0.01)
    writer.add(array([b"a"]))
    for first, bits in writer.finish():
        writer.placed(first, 0, len(bits))
    meta = writer.meta()
    assert decode_bloom_meta(memoryview(meta[:16] + bytes([0, 0, 0, 2]) + meta[20:])) is None
    for cut in range(len(meta)):
        with pytest.raises(CorruptFileError):
            decode_bloom_meta(memoryview(meta[:cut]))
