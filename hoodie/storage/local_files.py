"""One file or folder of a local disk, by its absolute path: made, synced, linked, told of, deleted."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from hoodie.errors import UnsupportedTableError
from hoodie.storage.base import FileInfo
from hoodie.storage.paths import temporary_name

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
MODE = 0o666  # less the umask, like any other file of the table: readers may be other users
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP}
_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def os_error(number: int, absolute: str) -> OSError:
    return OSError(number, os.strerror(number), absolute)


def link_refused(absolute: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{absolute} is a symbolic link to a folder: tables with links are not read, because a link can lead out of the "
        "table or in circles; replace it by the folder itself"
    )


def delete_twin(absolute: str) -> None:
    folder, name = os.path.split(absolute)
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def write_temporary(folder: str, data: bytes, *, durable: bool = True) -> str:
    """A file of this content, synced when it is to be durable, under a name nobody can guess; the absolute path."""
    temporary = os.path.join(folder, temporary_name())
    descriptor = os.open(temporary, CREATE, MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(descriptor)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return temporary


def write_all(descriptor: int, data: bytes | memoryview) -> int:
    """Write the bytes, also where the system takes a part of them at a time (a signal came); their number."""
    remaining = memoryview(data)
    size_bytes = remaining.nbytes
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
    return size_bytes


def link_new(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileExistsError as exc:
        raise os_error(errno.EEXIST, target) from exc
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        raise OSError(
            exc.errno,
            f"{exc.strerror}: no hard link to the final name could be made, so nothing was published; "
            "a table must lie on one file system that has hard links, and be owned by its writer",
            source,
            None,
            target,
        ) from exc


def sync(absolute: str) -> None:
    descriptor = os.open(absolute, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        if exc.errno not in _NO_FOLDER_SYNC:  # some file systems have no such thing and need none
            raise
    finally:
        os.close(descriptor)


def sync_all_there(absolutes: Iterable[str]) -> None:
    """One after the other; those that are not there are left out."""
    for absolute in absolutes:
        with suppress(FileNotFoundError):
            sync(absolute)


def file_info(path: str, status: os.stat_result) -> FileInfo:
    is_folder = stat.S_ISDIR(status.st_mode)
    identity = status.st_mtime_ns, status.st_size, status.st_ino
    return FileInfo(path, 0 if is_folder else status.st_size, mtime_s(status), is_folder, identity)


def mtime_s(status: os.stat_result) -> float:
    """The time of modification, in whole microseconds.

    A float of today's seconds is rounded to a quarter of a microsecond, and a `datetime` of it to a whole one: of a file
    written just before the end of a millisecond they say the next, and Hudi, which cuts, another completion time than ours.
    """
    return status.st_mtime_ns // 1_000 / 1_000_000


def walk(absolute: str, prefix: str, *, recursive: bool) -> Iterator[FileInfo]:
    """Entries in the system's order, without those that vanish meanwhile. Which are folders comes with the names, without a call."""
    try:
        entries = os.scandir(absolute)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                path = prefix + entry.name
                info = FileInfo(path, 0, 0.0, True, None) if is_folder else file_info(path, entry.stat())
            except FileNotFoundError:
                continue
            if info.is_folder and not is_folder:
                raise link_refused(entry.path)
            if not recursive or not info.is_folder:
                yield info
            else:
                yield from walk(entry.path, f"{info.path}/", recursive=True)


def delete_tree(absolute: str) -> None:
    """Delete a folder, safe against others who delete in it at the same time; links are not followed."""
    with suppress(FileNotFoundError):
        with os.scandir(absolute) as scanned:
            entries = tuple(scanned)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                delete_tree(entry.path)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)
        os.rmdir(absolute)
