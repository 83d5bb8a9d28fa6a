"""One folder of a storage as a storage of its own: a table inside a table, such as the metadata table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from hoodie.storage.base import FileInfo, Storage


class FolderStorage(Storage):
    """The files below `folder`, under paths relative to it. Locks are those of the whole storage."""

    def __init__(self, whole: Storage, folder: str) -> None:
        self._whole = whole
        self._folder = folder
        self.can = replace(whole.can, local_root=whole.can.local_path(folder))

    def __repr__(self) -> str:
        return f"FolderStorage({self._whole!r}, {self._folder!r})"

    @property
    def uri(self) -> str:
        return f"{self._whole.uri}/{self._folder}"

    @property
    def lock_root(self) -> Storage:
        return self._whole.lock_root

    @property
    def identity(self) -> Hashable:
        return self._whole.identity, self._folder

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._whole.read(self._path(path), offset, length)

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        return self._whole.open_input(self._path(path), mapped=mapped)

    def open_output(self, path: str, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        return self._whole.open_output(self._path(path), durable=durable)

    def create_new(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._whole.create_new(self._path(path), data, durable=durable)

    def replace(self, path: str, data: bytes) -> None:
        self._whole.replace(self._path(path), data)

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        return [self._below(info) for info in self._whole.list(self._path(folder), recursive=recursive)]

    def names(self, folder: str) -> Sequence[str]:
        return self._whole.names(self._path(folder))

    def stat(self, path: str) -> FileInfo:
        return self._below(self._whole.stat(self._path(path)))

    def exists(self, path: str) -> bool:
        return self._whole.exists(self._path(path))

    def delete(self, path: str) -> None:
        self._whole.delete(self._path(path))

    def delete_folder(self, path: str) -> None:
        self._whole.delete_folder(self._path(path))

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._whole.mkdirs(self._path(path), durable=durable)

    def touch(self, path: str) -> None:
        self._whole.touch(self._path(path))

    def unsynced(self) -> Storage:
        return FolderStorage(self._whole.unsynced(), self._folder)

    def now_s(self) -> float:
        return self._whole.now_s()

    def _path(self, path: str) -> str:
        return f"{self._folder}/{path}" if path else self._folder

    def _below(self, info: FileInfo) -> FileInfo:
        return info._replace(path=info.path[len(self._folder) + 1 :])
