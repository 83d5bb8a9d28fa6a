"""The hash of keys: one value a text, wherever it stands."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.filegroup.hashing import key_hash

MASK = (1 << 64) - 1
TEXTS = st.lists(st.text(max_size=20), max_size=20)


def model(text):
    power, total = 1, 0
    for byte in text.encode():
        total = (total + (byte + 1) * power) & MASK
        power = power * 0x9E3779B97F4A7C15 & MASK
    total ^= total >> 33
    total = total * 0xFF51AFD7ED558CCD & MASK
    return total ^ (total >> 33)


@pytest.mark.parametrize(
    ("key", "value"),
    [("", 0), ("a", 0xBD4550A8841D4E2E), ("key-1", 0x24E2B4D6EF1FB09F), ("\U0001f600", 0x8BF6C72BBB959571)],
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


@pytest.mark.parametrize("count", [1, 255, 256, 1000])
@pytest.mark.parametrize("length", [0, 1, 2, 24, 128, 129, 400])
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
