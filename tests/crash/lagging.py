"""A storage with one listing that is out of date, as of stores that show a change later to those who list than to those who read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from hoodie.storage.base import FileInfo
from hoodie.storage.faults import Call, Fault, FaultStorage, Verb
from hoodie.storage.memory import MemorySnapshot, MemoryStorage

A = TypeVar("A")


class LaggingStorage(FaultStorage):
    """`inner`, whose `late`-th listing (from 1) shows its folder as it was before the last `behind` changes of that listing.

    Only listings lag: a file is read, asked for by its name and created on condition as it is. `history` is what the
    storage held before each change, oldest first; changes of this life are added to it.
    """

    def __init__(
        self, inner: MemoryStorage, history: list[MemorySnapshot], *, late: int | None = None, behind: int = 1
    ) -> None:
        self.history = history
        self.listings: list[str] = []
        """The folders that were listed."""
        self.lagged: str | None = None
        """What the late listing showed, if that was out of date."""
        self._late = late
        self._behind = behind
        super().__init__(inner)

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        return self._listed(folder, lambda storage: storage.list(folder, recursive=recursive))

    def names(self, folder: str) -> Sequence[str]:
        return self._listed(folder, lambda storage: storage.names(folder))

    def _count(self, verb: Verb, path: str) -> tuple[Call, Fault | None]:
        assert isinstance(self.inner, MemoryStorage)
        self.history.append(self.inner.snapshot())
        return super()._count(verb, path)

    def _listed(self, folder: str, ask: Callable[[MemoryStorage], Sequence[A]]) -> Sequence[A]:
        assert isinstance(self.inner, MemoryStorage)
        now = ask(self.inner)
        self.listings.append(folder)
        if len(self.listings) != self._late:
            return now
        past, changes, answer = self.inner.copy(), 0, now
        for snapshot in reversed(self.history):
            past.restore(snapshot)
            before: Sequence[A] = []
            with suppress(FileNotFoundError):
                before = ask(past)
            if _shown(before) != _shown(answer):
                answer, changes = before, changes + 1
                if changes == self._behind:
                    break
        if answer is not now:
            self.lagged = f"{folder}: {sorted(set(_shown(now)) ^ set(_shown(answer)))}"
        return answer


def _shown(listing: Sequence[A]) -> list[object]:
    return sorted((each.path, each.size_bytes) if isinstance(each, FileInfo) else each for each in listing)
