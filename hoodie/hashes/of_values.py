"""Hashes of values of any type, over a whole Arrow column at once: to compare columns that two readers read in different orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hashes.of_keys import key_hash

_NULL = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def value_hashes(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint64 for each value; equal ones have equal hashes if the types are equal. Null is a value, and so is each NaN by its bits."""
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    hashed = _of_valid(array)
    if array.null_count:
        hashed = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), _NULL, hashed)
    return hashed


def mixed(hashes: np.ndarray, number: int = 0) -> np.ndarray:
    """Hashes that differ by a number: those of the columns of a row may be added up then."""
    with np.errstate(over="ignore"):
        result: np.ndarray = hashes + np.uint64(number + 1) * _NULL
        for factor in _FACTORS:
            result = (result ^ (result >> np.uint64(33))) * factor
        result ^= result >> np.uint64(33)
    return result


def _of_valid(array: Any) -> np.ndarray:
    """The hashes; what those of nulls are does not count."""
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return _of_valid(array.dictionary_decode())
    if types.is_struct(kind):
        parts = [mixed(value_hashes(part), number) for number, part in enumerate(array.flatten())]
        return _sum(parts, len(array))
    if types.is_map(kind):
        items = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return _of_lists(array, value_hashes(items))
    if types.is_list(kind) or types.is_large_list(kind):
        return _of_lists(array, value_hashes(array.values))
    if types.is_fixed_size_list(kind):
        return _of_valid(array.cast(pa.list_(kind.value_type)))
    if types.is_string(kind) or types.is_large_string(kind):
        return key_hash(array)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return key_hash(array.cast(pa.large_binary()).view(pa.large_string()))
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return _of_valid(array.cast(pa.binary()))
    if types.is_decimal(kind):
        return key_hash(array.cast(pa.string()))
    if types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    return _of_words(array)


def _of_words(array: Any) -> np.ndarray:
    """Of values that have up to eight bytes of their own."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    bits = array.view(f"int{array.type.bit_width}")
    filled = bits.fill_null(0) if bits.null_count else bits
    return mixed(filled.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))


def _of_lists(array: Any, values: np.ndarray) -> np.ndarray:
    """Of lists, from the hashes of all values below their offsets: each counts with its place in its list."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    starts = np.repeat(offsets[:-1], lengths)
    used = values[offsets[0] : offsets[-1]]
    with np.errstate(over="ignore"):
        places = (np.arange(offsets[0], offsets[-1]) - starts).astype(np.uint64)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(used + places * _NULL), dtype=np.uint64)])
        totals: np.ndarray = sums[offsets[1:] - offsets[0]] - sums[offsets[:-1] - offsets[0]]
    return mixed(totals + lengths.astype(np.uint64))


def _sum(parts: list[np.ndarray], length: int) -> np.ndarray:
    total = np.zeros(length, np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            total = total + part
    return mixed(total)
