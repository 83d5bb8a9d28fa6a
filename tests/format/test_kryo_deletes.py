"""Delete blocks of versions 1 and 2, as Apache Hudi 0.12.2 wrote them: arrays of Java objects in Kryo's bytes."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.cursor import i32
from hoodie.format.delete_codec import decode_deletes, encode_deletes
from hoodie.format.kryo_deletes import avro_deletes

MODEL = b"org.apache.hudi.common.model."
RECORD = b"\x01\x01" + MODEL + b"DeleteRecor\xe4\x01"
KEY = b"\x01\x02" + MODEL + b"HoodieKe\xf9\x01"
K1_IN_P = b"\x01\x82p\x01k\xb1"


def records(count, items):
    return b"\x01\x00[L" + MODEL + b"DeleteRecord\xbb\x01" + bytes([count + 1]) + items


def block(content, version=2):
    return i32(version) + i32(len(content)) + content


def one(ordering):
    return records(1, RECORD + KEY + K1_IN_P + ordering)


@pytest.mark.parametrize(
    ("written", "kind", "read"),
    [
        (b"\x02\x0a", pa.int32(), 5),
        (b"\x02\x00", pa.int32(), None),  # wins always
        (b"\x02\x00", pa.int64(), None),
        (b"\x09\x0d", pa.int64(), -7),
        (b"\x09\x96\x93\xd8\x9f\xee\x47", pa.int64(), 1234567890123),
        (b"\x09\x0c", pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 0, 6, tzinfo=UTC)),
        (b"\x04\x40\x20\x00\x00", pa.float32(), 2.5),
        (b"\x0a\xc0\x04\x00\x00\x00\x00\x00\x00", pa.float64(), -2.5),
        (b"\x05\x01", pa.bool_(), True),
        (b"\x03\x01z\xfa", pa.string(), "zz"),
        (b"\x03\x01\x85\xc3\xbc\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80", pa.string(), "ü€😀"),
        (b"\x0c\x01\x04utf", pa.string(), "utf"),
        (b"\x01\x03java.math.BigDecima\xec\x01\x03\x01\x3a\x04", pa.decimal128(10, 2), Decimal("3.14")),
        (b"\x00", pa.int64(), None),
        (b"\x08\x00\x03", pa.int32(), 3),
    ],
)
def test_an_ordering_value_of_each_class_is_read(written, kind, read):
    found = decode_deletes(block(one(written)), kind).to_pylist()
    assert found == [{"record_key": "k1", "partition_path": "p", "ordering": read}]


def test_names_of_classes_and_paths_stand_once_and_are_found_again():
    path = "2024/01/01"
    content = records(
        6,
        RECORD
        + KEY
        + b"\x01\x82p\x01\x82a\x09\x02"
        + b"\x01\x01\x01\x01\x02\x01\x01"
        + b"2024/01/0\xb1\x01a\xe2\x09\x04"
        + b"\x01\x01\x01\x01\x02\x01\x09\x01\x84\xed\xa0\xbd\xed\xb8\x80\xc3\xbc\x09\x06"
        + b"\x01\x01\x01\x01\x02\x01\x01\x81\x10\x09\x08"
        + b"\x01\x01\x01\x01\x02\x01\x09\x01\xc7\x01"
        + b"x" * 70
        + b"\x09\x0a"
        + b"\x01\x01\x01\x01\x02\x01\x00\x01\xfd\x0a"
        + "é".encode() * 700
        + b"\x09\x0c",
    )
    found = decode_deletes(block(content), pa.int64()).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("a", "p", 1),
        ("ab", path, 2),
        ("😀ü", path, 3),
        ("", "", 4),
        ("x" * 70, path, 5),
        ("é" * 700, None, 6),
    ]


def test_blocks_of_version_1_have_keys_alone_and_win_always():
    content = (
        b"\x01\x00[L" + MODEL + b"HoodieKey\xbb\x01\x03\x01\x01" + MODEL + b"HoodieKe\xf9\x01\x01p\xb1\x01\x82a"
        b"\x01\x01\x01\x04\x01\x82b"
    )
    found = decode_deletes(block(content, version=1), pa.int64()).to_pylist()
    assert [tuple(row.values()) for row in found] == [("a", "p1", None), ("b", "p1", None)]


def test_a_list_of_none_is_read():
    assert decode_deletes(block(records(0, b"")), pa.int64()).num_rows == 0


def test_what_is_read_is_what_version_3_says():
    keys, paths, ordering = pa.array(["k1"]), pa.array(["p"]), pa.array([-7], pa.int64())
    assert i32(3) + i32(len(avro_deletes(one(b"\x09\x0d")))) + avro_deletes(one(b"\x09\x0d")) == encode_deletes(
        keys, paths, ordering
    )


@pytest.mark.parametrize("cut", range(len(one(b"\x0c\x01\x04utf"))))
def test_cut_bytes_are_damage(cut):
    with pytest.raises(CorruptFileError):
        decode_deletes(block(one(b"\x0c\x01\x04utf")[:cut]), pa.string())


@pytest.mark.parametrize(
    "content",
    [
        b"\x01\x00java.util.ArrayLis\xf4\x01\x01",
        records(1, b"\x03\x01k\xb1"),
        records(1, RECORD + b"\x03\x01k\xb1"),
        one(b"\x09\x0d") + b"\x00",
        one(b"\x03\x02"),
        one(b"\x03\x7f"),
        b"\xff" * 20,
    ],
)
def test_other_bytes_are_damage(content):
    with pytest.raises(CorruptFileError):
        decode_deletes(block(content), pa.int64())


@given(st.binary(max_size=60), st.integers(0, len(one(b"\x09\x0d"))))
@settings(max_examples=300)
def test_arbitrary_bytes_are_a_delete_list_or_an_error(body, at):
    for content in (body, one(b"\x09\x0d")[:at] + body, one(b"")[:at] + body):
        for kind in (pa.int64(), pa.string(), pa.decimal128(10, 2)):
            try:
                assert decode_deletes(block(content), kind).num_rows >= 0
            except (CorruptFileError, UnsupportedTableError):
                continue


def test_an_ordering_value_of_another_class_is_named():
    with pytest.raises(UnsupportedTableError, match=r"java\.sql\.Date"):
        decode_deletes(block(one(b"\x01\x03java.sql.Dat\xe5\x01\x80\xa0\xe1\xbb\xcc\x31")), pa.date32())
