"""Where the bytes of an HFile come from: a file of a storage, or a buffer such as the content of a log block."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from hoodie.errors import CorruptFileError
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import file_key


class Source(Protocol):
    """Bytes that do not change."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def identity(self) -> Hashable:
        """Equal where the bytes are the same: what was decoded from them is kept under it."""
        ...

    @property
    def is_remote(self) -> bool:
        """A read takes a request, so that it pays to read over gaps, and to keep what was read."""
        ...

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly these bytes, which are in the file.

        Raises:
            CorruptFileError: they are not there any more.
        """
        ...


class StorageSource:
    """A file, as a listing or `stat` told of it; each read is one call of the storage."""

    def __init__(self, storage: Storage, info: FileInfo) -> None:
        self._storage = storage
        self._path = info.path
        self.name = info.path
        self.size_bytes = info.size_bytes
        self.identity = file_key(storage, info)
        self.is_remote = storage.can.is_remote

    def read(self, offset: int, length: int) -> memoryview:
        data = self._storage.read(self._path, offset, length)
        if len(data) != length:
            raise CorruptFileError(
                f"HFile {self.name}: {length} bytes from byte {offset} are asked for, {len(data)} are there"
            )
        return memoryview(data)


class BufferSource:
    """Bytes in memory."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self._data = memoryview(data).cast("B")
        self.name = name
        self.size_bytes = len(self._data)
        self.identity = object()
        self.is_remote = False

    def read(self, offset: int, length: int) -> memoryview:
        return self._data[offset : offset + length]
