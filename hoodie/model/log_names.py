"""The log files that a commit names for a slice. Each commit names again all that the one before it named: here they share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload


class LogNames(Sequence[str]):
    """Names in order: those of an earlier commit, then more. What it holds itself are the latter."""

    __slots__ = ("_before", "_count", "added", "text_bytes")

    def __init__(self, before: LogNames | None, added: tuple[str, ...], text_bytes: int) -> None:
        """`text_bytes`: what all of them take in the commit's file."""
        self._before = before
        self.added = added
        self.text_bytes = text_bytes
        self._count = len(added) + (len(before) if before is not None else 0)

    def since(self, earlier: Sequence[str]) -> Sequence[str]:
        """The names behind those of `earlier`, where this goes on from that; else all."""
        parts: list[tuple[str, ...]] = []
        part: LogNames | None = self
        while part is not None and part is not earlier:
            parts.append(part.added)
            part = part._before
        return [name for names in reversed(parts) for name in names]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter(self.since(()))

    def __contains__(self, name: object) -> bool:
        part: LogNames | None = self
        while part is not None:
            if name in part.added:
                return True
            part = part._before
        return False

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return self.since(())[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return LogNames, (None, tuple(self), self.text_bytes)


def names_since(now: Sequence[str], earlier: Sequence[str]) -> Sequence[str]:
    """The names that came to those of an earlier commit; all of them where it does not begin with these."""
    if isinstance(now, LogNames):
        return now.since(earlier)
    return now[len(earlier) :] if list(now[: len(earlier)]) == list(earlier) else now
