"""What a write reports to its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hoodie.model.enums import MOVES_ROWS, WriteOperation
from hoodie.model.html import html_pairs, html_rows
from hoodie.model.instant import InstantTime
from hoodie.model.payloads import WriteStat

_UNITS = ("B", "KB", "MB", "GB", "TB")


def format_size(size_bytes: int) -> str:
    """Bytes in the largest decimal unit that leaves at least one whole: `1.5 MB`."""
    value = float(size_bytes)
    for unit in _UNITS[:-1]:
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} {_UNITS[-1]}"


def format_count(count: int, noun: str) -> str:
    """`1 base file`, `3 base files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _plain(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, InstantTime) else value


class PlainInstants:
    """A result whose instants are plain texts: users hand them on to programs that go by the exact type, such as Spark and YAML."""

    def __post_init__(self) -> None:
        vars(self).update({name: _plain(value) for name, value in vars(self).items()})


class BriefRepr:
    """A result that consoles show as its text, behind the name of its class."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


@dataclass(frozen=True, repr=False)
class CommitResult(PlainInstants, BriefRepr):
    """What one write or compaction did. As `as_of`, `since` or `until` it stands for its commit."""

    instant: str | None
    """None when there was nothing to do."""
    operation: WriteOperation
    inserted: int = 0
    updated: int = 0
    """Rows written for existing keys. Merge-on-read appends late rows too; readers drop those that lose.
    With the bucket index nothing is looked up: rows that went to the log of a bucket count here, new keys among them."""
    deleted: int = 0
    """With the bucket index on merge-on-read: deletes written, also of keys that may not exist."""
    files: int = 0
    """Files written."""
    replaced: int = 0
    """File groups that this write replaced; their rows are not counted as deleted, because they are not read."""
    bytes_written: int = 0
    index: Mapping[str, int] = field(default_factory=dict)
    """How many base files each way of the look-up decided: "range", "bloom", "bloom+keys", "keys"; file groups
    that the key's hash chose: "bucket"."""
    opened: int = 0
    """Stored files that were opened to look keys up; those that the index ruled out by their ranges were not."""
    seconds: float = 0.0
    engine: str = ""
    """Where the rows were worked on: "embedded" or "spark"."""
    jobs: int = 0
    """Jobs that were run on Spark; 0 without Spark."""
    completed: str | None = None
    """When it was completed; None on version 6, which does not say."""

    @property
    def position(self) -> str | None:
        """Where the commit lies for `changes`: its completion time where there is one (versions 8 and 9), else its instant.

        `since` and `until` take the result itself, too.
        """
        return self.completed or self.instant

    @classmethod
    def of(
        cls,
        instant: str,
        operation: WriteOperation,
        stats: Iterable[WriteStat],
        *,
        replaced: Mapping[str, Sequence[str]] | None = None,
        completed: str | None = None,
    ) -> CommitResult:
        """The sums of a commit's write stats, as its metadata has them. `replaced`: file groups by partition path."""
        counted = list(stats)
        changes = counted if operation not in MOVES_ROWS else []
        return cls(
            instant=instant,
            operation=operation,
            inserted=sum(s.num_inserts for s in changes),
            updated=sum(s.num_updates for s in changes),
            deleted=sum(s.num_deletes for s in changes),
            files=len(counted),
            replaced=sum(len(file_ids) for file_ids in (replaced or {}).values()),
            bytes_written=sum(s.total_bytes for s in counted),
            completed=completed,
        )

    def __str__(self) -> str:
        if self.instant is None:
            return f"{self.operation.value.lower()}: nothing to do"
        replaced = f", {format_count(self.replaced, 'file group')} replaced" if self.replaced else ""
        took = f", {self.seconds:.2f} s" if self.seconds else ""  # the timeline does not say it
        return (
            f"{self.instant} {self.operation.value.lower()}: {self.inserted:,} inserted, {self.updated:,} updated, "
            f"{self.deleted:,} deleted{replaced}; {format_count(self.files, 'file')}, {format_size(self.bytes_written)}{took}"
            f"{self._how()}"
        )

    def _repr_html_(self) -> str:
        pairs: list[tuple[str, object]] = [
            ("inserted", self.inserted),
            ("updated", self.updated),
            ("deleted", self.deleted),
            ("files written", self.files),
            ("bytes written", self.bytes_written),
        ]
        if self.replaced:
            pairs.append(("file groups replaced", self.replaced))
        what = self.operation.value.lower()
        if self.instant is None:
            return html_pairs(f"{what}: nothing to do", ())
        return html_pairs(f"{what} {self.instant}", pairs)

    def _how(self) -> str:
        """By what means, as far as it is known: not of commits that are read from the timeline."""
        ways = ", ".join(f"{count} {way}" for way, count in self.index.items())
        parts = [
            f"index: {ways}" if ways else "",
            f"{format_count(self.opened, 'file')} opened" if self.opened else "",
            f"{self.engine}, {self.jobs} jobs" if self.jobs else self.engine,
        ]
        return "".join(f"; {each}" for each in parts if each)


@dataclass(frozen=True, repr=False)
class CleanResult(PlainInstants, BriefRepr):
    """What a clean deleted, or in a dry run would delete."""

    instant: str | None
    """None: a dry run, or there was nothing to delete."""
    files: int = 0
    bytes_freed: int = 0
    earliest_retained: str | None = None
    """The earliest instant at which the table can be read after this clean; None: nothing was committed yet."""
    partitions: int = 0
    """In which files were deleted."""
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        what = f"{format_count(self.files, 'file')}, {format_size(self.bytes_freed)}"
        since = f"; readable from {self.earliest_retained} on" if self.earliest_retained else ""
        if self.dry_run:
            return f"clean, dry run: would delete {what}{since}"
        if self.instant is None:
            return f"clean: nothing to delete{since}"
        return f"{self.instant} clean: {what} deleted{since}; {self.seconds:.2f} s"

    def _repr_html_(self) -> str:
        return html_pairs(
            "clean, dry run" if self.dry_run else f"clean {self.instant or ''}".rstrip(),
            [
                ("files", self.files),
                ("bytes freed", self.bytes_freed),
                ("partitions", self.partitions),
                ("readable from", self.earliest_retained or ""),
            ],
        )


@dataclass(frozen=True, repr=False)
class ArchiveResult(PlainInstants, BriefRepr):
    """Which instants left the active timeline, or in a dry run would leave it."""

    instants: tuple[str, ...] = ()
    """Times of commits, cleans and rollbacks, oldest first."""
    earliest: str | None = None
    """The first commit on the active timeline now; None: there is none."""
    held_by: str | None = None
    """The reason why more commits stay than the options ask for; None: there is none."""
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        hold = f"; held back by {self.held_by}" if self.held_by else ""
        what = format_count(len(self.instants), "instant")
        if self.dry_run:
            return f"archive, dry run: would move {what}{hold}"
        if not self.instants:
            return f"archive: nothing to move{hold}"
        return f"archive: {what} moved, up to {self.instants[-1]}{hold}; {self.seconds:.2f} s"

    def _repr_html_(self) -> str:
        return html_pairs(
            "archive, dry run" if self.dry_run else "archive",
            [
                ("instants", len(self.instants)),
                ("first commit on the timeline", self.earliest or ""),
                ("held back by", self.held_by or ""),
            ],
        )


@dataclass(frozen=True, repr=False)
class EraseResult(PlainInstants, BriefRepr):
    """What an erasure did. It is true where nothing of the deleted rows is left in any file."""

    instant: str | None
    """Of the delete; None: there was no row with these keys."""
    deleted: int
    files: int
    """Older versions of files that are gone."""
    archived: int
    """Instants that left the active timeline."""
    remaining: tuple[str, ...] = ()
    """The places that may still hold deleted rows, with the reasons."""

    def __bool__(self) -> bool:
        return not self.remaining

    def __str__(self) -> str:
        counts = (
            (self.deleted, "row", "deleted"),
            (self.files, "file", "cleaned"),
            (self.archived, "instant", "archived"),
        )
        parts = ", ".join(f"{format_count(count, noun)} {what}" for count, noun, what in counts)
        remains = "".join(f"\n  remains: {each}" for each in self.remaining)
        return f"{self.instant or ''} erase: {parts}{remains}".lstrip()


@dataclass(frozen=True, repr=False)
class RestoreResult(PlainInstants, BriefRepr):
    """What a restore, or the rollback of a commit, undid; in a dry run, what it would undo."""

    instant: str | None
    """Of the restore or rollback. None: a dry run, or there was nothing to undo."""
    restored_to: str | None = None
    """The commit whose state the table has now; None: there is none before the undone one."""
    undone: tuple[str, ...] = ()
    """Instants that are gone, newest first; compactions among them."""
    inserted: int = 0
    """Rows that the undone commits had inserted, and so on; a row that two of them changed counts twice."""
    updated: int = 0
    deleted: int = 0
    files: int = 0
    """Files deleted."""
    bytes_freed: int = 0
    logs: int = 0
    """Log files that stay, but whose undone rows no longer count."""
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        to = f"back to {self.restored_to}" if self.restored_to else "back to before the first commit"
        rows = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        logs = f", {format_count(self.logs, 'log file')} rolled back" if self.logs else ""
        files = f"{format_count(self.files, 'file')}, {format_size(self.bytes_freed)}"
        losses = f"{format_count(len(self.undone), 'instant')} ({rows}); {files}"
        if not self.undone:
            return f"{to}: nothing to undo"
        if self.dry_run:
            return f"{to}, dry run: would undo {losses}{logs}"
        return f"{self.instant} {to}: undone {losses}{logs}; {self.seconds:.2f} s"

    def _repr_html_(self) -> str:
        return html_pairs(
            "what would be undone" if self.dry_run else f"undone by {self.instant or 'nobody'}",
            [
                ("back to", self.restored_to or ""),
                ("instants", len(self.undone)),
                ("rows inserted", self.inserted),
                ("rows updated", self.updated),
                ("rows deleted", self.deleted),
                ("files", self.files),
                ("bytes freed", self.bytes_freed),
                ("logs rolled back", self.logs),
            ],
        )


@dataclass(frozen=True)
class Savepoint(PlainInstants):
    """A commit whose state is kept. As `as_of`, its `instant` reads that state."""

    instant: str
    comment: str
    user: str
    """Who made it; empty where nobody is named."""
    at_ms: int
    """When it was made, in milliseconds since the epoch."""
    files: int
    """So many files are kept from cleans."""


SHOWN = 20
"""Commits of a history that its texts show."""


class History(list[CommitResult]):
    """What commits did, oldest first: a list that a prompt and a notebook show line by line."""

    def __repr__(self) -> str:
        newest, more = self._newest()
        return "\n".join([f"<History of {format_count(len(self), 'commit')}>", *more, *map(str, newest)])

    def _repr_html_(self) -> str:
        newest, more = self._newest()
        header = ("instant", "operation", "inserted", "updated", "deleted", "files", "bytes")
        rows = [
            (r.instant, r.operation.value.lower(), r.inserted, r.updated, r.deleted, r.files, r.bytes_written)
            for r in newest
        ]
        return html_rows(f"{format_count(len(self), 'commit')}{'; ' + more[0] if more else ''}", header, rows)

    def _newest(self) -> tuple[list[CommitResult], list[str]]:
        hidden = len(self) - SHOWN
        return self[-SHOWN:], [f"({hidden:,} older not shown)"] if hidden > 0 else []
