"""What the footer of a base file says about its keys, collected while the rows stream past: bloom filter and bounds.

A merge changes few of a file's keys. So it goes on with the filter of the file that it replaces and adds the new keys. Where rows are
gone, or when that filter would answer too often in vain, it is built anew, by the keys: nothing of a deleted key stays. Keys are kept
back for that as long as they are few; of more keys it has to be said beforehand that some may go.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.base_file import BaseFileFooter, entries_for, footer_entries, key_range
from hoodie.format.bloom import (
    BloomBuilder,
    BloomFilter,
    bloom_of_chains,
    bloom_size,
    build_bloom,
    builds_by_row,
    continued_bloom,
    hash_chains,
)
from hoodie.model.plans import FileOptions

HELD_BYTES = 32 * 1024 * 1024
"""Keys of a file that are kept until it is finished; a larger file's filter is sized by a bound on its rows."""
_WORSE = 8.0
"""A filter is carried on while it answers in vain at most this many times as often as asked."""


class FooterKeys:
    """The keys of one base file, in the order of its rows."""

    def __init__(
        self,
        options: FileOptions,
        *,
        before: BaseFileFooter | None = None,
        at_most: int | None = None,
        sheds: bool = False,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        """`before`: the footer of the file whose rows come, with new ones, and `sheds`: without some of them, perhaps. `at_most`: a
        bound on the number of rows.
        """
        self._options = options
        self._most_held_bytes = held_bytes
        self._at_most = at_most
        self._keys: list[pa.Array] | None = []
        self._keys_bytes = 0
        self._bounds: list[str] = []
        self._sheds = sheds
        self._missing = 0 if before is None else before.record_count
        """So many rows of the file `before` have not come."""
        self._builder: BloomBuilder | None = None
        self._carried_on = False
        self._chains: np.ndarray | None = None
        if before is not None and options.bloom_num_entries is None:
            self._builder = _carried_on(before, options)
            self._carried_on = self._builder is not None

    def add(self, keys: pa.ChunkedArray, *, new: bool, chains: np.ndarray | None = None) -> None:
        """Keys of further rows. Not `new`: all of them stand in the file `before`. `chains`: `footer_chains` of all keys of
        the file.

        Raises:
            KeyFieldError: a key is null or empty.
        """
        self._bounds.extend(key_range(keys) or ())
        self._chains = chains
        self._missing -= 0 if new else len(keys)
        if self._builder is not None and (new or not self._carried_on):
            self._build(keys)
        if self._keys is None:
            return
        self._keys.extend(keys.chunks)
        self._keys_bytes += keys.nbytes
        carries_on = self._carried_on and not self._sheds
        if self._keys_bytes > self._most_held_bytes and (carries_on or self._streams()):
            arrays, self._keys = self._keys, None
            if not carries_on:
                self._carried_on = False
                entries = entries_for(self._at_most or 1, self._options.bloom_fpp)
                self._builder = BloomBuilder.of(self._options.bloom_type, entries, self._options.bloom_fpp)
                self._build(pa.chunked_array(arrays, pa.string()))

    def keys_below(self, most_bytes: int) -> pa.Array | None:
        """All of the keys; None where they take as much or more."""
        if self._keys is None or self._keys_bytes >= most_bytes:
            return None
        # Copied: a chunk may be a slice of a whole batch, which would stay in memory with it.
        return pa.concat_arrays(self._keys) if self._keys else pa.array([], pa.string())

    def _build(self, keys: pa.ChunkedArray) -> None:
        if self._builder is not None:
            for chunk in keys.chunks:
                self._builder.add(chunk)

    def metadata(self, avro_schema_json: str) -> dict[str, str]:
        """The footer's key-values."""
        bounds = self._bounds  # of each part the least and the greatest
        range_ = (bounds[0], bounds[1]) if len(bounds) == 2 else key_range(pa.array(bounds, pa.string()))
        return footer_entries(self._filter(), range_, avro_schema_json)

    def _streams(self) -> bool:
        options = self._options
        return self._at_most is not None and options.bloom_num_entries is None and builds_by_row(options.bloom_type)

    def _filter(self) -> BloomFilter:
        options = self._options
        is_of_others = self._carried_on and self._missing > 0 and self._keys is not None
        if self._builder is not None and not is_of_others:
            bloom = self._builder.finished()
            if self._keys is None or bloom.rate <= _WORSE * options.bloom_fpp:
                return bloom
        keys = pa.chunked_array(self._keys or [], pa.string())
        entries, most = options.bloom_num_entries, options.bloom_max_entries
        if entries is None:
            entries = most = entries_for(len(keys), options.bloom_fpp)
        hashes, count = (0, 0) if self._chains is None else self._chains.shape
        if (
            self._chains is not None
            and count == len(keys) <= entries
            and bloom_size(entries, options.bloom_fpp)[1] <= hashes
        ):
            return bloom_of_chains(options.bloom_type, self._chains, num_entries=entries, fpp=options.bloom_fpp)
        return build_bloom(options.bloom_type, keys, num_entries=entries, fpp=options.bloom_fpp, max_entries=most)


def footer_chains(keys: pa.Array, options: FileOptions) -> np.ndarray | None:
    """What the filters of new files are made of, a column for each key; None where they are made of the keys themselves."""
    if not builds_by_row(options.bloom_type):
        return None
    _, most = bloom_size(options.bloom_num_entries or entries_for(1, options.bloom_fpp), options.bloom_fpp)
    return hash_chains(keys, most + 1)  # rounded up, the number of a larger file may be one more


def _carried_on(before: BaseFileFooter, options: FileOptions) -> BloomBuilder | None:
    try:
        return continued_bloom(
            before.bloom(), type_code=options.bloom_type, fpp=options.bloom_fpp, keys=before.record_count
        )
    except (CorruptFileError, UnsupportedTableError):
        return None  # whatever it was, the keys are there
