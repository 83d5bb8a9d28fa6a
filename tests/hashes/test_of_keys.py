"""The hash of keys: one value a text, wherever it stands."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.hashes.of_keys import key_hash

MASK = (1 << 64) - 1
TEXTS = st.lists(st.text(max_size=20), max_size=20)


def model(text):
    data = text.encode()
    total = len(data)
    for at in range(0, len(data), 8):
        total = (total ^ int.from_bytes(data[at : at + 8], "little")) * 0x9E3779B97F4A7C15 & MASK
        total ^= total >> 32
    total = total * 0xFF51AFD7ED558CCD & MASK
    return total ^ (total >> 33)


@pytest.mark.parametrize(
    ("key", "value"),
    [("", 0), ("a", 0xE99104CD931AC485), ("key-1", 0x26DE62051EE0A532), ("\U0001f600", 0x7DF08FD382B0E13D)],
)
def test_known_values(key, value):
    assert int(key_hash(pa.array([key]))[0]) == value


@given(TEXTS)
def test_hashes_are_those_of_the_model(texts):
    assert key_hash(pa.array(texts, pa.string())).tolist() == [model(text) for text in texts]


@given(TEXTS, st.integers(0, 20), st.integers(0, 20))
def test_a_key_hashes_alike_in_slices_chunks_and_large_strings(texts, start, length):
    whole = pa.array(texts, pa.string())
    expected = key_hash(whole).tolist()
    assert key_hash(whole.slice(start, length)).tolist() == expected[start : start + length]
    assert key_hash(pa.chunked_array([whole[:start], whole[start:]], pa.string())).tolist() == expected
    assert key_hash(whole.cast(pa.large_string())).tolist() == expected


@pytest.mark.parametrize("count", [1, 255, 1000, 17_000])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 24, 36, 129])
def test_keys_of_one_length_hash_like_any_others(count, length):
    rng = np.random.default_rng(length)
    texts = ["".join(letters) for letters in rng.choice(list("0123456789abcdef"), (count, length))]
    expected = [model(text) for text in texts]
    assert key_hash(pa.array(texts, pa.string())).tolist() == expected
    beside = pa.array(["a longer one than the first", *texts, "x" * (length + 1)], pa.string())
    assert key_hash(beside).tolist()[1:-1] == expected
    assert key_hash(beside[1:-1]).tolist() == expected


def test_no_keys():
    assert key_hash(pa.array([], pa.string())).tolist() == []
    assert key_hash(pa.chunked_array([], pa.string())).tolist() == []
    assert key_hash(pa.array(["", ""])).tolist() == [0, 0]


def test_like_keys_are_spread_evenly_over_shares():
    for keys in ([f"key-{i:08d}" for i in range(20_000)], [str(i) for i in range(20_000)]):
        shares = key_hash(pa.array(keys)) % 10
        counts = [int((shares == share).sum()) for share in range(10)]
        assert min(counts) > 1_800
        assert max(counts) < 2_200


def test_order_of_characters_matters():
    assert len(set(key_hash(pa.array(["ab", "ba", "aab", "aba", "a", "aa", "\0", "\0\0"])).tolist())) == 8


@pytest.mark.parametrize(
    "keys",
    [
        [f"{i:08d}" for i in range(100_000)],
        [f"{i:024d}" for i in range(100_000)],
        [f"user:{i},day:{i % 30:02d}" for i in range(100_000)],
        [f"{i % 300:08d}{i // 300:08d}" for i in range(90_000)],
        [f"{i % 256:02x}" + "0" * 14 + f"{i // 256:02x}" for i in range(65_536)],
    ],
    ids=["digits of a word", "zeros before", "composite", "two words", "ends of two words"],
)
def test_the_upper_bits_tell_like_keys_apart(keys):
    """Look-ups sort by them. Of 100,000 random numbers of 44 bits 0.0003 pairs are alike."""
    assert len(np.unique(key_hash(pa.array(keys)) >> np.uint64(20))) >= len(keys) - 3
