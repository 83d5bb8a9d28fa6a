"""The listing seam: which partitions a table has, and which files are in them.

Where a new source of listings goes: here or beside it, as a `Listing`, and `TableContext.open` chooses. Which of the files
count is not its business: that the timeline settles. `synced.py` has one that is fed by the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import NamedTuple, Protocol

import pyarrow as pa

from hoodie.model.files import FileGroupId
from hoodie.model.names import HOODIE, PARTITION_METADATA, folder_of
from hoodie.model.statistics import ValueRange
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.timeline import Timeline


class AllFiles(NamedTuple):
    """Every file of a table at one moment."""

    partitions: tuple[str, ...]
    """Paths of the folders that are partitions, sorted."""
    files: Mapping[str, Sequence[FileInfo]]
    """By folder; folders that are no partitions may be among them."""
    tables: Sequence[str] = ()
    """Folders that are tables themselves, as a copy into an existing folder makes one: their files are not among these."""

    @classmethod
    def of(cls, infos: Iterable[FileInfo]) -> AllFiles:
        """What these files make of a table: a partition is a folder that has a partition metadata file."""
        by_folder: dict[str, list[FileInfo]] = {}
        for info in infos:
            by_folder.setdefault(info.folder, []).append(info)
        tables: list[str] = []
        for folder in sorted(folder_of(path) for path in by_folder if path.endswith(f"/{HOODIE}")):
            if not tables or not f"{folder}/".startswith(f"{tables[-1]}/"):
                tables.append(folder)
        for folder in [*by_folder] if tables else ():
            if any(f"{folder}/".startswith(f"{table}/") for table in tables):
                del by_folder[folder]
        marked = (
            folder for folder, files in by_folder.items() if any(f.name.startswith(PARTITION_METADATA) for f in files)
        )
        return cls(tuple(sorted(marked)), by_folder, tables)


class Choice(Protocol):
    """Which partitions a question is about, told by their paths."""

    @property
    def levels(self) -> int:
        """How many levels of folders it is worth asking `leads` about."""
        ...

    def leads(self, folders: Sequence[str]) -> Sequence[bool]:
        """For each of these folders: whether a wanted partition may be the folder itself, or lie below it."""
        ...

    def wants(self, paths: Sequence[str]) -> Sequence[bool]:
        """For each of these paths of partitions."""
        ...


class FileChoice(NamedTuple):
    """The files of the partitions of a choice at one moment."""

    found: AllFiles
    left_out: int
    """Partitions, or folders with all partitions below, that are not among them."""

    @classmethod
    def of(cls, choice: Choice, all_files: AllFiles, left_out: int = 0) -> FileChoice:
        """Those of these folders that the choice admits."""
        folders = list(all_files.files)
        admitted = set(compress(folders, choice.wants(folders)))
        partitions = tuple(path for path in all_files.partitions if path in admitted)
        files = {folder: files for folder, files in all_files.files.items() if folder in admitted}
        return cls(AllFiles(partitions, files), left_out + len(all_files.partitions) - len(partitions))


class Listing(Protocol):
    """Files as they are at each call: what it has answered, it does not keep. Thread-safe.

    It shows at least every file that a commit names which was completed before the call; files of others may be among them.
    """

    @property
    def uri(self) -> str:
        """The table, for messages."""
        ...

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        """The files of each of the partitions, its metadata file among them or not; none when it is not there."""
        ...

    def all_files(self) -> AllFiles:
        """Partitions and files of the whole table: whoever wants the partitions mostly wants the files next."""
        ...

    def chosen_files(self, choice: Choice) -> FileChoice:
        """The same of the partitions of a choice; others are not looked into where their paths say so."""
        return FileChoice.of(choice, self.all_files())


class DerivedColumn(NamedTuple):
    """What a function makes of a column, as expression indexes name it."""

    function: str
    column: str
    options: Mapping[str, str]
    kind: pa.DataType
    """Of the values, as who asks has it."""


class Catalogue(Protocol):
    """What knows a table's files without a listing of its folders, such as a metadata table. Thread-safe."""

    def under(self, timeline: Timeline, local: Callable[[], Listing]) -> Listing:
        """For a view under this timeline; `local` gives what is asked where this has no answer."""
        ...

    def bounds(
        self, timeline: Timeline, paths: Sequence[str], columns: pa.Schema
    ) -> Mapping[str, Sequence[ValueRange | None]] | None:
        """Column -> its bounds in each of these base files; None where they are not known."""
        ...

    def made_bounds(
        self, timeline: Timeline, value: DerivedColumn, paths: Sequence[str]
    ) -> Sequence[ValueRange | None] | None:
        """The bounds of what is made of a column in each of these files, logs among them; None where no index has them."""
        ...

    def groups_of(
        self,
        timeline: Timeline,
        keys: pa.Array,
        paths: Collection[str],
        *,
        is_unique: bool,
        stored: bool = False,
    ) -> Collection[FileGroupId] | None:
        """The file groups that have rows of these record keys in these partitions, and perhaps in others; None where it has no answer.
        `is_unique`: a key has one row at most in the whole table. `stored`: each key has one.
        """
        ...

    def keys_with(self, timeline: Timeline, column: str, values: pa.Array, most: int) -> pa.Array | None:
        """The record keys of all rows with one of these values, of which none is null; None where there are more than `most`, or where
        it has no answer.
        """
        ...

    def distrust(self) -> None:
        """It named files that are not there: give no answer any more."""
        ...


@dataclass(frozen=True)
class StorageListing:
    """`Listing` by the folders of a storage: a partition is one that has a partition metadata file."""

    storage: Storage

    @property
    def uri(self) -> str:
        return self.storage.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        return self.storage.each(self.storage.list, partition_paths)

    def all_files(self) -> AllFiles:
        return AllFiles.of(self._data_files())

    def chosen_files(self, choice: Choice) -> FileChoice:
        folders, files, left_out = [""], [], 0
        for _ in range(choice.levels):
            infos = list(chain.from_iterable(self.storage.each(self.storage.list, folders)))
            tables = {info.folder for info in infos if info.name == HOODIE and info.folder}
            infos = [info for info in infos if info.folder not in tables]
            files += [info for info in infos if not info.is_folder]
            below = [info.path for info in infos if info.is_folder and info.path != HOODIE]
            folders = list(compress(below, choice.leads(below)))
            left_out += len(below) - len(folders)
        files += chain.from_iterable(self.storage.each(partial(self.storage.list, recursive=True), folders))
        return FileChoice.of(choice, AllFiles.of(files), left_out)

    def _data_files(self) -> Iterable[FileInfo]:
        tops = self.storage.list("")
        yield from (top for top in tops if not top.is_folder)
        folders = [top.path for top in tops if top.is_folder and top.path != HOODIE]
        # What lies between the names of partitions would be listed, too.
        for beside in ([path for path in folders if path < HOODIE], [path for path in folders if path > HOODIE]):
            yield from self.storage.list_below(beside)


class ListingOnce(Listing):
    """A listing that asks for no folder twice. Not shared between threads."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._files: dict[str, Sequence[FileInfo]] = {}

    @property
    def uri(self) -> str:
        return self._listing.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        unknown = [path for path in partition_paths if path not in self._files]
        if unknown:
            self._files.update(zip(unknown, self._listing.files(unknown), strict=True))
        return [self._files[path] for path in partition_paths]

    def all_files(self) -> AllFiles:
        return self._listing.all_files()
