"""CRC32C against its definition, and chunks of blocks."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.hashes.crc32c import crc32c, crc32c_of_rows
from hoodie.hfile.checksums import ChecksumKind, checksum_bytes, checksums


def by_definition(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),  # RFC 3720, B.4
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_is_that_of_the_standard(data, expected):
    assert crc32c(data) == expected


@given(st.binary(max_size=700))
def test_crc32c_of_any_length(data):
    assert crc32c(data) == by_definition(data)


@given(st.integers(4, 90), st.integers(1, 5), st.randoms(use_true_random=False))
def test_rows_are_taken_each_by_itself(size, count, random):
    rows = np.frombuffer(random.randbytes(size * count), np.uint8).reshape(count, size)
    assert crc32c_of_rows(rows).tolist() == [by_definition(row.tobytes()) for row in rows]


@pytest.mark.parametrize("chunk", [3, 8, 16, 100])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 99, 200])
def test_each_chunk_has_its_checksum(chunk, size):
    data = bytes(number * 7 & 0xFF for number in range(size))
    pieces = [data[at : at + chunk] for at in range(0, size, chunk)]
    for kind, one in ((ChecksumKind.CRC32, zlib.crc32), (ChecksumKind.CRC32C, by_definition)):
        found = checksums(kind, data, chunk)
        assert found == b"".join(one(piece).to_bytes(4, "big") for piece in pieces)
        assert len(found) == checksum_bytes(size, chunk)
    assert checksums(ChecksumKind.NONE, data, chunk) == bytes(checksum_bytes(size, chunk))
