"""What a check of a table looks at, each part found once, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.model.findings import Level, RepairKind, RepairResult
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.options.write import WriteOptions
from hoodie.repair.repairs import kinds_of, repair
from hoodie.repair.stray_files import Evidence, data_files_of, lost_completions
from hoodie.view.context import Snapshot, TableContext


class Hit(NamedTuple):
    """One thing that a check found."""

    what: str
    """A sentence for people."""
    path: str | None = None
    """Of the file, relative to the table."""
    subject: str = ""
    """What the check's action is about: an instant, or arguments of its command."""


@dataclass(frozen=True)
class Inspection:
    """One look at a table; nothing is changed by it."""

    context: TableContext
    options: WriteOptions

    @once
    def snapshot(self) -> Snapshot:
        return self.context.snapshot_as_found()

    @once
    def repairs(self) -> RepairResult:
        """What `repair` would do.

        Raises:
            CorruptFileError: metadata of an instant do not decode, so that nothing can be told of files.
        """
        return repair(self.context, kinds_of(None), dry_run=True)

    @property
    def has_damaged_index(self) -> bool:
        """Whether a bootstrap's index is damaged: then nothing can be told of the rows of its files."""
        return any(each.kind is RepairKind.BOOTSTRAP_INDEX for each in (*self.repairs.repairs, *self.repairs.left))

    @once
    def unreadable(self) -> Mapping[str, HoodieError]:
        """Instant -> what is wrong with the metadata of that completed write."""
        result: dict[str, HoodieError] = {}
        for instant in self.snapshot.timeline.commits:
            try:
                self.context.active.check_commit(instant)
            except HoodieError as exc:
                result[instant.time] = exc
        return result or self._copied_commits()

    def _copied_commits(self) -> dict[str, HoodieError]:
        """Commits that say what another one says, and name no file of their own instant."""
        active, evidence = self.context.active, Evidence(self.context, self.snapshot)
        alike: dict[frozenset[tuple[str, int]], list[Instant]] = {}
        for instant in self.snapshot.timeline.commits:
            files = frozenset((stat.path, stat.file_size_bytes) for stat in active.read_commit(instant).stats())
            alike.setdefault(files, []).append(instant)
        result: dict[str, HoodieError] = {}
        for files, those in alike.items():
            for instant in those if files and len(those) > 1 else ():
                other = next(each for each in those if each != instant)
                if not any(evidence.is_of(path, instant.time) for path, _ in files):
                    result[instant.time] = CorruptFileError(
                        f"{active.path(instant)} says what {active.path(other)} says, and names no file of its own instant"
                    )
        return result

    @once
    def lost_timeline(self) -> str | None:
        """A data file of a table whose timeline has no instant."""
        return None if self.snapshot.timeline.instants else self.context.file_without_timeline()

    @once
    def wrong_schema(self) -> tuple[Instant, HoodieError] | None:
        """The commit that states the table's schema, and what is wrong with that."""
        try:
            _ = self.snapshot.schema
        except CorruptFileError as exc:
            commits = () if self.unreadable else self.snapshot.timeline.commits[::-1]
            stating = (each for each in commits if self.context.active.read_commit(each).schema_json)
            return next(((each, exc) for each in stating), None)
        return None

    @once
    def lost_completions(self) -> Mapping[Instant, str]:
        """Pending writes whose completed file is lost, each with one of its data files."""
        return dict(lost_completions(self.context, self.snapshot.timeline))

    @once
    def files_without_instant(self) -> Mapping[InstantTime, Sequence[str]]:
        """Data files of instants that are on no timeline, and that nothing has undone, by their instant."""
        if self.unreadable or self.lost_timeline:
            return {}
        files = self.context.listing.all_files().files
        # The timeline afterwards: a writer that has begun meanwhile is on it before its files are there.
        return Evidence(self.context, self.context.snapshot_as_found()).files_without_instant(data_files_of(files))

    @property
    def rows(self) -> object | None:
        """What reading all rows gave, once they were read."""
        return self.__dict__.get("_rows")

    def keep_rows(self, rows: object) -> None:
        self.__dict__["_rows"] = rows

    def plain(self, error: HoodieError) -> str:
        """An error without the table's own path in it."""
        uri = self.context.storage.uri
        text = (
            str(error).partition(": `hoodie doctor")[0].partition("; `hoodie doctor")[0]
        )  # who reads this has asked it
        return text.replace(f" of table {uri}", "").replace(f"{uri.rstrip('/')}/", "")


@dataclass(frozen=True)
class Check:
    """One thing that is checked. What mends it is the same for all that it finds."""

    name: str
    level: Level
    finds: str
    """For people: what is wrong then."""
    action: str
    """What mends it; `{table}`, `{path}` and `{subject}` stand for those of a hit, ready for a shell. Empty: nothing is to do."""
    look: Callable[[Inspection], Iterable[Hit]]
    deep: bool = False
    """Whether rows are read for it."""
