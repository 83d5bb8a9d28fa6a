"""Footer key-values of base files: the bloom filter and the least and greatest record key, by which an index skips
files.

Keys compare as Java strings do, by UTF-16 code units, because Apache Hudi's bloom index prunes so. That is the order of
UTF-8 bytes except between supplementary characters (four bytes in UTF-8) and U+E000 to U+FFFF. Some of Hudi's writers
(the Spark row writer of 1.2.0) took the bounds by UTF-8 bytes all the same and a footer does not say which, so
`may_hold_by_range` rules a key out only where both orders do.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, KeyFieldError, UnsupportedTableError
from hoodie.format.bloom import SIMPLE, BloomFilter, build_bloom, most_entries, parse_bloom
from hoodie.format.thrift_compact import STOP, text, varint_at

BLOOM = "org.apache.hudi.bloomfilter"
BLOOM_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA = "parquet.avro.schema"

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_PARTED_BYTES = 8 * 1024
"""A footer up to here is decoded as quickly as it is parted."""
_BEFORE_FILTER = tuple(b"\x18" + text(key) + b"\x18" for key in (BLOOM, BLOOM_OLD))
"""What stands before its text, in Thrift's compact protocol: the heads of two fields of bytes, and the first of them."""

_FEW_KEYS = 64
"""So many are compared by Python in less time than a call of Arrow takes."""

# Below it a filter takes less room than the text around it.
_LEAST_ENTRIES = 100

# Leading bytes moved so that comparing bytes compares UTF-16 code units: surrogates (F0 to F4) sort below U+E000 and up
# (EE, EF). Leading bytes never occur inside a character, so the rest of each key stays as it is.
_TO_UTF16_ORDER = np.arange(256, dtype=np.uint8)
_TO_UTF16_ORDER[0xEE:0xF0] = (0xF3, 0xF4)
_TO_UTF16_ORDER[0xF0:0xF5] = np.arange(0xEE, 0xF3)
_FROM_UTF16_ORDER = np.argsort(_TO_UTF16_ORDER).astype(np.uint8)
_SUPPLEMENTARY = 0xF0

_Strings: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"


def footer_metadata(
    keys: pa.ChunkedArray[Any] | pa.Array[Any],
    *,
    bloom_type: str,
    fpp: float,
    num_entries: int | None,
    max_entries: int,
    avro_schema_json: str | None,
) -> dict[str, str]:
    """The key-values for the footer of a base file that holds `keys` in this order.

    `num_entries` None sizes the filter by the number of keys, in one row, so that its false positive rate is `fpp`
    whatever the file holds (as far as a footer can carry that); `max_entries` is looked at only with a number given.
    A file without rows has no least and greatest key.

    Raises:
        KeyFieldError: a key is null or empty.
        OptionError: the filter's sizes are out of range. UnsupportedTableError: unknown filter type.
    """
    if num_entries is None:
        num_entries = max_entries = entries_for(len(keys), fpp)
    bloom = build_bloom(bloom_type, keys, num_entries=num_entries, fpp=fpp, max_entries=max_entries)
    return footer_entries(bloom, key_range(keys), avro_schema_json)


def footer_entries(
    bloom: BloomFilter | None, bounds: tuple[str, str] | None, avro_schema_json: str | None
) -> dict[str, str]:
    """The key-values for the footer of a base file with this filter, if any, and these least and greatest keys."""
    result = {}
    if bloom is not None:
        result[BLOOM] = base64.b64encode(bloom.to_bytes()).decode("ascii")
        if bloom.type_code != SIMPLE:
            result[BLOOM_TYPE] = bloom.type_code
    if bounds is not None:
        result[MIN_KEY], result[MAX_KEY] = bounds
    if avro_schema_json is not None:
        result[AVRO_SCHEMA] = avro_schema_json
        result["writer.model.name"] = "avro"
    return result


def entries_for(record_count: int, fpp: float) -> int:
    """For how many keys the filter of a file of `record_count` rows is made, when no option says it."""
    return min(max(record_count, _LEAST_ENTRIES), most_entries(fpp))


