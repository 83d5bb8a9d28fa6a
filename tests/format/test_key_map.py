"""Key maps of base files: where in them keys stand."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from hoodie.format import key_map as module
from hoodie.format.key_map import encode_key_map, key_map_of
from hoodie.hashes.of_keys import map_hash

ROWS = 40_000
KEYS = pa.array([f"key {n}" for n in range(2 * ROWS)])
HASHES = map_hash(KEYS)


def file_with(body, footer=b"a footer"):
    return memoryview(b"PAR1" + b"columns" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_hashes_are_the_same_for_ever():
    keys = pa.array(["", "a", "12345678", "a key of more than eight bytes", "Füße"])
    assert map_hash(keys).tolist() == [0, 3918595277, 2950161177, 1103403108, 3147815731]


@pytest.mark.parametrize("rows", [16_384, 16_385, ROWS, 2 * ROWS])
def test_a_map_knows_the_block_of_each_key(rows):
    found = key_map_of(file_with(encode_key_map(HASHES[:rows])))
    assert found.missing(HASHES[:rows], 0) == 0
    assert found.missing(HASHES[100:rows], 100) == 0
    for numbers in (np.arange(rows), np.array([3]), np.arange(0, rows, 997), np.empty(0, np.int64)):
        places = found.blocks_of(HASHES[numbers])
        assert places.rows == rows
        assert set(enumerate((numbers >> places.shift).tolist())) <= set(
            zip(places.numbers.tolist(), places.blocks.tolist(), strict=True)
        )


def test_a_map_knows_what_is_not_there():
    found = key_map_of(file_with(encode_key_map(HASHES[:ROWS])))
    assert len(found.blocks_of(HASHES[ROWS:]).numbers) < ROWS // 1_000
    assert found.missing(HASHES[ROWS:], 0) > ROWS - 10


def test_small_and_huge_files_and_those_of_few_keys_have_none(monkeypatch):
    assert encode_key_map(HASHES[:16_383]) == b""
    assert encode_key_map(np.tile(HASHES[:100], 300)) == b""
    assert key_map_of(file_with(b"")) is None
    assert not module.may_have_key_map(1_000)
    monkeypatch.setattr(module, "_MOST_ROWS", 16_384)
    assert encode_key_map(HASHES[:16_384])
    assert encode_key_map(HASHES[:16_385]) == b""
    monkeypatch.setattr(module, "_LEAST_ROWS", 8)
    small = key_map_of(file_with(encode_key_map(HASHES[:8])))
    assert small.missing(HASHES[:8], 0) == 0


def test_a_damaged_map_is_none():
    body = encode_key_map(HASHES[:ROWS])
    random = np.random.default_rng(5)
    for at in [*random.integers(0, len(body), 50).tolist(), *range(len(body) - 24, len(body))]:
        damaged = bytearray(body)
        damaged[at] ^= 1 << int(random.integers(8))
        found = key_map_of(file_with(bytes(damaged)))
        assert found is None or found.missing(HASHES[:ROWS], 0) == 0, at
    for sizes in (
        (ROWS, 12, 200, 0),
        (ROWS, 0, 8, 0),
        (ROWS, 30, 8, 0),
        (ROWS - 1, 12, 8, 0),
        (2**32 - 1, 12, 8, 0),
        (0, 1, 0, 0),
    ):
        stated = module._SIZES.pack(*sizes)
        rows, bits = sizes[:2]
        content = body[max(0, len(body) - 24 - (1 << bits) - 3 * rows) : -24] + stated
        tail = stated + zlib.crc32(content).to_bytes(4, "little") + module._MAGIC
        assert key_map_of(file_with(body[:-24] + tail)) is None, sizes
    for cut in (b"", body[:-1], body[1:], body[-24:], body[-23:]):
        assert key_map_of(file_with(cut)) is None
    for data in (b"", b"PAR1", b"\xff" * 8, b"\xff" * 100, body):
        assert key_map_of(memoryview(data)) is None
