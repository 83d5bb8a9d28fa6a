"""Partitions and files of a table from its metadata table, without a look at its folders."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.metadata.bounds import value_ranges
from hoodie.metadata.expression_values import partition_of_bounds
from hoodie.metadata.keys import COLUMN_STATS, FILES, RECORD_INDEX, SECONDARY_INDEX
from hoodie.metadata.secondary_index import index_of, keys_with
from hoodie.metadata.secondary_keys import is_exact, value_texts
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.files import FileGroupId
from hoodie.model.names import doctor_of
from hoodie.model.statistics import ValueRange
from hoodie.options.table import TableConfig
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache, Kind
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from hoodie.view.listing import AllFiles, Choice, DerivedColumn, FileChoice, Listing

log = logging.getLogger("hoodie")

_SAID: Kind[bool] = Kind("metadata tables that gave no answer")
_WRONG: Kind[bool] = Kind("metadata tables that named files which are not there")
_BYTES = 64
_FEW_REMOTE, _FEW_LOCAL = 8, 500
"""Partitions whose listing is cheaper than a look into a metadata table: that takes eight requests, or some milliseconds."""
_MOST_LOOK_UPS = 10_000
"""In a record index by partitions, which has to be asked for each partition."""
_INSTEAD = {
    FILES: "files, which are listed",
    COLUMN_STATS: "bounds of columns, which are read from footers",
    RECORD_INDEX: "places of keys, which are sought in the files",
}
_BY_VALUES = "rows with a value, which are sought in the files"
_BY_EXPRESSIONS = "bounds of an expression, and no file is left out by it"


@dataclass(frozen=True)
class MetadataListing:
    """`Listing` by a metadata table, for views of one snapshot; where that gives no answer, by the folders.

    Folders have files that no completed commit wrote, and those of a dead try; here they are missing. So it is for who reads, and not
    for who looks for such files.
    """

    table: MetadataTable
    folders: Listing
    complain: Callable[[str], None] = lambda partition: None
    """Is called with a partition of the metadata table that gave no answer."""

    @property
    def uri(self) -> str:
        return self.folders.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        files = self.table.files(partition_paths)
        if files is None:
            self.complain(FILES)
        return self.folders.files(partition_paths) if files is None else files

    def all_files(self) -> AllFiles:
        files = self.table.all_files()
        if files is None:
            self.complain(FILES)
        return self.folders.all_files() if files is None else AllFiles(tuple(files), files)

    def chosen_files(self, choice: Choice) -> FileChoice:
        partitions = self.table.partitions()
        if partitions is None:
            self.complain(FILES)
            return self.folders.chosen_files(choice)
        paths = tuple(compress(partitions, choice.wants(partitions)))
        all_files = AllFiles(paths, dict(zip(paths, self.files(paths), strict=True)))
        return FileChoice(all_files, len(partitions) - len(paths))


@dataclass(frozen=True)
class _FewByFolders:
    """`Listing` by the metadata table, which is opened when many partitions are asked for; of few the folders are listed."""

    folders: Listing
    by_table: Callable[[], Listing]
    least: int

    @property
    def uri(self) -> str:
        return self.folders.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        return (self.folders if len(partition_paths) < self.least else self.by_table()).files(partition_paths)

    def all_files(self) -> AllFiles:
        return self.by_table().all_files()

    def chosen_files(self, choice: Choice) -> FileChoice:
        return self.by_table().chosen_files(choice)


def _in_each(keys: pa.Array, paths: Collection[str]) -> tuple[pa.Array, pa.Array]:
    """Every pair of a key and a partition."""
    partitions = pa.array(sorted(paths), pa.string())
    repeated = partitions.take(pa.array(np.repeat(np.arange(len(paths)), len(keys))))
    return pa.concat_arrays([keys] * len(paths)), repeated


class MetadataFiles:
    """`Catalogue` of one query by the metadata table that the table has. Of its faults the log gets one line."""

    def __init__(self, storage: Storage, config: TableConfig, cache: Cache, *, least: int = 1) -> None:
        """`least`: of fewer partitions the folders are listed, as that is cheaper."""
        self._least = least
        self._storage = storage
        self._config = config
        self._cache = cache
        self._last: tuple[Timeline, MetadataTable] | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether a query of this process found so."""
        return self._cache.find(_WRONG, self._storage.identity) is not None

    def under(self, timeline: Timeline, local: Callable[[], Listing]) -> Listing:
        if self.is_wrong:
            return local()
        folders = local()
        by_table = partial(self._listing, timeline, folders)
        return by_table() if self._least == 1 else _FewByFolders(folders, by_table, self._least)

    def bounds(
        self, timeline: Timeline, paths: Sequence[str], columns: pa.Schema
    ) -> Mapping[str, Sequence[ValueRange | None]] | None:
        if self.is_wrong or COLUMN_STATS not in finished_partitions(self._config.raw):
            return None
        stats = self._at(timeline).column_stats(paths, columns)
        if stats is None:
            self._complain(COLUMN_STATS)
            return None
        return {name: value_ranges(each) for name, each in stats.items()}

    def made_bounds(
        self, timeline: Timeline, value: DerivedColumn, paths: Sequence[str]
    ) -> Sequence[ValueRange | None] | None:
        if self.is_wrong:
            return None
        try:
            name = partition_of_bounds(self._storage, self._config.raw, value.function, value.column, value.options)
        except HoodieError:
            return None
        if name is None:
            return None
        stats = self._at(timeline).column_stats(paths, pa.schema([(value.column, value.kind)]), name)
        if stats is None:
            self._complain(name)
            return None
        return value_ranges(stats[value.column])

    def groups_of(
        self,
        timeline: Timeline,
        keys: pa.Array,
        paths: Collection[str],
        *,
        is_unique: bool,
        stored: bool = False,
    ) -> Collection[FileGroupId] | None:
        if self.is_wrong or RECORD_INDEX not in finished_partitions(self._config.raw):
            return None
        table = self._at(timeline)
        index, path_of_key = table.record_index(), None
        if index is not None and index.shares is not None:
            if not paths or set(paths) - index.shares.keys() or len(keys) * len(paths) > _MOST_LOOK_UPS:
                return None
            keys, path_of_key = _in_each(keys, paths)
        elif index is not None and not is_unique:
            return None
        locations = None if index is None else table.locations(keys, path_of_key)
        if locations is None:
            self._complain(RECORD_INDEX)
            return None
        if stored and locations["file_id"].null_count:
            return None
        pairs = (
            locations.select(["partition_path", "file_id"])
            .drop_null()
            .group_by(["partition_path", "file_id"])
            .aggregate([])
        )
        return {FileGroupId(*pair) for pair in zip(*pairs.to_pydict().values(), strict=True)}

    def keys_with(self, timeline: Timeline, column: str, values: pa.Array, most: int) -> pa.Array | None:
        properties = self._config.raw
        if self.is_wrong or not is_exact(values.type) or RECORD_INDEX not in finished_partitions(properties):
            return None
        try:
            index_found = index_of(self._storage, properties, column)
        except HoodieError:
            return None
        if index_found is None:
            return None
        name, index = index_found
        table = self._at(timeline)
        keys: pa.Array | None = keys_with(table, name, index, value_texts(values, column), most)
        if name in table.reasons:
            self._complain(name)
        return keys

    def distrust(self) -> None:
        log.warning(
            "the metadata table of %s does not fit its files: they are listed from now on; %s",
            self._storage.uri,
            doctor_of(self._storage.uri),
        )
        self._cache.put(_WRONG, self._storage.identity, True, _BYTES)

    def _listing(self, timeline: Timeline, folders: Listing) -> MetadataListing:
        return MetadataListing(self._at(timeline), folders, self._complain)

    def _at(self, timeline: Timeline) -> MetadataTable:
        """The metadata table for a snapshot, opened once."""
        if self._last is None or self._last[0] is not timeline:
            table = MetadataTable.open(self._storage, self._config, timeline, self._cache)
            self._last = timeline, table
        return self._last[1]

    def _complain(self, partition: str) -> None:
        """Say it once in this process."""
        key = self._storage.identity, partition
        if self._last is None or self._last[1].is_gone or self._cache.find(_SAID, key):
            return
        self._cache.put(_SAID, key, True, _BYTES)
        is_of_values = partition.startswith(SECONDARY_INDEX)
        log.warning(
            "the metadata table of %s is not used for %s: %s; %s",
            self._storage.uri,
            _INSTEAD.get(partition, _BY_VALUES if is_of_values else _BY_EXPRESSIONS),
            self._last[1].reasons.get(partition, "it gave no answer"),
            doctor_of(self._storage.uri),
        )


def has_metadata(context: TableContext) -> bool:
    """Whether queries ask a metadata table for the files."""
    config = context.config
    is_wanted = context.view_options.metadata is not False and not context.lists_folders
    if not is_wanted or FILES not in finished_partitions(config.raw):
        return False
    return not _files(context).is_wrong


def by_metadata(context: TableContext) -> TableContext:
    """The same table for a query: its files by the metadata table where it has one."""
    return replace(context, catalogue=_files(context)) if has_metadata(context) else context


def plans_by_metadata(context: TableContext) -> TableContext:
    """The same table for the plan of a write: the files of many partitions by the metadata table where it has one."""
    if not has_metadata(context):
        return context
    least = _FEW_REMOTE if context.storage.can.is_remote else _FEW_LOCAL
    return replace(context, catalogue=MetadataFiles(context.storage, context.config, context.cache, least=least))


def distrust_metadata(context: TableContext) -> None:
    """A query found that the metadata table names other files than there are."""
    _files(context).distrust()


def _files(context: TableContext) -> MetadataFiles:
    return MetadataFiles(context.storage, context.config, context.cache)
