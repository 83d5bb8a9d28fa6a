"""What a metadata table says for one snapshot of its table: partitions, files, bounds, bloom filters and places of keys.

Each answer is None where the metadata table cannot be trusted with it: it has no such partition, or one that is still being
made; it is behind the timeline, or ahead of the snapshot; a file of it is damaged or gone. `reasons` says why. Whoever asks
goes on without it, as if there were no metadata table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import (
    CorruptFileError,
    HoodieError,
    InstantNotFoundError,
    MissingFileError,
    UnsupportedTableError,
)
from hoodie.format.bloom import BloomFilter, parse_bloom
from hoodie.format.layout import Folder, Layout, layout_named
from hoodie.format.properties import parse_properties_file
from hoodie.hfile.arrays import as_binary
from hoodie.metadata.bounds import ColumnBounds, counted_together
from hoodie.metadata.data_groups import in_order, is_by_partition, shares_of
from hoodie.metadata.key_places import RecordIndex, locations_of
from hoodie.metadata.keys import (
    ALL_PARTITIONS,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    RECORD_INDEX,
    bloom_keys,
    group_number,
    group_numbers,
    identifier_of,
    partition_of,
    stats_keys,
)
from hoodie.metadata.payload import FileSizes, decode_blooms, decode_files, decode_stats
from hoodie.metadata.slices import (
    HFileRecords,
    Layer,
    RecordMatches,
    all_keys,
    by_group,
    every,
    joined,
    layers_of,
    newest_of,
)
from hoodie.metadata.visibility import as_seen, is_first, unknown_times, why_not
from hoodie.model.files import BaseFile, FileGroup, FileSlice, LogFile
from hoodie.model.instant import InstantTime
from hoodie.model.names import HOODIE, METADATA_TABLE, PROPERTIES, join
from hoodie.options.table import METADATA, TableConfig
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache
from hoodie.storage.parallel import together
from hoodie.storage.subfolder import FolderStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.listing import ListingOnce, StorageListing
from hoodie.view.view import FileSystemView

pc: Any = pyarrow.compute
T = TypeVar("T")
_DISTRUST = (
    CorruptFileError,
    MissingFileError,
    UnsupportedTableError,
    InstantNotFoundError,
    FileNotFoundError,
    pa.ArrowInvalid,
)
_INFLIGHT = f"{METADATA}.inflight"
_VERSION = "hoodie.table.version"


class OpenedMetadata(NamedTuple):
    """A metadata table as a table of its own."""

    storage: Storage
    active: ActiveTimeline
    own: Timeline
    timeline: Timeline
    """The same for a snapshot of the table: what that has not completed is pending."""
    past: ArchivedTimeline
    folder: str
    """Of its timeline."""
    history: str
    """Of its archive."""


class _TimelineFolders(NamedTuple):
    active: ActiveTimeline
    folder: str
    history: str


class MetadataTable:
    """For one snapshot; not shared between threads. Files that were opened stay open for further questions."""

    def __init__(self, table: Storage, cache: Cache, properties: Mapping[str, str]) -> None:
        """`open` makes one. `properties`: of the table."""
        self._table = table
        self._storage = FolderStorage(table, METADATA_TABLE)
        self._cache = cache
        self._properties = properties
        self._available = finished_partitions(properties)
        self._listing = ListingOnce(StorageListing(self._storage))
        self._view: FileSystemView | None = None
        self._opened: OpenedMetadata | None = None
        self._slices: dict[str, Sequence[FileSlice]] = {}
        self._layers: dict[tuple[str, int], Sequence[Layer]] = {}
        self.reasons: dict[str, str] = {}
        """Partition of the metadata table -> why it gave no answer."""
        self.is_gone = False
        """It was dropped since the table was opened."""
        self._held: Sequence[str] = ()

    @classmethod
    def open(
        cls,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        cache: Cache,
        *,
        undone: Collection[InstantTime] = (),
        held: Sequence[str] = (),
    ) -> MetadataTable:
        """The metadata table of the table at the storage's root, for a snapshot of that with this timeline.

        `undone`: instants that whoever opens it is about to take back, and that are on no timeline any more. `held`: for the holder of
        the table's lock, the partitions that it asks for: none of them is dropped meanwhile.
        """
        table = cls(storage, cache, config.raw)
        table._held = held
        table.reasons.update(dict.fromkeys(_names(config.raw.get(_INFLIGHT, "")), "it is still being made"))
        if table._available:
            try:
                table._open(timeline, config, undone)
            except (HoodieError, FileNotFoundError) as exc:
                table.is_gone = not table._is_named(FILES)
                table._refuse(table._available, str(exc))
        return table

    def partitions(self) -> tuple[str, ...] | None:
        """Every partition path of the table, sorted."""
        return self.answer(FILES, lambda: tuple(sorted(map(partition_of, self._files_of([ALL_PARTITIONS])[0]))))

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]] | None:
        """The files of each of these partitions, with sizes; none where it is not there."""

        def ask() -> Sequence[Sequence[FileInfo]]:
            sizes_of = self._files_of([identifier_of(path) for path in partition_paths])
            return [_infos(path, sizes) for path, sizes in zip(partition_paths, sizes_of, strict=True)]

        return self.answer(FILES, ask)

    def all_files(self) -> Mapping[str, Sequence[FileInfo]] | None:
        """Partition path -> its files, of the whole table."""

        def ask() -> Mapping[str, Sequence[FileInfo]]:
            return {path: _infos(path, sizes) for path, sizes in self.sizes().items()}

        return self.answer(FILES, ask)

    def column_stats(
        self, paths: Sequence[str], columns: pa.Schema, partition: str = COLUMN_STATS
    ) -> Mapping[str, pa.Table] | None:
        """Column -> its bounds in each of these files: low and high, of the column's type; nulls; values, nulls among them.

        All are null for a file of which nothing is known. low and high are null, too, where they are not known, and where there are
        only nulls. `partition`: or an expression index, whose bounds are of a type of their own.
        """
        return self.answer(partition, lambda: self._stats(paths, columns, partition))

    def bloom_filters(self, paths: Sequence[str], partition: str = BLOOM_FILTERS) -> Mapping[str, BloomFilter] | None:
        """Base file -> its bloom filter, of those that have one. `partition`: or an expression index."""

        def ask() -> Mapping[str, BloomFilter]:
            result = {}
            for part in self._newest(partition, bloom_keys(paths)):
                blooms = decode_blooms(part.values, part.schema).to_pylist()
                for row, bloom in zip(part.rows.tolist(), blooms, strict=True):
                    if not bloom["deleted"] and bloom["bloom"]:
                        result[paths[row]] = _bloom(bloom["type"], bloom["bloom"])
            return result

        return self.answer(partition, ask)

    def locations(self, keys: pa.Array[Any], paths: pa.Array[Any] | None = None) -> pa.Table | None:
        """For each record key the partition_path and the file_id of its row, and when it was written first; null where it is not
        in the table. `paths`: the partitions where one by partitions looks for the rows.

        Raises:
            SchemaError: the keys are no texts, or some are null.
        """

        def ask() -> pa.Table:
            numbers = self._key_groups().numbers(keys, paths)
            groups = by_group(self._storage, numbers, partial(self._group, RECORD_INDEX))
            return locations_of(newest_of(groups, keys), len(keys))

        return self.answer(RECORD_INDEX, ask)

    def record_index(self) -> RecordIndex | None:
        """The record index, for tasks that look keys up in it. No file of it was opened."""

        return self.answer(RECORD_INDEX, self._key_groups)

    def problem_of(self, partition: str) -> str | None:
        """Why a partition gives no answer; None where all its file groups open."""
        self.answer(partition, lambda: [self._group(partition, at) for at in range(len(self._pieces(partition)))])
        return self.reasons.get(partition)

    @property
    def opened(self) -> OpenedMetadata:
        """For who writes it."""
        if self._opened is None:
            raise UnsupportedTableError("there is no metadata table")
        return self._opened

    def slices_of(self, partition: str) -> Sequence[FileSlice]:
        """The file slices of a partition, each at the place of its number, for who writes it. No record is read.

        Raises:
            CorruptFileError, UnsupportedTableError: it cannot be trusted, or has another form.
        """
        if partition not in self._available:
            raise CorruptFileError(self.reasons.get(partition, "there is no such partition"))
        return self._pieces(partition)

    def groups_in(self, partition: str) -> Sequence[FileGroup]:
        """Everything of the partition's file groups that is there, for who cleans it."""
        return () if self._view is None else self._view.file_groups(partition)

    def names_in(self, partition: str) -> Sequence[str]:
        """Names of all files of a partition, also those that no commit names."""
        return [info.name for info in self._listing.files([partition])[0]]

    def layers_of(self, partition: str, number: int) -> Sequence[Layer]:
        """What a file group consists of, oldest first.

        Raises:
            CorruptFileError, MissingFileError, FileNotFoundError: a file is damaged or gone.
        """
        return self._group(partition, number)

    def schema_of(self, partition: str) -> str:
        """The schema of the newest records of a partition with one file group.

        Raises:
            CorruptFileError, MissingFileError, FileNotFoundError: a file is damaged or gone.
        """
        written = [each.schema for each in self._group(partition, 0) if isinstance(each, HFileRecords)]
        if not written:
            raise CorruptFileError(f"its partition {partition} has no record")
        return written[-1]

    def sizes(self) -> Mapping[str, Mapping[str, int]]:
        """Partition path -> its files; raises where `all_files` gives None."""
        entries = dict(self.all_entries())
        there = entries.pop(ALL_PARTITIONS, {})
        return {partition_of(key): entries.get(key, {}) for key in sorted(there)}

    def all_entries(self) -> Mapping[str, Mapping[str, int]]:
        """Key of a record -> what is in it, of the whole partition of files; raises where `all_files` gives None."""
        keys = all_keys(self._group(FILES, 0)).cast(pa.binary()).cast(pa.string()).to_pylist()
        return dict(zip(keys, self._files_of(keys), strict=True))

    def _open(self, timeline: Timeline, config: TableConfig, undone: Collection[InstantTime]) -> None:
        path, layout = f"{self._storage.uri}/{PROPERTIES}", config.layout
        usual = self._timeline_in(layout, {})
        data, own, _ = together(
            self._storage,
            partial(self._storage.read, PROPERTIES),
            usual.active.load,
            partial(self._listing.files, self._held),  # nobody adds a file while the lock is held
        )
        properties = parse_properties_file(data, path=path)
        version = properties.get(_VERSION, "")
        if layout_named(version) is not layout:
            raise UnsupportedTableError(f"it is of version {version}, and its table of version {int(config.version)}")
        active, folder, history = self._timeline_in(layout, properties)
        if (folder, history) == (usual.folder, usual.history):
            active = usual.active
        else:
            own = active.load()
        archived = frozenset(undone)
        if not archived.issuperset(unknown_times(timeline, own)):
            past = ArchivedTimeline(self._table, config.history_folder, layout=config.layout, cache=self._cache)
            archived |= {each.time for each in past.instants}
        reason = why_not(timeline, own, archived, is_undoing=bool(self._held))
        if reason is not None:
            raise CorruptFileError(reason)
        own_past = ArchivedTimeline(self._storage, history, layout=layout, cache=self._cache)
        of_snapshot = as_seen(timeline, own, archived)
        self._view = FileSystemView(self._listing, active, of_snapshot, own_past)
        self._opened = OpenedMetadata(self._storage, active, own, of_snapshot, own_past, folder, history)

    def _timeline_in(self, layout: Layout, properties: Mapping[str, str]) -> _TimelineFolders:
        folder = _folder(properties, HOODIE, layout.timeline)
        history = _folder(properties, folder, layout.history)
        active = ActiveTimeline(
            self._storage, self._cache, layout=layout, folder=folder, history=history, with_sizes=True
        )
        return _TimelineFolders(active, folder, history)

    def answer(self, partition: str, ask: Callable[[], T]) -> T | None:
        """What `ask` gives; None, with a reason, where the partition is not to be trusted with it."""
        if partition not in self._available:
            self.reasons.setdefault(partition, "there is no such partition")
            return None
        try:
            return ask()
        except _DISTRUST as exc:
            self._refuse([partition], str(exc))
            return None

    def _refuse(self, partitions: Iterable[str], reason: str) -> None:
        self._available -= frozenset(partitions)
        self.reasons.update(dict.fromkeys(partitions, reason))

    def _pieces(self, partition: str) -> Sequence[FileSlice]:
        """The file slices of a partition, each at the place of its number."""
        if partition not in self._slices:
            slices = [] if self._view is None else self._there(self._view, partition)
            pieces = self._numbered(partition, slices)
            # Whoever drops a metadata table changes the properties first. So what was listed until now is whole.
            if partition not in self._held and not self._is_named(partition):
                self.is_gone = True
                raise CorruptFileError("it was dropped")
            self._slices[partition] = pieces
        return self._slices[partition]

    def _there(self, view: FileSystemView, partition: str) -> Sequence[FileSlice]:
        """The newest file slices, without the files of an index of this name that was dropped, and built again."""
        if any(each.missing for each in view.file_groups(partition)):
            commits = view.timeline.commits
            wrote = self.opened.active.read_commit
            firsts = [each for each in commits if is_first(each) and partition in wrote(each).write_stats]
            since = max((each.position for each in firsts), default=InstantTime(""))
            older = {each.time for each in commits if each.position < since}
            view.forgive(partition, lambda file: _times_of(file) <= older)
        return view.latest_slices([partition])

    def _numbered(self, partition: str, pieces: Sequence[FileSlice]) -> Sequence[FileSlice]:
        """File slices in the order of their numbers; raises CorruptFileError where one is missing."""
        if partition == RECORD_INDEX:
            result = in_order(pieces)
            if result is not None:
                return result
            if not pieces and is_by_partition(self._table, self._properties):
                return pieces
        numbers = [group_number(piece.group.file_id, partition) for piece in pieces]
        if not pieces or numbers != list(range(len(pieces))):
            ids = ", ".join(piece.group.file_id for piece in pieces[:5])
            raise CorruptFileError(f"its file groups are not numbered from 0: {ids or 'there are none'}")
        return pieces

    def _key_groups(self) -> RecordIndex:
        pieces = tuple(self._pieces(RECORD_INDEX))
        is_whole = bool(pieces) and group_number(pieces[0].group.file_id, RECORD_INDEX) is not None
        return RecordIndex(pieces, self.opened.timeline.visible(), None if is_whole else shares_of(pieces))

    def _is_named(self, partition: str) -> bool:
        """Whether the table has the partition now; False while its properties are changed."""
        try:
            data = self._table.read(PROPERTIES)
        except FileNotFoundError:
            return False
        return partition in finished_partitions(parse_properties_file(data, path=f"{self._table.uri}/{PROPERTIES}"))

    def _group(self, partition: str, number: int) -> Sequence[Layer]:
        at = partition, number
        if at not in self._layers and self._view is not None:
            visible = self._view.timeline.visible()
            self._layers[at] = layers_of(self._storage, self._pieces(partition)[number], visible, self._cache)
        return self._layers[at]

    def _by_group(self, partition: str, keys: pa.Array[Any]) -> Sequence[tuple[Any, Sequence[Layer]]]:
        """Numbers of keys with the file group that holds them, which is open."""
        numbers = group_numbers(keys, len(self._pieces(partition)))
        return by_group(self._storage, numbers, partial(self._group, partition))

    def _newest(self, partition: str, keys: pa.Array[Any]) -> Sequence[RecordMatches]:
        """The newest records of these keys; `rows` counts among all of them."""
        return newest_of(self._by_group(partition, keys), keys)

    def _files_of(self, identifiers: Sequence[str]) -> Sequence[Mapping[str, int]]:
        """For each record of the partition of files, its names that were not deleted, with their sizes."""
        by_number: list[dict[str, tuple[int, bool]]] = [{} for _ in identifiers]
        keys = pa.array(identifiers, pa.string())
        for rows, layers in self._by_group(FILES, keys):
            for part in every(layers, as_binary(keys, "keys").take(pa.array(rows))):
                numbers = rows[part.rows].tolist()
                if part.values is None:
                    for number in numbers:
                        by_number[number].clear()
                    continue
                for number, sizes in zip(numbers, decode_files(part.values, part.schema), strict=True):
                    _add(by_number[number], sizes if identifiers[number] == ALL_PARTITIONS else _names_of_files(sizes))
        return [{name: size for name, (size, is_deleted) in each.items() if not is_deleted} for each in by_number]

    def _stats(self, paths: Sequence[str], columns: pa.Schema, partition: str) -> dict[str, pa.Table]:
        """All columns are looked up together, and their records are decoded together where no file has two of a column."""
        keys = pa.concat_arrays([pa.array([], pa.string()), *(stats_keys(paths, name) for name in columns.names)])
        texts, bounds = as_binary(keys, "keys"), ColumnBounds([field.type for field in columns], len(paths))
        parts = [
            part._replace(rows=rows[part.rows])
            for rows, layers in self._by_group(partition, keys)
            for part in every(layers, texts.take(pa.array(rows)))
        ]
        for part in joined(parts):
            if part.values is None:
                bounds.forget(part.rows)
                continue
            for stats in decode_stats(part.values, part.schema):
                counted = stats.columns if partition == COLUMN_STATS else counted_together(stats.columns)
                bounds.add(part.rows[stats.rows], counted)
        return dict(zip(columns.names, bounds.tables(), strict=True))


