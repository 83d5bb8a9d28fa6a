"""Columns by their ids: what a table whose columns were renamed, dropped or moved says about the files written before that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hoodie.model.instant import InstantTime

RECORD, ARRAY, MAP = "record", "array", "map"


@dataclass(frozen=True)
class Column:
    """A column, or a part of a nested one. Its id stays the same for ever; a name can come to mean another one."""

    id: int
    name: str
    parts: tuple[Column, ...] = ()
    """Fields of a struct, the element of a list, key and value of a map."""
    kind: str = ""
    """Its type in Apache Hudi's words: `record`, `array`, `map`, or that of a value, such as `long` and `decimal(10, 2)`."""
    optional: bool = True
    doc: str | None = None


class ColumnSet(NamedTuple):
    """All columns of a table from one instant on; meta columns among them."""

    version: int
    """The instant; 0: from the beginning."""
    columns: tuple[Column, ...]
    max_id: int
    """The greatest id that was ever given away."""


@dataclass(frozen=True)
class ColumnHistory:
    """The columns that a query gives, and those that files of each instant have; meta columns among both."""

    table: str
    newest: ColumnSet
    """Of now, or of the moment that is read."""
    versions: tuple[ColumnSet, ...]
    """Oldest first."""
    versions_of: Mapping[str, int]
    """Instant -> version, where its commit says which one it wrote."""

    @property
    def now(self) -> tuple[Column, ...]:
        return self.newest.columns

    def at(self, instant: str) -> ColumnSet | None:
        """Columns of the files that an instant wrote; None when the history says nothing about it."""
        version = self.versions_of.get(instant, int(InstantTime(instant).padded))
        count = bisect_right(self.versions, version, key=lambda each: each.version)
        return self.versions[count - 1] if count else None


def all_ids(columns: Sequence[Column]) -> Iterator[int]:
    """Their ids, and those of all their parts."""
    for column in columns:
        yield column.id
        yield from all_ids(column.parts)
