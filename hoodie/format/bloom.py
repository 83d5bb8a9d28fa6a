"""Bloom filters of record keys, bit for bit as Apache Hudi stores them in base file footers.

Bytes (big endian; `bit i` is byte `i >> 3`, mask `1 << (i & 7)`):

    SIMPLE      i32 -1 | i32 k | i8 1 | i32 m | ceil(m / 8) bytes of bits
    DYNAMIC_V0  i32 -1 | i32 k | i8 1 | i32 m | i32 n | i32 keys in the newest row | i32 rows | rows x SIMPLE

m bits and k hashes a row, n keys a row, 1 = murmur. The k hashes of a key are a chain, each seeded by the one before:
so a key's hashes cannot be computed side by side, but many keys can. Everything below works on blocks of keys that fit
the cache, and what does not depend on the seed (reading a key's words and mixing them) is done once a key.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, KeyFieldError, OptionError, SchemaError, UnsupportedTableError
from hoodie.format import bloom_private

SIMPLE = "SIMPLE"
DYNAMIC_V0 = "DYNAMIC_V0"

MAX_BITS = 400_000_000
"""Bits of a whole filter. As base64 text that is 67 MB; Arrow's Parquet reader refuses footer strings of 100 MB and
more (and parquet-mr such footers)."""

_VERSION = -1
_MURMUR = 1
_ROW_HEADER = struct.Struct(">iibi")
_DYNAMIC_HEADER = struct.Struct(">iibiiii")
_LN2 = math.log(2)
# The least positive double as fpp asks for 1,076 hashes; more is no filter, but a way to keep a reader busy.
_MAX_HASHES = 1_100
# A row is a filter of its own that every probe looks at; real filters have one to a hundred.
_MAX_ROWS = 1 << 16

_M = np.uint32(0x5BD1E995)
_SHIFT_13 = np.uint32(13)
_SHIFT_15 = np.uint32(15)
_SHIFT_24 = np.uint32(24)
# Keys a block: large enough that calls into numpy do not count, small enough for the second-level cache.
_BLOCK_KEYS = 1 << 14
_FEW_KEYS = 256
_BLOCK_WORDS = 1 << 18

_Words = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.intp]


class BloomFilter(Protocol):
    """A set of keys that may say yes wrongly and never says no wrongly."""

    @property
    def type_code(self) -> str: ...

    def might_contain(self, keys: pa.Array[Any]) -> npt.NDArray[np.bool_]:
        """One flag a key, in order. An empty key is no key: its flag is True, nothing is ruled out."""
        ...

    def to_bytes(self) -> bytes: ...


class _Build(Protocol):
    def __call__(
        self, keys: pa.Array[Any] | pa.ChunkedArray[Any], *, num_entries: int, fpp: float, max_entries: int
    ) -> BloomFilter: ...


def bloom_size(num_entries: int, fpp: float) -> tuple[int, int]:
    """Bits and hashes of a row that holds `num_entries` keys at the false positive rate `fpp`.

    Raises:
        OptionError: a value is out of range, or the filter would not fit a Parquet footer.
    """
    if num_entries < 1:
        raise OptionError(f"a bloom filter for {num_entries} keys: give at least 1")
    if not 0.0 < fpp < 1.0:
        raise OptionError(f"bloom filter false positive rate {fpp}: give a value between 0 and 1, such as 1e-9")
    bits = math.ceil(num_entries * (-math.log(fpp) / (_LN2 * _LN2)))
    if bits > MAX_BITS:
        raise OptionError(
            f"a bloom filter for {num_entries} keys at rate {fpp} takes {bits} bits and a Parquet footer "
            f"carries at most {MAX_BITS}: give fewer keys or a higher rate"
        )
    return bits, math.ceil(_LN2 * bits / num_entries)


def most_entries(fpp: float) -> int:
    """The most keys for which a filter of one row at the rate `fpp` fits a Parquet footer."""
    return max(1, math.floor(MAX_BITS / (-math.log(fpp) / (_LN2 * _LN2))))


def build_bloom(
    type_code: str, keys: pa.Array[Any] | pa.ChunkedArray[Any], *, num_entries: int, fpp: float, max_entries: int
) -> BloomFilter:
    """The filter of `keys`, in the order in which the base file holds them.

    A DYNAMIC_V0 filter starts a new row each `num_entries` keys while it is built for fewer than `max_entries`; further
    keys go round the rows it has and make its answers worse, never wrong. Other types ignore `max_entries`.

    Raises:
        KeyFieldError: a key is null or empty.
        OptionError: a size is out of range. UnsupportedTableError: unknown type.
    """
    return _maker(type_code)[0](keys, num_entries=num_entries, fpp=fpp, max_entries=max_entries)


def parse_bloom(type_code: str | None, data: bytes) -> BloomFilter:
    """The filter that `to_bytes` gave; a type code of None is SIMPLE, as in old base files.

    Raises:
        CorruptFileError: the bytes are no whole filter of this type. UnsupportedTableError: unknown type.
    """
    return _maker(SIMPLE if type_code is None else type_code)[1](data)


def register_bloom(type_code: str, build: _Build, parse: Callable[[bytes], BloomFilter]) -> None:
    """Serve a further type of filter under the name that footers carry in `hoodie_bloom_filter_type_code`."""
    _makers[type_code] = (build, parse)


def _maker(type_code: str) -> tuple[_Build, Callable[[bytes], BloomFilter]]:
    maker = _makers.get(type_code)
    if maker is None:
        raise UnsupportedTableError(f"bloom filter type {type_code!r} is not known; known are {', '.join(_makers)}")
    return maker


@dataclass(frozen=True, eq=False)
class HudiBloomFilter:
    """A SIMPLE or DYNAMIC_V0 filter: one or more rows of equal size which share their hashes."""

    type_code: str
    bits: int
    hashes: int
    rows: npt.NDArray[np.uint8]
    """Shape (rows, ceil(bits / 8))."""
    row_entries: int
    """DYNAMIC_V0: keys a row is made for."""
    newest_count: int
    """DYNAMIC_V0: keys added to the newest row, and all that came after the filter was full."""

    def might_contain(self, keys: pa.Array[Any]) -> npt.NDArray[np.bool_]:
        """One flag a key, in order.

        Raises:
            KeyFieldError: a key is null.
        """
        keys = _as_text(keys)
        result = np.ones(len(keys), np.bool_)
        for block in _blocks(keys, at_most=max(1, (1 << 20) // len(self.rows))):
            result[block.rows] = self._probe(block)
        return result

    def might_contain_one(self, chains: _Words) -> bool:
        """Whether it might contain one of the keys of which these are the `hash_chains`."""
        places = chains[: self.hashes] % np.uint32(self.bits)
        byte, mask = places >> 3, np.left_shift(np.uint8(1), (places & 7).astype(np.uint8))
        return any(bool(((row[byte] & mask) != 0).all(axis=0).any()) for row in self.rows)

    def _probe(self, block: _Block) -> npt.NDArray[np.bool_]:
        # Each hash rules out half of the keys that are not in the filter, so the survivors are packed together again
        # and only they are hashed on. Keys that are in the filter are never copied.
        total = len(block)
        candidates: _Places | None = None
        alive = np.ones((len(self.rows), len(block)), np.bool_)
        for _ in range(self.hashes):
            place = block.next_places(self.bits)
            mask = np.left_shift(np.uint8(1), (place & 7).astype(np.uint8))
            alive &= (np.take(self.rows, place >> 3, axis=1) & mask) != 0
            any_row = np.logical_or.reduce(alive, axis=0)
            count = int(np.count_nonzero(any_row))
            if count < 0.8 * len(any_row):
                candidates = np.flatnonzero(any_row) if candidates is None else candidates[any_row]
                alive = alive[:, any_row]
                block.keep(any_row)
                if count == 0:
                    break
        result = np.zeros(total, np.bool_)
        result[slice(None) if candidates is None else candidates] = np.logical_or.reduce(alive, axis=0)
        return result

    @property
    def rate(self) -> float:
        """How often it says yes to a key that it does not hold, by the bits that are set."""
        by_row = (_ONES[self.rows].sum(axis=1) / self.bits) ** self.hashes
        return float(1 - np.prod(1 - by_row))

    def to_bytes(self) -> bytes:
        row_header = _ROW_HEADER.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        if self.type_code == SIMPLE:
            return row_header + self.rows.tobytes()
        head = _DYNAMIC_HEADER.pack(
            _VERSION, self.hashes, _MURMUR, self.bits, self.row_entries, self.newest_count, len(self.rows)
        )
        return head + b"".join(row_header + row.tobytes() for row in self.rows)


_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)
_FLAG_BITS = 1 << 26
_FLAGS_AT_ONCE = 1 << 20
"""Of several filters, a byte each."""


class BloomBuilder:
    """A SIMPLE or DYNAMIC_V0 filter of one row, made of keys that come in parts."""

    def __init__(self, start: HudiBloomFilter) -> None:
        self._start = replace(start, rows=start.rows[:, :0].copy())  # what is asked of it are its sizes
        self._count = start.newest_count
        self._flags: npt.NDArray[np.bool_] | None = None
        self._row = start.rows[0].copy()

    @classmethod
    def of(cls, type_code: str, num_entries: int, fpp: float, *, flag_bits: int = _FLAG_BITS) -> BloomBuilder:
        """An empty filter for so many keys; its type must be one that `builds_by_row`. Up to `flag_bits` each bit has a byte."""
        bits, hashes = bloom_size(num_entries, fpp)
        row = np.zeros((1, (bits + 7) // 8), np.uint8)
        builder = cls(HudiBloomFilter(type_code, bits, hashes, row, num_entries, 0))
        if bits <= flag_bits:  # as `_set_bits` says; a filter that is carried on gets few
            builder._flags = np.zeros(row.size * 8, np.bool_)
        return builder

    def add(self, keys: pa.Array[Any]) -> None:
        """Raises KeyFieldError where a key is null or empty."""
        text = _as_text(keys)
        hashed = 0
        for block in _blocks(text, at_most=_BLOCK_KEYS):
            hashed += len(block)
            for place in block.places(self._start.bits, self._start.hashes):
                if self._flags is not None:
                    self._flags[place] = True
                else:
                    mask = np.left_shift(np.uint8(1), (place & 7).astype(np.uint8))
                    np.bitwise_or.at(self._row, place >> 3, mask)
        if hashed < len(text):
            raise KeyFieldError(f"{len(text) - hashed} record keys are empty: a base file cannot hold them")
        self._count += len(text)

    def finished(self) -> HudiBloomFilter:
        row = self._row if self._flags is None else np.packbits(self._flags, bitorder="little")
        return replace(self._start, rows=row.reshape(1, -1), newest_count=self._count)


def hash_chains(keys: pa.Array[Any], hashes: int) -> _Words | None:
    """So many hashes of each key, a column for each key: what a filter of any size is made of. None where a key is empty.

    For the keys of many small files, and for a few keys that many files are asked for: the calls into numpy cost more than the work.
    """
    text = _as_text(keys)
    chains = np.empty((hashes, len(text)), np.uint32)
    hashed = 0
    for block in _blocks(text, at_most=_BLOCK_KEYS):
        hashed += len(block)
        for row in chains:
            row[block.rows] = block.next_absolute()
    return chains if hashed == len(text) else None


def bloom_of_chains(type_code: str, chains: _Words, *, num_entries: int, fpp: float) -> HudiBloomFilter:
    """The filter of at most `num_entries` keys, of which these are the `hash_chains`; its type must be one that `builds_by_row`."""
    return blooms_of_chains(type_code, chains, (0, chains.shape[1]), num_entries=num_entries, fpp=fpp)[0]


def blooms_of_chains(
    type_code: str, chains: _Words, bounds: Sequence[int], *, num_entries: int, fpp: float
) -> list[HudiBloomFilter]:
    """`bloom_of_chains` of the keys between each two of the `bounds`."""
    bits, hashes = bloom_size(num_entries, fpp)
    width = (bits + 7) // 8 * 8
    counts = np.diff(bounds)
    filters = []
    at_once = max(1, _FLAGS_AT_ONCE // width)
    for first in range(0, len(counts), at_once):
        some = counts[first : first + at_once]
        flags = np.zeros((len(some), width), np.bool_)
        places = chains[:hashes, bounds[first] : bounds[first + len(some)]] % np.uint32(bits)
        flags[np.repeat(np.arange(len(some)), some), places] = True
        rows = np.packbits(flags, axis=1, bitorder="little")
        filters += [
            HudiBloomFilter(type_code, bits, hashes, row, num_entries, count)
            for row, count in zip(rows[:, None], some.tolist(), strict=True)
        ]
    return filters


def builds_by_row(type_code: str) -> bool:
    """Whether a `BloomBuilder` makes filters of this type."""
    return type_code in (SIMPLE, DYNAMIC_V0)


def continued_bloom(bloom: BloomFilter | None, *, type_code: str, fpp: float, keys: int) -> BloomBuilder | None:
    """A builder that goes on with a filter; None where that is not one of this type and rate, for about so many `keys`."""
    if not isinstance(bloom, HudiBloomFilter) or bloom.type_code != type_code or len(bloom.rows) != 1 or keys < 1:
        return None
    bits, hashes = bloom_size(min(keys, most_entries(fpp)), fpp)
    fits = bits // 2 <= bloom.bits <= max(4 * bits, 1 << 14) and abs(bloom.hashes - hashes) <= 1
    return BloomBuilder(bloom) if fits else None


def _build_simple(
    keys: pa.Array[Any] | pa.ChunkedArray[Any], *, num_entries: int, fpp: float, max_entries: int
) -> HudiBloomFilter:
    bits, hashes = bloom_size(num_entries, fpp)
    rows = _set_bits(keys, bits=bits, hashes=hashes, rows=1, row_entries=num_entries)
    return HudiBloomFilter(SIMPLE, bits, hashes, rows, num_entries, len(keys))


def _build_dynamic(
    keys: pa.Array[Any] | pa.ChunkedArray[Any], *, num_entries: int, fpp: float, max_entries: int
) -> HudiBloomFilter:
    bits, hashes = bloom_size(num_entries, fpp)
    rows = max(1, min(math.ceil(len(keys) / num_entries), math.ceil(max_entries / num_entries)))
    if rows > _MAX_ROWS or rows * bits > MAX_BITS:
        raise OptionError(
            f"a dynamic bloom filter of {rows} rows with {bits} bits each does not fit a Parquet footer: "
            f"give more keys a row than {num_entries}, or a maximum below {max_entries}"
        )
    packed = _set_bits(keys, bits=bits, hashes=hashes, rows=rows, row_entries=num_entries)
    return HudiBloomFilter(DYNAMIC_V0, bits, hashes, packed, num_entries, len(keys) - (rows - 1) * num_entries)


def _row_of_key(first: int, count: int, *, rows: int, row_entries: int) -> npt.NDArray[np.intp]:
    """The row of each key numbered `first` and up: each row until it is full, then round all of them."""
    number = np.arange(first, first + count, dtype=np.intp)
    over = number - rows * row_entries
    # The key which finds the filter full goes to row 0 and the next one to row 0 again: Hudi starts its turn only then.
    return np.where(over < 0, number // row_entries, np.maximum(over - 1, 0) % rows)


def _set_bits(
    keys: pa.Array[Any] | pa.ChunkedArray[Any], *, bits: int, hashes: int, rows: int, row_entries: int
) -> npt.NDArray[np.uint8]:
    row_bytes = (bits + 7) // 8
    # One byte a bit while building: setting bits in place would need a read-modify-write for each, three times slower.
    flags = np.zeros(rows * row_bytes * 8, np.bool_)
    first = 0
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        text = _as_text(chunk)
        base = _row_of_key(first, len(text), rows=rows, row_entries=row_entries) * (row_bytes * 8) if rows > 1 else None
        hashed = 0
        for block in _blocks(text, at_most=_BLOCK_KEYS):
            hashed += len(block)
            for place in block.places(bits, hashes):
                if base is not None:
                    place += base[block.rows]
                flags[place] = True
        if hashed < len(text):
            raise KeyFieldError(f"{len(text) - hashed} record keys are empty: a base file cannot hold them")
        first += len(text)
    return np.packbits(flags, bitorder="little").reshape(rows, row_bytes)


def _parse_simple(data: bytes) -> HudiBloomFilter:
    bits, hashes, row, end = _parse_row(data, 0)
    if end != len(data):
        raise CorruptFileError(f"bloom filter SIMPLE has {len(data) - end} bytes after its bits: read the keys instead")
    return HudiBloomFilter(SIMPLE, bits, hashes, row.reshape(1, -1), row_entries=0, newest_count=0)


def _parse_dynamic(data: bytes) -> HudiBloomFilter:
    if len(data) < _DYNAMIC_HEADER.size:
        raise CorruptFileError(f"bloom filter DYNAMIC_V0 is cut off in its header, after {len(data)} bytes")
    version, hashes, kind, bits, row_entries, newest_count, rows = _DYNAMIC_HEADER.unpack_from(data)
    _check_header(version, hashes, kind, bits, offset=0)
    row_bytes = _ROW_HEADER.size + (bits + 7) // 8
    if not 1 <= rows <= _MAX_ROWS or len(data) - _DYNAMIC_HEADER.size != rows * row_bytes:
        raise CorruptFileError(
            f"bloom filter DYNAMIC_V0 says {rows} rows of {row_bytes} bytes, "
            f"but {len(data) - _DYNAMIC_HEADER.size} bytes follow its header"
        )
    row_header = _ROW_HEADER.pack(version, hashes, kind, bits)
    packed = np.frombuffer(data, np.uint8, offset=_DYNAMIC_HEADER.size).reshape(rows, row_bytes)
    same = (packed[:, : len(row_header)] == np.frombuffer(row_header, np.uint8)).all(axis=1)
    if not same.all():
        raise CorruptFileError(
            f"row {int(np.argmin(same))} of bloom filter DYNAMIC_V0 has another header than the filter"
        )
    return HudiBloomFilter(DYNAMIC_V0, bits, hashes, packed[:, len(row_header) :], row_entries, newest_count)


def _parse_row(data: bytes, offset: int) -> tuple[int, int, npt.NDArray[np.uint8], int]:
    if len(data) - offset < _ROW_HEADER.size:
        raise CorruptFileError(f"bloom filter is cut off in the header at byte {offset} of {len(data)}")
    version, hashes, kind, bits = _ROW_HEADER.unpack_from(data, offset)
    _check_header(version, hashes, kind, bits, offset=offset)
    start, length = offset + _ROW_HEADER.size, (bits + 7) // 8
    if len(data) - start < length:
        raise CorruptFileError(f"bloom filter says {bits} bits, but only {len(data) - start} bytes follow its header")
    return bits, hashes, np.frombuffer(data, np.uint8, count=length, offset=start), start + length


def _check_header(version: int, hashes: int, kind: int, bits: int, *, offset: int) -> None:
    if version != _VERSION or kind != _MURMUR or not 1 <= hashes <= _MAX_HASHES or bits < 1:
        raise CorruptFileError(
            f"bloom filter header at byte {offset} has version {version}, {hashes} hashes of kind {kind}, {bits} bits; "
            f"a filter has version {_VERSION}, 1 to {_MAX_HASHES} murmur hashes (kind {_MURMUR}) and some bits"
        )


def _as_text(keys: pa.Array[Any]) -> pa.Array[Any]:
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        raise SchemaError(f"record keys are of type {keys.type}: they must be strings")
    if keys.null_count:
        raise KeyFieldError(f"{keys.null_count} of {len(keys)} record keys are null")
    return keys


class _Block:
    """Keys of one word count, read once: `next_places` gives their bits for one hash after the other."""

    def __init__(
        self,
        rows: slice | _Places,
        words: list[_Words],
        length: np.uint32 | _Words,
        tail: _Words | None,
        tail_factor: np.uint32 | _Words,
    ) -> None:
        self.rows = rows
        """Where the keys stand in the array that they were read from."""
        self._words = words
        self._length = length
        self._tail = tail
        self._tail_factor = tail_factor
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        self._hash = np.zeros(count, np.uint32)
        self._make_room(count)

    def __len__(self) -> int:
        return len(self._hash)

    def _make_room(self, count: int) -> None:
        self._other = np.empty(count, np.uint32)
        self._place = np.empty(count, np.intp)

    def places(self, bits: int, hashes: int) -> Iterator[_Places]:
        """What so many calls of `next_places` give; rows of one array where the keys are few and calls cost more than the work."""
        if len(self) > _FEW_KEYS:
            for _ in range(hashes):
                yield self.next_places(bits)
            return
        chain = np.empty((hashes, len(self)), np.uint32)
        for row in chain:
            self._next_hash()
            row[:] = self._hash
        yield np.absolute(chain.view(np.int32)).view(np.uint32).astype(np.intp) % bits

    def next_places(self, bits: int) -> _Places:
        """The bit of each key under the next hash of its chain. The array is used again by the next call."""
        other = self.next_absolute()
        # A remainder in three steps, because numpy has a vectorised division and no vectorised remainder.
        size = np.uint32(bits)
        quotient = np.floor_divide(other, size)
        np.multiply(quotient, size, out=quotient)
        np.subtract(other, quotient, out=other)
        np.copyto(self._place, other)
        return self._place

    def next_absolute(self) -> _Words:
        """The next hash of each key, without its sign. The array is used again by the next call.

        abs(h % m) with Java's % is abs(h) mod m; the one value without an absolute, -2**31, is right as unsigned too.
        """
        self._next_hash()
        np.absolute(self._hash.view(np.int32), out=self._other.view(np.int32))
        return self._other

    def _next_hash(self) -> None:
        h, other = self._hash, self._other
        np.bitwise_xor(h, self._length, out=h)
        for word in self._words:
            np.multiply(h, _M, out=h)
            np.bitwise_xor(h, word, out=h)
        if self._tail is not None:
            np.bitwise_xor(h, self._tail, out=h)
            np.multiply(h, self._tail_factor, out=h)
        np.right_shift(h, _SHIFT_13, out=other)
        np.bitwise_xor(h, other, out=h)
        np.multiply(h, _M, out=h)
        np.right_shift(h, _SHIFT_15, out=other)
        np.bitwise_xor(h, other, out=h)

    def keep(self, alive: npt.NDArray[np.bool_]) -> None:
        """Go on with the flagged keys only."""
        self._hash = self._hash[alive]
        self._words = [word[alive] for word in self._words]
        if isinstance(self._length, np.ndarray):
            self._length = self._length[alive]
        if self._tail is not None:
            self._tail = self._tail[alive]
        if isinstance(self._tail_factor, np.ndarray):
            self._tail_factor = self._tail_factor[alive]
        self._make_room(len(self._hash))


def _blocks(keys: pa.Array[Any], *, at_most: int) -> Iterator[_Block]:
    """The non-empty keys, block by block; blocks of keys of different lengths have the same number of whole words."""
    if len(keys) == 0:
        return
    wide = pa.types.is_large_string(keys.type)
    _, offset_buffer, data_buffer = keys.buffers()
    width: type[np.int64 | np.int32] = np.int64 if wide else np.int32
    offsets = np.frombuffer(memoryview(offset_buffer or b""), width)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(memoryview(data_buffer or b""), np.uint8)
    lengths = np.diff(offsets)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if longest == 0:
        return
    if shortest == longest:
        size = _block_keys(longest // 4, at_most)
        for start in range(0, len(keys), size):
            stop = min(start + size, len(keys))
            yield _read_even(data, int(offsets[start]), start, stop, longest)
        return
    # A stable sort of 16-bit numbers is a radix sort, and it keeps neighbours together.
    order = np.argsort(lengths.astype(np.uint16) if longest < 1 << 16 else lengths, kind="stable")
    order = order[int(np.count_nonzero(lengths == 0)) :]
    words = lengths[order] >> 2
    edges = [0, *(np.flatnonzero(np.diff(words)) + 1).tolist(), len(order)]
    for group, end in itertools.pairwise(edges):
        count = int(words[group])
        size = _block_keys(count, at_most)
        for start in range(group, end, size):
            rows = order[start : min(start + size, end)]
            yield _read_uneven(data, offsets[rows].astype(np.intp), lengths[rows].astype(np.intp), rows, words=count)


def _block_keys(words: int, at_most: int) -> int:
    return max(1, min(at_most, _BLOCK_KEYS, _BLOCK_WORDS // (words + 4)))


def _read_even(data: npt.NDArray[np.uint8], first: int, start: int, stop: int, length: int) -> _Block:
    """A block of keys of one length that lie one behind the other from byte `first`."""

    def column(view: npt.NDArray[Any], at: int) -> npt.NDArray[Any]:
        return view[first + at : first + at + (stop - start - 1) * length + 1 : length]

    grouped = _words_at_each_byte(data)
    words = [_mixed(column(grouped, 4 * number)) for number in range(length // 4)]
    tail = np.zeros(stop - start, np.int32)
    for back in range(1, length % 4 + 1):
        tail ^= column(data.view(np.int8), length - back).astype(np.int32) << (8 * (back - 1))
    return _Block(slice(start, stop), words, np.uint32(length), tail.view(np.uint32) if length % 4 else None, _M)


def _read_uneven(
    data: npt.NDArray[np.uint8], first: _Places, lengths: npt.NDArray[np.intp], rows: _Places, *, words: int
) -> _Block:
    """A block of keys of `words` whole words and 0 to 3 bytes more, from the first byte of each."""
    grouped = _words_at_each_byte(data)
    rest = lengths & 3
    tail = np.zeros(len(rows), np.int32)
    for back in (1, 2, 3):
        has = rest >= back
        tail[has] ^= data.view(np.int8)[(first + lengths)[has] - back].astype(np.int32) << (8 * (back - 1))
    # Keys without a tail go through its step unchanged: xor with 0, times 1.
    factor = np.where(rest > 0, _M, np.uint32(1))
    mixed = [_mixed(grouped[first + 4 * number]) for number in range(words)]
    return _Block(rows, mixed, lengths.astype(np.uint32), tail.view(np.uint32), factor)


def _words_at_each_byte(data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """The 4-byte words that begin at each byte of the buffer: a view with strides of 1, nothing is copied."""
    return np.ndarray(max(0, len(data) - 3), np.dtype("<u4"), data.data, strides=(1,))


def _mixed(words: npt.NDArray[Any]) -> _Words:
    """What a word becomes before it meets the hash; the seed has no part in it."""
    out = words.astype(np.uint32)
    np.multiply(out, _M, out=out)
    np.bitwise_xor(out, out >> _SHIFT_24, out=out)
    np.multiply(out, _M, out=out)
    return out


_makers: dict[str, tuple[_Build, Callable[[bytes], BloomFilter]]] = {
    DYNAMIC_V0: (_build_dynamic, _parse_dynamic),
    SIMPLE: (_build_simple, _parse_simple),
    bloom_private.TYPE_CODE: (bloom_private.build, bloom_private.parse),
}
