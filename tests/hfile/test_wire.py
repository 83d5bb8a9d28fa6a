"""Protobuf's wire format and Hadoop's numbers, by their published examples and by round trips."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import varint
from hoodie.hfile.wire import (
    Field,
    decode_delimited,
    decode_hadoop_int,
    decode_message,
    decode_varint,
    encode_delimited,
    encode_hadoop_int,
    encode_message,
    hadoop_int_size,
)

FIELDS = st.lists(
    st.builds(Field, st.integers(1, 1 << 28), st.integers(0, (1 << 64) - 1) | st.binary(max_size=300)), max_size=5
)


@pytest.mark.parametrize(("value", "coded"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02")])
def test_varints_are_those_of_protobuf(value, coded):
    assert varint(value) == bytes.fromhex(coded)


@pytest.mark.parametrize(
    ("value", "coded"),
    [(0, "00"), (127, "7f"), (128, "8f80"), (205, "8fcd"), (256, "8e0100"), (-1, "ff"), (-112, "90"), (-113, "8770")],
)
def test_hadoop_numbers_are_those_of_hadoop(value, coded):
    data = bytes.fromhex(coded)
    assert decode_hadoop_int(data, 0) == (value, len(data))
    assert hadoop_int_size(data[0]) == len(data)
    assert value < 0 or encode_hadoop_int(value) == data


@given(st.integers(0, (1 << 63) - 1), st.binary(max_size=3))
def test_numbers_come_back(value, before):
    for encode, decode in ((varint, decode_varint), (encode_hadoop_int, decode_hadoop_int)):
        data = before + encode(value)
        assert decode(data + b"\x05", len(before)) == (value, len(data))
        for cut in range(len(before), len(data)):
            with pytest.raises(CorruptFileError):
                decode(data[:cut], len(before))


@given(FIELDS)
def test_messages_come_back(fields):
    assert list(decode_message(encode_message(fields))) == fields
    data = encode_delimited(encode_message(fields))
    assert decode_delimited(data + b"more", 0) == (encode_message(fields), len(data))


def test_fields_of_fixed_width_are_passed_over():
    data = bytes.fromhex("0d01020304") + bytes.fromhex("110102030405060708") + encode_message([Field(3, 7)])
    assert [field.number for field in decode_message(data)] == [1, 2, 3]


@pytest.mark.parametrize(
    "coded", ["08", "0aff01", "0b", "0d0000", "08" + "ff" * 10 + "01", "08" + "ff" * 9 + "02"], ids=str
)
def test_what_is_no_message_is_refused(coded):
    with pytest.raises(CorruptFileError):
        list(decode_message(bytes.fromhex(coded)))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_refused(data):
    with suppress(CorruptFileError):
        list(decode_message(data))
