"""Storage on HDFS, through hdfs-native: the NameNode's renames keep every promise that links keep on a disk.

A name is given by `rename` without overwriting, which the NameNode does in one step and writes to its journal before it answers.
A file is open under a temporary name only. So a writer that dies leaves nothing that has to be recovered: its file can be renamed
and deleted though its lease still stands.

What is durable: `hsync` before a file is closed puts its last block on the disks of the DataNodes. Earlier blocks of a file of
several were acknowledged by all replicas, but may lie in their machines' memory, as with any client of HDFS.
"""

from __future__ import annotations

import errno
import posixpath
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa

from hoodie.model.names import folder_of, name_of
from hoodie.storage.base import FileInfo, LogOutput, Storage, create_each
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.hdfs_client import connected
from hoodie.storage.hdfs_errors import HdfsErrors, meaning
from hoodie.storage.hdfs_files import HdfsInput, HdfsLog, HdfsOutput
from hoodie.storage.paths import SCRATCH_FOLDER, checked_path, checked_range, refuse_outside, temporary_name

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus, FileWriter

_WHOLE_BYTES = 4 * 1024 * 1024
"""A file up to this size is fetched when it is opened: one request, and it can be deleted meanwhile."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""Between looks whether a lease was recovered."""
_RECOVERY_S = 120.0
"""How long that may take; without the DataNodes of the file's last block it never ends."""
_SETTLE_S = 2.0
"""How long a file may take, once it is closed, until the DataNodes have told the NameNode of its last block."""
_SETTLE_PAUSE_S = 0.05


