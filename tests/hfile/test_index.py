"""Roots and pages of indexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import varint
from hoodie.hfile.index import (
    Entry,
    IndexWriter,
    decode_page,
    decode_root,
    encode_page,
    encode_root,
    page_of,
    tolerant_root,
)
from hoodie.hfile.key_value import Column, encode_key

ENTRIES = st.lists(
    st.builds(Entry, st.binary(max_size=300), st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 31) - 1)), max_size=6
)


@given(ENTRIES)
def test_roots_and_pages_come_back(entries):
    root = memoryview(encode_root(entries))
    assert decode_root(root, len(entries)) == (entries, len(root))
    if entries:
        assert decode_page(memoryview(encode_page(entries))) == entries


@given(ENTRIES.filter(bool))
def test_a_cut_is_noticed(entries):
    root, page = encode_root(entries), encode_page(entries)
    for cut in range(len(root)):
        with pytest.raises(CorruptFileError):
            decode_root(memoryview(root[:cut]), len(entries))
    for cut in range(len(page)):
        with pytest.raises(CorruptFileError):
            decode_page(memoryview(page[:cut]))


def keyed(rows):
    return [Entry(encode_key(row, Column()), number * 10, 40) for number, row in enumerate(rows)]


def test_lengths_in_the_spelling_of_protobuf_are_read():
    entries = keyed([b"a" * 200, b"b" * 300])
    parts = [
        offset.to_bytes(8, "big") + size.to_bytes(4, "big") + varint(len(key)) + key for key, offset, size in entries
    ]
    assert tolerant_root(memoryview(b"".join(parts)), 2, behind=0) == entries


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_entries_than_the_trailer_says_is_noticed(count):
    data = memoryview(encode_root(keyed([b"a", b"b"])))
    with pytest.raises(CorruptFileError):
        tolerant_root(data, count, behind=16)


def test_a_page_out_of_order_is_refused():
    with pytest.raises(CorruptFileError, match="b'a' behind b'b'"):
        page_of(keyed([b"b", b"a"]))


@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 7, 50])
def test_what_is_too_large_gets_levels(blocks):
    written: list[bytes] = []

    def write(content, is_leaf):
        written.append(content)
        return 1_000_000 + len(written), len(content)

    index = IndexWriter(page_bytes=100, least_entries=2)
    entries = keyed([b"row %03d" % number for number in range(blocks)])
    for entry in entries:
        index.add(entry, write)
    root, count = index.finish(write)
    found, end = decode_root(memoryview(root), count)
    assert len(root) - end == (16 if index.levels > 1 else 0)
    for _ in range(index.levels - 1):
        found = [below for above in found for below in decode_page(memoryview(written[above.offset - 1_000_001]))]
    assert found == entries
    assert index.levels == {0: 1, 1: 1, 2: 1, 3: 2, 7: 2, 50: 4}[blocks]
