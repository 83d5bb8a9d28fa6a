"""Keys sorted by hash: the pairs of equal ones, whichever side has more, and however their hashes fall."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.format.base_file import BaseFileFooter
from hoodie.index import hash_index
from hoodie.index.hash_index import HashedKeys, HashIndex, confirmed
from hoodie.index.stored_keys import KeyBlock, KnownFile

FOOTER = BaseFileFooter("f", 3, None, None, None, None, None)
KEYS = st.lists(st.sampled_from([f"k{n}" for n in range(40)]), max_size=60)


def strings(keys):
    return pa.array(keys, pa.string())


def pairs_by_hand(sought, stored):
    return [(number, row) for number, key in enumerate(sought) for row, other in enumerate(stored) if other == key]


@pytest.mark.parametrize("hashes", [1, 3, 2**64 - 1], ids=["all alike", "three", "of all bits"])
@settings(max_examples=200, deadline=None)
@given(stored=KEYS, sought=KEYS)
def test_each_key_meets_every_row_that_has_it(hashes, stored, sought):
    def hashed(keys):
        return np.array([hash(key) % hashes for key in keys.to_pylist()], dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "key_hash", hashed)
        patch.setattr(hash_index, "_MANY_OF_A_HASH", 1000)
        numbers, rows = HashIndex(strings(stored)).pairs(HashedKeys(strings(sought)))
    same = confirmed(strings(sought), numbers, strings(stored), rows)
    found = list(zip(numbers[same].tolist(), rows[same].tolist(), strict=True))
    assert sorted(found) == pairs_by_hand(sought, stored)
    for number in range(len(sought)):
        of_key = [row for other, row in found if other == number]
        assert of_key == sorted(of_key)


@pytest.mark.parametrize(("stored", "sought"), [(5000, 30), (30, 5000), (1, 1), (1024, 1024), (1025, 1)])
def test_rows_of_many_and_of_few(stored, sought):
    keys = strings([f"key-{n}" for n in range(stored)])
    wanted = strings([f"key-{7 * n}" for n in range(sought)])
    numbers, rows = HashIndex(keys).pairs(HashedKeys(wanted))
    found = dict(zip(numbers.tolist(), rows.tolist(), strict=True))
    assert found == {n: 7 * n for n in range(sought) if 7 * n < stored}


def test_keys_that_were_made_to_have_one_hash_take_no_room_for_all_their_pairs(monkeypatch):
    monkeypatch.setattr(hash_index, "key_hash", lambda keys: np.full(len(keys), 7 << 40, dtype=np.uint64))
    keys = [f"key-{n}" for n in range(300)]
    assert HashIndex(strings(keys)).pairs(HashedKeys(strings(keys))) is None
    files = [KnownFile(FOOTER) for _ in range(2)]
    for file, stored in zip(files, (keys, ["other"]), strict=True):
        file.keys = strings(stored)
    wanted = HashedKeys(strings(["absent", *keys[::-1]] * 2))
    expected = [-1, *range(299, -1, -1)] * 2
    assert files[0].places(wanted).tolist() == expected
    found = KeyBlock(files).places(wanted)
    assert {file: places.tolist() for file, places in found.items()} == {files[0]: expected}