def _times_of(file: BaseFile | LogFile) -> set[InstantTime]:
    """The instants that wrote it."""
    return {file.instant} if isinstance(file, BaseFile) else {time for time, _ in file.committed_entries}


def _folder(properties: Mapping[str, str], above: str, folder: Folder) -> str:
    return join(above, properties.get(folder.property, "") or folder.default)


def finished_partitions(properties: Mapping[str, str]) -> frozenset[str]:
    """The partitions of a metadata table that readers may use, by the properties of its table. None where tables of its version are
    not written: their metadata tables have other bytes.
    """
    layout = layout_named(properties.get(_VERSION))
    if layout is not None and not layout.is_written:
        return frozenset()
    names, pending = (_names(properties.get(key, "")) for key in (METADATA, _INFLIGHT))
    return names - pending


def _add(files: dict[str, tuple[int, bool]], sizes: FileSizes) -> None:
    """Add a record of the same files. Files only grow, so records may come in any order."""
    for name, (size, is_deleted) in sizes.items():
        before, was_deleted = files.get(name, (0, True))
        if is_deleted and name in files and not was_deleted:
            del files[name]
        else:
            files[name] = (size if is_deleted else max(size, before), is_deleted)


def _names_of_files(sizes: FileSizes) -> FileSizes:
    """Where a path in a commit begins with `file:`, Apache Hudi 1.2 takes the end of the folder for a part of the name."""
    return {name.rpartition("/")[2]: size for name, size in sizes.items()}


def _infos(partition_path: str, sizes: Mapping[str, int]) -> list[FileInfo]:
    return [FileInfo(join(partition_path, name), sizes[name], 0.0, False, None) for name in sorted(sizes)]


def _bloom(type_code: str, text: bytes) -> BloomFilter:
    try:
        return parse_bloom(type_code, base64.b64decode(text, validate=True))
    except binascii.Error as exc:
        raise CorruptFileError(f"a bloom filter is not base64 text: {exc}") from exc


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))
