"""What happened to one table, as plain values: what the writers noted, what the table says, and what readers saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    UPSERT = "upsert"
    DELETE = "delete"


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    """It ended in an error that says that nothing was written."""
    UNKNOWN = "unknown"
    """The writer died, or was told that nobody knows."""


@dataclass(frozen=True)
class Op:
    """One write, as its writer noted it down: before it, and after it if the writer lived so long."""

    id: str
    kind: Kind
    rows: Mapping[str, int]
    """Key -> ordering value; deletes have none that counts."""
    began_s: float
    ended_s: float | None = None
    outcome: Outcome = Outcome.UNKNOWN
    instant: str | None = None
    """Of one that is ok; None: there was nothing to do."""


class Commit(NamedTuple):
    """A completed commit of the table's timeline. Its metadata has the id of the op; a compaction has none."""

    instant: str
    op: str | None


class Row(NamedTuple):
    """A stored row: each version of a key is told by the op that wrote it."""

    key: str
    op: str
    commit: str


class Change(NamedTuple):
    """A line of the change feed: i, u or d, and the ops of the rows before and after."""

    instant: str
    what: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Snapshot:
    """All rows as of an instant, read when everything was over."""

    instant: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Read:
    """All rows as they were while others wrote."""

    began_s: float
    ended_s: float
    visible: frozenset[str]
    """The completed instants that it counted."""
    rows: Sequence[Row]


@dataclass(frozen=True)
class Pull:
    """The rows or the changes that were committed in (since, until]."""

    since: str | None
    until: str | None
    rows: Sequence[Row] = ()
    changes: Sequence[Change] = ()


@dataclass
class History:
    by_ordering: bool
    """Of two rows with one key the greater ordering value wins; else the later commit."""
    pulls_late_rows: bool
    """A pull may have a row that lost against an older one (merge-on-read with an ordering column)."""
    ops: Sequence[Op] = ()
    commits: Sequence[Commit] = ()
    snapshots: Sequence[Snapshot] = ()
    reads: Sequence[Read] = ()
    pulls: Sequence[Pull] = ()
    """Each goes on where the one before it ended; the first begins at the beginning."""
    feed: Sequence[Pull] = ()
    """The same for the change feed."""
    leftovers: Sequence[str] = ()
    """Files that no recovery took away, and no commit counts."""
    complaints: Sequence[str] = field(default_factory=list)
    """Errors of those who were not disturbed: they must have none."""
