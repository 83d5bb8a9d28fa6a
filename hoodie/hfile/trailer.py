"""The last 4,096 bytes of an HFile: where its other parts are.

Layout: magic 8 | a protobuf message with its length in front | zeros | minor version u8 | major version u24. Nothing checks
these bytes, so `decode_trailer` and the reader compare them with the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.compression import Compression
from hoodie.hfile.wire import Field, decode_delimited, decode_message, encode_delimited, encode_message

TRAILER_BYTES = 4096
_MAGIC = b'TRABLK"$'
_MAJOR = 3
_MINOR = 3
_MOST_LEVELS = 16
COMPARATOR = "org.apache.hadoop.hbase.KeyValue$KVComparator"
"""Byte order, by the name that HBase 1 and 2 know."""
_OTHER_ORDERS = ("MetaComparator", "MetaCellComparator")


@dataclass(frozen=True)
class Trailer:
    file_info_offset: int
    load_on_open_offset: int
    data_index_bytes: int
    """Of all blocks of the data index, raw."""
    raw_bytes: int
    """Of all blocks with their headers, and the trailer."""
    data_index_count: int
    """Entries in the root of the data index."""
    meta_index_count: int
    entry_count: int
    data_index_levels: int
    first_data_offset: int
    last_data_offset: int
    compression: Compression
    comparator: str = COMPARATOR


_NUMBERS = {
    1: "file_info_offset",
    2: "load_on_open_offset",
    3: "data_index_bytes",
    4: "raw_bytes",
    5: "data_index_count",
    6: "meta_index_count",
    7: "entry_count",
    8: "data_index_levels",
    9: "first_data_offset",
    10: "last_data_offset",
}
_COMPARATOR, _COMPRESSION, _ENCRYPTION_KEY = 11, 12, 13


def encode_trailer(trailer: Trailer) -> bytes:
    """Its 4,096 bytes."""
    # An offset that is not there is -1, as Java spells that as an unsigned number.
    fields = [Field(number, getattr(trailer, name) & (1 << 64) - 1) for number, name in _NUMBERS.items()]
    fields += [Field(_COMPARATOR, trailer.comparator.encode()), Field(_COMPRESSION, trailer.compression)]
    head = _MAGIC + encode_delimited(encode_message(fields))
    return head.ljust(TRAILER_BYTES - 4, b"\0") + (_MINOR << 24 | _MAJOR).to_bytes(4, "big")


def decode_trailer(data: bytes | memoryview, file_bytes: int) -> Trailer:
    """The trailer of a file of that size, from its last 4,096 bytes.

    Raises:
        CorruptFileError: they are no trailer, or one of another file.
        UnsupportedTableError: it is that of an older version, of an encrypted file, or of another order of keys.
    """
    if len(data) < TRAILER_BYTES:
        raise CorruptFileError(f"no HFile: it has {len(data)} bytes, and a trailer alone has {TRAILER_BYTES}")
    minor, major = data[-4], int.from_bytes(data[-3:], "big")
    if major == 2:
        raise UnsupportedTableError("HFile version 2 is not read: rewrite it with HBase 1.0 or later")
    if major != _MAJOR or minor > _MINOR or data[: len(_MAGIC)] != _MAGIC:
        raise CorruptFileError(
            f"no HFile: its trailer begins with {bytes(data[: len(_MAGIC)])!r} and ends with version {major}.{minor}"
        )
    message, _ = decode_delimited(data[: TRAILER_BYTES - 4], len(_MAGIC))
    numbers = dict.fromkeys(_NUMBERS.values(), 0)
    comparator, codec = COMPARATOR, int(Compression.NONE)
    for number, value in decode_message(message):
        if number in _NUMBERS:
            numbers[_NUMBERS[number]] = _number(number, value)
        elif number == _COMPRESSION:
            codec = _number(number, value)
        elif number == _COMPARATOR and isinstance(value, bytes):
            comparator = value.decode("utf-8", errors="replace")
        elif number == _ENCRYPTION_KEY and value:
            raise UnsupportedTableError("the HFile is encrypted")
    if any(order in comparator for order in _OTHER_ORDERS):
        raise UnsupportedTableError(f"the keys of the HFile are in the order of {comparator}, not of their bytes")
    try:
        compression = Compression(codec)
    except ValueError as exc:
        raise CorruptFileError(f"the trailer of the HFile names the unknown compression {codec}") from exc
    result = Trailer(**numbers, compression=compression, comparator=comparator)
    _check(result, file_bytes - TRAILER_BYTES)
    return result


def _number(number: int, value: int | bytes) -> int:
    if not isinstance(value, int):
        raise CorruptFileError(f"field {number} of the trailer of the HFile is not a number")
    return value - (1 << 64) if value >> 63 else value


def _check(trailer: Trailer, end: int) -> None:
    if not (
        0 <= trailer.load_on_open_offset < trailer.file_info_offset < end
        and 0 <= trailer.data_index_count <= end
        and 0 <= trailer.meta_index_count <= end
        and 0 <= trailer.entry_count <= end * 1_100
        and 1 <= trailer.data_index_levels <= _MOST_LEVELS
    ):
        raise CorruptFileError(f"the trailer of the HFile does not fit its {end + TRAILER_BYTES} bytes: {trailer}")
