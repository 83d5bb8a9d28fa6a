"""A storage that fails on purpose at a chosen call: crashes, torn files and I/O errors, the same in every run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal, NamedTuple, TypeVar

import pyarrow as pa

from hoodie.storage.base import (
    AppendingStorage,
    ConditionalStorage,
    CopyingStorage,
    FileInfo,
    LogOutput,
    RenamingStorage,
    Storage,
    create_each,
)
from hoodie.storage.memory import OutputBuffer
from hoodie.storage.paths import SCRATCH_FOLDER, temporary_name

Moment = Literal["before", "torn", "after"]
Verb = Literal[
    "create_new",
    "replace",
    "swap",
    "copy_file",
    "move_new",
    "rename_folder",
    "open_output",
    "delete",
    "delete_all",
    "delete_folder",
    "mkdirs",
    "touch",
    "open_log",
    "sync_log",
]

TEARABLE: frozenset[Verb] = frozenset(
    {"create_new", "replace", "move_new", "open_output", "delete_all", "delete_folder", "sync_log"}
)
"""Verbs that a crash can leave half done; the others are one step of the file system, so torn is before."""

R = TypeVar("R")


class InjectedFault(BaseException):
    """The process died here. No `Exception`: a dead process runs no clean-up, so none may catch this."""


class Call(NamedTuple):
    """One call that changes the storage."""

    n: int
    """From 1, in the order in which the calls took effect; `open_output` counts when its block ends."""
    verb: Verb
    path: str
    """As given; `source -> target` for moves and renames."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong at the n-th call that changes the storage, and how far the call had come.

    before: nothing was done (`open_output`: its file is there, empty).
    torn: `create_new`, `replace`: a strict prefix of the bytes under a temporary name, the final name untouched;
        `open_output`: a strict prefix under the file's own, private name; `move_new`: the file under both names;
        `delete_all`, `delete_folder`: half of the files gone; `sync_log`: a strict prefix of what is synced;
        any other verb: as before.
    after: all was done, the caller never hears of it.
    """

    at: int
    moment: Moment = "before"
    error_number: int | None = None
    """None: the process dies. An `errno` value: only this call fails, with that OSError, and life goes on."""
    cut: int | None = None
    """Where a torn write stops, as the end of a slice of its bytes (0: none, -1: all but the last); None: half."""

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ValueError(f"calls are numbered from 1: a fault at {self.at} would never strike")


def crash_points(trace: Sequence[Call]) -> Iterator[Fault]:
    """Every single crash that a run with this trace could have met: two for each call, three where it can be torn."""
    for call in trace:
        yield Fault(call.n, "before")
        if call.verb in TEARABLE:
            yield Fault(call.n, "torn")
        yield Fault(call.n, "after")


class FaultStorage(Storage):
    """`inner`, with the faults of `plan`. Calls that change something are numbered from 1 and kept in `trace`.

    A fault that ends the process raises `InjectedFault`, and so does every later call, reads too, until `revive`.

    Args:
        at_once: how many calls are made at the same time; with more than one their numbers change from run to run.
    """

    def __init__(self, inner: RenamingStorage, plan: Sequence[Fault] = (), *, at_once: int = 1) -> None:
        self._inner = inner
        self.can = replace(inner.can, at_once=at_once)
        self._mutex = threading.Lock()
        self.revive(plan)

    def __repr__(self) -> str:
        return f"FaultStorage({self._inner!r})"

    def revive(self, plan: Sequence[Fault] = ()) -> None:
        """Start a new life: numbers begin at 1 again, `trace` is empty, only `plan` goes wrong."""
        faults = {fault.at: fault for fault in plan}
        if len(faults) != len(plan):
            raise ValueError(f"two faults at one call: {sorted(fault.at for fault in plan)}")
        with self._mutex:
            self._plan = faults
            self._calls: list[Call] = []
            self._died_at: Call | None = None

    @property
    def inner(self) -> RenamingStorage:
        return self._inner

    @property
    def trace(self) -> Sequence[Call]:
        """The calls of this life so far, the one that failed included."""
        with self._mutex:
            return tuple(self._calls)

    @property
    def is_dead(self) -> bool:
        return self._died_at is not None

    @property
    def uri(self) -> str:
        return self._inner.uri

    @property
    def lock_root(self) -> Storage:
        """The inner one's, dead or alive: locks belong to the system, and are not among the calls that are counted or fail."""
        return self._inner.lock_root

    @property
    def identity(self) -> Hashable:
        return self._inner.identity

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._living().read(path, offset, length)

    def open_input(self, path: str, *, mapped: bool = True) -> pa.NativeFile:
        return self._living().open_input(path, mapped=mapped)

    @contextmanager
    def open_output(self, path: str, *, within: str | None = None, durable: bool = True) -> Iterator[BinaryIO]:
        """The bytes go to `inner` when the block ends; until then the file is there and empty."""
        failure: BaseException | None = None
        try:
            more = {} if within is None else {"within": within}
            with self._living().open_output(path, durable=durable, **more) as stream:
                buffer = OutputBuffer()
                try:
                    yield buffer
                except BaseException:
                    stream.write(buffer.content())
                    raise
                call, fault = self._count("open_output", path)
                if fault is None:
                    stream.write(buffer.content())
                else:
                    failure = _failure(call, fault)
                    stream.write(_reached(buffer.content(), fault))
        except OSError:
            if failure is None:
                raise
        if failure is not None:
            raise failure

    create_all = create_each

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        more = {} if via is None else {"via": via}
        self._change(
            "create_new",
            path,
            lambda: self._inner.create_new(path, data, durable=durable, **more),
            torn=lambda fault: self._leave_temporary(via, _reached(data, fault)),
        )

    def replace(self, path: str, data: bytes) -> None:
        self._change(
            "replace",
            path,
            lambda: self._inner.replace(path, data),
            torn=lambda fault: self._leave_temporary(None, _reached(data, fault)),
        )

    def open_log(self, path: str) -> LogOutput:
        inner = self._appending(self._living())
        return _FaultLog(self, path, self._change("open_log", path, lambda: inner.open_log(path)))

    def end_log(self, path: str) -> None:
        self._appending(self._living()).end_log(path)

    def read_tagged(self, path: str) -> tuple[bytes, Hashable]:
        return self._conditional(self._living()).read_tagged(path)

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        inner = self._conditional(self._living())
        return self._change("swap", path, lambda: inner.swap(path, data, tag))

    def copy_file(self, source: str, target: str) -> None:
        inner = self._living()
        if not isinstance(inner, CopyingStorage):
            raise TypeError(f"{inner!r} cannot copy files")
        self._change("copy_file", f"{source} -> {target}", lambda: inner.copy_file(source, target))

    def move_new(self, source: str, target: str) -> None:
        self._change(
            "move_new",
            f"{source} -> {target}",
            lambda: self._inner.move_new(source, target),
            torn=lambda _: self._inner.create_new(target, self._inner.read(source)),
        )

    def move_all_new(self, moves: Sequence[tuple[str, str]]) -> None:
        """Each is a call of its own, so that a process can die between any two."""
        for source, target in moves:
            self.move_new(source, target)

    def rename_folder(self, source: str, target: str) -> None:
        self._change("rename_folder", f"{source} -> {target}", lambda: self._inner.rename_folder(source, target))

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        return self._living().list(folder, recursive=recursive)

    def names(self, folder: str) -> Sequence[str]:
        return self._living().names(folder)

    def stat(self, path: str) -> FileInfo:
        return self._living().stat(path)

    def exists(self, path: str) -> bool:
        return self._living().exists(path)

    def delete(self, path: str) -> None:
        self._change("delete", path, lambda: self._inner.delete(path))

    def delete_all(self, paths: Sequence[str]) -> None:
        self._change(
            "delete_all",
            ", ".join(paths),
            lambda: self._inner.delete_all(paths),
            torn=lambda _: self._inner.delete_all(paths[: len(paths) // 2]),
        )

    def delete_folder(self, path: str) -> None:
        self._change(
            "delete_folder",
            path,
            lambda: self._inner.delete_folder(path),
            torn=lambda _: self._delete_half(path),
        )

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        self._change("mkdirs", path, lambda: self._inner.mkdirs(path, durable=durable))

    def touch(self, path: str) -> None:
        self._change("touch", path, lambda: self._inner.touch(path))

    def now_s(self) -> float:
        return self._living().now_s()

    def _living(self) -> RenamingStorage:
        died_at = self._died_at
        if died_at is not None:
            raise InjectedFault(f"the process died at {_description(died_at)}; nothing runs until it is revived")
        return self._inner

    def _conditional(self, inner: Storage) -> ConditionalStorage:
        if not isinstance(inner, ConditionalStorage):
            raise TypeError(f"{inner!r} cannot compare and swap")
        return inner

    def _appending(self, inner: Storage) -> AppendingStorage:
        if not isinstance(inner, AppendingStorage):
            raise TypeError(f"{inner!r} cannot append to files")
        return inner

    def _count(self, verb: Verb, path: str) -> tuple[Call, Fault | None]:
        with self._mutex:
            self._living()
            call = Call(len(self._calls) + 1, verb, path)
            self._calls.append(call)
            fault = self._plan.get(call.n)
            if fault is not None and fault.error_number is None:
                self._died_at = call
            return call, fault

    def _change(self, verb: Verb, path: str, act: Callable[[], R], *, torn: Callable[[Fault], None] | None = None) -> R:
        call, fault = self._count(verb, path)
        if fault is None:
            return act()
        # Where the call itself would have failed (name taken, source gone) it left nothing, and the fault hides that.
        with suppress(OSError):
            if fault.moment == "after":
                act()
            elif fault.moment == "torn" and torn is not None:
                torn(fault)
        raise _failure(call, fault)

    def _leave_temporary(self, via: str | None, data: bytes) -> None:
        if via is not None and not self._inner.exists(via):
            return  # the writer was fenced off: `open_output` must not bring the folder back
        folder = SCRATCH_FOLDER if via is None else via
        with self._inner.open_output(f"{folder}/{temporary_name()}" if folder else temporary_name()) as stream:
            stream.write(data)

    def _delete_half(self, path: str) -> None:
        files = self._inner.list(path, recursive=True)
        for file in files[: (len(files) + 1) // 2]:
            self._inner.delete(file.path)


class _FaultLog:
    """The bytes go to `inner` with each sync."""

    def __init__(self, storage: FaultStorage, path: str, inner: LogOutput) -> None:
        self._storage = storage
        self._path = path
        self._inner = inner
        self._unsynced: list[bytes] = []

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self._storage._living()
        self._unsynced += map(bytes, parts)

    def sync(self, *, durable: bool = True) -> None:
        data, self._unsynced = b"".join(self._unsynced), []

        def send(sent: bytes) -> None:
            self._inner.write([sent])
            self._inner.sync(durable=durable)

        self._storage._change(
            "sync_log", self._path, lambda: send(data), torn=lambda fault: send(_reached(data, fault))
        )

    def close(self) -> None:
        self._inner.close()


def _reached(data: bytes, fault: Fault) -> bytes:
    """What of a write had arrived when the fault struck; of a torn one never all."""
    if fault.moment == "before":
        return b""
    if fault.moment == "after":
        return data
    return data[: len(data) // 2 if fault.cut is None else fault.cut][: max(0, len(data) - 1)]


def _failure(call: Call, fault: Fault) -> BaseException:
    if fault.error_number is None:
        return InjectedFault(f"the process died {fault.moment} {_description(call)}")
    text = f"{os.strerror(fault.error_number)} (injected {fault.moment} {_description(call)})"
    return OSError(fault.error_number, text, call.path)


def _description(call: Call) -> str:
    return f"call {call.n}, {call.verb} {call.path}"
