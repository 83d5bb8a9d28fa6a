"""A file store of bounded memory: what was asked for least recently stands in a file, and an index says where.

The file has no name, so nothing is left of it when its process dies. A partition that changed is written behind the others; when
more than half of the file is of no use any more, it is written anew.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from typing import IO, NamedTuple

from hoodie.view.file_store import BESIDE_BYTES, Files, bytes_of, decode_files, encode_files

_LEAST_WASTE = 1024 * 1024
"""A smaller file is not written anew."""


class _Place(NamedTuple):
    offset: int
    length: int


class SpilledStore:
    """`FileStore` with at most `most_bytes` of partitions in memory, and the path of each besides."""

    def __init__(self, most_bytes: int, folder: str | None = None) -> None:
        """`folder`: where the file is, made when it is not there; None: the machine's own place for such files."""
        self._most_bytes = most_bytes
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._end = 0
        self._wasted = 0
        self._warm: OrderedDict[str, bytes] = OrderedDict()
        self._warm_bytes = 0
        self._places: dict[str, _Place] = {}
        """Of those that were written and have not changed since, in memory or not."""
        self._index_bytes = 0

    @property
    def memory_bytes(self) -> int:
        return self._warm_bytes + self._index_bytes

    def get(self, partition_path: str) -> Files | None:
        text = self._warm.get(partition_path)
        if text is not None:
            self._warm.move_to_end(partition_path)
            return decode_files(text)
        place = self._places.get(partition_path)
        if place is None:
            return None
        text = self._read(place)
        self._warm_up(partition_path, text)
        return decode_files(text)

    def put(self, partition_path: str, files: Files) -> None:
        self.drop(partition_path)
        self._warm_up(partition_path, encode_files(files))

    def drop(self, partition_path: str) -> None:
        text = self._warm.pop(partition_path, None)
        if text is not None:
            self._warm_bytes -= bytes_of(partition_path, text)
        place = self._places.pop(partition_path, None)
        if place is not None:
            self._index_bytes -= len(partition_path) + BESIDE_BYTES
            self._wasted += place.length

    def partitions(self) -> Sequence[str]:
        return sorted(self._warm.keys() | self._places.keys())

    def clear(self) -> None:
        self._warm.clear()
        self._places.clear()
        self._warm_bytes = self._index_bytes = self._end = self._wasted = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        self.clear()

    def _warm_up(self, partition_path: str, text: bytes) -> None:
        self._warm[partition_path] = text
        self._warm_bytes += bytes_of(partition_path, text)
        while self._warm_bytes > self._most_bytes:
            oldest, cold = next(iter(self._warm.items()))
            if oldest not in self._places:
                self._write(oldest, cold)
            del self._warm[oldest]
            self._warm_bytes -= bytes_of(oldest, cold)

    def _write(self, partition_path: str, text: bytes) -> None:
        if self._wasted > max(self._end // 2, _LEAST_WASTE):
            self._write_anew()
        if self._file is None:
            self._file = self._new_file()
        self._file.seek(self._end)
        self._file.write(text)
        self._places[partition_path] = _Place(self._end, len(text))
        self._end += len(text)
        self._index_bytes += len(partition_path) + BESIDE_BYTES

    def _write_anew(self) -> None:
        """The same partitions without what lies between them."""
        before, places, end = self._file, {}, 0
        file = self._new_file()
        try:
            for partition_path, place in self._places.items():
                file.write(self._read(place))
                places[partition_path] = _Place(end, place.length)
                end += place.length
        except BaseException:
            file.close()
            raise
        self._file, self._places, self._end, self._wasted = file, places, end, 0
        if before is not None:
            before.close()

    def _new_file(self) -> IO[bytes]:
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
        return tempfile.TemporaryFile(dir=self._folder)

    def _read(self, place: _Place) -> bytes:
        assert self._file is not None
        self._file.seek(place.offset)
        text = self._file.read(place.length)
        if len(text) != place.length:
            raise OSError(f"a file of spilled partitions has {len(text)} bytes where {place.length} were written")
        return text
