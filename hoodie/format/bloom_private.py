"""Bloom filters of the `pybloom-live` package, for tables which only Python reads: Apache Hudi does not know the type.

Bytes (little endian): magic "HPBL" | u32 witness | u64 capacity | f64 false positive rate | u64 slices
| u64 bits a slice | ceil(slices * bits a slice / 8) bytes of bits, least significant first.

The package's hashes are its own affair and have changed between its versions. A filter that is probed with other hashes
than it was built with says no to keys that it holds, and such keys would be inserted twice. So the bytes carry a
witness, a checksum of where the hashes put one fixed key; a filter whose witness differs is refused.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, KeyFieldError, OptionError, UnsupportedTableError

TYPE_CODE = "PYBLOOM_LIVE"

_MAGIC = b"HPBL"
_HEADER = struct.Struct("<4sIQdQQ")
_WITNESS_KEY = "hoodie"
# Below it 1 / rate is no finite number any more.
_LEAST_FPP = 1e-300


@dataclass(frozen=True, eq=False)
class PybloomFilter:
    """A `pybloom_live.BloomFilter` in the shape of `bloom.BloomFilter`."""

    inner: Any
    type_code: str = TYPE_CODE

    def might_contain(self, keys: pa.Array[Any]) -> npt.NDArray[np.bool_]:
        """One flag a key, in order.

        Raises:
            KeyFieldError: a key is null.
        """
        if keys.null_count:
            raise KeyFieldError(f"{keys.null_count} of {len(keys)} record keys are null")
        # The package hashes one key a call; whoever needs speed takes Hudi's own types.
        return np.fromiter((key in self.inner or not key for key in keys.to_pylist()), np.bool_, count=len(keys))

    def to_bytes(self) -> bytes:
        head = _HEADER.pack(
            _MAGIC,
            _witness(self.inner),
            self.inner.capacity,
            self.inner.error_rate,
            self.inner.num_slices,
            self.inner.bits_per_slice,
        )
        return head + bytes(self.inner.bitarray.tobytes())


def build(
    keys: pa.Array[Any] | pa.ChunkedArray[Any], *, num_entries: int, fpp: float, max_entries: int
) -> PybloomFilter:
    """The filter of `keys`; it grows beyond `num_entries` when there are more keys, `max_entries` is not looked at.

    Raises:
        KeyFieldError: a key is null or empty. OptionError: a size is out of range.
        UnsupportedTableError: the package is not installed.
    """
    if num_entries < 1 or not _LEAST_FPP <= fpp < 1.0:
        raise OptionError(
            f"a bloom filter for {num_entries} keys at rate {fpp}: "
            f"give at least 1 key and a rate from {_LEAST_FPP} to below 1"
        )
    inner = _package().BloomFilter(max(num_entries, len(keys)), fpp)
    for key in keys.to_pylist():
        if not key:
            raise KeyFieldError("a record key is null or empty: a base file cannot hold it")
        inner.add(key)
    return PybloomFilter(inner)


def parse(data: bytes) -> PybloomFilter:
    """The filter that `to_bytes` gave.

    Raises:
        CorruptFileError: the bytes are no whole filter.
        UnsupportedTableError: the package is not installed, or hashes otherwise than the one that wrote the filter.
    """
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise CorruptFileError(f"bloom filter {TYPE_CODE}: {len(data)} bytes without its header")
    _, witness, capacity, fpp, slices, slice_bits = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    # All sizes are checked against the bytes at hand before the package allocates anything from them.
    if (
        not _LEAST_FPP <= fpp < 1.0
        or capacity < 1
        or slices < 1
        or slice_bits < 1
        or (slices * slice_bits + 7) // 8 != len(body)
    ):
        raise CorruptFileError(
            f"bloom filter {TYPE_CODE} says {slices} x {slice_bits} bits for {capacity} keys at rate {fpp}, "
            f"but has {len(body)} bytes of bits"
        )
    expected_slices = math.ceil(math.log(1.0 / fpp, 2))
    if slices != expected_slices or slice_bits != math.ceil(capacity * -math.log(fpp) / (slices * math.log(2) ** 2)):
        raise CorruptFileError(
            f"bloom filter {TYPE_CODE}: {slices} x {slice_bits} bits do not fit {capacity} keys at {fpp}"
        )
    inner = _package().BloomFilter(capacity, fpp)
    if _witness(inner) != witness:
        raise UnsupportedTableError(
            f"bloom filter {TYPE_CODE} was written by another version of pybloom-live, which hashes otherwise: "
            "install that version, or rewrite the base files"
        )
    inner.bitarray.clear()
    inner.bitarray.frombytes(body)
    return PybloomFilter(inner)


def _witness(inner: Any) -> int:
    return zlib.crc32(repr(list(inner.make_hashes(_WITNESS_KEY))).encode())


def _package() -> Any:
    try:
        import pybloom_live  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UnsupportedTableError(
            f"bloom filters of type {TYPE_CODE} need the package pybloom-live: pip install 'hoodie[pybloom]'"
        ) from error
    return pybloom_live