@dataclass(frozen=True)
class BaseFileFooter:
    """What the footer of a base file says about its rows."""

    path: str
    record_count: int
    min_key: str | None
    """None together with `max_key`: the footer has no bounds, any key may be in the file."""
    max_key: str | None
    bloom_type: str | None
    """None: no filter. Old files without a type code have a SIMPLE one."""
    avro_schema_json: str | None
    """With the five meta columns; None when the file was not written through Avro."""
    bloom_base64: bytes | None = field(repr=False)

    def bloom(self) -> BloomFilter | None:
        """The filter, decoded anew by each call; None when the file has none.

        Raises:
            CorruptFileError: it does not decode. UnsupportedTableError: its type is not known here.
                With either the file's keys must be read instead.
        """
        if self.bloom_base64 is None:
            return None
        try:
            return parse_bloom(self.bloom_type, base64.b64decode(self.bloom_base64, validate=True))
        except binascii.Error as exc:
            raise CorruptFileError(f"{self.path}: the bloom filter in the footer is not base64 text ({exc})") from exc
        except CorruptFileError as exc:
            raise CorruptFileError(f"{self.path}: {exc}") from exc
        except UnsupportedTableError as exc:
            raise UnsupportedTableError(f"{self.path}: {exc}") from exc

    def may_hold(self, keys: pa.Array[Any] | pa.ChunkedArray[Any]) -> npt.NDArray[np.bool_]:
        """One flag a key: False where the bounds rule out that the file holds it."""
        if self.min_key is None or self.max_key is None:
            return np.ones(len(keys), np.bool_)
        return may_hold_by_range(keys, min_key=self.min_key, max_key=self.max_key)


class PartedFooter(NamedTuple):
    """A footer and the text of its bloom filter, apart: that text is nearly all of it, and few readers want it."""

    metadata: pq.FileMetaData
    """In it the text of the filter is empty."""
    bloom_base64: bytes


def parted_footer(data: memoryview) -> PartedFooter | None:
    """That of a Parquet file, which `data` is; None where it has no bloom filter, or a small one, or is not as it is known here.

    To decode a footer with the filter of 100,000 keys takes ten times as long as without it.
    """
    size = int.from_bytes(data[-_TAIL_BYTES:-4], "little")
    if not _PARTED_BYTES < size <= len(data) - _TAIL_BYTES or data[-4:] != _MAGIC:
        return None
    footer = bytes(data[len(data) - _TAIL_BYTES - size : len(data) - _TAIL_BYTES])
    for mark in _BEFORE_FILTER:
        at = footer.find(mark)
        if at >= 0:
            begin = at + len(mark)
            break
    else:
        return None
    try:
        length, start = varint_at(footer, begin)
        if footer[start + length] != STOP[0]:
            return None
        few = footer[:begin] + text(b"") + footer[start + length :]
        metadata = pq.read_metadata(pa.BufferReader(b"".join([_MAGIC, few, len(few).to_bytes(4, "little"), _MAGIC])))
        entries = metadata.metadata or {}
    except (IndexError, OSError, ValueError, MemoryError, pa.ArrowException):
        return None
    is_its_filter = entries.get(BLOOM.encode(), entries.get(BLOOM_OLD.encode())) == b""
    return PartedFooter(metadata, footer[start : start + length]) if is_its_filter else None


def read_footer(metadata: pq.FileMetaData, *, path: str, bloom_base64: bytes | None = None) -> BaseFileFooter:
    """The footer's key-values as values; `path` is for messages, `bloom_base64` as `parted_footer` has it.

    Raises:
        CorruptFileError: a value is no text.
    """
    entries = metadata.metadata or {}

    def stated(key: str) -> str | None:
        value = entries.get(key.encode())
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError as exc:
            raise CorruptFileError(f"{path}: footer key {key!r} holds {value!r}, which is not UTF-8 text") from exc

    bloom = bloom_base64 or entries.get(BLOOM.encode(), entries.get(BLOOM_OLD.encode()))
    min_key, max_key = stated(MIN_KEY), stated(MAX_KEY)
    return BaseFileFooter(
        path=path,
        record_count=metadata.num_rows,
        min_key=None if max_key is None else min_key,
        max_key=None if min_key is None else max_key,
        bloom_type=None if bloom is None else stated(BLOOM_TYPE) or SIMPLE,
        avro_schema_json=stated(AVRO_SCHEMA),
        bloom_base64=bloom,
    )


