"""Tables in object stores, through obstore: S3 and its like, Google Cloud Storage, Azure.

A store has no folders: one is there while a file is below it, and `mkdirs` makes nothing. An output is seen when its block ended
well, and not before. A store tells modification times to the second.

Requests: one for each call, but for these. `open_output` above 8 MB: HEAD, then a multipart upload. `stat` and `exists`: LIST
after a HEAD that found nothing. `touch`: PUT, and GET and PUT where the file is there. `delete_folder`: LIST, and a DELETE for
each 1,000 files. `list` and `names`: one for each 1,000 files.
"""

from __future__ import annotations

import errno
import io
import math
import os
import random
import re
import time
import uuid
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from hoodie.errors import AccessDeniedError, StorageError, StorageFullError
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.paths import checked_path, checked_range
from hoodie.storage.ranges import TAIL_BYTES, RangedFile, RangedInput, Span
from hoodie.storage.refusals import denied, full

if TYPE_CHECKING:
    from types import ModuleType

    from obstore.store import ObjectStore

_PART_BYTES = 8 * 1024 * 1024
_PUT_ID = "hoodieput"
"""Attribute of conditional puts, another one each time: when an answer was lost, it tells whose file stands there."""
_TRIES = 6
_BUSY = frozenset({"ConditionalRequestConflict", "ExistingObjectIsDirectory", "OperationAborted"})
"""Answers (409) to a put while another one or a delete of the name runs: it may be that none of them leaves a file.

The directory is versitygw's word for it, which keeps objects as files.
"""
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_NO_BUCKET_SAID = "The specified bucket does not exist"
"""By Google's store, and where only a text is there of an answer."""
_NO_ANSWER = re.compile(r"(https?://[^/\s]+).*error sending request", re.DOTALL)
_GONE = "(code: NoSuchKey)"
"""Of one file in the answer to a delete of many, from servers that tell a file that is gone from one that they deleted."""
_CLOCK = ".hoodie/.hoodie_py/clock"
_CODE = re.compile(r"<Code>(\w+)</Code>")
_DENIED = frozenset(
    {"AccessDenied", "AccountProblem", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
)
_EXPIRED = frozenset({"ExpiredToken", "RequestExpired", "TokenRefreshRequired", "ExpiredTokenException"})
_SKEWED = frozenset({"RequestTimeTooSkewed"})
_FULL = frozenset({"InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "NoSpaceLeftOnDevice"})
_NOT_SAID = ("400 Bad Request", "403 Forbidden")
"""Without a code: the answer to a HEAD has no text."""
_NO_ROOM = "507 Insufficient Storage"
_CLOCK_LASTS_S = 3600.0
_HALF_A_SECOND_S = 0.5
_COARSE_CLOCK_S = 0.1
"""A store that keeps objects in files stamps them with the system's coarse clock, which is a few milliseconds behind."""
_LAST_MOMENT_S = 0.999


class ObjectStorage(Storage):
    """`CopyingStorage` of the objects below the prefix of `store`.

    Args:
        store: an obstore store whose prefix is the table's folder.
        once: the same without retries of its own. A put on condition that is repeated after its answer was lost would
            find its own file, and take it for another's.
        place: the address by one name of the scheme where it has several: `s3a://` and `s3://` are one table.
        how: options that it was reached by.
    """

    can = Capabilities(is_remote=True, at_once=32, time_step_s=1.0)

    def __init__(
        self,
        uri: str,
        store: ObjectStore,
        once: ObjectStore,
        *,
        endpoint: str = "",
        place: str | None = None,
        how: Mapping[str, str] | None = None,
    ) -> None:
        self._uri = uri.rstrip("/")
        self._place = self._uri if place is None else place
        self._how = dict(how or {})
        self._store = store
        self._once = once
        self._endpoint = endpoint
        self._clock: tuple[float, float] | None = None
        """When it was learned, by the monotonic clock; what the store's clock is ahead of that one."""

    def __repr__(self) -> str:
        return f"ObjectStorage({self._uri!r})"

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def identity(self) -> Hashable:
        return (self._endpoint, self._place)

    @property
    def how(self) -> Mapping[str, str]:
        """Options that it was reached by, from the environment too. Some are secrets: compare them, show none."""
        return self._how

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self._checked(path)
        checked_range(path, offset=offset, length=length)
        with self._errors(path):
            if offset == 0 and length is None:
                return bytes(_obstore().get(self._store, path).bytes())
            try:
                if length is None:
                    return bytes(_obstore().get(self._store, path, options={"range": {"offset": offset}}).bytes())
                if length:
                    return bytes(_obstore().get_range(self._store, path, start=offset, length=length))
            except _obstore().exceptions.BaseError:
                if offset < _obstore().head(self._store, path)["size"]:
                    raise
            else:
                _obstore().head(self._store, path)
            return b""  # nothing is asked for, or all of it lies behind the end

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        """Reads the end of the file at once, and what is expected together (`storage/ranges.py`)."""
        self._checked(path)
        with self._errors(path):
            try:
                tail, size = self._end_of(path)
            except _obstore().exceptions.BaseError:
                if _obstore().head(self._store, path)["size"]:
                    raise
                tail, size = b"", 0  # an empty file has no range
        if len(tail) == size:
            return pa.BufferReader(tail)

        def fetch(spans: Sequence[Span]) -> Sequence[bytes]:
            with self._errors(path):
                starts, ends = zip(*spans, strict=True)
                return [bytes(part) for part in _obstore().get_ranges(self._store, path, starts=starts, ends=ends)]

        return RangedInput(RangedFile(fetch, size, tail), mode="r")

    def _end_of(self, path: str) -> tuple[bytes, int]:
        """The last bytes of a file, and its size; one request is enough for a small file."""
        if not self._is_azure:
            response = _obstore().get(self._store, path, options={"range": {"suffix": TAIL_BYTES}})
            return bytes(response.bytes()), response.meta["size"]
        # Azure counts from the beginning only.
        response = _obstore().get(self._store, path, options={"range": (0, TAIL_BYTES)})
        start, size = bytes(response.bytes()), response.meta["size"]
        if size <= TAIL_BYTES:
            return start, size
        return bytes(_obstore().get_range(self._store, path, start=size - TAIL_BYTES, end=size)), size

    @contextmanager
    def open_output(self, path: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        """Left by an exception nothing stays. Of a large file the store keeps the parts when it fails itself, or the process dies.

        A large file is exclusive only as far as its name is nobody else's: files that are staged have such names.
        """
        self._checked(path)
        stream = _Upload(self, path)
        try:
            yield stream  # type: ignore[misc]
        except BaseException:
            stream.give_up()
            raise
        stream.finish()

    def _parts_of_new(self, path: str) -> Any:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._full(path))
        return _obstore().open_writer(self._store, path, buffer_size=_PART_BYTES)

    def create_new(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._put_once(path, bytes(data), "create")

    def replace(self, path: str, data: bytes) -> None:
        self._checked(path)
        self._put(path, bytes(data))

    def read_tagged(self, path: str) -> tuple[bytes, Hashable]:
        self._checked(path)
        with self._errors(path):
            response = _obstore().get(self._store, path)
            return bytes(response.bytes()), _tag(response.meta)

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        e_tag, version = tag if isinstance(tag, tuple) else (tag, None)
        try:
            return self._put_once(path, bytes(data), {"e_tag": e_tag, **({"version": version} if version else {})})
        except FileExistsError:
            with self._errors(path):
                _obstore().head(self._store, path)  # that it is gone is a failed condition, too
            raise

    def copy_file(self, source: str, target: str) -> None:
        self._checked(source)
        self._checked(target)
        with self._errors(source):
            _obstore().copy(self._store, source, target)

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        self._checked(folder, may_be_root=True)
        prefix = f"{folder}/" if folder else None
        with self._errors(folder):
            if recursive:
                files = [
                    _file_info(meta)
                    for chunk in _obstore().list(self._store, prefix, chunk_size=1000)
                    for meta in chunk
                ]
                return sorted(files)
            answer = _obstore().list_with_delimiter(self._store, prefix)
        folders = [_folder_info(path.rstrip("/")) for path in answer["common_prefixes"]]
        return sorted([*folders, *map(_file_info, answer["objects"])])

    def list_below(self, folders: Sequence[str]) -> Iterable[FileInfo]:
        """Spans of names, each from its first folder to its last: a request for a thousand names, and not one for each folder."""
        if len(folders) <= self.can.at_once or not self._lists_spans:
            yield from super().list_below(folders)
            return
        ordered = sorted(f"{folder}/" for folder in folders)
        size = -(-len(ordered) // self.can.at_once)
        spans = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        files = [info for infos in self.each(self._list_span, spans) for info in infos]
        yield from files
        # A folder that was shown has files. Where none came, it is gone by now, or the store has an order of its own.
        there = {_first_folder(info.path, ordered[0]) for info in files}
        yield from super().list_below([folder[:-1] for folder in ordered if folder not in there])

    def _list_span(self, folders: Sequence[str]) -> Sequence[FileInfo]:
        """The files of some folders, which are in order, with what else lies between them left out; none where the store shows them
        in another order.
        """
        first, last, names = folders[0], folders[-1], frozenset(folders)
        parent = first[:-1].rpartition("/")[0]
        result: list[FileInfo] = []
        with self._errors(parent):
            chunks = _obstore().list(self._store, f"{parent}/" if parent else None, offset=first, chunk_size=1000)
            before = first
            for chunk in chunks:
                infos = [_file_info(meta) for meta in chunk]
                paths = [before, *(info.path for info in infos)]
                if any(path > later for path, later in pairwise(paths)):
                    return ()
                before = paths[-1]
                result += [info for info in infos if _first_folder(info.path, first) in names]
                if before > last and not before.startswith(last):
                    break
        return result

    @property
    def _lists_spans(self) -> bool:
        """Whether a listing may begin at a name, and is in the order of names: not so in Azure, nor in directory buckets of S3."""
        return not self._is_azure and not self._uri.split("/")[2].endswith("--x-s3")

    def names(self, folder: str) -> Sequence[str]:
        return [info.name for info in self.list(folder) if not info.is_folder]

    def stat(self, path: str) -> FileInfo:
        self._checked(path, may_be_root=True)
        if path:
            with suppress(FileNotFoundError), self._errors(path):
                return _file_info(_obstore().head(self._store, path))
        with self._errors(path):
            if next(
                (True for chunk in _obstore().list(self._store, f"{path}/" if path else None) for _ in chunk), False
            ):
                return _folder_info(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._full(path))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def delete(self, path: str) -> None:
        self._checked(path)
        with suppress(FileNotFoundError), self._errors(path):
            _obstore().delete(self._store, path)

    def delete_all(self, paths: Sequence[str]) -> None:
        """A request for a thousand of them."""
        for path in paths:
            self._checked(path)
        try:
            with self._errors(paths[0] if paths else ""):
                _obstore().delete(self._store, list(paths))
        except FileNotFoundError:  # some stores say so of one that is not there, and may have left others
            super().delete_all(paths)

    def delete_folder(self, path: str) -> None:
        self._checked(path)
        with self._errors(path):
            while self._delete_listed(path):
                pass

    def _delete_listed(self, folder: str) -> bool:
        """Whether another one deleted at the same time: the client then ends, and some may be left."""
        raced = False
        for chunk in _obstore().list(self._store, f"{folder}/", chunk_size=1000):
            try:
                with self._errors(folder):
                    _obstore().delete(self._store, [meta["path"] for meta in chunk])
            except FileNotFoundError:
                raced = True
        return raced

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._checked(path, may_be_root=True)

    def touch(self, path: str) -> None:
        """A file that is there is read, and put again."""
        try:
            self.create_new(path, b"")
        except FileExistsError:
            self.replace(path, self.read(path))

    def now_s(self) -> float:
        """This machine's clock where it agrees with the store's to the second, which is all that a store tells; else the store's.

        Learned by a file that is put and deleted, once an hour: of one name, so that who dies leaves it to the next one.
        """
        if self._clock is None or time.monotonic() - self._clock[0] > _CLOCK_LASTS_S:
            began, ended, stamped = self._ask_clock()
            agrees = math.floor(began - _COARSE_CLOCK_S) <= stamped <= ended
            ahead_s = 0.0 if agrees else stamped + _HALF_A_SECOND_S - began
            now = time.monotonic()
            self._clock = (now, time.time() + ahead_s - now)
        return time.monotonic() + self._clock[1]

    def _ask_clock(self) -> tuple[float, float, float]:
        """This machine's clock before and after the store set its own to a file, and that."""
        while True:
            began = time.time()
            self._put(_CLOCK, b"")
            ended = time.time()
            with (
                suppress(FileNotFoundError),
                self._errors(_CLOCK),
            ):  # deleted by another process that asked at this moment
                stamped = _obstore().head(self._store, _CLOCK)["last_modified"].timestamp()
                self.delete(_CLOCK)
                return began, ended, stamped

    def _put(self, path: str, data: bytes) -> None:
        """Put, whatever stands there; again where the store was busy with another change of the name."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._errors(path):
                    _obstore().put(self._store, path, data, use_multipart=False)
                return
            except OSError as exc:
                if exc.errno != errno.EBUSY or not tries_left:
                    raise
                _pause(tries_left)

    def _put_once(self, path: str, data: bytes, mode: Any) -> Hashable:
        """Put on a condition. An answer that was lost is made up for by a look at who stands there."""
        self._checked(path)
        put_id = uuid.uuid4().hex
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._errors(path):
                    return _tag(
                        _obstore().put(
                            self._once, path, data, mode=mode, attributes={_PUT_ID: put_id}, use_multipart=False
                        )
                    )
            except (FileExistsError, FileNotFoundError, AccessDeniedError, StorageFullError):
                if tries_left < _TRIES - 1 and (tag := self._tag_of(path, put_id)) is not None:
                    return tag
                raise
            except OSError:
                if (tag := self._tag_of(path, put_id)) is not None:
                    return tag
                if not tries_left:
                    raise
                _pause(tries_left)
        raise AssertionError("unreachable")

    def _tag_of(self, path: str, put_id: str) -> Hashable | None:
        """The tag of the file that this very put has left; None when another one stands there, or none."""
        try:
            with self._errors(path):
                response = _obstore().get(self._store, path)
                return _tag(response.meta) if response.attributes.get(_PUT_ID) == put_id else None
        except FileNotFoundError:
            return None

    def _checked(self, path: str, *, may_be_root: bool = False) -> None:
        checked_path(path, under=self._uri, may_be_root=may_be_root)
        if "\\" in path and self._is_azure:
            text = (
                "Azure takes a backslash in a name for a slash, so a table there can have no partition value with one"
            )
            raise OSError(errno.EINVAL, text, self._full(path))

    @property
    def _is_azure(self) -> bool:
        return isinstance(self._store, _obstore().store.AzureStore)

    def _full(self, path: str) -> str:
        return f"{self._uri}/{path}" if path else self._uri

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Errors of the store as those that the seam promises."""
        failed = _obstore().exceptions
        try:
            yield
        except FileNotFoundError as exc:
            if (missing := self._bucket_missing(exc)) is not None:
                raise missing from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._full(path)) from exc
        except (failed.AlreadyExistsError, failed.PreconditionError) as exc:
            if _code(exc) in _BUSY:
                text = "the store was busy with another change of this name"
                raise OSError(errno.EBUSY, text, self._full(path)) from None
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._full(path)) from exc
        except (failed.PermissionDeniedError, failed.UnauthenticatedError) as exc:
            raise _refusal(exc, self._full(path)) or denied(
                f"the store refuses it: {_reason(exc)}", self._full(path)
            ) from None
        except (failed.InvalidPathError, ValueError) as exc:
            raise OSError(errno.EINVAL, f"the store takes no such name: {_first_line(exc)}", self._full(path)) from None
        except failed.BaseError as exc:
            if _GONE in str(exc):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._full(path)) from None
            refusal = self._bucket_missing(exc) or _refusal(exc, self._full(path))
            raise refusal or OSError(errno.EIO, f"the store failed: {_reason(exc)}", self._full(path)) from None

    def _bucket_missing(self, error: BaseException) -> StorageError | None:
        if _code(error) not in _NO_BUCKET and _NO_BUCKET_SAID not in str(error):
            return None
        bucket = self._uri.partition("://")[2].partition("/")[0]
        text = f"there is no bucket {bucket!r} in the store: check its name and the store's address, or create it"
        return StorageError(errno.ENOENT, text, self._uri)


class _Upload(io.RawIOBase):
    """Bytes on their way into one object: one put if they are few, else parts that go while more are written."""

    def __init__(self, storage: ObjectStorage, path: str) -> None:
        super().__init__()
        self._storage = storage
        self._path = path
        self._small = bytearray()
        self._parts: Any = None
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")  # Arrow's buffers are of signed bytes, which obstore refuses
        size = view.nbytes
        self._written += size
        if self._written <= _PART_BYTES:
            self._small += view
            return size
        with self._storage._errors(self._path):
            if self._parts is None:
                self._parts = self._storage._parts_of_new(self._path)
                self._parts.write(bytes(self._small))
                self._small.clear()
            self._parts.write(view)
        return size

    def finish(self) -> None:
        if self._parts is None:
            self._storage.create_new(self._path, bytes(self._small))
            return
        try:
            with self._storage._errors(self._path):
                self._parts.close()
        except OSError:
            # The name is ours alone: if the file is there as a whole, only the answer was lost.
            with suppress(OSError):
                if self._storage.stat(self._path).size_bytes == self._written:
                    return
            raise

    def give_up(self) -> None:
        """What is there of it is put together and deleted: the client has no other way to get rid of parts."""
        if self._parts is None:
            return
        with suppress(Exception):
            self._parts.close()
            self._storage.delete(self._path)


@cache
def _obstore() -> ModuleType:
    import obstore  # noqa: PLC0415 - an optional extra

    return obstore


def _pause(tries_left: int) -> None:
    """Longer each time, and never the same: of two that are in each other's way one comes first."""
    time.sleep(random.uniform(0.5, 1.0) * 0.05 * 2 ** (_TRIES - tries_left))


def _tag(meta: Mapping[str, Any]) -> Hashable:
    """In stores that number the versions of an object (Google's) a condition is on that number."""
    return (meta["e_tag"], meta["version"]) if meta.get("version") else meta["e_tag"]


def _first_folder(path: str, sibling: str) -> str:
    """The folder beside `sibling` (with a slash at its end) that the file lies in or below."""
    depth = sibling.count("/")
    return "".join(f"{part}/" for part in path.split("/")[:depth])


def _file_info(meta: Mapping[str, Any]) -> FileInfo:
    # The last moment of the second that the store names: what is asked of it is whether a file is too old, or older than its instant.
    mtime_s = math.floor(meta["last_modified"].timestamp()) + _LAST_MOMENT_S
    # Azure quotes the tag in an answer's head and not in a list.
    identity = (meta["e_tag"] or "").strip('"') or (mtime_s, meta["size"])
    return FileInfo(meta["path"], meta["size"], mtime_s, is_folder=False, identity=identity)


def _folder_info(path: str) -> FileInfo:
    return FileInfo(path, 0, 0.0, is_folder=True, identity=None)


def _refusal(error: BaseException, path: str) -> OSError | None:
    """What the store's code says, where trying again is of no use before something was done about it."""
    message = str(error)
    code = _code(error)
    if code in _EXPIRED:
        return denied(f"the credentials have expired ({code}): give new ones, and try again", path)
    if code in _SKEWED:
        return denied(f"this machine's clock differs too much from the store's ({code}): set it, and try again", path)
    if code in _FULL or _NO_ROOM in message:
        return full(
            f"the store has no room left ({code or _NO_ROOM}): make room or raise the quota, and try again", path
        )
    if not code and any(status in message for status in _NOT_SAID):
        why = "check the credentials, their expiry and their permissions, and this machine's clock"
        return denied(f"the store refuses it and does not say why: {why}", path)
    return None


def _reason(error: BaseException) -> str:
    """The code of the store's answer, which says more than the client's sentence about it."""
    code = _code(error)
    if code in _DENIED:
        return f"{code}: let these credentials read and write there, or use others"
    if (unanswered := _NO_ANSWER.search(str(error))) is not None:
        return f"no answer from {unanswered[1]}, because its address is wrong or the network is down"
    return _first_line(error)


def _code(error: BaseException) -> str:
    return next(iter(_CODE.findall(str(error))), "")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]
