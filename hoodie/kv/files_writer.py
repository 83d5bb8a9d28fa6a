"""Rows in order to data files, a new one when one is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType

from hoodie.kv.data_files import DataFormat, DataWriter
from hoodie.kv.manifest import DataFile
from hoodie.kv.names import data_file
from hoodie.kv.rows import SortedRows
from hoodie.storage.base import Storage


class FilesWriter:
    """Takes rows behind one another; `files` has the files when its block has ended."""

    def __init__(
        self,
        storage: Storage,
        data_format: DataFormat,
        new_name: Callable[[], str],
        *,
        run: int,
        made_s: float,
        most_bytes: int,
        compression: str,
    ) -> None:
        self.files: list[DataFile] = []
        self._storage = storage
        self._format = data_format
        self._new_name = new_name
        self._run = run
        self._made_s = made_s
        self._most_bytes = most_bytes
        self._compression = compression
        self._stack = ExitStack()
        self._writer: DataWriter | None = None

    def add(self, part: SortedRows) -> None:
        for rows in _pieces(part, self._most_bytes):
            if self._writer is not None and self._writer.size_bytes + rows.size_bytes > self._most_bytes:
                self._end()
            if self._writer is None:
                self._name = self._new_name()
                self._writer = self._stack.enter_context(
                    self._format.create(self._storage, data_file(self._name), self._compression)
                )
                self._first, self._entries, self._has_deletes = rows.keys[0].as_py(), 0, False
            self._writer.add(rows)
            self._last = rows.keys[-1].as_py()
            self._entries += len(rows.keys)
            self._has_deletes |= rows.values.null_count > 0

    def cut(self) -> None:
        """Go on in another file."""
        self._end()

    def __enter__(self) -> FilesWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)

    def _end(self) -> None:
        if self._writer is None:
            return
        self._stack.close()
        self.files.append(
            DataFile(
                self._name,
                self._run,
                self._first,
                self._last,
                self._entries,
                self._writer.size_bytes,
                self._made_s,
                self._has_deletes,
            )
        )
        self._writer = None


def _pieces(rows: SortedRows, most_bytes: int) -> Iterator[SortedRows]:
    """The rows in parts that are small beside a file."""
    n = len(rows.keys)
    if not n:
        return
    step = max(1, min(n, n * (most_bytes // 8) // max(1, rows.size_bytes)))
    for start in range(0, n, step):
        yield rows.slice(start, min(n, start + step))
