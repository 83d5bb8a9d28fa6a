"""Named consumers as values: who reads the changes of a table, up to where it has read, and how far behind that is."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.results import PlainInstants, format_count


@dataclass(frozen=True)
class ConsumerLag:
    """How far a consumer is behind the newest commit of its table."""

    commits: int
    """Completed writes after its place. Compactions and clusterings change no row and do not count, unless they were archived."""
    seconds: float
    """The age of the oldest of them; 0 where there is none."""

    def __str__(self) -> str:
        return f"{format_count(self.commits, 'commit')}, {self.seconds:,.0f} s" if self.commits else "none"


@dataclass(frozen=True)
class ConsumerInfo(PlainInstants):
    """A named consumer of a table, as `consumers()` lists it."""

    name: str
    position: str | None
    """Up to where it has read, as `CommitResult.position`; None: it has not read anything, and begins with the first commit."""
    moved_at_ms: int
    """When its place was last moved, in milliseconds since the epoch."""
    lag: ConsumerLag
    before_images: bool = False
    """Whether it reads the change feed: then cleans keep what it needs, for some time."""
