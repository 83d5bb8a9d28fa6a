"""The bucket of a record key: Apache Hudi's bucket indexes, hash for hash, over Arrow columns.

    simple bucket = (hash of the list of values & 0x7fffffff) % count
    hash of a list: h = 1, then h = 31 * h + hash(value) for each value; of null: 0         (32 bits, wrapping)
    hash of a text: h = 0, then h = 31 * h + c for each UTF-16 code unit c
    place on a hash ring = xxHash32 of the values' texts one after the other, null as "null" & 0x7fffffff

The values of a key that does not hold both `,` and `:` are the key itself. Any other key is parsed back into `field:value` pairs,
and the values of the hash fields count, in the key's order; when it has none of them, the key itself. Source: Hudi's
BucketIdentifier and KeyGenUtils; witnesses: tests/golden/v6_bucket, integration/test_bucket_with_hudi.py.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.hashes.xxhash32 import xxhash32

pc: Any = pyarrow.compute
"""The stubs of its functions tell kinds of arrays apart, which cannot be said here."""

NULL_VALUE = "__null__"
EMPTY_VALUE = "__empty__"
DIGITS = 8
"""Of a file id: the bucket's number in decimal, in place of the first digits of a random uuid."""
_BATCH_ROWS = 256 * 1024
_POSITIVE = np.uint32(0x7FFFFFFF)
_AT_ONCE = 1 << 16
"""So many texts are hashed at a time: it takes some twenty bytes for each of their characters."""
_FACTOR = 31
_INVERSE = pow(_FACTOR, -1, 1 << 32)
"""31 * _INVERSE = 1 in 32 bits: sums of any stretch of characters can be taken from one running sum."""
_UTF16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_Combine = Callable[[Sequence[pa.Array]], np.ndarray]
"""The values of keys, a column for each place, null where a value is -> uint32 for each key."""


def bucket_numbers(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str], count: int | np.ndarray) -> np.ndarray:
    """int32 for each key: its bucket, from 0 to `count` - 1. `fields` are the table's hash fields; `count` may differ by key."""
    counts = np.asarray(count, np.uint32)
    result: np.ndarray = ((bucket_hashes(keys, fields) & _POSITIVE) % counts).astype(np.int32)
    return result


def bucket_hashes(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str]) -> np.ndarray:
    """uint32 for each key: the hash that its simple bucket is taken from."""
    return _each(keys, fields, _list_hash)


def ring_hashes(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str]) -> np.ndarray:
    """uint32 for each key: its place on a hash ring, below 2^31."""
    return _each(keys, fields, _joined_hash) & _POSITIVE


def _each(keys: pa.Array | pa.ChunkedArray, fields: Sequence[str], combine: _Combine) -> np.ndarray:
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    parts = [
        _hashes_of(chunk.slice(start, _BATCH_ROWS), fields, combine)
        for chunk in chunks
        for start in range(0, len(chunk), _BATCH_ROWS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)


def bucket_file_id(number: int) -> str:
    """A fresh file group id of a bucket: `{number as 8 digits}{rest of a uuid}-0`."""
    return f"{number:0{DIGITS}d}{str(uuid.uuid4())[DIGITS:]}-0"


def shared_bucket_file_id(number: int, nth: int = 0) -> str:
    """The file group id of a bucket that all non-blocking writers begin it with. Apache Hudi knows the first one (src
    BucketIdentifier.newBucketFileIdForNBCC); the `nth` is for a bucket whose file groups were replaced so often.
    """
    return f"{number:0{DIGITS}d}-0000-0000-0000-{nth:012d}-0"


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket that a file group id names; None when it does not begin with 8 decimal digits."""
    head = file_id[:DIGITS]
    return int(head) if len(head) == DIGITS and head.isascii() and head.isdigit() else None


def text_hashes(texts: pa.Array) -> np.ndarray:
    """uint32 for each text: Java's `String.hashCode`; 0 for null."""
    starts = range(0, len(texts), _AT_ONCE)
    parts = [_text_hashes(texts.slice(start, _AT_ONCE)) for start in starts]
    return np.concatenate([np.zeros(0, dtype=np.uint32), *parts])


def _text_hashes(texts: pa.Array) -> np.ndarray:
    count = len(texts)
    units, ends = _utf16_units(texts.cast(pa.large_string()))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    if not len(units):
        return np.zeros(count, dtype=np.uint32)
    # h = sum of c[i] * 31^(end-1-i) = 31^(end-1) * sum of c[i] * 31^-i: running sums over the whole column, no loop.
    terms = np.add.accumulate(units * _powers(_INVERSE, len(units)), dtype=np.uint32)
    sums = np.concatenate([np.zeros(1, dtype=np.uint32), terms])
    hashed: np.ndarray = (sums[ends] - sums[starts]) * _powers(_FACTOR, len(units))[np.maximum(ends - 1, 0)]
    return hashed


def values_of_key(key: str, fields: Sequence[str]) -> list[str | None]:
    """The values of one key that are hashed; how Apache Hudi takes keys apart whose values hold `,` and `:`.

    A pair ends at the last `,` before the next `:`; a `:` without a `,` between it and its pair's own `:` belongs to the value.
    Where a pair that is not asked for ends with such a `:` Apache Hudi 1.2.0 loops for ever; here the key ends there.
    """
    if "," not in key or ":" not in key:
        return [key]
    values: list[str | None] = []
    at = 0
    while at < len(key) and (own := key.find(":", at)) >= 0:
        comma, following = -1, key.find(":", own + 1)
        while following >= 0 and (comma := key.rfind(",", own, following)) < 0:
            following = key.find(":", following + 1)
        end = comma if following >= 0 else len(key)
        if key[at:own] in fields:
            value = key[own + 1 : end]
            values.append(None if value == NULL_VALUE else "" if value == EMPTY_VALUE else value)
        at = end + 1
    return values or [key]


def _hashes_of(keys: pa.Array, fields: Sequence[str], combine: _Combine) -> np.ndarray:
    """Whole keys at once; keys with `,` and `:` by a pattern that fits what composite key generators make; the rest one by one."""
    hashed = combine([keys])
    composite = _flags(pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":")))
    if composite.any():
        # A field can only be found at the beginning or behind a comma: without that the whole key counts.
        alternatives = "|".join(re.escape(field) for field in fields)
        composite &= _flags(pc.match_substring_regex(keys, f"(?:^|,)(?:{alternatives}):"))
    rows = np.flatnonzero(composite)
    if len(rows):
        hashed[rows] = _composite_hashes(keys.take(pa.array(rows)), fields, combine)
    return hashed


