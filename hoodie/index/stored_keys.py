"""Record keys of base files that were looked into, or that are small and were written here: a base file never changes, so a process
reads its keys once.

Few keys of a batch meet many stored ones, upsert after upsert. So what was read for one look-up is kept for the next, sorted by
hash. Small files are written again and again and
looked into by each write: their keys are there before they are asked for. Ingest in small batches leaves many of them, so those
that stay as they are get one sorted index for several: a look-up then costs a part of one a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.filegroup.conform import conform
from hoodie.format.base_file import BaseFileFooter, key_range
from hoodie.format.parquet_file import read_batches
from hoodie.index.hash_index import HashedKeys, HashIndex, confirmed
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import UnstoredColumns
from hoodie.model.sought import SoughtRows
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, FileKey, Kind, file_key

_SMALL_WRITE_BYTES = 256 * 1024
_HELD_SHARE = 3
"""The keys that a write holds to remember them take no more than this part of the cache."""
_LARGEST_SHARE = 12
"""The keys of no file take more: the others would be forgotten for one that may not come again."""
_FOOTER_BYTES = 8 * 1024
"""What a footer takes, most of it the schema."""
_INDEX_BYTES = 8
_KEY_ONLY = pa.schema([pa.field(RECORD_KEY, pa.string())])
BLOCK_FILES = 8
"""So many files share a sorted index; each that is written anew undoes the index of its block."""
_FEW_KEYS = 1024
"""To hash and sort so many takes as long as to ask one index that is there."""


def held_key_bytes(cache: Cache, files: int) -> int:
    """Keys of each of so many files that a write may hold for `KnownFiles.remember`."""
    return min(_SMALL_WRITE_BYTES, cache.capacity_bytes // _HELD_SHARE // max(1, files))


def stored_keys(
    file: pq.ParquetFile, base: str, unstored: UnstoredColumns | None, *, batch_rows: int, path: str
) -> Iterator[pa.Array]:
    """The record keys of the base file `base`, in the order of its rows; `path` is for messages.

    Raises:
        CorruptFileError: they cannot be read.
    """
    if unstored is None or not unstored.keys:
        if RECORD_KEY not in file.schema_arrow.names:
            raise CorruptFileError(f"the record keys of {path} cannot be read: it has no column {RECORD_KEY}")
        for batch in read_batches(file, [RECORD_KEY], batch_rows=batch_rows, path=path):
            yield batch.column(0)
        return
    stored = unstored.decoded(_KEY_ONLY)
    there = [name for name in stored.names if name in file.schema_arrow.names]
    for batch in read_batches(file, there, batch_rows=batch_rows, path=path):
        yield unstored.completed(conform(batch, stored, path=path), _KEY_ONLY, base).column(0)


class KeyAnswer(NamedTuple):
    """Which rows of a file have one of many keys. It outlasts the read that sought them, for a write of the same keys."""

    keys: pa.Array
    """What was sought."""
    found: SoughtRows

    @property
    def size_bytes(self) -> int:
        return int(self.keys.nbytes + self.found.numbers.nbytes + self.found.keys.nbytes)

    def places(self, keys: pa.Array) -> np.ndarray | None:
        """As `KnownFile.places`; None where others of the keys were not sought."""
        if not pc.all(pc.is_in(keys, value_set=self.keys)).as_py():
            return None
        places = places_among(keys, self.found.keys)
        if not len(self.found.numbers):
            return places
        return np.where(places < 0, -1, self.found.numbers[places]).astype(np.int32)


class KnownFile:
    """What is known of one base file; thread-safe."""

    def __init__(self, footer: BaseFileFooter, answer: KeyAnswer | None = None) -> None:
        self.footer = footer if footer.bloom_base64 is None else replace(footer, bloom_base64=None)
        """Without the filter, which is the largest part of it and needed only while the keys are not known."""
        self.keys: pa.Array | None = None
        self.answer = answer
        self.block: KeyBlock | None = None
        self.queried = False
        """Whether keys were sought in it since they are known."""
        self._index: HashIndex | None = None

    @property
    def count(self) -> int:
        """How many keys are known."""
        return 0 if self.keys is None else len(self.keys)

    @property
    def size_bytes(self) -> int:
        of_answer = 0 if self.answer is None else self.answer.size_bytes
        return of_answer if self.keys is None else self.keys.nbytes + _INDEX_BYTES * len(self.keys)

    def places(self, keys: HashedKeys) -> np.ndarray:
        """For each of the keys the number of the first row that has it, -1 where none does."""
        stored = self._stored()
        pairs = self._indexed(stored).pairs(keys)
        if pairs is None:
            return places_among(keys.keys, stored)
        numbers, rows = pairs
        return _first_rows(len(keys), *_only(confirmed(keys.keys, numbers, stored, rows), numbers, rows))

    @property
    def is_small(self) -> bool:
        """Whether it takes as long to ask it as to look into all of its keys."""
        return self.keys is not None and self.block is None and len(self.keys) <= _FEW_KEYS

    def _stored(self) -> pa.Array:
        if self.keys is None:
            raise ValueError(f"the keys of {self.footer.path} were not read")
        return self.keys

    def _indexed(self, stored: pa.Array) -> HashIndex:
        self.queried = True
        index = self._index  # another thread's block may undo it meanwhile
        if index is None:
            index = self._index = HashIndex(stored)
        return index

    def rows(self, keys: HashedKeys) -> np.ndarray:
        """The numbers of all rows that have one of the keys, ascending."""
        stored = self._stored()
        pairs = self._indexed(stored).pairs(keys)
        if pairs is None:
            return np.flatnonzero(pc.is_in(stored, value_set=keys.keys).to_numpy(zero_copy_only=False))
        numbers, rows = pairs
        return np.unique(rows[confirmed(keys.keys, numbers, stored, rows)])

    def join(self, block: KeyBlock) -> None:
        """Be asked as one of the block from now on."""
        self.leave()
        self.block, self._index = block, None

    def leave(self) -> None:
        """Undo the index of its block for all of the files: none of them may keep it alive by itself."""
        block = self.block
        for file in block.files if block is not None else ():
            if file.block is block:
                file.block = None


class KeyBlock:
    """Keys of several files, none of which is written any more, under one index sorted by hash; thread-safe.

    Like the runs of a log-structured merge tree: what is new stands beside it and is looked into by itself.
    """

    def __init__(self, files: Sequence[KnownFile]) -> None:
        self.files = tuple(files)
        self._keys = [file.keys for file in files if file.keys is not None]
        if len(self._keys) != len(files):
            raise ValueError("the keys of a file of the block were not read")
        self._begins = np.cumsum([0, *map(len, self._keys)])
        self._index = HashIndex(pa.concat_arrays(self._keys))
        for file in files:
            file.join(self)

    def places(self, keys: HashedKeys) -> dict[KnownFile, np.ndarray]:
        """For each file that has any of the keys what `KnownFile.places` gives."""
        pairs = self._index.pairs(keys)
        if pairs is None:
            places = {file: file.places(keys) for file in self.files}
            return {file: rows for file, rows in places.items() if (rows >= 0).any()}
        numbers, places_in_all = pairs
        of_file = np.searchsorted(self._begins, places_in_all, side="right") - 1
        result = {}
        for at in np.unique(of_file):
            mine = of_file == at
            sought_here, rows = numbers[mine], places_in_all[mine] - self._begins[at]
            same = confirmed(keys.keys, sought_here, self._keys[at], rows)
            if same.any():
                result[self.files[at]] = _first_rows(len(keys), *_only(same, sought_here, rows))
        return result


def places_in_small(
    sought: Mapping[HashedKeys, Sequence[KnownFile]],
) -> dict[tuple[HashedKeys, KnownFile], np.ndarray | None]:
    """What `KnownFile.places` gives for the keys and each file that they are sought in, None where no key is there; by one look-up
    for all. Empty where far too many keys have one hash.
    """
    asked = [
        (number, keys, file, file.keys)
        for number, (keys, files) in enumerate(sought.items())
        for file in files
        if file.keys is not None and file.keys.type == keys.keys.type
    ]
    if not asked:
        return {}
    all_keys = pa.concat_arrays([keys.keys for keys in sought])
    all_stored = pa.concat_arrays([stored for *_, stored in asked])
    counts, stored_counts = [len(keys) for keys in sought], [len(stored) for *_, stored in asked]
    begins, stored_begins = np.cumsum([0, *counts]), np.cumsum([0, *stored_counts])
    # A key is sought in the files of its own group only: another partition may have it, too.
    groups = np.repeat(np.arange(len(sought)), counts)
    stored_groups = np.repeat([number for number, *_ in asked], stored_counts)
    pairs = HashIndex(all_stored, stored_groups).pairs(HashedKeys(all_keys, groups))
    if pairs is None:
        return {}
    numbers, rows = pairs
    same = confirmed(all_keys, numbers, all_stored, rows) & (groups[numbers] == stored_groups[rows])
    numbers, rows = _only(same, numbers, rows)
    order = np.argsort(rows, kind="stable")
    numbers, rows = numbers[order] - begins[groups[numbers[order]]], rows[order]
    bounds = np.searchsorted(rows, stored_begins).tolist()
    result: dict[tuple[HashedKeys, KnownFile], np.ndarray | None] = {}
    for (_, keys, file, _), start, end, begin in zip(asked, bounds, bounds[1:], stored_begins, strict=False):
        file.queried = True
        found = _first_rows(len(keys), numbers[start:end], rows[start:end] - begin) if end > start else None
        result[keys, file] = found
    return result


def _only(mask: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (numbers, rows) if mask.all() else (numbers[mask], rows[mask])


def _first_rows(count: int, numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """For each of so many keys the least of its rows, -1 where it has none; `rows` of a key ascend."""
    result = np.full(count, -1, dtype=np.int32)
    result[numbers[::-1]] = rows[::-1]  # of repeated numbers numpy keeps the last assignment
    return result


def in_blocks(files: Sequence[KnownFile | None]) -> None:
    """Give files that stand together in `files` an index in common, where keys were sought in each of them before.

    `files` come in an order in which new ones stand last, so that the blocks stay the same.
    """
    for start in range(0, len(files) - BLOCK_FILES + 1, BLOCK_FILES):
        chosen = [file for file in files[start : start + BLOCK_FILES] if file is not None and file.keys is not None]
        if len(chosen) < BLOCK_FILES or not all(file.queried for file in chosen):
            continue  # asked for the first time: a file that is still growing will not be there again
        block = chosen[0].block
        if (block is None or block.files != tuple(chosen)) and sum(file.count for file in chosen) > _FEW_KEYS:
            KeyBlock(chosen)


_KEYS: Kind[KnownFile] = Kind("keys of a file", forget=KnownFile.leave)  # the index of its block holds the keys that go


class KnownFiles:
    """The files of a table that were looked into last, as far as the cache keeps them."""

    def __init__(self, storage: Storage, cache: Cache) -> None:
        self._storage = storage
        self._cache = cache

    def name_of(self, path: str, size_bytes: int | None = None) -> FileKey | None:
        """None where the file is gone. Where a look is a request, the size that commits state is enough: base files never change."""
        if size_bytes is not None and self._storage.can.is_remote:
            return FileKey(self._storage.identity, path, size_bytes)
        try:
            return file_key(self._storage, self._storage.stat(path))  # of each of many small files, for each write
        except FileNotFoundError:
            return None

    def remember(self, path: str, keys: pa.Array, size_bytes: int | None = None) -> None:
        """Keep the keys of a file that this process has just written and published; they are not read to be looked into."""
        with suppress(OSError):
            least, greatest = key_range(keys) or (None, None)
            footer = BaseFileFooter(path, len(keys), least, greatest, None, None, None)
            self.put(self.name_of(path, size_bytes), footer, keys)

    def get(self, name: FileKey | None) -> KnownFile | None:
        return None if name is None else self._cache.find(_KEYS, name)

    def put(
        self,
        name: FileKey | None,
        footer: BaseFileFooter,
        keys: pa.Array | None = None,
        answer: KeyAnswer | None = None,
    ) -> KnownFile:
        """Remember the footer, and the keys where they fit, or an answer about them."""
        file = KnownFile(footer, answer)
        if keys is not None and self.takes(keys.nbytes, len(keys)):
            file.keys = keys
        if name is not None:
            self._cache.put(_KEYS, name, file, file.size_bytes + _FOOTER_BYTES)
        return file

    def takes(self, key_bytes: int, count: int) -> bool:
        return key_bytes + _INDEX_BYTES * count <= self._cache.capacity_bytes // _LARGEST_SHARE


def places_among(keys: pa.Array, stored: pa.Array) -> np.ndarray:
    """For each of the keys the number of the first of the others that is equal, int32, -1 where there is none."""
    # Arrow hashes the value set: make it the smaller side, and come back by position when it is the candidates.
    if len(stored) <= 2 * len(keys):
        result: np.ndarray = _indices(keys, stored)
        return result
    of_stored = _indices(stored, keys)
    hits = np.flatnonzero(of_stored >= 0)[::-1]
    positions = np.full(len(keys), -1, dtype=np.int32)
    positions[of_stored[hits]] = hits  # of repeated indices numpy keeps the last assignment: the first row
    if len(keys) > 1 and pc.count_distinct(keys).as_py() != len(keys):
        positions = positions[_indices(keys, keys)]
    return positions


def _indices(keys: pa.Array, among: pa.Array) -> np.ndarray:
    indices: np.ndarray = pc.fill_null(pc.index_in(keys, value_set=among), -1).to_numpy(zero_copy_only=False)
    return indices
