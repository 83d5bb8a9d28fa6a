"""Rows that do not fit into memory: on the machine's disk, parted by the hash of their keys, until a part's turn comes.

A file of Arrow batches without a name, so that nothing is left of it when its process dies. Rows of one key are in one part, in the
order in which they came.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from hoodie.hashes.of_keys import key_hash
from hoodie.model.meta_fields import RECORD_KEY

_COMPRESSION: Any = "lz4"
"""Half the bytes, for a tenth of the time that a merge takes."""
MOST_PARTS = 4096


class SpilledRows:
    """Rows by the hash of their record keys; a context manager that removes them."""

    def __init__(self, schema: pa.Schema, parts: int, *, folder: str | None) -> None:
        """`folder`: where the file is; None, or one that is not there: the machine's own place for such files."""
        self.schema = schema
        self.parts = parts
        self.rows = 0
        self.size_bytes = 0
        """As they were in memory."""
        where = folder if folder is not None and os.path.isdir(folder) else None
        self._file = tempfile.TemporaryFile(dir=where)  # noqa: SIM115 - it is open as long as this
        options: Any = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
        self._writer: Any = pa.ipc.new_file(pa.PythonFile(self._file, mode="w"), schema, options=options)
        self._batches = 0
        self._batches_of: list[list[int]] = [[] for _ in range(parts)]
        self._reader: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, rows: pa.Table, hashes: np.ndarray | None = None) -> None:
        """Rows, which have a record key each; `hashes`: of these."""
        if not rows.num_rows:
            return
        part_of = (key_hash(rows.column(RECORD_KEY)) if hashes is None else hashes) % np.uint64(self.parts)
        order = np.argsort(part_of, kind="stable")
        parted = rows.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(part_of[order], np.arange(self.parts + 1, dtype=np.uint64))
        for part in np.flatnonzero(np.diff(bounds)).tolist():
            for batch in parted.slice(int(bounds[part]), int(bounds[part + 1] - bounds[part])).to_batches():
                self._writer.write_batch(batch)
                self._batches_of[part].append(self._batches)
                self._batches += 1
        self.rows += rows.num_rows
        self.size_bytes += rows.nbytes

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        """The rows of one part in the order in which they came. Once this was called no more are added."""
        if self._reader is None:
            self._writer.close()
            self._file.flush()
            self._reader = pa.ipc.open_file(pa.PythonFile(self._file, mode="r"))
        for number in self._batches_of[part]:
            yield self._reader.get_batch(number)


class KeySet:
    """Which keys may be among some, by one bit of their hashes each: wrong only in that it may say yes too often."""

    def __init__(self, size_bytes: int) -> None:
        self._bits = np.zeros(1 << max(10, size_bytes.bit_length() - 1), dtype=np.uint8)

    def add(self, hashes: np.ndarray) -> None:
        at, bit = self._places(hashes)
        np.bitwise_or.at(self._bits, at, bit)

    def may_have(self, hashes: np.ndarray) -> np.ndarray:
        at, bit = self._places(hashes)
        result: np.ndarray = (self._bits[at] & bit) != 0
        return result

    def _places(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Not by the low bits: those say which part a key is in.
        at = (hashes >> np.uint64(24)) % np.uint64(len(self._bits))
        return at, np.left_shift(np.uint8(1), ((hashes >> np.uint64(61)) & np.uint64(7)).astype(np.uint8))
