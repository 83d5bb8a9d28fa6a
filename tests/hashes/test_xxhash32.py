import pyarrow as pa
import pytest

from hoodie.hashes.xxhash32 import xxhash32

# Of the reference implementation (libxxhash's own vectors and lz4-java's, which Apache Hudi uses).
VECTORS = [
    ("", 0, 0x02CC5D05),
    ("a", 0, 0x550D7456),
    ("abc", 0, 0x32D153FF),
    ("Nobody inspects the spammish repetition", 0, 0xE2293B2F),
    ("", 1, 0x0B2CB792),
]


@pytest.mark.parametrize(("text", "seed", "expected"), VECTORS)
def test_published_vectors(text, seed, expected):
    assert int(xxhash32(pa.array([text]), seed)[0]) == expected


def plain(data, seed=0):
    """The specification, byte by byte."""
    mask, (p1, p2, p3, p4, p5) = 0xFFFFFFFF, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)

    def rotated(value, by):
        return (value << by | value >> 32 - by) & mask

    def word(at):
        return int.from_bytes(data[at : at + 4], "little")

    at = 0
    if len(data) >= 16:
        lanes = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while at + 16 <= len(data):
            lanes = [rotated((lane + word(at + 4 * n) * p2) & mask, 13) * p1 & mask for n, lane in enumerate(lanes)]
            at += 16
        hashed = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    else:
        hashed = (seed + p5) & mask
    hashed = (hashed + len(data)) & mask
    while at + 4 <= len(data):
        hashed = rotated((hashed + word(at) * p3) & mask, 17) * p4 & mask
        at += 4
    for byte in data[at:]:
        hashed = rotated((hashed + byte * p5) & mask, 11) * p1 & mask
    hashed = (hashed ^ hashed >> 15) * p2 & mask
    hashed = (hashed ^ hashed >> 13) * p3 & mask
    return hashed ^ hashed >> 16


def test_texts_of_all_lengths_in_one_column_in_any_order():
    texts = ["é😀" * (n % 7) + "x" * n for n in (*range(0, 70), 1000, 3, 200)]
    expected = [plain(text.encode()) for text in texts]
    assert xxhash32(pa.array(texts)).tolist() == expected
    assert xxhash32(pa.array(["cut away", *texts, "this"]).slice(1, len(texts))).tolist() == expected
    assert xxhash32(pa.array([None, ""], pa.string())).tolist() == [plain(b"")] * 2
    assert xxhash32(pa.array([], pa.string())).tolist() == []
