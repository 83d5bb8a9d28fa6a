"""The file info of an HFile: names and values in a protobuf message, with `PBUF` and its length in front."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import CorruptFileError
from hoodie.hfile.key_value import Cells
from hoodie.hfile.wire import (
    Field,
    decode_delimited,
    decode_message,
    encode_delimited,
    encode_message,
)

_MAGIC = b"PBUF"
RESERVED_PREFIX = b"hfile."
LAST_KEY = b"hfile.LASTKEY"
AVERAGE_KEY = b"hfile.AVG_KEY_LEN"
AVERAGE_VALUE = b"hfile.AVG_VALUE_LEN"
CREATED = b"hfile.CREATE_TIME_TS"
_MOST_TAGS = b"hfile.MAX_TAGS_LEN"
_TAGS_COMPRESSED = b"hfile.TAGS_COMPRESSED"
KEY_VALUE_VERSION = b"KEY_VALUE_VERSION"
GREATEST_VERSION = b"MAX_MEMSTORE_TS_KEY"
BLOOM_TYPE = b"BLOOM_FILTER_TYPE"
LAST_BLOOM_KEY = b"LAST_BLOOM_KEY"
DELETE_FAMILIES = b"DELETE_FAMILY_COUNT"
ENCODING = b"DATA_BLOCK_ENCODING"
_FIRST, _SECOND, _ENTRY = 1, 2, 1


def encode_file_info(info: Mapping[bytes, bytes]) -> bytes:
    """In the order of the names, as HBase has them."""
    entries = (
        Field(_ENTRY, encode_message([Field(_FIRST, name), Field(_SECOND, info[name])])) for name in sorted(info)
    )
    return _MAGIC + encode_delimited(encode_message(entries))


def decode_file_info(data: memoryview) -> dict[bytes, bytes]:
    """Raises CorruptFileError where the data is none."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise CorruptFileError(f"its file info begins with {bytes(data[: len(_MAGIC)])!r} instead of {_MAGIC!r}")
    message, _ = decode_delimited(data, len(_MAGIC))
    info = {}
    for number, entry in decode_message(message):
        if number == _ENTRY and isinstance(entry, bytes):
            pair = dict(decode_message(entry))
            name, value = pair.get(_FIRST, b""), pair.get(_SECOND, b"")
            if isinstance(name, int) or isinstance(value, int):
                raise CorruptFileError("an entry of its file info is a number")
            info[name] = value
    return info


def cells_of(info: Mapping[bytes, bytes]) -> Cells:
    """How the cells of the file end."""
    greatest = int.from_bytes(info.get(GREATEST_VERSION, b""), "big")
    # Apache Hudi's own writer, before 1.2, states the greatest version in one byte, and nothing else.
    is_bare = len(info.get(GREATEST_VERSION, b"")) == 1 and KEY_VALUE_VERSION not in info
    has_versions = is_bare or int.from_bytes(info.get(KEY_VALUE_VERSION, b""), "big") == 1
    return Cells(
        has_versions=has_versions, versions_are_zero=greatest == 0, has_tags=_MOST_TAGS in info, keys_are_rows=is_bare
    )
