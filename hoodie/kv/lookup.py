"""Looking into the data files of one state of a bucket, through all of its runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import nlargest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.kv.binary import KEYS, VALUES, Binary, listed
from hoodie.kv.data_files import DataFormat, DataReader
from hoodie.kv.manifest import DataFile, Manifest
from hoodie.kv.names import data_file
from hoodie.kv.rows import NOTHING, SortedRows, merged, position
from hoodie.kv.runs import cuts
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind

_OPEN: Kind[DataReader] = Kind("open key-value files")
_OPEN_BYTES = 64 * 1024


class Files:
    """The files of one state. Thread-safe."""

    def __init__(self, storage: Storage, manifest: Manifest, data_format: DataFormat, cache: Cache) -> None:
        self.manifest = manifest
        self._storage = storage
        self._format = data_format
        self._cache = cache
        self._readers: dict[str, DataReader] = {}
        """By name. The cache would be asked for each file of each get, which takes a tenth of it."""

    @cached_property
    def _runs(self) -> Sequence[tuple[list[bytes], list[DataFile]]]:
        """Newest first: where files begin, and the files."""
        numbers = {file.run for file in self.manifest.files}
        result = []
        for number in nlargest(len(numbers), numbers):
            files = sorted((file for file in self.manifest.files if file.run == number), key=lambda file: file.first)
            result.append(([file.first for file in files], files))
        return result

    def get(self, key: bytes) -> bytes | None:
        oldest = len(self._runs) - 1
        for at, (firsts, files) in enumerate(self._runs):
            number = bisect_right(firsts, key) - 1
            if number >= 0 and key <= files[number].last:
                is_there, value = self.open(files[number]).get(key, is_likely=at == oldest)
                if is_there:
                    return value
        return None

    def get_many(self, keys: Binary) -> Binary:
        """Values in the order of the keys; null where there is none."""
        remaining = pc.unique(keys.cast(KEYS)).drop_null()
        remaining = remaining.take(pc.array_sort_indices(remaining))
        row_parts: list[SortedRows] = []
        for firsts, files in self._runs:
            if not len(remaining):
                break
            numbers = np.array([bisect_right(firsts, key) - 1 for key in listed(remaining)], np.int64)
            parts = []
            for number in np.unique(numbers[numbers >= 0]):
                low, high = np.searchsorted(numbers, (number, number + 1))
                key_slice = remaining.slice(low, high - low)
                parts.append(self.open(files[int(number)]).get_many(SortedRows(key_slice, NOTHING.values)))
            rows = _joined(parts)
            row_parts.append(rows)
            remaining = remaining.filter(pc.invert(pc.is_in(remaining, value_set=rows.keys)))
        rows = _joined(row_parts)
        return rows.values.take(pc.index_in(keys.cast(KEYS), rows.keys))

    def scan(
        self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[SortedRows]:
        """All rows of a range in order, without deleted ones; `reverse`: the last first."""
        files = [
            file
            for file in self.manifest.files
            if (start is None or file.last >= start) and (stop is None or file.first < stop)
        ]
        ranges = list(cuts(files))
        for low, high in reversed(ranges) if reverse else ranges:
            low = low if start is None else max(low, start)
            high = stop if high is None else high if stop is None else min(high, stop)
            if high is None or low < high:
                parts = self.merge(files, low, high, drop_deletes=True)
                yield from map(turned, reversed(list(parts))) if reverse else parts

    def merge(
        self, files: Sequence[DataFile], start: bytes, stop: bytes | None, *, drop_deletes: bool
    ) -> Iterator[SortedRows]:
        """The rows of these files in a range between two of their beginnings, where one file of each run lies at most."""
        here = [file for file in files if file.last >= start and (stop is None or file.first < stop)]
        here.sort(key=lambda file: file.run)
        scans = [self.open(file).scan(start, stop) for file in here]
        if len(here) == 1 and not (drop_deletes and here[0].has_deletes):
            yield from scans[0]
            return
        for parts in side_by_side(scans):
            rows = merged(parts, drop_deletes=drop_deletes)
            if len(rows.keys):
                yield rows

    def open(self, file: DataFile) -> DataReader:
        result = self._readers.get(file.name)
        if result is None:
            path = data_file(file.name)
            key = (self._storage.identity, path, file.size_bytes, file.made_s)
            result = self._readers[file.name] = self._cache.get(
                _OPEN, key, lambda: self._format.open(self._storage, path, self._cache), lambda _: _OPEN_BYTES
            )
        return result


def side_by_side(scans: Sequence[Iterator[SortedRows]]) -> Iterator[Sequence[SortedRows]]:
    """Rows of all scans up to some key, then of all up to the next one. A batch of each is in memory."""
    waiting = [next(scan, None) for scan in scans]
    while any(rows is not None for rows in waiting):
        bound = min(rows.keys[-1].as_py() for rows in waiting if rows is not None)
        parts = []
        for number, rows in enumerate(waiting):
            if rows is None:
                continue
            count = position(rows.keys, bound + b"\0")  # no key lies between these two
            parts.append(rows.slice(0, count))
            waiting[number] = rows.slice(count) if count < len(rows.keys) else next(scans[number], None)
        yield parts


def turned(rows: SortedRows) -> SortedRows:
    """The rows from the last to the first."""
    back = pa.array(np.arange(len(rows.keys) - 1, -1, -1))
    return SortedRows(rows.keys.take(back), rows.values.take(back))


def _joined(parts: Sequence[SortedRows]) -> SortedRows:
    if not parts:
        return NOTHING
    if len(parts) == 1:
        return parts[0]
    keys, values = zip(*parts, strict=True)
    return SortedRows(pa.concat_arrays(list(keys)).cast(KEYS), pa.concat_arrays(list(values)).cast(VALUES))
