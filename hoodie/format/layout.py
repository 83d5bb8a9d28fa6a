"""The table version's seam: how a timeline lies in files, what these are called and hold, and which of two times decides.

A version that is written later is one more class here, or one of these with `encode_commit`. Nothing outside asks for a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie.errors import UnsupportedTableError
from hoodie.format.archive import (
    archive_number,
    archive_without,
    decode_archive_file,
    decode_archived_commits,
    decode_lsm_commits,
    decode_lsm_file,
    decode_manifest,
    lsm_range,
    manifest_number,
)
from hoodie.format.archive_entries import StateFile, encode_archive
from hoodie.format.commit_json import encode_commit
from hoodie.model.enums import Action, TableVersion
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import format_instant_file, parse_instant_file
from hoodie.model.payloads import CommitMetadata

Read = Callable[[str], bytes]
"""Gives the content of a file of the archive by its name."""


class Layout(Protocol):
    """One way to keep a timeline. A value without state: equal to every other of its class, and picklable."""

    @property
    def by_completion(self) -> bool:
        """The time of completion decides what a reader at some moment sees and which slice a log belongs to; else that of the instant.

        Where it does, completed instants have one, a pull goes by it, and a write that began early and ends late is no gap.
        """
        ...

    def file_name(self, instant: Instant) -> str:
        """Of the file that says that the instant has reached its state."""
        ...

    def parse(self, name: str) -> Instant | None:
        """None for anything that is no timeline file (also temporary `<name>.<uuid>` files)."""
        ...

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        """The content of the completed file. (Reading one needs no layout: its first bytes tell.)

        Raises:
            UnsupportedTableError: this release does not write such timelines.
        """
        ...

    def archive_name(self, number: int) -> str:
        """Of a file of the archive.

        Raises:
            UnsupportedTableError: as `encode_commit`.
        """
        ...

    def archive_number(self, name: str) -> int:
        """The number in such a name."""
        ...

    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        """The content of a file of the archive with these files of the timeline in `folder`. Two such contents make one.

        Raises:
            UnsupportedTableError: as `encode_commit`. CorruptFileError, SchemaError: a file does not decode, or cannot be archived.
        """
        ...

    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        """Those of the names in the archive's folder, which is at `path`, that hold instants, oldest first."""
        ...

    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        """The instants in one file of the archive.

        Raises:
            CorruptFileError: it does not decode.
        """
        ...

    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        """The content of one file of the archive without these instants; empty where it has no others.

        Raises:
            UnsupportedTableError: as `encode_commit`. CorruptFileError: as `archived_instants`.
        """
        ...

    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        """Whether a file of the archive may have one of the instants, by its name."""
        ...

    def archived_commits(
        self, data: bytes, wanted: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        """Time -> metadata of those of the wanted instants that a file of the archive has; as `archived_instants`."""
        ...


@dataclass(frozen=True)
class InstantLayout:
    """Version 6 (timeline layout 1): `T.commit`, JSON; the instant time decides."""

    by_completion = False

    def file_name(self, instant: Instant) -> str:
        if instant.action is Action.CLUSTERING:  # its plan alone tells it from an overwrite: `ActiveTimeline.load`
            instant = instant._replace(action=Action.REPLACECOMMIT)
        return format_instant_file(*instant)

    def parse(self, name: str) -> Instant | None:
        return parse_instant_file(name, 1)

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        return encode_commit(metadata)

    def archive_name(self, number: int) -> str:
        return f".commits_.archive.{number}_1-0-1"

    def archive_number(self, name: str) -> int:
        return archive_number(name) or 0

    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        return encode_archive(files, folder=folder)

    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        numbers = {name: number for name in names if (number := archive_number(name)) is not None}
        return tuple(sorted(numbers, key=lambda name: (numbers[name], name)))

    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        return decode_archive_file(data, path=path)

    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        return archive_without(data, times, path=path)

    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        return True

    def archived_commits(
        self, data: bytes, wanted: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        return decode_archived_commits(data, frozenset(wanted), path=path)


@dataclass(frozen=True)
class CompletionLayout:
    """Versions 8 and 9 (timeline layout 2): `T_C.commit` with the completion time C, Avro, an LSM archive; C decides."""

    by_completion = True

    def file_name(self, instant: Instant) -> str:
        return format_instant_file(*instant)

    def parse(self, name: str) -> Instant | None:
        return parse_instant_file(name, 2)

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        raise UnsupportedTableError(_READ_ONLY)

    def archive_name(self, number: int) -> str:
        raise UnsupportedTableError(_READ_ONLY)

    def archive_number(self, name: str) -> int:
        return manifest_number(name) or 0

    def encode_archive(self, files: Sequence[StateFile], *, folder: str) -> bytes:
        raise UnsupportedTableError(_READ_ONLY)

    def archive_files(self, names: Sequence[str], read: Read, *, path: str) -> tuple[str, ...]:
        numbers = {number: name for name in names if (number := manifest_number(name)) is not None}
        if not numbers:
            return ()
        newest = max(numbers)
        if _VERSION_FILE in names:
            # The file is replaced after the manifest is there; while it is being written the greatest number counts.
            text = read(_VERSION_FILE).decode("ascii", "replace").strip()
            newest = int(text) if text.isdigit() and int(text) in numbers else newest
        name = numbers[newest]
        return tuple(sorted(decode_manifest(read(name), path=f"{path}{name}")))

    def archived_instants(self, data: bytes, *, path: str) -> Sequence[Instant]:
        return decode_lsm_file(data, path=path)

    def archive_without(self, data: bytes, times: frozenset[str], *, path: str) -> bytes:
        raise UnsupportedTableError(_READ_ONLY)

    def may_hold(self, name: str, times: Iterable[str]) -> bool:
        least, greatest = map(InstantTime, lsm_range(name))
        return any(least <= time <= greatest for time in times)

    def archived_commits(
        self, data: bytes, wanted: Mapping[InstantTime, Action], *, path: str
    ) -> dict[InstantTime, CommitMetadata]:
        return decode_lsm_commits(data, wanted, path=path)


_VERSION_FILE = "_version_"
_READ_ONLY = "this release writes tables of version 6 only, this one has a timeline of version 8 or 9"
BY_INSTANT: Layout = InstantLayout()
BY_COMPLETION: Layout = CompletionLayout()
LAYOUTS: Mapping[TableVersion, Layout] = {
    TableVersion.V6: BY_INSTANT,
    TableVersion.V8: BY_COMPLETION,
    TableVersion.V9: BY_COMPLETION,
}
"""What a table of each version has."""
