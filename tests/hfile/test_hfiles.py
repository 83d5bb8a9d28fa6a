"""Files as wholes: what was written is read, by key, by keys and by range."""

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import DuplicateKeyError, OptionError, SchemaError
from hoodie.hfile.block import Coding
from hoodie.hfile.checksums import ChecksumKind
from hoodie.hfile.compression import KNOWN
from hoodie.hfile.key_value import Column
from hoodie.hfile.reader import SCHEMA
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.storage.cache import Cache
from tests.hfiles import SMALL, binaries, hfile, numbered, opened, scanned, small

KEYS = (
    st.binary(max_size=12) | st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"\xff", b"\xff\xff", b"a", b"a\0"])
)
PAIRS = st.dictionaries(KEYS, st.binary(max_size=60), max_size=60).map(lambda found: sorted(found.items()))
CODINGS = st.builds(Coding, st.sampled_from(KNOWN), st.sampled_from(list(ChecksumKind)))
BOUND = st.none() | KEYS


@given(PAIRS, CODINGS, st.sampled_from([None, 0.01]), st.integers(1, 4), st.lists(KEYS, max_size=30))
def test_keys_are_found_and_absent_ones_are_not(pairs, coding, rate, batches, others):
    reader = opened(hfile(pairs, small(coding, bloom_rate=rate), batches=batches), Cache())
    held = dict(pairs)
    asked = [*others, *held, *others]
    assert len(reader) == len(pairs)
    for _ in range(2):  # from the file, from the cache
        assert reader.get_many(binaries(asked)).to_pylist() == [held.get(key) for key in asked]
        assert [reader.get(key) for key in asked] == [held.get(key) for key in asked]


@given(PAIRS, CODINGS, BOUND, BOUND, BOUND)
def test_every_kind_of_range_is_scanned(pairs, coding, start, stop, prefix):
    reader = opened(hfile(pairs, small(coding)))
    expected = [
        (key, value)
        for key, value in pairs
        if (start is None or key >= start)
        and (stop is None or key < stop)
        and (prefix is None or key.startswith(prefix))
    ]
    assert scanned(reader, start, stop, prefix=prefix) == expected


@pytest.mark.parametrize("coding", [Coding(codec, kind) for codec in KNOWN for kind in ChecksumKind], ids=str)
def test_many_keys_in_many_blocks_and_levels(coding):
    pairs = numbered(2_000)
    reader = opened(hfile(pairs, small(coding), batches=3), Cache())
    assert reader._opened.trailer.data_index_levels > 2
    assert reader._opened.bloom is not None
    assert len(reader._opened.bloom.chunks) > 10
    assert scanned(reader) == pairs
    asked = [key for key, _ in pairs] + [key + b"!" for key, _ in pairs]
    random.Random(5).shuffle(asked)
    held = dict(pairs)
    assert reader.get_many(binaries(asked)).to_pylist() == [held.get(key) for key in asked]
    assert scanned(reader, b"key 000100", b"key 000150!") == pairs[100:151]


def test_the_longest_keys_and_large_values():
    pairs = [(b"k" * 32_767, b"v" * 1_000_000), (b"l" * 32_766, b""), (b"m", bytes(range(256)) * 8_000)]
    for codec in KNOWN:
        reader = opened(hfile(pairs, HFileOptions(coding=Coding(codec))))
        assert scanned(reader) == pairs
        assert [reader.get(key) for key, _ in pairs] == [value for _, value in pairs]


@settings(max_examples=8)
@given(st.integers(0, 1 << 32), st.integers(1, 40))
def test_random_lengths_up_to_the_limits(seed, count):
    source = random.Random(seed)
    pairs = sorted(
        {
            source.randbytes(int(2 ** source.uniform(0, 15)) - 1): source.randbytes(int(2 ** source.uniform(0, 17)))
            for _ in range(count)
        }.items()
    )
    reader = opened(hfile(pairs, batches=2))
    assert scanned(reader) == pairs
    assert reader.get_many(binaries(key for key, _ in pairs)).to_pylist() == [value for _, value in pairs]


def test_groups_of_cells_do_not_show():
    """More than is encoded at once, in one batch and in many, gives the same bytes."""
    pairs = [(b"%08d" % number, b"x" * 1_000) for number in range(20_000)]
    data = hfile(pairs)
    assert hfile(pairs, batches=37) == data
    batches = [len(batch) for batch in opened(data).scan()]
    assert sum(batches) == len(pairs)
    assert max(batches) * 1_000 < 4 * 1024 * 1024


