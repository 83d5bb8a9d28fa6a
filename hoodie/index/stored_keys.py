"""Record keys of base files that were looked into, or that are small and were written here: a base file never changes, so a process
reads its keys once.

Few keys of a batch meet many stored ones, upsert after upsert. So what was read for one look-up is kept for the next, by the
file's exact path, size and modification time, within a bound; and where it is asked again, sorted by hash. Small files are
written again and again and looked into by each write: their keys are there before they are asked for. Ingest in small batches
leaves many of them, so those that stay as they are get one sorted index for several: a look-up then costs a part of one a file.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.hashing import key_hash
from hoodie.format.base_file import BaseFileFooter
from hoodie.storage.base import Storage

CAPACITY_BYTES = 64 * 1024 * 1024
_SMALL_WRITE_BYTES = 256 * 1024
_LARGEST_SHARE = 4
"""No file takes more than this part of the room: the others would be forgotten for one that may not come again."""
_INDEX_BYTES = 12
_FEW = 8
"""Asked for fewer than one in so many of its keys, a file's keys are sorted by hash once; else Arrow hashes them anew."""
_SMALL = 16 * 1024
"""A file of fewer keys is asked like one of so many: of small files there are many, and the hashes of a few keys that are sought
serve for all of them. To hash many keys takes longer than Arrow needs for the file's."""
BLOCK_FILES = 8
"""So many files share a sorted index; each that is written anew undoes the index of its block."""


