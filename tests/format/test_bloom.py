"""Bloom filters against the vectors of Apache Hudi and a plain model that hashes one key at a time."""

import base64
import itertools
import math
import struct
import sys
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, KeyFieldError, OptionError, SchemaError, UnsupportedTableError
from hoodie.format.bloom import (
    MAX_BITS,
    BloomFilter,
    bloom_size,
    build_bloom,
    hash_chains,
    most_entries,
    parse_bloom,
    register_bloom,
)

M = 0x5BD1E995
MASK = 0xFFFFFFFF
VECTOR_KEYS = pa.array(["k001", "k042", "naïve-☃"])
VECTORS = {
    "SIMPLE": "/////wAAAAcBAAAAYAACARCEAK1+AAAEog==",
    "DYNAMIC_V0": "/////wAAAAcBAAAAYAAAAAoAAAADAAAAAf////8AAAAHAQAAAGAAAgEQhACtfgAABKI=",
}
TYPES = ["SIMPLE", "DYNAMIC_V0", "PYBLOOM_LIVE"]


def murmur(key: bytes, seed: int) -> int:
    h = (seed ^ len(key)) & MASK
    for at in range(0, len(key) - 3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * M & MASK
        k = (k ^ k >> 24) * M & MASK
        h = h * M & MASK ^ k
    tail = len(key) % 4
    if tail:
        signed = struct.unpack(f"{tail}b", key[-tail:])
        for shift, byte in zip((0, 8, 16), reversed(signed)):
            h ^= (byte << shift) & MASK
        h = h * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return h ^ h >> 15


def places(key: str, *, bits: int, hashes: int) -> list[int]:
    h, found = 0, []
    for _ in range(hashes):
        h = murmur(key.encode(), h)
        found.append(abs(h - (1 << 32) if h >> 31 else h) % bits)
    return found


class Model:
    """A DYNAMIC_V0 filter that takes its keys one by one, as Hudi's does."""

    def __init__(self, *, num_entries: int, fpp: float, max_entries: int) -> None:
        self.bits, self.hashes = bloom_size(num_entries, fpp)
        self.n, self.most = num_entries, max_entries
        self.rows: list[set[int]] = [set()]
        self.count, self.turn, self.full = 0, 0, False

    def add(self, key: str) -> None:
        if self.full:
            row = self.rows[self.turn % len(self.rows)]
            self.turn += 1
        elif self.count >= self.n and len(self.rows) * self.n < self.most:
            row = set()
            self.rows.append(row)
            self.count = 0
        elif self.count >= self.n:
            self.full, row = True, self.rows[0]
        else:
            row = self.rows[-1]
        row.update(places(key, bits=self.bits, hashes=self.hashes))
        self.count += 1

    def to_bytes(self) -> bytes:
        row_header = struct.pack(">iibi", -1, self.hashes, 1, self.bits)
        head = row_header + struct.pack(">iii", self.n, self.count, len(self.rows))
        return head + b"".join(row_header + self._packed(row) for row in self.rows)

    def _packed(self, row: Iterable[int]) -> bytes:
        packed = bytearray((self.bits + 7) // 8)
        for bit in row:
            packed[bit >> 3] |= 1 << (bit & 7)
        return bytes(packed)

    def might_contain(self, key: str) -> bool:
        return any(row.issuperset(places(key, bits=self.bits, hashes=self.hashes)) for row in self.rows)


@pytest.mark.parametrize("type_code", VECTORS)
def test_filter_has_the_bytes_of_the_vector_and_finds_its_keys(type_code):
    built = build_bloom(type_code, VECTOR_KEYS, num_entries=10, fpp=0.01, max_entries=100)
    assert base64.b64encode(built.to_bytes()).decode() == VECTORS[type_code]
    parsed = parse_bloom(type_code, base64.b64decode(VECTORS[type_code]))
    assert parsed.might_contain(VECTOR_KEYS).all()
    assert parsed.to_bytes() == built.to_bytes()
    assert parsed.type_code == type_code


def test_a_missing_type_code_means_simple():
    assert parse_bloom(None, base64.b64decode(VECTORS["SIMPLE"])).type_code == "SIMPLE"


@pytest.mark.parametrize(
    ("num_entries", "fpp", "size"),
    [
        (60000, 1e-9, (2587966, 30)),
        (1000, 1e-9, (43133, 30)),
        (100, 1e-9, (4314, 30)),
        (50, 0.001, (719, 10)),
        (10, 0.01, (96, 7)),
    ],
)
def test_size_is_that_of_hudi(num_entries, fpp, size):
    assert bloom_size(num_entries, fpp) == size


@given(
    keys=st.lists(st.text(min_size=1), max_size=60),
    others=st.lists(st.text(min_size=1), max_size=20),
    num_entries=st.integers(1, 25),
    fpp=st.sampled_from([0.3, 0.01, 1e-9]),
    max_entries=st.integers(0, 70),
)
def test_filter_equals_the_model_that_adds_key_by_key(keys, others, num_entries, fpp, max_entries):
    sizes = {"num_entries": num_entries, "fpp": fpp, "max_entries": max_entries}
    built = build_bloom("DYNAMIC_V0", pa.array(keys, pa.string()), **sizes)
    model = Model(**sizes)
    for key in keys:
        model.add(key)
    assert built.to_bytes() == model.to_bytes()
    probes = keys + others
    expected = [model.might_contain(key) for key in probes]
    assert parse_bloom("DYNAMIC_V0", built.to_bytes()).might_contain(pa.array(probes, pa.string())).tolist() == expected


def test_rows_go_round_once_the_maximum_is_reached():
    # The sizes of the file of Hudi 1.2.0 that showed three rows and 130 keys counted for the last.
    keys = pa.array([f"kéy-{i}" for i in range(230)])
    data = build_bloom("DYNAMIC_V0", keys, num_entries=50, fpp=0.001, max_entries=120).to_bytes()
    assert struct.unpack_from(">iii", data, 13) == (50, 130, 3)


@given(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=40), st.integers(0, 5), st.integers(1, 7))
def test_filter_does_not_depend_on_how_arrow_holds_the_keys(keys, skip, step):
    sizes = {"num_entries": 7, "fpp": 0.01, "max_entries": 20}
    plain = build_bloom("DYNAMIC_V0", pa.array(keys), **sizes)
    sliced = pa.array(["before"] * skip + keys + ["behind"])[skip : skip + len(keys)]
    shapes = [
        sliced,
        pa.array(keys, pa.large_string()),
        pa.array(keys).dictionary_encode(),
        pa.chunked_array([sliced[at : at + step] for at in range(0, len(keys), step)]),
    ]
    for shape in shapes:
        assert build_bloom("DYNAMIC_V0", shape, **sizes).to_bytes() == plain.to_bytes()
    for shape in shapes[:3]:
        assert plain.might_contain(shape).all()


@pytest.mark.parametrize("length", [1, 3, 4, 7, 36, 1000])
def test_blocks_of_many_keys_of_one_length_equal_single_keys(length):
    keys = [f"{i}".rjust(length, "x")[-length:] for i in range(300)]
    whole = build_bloom("SIMPLE", pa.array(keys), num_entries=300, fpp=0.01, max_entries=0)
    uneven = build_bloom("SIMPLE", pa.array([*keys, "another length"]), num_entries=300, fpp=0.01, max_entries=0)
    bits, hashes = bloom_size(300, 0.01)
    expected = sorted({place for key in keys for place in places(key, bits=bits, hashes=hashes)})
    assert np.flatnonzero(np.unpackbits(whole.rows[0], bitorder="little")).tolist() == expected
    assert uneven.might_contain(pa.array(keys)).all()


@pytest.mark.parametrize("type_code", ["SIMPLE", "DYNAMIC_V0"])
def test_keys_hashed_once_get_the_answers_of_each_filter(type_code):
    held = pa.array([f"key-{n}" for n in range(200)])
    sought = pa.array([f"{word}-{n}" for word in ("key", "other", "z") for n in range(190, 260)])
    for entries, fpp in ((20, 0.3), (64, 1e-4)):
        bloom = build_bloom(type_code, held, num_entries=entries, fpp=fpp, max_entries=120)
        said = bloom.might_contain(sought).tolist()
        chains = hash_chains(sought, bloom.hashes + 2)
        assert [bloom.might_contain_one(chains[:, at : at + 1]) for at in range(len(sought))] == said
        assert bloom.might_contain_one(chains)
        assert bloom.might_contain_one(chains[:, 70:]) == any(said[70:])


def test_more_keys_than_a_block_are_all_found():
    keys = pa.array([f"key{i}" for i in range(40_000)])
    built = build_bloom("DYNAMIC_V0", keys, num_entries=40_000, fpp=1e-4, max_entries=40_000)
    assert built.might_contain(keys).all()
    assert not built.might_contain(pa.array([f"kez{i}" for i in range(40_000)])).mean() > 1e-3


@pytest.mark.parametrize("type_code", TYPES)
def test_false_positives_come_at_the_rate_asked_for(type_code):
    # pybloom-live hashes and sizes on its own: an independent witness that Hudi's sizes keep what they promise.
    keys = pa.array([f"in-{i:07d}" for i in range(4_000)])
    built = build_bloom(type_code, keys, num_entries=4_000, fpp=0.01, max_entries=4_000)
    wrong = built.might_contain(pa.array([f"out-{i:07d}" for i in range(20_000)])).mean()
    assert 0.006 < wrong < 0.014


@pytest.mark.parametrize("type_code", TYPES)
def test_round_trip_through_bytes_keeps_every_answer(type_code):
    keys = pa.array([f"{i}" for i in range(500)])
    built = build_bloom(type_code, keys, num_entries=100, fpp=0.05, max_entries=300)
    parsed = parse_bloom(type_code, built.to_bytes())
    probes = pa.array([f"{i}" for i in range(2_000)])
    assert parsed.type_code == type_code
    assert parsed.to_bytes() == built.to_bytes()
    assert parsed.might_contain(keys).all()
    assert parsed.might_contain(probes).tolist() == built.might_contain(probes).tolist()


@pytest.mark.parametrize("type_code", TYPES)
def test_an_empty_filter_holds_nothing_and_an_empty_key_is_not_ruled_out(type_code):
    empty = build_bloom(type_code, pa.array([], pa.string()), num_entries=10, fpp=0.01, max_entries=10)
    assert empty.might_contain(pa.array(["a", "", "longer than four"])).tolist() == [False, True, False]
    assert empty.might_contain(pa.array([], pa.string())).tolist() == []


@pytest.mark.parametrize("type_code", TYPES)
@pytest.mark.parametrize("keys", [["a", None], ["a", ""], [""]])
def test_null_and_empty_keys_are_refused(type_code, keys):
    with pytest.raises(KeyFieldError, match=r"null|empty"):
        build_bloom(type_code, pa.array(keys), num_entries=10, fpp=0.01, max_entries=10)


def test_keys_that_are_no_strings_are_refused():
    with pytest.raises(SchemaError, match="int64"):
        build_bloom("SIMPLE", pa.array([1]), num_entries=10, fpp=0.01, max_entries=10)


@pytest.mark.parametrize("type_code", TYPES)
@pytest.mark.parametrize(("num_entries", "fpp"), [(0, 0.01), (10, 0.0), (10, 1.0), (10, math.nan)])
def test_impossible_sizes_are_refused(type_code, num_entries, fpp):
    with pytest.raises(OptionError):
        build_bloom(type_code, VECTOR_KEYS, num_entries=num_entries, fpp=fpp, max_entries=10)


def test_a_filter_too_large_for_a_footer_is_refused_before_it_is_made():
    with pytest.raises(OptionError, match="footer"):
        build_bloom("SIMPLE", VECTOR_KEYS, num_entries=1 << 30, fpp=1e-9, max_entries=0)
    keys = pa.array(["a"]).take(pa.array(np.zeros(300_000, np.int32)))
    with pytest.raises(OptionError, match="70000 rows"):
        build_bloom("DYNAMIC_V0", keys, num_entries=1, fpp=0.5, max_entries=70_000)
    with pytest.raises(OptionError, match="300 rows"):  # each would fit
        build_bloom("DYNAMIC_V0", keys, num_entries=1_000, fpp=1e-300, max_entries=300_000)


@pytest.mark.parametrize("fpp", [0.5, 0.01, 1e-9, 1e-300])
def test_most_entries_is_the_last_number_that_fits(fpp):
    assert bloom_size(most_entries(fpp), fpp)[0] <= MAX_BITS
    with pytest.raises(OptionError):
        bloom_size(most_entries(fpp) + 1, fpp)


@pytest.mark.parametrize("type_code", TYPES)
def test_bytes_cut_anywhere_or_with_a_tail_are_corrupt(type_code):
    data = build_bloom(type_code, VECTOR_KEYS, num_entries=2, fpp=0.1, max_entries=4).to_bytes()
    for cut in range(len(data)):
        with pytest.raises(CorruptFileError):
            parse_bloom(type_code, data[:cut])
    with pytest.raises(CorruptFileError):
        parse_bloom(type_code, data + b"\x00")


BAD_HEADERS = {
    "other version": (1, 7, 1, 96),
    "other hash": (-1, 7, 0, 96),
    "no hashes": (-1, 0, 1, 96),
    "hashes without end": (-1, 2**31 - 1, 1, 96),
    "no bits": (-1, 7, 1, 0),
    "negative bits": (-1, 7, 1, -96),
    "more bits than bytes": (-1, 7, 1, 2**31 - 1),
}


@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_an_impossible_header_is_corrupt_and_allocates_nothing(header):
    row = struct.pack(">iibi", *header) + bytes(12)
    with pytest.raises(CorruptFileError):
        parse_bloom("SIMPLE", row)
    with pytest.raises(CorruptFileError):
        parse_bloom("DYNAMIC_V0", row[:13] + struct.pack(">iii", 10, 0, 1) + row)


@pytest.mark.parametrize("rows", [0, -1, 2, 2**31 - 1])
def test_a_wrong_number_of_rows_is_corrupt(rows):
    data = bytearray(base64.b64decode(VECTORS["DYNAMIC_V0"]))
    struct.pack_into(">i", data, 21, rows)
    with pytest.raises(CorruptFileError, match="rows"):
        parse_bloom("DYNAMIC_V0", bytes(data))


def test_a_row_with_another_header_than_the_filter_is_corrupt():
    data = bytearray(build_bloom("DYNAMIC_V0", VECTOR_KEYS, num_entries=1, fpp=0.1, max_entries=3).to_bytes())
    data[-(13 + 1) + 7] ^= 1
    with pytest.raises(CorruptFileError, match="row 2"):
        parse_bloom("DYNAMIC_V0", bytes(data))


@pytest.mark.parametrize("type_code", TYPES)
def test_any_changed_byte_is_an_error_or_a_filter(type_code):
    data = build_bloom(type_code, VECTOR_KEYS, num_entries=3, fpp=0.1, max_entries=3).to_bytes()
    for at, change in itertools.product(range(len(data)), (0x01, 0x80, 0xFF)):
        changed = bytearray(data)
        changed[at] ^= change
        try:
            parsed = parse_bloom(type_code, bytes(changed))
        except (CorruptFileError, UnsupportedTableError):
            continue
        assert len(parsed.might_contain(VECTOR_KEYS)) == 3


def test_an_unknown_type_is_named_with_the_known_ones():
    with pytest.raises(UnsupportedTableError, match=r"'CUCKOO'.*DYNAMIC_V0.*SIMPLE"):
        parse_bloom("CUCKOO", b"")


class AnyKey:
    """A filter that rules nothing out."""

    type_code = "ANY_KEY"

    def might_contain(self, keys):
        return np.ones(len(keys), np.bool_)

    def to_bytes(self):
        return b""


def test_a_registered_type_is_built_and_parsed():
    def build(keys, *, num_entries, fpp, max_entries):
        return AnyKey()

    register_bloom("ANY_KEY", build, lambda data: AnyKey())
    built: BloomFilter = build_bloom("ANY_KEY", VECTOR_KEYS, num_entries=1, fpp=0.1, max_entries=1)
    assert parse_bloom("ANY_KEY", built.to_bytes()).might_contain(VECTOR_KEYS).all()


def test_pybloom_filter_of_another_version_of_the_package_is_refused():
    data = bytearray(build_bloom("PYBLOOM_LIVE", VECTOR_KEYS, num_entries=3, fpp=0.1, max_entries=3).to_bytes())
    data[4] ^= 1  # the witness: where this version's hashes put a fixed key
    with pytest.raises(UnsupportedTableError, match="another version of pybloom-live"):
        parse_bloom("PYBLOOM_LIVE", bytes(data))


def test_pybloom_type_without_the_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pybloom_live", None)
    with pytest.raises(UnsupportedTableError, match=r"pip install 'hoodie\[pybloom\]'"):
        build_bloom("PYBLOOM_LIVE", VECTOR_KEYS, num_entries=3, fpp=0.1, max_entries=3)
