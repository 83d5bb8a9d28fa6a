"""Storage on a local disk: nothing is visible under its final name before it is whole and synced."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.model.names import folder_of
from hoodie.storage.base import FileInfo, LogOutput, Storage
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.local_files import (
    CREATE,
    MODE,
    delete_tree,
    delete_twin,
    file_info,
    link_new,
    link_refused,
    mtime_s,
    os_error,
    sync,
    sync_all_there,
    walk,
    write_all,
    write_temporary,
)
from hoodie.storage.parallel import for_each
from hoodie.storage.paths import SCRATCH_FOLDER, checked_path, checked_range, refuse_outside, temporary_name

_PARTS_AT_ONCE = 512
"""Of one call that writes many; the system takes 1,024."""
_SYNCS_AT_ONCE = 32
"""A journal ends so many waits at once; more gain nothing (1,000 files: 5.7 s one by one, 0.27 s by eight, 0.16 s by 32)."""
_COPIED_BYTES = 32 * 1024
"""A file up to here is read at once."""
_LINKS_OF_ONE = 1000
"""Names of one file; file systems have bounds of their own, ext4 65,000."""
_SYNCED_TOGETHER_BYTES = 1024 * 1024
"""A staged file up to here is synced with the others, when it gets its name; a larger one at once, while others are written."""


class LocalStorage(Storage):
    """Files under a folder of the local disk, which need not exist yet. Picklable: the root is all there is to it.

    Threads and processes may share a root. Publishing needs hard links, so the whole table must lie on one file
    system that has them; where it does not, publishing raises an OSError that says so and nothing is visible.
    Symbolic links to folders inside the root are not followed out of it, and not while listing: whoever can make a link in
    a table must not choose what its writers delete elsewhere, nor send a listing round in circles.
    Replacing, deleting or newly making a file first deletes its `.name.crc` twin: Hadoop's local file system
    keeps checksums there, and Hudi cannot open a file whose twin is stale. Not so for names that hold a number of chance.

    Args:
        syncs: False: no data file waits for the disk, and a power cut may take or cut those that were written last.
    """

    def __init__(self, root: str | os.PathLike[str], *, syncs: bool = True) -> None:
        self._root = os.path.abspath(os.fspath(root))
        self._below = os.path.join(self._root, "")
        self._syncs = syncs
        self._syncs_together = True
        self.can = Capabilities(local_root=self._root)

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process syncs what it stages: on another machine nobody else can do that."""
        return {**self.__dict__, "_syncs_together": False}

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def uri(self) -> str:
        return self._root

    @property
    def identity(self) -> Hashable:
        return self._root

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        checked_range(path, offset=offset, length=length)
        with _absence_below_a_file(), open(self._absolute(path), "rb") as stream:
            stream.seek(offset)
            return stream.read(-1 if length is None else length)

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        """A memory map: Arrow IPC batches are read from it without a copy, and tasks share the page cache. To map a small file, and
        to meet its pages one by one, costs more than to copy it.
        """
        found, absolute = self.stat(path), self._absolute(path)
        if found.is_folder:
            raise os_error(errno.EISDIR, absolute)
        try:
            if mapped and found.size_bytes <= _COPIED_BYTES:
                with open(absolute, "rb", buffering=0) as stream:
                    return pa.BufferReader(stream.readall())
            return pa.memory_map(absolute, "r") if mapped else pa.OSFile(absolute, "r")
        except OSError as exc:
            if exc.errno is None:
                raise
            raise os_error(exc.errno, absolute) from exc  # pyarrow's names no file

    @contextmanager
    def open_output(self, path: str, *, within: str | None = None, durable: bool = True) -> Iterator[BinaryIO]:
        """As the protocol says. A block that ends with an exception leaves what it had written, like a crash.

        Raises:
            FileExistsError: the name is taken. FileNotFoundError: at the end of the block, when the file was
                deleted or its folder renamed away while it was open.
        """
        absolute = self._writable(path)
        if within is not None:
            refuse_outside(path, within)
        self._make_folders(
            os.path.dirname(absolute), None if within is None else self._absolute(within), durable=within is None
        )
        if within is None:  # nobody else has names in a place of its own
            _refuse_taken(absolute)
            delete_twin(absolute)
        descriptor = os.open(absolute, CREATE, MODE)
        try:
            # A second descriptor for the caller: pyarrow may close the stream it is given, and we sync after that.
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
            written = os.fstat(descriptor)
            is_left = within is not None and self._syncs_together and written.st_size <= _SYNCED_TOGETHER_BYTES
            if durable and self._syncs and not is_left:
                os.fsync(descriptor)
            if not os.path.samestat(written, os.stat(absolute)):
                raise os_error(errno.ENOENT, absolute)
        finally:
            os.close(descriptor)
        if durable and within is None:
            sync(os.path.dirname(absolute))

    def create_all(self, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
        """As the protocol says, with one look at each folder."""
        for path, _ in files:
            refuse_outside(path, within)
        absolutes = self._all_writable([path for path, _ in files])
        for folder in dict.fromkeys(map(os.path.dirname, absolutes)):
            self._make_folders(folder, self._absolute(within), durable=False)
        for absolute, (_, data) in zip(absolutes, files, strict=True):
            descriptor = os.open(absolute, CREATE, MODE)
            try:
                size_bytes = write_all(descriptor, data)
                if self._syncs and not (self._syncs_together and size_bytes <= _SYNCED_TOGETHER_BYTES):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def open_log(self, path: str) -> LogOutput:
        absolute = self._writable(path)
        self._make_folders(os.path.dirname(absolute))
        return _Log(os.open(absolute, CREATE, MODE), absolute)

    def end_log(self, path: str) -> None:
        self._writable(path)

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        absolute = self._writable(path)
        folder = self._scratch() if via is None else self._writable(via, may_be_root=True)
        os.stat(folder)  # a fenced-off writer hears FileNotFoundError, also when the name is taken
        _refuse_taken(absolute)
        temporary = write_temporary(folder, data, durable=durable)
        try:
            self._make_folders(os.path.dirname(absolute), durable=durable)
            delete_twin(absolute)
            try:
                link_new(temporary, absolute)
            except FileExistsError:
                # NFS says so too when it made our link, lost the answer and was asked again.
                if not _is_same_file(temporary, absolute):
                    raise
        finally:
            # After the link the folder may be renamed away before we get here: published is published.
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        if durable:
            sync(os.path.dirname(absolute))

    def create_missing(self, files: Sequence[tuple[str, bytes]]) -> None:
        """All temporary files, then one wait for their bytes, then all links. Files of the same bytes are links to one of them."""
        writable = self._all_writable([path for path, _ in files])
        missing = [(absolute, data) for absolute, (_, data) in zip(writable, files, strict=True)]
        missing = [(absolute, data) for absolute, data in missing if not os.path.lexists(absolute)]
        if not missing:
            return
        folder = self._scratch()
        same: dict[bytes, list[str]] = {}
        for absolute, data in missing:
            same.setdefault(data, []).append(absolute)
        targets: dict[str, list[str]] = {}
        try:
            for data, paths in same.items():
                for start in range(0, len(paths), _LINKS_OF_ONE):
                    source = write_temporary(folder, data, durable=False)
                    targets[source] = paths[start : start + _LINKS_OF_ONE]
            self._sync_all(targets)
            for source, paths in targets.items():
                for absolute in paths:
                    if not self._make_folders(os.path.dirname(absolute), durable=False):
                        delete_twin(absolute)  # in a new folder there is none
                    with suppress(FileExistsError):  # another writer was first
                        link_new(source, absolute)
        finally:
            for source in targets:
                with suppress(FileNotFoundError):
                    os.unlink(source)

    def replace(self, path: str, data: bytes) -> None:
        absolute = self._writable(path)
        temporary = write_temporary(self._scratch(), data)
        try:
            self._make_folders(os.path.dirname(absolute))
            delete_twin(absolute)
            os.replace(temporary, absolute)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        sync(os.path.dirname(absolute))

    def move_new(self, source: str, target: str) -> None:
        """As the protocol says, by link and unlink: a crash between the two leaves the file under both names."""
        absolute_source, absolute = self._writable(source), self._writable(target)
        if os.path.lexists(absolute_source) and not os.path.lexists(absolute):
            delete_twin(absolute)
        self.move_all_new(((source, target),))
        delete_twin(absolute_source)

    def move_all_new(self, moves: Sequence[tuple[str, str]]) -> None:
        """One wait for the bytes of all, then all links, then one wait for their folders.

        Waits for the disk are what a move costs. A journal ends many of them at once: a thousand files take thirty times as
        long one after the other. Twins are not looked for: no file had these names, which hold a number of chance, before.
        """
        linked: list[tuple[str, str]] = []
        sources = self._all_writable([source for source, _ in moves])
        targets = self._all_writable([target for _, target in moves])
        self._sync_all(sources)
        try:
            for absolute_source, absolute in zip(sources, targets, strict=True):
                try:
                    link_new(absolute_source, absolute)
                except OSError as exc:
                    if stat.S_ISDIR(os.stat(absolute_source).st_mode):
                        raise os_error(errno.EISDIR, absolute_source) from None
                    if exc.errno != errno.ENOENT:
                        raise
                    self._make_folders(os.path.dirname(absolute), durable=False)
                    link_new(absolute_source, absolute)
                linked.append((absolute_source, absolute))
        finally:
            # Before the unlinks: a power cut must not take both names. That it brings an old name back does no harm.
            # The folders above them, too: another writer may have made them and not synced them yet.
            folders = dict.fromkeys(os.path.dirname(absolute) for _, absolute in linked)
            self._sync_all(dict.fromkeys(above for folder in folders for above in self._up_from(folder)))
            for absolute_source, _ in linked:
                # The source's folder may have been renamed away since the link: published is published.
                with suppress(FileNotFoundError):
                    os.unlink(absolute_source)

    def rename_folder(self, source: str, target: str) -> None:
        """As the protocol says; makes missing parent folders of `target`.

        Between the look at `target` and the rename, only an empty folder of that name could still be replaced.
        """
        absolute_source, absolute = self._writable(source), self._writable(target)
        if not self.stat(source).is_folder:
            raise os_error(errno.ENOTDIR, absolute_source)
        _refuse_taken(absolute)
        if f"{target}/".startswith(f"{source}/"):
            raise os_error(errno.EINVAL, absolute)
        self._make_folders(os.path.dirname(absolute))
        try:
            os.rename(absolute_source, absolute)
        except OSError as exc:
            if exc.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise os_error(errno.EEXIST, absolute) from exc
            raise
        sync(os.path.dirname(absolute))
        with suppress(FileNotFoundError):
            sync(os.path.dirname(absolute_source))

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        absolute = self._writable(folder, may_be_root=True)
        if folder and os.path.islink(absolute):
            raise link_refused(absolute)
        prefix = f"{folder}/" if folder else ""
        if os.path.lexists(absolute) and not os.path.isdir(absolute):
            raise os_error(errno.ENOTDIR, absolute)
        return sorted(walk(absolute, prefix, recursive=recursive))

    def names(self, folder: str) -> Sequence[str]:
        absolute = self._writable(folder, may_be_root=True)
        if folder and os.path.islink(absolute):
            raise link_refused(absolute)
        try:
            with os.scandir(absolute) as entries:
                # What an entry is comes with it; only of links (to files, here) the system has to be asked.
                return [entry.name for entry in entries if not entry.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            if not os.path.lexists(absolute):
                return []
            if os.path.isdir(absolute):
                return self.names(folder)  # it came this moment
            raise

    def stat(self, path: str) -> FileInfo:
        absolute = self._absolute(path, may_be_root=True)
        try:  # not `_absence_below_a_file`: this is asked of each of many small files, for each write
            return file_info(path, os.stat(absolute))
        except NotADirectoryError as exc:
            raise os_error(errno.ENOENT, absolute) from exc

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def delete(self, path: str) -> None:
        absolute = self._writable(path)
        if os.path.isdir(absolute):
            raise os_error(errno.EISDIR, absolute)
        with suppress(FileNotFoundError, NotADirectoryError):
            delete_twin(absolute)
            os.unlink(absolute)

    def delete_folder(self, path: str) -> None:
        absolute = self._writable(path)
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(absolute).st_mode):
                raise os_error(errno.ENOTDIR, absolute)  # a link too: what it leads to is not ours to delete
        delete_tree(absolute)

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        absolute = self._writable(path, may_be_root=True)
        if os.path.lexists(absolute) and not os.path.isdir(absolute):
            raise os_error(errno.EEXIST, absolute)
        self._make_folders(absolute, durable=durable)

    def touch(self, path: str) -> None:
        absolute = self._writable(path)
        self._make_folders(os.path.dirname(absolute), durable=False)
        if not os.path.lexists(absolute):
            delete_twin(absolute)
        descriptor = os.open(absolute, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            os.utime(descriptor)
        finally:
            os.close(descriptor)

    def unsynced(self) -> Storage:
        return LocalStorage(self._root, syncs=False)

    def now_s(self) -> float:
        """The file system's own clock where the scratch folder is there to ask, else this machine's.

        They differ: a file server has its own clock, and a local kernel stamps files with a coarse one that lags
        the precise clock by some milliseconds, enough to give a file an mtime before a "now" taken earlier.
        """
        probe = os.path.join(self._root, SCRATCH_FOLDER, temporary_name())
        try:
            descriptor = os.open(probe, CREATE, MODE)
        except OSError:
            return time.time()  # a reader of a table that was never written from here, or is read-only for it
        try:
            return mtime_s(os.fstat(descriptor))
        finally:
            os.close(descriptor)
            os.unlink(probe)

    def _absolute(self, path: str, *, may_be_root: bool = False) -> str:
        checked_path(path, under=self._root, may_be_root=may_be_root)
        return f"{self._below}{path}" if path else self._root

    def _writable(self, path: str, *, may_be_root: bool = False) -> str:
        """The absolute path, once no link on the way to it leads out of the root (the root itself may be a link).

        Raises:
            UnsupportedTableError: one does.
        """
        absolute = self._absolute(path, may_be_root=may_be_root)
        if path:
            folder = os.path.dirname(absolute)
            if not self._meets_link(folder):
                return absolute
            real, root = os.path.realpath(folder), os.path.realpath(self._root)
            if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
                raise UnsupportedTableError(
                    f"{folder} leads out of the table to {real} through a symbolic link: nothing is read or changed there; "
                    "replace the link by the folder itself"
                )
        return absolute

    def _all_writable(self, paths: Sequence[str]) -> Sequence[str]:
        """As `_writable`, with one look at each folder."""
        one_of = {folder_of(path): path for path in paths}
        for path in one_of.values():
            self._writable(path)
        return [self._absolute(path) for path in paths]

    def _meets_link(self, folder: str) -> bool:
        """Whether a folder below the root, or one between them, is a symbolic link."""
        return any(map(os.path.islink, self._up_from(folder, with_root=False)))

    def _up_from(self, folder: str, *, with_root: bool = True) -> Iterator[str]:
        """The folder and those above it, up to the root."""
        while len(folder) > len(self._root):
            yield folder
            folder = folder[: folder.rfind(os.sep)] or os.sep
        if with_root:
            yield folder

    def _scratch(self) -> str:
        folder = os.path.join(self._root, SCRATCH_FOLDER)
        self._make_folders(folder)
        return folder

    def _make_folders(self, absolute: str, within: str | None = None, *, durable: bool = True) -> bool:
        """Make a folder and those above it, below `within`; NotADirectoryError when a file is in the way. Whether it was not there."""
        if os.path.isdir(absolute):
            return False
        if absolute == within:
            raise os_error(errno.ENOENT, absolute)
        parent = os.path.dirname(absolute)
        try:
            os.mkdir(absolute)
        except (FileNotFoundError, NotADirectoryError):
            if parent == absolute:
                raise
            self._make_folders(parent, within, durable=durable)
            return self._make_folders(absolute, within, durable=durable)
        except FileExistsError as exc:
            if not os.path.isdir(absolute):  # else another thread was faster
                raise os_error(errno.ENOTDIR, absolute) from exc
        if durable:
            sync(parent)
        return True

    def _sync_all(self, absolutes: Iterable[str]) -> None:
        """Wait until files and folders are durable; one that is not there is left to who needs it."""
        if self._syncs:
            every = list(absolutes)
            shares = [every[start::_SYNCS_AT_ONCE] for start in range(min(_SYNCS_AT_ONCE, len(every)))]
            for_each(sync_all_there, shares, at_once=_SYNCS_AT_ONCE)


class _Log:
    def __init__(self, descriptor: int, absolute: str) -> None:
        self._descriptor = descriptor
        self._absolute = absolute
        self._is_named = False

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        for start in range(0, len(parts), _PARTS_AT_ONCE):
            chosen = parts[start : start + _PARTS_AT_ONCE]
            written_bytes = os.writev(self._descriptor, chosen)
            if written_bytes == sum(map(len, chosen)):
                continue
            write_all(self._descriptor, memoryview(b"".join(chosen))[written_bytes:])  # the disk is nearly full

    def sync(self, *, durable: bool = True) -> None:
        if durable:
            os.fdatasync(self._descriptor)
            if not self._is_named:
                sync(os.path.dirname(self._absolute))
                self._is_named = True

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def _absence_below_a_file() -> Iterator[None]:
    """What is "not a directory" to the system (`file/x`) is a missing file to callers."""
    try:
        yield
    except NotADirectoryError as exc:
        raise os_error(errno.ENOENT, str(exc.filename)) from exc


def _refuse_taken(absolute: str) -> None:
    if os.path.lexists(absolute):
        raise os_error(errno.EEXIST, absolute)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False