def held_key_bytes(files: int) -> int:
    """Keys of each of so many files that a write may hold for `KnownFiles.remember`."""
    return min(_SMALL_WRITE_BYTES, CAPACITY_BYTES // max(1, files))


class FileName(NamedTuple):
    """A base file as it was read; one that was replaced in its place is another."""

    uri: str
    path: str
    size_bytes: int
    mtime_s: float


class KnownFile:
    """What is known of one base file; thread-safe."""

    def __init__(self, footer: BaseFileFooter) -> None:
        self.footer = replace(footer, bloom_base64=None)
        """Without the filter, which is the largest part of it and needed only while the keys are not known."""
        self.keys: pa.Array | None = None
        self.block: KeyBlock | None = None
        self.asked = False
        """Whether keys were sought in it since they are known."""
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def count(self) -> int:
        """How many keys are known."""
        return 0 if self.keys is None else len(self.keys)

    @property
    def size_bytes(self) -> int:
        return 0 if self.keys is None else self.keys.nbytes + _INDEX_BYTES * len(self.keys)

    def places(self, keys: pa.Array, hashed: Callable[[], np.ndarray] | None = None) -> np.ndarray:
        """For each of the keys the number of the first row that has it, -1 where none does. `hashed`: gives their `key_hash`."""
        stored = self.keys
        if stored is None:
            raise ValueError(f"the keys of {self.footer.path} were not read")
        asked, self.asked = self.asked, True
        if not asked or not are_few(len(keys), len(stored)):
            return places_among(keys, stored)
        if self._sorted is None:
            self._sorted = _by_hash(stored)
        hashes, order = self._sorted
        wanted = key_hash(keys) if hashed is None else hashed()
        at = np.searchsorted(hashes, wanted)
        found = np.full(len(keys), -1, dtype=np.int32)
        hits = np.flatnonzero(hashes[np.minimum(at, len(hashes) - 1)] == wanted)
        if len(hits):
            found[hits] = order[at[hits]]
            equal = pc.equal(stored.take(pa.array(found[hits])), keys.take(pa.array(hits)))
            other = hits[~equal.to_numpy(zero_copy_only=False)]
            if len(other):  # another key of the same hash stands first
                found[other] = places_among(keys.take(pa.array(other)), stored)
        return found

    def join(self, block: KeyBlock) -> None:
        """Be asked as one of the block from now on."""
        self.leave()
        self.block, self._sorted = block, None

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
        self._hashes, self._order = _by_hash(pa.concat_arrays(self._keys))
        for file in files:
            file.join(self)

    def __len__(self) -> int:
        return int(self._begins[-1])

    def places(self, keys: pa.Array, wanted: np.ndarray) -> dict[KnownFile, np.ndarray]:
        """For each file that has any of the keys what `KnownFile.places` gives. `wanted`: the keys' `key_hash`."""
        first = np.searchsorted(self._hashes, wanted)
        hits = np.flatnonzero(self._hashes[np.minimum(first, len(self._hashes) - 1)] == wanted)
        if not len(hits):
            return {}
        # A hash may stand there several times: for another key, and for the same one in other files or rows.
        counts = np.searchsorted(self._hashes, wanted[hits], side="right") - first[hits]
        seeking = np.repeat(hits, counts)
        nth = np.arange(len(seeking)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = self._order[np.repeat(first[hits], counts) + nth]
        numbers = np.searchsorted(self._begins, at, side="right") - 1
        found = {}
        for number in np.unique(numbers):
            file = self.files[number]
            mine = np.flatnonzero(numbers == number)[::-1]
            rows = at[mine] - self._begins[number]
            same = pc.equal(self._keys[number].take(pa.array(rows)), keys.take(pa.array(seeking[mine])))
            equal = same.to_numpy(zero_copy_only=False)
            if equal.any():
                found[file] = np.full(len(keys), -1, dtype=np.int32)
                # The order is stable and was turned round: of several rows with a key the first is assigned last.
                found[file][seeking[mine][equal]] = rows[equal]
        return found


def in_blocks(files: Sequence[KnownFile | None], sought: int) -> None:
    """Give files that stand together in `files` an index in common, where so many keys are sought in each of them by hash.

    `files` come in an order in which new ones stand last, so that the blocks stay the same.
    """
    for start in range(0, len(files) - BLOCK_FILES + 1, BLOCK_FILES):
        chosen = [file for file in files[start : start + BLOCK_FILES] if file is not None and file.keys is not None]
        if len(chosen) < BLOCK_FILES or not all(file.asked for file in chosen):
            continue  # asked for the first time: a file that is still growing will not be there again
        block = chosen[0].block
        if block is not None and block.files == tuple(chosen):
            continue
        total = sum(file.count for file in chosen)
        if total and are_few(sought, total):
            KeyBlock(chosen)


def are_few(sought: int, stored: int) -> bool:
    """Whether looking so many keys up in a sorted index of so many costs less than hashing all of them anew."""
    return _FEW * sought <= max(stored, _SMALL)


def _by_hash(keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The hashes in their order, and the row of each; rows of one hash in the file's order."""
    hashes = key_hash(keys)
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return hashes[order], order


class KnownFiles:
    """The files of this process that were looked into last, within `capacity_bytes` of keys."""

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity_bytes
        self._files: OrderedDict[FileName, KnownFile] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def name_of(self, storage: Storage, path: str) -> FileName | None:
        """None where two storages may have the same uri, or the file is gone."""
        local = storage.local_path(path)
        if local is None:
            return None
        try:
            info = os.stat(local)  # of each of many small files, for each write
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileName(storage.uri, path, info.st_size, info.st_mtime)

    def remember(self, storage: Storage, path: str, keys: pa.Array) -> None:
        """Keep the keys of a file that this process has just written and published; they are not read to be looked into."""
        with suppress(OSError):
            bounds = pc.min_max(keys).as_py()
            footer = BaseFileFooter(path, len(keys), bounds["min"], bounds["max"], None, None, None)
            self.put(self.name_of(storage, path), footer, keys)

    def get(self, name: FileName | None) -> KnownFile | None:
        with self._lock:
            if name is None or name not in self._files:
                return None
            self._files.move_to_end(name)
            return self._files[name]

    def put(self, name: FileName | None, footer: BaseFileFooter, keys: pa.Array | None = None) -> None:
        """Remember the footer, and the keys where they fit."""
        if name is None:
            return
        known = KnownFile(footer)
        if keys is not None:
            known.keys = keys
            if not self.takes(keys.nbytes, len(keys)):
                known.keys = None
        with self._lock:
            self._drop(name)
            self._files[name] = known
            self._bytes += known.size_bytes + _FOOTER_BYTES
            while self._bytes > self._capacity:
                self._drop(next(iter(self._files)))

    def takes(self, key_bytes: int, count: int) -> bool:
        return key_bytes + _INDEX_BYTES * count <= self._capacity // _LARGEST_SHARE

    def _drop(self, name: FileName) -> None:
        old = self._files.pop(name, None)
        if old is not None:
            old.leave()  # the index of its block holds the keys that go
            self._bytes -= old.size_bytes + _FOOTER_BYTES


_FOOTER_BYTES = 8 * 1024
"""What a footer takes, most of it the schema."""

KNOWN_FILES = KnownFiles()


def places_among(keys: pa.Array, stored: pa.Array) -> np.ndarray:
    """For each of the keys the number of the first of the others that is equal, int32, -1 where there is none."""
    # Arrow hashes the value set: make it the smaller side, and come back by position when it is the candidates.
    if len(stored) <= 2 * len(keys):
        result: np.ndarray = _indices(keys, stored)
        return result
    of_stored = _indices(stored, keys)
    hits = np.flatnonzero(of_stored >= 0)[::-1]
    found = np.full(len(keys), -1, dtype=np.int32)
    found[of_stored[hits]] = hits  # of repeated indices numpy keeps the last assignment: the first row
    if len(keys) > 1 and pc.count_distinct(keys).as_py() != len(keys):
        found = found[_indices(keys, keys)]
    return found


def _indices(keys: pa.Array, among: pa.Array) -> np.ndarray:
    indices: np.ndarray = pc.fill_null(pc.index_in(keys, value_set=among), -1).to_numpy(zero_copy_only=False)
    return indices