def test_an_empty_file():
    for options in (None, HFileOptions(bloom_rate=None)):
        reader = opened(hfile([], options, metas={"a": b"1"}))
        assert (len(reader), reader.get(b"a"), scanned(reader), reader.meta("a")) == (0, None, [], b"1")
        assert reader.get_many(binaries([b"a", b""])).to_pylist() == [None, None]
        assert reader.get_many(binaries([])).to_pylist() == []


def test_meta_blocks_and_file_info_are_the_writers_own():
    metas = {"bloomFilter": b"bits" * 100, "a": b"", "é": b"x"}
    infos = {b"schema": b"{}", b"": b"empty name"}
    reader = opened(hfile(numbered(3), SMALL, metas=metas, infos=infos))
    assert {name: reader.meta(name) for name in reader.meta_names} == metas
    assert reader.meta_names == sorted(metas, key=str.encode)
    assert reader.meta("b") is None
    assert {name: reader.info[name] for name in infos} == infos
    assert reader.info[b"hfile.LASTKEY"][2:12] == b"key 000002"
    assert reader.info[b"hfile.AVG_KEY_LEN"] == (22).to_bytes(4, "big")
    assert reader.info[b"BLOOM_FILTER_TYPE"] == b"ROW"


def test_family_and_qualifier_do_not_matter_to_readers():
    column = Column(b"fam", b"qualifier", timestamp=17)
    data = hfile(numbered(100), small(Coding(), column=column))
    assert b"\x03famqualifier" + (17).to_bytes(8, "big") + b"\x04" in data
    assert scanned(opened(data)) == numbered(100)
    assert opened(data).get(b"key 000007") == numbered(100)[7][1]


def test_batches_are_arrow_of_one_schema():
    (batch,) = opened(hfile(numbered(5))).scan()
    batch.validate(full=True)
    assert batch.schema == SCHEMA


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_arrays_of_every_kind_are_taken(kind):
    keys, values = (pa.array(texts, kind) for texts in (["skipped", "a", "b", "c"], ["skipped", "1", "2", "3"]))
    out = pa.BufferOutputStream()
    writer = HFileWriter(out)
    writer.write(keys.slice(1, 2), values.slice(1, 2))
    writer.write(pa.chunked_array([keys.slice(3)]), values.slice(3))
    writer.finish()
    assert scanned(opened(out.getvalue().to_pybytes())) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_keys_that_are_not_in_order_are_refused(batches):
    with pytest.raises(DuplicateKeyError, match="key b'b' comes twice"):
        hfile([(b"a", b""), (b"b", b""), (b"b", b"")], batches=batches)
    with pytest.raises(SchemaError, match="key b'b' comes behind b'c'"):
        hfile([(b"a", b""), (b"c", b""), (b"b", b"")], batches=batches)


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (pa.array([1]), pa.array(["a"]), "keys of an HFile are of type int64"),
        (pa.array(["a"]), pa.array([None], pa.binary()), "1 values of an HFile are null"),
        (pa.array(["a", "b"]), pa.array(["a"]), "2 keys with 1 values"),
        (pa.array(["a" * 32_768]), pa.array([""]), "a key of an HFile has 32768 bytes: at most 32767 fit"),
    ],
)
def test_what_is_no_key_or_value_is_refused_and_nothing_is_added(keys, values, message):
    out = pa.BufferOutputStream()
    writer = HFileWriter(out)
    with pytest.raises(SchemaError, match=message):
        writer.write(keys, values)
    writer.write(pa.array(["a"]), pa.array(["1"]))
    writer.finish()
    assert scanned(opened(out.getvalue().to_pybytes())) == [(b"a", b"1")]


def test_options_that_make_no_file_are_refused():
    with pytest.raises(OptionError, match="blocks of 0 bytes"):
        HFileOptions(block_bytes=0)
    with pytest.raises(OptionError, match="at least 1 byte and 2 entries"):
        HFileOptions(index_least_entries=1)
    with pytest.raises(OptionError, match="HFile's own"):
        HFileWriter(pa.BufferOutputStream()).add_info(b"hfile.LASTKEY", b"")
    writer = HFileWriter(pa.BufferOutputStream())
    writer.finish()
    with pytest.raises(OptionError, match="finished"):
        writer.finish()


def test_nulls_are_no_keys_to_look_up():
    with pytest.raises(SchemaError, match="keys to look up of an HFile are null"):
        opened(hfile(numbered(2))).get_many(binaries([b"a", None]))
