"""Thrift's compact protocol, as Parquet's footers and page headers have it."""

from __future__ import annotations

from typing import TypeAlias

from hoodie.format.avro_wire import varint

Bytes: TypeAlias = "bytes | memoryview"
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, BINARY, _LISTS, STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
LIST = 9
STOP = b"\0"


def field_at(data: Bytes, at: int, last: int) -> tuple[int, int, int]:
    """Number and kind of the field that begins at `at`, and where its value does."""
    delta, kind = data[at] >> 4, data[at] & 15
    if delta:
        return last + delta, kind, at + 1
    number, at = varint_at(data, at + 1)
    return number >> 1, kind, at  # zigzag, and never negative


def head_of(delta: int, kind: int) -> bytes:
    """Of a field whose number is by so much greater than that of the field before it."""
    return bytes([delta << 4 | kind])  # Parquet has fewer than 16 fields in a row that may be left out


def list_head_of(count: int) -> bytes:
    """Of a list of structs."""
    return bytes([count << 4 | STRUCT]) if count < 15 else bytes([15 << 4 | STRUCT]) + varint(count)


def list_head(data: Bytes, at: int) -> tuple[int, int, int]:
    """How many values, of which kind, and where they begin."""
    count, kind = data[at] >> 4, data[at] & 15
    if count < 15:
        return count, kind, at + 1
    count, at = varint_at(data, at + 1)
    return count, kind, at


def end_of(data: Bytes, at: int, kind: int) -> int:
    """Where a value of this kind ends that begins at `at`."""
    if kind in _BOOLEANS:
        return at
    if kind == _BYTE:
        return at + 1
    if kind in _INTEGERS:
        return varint_at(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == BINARY:
        size, at = varint_at(data, at)
        return at + size
    if kind in _LISTS:
        count, item, at = list_head(data, at)
        if item in _BOOLEANS:
            return at + count
        for _ in range(count):
            at = end_of(data, at, item)
        return at
    if kind != STRUCT:
        raise KeyError(kind)  # footers have no maps
    while data[at]:
        delta, inner = data[at] >> 4, data[at] & 15
        at += 1
        if not delta:
            at = varint_at(data, at)[1]
        at = end_of(data, at, inner)
    return at + 1


def varint_at(data: Bytes, at: int) -> tuple[int, int]:
    """The number there without its zigzag, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def number_at(data: Bytes, at: int) -> tuple[int, int]:
    """The integer of a field, and where it ends."""
    value, at = varint_at(data, at)
    return value >> 1 ^ -(value & 1), at


def number(delta: int, kind: int, value: int) -> bytes:
    """A field with an integer that is not negative."""
    return head_of(delta, kind) + varint(value << 1)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(len(data)) + data
