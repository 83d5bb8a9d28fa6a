"""A folder of this machine that behaves as an object store: for processes that meet there, without a server."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Hashable
from dataclasses import replace

from hoodie.storage.base import Storage
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage


class SwappingStorage(FaultStorage):
    """Compares and swaps; tags are hashes of the bytes, as ETags are. Nobody can lock its files through the system."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(LocalStorage(root))
        self.can = replace(self.can, local_root=None)
        self._mutex_path = f"{os.fspath(root)}.swaps"

    @property
    def lock_root(self) -> Storage:
        return self

    def read_tagged(self, path: str) -> tuple[bytes, Hashable]:
        data = self.read(path)
        return data, hashlib.md5(data).hexdigest()

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        with open(self._mutex_path, "wb") as mutex:
            fcntl.flock(mutex, fcntl.LOCK_EX)
            if self.read_tagged(path)[1] != tag:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self.replace(path, data)
        return hashlib.md5(data).hexdigest()
