"""What commits and Parquet footers say about the columns of files: bounds in the types that the table has now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.format.column_stats import COLUMN_STATS, converted, decode_column_stats, range_of, ranges_of_footer
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import META_FIELDS, RECORD_KEY
from hoodie.model.statistics import ALL_NULL, UNKNOWN, ValueRange
from hoodie.options.table import TableConfig
from hoodie.options.values import KeyGeneratorType
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind
from hoodie.view.context import Snapshot
from hoodie.view.listing import Catalogue

_FOOTER_THREADS = 16
_RANGE_BYTES = 256
"""What the bounds of a column take."""
_CACHED_SCHEMAS = 64

Kinds = Mapping[str, pa.DataType]
Known = Mapping[str, ValueRange]


class KnownRanges(NamedTuple):
    """What is known of the files of some slices."""

    ranges: tuple[Known, ...]
    """Of each file that says something."""
    unread: tuple[BaseFile, ...] = ()
    """Files whose footers may say more."""

    def ranges_of(self, name: str) -> list[ValueRange]:
        """Bounds of a column in each file."""
        return [each[name] for each in self.ranges]


class FileRanges:
    """Asks for the bounds of some columns.

    Args:
        columns: name -> the type of today.
        same: the one of them whose values are the record keys: where nothing is said of it, the bounds of those count.
    """

    def __init__(self, storage: Storage, snapshot: Snapshot, columns: Kinds, *, same: str | None = None) -> None:
        self._storage = storage
        self._snapshot = snapshot
        self._columns = columns
        self._same = same
        self._commits: dict[str, _CommitRanges | None] = {}

    def of_commits(self, slices: Iterable[FileSlice]) -> KnownRanges | None:
        """What commits say about all files of the slices; None where nothing is known of a log."""
        ranges: dict[str, Known] = {}
        unread: dict[str, BaseFile] = {}
        for file_slice in slices:
            for log in file_slice.logs:
                of_log = self._of_log(log)
                if of_log is None:
                    return None
                ranges[log.name] = of_log
            if file_slice.base is not None:
                of_base = self.of_file(file_slice.base.name, file_slice.base.instant)
                if of_base is None:
                    unread[file_slice.base.name] = file_slice.base
                else:
                    ranges[file_slice.base.name] = of_base
        return KnownRanges(tuple(ranges.values()), tuple(unread.values()))

    def by_catalogue(
        self, catalogue: Catalogue | None, gathered: Mapping[int, KnownRanges]
    ) -> Mapping[int, KnownRanges]:
        """The same with the bounds that a catalogue has of unread files, where it has those of all columns."""
        paths = [base.path for each in gathered.values() for base in each.unread]
        columns = pa.schema(list(self._columns.items()))
        bounds = catalogue.bounds(self._snapshot.timeline, paths, columns) if catalogue is not None and paths else None
        if bounds is None:
            return gathered
        rows = zip(*(bounds[name] for name in self._columns), strict=True)
        of_file = {
            path: dict(zip(self._columns, ranges, strict=True)) for path, ranges in zip(paths, rows, strict=True)
        }

        def whole(base: BaseFile) -> Known | None:
            ranges = {name: each for name, each in of_file[base.path].items() if each is not None}
            return ranges if len(ranges) == len(self._columns) else None

        return {
            at: KnownRanges(
                (*each.ranges, *(ranges for base in each.unread if (ranges := whole(base)) is not None)),
                tuple(base for base in each.unread if whole(base) is None),
            )
            for at, each in gathered.items()
        }

    def with_footers(self, gathered: Mapping[int, KnownRanges], cache: Cache) -> dict[int, KnownRanges]:
        """The same with the bounds in the footers of unread files. Each footer is read once while the cache keeps it."""
        files = [base for each in gathered.values() for base in each.unread]
        read = partial(_kept_ranges, self._storage, cache, dict(self._columns))
        footers = iter(LocalEngine(_FOOTER_THREADS).run(read, files, label="footers"))
        return {at: KnownRanges((*each.ranges, *(next(footers) for _ in each.unread))) for at, each in gathered.items()}

    def _of_log(self, log: LogFile) -> Known | None:
        """Of a log that one commit wrote and nobody added to since."""
        instants = {instant for instant, _ in log.committed_entries}
        if len(instants) != 1 or log.committed_bytes != log.size_bytes:
            return None
        return self.of_file(log.name, instants.pop())

    def of_file(self, name: str, instant: str) -> Known | None:
        """What the commit of an instant states of a file that it wrote; None where it states nothing."""
        if instant not in self._commits:
            self._commits[instant] = self._stated_by(instant)
        commit = self._commits[instant]
        entries = commit.entries.get(name) if commit is not None else None
        if commit is None or entries is None:
            return None
        result = {}
        for column, now in self._columns.items():
            stored = commit.kinds.get(column)
            if stored is None:
                result[column] = ALL_NULL  # the commit's files lack it
            else:
                entry = entries.get(column)
                if entry is None and column == self._same and stored == now:
                    entry = entries.get(RECORD_KEY)
                result[column] = converted(range_of(entry, stored), stored, now)
        return result

    def _stated_by(self, instant: str) -> _CommitRanges | None:
        statement = statement_of(self._snapshot, instant)
        return None if statement is None else _CommitRanges(decode_column_stats(statement.text), statement.kinds)


class Statement(NamedTuple):
    """What a commit says of its files, not yet decoded."""

    text: str
    """For `format/column_stats.py`."""
    kinds: Kinds
    """Of the columns in them."""


def statement_of(snapshot: Snapshot, instant: str) -> Statement | None:
    """None where the commit of the instant states nothing."""
    commit = snapshot.timeline.commit_at.get(InstantTime(instant))
    if commit is None:
        return None
    metadata = snapshot.active.read_commit(commit)
    text = metadata.extra.get(COLUMN_STATS)
    if not text or not metadata.schema_json:
        return None
    try:
        return Statement(text, _kinds_of(metadata.schema_json))
    except CorruptFileError:
        return None


def same_as_key(config: TableConfig, columns: Kinds) -> str | None:
    """The column whose values are the record keys themselves, if there is one among these."""
    if config.keygen is not KeyGeneratorType.SIMPLE or len(config.record_key_fields) != 1:
        return None
    name = config.record_key_fields[0]
    return name if name in columns and columns[name] == pa.string() else None


class _CommitRanges(NamedTuple):
    """What one commit says of its files: by name, the entry of each column; and the types of the columns in them."""

    entries: Mapping[str, Mapping[str, object]]
    kinds: Kinds


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _kinds_of(schema_json: str) -> Kinds:
    stored = arrow_from_avro(parse_schema(schema_json))
    return {field.name: field.type for field in [*META_FIELDS, *stored]}


_FOOTERS: Kind[Known] = Kind("bounds in footers")


def _kept_ranges(storage: Storage, cache: Cache, columns: Kinds, base: BaseFile) -> Known:
    name = (storage.identity, base.path, base.size_bytes, tuple(columns.items()))
    return cache.get(
        _FOOTERS, name, partial(read_ranges, storage, columns, base), lambda ranges: _RANGE_BYTES * len(ranges)
    )


def read_ranges(storage: Storage, columns: Kinds, base: BaseFile) -> Known:
    """What the footer of a base file says; nothing where it is damaged: whoever reads the file will say so."""
    try:
        with open_base_file(storage, base) as (file, metadata):
            stored = {field.name: field for field in file.schema_arrow}
            footer_ranges = ranges_of_footer(metadata, [stored[name] for name in columns if name in stored])
    except (CorruptFileError, pa.ArrowException):
        return dict.fromkeys(columns, UNKNOWN)
    lacking = ALL_NULL if base.source is None else UNKNOWN
    return {
        name: converted(footer_ranges[name], stored[name].type, kind) if name in stored else lacking
        for name, kind in columns.items()
    }