def key_range(keys: pa.ChunkedArray[Any] | pa.Array[Any]) -> tuple[str, str] | None:
    """The least and the greatest key in UTF-16 order; None without keys.

    Raises:
        KeyFieldError: a key is null.
    """
    if keys.null_count:
        raise KeyFieldError(f"{keys.null_count} of {len(keys)} record keys are null")
    if len(keys) == 0:
        return None
    if len(keys) <= _FEW_KEYS:
        texts: list[Any] = keys.to_pylist()
        if all(map(str.isascii, texts)):
            return min(texts), max(texts)
    if not _has_supplementary(keys):
        bounds = pc.min_max(keys)
        return bounds["min"].as_py(), bounds["max"].as_py()
    bounds = pc.min_max(_in_utf16_order(keys))
    table = _FROM_UTF16_ORDER.tobytes()
    return bounds["min"].as_py().translate(table).decode(), bounds["max"].as_py().translate(table).decode()


def key_ranges(keys: pa.ChunkedArray[Any] | pa.Array[Any], bounds: Sequence[int]) -> list[tuple[str, str] | None]:
    """`key_range` of the keys between each two of the `bounds`."""
    texts: list[Any] = keys.to_pylist()
    if keys.null_count or not "".join(texts).isascii():
        return [key_range(keys.slice(start, end - start)) for start, end in pairwise(bounds)]
    return [(min(texts[start:end]), max(texts[start:end])) if end > start else None for start, end in pairwise(bounds)]


def may_hold_by_range(
    keys: pa.Array[Any] | pa.ChunkedArray[Any], *, min_key: str, max_key: str
) -> npt.NDArray[np.bool_]:
    """One flag a key: False where it lies outside [min_key, max_key], by UTF-16 units and by UTF-8 bytes alike."""
    ends = pa.array([min_key, max_key], keys.type)
    inside = _between(keys, ends[0], ends[1])
    if _has_supplementary(keys) or _has_supplementary(ends):
        ends = _in_utf16_order(ends)
        inside |= _between(_in_utf16_order(keys), ends[0], ends[1])
    return inside


def _between(keys: _Strings, least: pa.Scalar[Any], greatest: pa.Scalar[Any]) -> npt.NDArray[np.bool_]:
    inside: Any = pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, greatest))
    # A null key compares to null; nothing is ruled out for it.
    return np.asarray(pc.fill_null(inside, True).to_numpy(zero_copy_only=False), np.bool_)


def _chunks(keys: _Strings) -> list[pa.Array[Any]]:
    return keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]


def _has_supplementary(keys: _Strings) -> bool:
    return any(bool((_bytes_of(chunk) >= _SUPPLEMENTARY).any()) for chunk in _chunks(keys))


def _bytes_of(keys: pa.Array[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of all keys, without those that a slice leaves out."""
    _, offset_buffer, data = keys.buffers()
    if len(keys) == 0 or data is None:
        return np.empty(0, np.uint8)
    width: type[np.int64 | np.int32] = np.int64 if pa.types.is_large_string(keys.type) else np.int32
    offsets = np.frombuffer(memoryview(offset_buffer or b""), width)
    return np.frombuffer(memoryview(data), np.uint8)[offsets[keys.offset] : offsets[keys.offset + len(keys)]]


def _in_utf16_order(keys: _Strings) -> _Strings:
    """The keys as binary values which compare by bytes as the keys do by UTF-16 code units."""
    moved = []
    for chunk in _chunks(keys):
        validity, offsets, data = chunk.buffers()
        table = np.take(_TO_UTF16_ORDER, np.frombuffer(memoryview(data or b""), np.uint8))
        kind = pa.large_binary() if pa.types.is_large_string(chunk.type) else pa.binary()
        buffers = [validity, offsets, pa.py_buffer(table.data)]
        moved.append(pa.Array.from_buffers(kind, len(chunk), buffers, chunk.null_count, chunk.offset))
    return pa.chunked_array(moved) if isinstance(keys, pa.ChunkedArray) else moved[0]