def _composite_hashes(keys: pa.Array, fields: Sequence[str], combine: _Combine) -> np.ndarray:
    names = _pair_names(keys[0].as_py())
    hashed = np.zeros(len(keys), dtype=np.uint32)
    fits = np.zeros(len(keys), dtype=bool)
    numbers = [number for number, name in enumerate(names) if name in fields]
    if numbers:
        # A value in which no `:` follows a `,` is taken apart in one way only.
        value = r"(?P<v{}>[^,]*(?:,[^:]*)?)"
        pattern = ",".join(f"{re.escape(name)}:{value.format(number)}" for number, name in enumerate(names))
        groups = pc.extract_regex(keys, f"(?s)^{pattern}$")
        fits = _flags(pc.is_valid(groups))
        hashed = combine([_values(pc.struct_field(groups, f"v{number}")) for number in numbers])
    rows = np.flatnonzero(~fits)
    if len(rows):
        # One by one: values in which a `:` follows a `,`, and keys of one column that look like pairs.
        odd = pc.dictionary_encode(keys.take(pa.array(rows)))
        hashed[rows] = _one_by_one(odd.dictionary.to_pylist(), fields, combine)[odd.indices.to_numpy()]
    return hashed


def _pair_names(key: str) -> list[str]:
    """Names of the pairs of a key, as they would be if no value held a `,` and a `:` behind it."""
    return [part.partition(":")[0] for part in key.split(",") if ":" in part]


def _one_by_one(keys: list[str], fields: Sequence[str], combine: _Combine) -> np.ndarray:
    parsed = [values_of_key(key, fields) for key in keys]
    counts = np.array([len(values) for values in parsed])
    hashed = np.zeros(len(keys), dtype=np.uint32)
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        columns = zip(*(parsed[row] for row in rows), strict=True)
        hashed[rows] = combine([pa.array(column, pa.string()) for column in columns])
    return hashed


def _values(texts: pa.Array) -> pa.Array:
    """What key generators write in place of null and of the empty text, as that."""
    texts = pc.if_else(pc.equal(texts, NULL_VALUE), pa.scalar(None, texts.type), texts)
    is_empty = pc.fill_null(pc.equal(texts, EMPTY_VALUE), False)
    return cast(pa.Array, pc.if_else(is_empty, pa.scalar("", texts.type), texts))


def _list_hash(values: Sequence[pa.Array]) -> np.ndarray:
    hashed = np.ones(len(values[0]), dtype=np.uint32)
    for column in values:
        hashed = hashed * np.uint32(_FACTOR) + text_hashes(column)
    return hashed


def _joined_hash(values: Sequence[pa.Array]) -> np.ndarray:
    """As Java joins texts: null is the text "null"."""
    return xxhash32(pc.binary_join_element_wise(*values, "", null_handling="replace", null_replacement="null"))


def _powers(base: int, count: int) -> np.ndarray:
    powers = np.full(count, base, dtype=np.uint32)
    powers[:1] = 1
    result: np.ndarray = np.multiply.accumulate(powers, dtype=np.uint32)
    return result


def _utf16_units(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """UTF-16 code units of all texts in a row (uint32), and where each text ends in them."""
    _, offset_buffer, data_buffer = texts.buffers()
    if not len(texts) or data_buffer is None:
        return np.empty(0, dtype=np.uint32), np.zeros(len(texts), dtype=np.int64)
    offsets = np.frombuffer(cast(Any, offset_buffer), dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(cast(Any, data_buffer), dtype=np.uint8)[first:last]
    ends = offsets[1:] - first
    if not (data & 0x80).any():
        return data.astype(np.uint32), ends
    # A code unit for each byte that begins a character, one more for characters beyond U+FFFF.
    per_byte = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    units = np.frombuffer(data.tobytes().decode().encode(_UTF16), dtype=np.uint16).astype(np.uint32)
    return units, np.concatenate([np.zeros(1, dtype=np.int64), np.add.accumulate(per_byte)])[ends]


def _flags(mask: pa.Array) -> np.ndarray:
    flags: np.ndarray = pc.fill_null(mask, False).to_numpy(zero_copy_only=False).copy()
    return flags
