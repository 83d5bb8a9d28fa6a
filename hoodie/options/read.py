"""Options of a read: which query, and the instants in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.instant import InstantRange
from hoodie.options import keys
from hoodie.options.view import VIEW, ViewOptions


@dataclass(frozen=True)
class StreamReadOptions:
    """Where a stream begins that has no checkpoint, and how much of it one batch takes."""

    start: str = keys.START_OFFSET.default
    """`earliest`, `latest`, or an instant."""
    max_commits: int | None = keys.MAX_COMMITS.default
    max_bytes: int | None = keys.MAX_BYTES.default


@dataclass(frozen=True)
class ReadOptions:
    """What a query reads: the arguments of `scan` and `changes`, parsed."""

    query: QueryType = QueryType.SNAPSHOT
    begin: str | None = None
    """Incremental: exclusive. An instant time; of versions 8 and 9 a completion time, and so is the end."""
    end: str | None = None
    """Incremental: inclusive; None: the latest."""
    as_of: str | None = None
    """Inclusive."""
    changes: ChangeFormat = ChangeFormat.LATEST_STATE
    """Incremental: what is given of a change."""
    full_scan_fallback: bool = False
    """Incremental: read a range that was archived or cleaned from the whole table instead of failing."""
    where: Any = None
    """Text, a list of conditions or a pyarrow expression, as the door was given it; `read/where.py` knows them."""
    columns: tuple[str, ...] | None = None
    """None: all."""
    stream: StreamReadOptions = field(default_factory=StreamReadOptions)
    view: ViewOptions = VIEW
    ignored: tuple[str, ...] = ()
    """Options of Apache Hudi that are not needed here, as the user spelled them; the door warns once of all."""

    @property
    def range(self) -> InstantRange:
        """The instants (begin, end] of an incremental query."""
        return InstantRange(self.begin, self.end)
