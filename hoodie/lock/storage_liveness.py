"""Is the writer of an instant alive? Where no system locks files: a mark that names its process, and its heartbeat."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass

from hoodie.errors import LockError
from hoodie.lock.grant import both_clocks_s, past_s
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.lock.liveness import LIVE_FOLDER, live_path
from hoodie.lock.registry import BY_KEY, HeldLock
from hoodie.model.names import heartbeat_path
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import ConditionalStorage, Storage

log = logging.getLogger("hoodie")

_YOUNG_S = 1.0
"""A mark that is younger was not taken for dead by anybody."""


@dataclass(frozen=True)
class _Mark:
    """What the file of a mark says."""

    holder: Holder | None
    nonce: str
    abandoned: bool

    @property
    def is_certainly_dead(self) -> bool:
        return self.abandoned or self.holder is None or self.holder.is_dead()


class _Ours(HeldLock):
    """A mark of this process."""

    def __init__(self, liveness: StorageLiveness, instant: str) -> None:
        super().__init__()
        self.nonce = secrets.token_hex(8)
        self.start = both_clocks_s()
        self.key = liveness._key(instant)
        self._liveness = liveness
        self._instant = instant

    def drop(self) -> None:
        if _mine.get(self.key) is self:
            self._liveness.abandon(self._instant)
        self.may_be_held = False


class StorageLiveness:
    """`Liveness` by a file that names the process, and by the age of its heartbeat file.

    A process of this very machine that is gone is dead at once. Any other lives as long as its heartbeat is fresh: so a writer
    that was paused for longer may have been rolled back, and must not go on (`txn/heartbeat.py`).
    """

    def __init__(self, storage: Storage, options: ConcurrencyOptions = CONCURRENCY) -> None:
        self._storage = storage
        self._expiry_s = options.heartbeat_expiry_s

    @property
    def expiry_s(self) -> float:
        return self._expiry_s

    def hold(self, instant: str) -> None:
        path = live_path(instant)
        ours = _Ours(self, instant)
        ours.may_be_held = True
        if _mine.setdefault(ours.key, ours) is not ours:
            ours.may_be_held = False
            raise LockError(
                f"a living writer of this process is writing instant {instant} of {self._storage.uri}: "
                "wait until it is done"
            )
        try:
            self._put(instant, path, self._content(ours.nonce))
        except BaseException:
            self._let_go_of(instant)  # the file may be there although the answer was lost
            raise

    def _put(self, instant: str, path: str, data: bytes) -> None:
        while True:
            try:
                self._storage.create_new(path, data)
                return
            except FileExistsError:
                pass
            mark, tag = self._read(path)
            if mark is None:
                continue  # released this moment
            if self._lives(instant, mark):
                raise LockError(
                    f"instant {instant} of {self._storage.uri} is being written by a living writer, {mark.holder}: "
                    "wait until it is done"
                )
            with suppress(FileExistsError, FileNotFoundError):
                if isinstance(self._storage, ConditionalStorage):
                    self._storage.swap(path, data, tag)
                    return
                # Two who find the same mark dead could both be here. Marks of instants are made under the table lock.
                self._storage.delete(path)

    def release(self, instant: str) -> None:
        path = live_path(instant)
        ours = self._let_go_of(instant)
        self._remove(instant, path, ours)
        if ours is not None:
            _let_go.discard(ours.nonce)

    def _let_go_of(self, instant: str) -> _Ours | None:
        """Our mark. From now on it counts for nothing in this process, whether its file goes or not."""
        ours = _mine.get(self._key(instant))
        if ours is not None:
            _let_go.add(ours.nonce)
            _mine.pop(self._key(instant), None)
            ours.may_be_held = False
        return ours

    def _remove(self, instant: str, path: str, ours: _Ours | None) -> None:
        if ours is not None and self._is_recent(ours):
            self._storage.delete(path)
            return
        mark, _ = self._read(path)
        if mark is None:
            return
        if (ours is not None and ours.nonce == mark.nonce) or not self._lives(instant, mark):
            self._storage.delete(path)

    def abandon(self, instant: str) -> None:
        path = live_path(instant)
        ours = self._let_go_of(instant)
        if ours is None:
            return
        try:
            if self._is_recent(ours) or self._names(path, ours):
                self._storage.replace(path, self._content(ours.nonce, abandoned=True))
            _let_go.discard(ours.nonce)
        except OSError as exc:
            log.debug("the mark of %s in %s could not be removed, it expires: %s", instant, self._storage.uri, exc)

    def is_alive(self, instant: str) -> bool | None:
        mark, _ = self._read(live_path(instant))
        return None if mark is None else self._lives(instant, mark)

    def holder(self, instant: str) -> str | None:
        mark, _ = self._read(live_path(instant))
        return None if mark is None or mark.holder is None else str(mark.holder)

    def marks(self) -> frozenset[str]:
        return frozenset(self._storage.names(LIVE_FOLDER))

    def _lives(self, instant: str, mark: _Mark) -> bool:
        ours = _mine.get(self._key(instant))
        if ours is not None and ours.nonce == mark.nonce:
            return True
        if mark.is_certainly_dead or mark.nonce in _let_go:
            return False
        beats = [self._age_s(heartbeat_path(instant)), self._age_s(live_path(instant))]
        return any(age_s is not None and age_s < self._expiry_s for age_s in beats)

    def _age_s(self, path: str) -> float | None:
        try:
            return self._storage.now_s() - self._storage.stat(path).mtime_s
        except FileNotFoundError:
            return None

    def _is_recent(self, ours: _Ours) -> bool:
        """Too young to have been taken for dead by anybody: nobody needs to be asked whose the mark is."""
        return past_s(ours.start) < min(_YOUNG_S, self._expiry_s / 4)

    def _names(self, path: str, ours: _Ours) -> bool:
        mark, _ = self._read(path)
        return mark is not None and mark.nonce == ours.nonce

    def _read(self, path: str) -> tuple[_Mark | None, Hashable]:
        try:
            if isinstance(self._storage, ConditionalStorage):
                data, tag = self._storage.read_tagged(path)
            else:
                data, tag = self._storage.read(path), None
        except FileNotFoundError:
            return None, None
        try:
            note = json.loads(data)
            return _Mark(read_holder_note(note), str(note["nonce"]), note["abandoned"] is True), tag
        except (ValueError, KeyError, TypeError, AttributeError):
            return _Mark(None, "", abandoned=False), tag  # torn, or not ours: nobody who lives left it so

    def _content(self, nonce: str, *, abandoned: bool = False) -> bytes:
        note = {"nonce": nonce, "abandoned": abandoned}
        return json.dumps(note | this_process().note()).encode()

    def _key(self, instant: str) -> tuple[Hashable, str]:
        return self._storage.identity, live_path(instant)


_mine: dict[tuple[Hashable, str], _Ours] = {}
"""The marks that this process holds. Without a mutex, which a fork could leave locked: each step is one of the dict's own."""

_let_go: set[str] = set()
"""Nonces of marks of this process that it could not take away: the storage failed, or an interrupt came."""

BY_KEY.append(_mine)
