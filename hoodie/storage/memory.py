"""Storage in memory: the same promises as a disk, a clock that tests set, and snapshots to go back to."""

from __future__ import annotations

import errno
import io
import itertools
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, NoReturn

import pyarrow as pa

from hoodie.model.names import folder_of
from hoodie.storage.base import FileInfo, LogOutput, Storage, create_each
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.paths import checked_path, checked_range, refuse_outside


class MemorySnapshot(NamedTuple):
    """Everything a `MemoryStorage` held at one moment."""

    files: Mapping[str, tuple[bytes, float]]
    """By path: content and mtime in seconds."""
    folders: Mapping[str, float]


class MemoryStorage(Storage):
    """Files of this process, gone with it; for tests and for tables that need not last.

    Each call is atomic. As on a disk the root comes into being with the first file or folder, and folders stay when
    they are empty. `clock` gives the seconds since the epoch that become mtimes; it may be set at any time.
    Two storages of one uri are two tables; `shared_memory_storage` gives the one that users reach by its uri.
    """

    can = Capabilities()

    def __init__(self, uri: str = "memory://table", *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._uri = uri
        self._identity = object()
        self._mutex = threading.Lock()
        self._files: dict[str, _File] = {}
        self._folders: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"MemoryStorage({self._uri!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self._uri} lives in this process only and cannot be sent to another: use a path on a disk")

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def identity(self) -> Hashable:
        return self._identity

    def snapshot(self) -> MemorySnapshot:
        with self._mutex:
            files = {path: (file.data, file.mtime_s) for path, file in self._files.items()}
            return MemorySnapshot(files, dict(self._folders))

    def restore(self, snapshot: MemorySnapshot) -> None:
        """Make the content what it was; streams that are still open lose their file."""
        with self._mutex:
            self._files = {path: _File(data, mtime_s) for path, (data, mtime_s) in snapshot.files.items()}
            self._folders = dict(snapshot.folders)

    def copy(self) -> MemoryStorage:
        """Another storage of the same uri, clock and content; what happens to one is not seen in the other."""
        other = MemoryStorage(self._uri, clock=self.clock)
        other.restore(self.snapshot())
        return other

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        checked_range(path, offset=offset, length=length)
        data = self._content(path)
        return data[offset:] if length is None else data[offset : offset + length]

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        return pa.BufferReader(self._content(path))

    @contextmanager
    def open_output(self, path: str, *, within: str | None = None, durable: bool = True) -> Iterator[BinaryIO]:
        """As the protocol says; the file is empty until the block ends.

        A block that ends with an exception leaves what it had written, like a crash.

        Raises:
            FileExistsError: the name is taken. FileNotFoundError: at the end of the block, when the file was
                deleted or its folder renamed away while it was open.
        """
        self._checked(path)
        if within is not None:
            refuse_outside(path, within)
        file = _File(b"", self.clock())
        with self._mutex:
            if within is not None and within not in self._folders:
                raise self._error(errno.ENOENT, within)
            self._refuse_taken(path)
            self._make_folders(folder_of(path))
            self._files[path] = file
        stream = OutputBuffer()
        try:
            yield stream
        finally:
            with self._mutex:
                file.write(stream.content(), self.clock())
        with self._mutex:
            if self._files.get(path) is not file:
                raise self._error(errno.ENOENT, path)

    create_all = create_each

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        self._checked(path)
        if via is not None:
            self._checked(via, may_be_root=True)
        with self._mutex:
            if via is not None and via not in self._folders:
                raise self._error(errno.ENOENT, via)
            self._refuse_taken(path)
            self._make_folders(folder_of(path))
            self._files[path] = _File(bytes(data), self.clock())

    def replace(self, path: str, data: bytes) -> None:
        self._checked(path)
        with self._mutex:
            self._refuse_folder(path)
            self._make_folders(folder_of(path))
            self._files[path] = _File(bytes(data), self.clock())

    def read_tagged(self, path: str) -> tuple[bytes, Hashable]:
        self._checked(path)
        with self._mutex:
            file = self._file(path)
            return file.data, file.version

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        self._checked(path)
        with self._mutex:
            if self._file(path).version != tag:
                raise self._error(errno.EEXIST, path)
            file = self._files[path] = _File(bytes(data), self.clock())
            return file.version

    def move_new(self, source: str, target: str) -> None:
        self._checked(source)
        self._checked(target)
        with self._mutex:
            self._refuse_folder(source)
            if source not in self._files:
                raise self._error(errno.ENOENT, source)
            self._refuse_taken(target)
            self._make_folders(folder_of(target))
            self._files[target] = self._files.pop(source)

    def move_all_new(self, moves: Sequence[tuple[str, str]]) -> None:
        for source, target in moves:
            self.move_new(source, target)

    def rename_folder(self, source: str, target: str) -> None:
        """As the protocol says; makes missing parent folders of `target`."""
        self._checked(source)
        self._checked(target)
        with self._mutex:
            if source not in self._folders:
                raise self._error(errno.ENOTDIR if source in self._files else errno.ENOENT, source)
            self._refuse_taken(target)
            if target.startswith(f"{source}/"):
                raise self._error(errno.EINVAL, target)
            self._make_folders(folder_of(target))
            self._files = {_renamed(path, source, target): file for path, file in self._files.items()}
            self._folders = {_renamed(path, source, target): mtime_s for path, mtime_s in self._folders.items()}

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        self._checked(folder, may_be_root=True)
        prefix = f"{folder}/" if folder else ""
        with self._mutex:
            if folder in self._files:
                raise self._error(errno.ENOTDIR, folder)
            infos = [_file_info(path, file) for path, file in self._files.items() if path.startswith(prefix)]
            if not recursive:
                infos += [
                    FileInfo(path, 0, mtime_s, is_folder=True, identity=None)
                    for path, mtime_s in self._folders.items()
                    if path and path.startswith(prefix)
                ]
        return sorted(info for info in infos if recursive or "/" not in info.path[len(prefix) :])

    def names(self, folder: str) -> Sequence[str]:
        self._checked(folder, may_be_root=True)
        prefix = f"{folder}/" if folder else ""
        with self._mutex:
            if folder in self._files:
                raise self._error(errno.ENOTDIR, folder)
            names = [path[len(prefix) :] for path in self._files if path.startswith(prefix)]
        return [name for name in names if "/" not in name]

    def stat(self, path: str) -> FileInfo:
        self._checked(path, may_be_root=True)
        with self._mutex:
            if path in self._folders:
                return FileInfo(path, 0, self._folders[path], is_folder=True, identity=None)
            if path in self._files:
                return _file_info(path, self._files[path])
            raise self._error(errno.ENOENT, path)

    def exists(self, path: str) -> bool:
        self._checked(path, may_be_root=True)
        with self._mutex:
            return path in self._files or path in self._folders

    def delete(self, path: str) -> None:
        self._checked(path)
        with self._mutex:
            self._refuse_folder(path)
            self._files.pop(path, None)

    def delete_folder(self, path: str) -> None:
        self._checked(path)
        with self._mutex:
            if path in self._files:
                raise self._error(errno.ENOTDIR, path)
            self._files = {name: file for name, file in self._files.items() if not _is_within(name, path)}
            self._folders = {name: mtime_s for name, mtime_s in self._folders.items() if not _is_within(name, path)}

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._checked(path, may_be_root=True)
        with self._mutex:
            if path in self._files:
                raise self._error(errno.EEXIST, path)
            self._make_folders(path)

    def open_log(self, path: str) -> LogOutput:
        self.create_new(path, b"")
        return _Log(self, path)

    def end_log(self, path: str) -> None:
        self._checked(path)
        with self._mutex:
            if path in self._files:
                self._files[path].is_ended = True

    def append(self, path: str, data: bytes) -> None:
        """Make a file longer.

        Raises:
            FileNotFoundError: it is gone.
        """
        with self._mutex:
            if path not in self._files:
                raise self._error(errno.ENOENT, path)
            file = self._files[path]
            if file.is_ended:
                raise self._error(errno.EROFS, path)
            file.write(file.data + data, self.clock())

    def touch(self, path: str) -> None:
        self._checked(path)
        with self._mutex:
            self._refuse_folder(path)
            self._make_folders(folder_of(path))
            file = self._files.setdefault(path, _File(b"", 0.0))
            file.write(file.data, self.clock())

    def now_s(self) -> float:
        return self.clock()

    def _checked(self, path: str, *, may_be_root: bool = False) -> None:
        checked_path(path, under=self._uri, may_be_root=may_be_root)

    def _error(self, number: int, path: str) -> OSError:
        return OSError(number, os.strerror(number), f"{self._uri}/{path}")

    # Below here the caller holds the mutex, but for `_content`, which takes it.

    def _content(self, path: str) -> bytes:
        self._checked(path)
        with self._mutex:
            return self._file(path).data

    def _file(self, path: str) -> _File:
        self._refuse_folder(path)
        if path not in self._files:
            raise self._error(errno.ENOENT, path)
        return self._files[path]

    def _refuse_folder(self, path: str) -> None:
        if path in self._folders:
            raise self._error(errno.EISDIR, path)

    def _refuse_taken(self, path: str) -> None:
        if path in self._files or path in self._folders:
            raise self._error(errno.EEXIST, path)

    def _make_folders(self, folder: str) -> None:
        if folder in self._folders:
            return
        if folder in self._files:
            raise self._error(errno.ENOTDIR, folder)
        if folder:
            self._make_folders(folder_of(folder))
        self._folders[folder] = self.clock()


