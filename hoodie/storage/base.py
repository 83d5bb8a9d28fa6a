"""The storage seam: the only way in which hoodie meets a file.

A `Storage` is rooted at the table's base path. Every path is relative to it, with `/` between its parts and no
leading slash; a path that would leave the root raises `ValueError`. Missing things raise `FileNotFoundError`,
present ones `FileExistsError`: the builtins, because the room above knows which error its user should see.

What every implementation promises (tests/contract/test_storage.py):
- A file made by `create_new`, `replace` or a closed `open_output` is durable and is seen whole or not at all under
  its final name. `create_new` never replaces another file: of several racers exactly one wins. What is not durable
  says so.
- No append: log files are written once.
- `list` and `names` show every file that was published before they began.
- A file that was replaced in its place has another `FileInfo.identity`: what is kept of files goes by it (`cache.py`).

Disks can do more (`RenamingStorage`). Only a publisher that is chosen for them (`publish/`) asks for it. Others can compare and
swap (`ConditionalStorage`), and a lock may stand on that (`lock/storage_lock.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO, NamedTuple, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from hoodie.storage.capabilities import Capabilities
from hoodie.storage.parallel import for_each

T = TypeVar("T")
A = TypeVar("A")


class FileInfo(NamedTuple):
    path: str
    """Relative to the storage's root."""
    size_bytes: int
    mtime_s: float
    """Of a folder in a listing: 0 where that would cost a call for each."""
    is_folder: bool
    identity: Hashable
    """Another one when another file stands at the path: the modification time, size and inode; in memory a version; the ETag."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@runtime_checkable
class Storage(Protocol):
    """Blocking, thread-safe file operations under one root. Implementations for real storage are picklable.

    Every storage derives from this class. A method with a body does what suits most storages.
    """

    can: Capabilities

    @property
    def uri(self) -> str:
        """The root, as users write it; for messages and for full paths in metadata."""
        ...

    @property
    def lock_root(self) -> Storage:
        """The storage whose locks guard this one: itself, or where it wraps another, that one's."""
        return self

    @property
    def identity(self) -> Hashable:
        """Equal where the files are the same ones: what was learned through one such storage holds for the other."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from `offset`, at most `length` of them (to the end when None).

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        """A seekable Arrow input over the file, for Parquet and Arrow IPC readers; the caller closes it.

        `mapped=False`: for a file that is read through once and may be larger than memory. A map counts as memory of the process,
        page by page, until it is closed.
        """
        ...

    def open_output(self, path: str, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """A new file to stream into, durable when the block ends without an exception.

        For private (staging) names only: the file can be seen while it grows. Makes missing parent folders.
        `durable=False`: other processes see the whole file, but a power cut may take it; for what dies with its writer.

        Raises:
            FileExistsError: the name is taken.
        """
        ...

    def create_new(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Publish a whole file; never replaces one. Makes missing parent folders of `path`.

        `durable=False`: a power cut may take it until the next durable file is published in the same folder.

        Raises:
            FileExistsError: the name is taken; the other file is untouched.
        """
        ...

    def create_missing(self, files: Sequence[tuple[str, bytes]]) -> None:
        """`create_new` of each (path, data) that is not there; who finds another's file leaves it.

        Their bytes are durable, and their names from the next durable file of the same folder on.
        """

        def create(file: tuple[str, bytes]) -> None:
            if not self.exists(file[0]):
                with suppress(FileExistsError):  # another writer was first
                    self.create_new(*file)

        self.each(create, files)

    def replace(self, path: str, data: bytes) -> None:
        """Put a whole file under the name atomically, whether or not one stood there."""
        ...

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        """Files (and, when not recursive, folders) in `folder`, sorted by path; empty when it does not exist."""
        ...

    def list_below(self, folders: Sequence[str]) -> Iterable[FileInfo]:
        """The files in and below folders that lie beside each other in one folder, in any order."""
        for infos in self.each(lambda folder: self.list(folder, recursive=True), folders):
            yield from infos

    def names(self, folder: str) -> Sequence[str]:
        """Names of the files in `folder`, in any order; empty when it does not exist. Costs less than `list`."""
        ...

    def stat(self, path: str) -> FileInfo:
        """Raises FileNotFoundError when there is neither file nor folder."""
        ...

    def exists(self, path: str) -> bool: ...

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""
        ...

    def delete_all(self, paths: Sequence[str]) -> None:
        """`delete` of each, in any order."""
        self.each(self.delete, paths)

    def delete_folder(self, path: str) -> None:
        """Remove a folder with all in it; nothing happens when it is not there."""
        ...

    def mkdirs(self, path: str, *, durable: bool = True) -> None: ...

    def touch(self, path: str) -> None:
        """Create an empty file when absent and set its modification time to now; may be forgotten in a power cut."""
        ...

    def unsynced(self) -> Storage:
        """The same files for a writer who may lose in a power cut the data files that it wrote last; itself where that saves nothing.

        What `create_new` and `replace` make is durable all the same.
        """
        return self

    def now_s(self) -> float:
        """The storage's clock, seconds since the epoch: what a file written now would get as mtime."""
        ...

    def each(self, act: Callable[[T], A], items: Iterable[T]) -> Sequence[A]:
        """What `act` gives for each, as many at once as suits the storage; all have ended when it returns.

        Raises:
            What the first of them raised, in the order of `items`.
        """
        return for_each(act, items, at_once=self.can.at_once)


