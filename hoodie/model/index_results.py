"""Information about an index of a table, and whether it agrees with the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hoodie.model.results import BriefRepr, PlainInstants, format_count, format_size

INDEX_WAYS = "hoodie.python.index"
"""Key in a commit's extra metadata: by which ways keys were found, and in how many files each, as JSON."""


def format_ways(ways: Mapping[str, int]) -> dict[str, str]:
    """The entry of a commit; none where nothing was looked up."""
    return {INDEX_WAYS: json.dumps(dict(ways))} if ways else {}


def parse_ways(extra: Mapping[str, str]) -> dict[str, int] | None:
    """What the entry of a commit says; None where it has none, or a damaged one."""
    try:
        return {str(way): int(count) for way, count in json.loads(extra[INDEX_WAYS]).items()}
    except (KeyError, ValueError, AttributeError, TypeError):
        return None


class IndexState(StrEnum):
    READY = "ready"
    BUILDING = "building"
    DAMAGED = "damaged"
    """It is behind the table, or its files are damaged: nobody uses it, and it is built anew."""
    OUTSIDE = "outside"
    """It is kept outside of the table."""


@dataclass(frozen=True, repr=False)
class IndexInfo(PlainInstants, BriefRepr):
    """One index of a table."""

    name: str
    """As `build_index` and `drop_index` take it. In capitals: what finds the keys of an upsert, as `hoodie.index.type` names it."""
    state: IndexState
    why: str | None = None
    """Why it is damaged, or who builds it."""
    instant: str | None = None
    """The last instant of the table that it shows."""
    records: int | None = None
    """In it; those that newer ones replace count, too, until the next compaction of the metadata table."""
    covered: int | None = None
    """Of `files` those that it knows."""
    files: int | None = None
    """Newest base files that were looked for in it: all, or of many some."""
    size_bytes: int | None = None
    file_groups: int | None = None
    logs: int | None = None
    """Log files that were not compacted yet; each is read by a look-up."""
    columns: tuple[str, ...] = ()
    """Columns whose bounds or values are in it."""
    kind: str | None = None
    """Of an expression index: column_stats or bloom_filters."""
    expression: str | None = None
    """Of that: what is made of its column."""
    false_positives: float | None = None
    """Share of keys that bloom filters take for stored ones and which are not, by the bits that are set."""
    last_write: Mapping[str, int] = field(default_factory=dict)
    """How the last upsert or delete found its keys -> in how many files. Of the index of keys alone."""

    def __str__(self) -> str:
        parts = [self.state.value + (f": {self.why}" if self.why else "")]
        if self.file_groups is not None:
            logs = f", {format_count(self.logs, 'log')}" if self.logs else ""
            parts.append(f"{format_count(self.file_groups, 'file group')}{logs}, {format_size(self.size_bytes or 0)}")
        if self.records is not None:
            parts.append(format_count(self.records, "record"))
        if self.files is not None and self.covered is not None:
            parts.append(f"{self.covered:,} of {format_count(self.files, 'file')}")
        if self.expression:
            parts.append(f"{self.kind} of {self.expression}")
        elif self.columns:
            parts.append(f"columns {', '.join(self.columns)}")
        if self.false_positives is not None:
            parts.append(f"false positives {self.false_positives:.1e}")
        if self.instant is not None:
            parts.append(f"up to {self.instant}")
        if self.last_write:
            parts.append("last write: " + ", ".join(f"{count} {way}" for way, count in self.last_write.items()))
        return f"{self.name}: {'; '.join(parts)}"


@dataclass(frozen=True, repr=False)
class IndexCheck(BriefRepr):
    """Whether an index agrees with the files of the table; true if it does."""

    name: str
    checked: int
    """Files, or record keys, that were looked up in it."""
    missing: int = 0
    """Those that it lacks. Missing files are no fault: queries read them."""
    surplus: int = 0
    """Entries of keys that are not stored. They lead to file groups that do not hold the key, which costs time only."""
    problems: tuple[str, ...] = ()
    """Where it differs from the files; the first few."""

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        verdict = "; ".join(self.problems) or "agrees with the files"
        missing = f", {self.missing:,} of them not known" if self.missing else ""
        surplus = f", {format_count(self.surplus, 'record')} of keys that are gone" if self.surplus else ""
        return f"{self.name}: {verdict}; {self.checked:,} looked up{missing}{surplus}"