class OutputBuffer(io.BytesIO):
    """A buffer whose content can still be had after a writer library closed it."""

    def __init__(self) -> None:
        super().__init__()
        self._final_content: bytes | None = None

    def close(self) -> None:
        if not self.closed:
            self._final_content = self.getvalue()
        super().close()

    def content(self) -> bytes:
        return self.getvalue() if self._final_content is None else self._final_content


class _Log:
    """What is not synced dies with its writer."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._unsynced: list[bytes] = []

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self._unsynced += map(bytes, parts)

    def sync(self, *, durable: bool = True) -> None:
        unsynced, self._unsynced = self._unsynced, []
        self._storage.append(self._path, b"".join(unsynced))

    def close(self) -> None:
        self._unsynced.clear()


class _File:
    """One file; the same object through renames, so that an open stream still reaches it."""

    is_ended = False
    """Nothing is appended to it any more."""

    def __init__(self, data: bytes, mtime_s: float) -> None:
        self.write(data, mtime_s)

    def write(self, data: bytes, mtime_s: float) -> None:
        self.data = data
        self.mtime_s = mtime_s
        self.version = next(_versions)


_versions = itertools.count()


_shared: dict[str, MemoryStorage] = {}
_shared_mutex = threading.Lock()


def shared_memory_storage(uri: str) -> MemoryStorage:
    """The one storage that this process keeps under the uri, made at the first call."""
    with _shared_mutex:
        return _shared.setdefault(uri, MemoryStorage(uri))


def forget_shared_memory_storage(uri: str) -> None:
    """Let go of the storage kept under the uri, if any; the next call for it starts empty."""
    with _shared_mutex:
        _shared.pop(uri, None)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _renamed(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if _is_within(path, source) else path


def _file_info(path: str, file: _File) -> FileInfo:
    return FileInfo(path, len(file.data), file.mtime_s, is_folder=False, identity=file.version)
