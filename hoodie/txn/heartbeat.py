"""Signs of life of a pending instant: a mark that ends with its process, and Hudi's heartbeat file for other writers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from queue import Empty, SimpleQueue
from typing import Concatenate, NamedTuple, Protocol

from hoodie.errors import CommitConflictError
from hoodie.lock.base import Liveness
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.lock.registry import let_go_after_error
from hoodie.model.instant import Instant
from hoodie.model.names import heartbeat_path
from hoodie.model.payloads import CommitMetadata
from hoodie.options.concurrency import EXPIRY_MARGIN_S, ConcurrencyOptions
from hoodie.storage.base import Storage
from hoodie.storage.parallel import together
from hoodie.storage.refusals import P, R, S, hoodie_errors
from hoodie.timeline.pending import locked_otherwise, written_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext


class Life(StrEnum):
    ALIVE = "alive"
    """A process of ours is working on it."""
    DEAD = "dead"
    FOREIGN_ALIVE = "foreign"
    """Not ours, and its heartbeat is fresh."""


def life_of(instant_time: str, context: TableContext) -> Life:
    """Whether anybody still works on a pending instant.

    For our own writers the marks answer. Others count as alive while their heartbeat file is fresh; without one (Hudi's
    single-writer default makes none) there is nothing to wait for.
    """
    ours = context.liveness.is_alive(instant_time)
    if ours is not None:
        return Life.ALIVE if ours else Life.DEAD
    try:
        beat = context.storage.stat(heartbeat_path(instant_time))
    except FileNotFoundError:
        return Life.DEAD
    is_fresh = context.storage.now_s() - beat.mtime_s < context.concurrency.heartbeat_expiry_s
    return Life.FOREIGN_ALIVE if is_fresh else Life.DEAD


def writers_beside(
    timeline: Timeline, context: TableContext, *, beside_strangers: bool = False
) -> dict[Instant, CommitMetadata]:
    """The pending writes of living writers, with what these announced. Ask under the lock.

    No instant is taken after that of one that our lock does not exclude. One of ours may have been told of another lock.
    Apache Hudi reads the timeline some time after it has taken its instant. A commit in between is no conflict to it: it
    builds on our file, and names its own by its older instant. On tables of version 6 the file with the newer name
    counts, and the rows of the other commit would be gone. `beside_strangers`: where completion decides, and all append, they may
    be there.

    Raises:
        CommitConflictError: there is such a writer.
    """
    alive = []
    for instant in timeline.pending_writes:
        match life_of(instant.time, context):
            case Life.FOREIGN_ALIVE if not beside_strangers:
                raise CommitConflictError(written_by_others(instant, table=context.storage.uri))
            case Life.ALIVE:
                alive.append(instant)
            case Life.DEAD | Life.FOREIGN_ALIVE:
                continue
    kind = context.coordination.kind
    plans = context.storage.each(context.active.read_inflight, alive)
    for instant, announced in zip(alive, plans, strict=True):
        theirs = writer_of(announced)
        if kind and theirs.lock not in ("", kind):
            raise CommitConflictError(
                locked_otherwise(instant, theirs.lock, kind, table=context.storage.uri, by=str(theirs.who))
            )
    return {i: announced for i, announced in zip(alive, plans, strict=True) if announced is not None}


def held_by_this_thread(instant_time: str) -> bool:
    """Whether the writer of a pending instant is the calling thread itself."""
    me = threading.get_ident()
    return any(heartbeat._time == instant_time and heartbeat._owner == me for heartbeat in frozenset(_beating))


class Alive(Protocol):
    """What shows that a writer lives: an open table, or what else has one writer."""

    @property
    def storage(self) -> Storage: ...

    @property
    def liveness(self) -> Liveness: ...

    @property
    def concurrency(self) -> ConcurrencyOptions: ...


class Heartbeat:
    """Holds an instant alive from `start` to `stop` (or `abandon`, when the process is to look dead)."""

    def __init__(self, instant_time: str, context: Alive) -> None:
        self._time = instant_time
        self._storage = context.storage
        self._liveness = context.liveness
        self._interval_s = context.concurrency.heartbeat_interval_s
        self._owner = threading.get_ident()
        self._stopped: SimpleQueue[None] = SimpleQueue()
        """No `Event`: an interrupt while it is set can leave its lock taken."""
        self._thread: threading.Thread | None = None
        self._beaten = _now()
        """Both clocks when the last beat that got through was begun."""
        self._is_lost = False

    def hold(self) -> None:
        """The mark, by the thread that writes; before the instant is on the timeline."""
        self._beaten = _now()
        self._liveness.hold(self._time)

    def start(self) -> None:
        """The heartbeat file, and its beats from now on."""
        self._storage.touch(heartbeat_path(self._time))
        self._thread = threading.Thread(target=self._beat, name=f"hoodie-heartbeat-{self._time}", daemon=True)
        _beating.add(self)
        self._thread.start()

    def is_lost(self) -> bool:
        """Whether no beat got through for so long that others may have taken this writer for dead; once so, for good."""
        expiry_s = self._liveness.expiry_s
        if expiry_s is not None and _past_s(self._beaten) > max(expiry_s - EXPIRY_MARGIN_S, expiry_s / 2):
            self._is_lost = True
        return self._is_lost

    def stop(self, *, clear: Callable[[Sequence[str]], None] | None = None) -> None:
        """The instant is decided: no trace remains. `clear` removes the others with the files that it is given; while one is left,
        the mark stands for it, or what `Publisher.remains` names.
        """
        self._end()
        beat = heartbeat_path(self._time)
        remove = partial(self._storage.delete, beat) if clear is None else partial(clear, [beat])
        together(self._storage, remove, partial(self._liveness.release, self._time))
        _beating.discard(self)

    def abandon(self) -> None:
        """Stop beating and leave the traces: whoever comes next sees a dead writer and rolls it back."""
        try:
            self._end()
        finally:
            self._liveness.abandon(self._time)
            _beating.discard(self)

    def _end(self) -> None:
        self._stopped.put(None)
        if self._thread is not None and self._thread.is_alive():  # it may never have started
            self._thread.join()

    def _beat(self) -> None:
        while not self._stops_within(self._interval_s):
            start = _now()
            if self.is_lost():
                return  # a beat now would make a writer look alive that will not commit
            try:
                self._storage.touch(heartbeat_path(self._time))
            except OSError:
                continue  # a missed beat; the next one may get through
            self._beaten = start

    def _stops_within(self, seconds: float) -> bool:
        try:
            self._stopped.get(timeout=seconds)
        except Empty:
            return False
        return True


def _now() -> tuple[float, float]:
    """The wall clock may be set, and the other may stand still while the machine sleeps."""
    return time.time(), time.monotonic()


def _past_s(start: tuple[float, float]) -> float:
    return max(now - then for now, then in zip(_now(), start, strict=True))


_beating: set[Heartbeat] = set()


@contextmanager
def undisturbed() -> Iterator[None]:
    """An operation on a table: whatever ends it, at whatever moment, its thread holds no lock and no instant afterwards.

    The instant is then pending and its writer dead, as after a crash: the next write rolls it back.
    """
    before = frozenset(_beating)
    with let_go_after_error():
        try:
            yield
        except BaseException:
            me = threading.get_ident()
            for heartbeat in frozenset(_beating) - before:
                if heartbeat._owner == me:
                    heartbeat.abandon()
            raise


def changes_table(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For a method of an open table that changes it: `undisturbed`, and what the system refuses is said in hoodie's errors."""
    return undisturbed()(hoodie_errors(method))


# -- Who writes an instant, as its inflight and its completed file say it: for errors about two writers, and to see whether both
# agree by the same lock.

WRITER = "hoodie.python.writer"
"""Key in the extra metadata: a JSON object with host, process id, when the write began, and the kind of its lock."""
_LOCK = "lock"


class WriterNote(NamedTuple):
    who: Holder | None
    lock: str
    """The kind of lock; empty: not known."""


def format_writer(lock: str) -> dict[str, str]:
    """The entry for a write that this process begins."""
    holder = this_process()
    # What tells a process from a later one with its number is of use to this machine only, and stands in its mark.
    note = {"host": holder.host, "pid": holder.pid, "since": holder.since, _LOCK: lock}
    return {WRITER: json.dumps(note)}


def writer_of(metadata: CommitMetadata | None) -> WriterNote:
    """What the metadata say; nothing where another program wrote them, or where the entry is damaged."""
    try:
        note = json.loads(metadata.extra[WRITER]) if metadata is not None else None
    except (KeyError, ValueError):
        note = None
    if not isinstance(note, Mapping):
        return WriterNote(None, "")
    lock = note.get(_LOCK)
    return WriterNote(read_holder_note(note), lock if isinstance(lock, str) else "")
