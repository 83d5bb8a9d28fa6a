"""Columns by their ids: what a table whose columns were renamed, dropped or moved says about the files written before that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.model.instant import InstantTime


@dataclass(frozen=True)
class Column:
    """A column, or a part of a nested one. Its id stays the same for ever; a name can come to mean another one."""

    id: int
    name: str
    parts: tuple[Column, ...] = ()
    """Fields of a struct, the element of a list, key and value of a map."""


@dataclass(frozen=True)
class ColumnHistory:
    """The columns that a query gives, and those that files of each instant have; meta columns among both."""

    table: str
    now: tuple[Column, ...]
    versions: tuple[tuple[int, tuple[Column, ...]], ...]
    """(the instant from which on columns were so, the columns), oldest first; 0: from the beginning."""
    stated: Mapping[str, int]
    """Instant -> version, where its commit says which one it wrote."""

    def at(self, instant: str) -> tuple[Column, ...] | None:
        """Columns of the files that an instant wrote; None when the history says nothing about it."""
        version = self.stated.get(instant, int(InstantTime(instant).padded))
        found = bisect_right(self.versions, version, key=lambda each: each[0])
        return self.versions[found - 1][1] if found else None