@runtime_checkable
class ConditionalStorage(Storage, Protocol):
    """A storage that replaces a file only where nobody else has done so since it was read (tests/contract/test_storage_races.py)."""

    def read_tagged(self, path: str) -> tuple[bytes, Hashable]:
        """The whole file, and a tag of this very content that `swap` takes.

        A tag may come from the bytes alone: whoever swaps puts something into them that never repeats.

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        """Replace the file atomically if it still has that tag, and give its new tag; of several racers with one tag one wins.

        What was not there before is made by `create_new`.

        Raises:
            FileExistsError: another file stands there; it is untouched. FileNotFoundError: there is none any more.
        """
        ...


@runtime_checkable
class CopyingStorage(ConditionalStorage, Protocol):
    """A store of whole files under names, without folders that could be renamed: S3 and its like."""

    def copy_file(self, source: str, target: str) -> None:
        """The file once more under another name, without its bytes coming here; replaces what stood there.

        Raises:
            FileNotFoundError: `source` is gone.
        """
        ...


def create_each(storage: RenamingStorage, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
    """A `RenamingStorage.create_all`, file by file."""
    for path, data in files:
        with storage.open_output(path, within=within) as file:
            file.write(data)


@runtime_checkable
class RenamingStorage(Storage, Protocol):
    """A storage with real folders: a rename takes all that is in one away at once, and so fences off who still writes there.

    A file made by `move_new` is durable, too, and never replaces another one (tests/contract/test_renaming_storage.py).
    """

    def open_output(
        self, path: str, *, within: str | None = None, durable: bool = True
    ) -> AbstractContextManager[BinaryIO]:
        """As in `Storage`. Makes missing parent folders only below `within` where that is given.

        So a task of a rolled-back writer does not bring its staging folder back. There a power cut may take the file, until
        `move_new` gives it its final name.

        Raises:
            FileExistsError: the name is taken. FileNotFoundError: `within` is not there (any more).
        """
        ...

    def create_all(self, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
        """New files of this content below `within`, each as `open_output` makes it; those before one that fails stay.

        Raises:
            FileExistsError: the name is taken. FileNotFoundError: `within` is not there (any more).
        """
        ...

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        """As in `Storage`; `via` names an *existing* folder where the temporary file is written before it is linked to its name.

        By default that is a scratch folder of the storage, made as needed. When `via` was renamed away in the meantime the call
        fails with FileNotFoundError and publishes nothing: this is how a rolled-back writer is fenced off.
        """
        ...

    def move_new(self, source: str, target: str) -> None:
        """Give a finished file its final name; never replaces. Makes missing parent folders of `target`.

        Raises:
            FileExistsError: `target` is taken. FileNotFoundError: `source` is gone.
        """
        ...

    def move_all_new(self, moves: Sequence[tuple[str, str]]) -> None:
        """`move_new` of each (source, target), in order; all of them, bytes and names, are durable when it returns.

        The bytes of each are before it has its name. So are the names of the folders on the way to it when this returns, whoever
        made them.

        Raises:
            As `move_new`, for the first that fails: those before it have their final names.
        """
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Atomically rename a folder with all in it.

        Raises:
            FileNotFoundError: no such folder. FileExistsError: `target` is there.
        """
        ...


class LogOutput(Protocol):
    """A file that grows. What was synced can be read once it is closed, by its writer or by `end_log`."""

    def write(self, parts: Sequence[bytes | memoryview]) -> None: ...

    def sync(self, *, durable: bool = True) -> None:
        """What was written outlives this process; where `durable`, also a power cut.

        Raises:
            OSError: it is not known how much of it is there; also where `end_log` was called elsewhere.
        """
        ...

    def close(self) -> None:
        """End it, without a promise about what was not synced."""
        ...


@runtime_checkable
class AppendingStorage(Storage, Protocol):
    """A storage whose files can grow: disks and HDFS."""

    def open_log(self, path: str) -> LogOutput:
        """A new, empty file to append to; its name is durable with its first sync. Makes missing parent folders.

        Raises:
            FileExistsError: the name is taken.
        """
        ...

    def end_log(self, path: str) -> None:
        """Keep whoever still appends to the file from doing so, where the storage can; on a disk a lock has to do that."""
        ...
