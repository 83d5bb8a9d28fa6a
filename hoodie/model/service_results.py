"""What a services job did: a round over a table, and each piece of work in it. And how far a consumer has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from hoodie.model.enums import LakeFormat
from hoodie.model.results import BriefRepr, PlainInstants, format_count


@dataclass(frozen=True, repr=False)
class ExpiryResult(PlainInstants, BriefRepr):
    """Which partitions were deleted because they are older than the table keeps them, or in a dry run would be."""

    instant: str | None
    """None: a dry run, or there was nothing to delete."""
    partitions: tuple[str, ...] = ()
    """The longest untouched ones first."""
    more: int = 0
    """Partitions that have expired beyond the most that one commit may delete; the next one takes them."""
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        what = format_count(len(self.partitions), "expired partition")
        more = f"; {self.more:,} more have expired" if self.more else ""
        if self.dry_run:
            return f"partition expiry, dry run: would delete {what}{more}"
        if self.instant is None:
            return "partition expiry: nothing to delete"
        return f"{self.instant} partition expiry: {what} deleted{more}; {self.seconds:.2f} s"


@dataclass(frozen=True, repr=False)
class UpgradeResult(BriefRepr):
    """What an upgrade or a downgrade did to a table, or in a dry run would do."""

    before: int
    """The table version that it had."""
    after: int
    instants: int = 0
    """Of the active timeline, whose files got other names and contents."""
    archived: int = 0
    """Of the archived timeline, which was written anew."""
    compacted: int = 0
    """File slices with logs that were, or have to be, compacted first."""
    changes: tuple[str, ...] = ()
    """What the properties say of it otherwise than before, a sentence a property."""
    dry_run: bool = False

    def __str__(self) -> str:
        if self.before == self.after:
            return f"the table has version {self.after} already"
        mood = "would be " if self.dry_run else ""
        compacted = f" after a compaction of {format_count(self.compacted, 'file slice')}" if self.compacted else ""
        act = "upgrade" if self.after > self.before else "downgrade"
        return (
            f"{act}: {mood}from version {self.before} to {self.after}{compacted}; "
            f"{format_count(self.instants, 'instant')}, and {self.archived:,} of the archive"
        )


@dataclass(frozen=True, repr=False)
class ServiceRun(BriefRepr):
    """One piece of work of a round: a plan that was carried out, a clean, an archiving."""

    service: str
    """"recovery", "compaction", "clean", "partition expiry", "archiving"; others as the timeline calls them."""
    results: tuple[Any, ...] = ()
    """What it did, as the method of the table gives it; of a recovery, the instants that were rolled back."""
    error: str | None = None
    """Why it failed; the next round tries it again."""
    left: str | None = None
    """Why it was left to another process, or to the next round."""
    seconds: float = 0.0

    @property
    def did(self) -> bool:
        """Whether anything was changed."""
        return any(_changed(result) for result in self.results)

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.service} failed: {self.error}"
        if self.left is not None:
            return f"{self.service} was left: {self.left}"
        if self.service == RECOVERY:
            return f"rolled back {', '.join(map(str, self.results))}"
        return "; ".join(str(result) for result in self.results if _changed(result)) or f"{self.service}: nothing to do"


@dataclass(frozen=True, repr=False)
class ServiceRound(BriefRepr):
    """One round of a services job over one table."""

    uri: str
    began: str
    """When, in UTC: `2026-01-31T12:00:00Z`."""
    runs: tuple[ServiceRun, ...] = ()
    """What was due, in the order in which it was done."""
    unfinished: bool = False
    """The budget or the job ended before all services had their turn; the next round continues there."""
    seconds: float = 0.0

    @property
    def did(self) -> tuple[ServiceRun, ...]:
        """The pieces that changed something."""
        return tuple(run for run in self.runs if run.did)

    @property
    def errors(self) -> tuple[ServiceRun, ...]:
        """The pieces that failed."""
        return tuple(run for run in self.runs if run.error is not None)

    @property
    def left(self) -> tuple[ServiceRun, ...]:
        """The pieces that were left to another process, or to the next round."""
        return tuple(run for run in self.runs if run.left is not None)

    def __str__(self) -> str:
        parts = [str(run) for run in (*self.did, *self.errors)] or ["nothing to do"]
        more = "; more is left for the next round" if self.unfinished else ""
        return f"services of {self.uri}: {'; '.join(parts)}{more}; {self.seconds:.2f} s"

    def data(self) -> Mapping[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "table": self.uri,
            "began": self.began,
            "seconds": round(self.seconds, 3),
            "unfinished": self.unfinished,
            "runs": [
                {
                    "service": run.service,
                    "results": [_plain(result) for result in run.results],
                    "error": run.error,
                    "left": run.left,
                    "seconds": round(run.seconds, 3),
                }
                for run in self.runs
            ],
        }


RECOVERY = "recovery"


def _changed(result: Any) -> bool:
    """Results of services name their instant where there is one; an archiving has many."""
    if hasattr(result, "instants"):
        return bool(result.instants)
    if hasattr(result, "changed"):
        return bool(result.changed)
    return getattr(result, "instant", result) is not None


def _plain(result: Any) -> Any:
    return asdict(result) if is_dataclass(result) and not isinstance(result, type) else str(result)


# -- Named consumers as values: who reads the changes of a table, up to where it has read, and how far behind that is.


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
    """How far it has read, as `CommitResult.position`; None: it has not read anything, and begins with the first commit."""
    moved_at_ms: int
    """When its position last moved, in milliseconds since the epoch."""
    lag: ConsumerLag
    before_images: bool = False
    """Whether it reads the change feed: then cleans keep the files that it needs, for some time."""


# -- Publications in other formats.


@dataclass(frozen=True, repr=False)
class Published(BriefRepr):
    """One publication."""

    format: LakeFormat
    instant: str | None
    """The newest commit that the published state shows; None: the table has none."""
    version: int
    """Of the other format, which shows it."""
    added: int = 0
    """Base files."""
    removed: int = 0
    changed: bool = True
    """Whether anything was written: False where the published state showed it already."""

    def __str__(self) -> str:
        state = f"{self.format.value} version {self.version} shows instant {self.instant}"
        if not self.changed:
            return f"{state} already"
        return f"{state}: {format_count(self.added, 'file')} added, {self.removed:,} removed"
