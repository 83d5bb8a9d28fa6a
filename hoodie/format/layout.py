"""Everything that depends on a table's version: one `Layout` for each version, in `LAYOUTS`. Nothing outside asks for a number.

A version differs in values (fields), and in how its timeline lies in files and which slice a log belongs to (methods). Tables of all
versions that are here are read; `is_written` says which ones are written, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import hoodie.format
from hoodie.format.commit_json import encode_commit
from hoodie.model.enums import Action, TableVersion
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, HOODIE, format_instant_file, join, parse_instant_file
from hoodie.model.payloads import CommitMetadata

if TYPE_CHECKING:
    import hoodie.format.archive
    import hoodie.format.archive_entries
    import hoodie.format.archive_lsm
    import hoodie.format.commit_avro
    from hoodie.format.archive_entries import StateFile

Read = Callable[[str], bytes]
"""Gives the content of a file of the archive by its name."""
CompletionOf = Callable[[InstantTime], InstantTime]
"""Gives the time when an instant was completed."""


class Folder(NamedTuple):
    """A folder whose name a property states."""

    property: str
    """Empty: no property does."""
    default: str


@dataclass(frozen=True)
class Layout(ABC):
    """What tables of one version are like. A value that is picklable; the fields are facts, the methods are rules."""

    version: TableVersion
    number: int
    """Of the timeline layout, in `hoodie.timeline.layout.version`. The versions of one number have the same timeline."""
    is_written: bool
    """This release writes such tables; else it reads them, and upgrades them."""
    by_completion: bool
    """The time of completion decides what a reader at some moment sees and which slice a log belongs to; else that of the instant.

    Where it does, completed instants have one, a pull goes by it, and a write that began early and ends late is no gap.
    """
    names_clusterings: bool
    """The files of a pending clustering say `clustering`; else they say `replacecommit`, and the plan alone tells which it is."""
    timeline: Folder
    """Of the active timeline, below `.hoodie`."""
    history: Folder
    """Of the archived timeline, below that of the active one."""
    states_merge_mode: bool
    """The properties have a merge mode, which goes before a payload class; else a strategy id says it."""
    states_payload: bool
    """The properties have a payload class, and what it means; else a partial update mode says it."""
    index_version: str
    """Of indexes of bounds and of values in a new metadata table."""
    old_null: str = ""
    """What its writers put into a partition path where a row has no value; empty: what writers of later versions put there, too."""

    @property
    def folder(self) -> str:
        """Of the active timeline, where no property names another."""
        return join(HOODIE, self.timeline.default)

    # -- the active timeline ----------------------------------------------------------------------------------------------

    def action_in_names(self, instant: Instant) -> Action:
        """As the files of a pending instant say it, and Apache Hudi goes by."""
        is_renamed = instant.action is Action.CLUSTERING and not self.names_clusterings
        return Action.REPLACECOMMIT if is_renamed else instant.action

    def file_name(self, instant: Instant) -> str:
        """Of the file that says that the instant has reached its state."""
        time, _, state, completion = instant
        return format_instant_file(time, self.action_in_names(instant), state, completion)

    def parse(self, name: str) -> Instant | None:
        """None for anything that is no timeline file (also temporary `<name>.<uuid>` files)."""
        return parse_instant_file(name, self.number)

    @abstractmethod
    def encode_commit(self, instant: Instant, metadata: CommitMetadata) -> bytes:
        """The content of the file of a state, completed or inflight. (Reading one needs no layout: its first bytes tell.)"""

    # -- file slices ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def slice_of(
        self, log_instant: InstantTime, begins: Iterable[InstantTime], completion_of: CompletionOf
    ) -> InstantTime:
        """The instant at which the slice of a log file begins, by the one in the log's name; `begins`: of the group's slices."""

    @abstractmethod
    def may_count(self, log_instant: InstantTime, sees: Callable[[str], bool]) -> bool:
        """Whether blocks of a log file with this instant in its name may count for a reader who sees some instants."""

    # -- the archived timeline --------------------------------------------------------------------------------------------

    @abstractmethod
    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        """The content of a file of the archive with these files of the timeline in `folder`.

        Raises:
            CorruptFileError, SchemaError: a file does not decode, or cannot be archived.
        """

    @abstractmethod
    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        """Those of the names in the archive's folder, which is at `path`, that hold instants, oldest first."""

    @abstractmethod
    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        """The instants in one file of the archive.

        Raises:
            CorruptFileError: it does not decode.
        """

    @abstractmethod
    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        """The content of one file of the archive without these instants; empty where it has no others.

        Raises:
            CorruptFileError: as `archived_instants`.
        """

    @abstractmethod
    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        """Whether a file of the archive may have one of the instants, by its name."""

    @abstractmethod
    def archived_commits(
        self, data: bytes, actions: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        """Time -> metadata of those of these instants (time -> action) that a file of the archive has; as `archived_instants`."""

    @property
    def alike(self) -> str:
        """For a message: the versions that are written and whose timeline looks the same."""
        return " or ".join(str(int(each.version)) for each in WRITTEN if each.number == self.number)


@dataclass(frozen=True)
class InstantLayout(Layout):
    """Timeline layout 1: `T.commit`, JSON; the instant time decides. A log is named with the instant of its slice."""

    def encode_commit(self, instant: Instant, metadata: CommitMetadata) -> bytes:
        return encode_commit(metadata)

    def slice_of(
        self, log_instant: InstantTime, begins: Iterable[InstantTime], completion_of: CompletionOf
    ) -> InstantTime:
        return log_instant

    def may_count(self, log_instant: InstantTime, sees: Callable[[str], bool]) -> bool:
        return True  # it may hold blocks of several instants: who merges it tells which of them count

    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        return hoodie.format.archive_entries.encode_archive(files, folder=folder)

    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        numbers = {name: number for name in names if (number := hoodie.format.archive.archive_number(name)) is not None}
        return tuple(sorted(numbers, key=lambda name: (numbers[name], name)))

    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        return hoodie.format.archive.decode_archive_file(data, path=path)

    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        return hoodie.format.archive.archive_without(data, times, path=path)

    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        return True

    def archived_commits(
        self, data: bytes, actions: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        return hoodie.format.archive.decode_archived_commits(data, frozenset(actions), path=path)


@dataclass(frozen=True)
class CompletionLayout(Layout):
    """Timeline layout 2: `T_C.commit` with the completion time C, Avro, an LSM archive; C decides.

    A log is named with the instant of its delta commit, and belongs to the newest slice that begins at or before that commit's
    completion, because a compaction merges what was completed when it was scheduled (Hudi RFC-66).
    """

    def encode_commit(self, instant: Instant, metadata: CommitMetadata) -> bytes:
        completes = COMPLETES_AS.get(instant.action, instant.action)
        replaces = instant.is_completed and completes is Action.REPLACECOMMIT
        return hoodie.format.commit_avro.encode_commit_file(metadata, replaces=replaces)

    def slice_of(
        self, log_instant: InstantTime, begins: Iterable[InstantTime], completion_of: CompletionOf
    ) -> InstantTime:
        older = [begin for begin in begins if begin <= log_instant]
        newer = [begin for begin in begins if begin > log_instant]
        if newer:  # only then its completion matters: that of an archived instant has to be looked up
            completion = completion_of(log_instant)
            older += [begin for begin in newer if begin <= completion]
        return max(older, default=log_instant)

    def may_count(self, log_instant: InstantTime, sees: Callable[[str], bool]) -> bool:
        return sees(log_instant)

    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        return hoodie.format.archive_lsm.encode_lsm(files, folder=folder)

    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        return hoodie.format.archive_lsm.lsm_without(data, times, path=path)

    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        numbers = {
            number: name for name in names if (number := hoodie.format.archive.manifest_number(name)) is not None
        }
        if not numbers:
            return ()
        newest = max(numbers)
        if ARCHIVE_VERSION in names:
            # The file is replaced after the manifest is there; while it is being written the greatest number counts.
            text = read(ARCHIVE_VERSION).decode("ascii", "replace").strip()
            newest = int(text) if text.isdigit() and int(text) in numbers else newest
        name = numbers[newest]
        return tuple(sorted(hoodie.format.archive.decode_manifest(read(name), path=f"{path}{name}")))

    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        return hoodie.format.archive.decode_lsm_file(data, path=path)

    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        least, greatest = map(InstantTime, hoodie.format.archive.lsm_range(name))
        return any(least <= time <= greatest for time in times)

    def archived_commits(
        self, data: bytes, actions: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        return hoodie.format.archive.decode_lsm_commits(data, actions, path=path)


ARCHIVE_VERSION = "_version_"

V6: Layout = InstantLayout(
    TableVersion.V6,
    number=1,
    is_written=True,
    by_completion=False,
    names_clusterings=False,
    timeline=Folder("", ""),
    history=Folder("hoodie.archivelog.folder", "archived"),
    states_merge_mode=False,
    states_payload=True,
    index_version="V1",
)
V8: Layout = CompletionLayout(
    TableVersion.V8,
    number=2,
    is_written=True,
    by_completion=True,
    names_clusterings=True,
    timeline=Folder("hoodie.timeline.path", "timeline"),
    history=Folder("hoodie.timeline.history.path", "history"),
    states_merge_mode=True,
    states_payload=True,
    index_version="V1",
)
V9: Layout = replace(V8, version=TableVersion.V9, states_payload=False, index_version="V2")
V5: Layout = replace(V6, version=TableVersion.V5, is_written=False)
"""As version 6, but that a compaction's plan stands in `.hoodie/.aux`, too, and the metadata table holds other bytes."""
V4: Layout = replace(V5, version=TableVersion.V4, old_null="default")
V3: Layout = replace(V4, version=TableVersion.V3)
"""As version 4; its properties have no checksum, and do not name the partitions of the metadata table."""
WRITTEN = (V6, V8, V9)
OLDEST_WRITTEN = V6
LAYOUTS: Mapping[TableVersion, Layout] = {each.version: each for each in (V3, V4, V5, *WRITTEN)}
"""What a table of each version has."""
NEW = V6
"""What a new table has, unless its options ask for another version."""
TIMELINES = (V6, V8)
"""One for each way to keep a timeline: for those who look at a folder whose version they do not know."""


def layout_named(version: str | None) -> Layout | None:
    """By the version as text; None for one that is not known."""
    return next((each for each in LAYOUTS.values() if version == str(int(each.version))), None)


def written_layout(version: str) -> Layout | None:
    """By the version as text; None for one that is not written."""
    layout = layout_named(version)
    return layout if layout is not None and layout.is_written else None


def _enumeration(layouts: Collection[Layout]) -> str:
    *others, last = (str(int(each.version)) for each in layouts)
    return f"{', '.join(others)} and {last}" if others else last


READ_VERSIONS = _enumeration(LAYOUTS.values())
VERSIONS = _enumeration(WRITTEN)
"""Of tables that this release reads, and of those that it writes: for a message."""
