"""The numbers and messages inside HFiles: protobuf's wire format, and the variable-length integers of Hadoop.

Both spell 0 to 127 as one byte, and differ from 128 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import varint

VARINT = 0
LENGTH_DELIMITED = 2
_FIXED_BYTES = {1: 8, 5: 4}
_MOST_BITS = 64


class Field(NamedTuple):
    """One field of a message: an int where its wire type is `VARINT`, else bytes."""

    number: int
    value: int | bytes


def decode_varint(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """The number at the offset, and the offset behind it.

    Raises:
        CorruptFileError: the data ends first, or the number has more than 64 bits.
    """
    value = shift = 0
    while shift < _MOST_BITS:
        if offset >= len(data):
            raise CorruptFileError(f"a number at byte {offset} of a message is cut off")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if shift >= _MOST_BITS or value >> _MOST_BITS:
        raise CorruptFileError(f"a number before byte {offset} of a message has more than 64 bits")
    return value, offset


def encode_message(fields: Iterable[Field]) -> bytes:
    """The fields in their order, without a length in front."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3 | VARINT), varint(value)]
        else:
            parts += [varint(number << 3 | LENGTH_DELIMITED), varint(len(value)), value]
    return b"".join(parts)


def decode_message(data: bytes | memoryview) -> Iterator[Field]:
    """The fields of a message that is all of the data; fields of fixed width come as their bytes.

    Raises:
        CorruptFileError: the data is no message.
    """
    offset = 0
    while offset < len(data):
        tag, offset = decode_varint(data, offset)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, offset = decode_varint(data, offset)
            yield Field(number, value)
            continue
        if kind == LENGTH_DELIMITED:
            size, offset = decode_varint(data, offset)
        elif kind in _FIXED_BYTES:
            size = _FIXED_BYTES[kind]
        else:
            raise CorruptFileError(f"field {number} of a message has the unknown wire type {kind}")
        if size > len(data) - offset:
            raise CorruptFileError(f"field {number} of a message takes {size} bytes, {len(data) - offset} are left")
        yield Field(number, bytes(data[offset : offset + size]))
        offset += size


def encode_delimited(message: bytes) -> bytes:
    """A message with its length in front."""
    return varint(len(message)) + message


def decode_delimited(data: bytes | memoryview, offset: int) -> tuple[bytes, int]:
    """The message whose length stands at the offset, and the offset behind it.

    Raises:
        CorruptFileError: the data ends first.
    """
    size, offset = decode_varint(data, offset)
    if size > len(data) - offset:
        raise CorruptFileError(f"a message at byte {offset} takes {size} bytes, {len(data) - offset} are left")
    return bytes(data[offset : offset + size]), offset + size


def encode_hadoop_int(value: int) -> bytes:
    """A number from 0 up to 2**63: a byte, or a byte that counts the big-endian ones behind it."""
    if value <= 0x7F:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([0x90 - size]) + value.to_bytes(size, "big")


def decode_hadoop_int(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """The number at the offset, which may be negative, and the offset behind it.

    Raises:
        CorruptFileError: the data ends first.
    """
    if offset >= len(data):
        raise CorruptFileError(f"a number at byte {offset} is cut off")
    first = data[offset] - (data[offset] >> 7 << 8)
    if first >= -112:
        return first, offset + 1
    size = -(first + 112) if first >= -120 else -(first + 120)
    if size > len(data) - offset - 1:
        raise CorruptFileError(f"a number at byte {offset} takes {size} bytes, {len(data) - offset - 1} are left")
    value = int.from_bytes(data[offset + 1 : offset + 1 + size], "big")
    return (value if first >= -120 else ~value), offset + 1 + size


def hadoop_int_size(first: int) -> int:
    """How many bytes a number takes that begins with this byte (0 to 255)."""
    signed = first - (first >> 7 << 8)
    return 1 if signed >= -112 else 1 - (signed + 112) if signed >= -120 else 1 - (signed + 120)
