"""Open files of HDFS: one that a writer library streams into, a log, and one that is read in ranges."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hoodie.storage.hdfs_errors import HdfsErrors

if TYPE_CHECKING:
    from hdfs_native import FileReader, FileWriter

_PIECE_BYTES = 1024 * 1024
_ANSWER_S = 60.0
"""For the end of a sync of a log."""


class HdfsOutput(io.RawIOBase):
    """What a writer library streams into; it may close it, and the file is closed by `finish` all the same."""

    def __init__(self, errors: HdfsErrors, absolute: str, writer: FileWriter) -> None:
        self._errors = errors
        self._absolute = absolute
        self._writer: FileWriter | None = writer
        self._pending = bytearray()
        self.written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.written

    def write(self, data: Any) -> int:
        if self.closed or self._writer is None:
            raise ValueError("write to a closed file")
        view = memoryview(data).cast("B")
        self.written += len(view)
        if len(self._pending) + len(view) < _PIECE_BYTES:  # many small pieces come from Parquet
            self._pending += view
        else:
            self._send()
            with self._errors.translated(self._absolute):
                self._writer.write(view)
        return len(view)

    def finish(self, *, durable: bool) -> None:
        """Close the file; with what was written on disks where it is to be durable."""
        if self._writer is None:
            return
        try:
            self._send()
            if durable and self.written:
                with self._errors.translated(self._absolute):
                    self._writer.hsync()
        finally:
            writer, self._writer = self._writer, None
            with self._errors.translated(self._absolute):
                writer.close()

    def _send(self) -> None:
        if self._pending and self._writer is not None:
            pending, self._pending = bytes(self._pending), bytearray()
            with self._errors.translated(self._absolute):
                self._writer.write(pending)


class HdfsLog:
    def __init__(self, errors: HdfsErrors, absolute: str, writer: FileWriter, *, answer_s: float = _ANSWER_S) -> None:
        self._errors = errors
        self._absolute = absolute
        self._writer = writer
        self._answer_s = answer_s
        self._is_stuck = False

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        with self._errors.translated(self._absolute):
            self._writer.write(b"".join(parts))

    def sync(self, *, durable: bool = True) -> None:
        with self._errors.translated(self._absolute):
            self._answered(self._writer.hsync if durable else self._writer.flush)

    def close(self) -> None:
        if not self._is_stuck:
            with self._errors.translated(self._absolute):
                self._answered(self._writer.close)

    def _answered(self, call: Callable[[], object]) -> None:
        """Not for ever: hdfs-native waits without end for DataNodes that were told to take no more, as when a lease was recovered."""
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def run() -> None:
            try:
                call()
            except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
                ended.put(exc)
            else:
                ended.put(None)

        threading.Thread(target=run, name="hoodie-hdfs-log", daemon=True).start()
        try:
            failed = ended.get(timeout=self._answer_s)
        except Empty:
            self._is_stuck = True
            raise self._errors.error(
                errno.ETIMEDOUT, self._absolute, f"the DataNodes have not answered for {self._answer_s:g} seconds"
            ) from None
        if failed is not None:
            raise failed


class HdfsInput(io.RawIOBase):
    """Ranges of a file, with a position; hdfs-native's own reader panics beyond the end."""

    def __init__(self, errors: HdfsErrors, absolute: str, reader: FileReader, size: int) -> None:
        self._errors = errors
        self._absolute = absolute
        self._reader = reader
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._position + size, self._size)
        if end <= self._position:
            return b""
        with self._errors.translated(self._absolute):
            data = self._reader.read_range(self._position, end - self._position)
        self._position = end
        return data