class HdfsStorage(Storage):
    """Files under a folder of HDFS. Picklable: address and settings; each process makes its own connection when it first needs it.

    `authority` is `host:port` of a NameNode or the name of a nameservice that the configuration explains. `settings` are Hadoop's.
    """

    can = Capabilities(is_remote=True)

    def __init__(self, authority: str, root: str, settings: Mapping[str, str] | None = None) -> None:
        self._authority = authority
        self._root = posixpath.normpath("/" + root.strip("/"))
        self._settings = dict(settings or {})
        self._errors = HdfsErrors(authority)

    def __repr__(self) -> str:
        return f"HdfsStorage({self.uri!r})"

    def __reduce__(self) -> tuple[type[HdfsStorage], tuple[str, str, dict[str, str]]]:
        return HdfsStorage, (self._authority, self._root, self._settings)

    @property
    def uri(self) -> str:
        return f"hdfs://{self._authority}{self._root}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Hadoop's, as they were given. Show none: one may be a secret."""
        return self._settings

    @property
    def identity(self) -> Hashable:
        return self.uri

    # -- reading

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        checked_range(path, offset=offset, length=length)
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            reader, size = self._open(absolute)
            end = size if length is None else min(offset + length, size)
            return bytes(reader.read_range(offset, end - offset)) if offset < end else b""

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        """A small file as a whole; of a larger one what is asked for, by threads side by side where the reader uses them."""
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            reader, size = self._open(absolute)
            if size <= _WHOLE_BYTES:
                return pa.BufferReader(reader.read_range(0, size) if size else b"")
        return pa.PythonFile(HdfsInput(self._errors, absolute, reader, size), mode="r")

    def _open(self, absolute: str) -> tuple[FileReader, int]:
        """A reader and the size that it serves.

        hdfs-native does not serve the last block of a file that is still open, and says nothing of it: it looks like a shorter
        file. So the size is compared with what the NameNode states.

        Raises:
            OSError: the file stays open.
        """
        give_up_s = time.monotonic() + _SETTLE_S
        while True:
            try:
                reader = self._client.read(absolute)
            except RuntimeError as exc:
                if meaning(str(exc))[0] == errno.ENOTDIR:  # below a file
                    raise self._errors.error(errno.ENOENT, absolute) from exc
                raise
            size = len(reader)
            length = self._client.get_file_info(absolute).length
            if size >= length:
                return reader, size
            if time.monotonic() > give_up_s:
                raise OSError(
                    errno.EBUSY,
                    f"a writer holds the file open: {size} of its {length} bytes can be read. Read it again when that one has "
                    "closed it; if the writer is dead, the next write or table.rollback() closes it, and so does "
                    "`hdfs debug recoverLease -path`",
                    self._errors.shown(absolute),
                )
            time.sleep(_SETTLE_PAUSE_S)

    # -- writing

    @contextmanager
    def open_output(self, path: str, *, within: str | None = None, durable: bool = True) -> Iterator[BinaryIO]:
        """As the protocol says. A block that ends with an exception leaves what it had written, like a crash.

        Raises:
            FileExistsError: the name is taken. FileNotFoundError: at the end of the block, when the file was deleted or its folder
                renamed away while it was open.
        """
        absolute = self._absolute(path)
        if within is not None:
            refuse_outside(path, within)
        with self._errors.translated(absolute):
            output = HdfsOutput(self._errors, absolute, self._create(path, within))
        try:
            yield cast(BinaryIO, output)
        except BaseException:
            with suppress(OSError):
                output.finish(durable=False)
            raise
        output.finish(durable=durable)
        with self._errors.translated(
            absolute
        ):  # HDFS closes a file wherever it is; what counts is that it is still here
            if self._client.get_file_info(absolute).length != output.written:
                raise self._errors.error(errno.ENOENT, absolute)

    def open_log(self, path: str) -> LogOutput:
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            return HdfsLog(self._errors, absolute, self._create(path, None))

    def end_log(self, path: str) -> None:
        """Recovers the lease: the NameNode closes the file at a length that all DataNodes agree on, and refuses its writer."""
        absolute = self._absolute(path)
        pause_s = _FIRST_PAUSE_S
        give_up_s = time.monotonic() + _RECOVERY_S
        with self._errors.translated(absolute):
            while not self._client.recover_lease(absolute):
                if time.monotonic() > give_up_s:
                    raise self._errors.error(
                        errno.EBUSY, absolute, "its lease was not recovered: see that its DataNodes run"
                    )
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    create_all = create_each

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        absolute = self._absolute(path)
        folder = self._scratch() if via is None else self._absolute(via, may_be_root=True)
        with self._errors.translated(absolute):
            if via is not None and not self._client.get_file_info(folder).isdir:
                raise self._errors.error(errno.ENOTDIR, folder)
            if self._status(absolute) is not None:
                raise self._errors.error(errno.EEXIST, absolute)
        temporary = self._write_temporary(folder, data, durable=durable)
        try:
            self._rename(temporary, absolute, landed=lambda: self._holds(absolute, data) and self._is_there(folder))
        except BaseException:
            with suppress(OSError), self._errors.translated(temporary):
                self._client.delete(temporary, False)
            raise

    def replace(self, path: str, data: bytes) -> None:
        absolute = self._absolute(path)
        temporary = self._write_temporary(self._scratch(), data, durable=True)
        with self._errors.translated(absolute):
            try:
                status = self._status(absolute)
                if status is None:
                    self._make_folder(posixpath.dirname(absolute))
                elif status.isdir:
                    raise self._errors.error(errno.EISDIR, absolute)
                self._client.rename(temporary, absolute, True)
            except BaseException:
                with suppress(Exception):
                    self._client.delete(temporary, False)
                raise

    def move_new(self, source: str, target: str) -> None:
        """As the protocol says, in one step of the NameNode."""
        absolute_source, absolute = self._absolute(source), self._absolute(target)
        before = self.stat(source)
        if before.is_folder:
            raise self._errors.error(errno.EISDIR, absolute_source)
        self._rename(absolute_source, absolute, landed=lambda: self.stat(target).identity == before.identity)

    def move_all_new(self, moves: Sequence[tuple[str, str]]) -> None:
        for source, target in moves:
            self.move_new(source, target)

    def rename_folder(self, source: str, target: str) -> None:
        """As the protocol says; makes missing parent folders of `target`."""
        absolute_source, absolute = self._absolute(source), self._absolute(target)
        if not self.stat(source).is_folder:
            raise self._errors.error(errno.ENOTDIR, absolute_source)
        if f"{target}/".startswith(f"{source}/"):
            raise self._errors.error(errno.EINVAL, absolute)
        self._rename(absolute_source, absolute, landed=lambda: False)

    def delete(self, path: str) -> None:
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            status = self._status(absolute)
            if status is None:
                return
            if status.isdir:
                raise self._errors.error(errno.EISDIR, absolute)
            self._client.delete(absolute, False)

    def delete_folder(self, path: str) -> None:
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            status = self._status(absolute)
            if status is not None and not status.isdir:
                raise self._errors.error(errno.ENOTDIR, absolute)
            if status is not None:
                self._client.delete(absolute, True)

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        absolute = self._absolute(path, may_be_root=True)
        with self._errors.translated(absolute):
            self._client.mkdirs(absolute, create_parent=True)

    def touch(self, path: str) -> None:
        absolute = self._absolute(path)
        with self._errors.translated(absolute):
            try:
                self._create(path, None).close()
            except FileExistsError:
                if self._client.get_file_info(absolute).isdir:
                    raise self._errors.error(errno.EISDIR, absolute) from None
                now_ms = int(self.now_s() * 1000)
                self._client.set_times(absolute, now_ms, now_ms)

    # -- looking

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        result: list[FileInfo] = []
        for status in self._entries(self._absolute(folder, may_be_root=True)):
            info = self._file_info(status, f"{folder}/" if folder else "")
            if not recursive or not info.is_folder:
                result.append(info)
            else:
                with suppress(NotADirectoryError):  # it went, and a file took its name
                    result.extend(self.list(info.path, recursive=True))
        return sorted(result)

    def names(self, folder: str) -> Sequence[str]:
        entries = self._entries(self._absolute(folder, may_be_root=True))
        return [name_of(status.path) for status in entries if not status.isdir]

    def stat(self, path: str) -> FileInfo:
        absolute = self._absolute(path, may_be_root=True)
        with self._errors.translated(absolute):
            status = self._client.get_file_info(absolute)
        folder = folder_of(path)
        info = self._file_info(status, f"{folder}/" if folder else "")
        return info._replace(path=path)

    def exists(self, path: str) -> bool:
        absolute = self._absolute(path, may_be_root=True)
        with self._errors.translated(absolute):
            return self._status(absolute) is not None

    def now_s(self) -> float:
        """The NameNode's clock where the scratch folder is there to ask it in, else this machine's."""
        probe = posixpath.join(self._root, SCRATCH_FOLDER, temporary_name())
        try:
            with self._errors.translated(probe):
                self._client.create(probe, write_options(create_parent=False)).close()
                stamped = self._client.get_file_info(probe).modification_time
                self._client.delete(probe, False)
        except OSError:
            return time.time()  # a reader of a table that was never written from here, or is read-only for it
        return float(stamped) / 1000

    # -- how

    @property
    def _client(self) -> Client:
        return connected(self._authority, self._settings)

    def _absolute(self, path: str, *, may_be_root: bool = False) -> str:
        checked_path(path, under=self.uri, may_be_root=may_be_root)
        return posixpath.join(self._root, path) if path else self._root

    def _create(self, path: str, within: str | None) -> FileWriter:
        """A new file; with missing folders, below `within` where that is given."""
        absolute = self._absolute(path)
        if within is None:
            return self._client.create(absolute, write_options(create_parent=True))
        try:
            return self._client.create(absolute, write_options(create_parent=False))
        except FileNotFoundError:
            # One by one: each fails when the folder above it has gone.
            folder, missing = self._absolute(within), posixpath.dirname(path)[len(within) + 1 :].split("/")
            if missing == [""]:
                raise
            for part in missing:
                folder = posixpath.join(folder, part)
                self._client.mkdirs(folder, create_parent=False)
            return self._client.create(absolute, write_options(create_parent=False))

    def _write_temporary(self, folder: str, data: bytes, *, durable: bool) -> str:
        """A closed file of this content under a name nobody can guess; its absolute path. The folder has to be there."""
        temporary = posixpath.join(folder, temporary_name())
        with self._errors.translated(temporary):
            output = HdfsOutput(
                self._errors, temporary, self._client.create(temporary, write_options(create_parent=False))
            )
        try:
            output.write(data)
            output.finish(durable=durable)
        except BaseException:
            with suppress(OSError):
                output.finish(durable=False)
            with suppress(OSError), self._errors.translated(temporary):
                self._client.delete(temporary, False)
            raise
        return temporary

    def _rename(self, source: str, target: str, *, landed: Callable[[], bool]) -> None:
        """Never replaces; makes missing parent folders of `target`.

        `landed` is asked when the source has gone: the client may have repeated a call whose answer was lost.
        """
        with self._errors.translated(target):
            try:
                try:
                    self._client.rename(source, target, False)
                except FileNotFoundError:
                    if not self._is_there(source):
                        raise
                    self._make_folder(posixpath.dirname(target))
                    self._client.rename(source, target, False)
            except FileNotFoundError:
                if not (self._status(target) is not None and self._status(source) is None and landed()):
                    raise
            except RuntimeError:
                if self._status(target) is None:  # it says nothing clear of a file where a folder stands
                    raise
                raise self._errors.error(errno.EEXIST, target) from None

    def _holds(self, absolute: str, data: bytes) -> bool:
        status = self._status(absolute)
        if status is None or status.length != len(data):
            return False
        reader, size = self._open(absolute)
        return size == len(data) and bytes(reader.read_range(0, size) if size else b"") == bytes(data)

    def _scratch(self) -> str:
        folder = posixpath.join(self._root, SCRATCH_FOLDER)
        with self._errors.translated(folder):
            self._make_folder(folder)
        return folder

    def _make_folder(self, absolute: str) -> None:
        """The folder of a file that is to come; NotADirectoryError when a file is in the way."""
        try:
            self._client.mkdirs(absolute, create_parent=True)
        except FileExistsError as exc:
            raise self._errors.error(errno.ENOTDIR, absolute) from exc

    def _is_there(self, absolute: str) -> bool:
        return self._status(absolute) is not None

    def _status(self, absolute: str) -> FileStatus | None:
        try:
            return self._client.get_file_info(absolute)
        except FileNotFoundError:
            return None

    def _entries(self, absolute: str) -> Sequence[FileStatus]:
        with self._errors.translated(absolute):
            try:
                entries = [*self._client.list_status(absolute)]
            except FileNotFoundError:
                return []
            except RuntimeError as exc:
                if meaning(str(exc))[0] == errno.ENOTDIR:  # below a file
                    return []
                raise
        if len(entries) == 1 and entries[0].path == absolute and not entries[0].isdir:
            raise self._errors.error(errno.ENOTDIR, absolute)
        return entries

    def _file_info(self, status: FileStatus, prefix: str) -> FileInfo:
        size = 0 if status.isdir else status.length
        identity = status.modification_time, size
        return FileInfo(prefix + name_of(status.path), size, status.modification_time / 1000, status.isdir, identity)


def write_options(*, create_parent: bool) -> Any:
    from hdfs_native import WriteOptions  # noqa: PLC0415

    return WriteOptions(create_parent=create_parent, overwrite=False)
