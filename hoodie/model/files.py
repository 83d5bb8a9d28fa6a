"""Data files and their grouping: file group -> file slices -> one base file and its log files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hoodie.model.instant import InstantTime


class FileGroupId(NamedTuple):
    partition_path: str
    file_id: str


class SourceFile(NamedTuple):
    """A file outside of the table, from which it was bootstrapped: it has the columns that a skeleton lacks."""

    uri: str
    size_bytes: int
    """When it was bootstrapped."""
    partition_fields: tuple[str, ...]
    """Columns that it may lack: then the folder has their values,"""
    hive_style: bool
    """written so."""
    url_encode: bool
    slash_dates: bool


class BaseFile(NamedTuple):
    partition_path: str
    file_id: str
    instant: InstantTime
    name: str
    size_bytes: int
    source: SourceFile | None = None
    """The file is a skeleton, which has the `_hoodie_` columns alone; a table's views know it (`view/bootstrap.py`)."""

    @property
    def path(self) -> str:
        return f"{self.partition_path}/{self.name}" if self.partition_path else self.name

    @property
    def rows_bytes(self) -> int:
        """Of the file, and of the one that completes it."""
        return self.size_bytes + (self.source.size_bytes if self.source else 0)

    @property
    def source_uri(self) -> str | None:
        return self.source.uri if self.source else None

    @property
    def is_missing(self) -> bool:
        """There is no such file: it stands for that of a slice without one."""
        return self.name == self.file_id


class LogFile(NamedTuple):
    partition_path: str
    file_id: str
    base_instant: InstantTime
    version: int
    name: str
    size_bytes: int
    committed_bytes: int | None = None
    """Size that active commit metadata states (0: named without a size); None when no active commit names the file."""
    committed_entries: tuple[tuple[InstantTime, int], ...] = ()
    """(instant, records and deletes that it wrote into the file) of each active commit that wrote it."""
    stands_for: tuple[str, ...] | None = None
    """Of what a log compaction wrote: names of the log files of its slice that say nothing else; none where that is not known."""

    @property
    def path(self) -> str:
        return f"{self.partition_path}/{self.name}" if self.partition_path else self.name


class FileSlice(NamedTuple):
    """One version of a file group: the base file written at `base_instant` and the logs named with it.

    A slice of a pending compaction has no base file yet; readers get it merged with the slice before
    (`view.FileSystemView.latest_slices`): then `logs` holds the logs of both, in reading order.
    """

    group: FileGroupId
    base_instant: InstantTime
    base: BaseFile | None
    logs: tuple[LogFile, ...]

    @property
    def size_bytes(self) -> int:
        """Of the base file and the logs together."""
        return (self.base.rows_bytes if self.base else 0) + sum(log.size_bytes for log in self.logs)

    @property
    def base_or_none_such(self) -> BaseFile:
        """The base file, or one that stands for it."""
        return self.base or BaseFile(*self.group, self.base_instant, self.group.file_id, 0)


class FileGroup(NamedTuple):
    """All slices of a file group that are still on storage, oldest first."""

    id: FileGroupId
    slices: tuple[FileSlice, ...]
    missing: tuple[BaseFile | LogFile, ...] = ()
    """Files that active commits wrote and that are not there: cleaned, or lost."""


def total_bytes(slices: Iterable[FileSlice]) -> int:
    return sum(file_slice.size_bytes for file_slice in slices)
