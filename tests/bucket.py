"""A store as S3 is, in memory: no folders, no renames; files appear whole, are swapped on condition and copied by the store."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from hoodie.storage.base import FileInfo
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.memory import MemoryStorage, OutputBuffer


class BucketStorage(MemoryStorage):
    can = Capabilities(is_remote=True, time_step_s=1.0)

    # A method that is None is none, for whoever asks which protocol this is.
    move_new = None  # type: ignore[assignment]
    move_all_new = None  # type: ignore[assignment]
    rename_folder = None  # type: ignore[assignment]
    open_log = None  # type: ignore[assignment]
    end_log = None  # type: ignore[assignment]

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._checked(path)

    @contextmanager
    def open_output(self, path: str, *, within: str | None = None, durable: bool = True) -> Iterator[BinaryIO]:
        if self.exists(path):
            raise FileExistsError(path)
        stream = OutputBuffer()
        yield stream
        self.create_new(path, stream.content())

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        found = super().list(folder, recursive=recursive)
        return [
            info for info in found if not info.is_folder or super(BucketStorage, self).list(info.path, recursive=True)
        ]

    def stat(self, path: str) -> FileInfo:
        info = super().stat(path)
        if info.is_folder and not super().list(path, recursive=True):
            raise self._error(errno.ENOENT, path)
        return info

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def copy_file(self, source: str, target: str) -> None:
        self.replace(target, self.read(source))
