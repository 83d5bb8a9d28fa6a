"""Metadata tables as tests write them: file groups of one partition, with the records and delete blocks that a test names."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.engine.local import LocalEngine
from hoodie.format.commit_json import encode_commit
from hoodie.format.log_block import encode_block, scan_blocks
from hoodie.format.log_content import encode_deletes, field_names
from hoodie.format.properties import format_properties
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.metadata.bounds import Bounds
from hoodie.metadata.keys import PARTITION_STATS, RECORD_INDEX, partition_keys, partition_of
from hoodie.metadata.listing import MetadataListing
from hoodie.metadata.payload import decode_locations, decode_stats
from hoodie.metadata.record_index import merged_records
from hoodie.metadata.table import MetadataTable
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import FileSlice
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.options.table import METADATA
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext, load_config
from hoodie.view.view import FileSystemView
from tests.followed import Counting
from tests.golden_tables import FOLDER
from tests.hfiles import hfile as hfile_of
from tests.memory_tables import FakeClock, opened
from tests.rows import rows_of

FIRST = "00000000000000010"
Record = Mapping[str, Any]

_TABLE = FOLDER / "v6_mdt_cow" / "table"
CONFIG = load_config(LocalStorage(str(_TABLE)))
SCHEMA = (
    HFileReader(BufferSource(next((_TABLE / METADATA_TABLE / "files").glob("*.hfile")).read_bytes(), "golden"))
    .info[b"schema"]
    .decode()
)
"""Of the records that Apache Hudi 1.2.0 writes."""
_PARSED = fastavro.parse_schema(json.loads(SCHEMA))


def t(number: int) -> str:
    return f"20260101000000{number:03d}"


class Made:
    """A metadata table in memory. The table that it is of has its timeline alone."""

    def __init__(self, partition: str) -> None:
        self.storage = MemoryStorage()
        self.partition = partition
        self._stats: dict[str, list[WriteStat]] = {}
        self._logs: dict[str, int] = {}
        self._write(".hoodie/hoodie.properties", b"hoodie.table.version=6\nhoodie.archivelog.folder=archived\n")

    def base(self, group: str, instant: str, records: Mapping[str | bytes, Record]) -> None:
        """The base file of a file group, written by this instant."""
        self._file(group, f"{group}_0-0-0_{instant}.hfile", instant, hfile(records))

    def log(
        self,
        group: str,
        base: str,
        instant: str,
        records: Mapping[str, Record] | None = None,
        *,
        deleted: Sequence[str] = (),
    ) -> None:
        """A log file on the slice that began at `base`, with a block of records or of deleted keys."""
        number = self._logs[group] = self._logs.get(group, 0) + 1
        header = {HeaderKey.INSTANT_TIME: instant}
        if records is None:
            keys, paths = (pa.array(each, pa.string()) for each in (list(deleted), [self.partition] * len(deleted)))
            block = encode_block(BlockKind.DELETE, header, encode_deletes(keys, paths, None))
        else:
            block = encode_block(BlockKind.HFILE_DATA, {**header, HeaderKey.SCHEMA: SCHEMA}, hfile(records))
        self._file(group, f".{group}_{base}.log.{number}_0-0-0", instant, block)

    def opened(self, table: Sequence[str] | None = None, *, inflight: str = "") -> MetadataTable:
        """The metadata table for a snapshot whose timeline has files of these names; by default it has kept up."""
        for instant, stats in self._stats.items():
            if not self.storage.exists(f"{METADATA_TABLE}/.hoodie/{instant}.deltacommit"):
                commit = CommitMetadata(write_stats={self.partition: tuple(stats)}, schema_json=SCHEMA)
                self._write(f".hoodie/{instant}.deltacommit", encode_commit(commit))
        named = {METADATA: f"{self.partition},files", f"{METADATA}.inflight": inflight}
        self.storage.replace(PROPERTIES, format_properties(named, comment=[]).encode())
        config = replace(CONFIG, raw=named)
        names = [f"{each}.deltacommit" for each in self._stats if each != FIRST] if table is None else table
        return MetadataTable.open(self.storage, config, Timeline.from_file_names(names), Cache())

    def _file(self, group: str, name: str, instant: str, data: bytes) -> None:
        path = f"{self.partition}/{name}"
        self._write(path, data)
        stat = WriteStat(group, self.partition, path, num_writes=1, file_size_bytes=len(data))
        self._stats.setdefault(instant, []).append(stat)

    def _write(self, path: str, data: bytes) -> None:
        self.storage.create_new(f"{METADATA_TABLE}/{path}", data)


def hfile(records: Mapping[str | bytes, Record]) -> bytes:
    pairs = sorted((key.encode() if isinstance(key, str) else key, encoded(record)) for key, record in records.items())
    return hfile_of(pairs, infos={b"schema": SCHEMA.encode()})


def encoded(record: Record) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _PARSED, {"key": "", **record})
    return body.getvalue()


def files(sizes: Mapping[str, int], *, deleted: Iterable[str] = ()) -> Record:
    """The record of a partition's files."""
    added = {name: {"size": size, "isDeleted": False} for name, size in sizes.items()}
    return {"type": 2, "filesystemMetadata": {**added, **{name: {"size": 0, "isDeleted": True} for name in deleted}}}


def location(
    partition: str, *, high: int = -1, low: int = -1, index: int = -1, file_id: str = "", written: int = 0
) -> Record:
    """The record of a key: the halves of a UUID, or a file id as a text."""
    info = {
        "partitionName": partition,
        "fileIdHighBits": high,
        "fileIdLowBits": low,
        "fileIndex": index,
        "fileId": file_id,
        "instantTime": written,
        "fileIdEncoding": 1 if file_id else 0,
    }
    return {"type": 5, "recordIndexMetadata": info}


def bloom(kind: str, text: str, *, deleted: bool = False) -> Record:
    filled = {"type": kind, "timestamp": t(1), "bloomFilter": text.encode(), "isDeleted": deleted}
    return {"type": 4, "BloomFilterMetadata": filled}


def stats(
    column: str,
    wrapper: str | None,
    low: Any = None,
    high: Any = None,
    *,
    nulls: int = 0,
    values: int = 1,
    deleted: bool = False,
    tight: bool = False,
) -> Record:
    """The record of a column in a file."""

    def bound(value: Any) -> Any:
        return None if wrapper is None else (f"org.apache.hudi.avro.model.{wrapper}", {"value": value})

    filled = {
        "fileName": "a file",
        "columnName": column,
        "minValue": bound(low),
        "maxValue": bound(high),
        "nullCount": nulls,
        "valueCount": values,
        "totalSize": 1,
        "totalUncompressedSize": 1,
        "isDeleted": deleted,
        "isTightBound": tight,
    }
    return {"type": 3, "ColumnStatsMetadata": filled}


def counted(slices: Iterable[FileSlice]) -> list[FileSlice]:
    """Without the logs of writes that are pending or were rolled back, which folders have."""
    found = []
    for piece in slices:
        logs = tuple(log for log in piece.logs if log.committed_bytes)
        if piece.base is not None or logs:
            found.append(piece._replace(logs=logs))
    return found


# -- metadata tables that we keep up -----------------------------------------------------------------------------------

BY_FOLDERS = {"hoodie.metadata.enable": "false"}


class NoFolders:
    """A listing that must not be asked."""

    uri = "no folders"

    def files(self, partition_paths):
        raise AssertionError(f"listed {partition_paths}")

    def all_files(self):
        raise AssertionError("listed all")


def check(path):
    check_storage(LocalStorage(str(path)))


def check_storage(storage):
    """The metadata table is there, and shows what the folders show."""
    context = TableContext.open(storage, LocalEngine(), cache=Cache())
    snapshot = context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    assert table.partitions() is not None, table.reasons
    view = FileSystemView(MetadataListing(table, NoFolders()), context.active, snapshot.timeline, snapshot.archived)
    assert set(view.partitions()) <= set(snapshot.view.partitions())
    assert counted(view.latest_slices()) == counted(snapshot.view.latest_slices())
    counting = Counting(storage)
    rows = rows_of(opened(counting, cache=Cache()).scan().to_arrow())
    assert counting.listed == []
    assert rows == rows_of(opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow())


def changed(rows, count):
    """Newer versions of the first rows."""
    part = rows.slice(0, count)
    ts = part.schema.get_field_index("ts")
    newer = pa.array([(value or 0) + 1000 for value in part["ts"].to_pylist()], part.schema.field(ts).type)
    return part.set_column(ts, part.schema.field(ts), newer)


def after_each_action(table, rows):
    """Every action on a merge-on-read table with partition "b", one after the other; the caller looks at the table in between."""
    yield
    table.upsert(changed(rows, 5))
    yield
    table.delete(rows.slice(0, 2))
    yield
    table.compact()
    yield
    table.upsert(changed(rows, 4))
    table.rollback(table.timeline.commits[-1].time)
    yield
    saved = table.savepoint()
    table.upsert(changed(rows, 3))
    table.upsert(changed(rows, 3))
    assert table.compact_logs(blocks=1)
    yield
    table.cluster(sort_by="ts")
    yield
    table.insert_overwrite(changed(rows, 1))
    yield
    table.delete_partitions(["b"])
    yield
    table.restore(saved)
    yield
    table.drop_savepoint(saved)
    table.upsert(changed(rows, 3))
    table.clean(retain_commits=1)
    yield


def loaded(name):
    """A golden table in memory."""
    root, storage = FOLDER / name / "table", MemoryStorage(clock=FakeClock(1_796_000_000.0))
    for file in sorted(each for each in root.rglob("*") if each.is_file()):
        storage.create_new(file.relative_to(root).as_posix(), file.read_bytes())
    return storage


def read(storage, options=None):
    return rows_of(opened(storage, options=options, cache=Cache()).scan().to_arrow())


def wrote(storage, rows):
    clock = getattr(storage, "_inner", storage).clock
    opened(storage, clock, cache=Cache()).upsert(rows)


def check_bounds(storage):
    """The bounds of files and of partitions admit all rows; those of partitions are there for each column of each partition."""
    context = TableContext.open(storage, LocalEngine(), cache=Cache())
    snapshot, table = context.snapshot(), opened_metadata(storage)
    slices = snapshot.view.latest_slices()
    columns = pa.schema([field for field in snapshot.schema if not pa.types.is_nested(field.type)])
    bases = [each.base.path for each in slices if each.base is not None]
    logs = [log.path for each in slices for log in each.logs if log.committed_entries]
    of_files = table.column_stats([*bases, *logs], columns)
    assert of_files is not None, table.reasons
    for name, stats in of_files.items():
        missing = [path for path, known in zip([*bases, *logs], stats["values"].is_valid().to_pylist()) if not known]
        assert not any(has_rows(storage, path, name) for path in missing), (name, missing)
    paths = sorted({each.group.partition_path for each in slices})
    rows = opened(storage, options=BY_FOLDERS, cache=Cache()).scan(meta_columns=True).to_arrow()
    for column in columns:
        keys = pa.array([partition_keys(path, [column.name])[0] for path in paths], pa.string())
        bounds = Bounds(column.type, len(paths))
        for found in table._newest(PARTITION_STATS, keys):
            for stats in decode_stats(found.values, found.schema):
                bounds.add(found.rows[stats.rows], stats.columns)
        for path, row in zip(paths, bounds.table().to_pylist(), strict=True):
            mine = rows.filter(pa.compute.equal(rows["_hoodie_partition_path"], path))
            there = pa.compute.min_max(mine[column.name]).as_py()
            if not mine.num_rows - mine[column.name].null_count and row["values"] is None:
                continue  # no file of it has the column
            assert row["values"] is not None, (path, column.name)
            # A bound that is NaN comes as one that is not known.
            if there["min"] is not None and row["high"] is not None:
                assert row["low"] <= there["min"] <= there["max"] <= row["high"], (path, column.name, row, there)
            assert row["nulls"] >= mine[column.name].null_count


def has_rows(storage, path, column):
    """Whether there are rows with the column in a log, or in a base file."""
    if path.endswith(".parquet"):
        return column in pq.read_schema(pa.BufferReader(storage.read(path))).names
    blocks = scan_blocks(storage.read(path))
    return any(
        column in field_names(block.header[HeaderKey.SCHEMA]) for block in blocks if block.kind is not BlockKind.DELETE
    )


# -- record indexes -----------------------------------------------------------------------------------------------------

KEYS = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.record.index.min.filegroup.count": "3"}

KEYS_BY_PARTITION = {
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
}


def opened_metadata(storage):
    context = TableContext.open(storage, LocalEngine(), cache=Cache())
    return MetadataTable.open(context.storage, context.config, context.snapshot().timeline, Cache())


def trusts_index(storage):
    return opened_metadata(storage).record_index() is not None


def places_in_index(storage):
    """Key -> (partition path, file id), all that the record index has; of one by partitions, (partition path, key) -> that."""
    table = opened_metadata(storage)
    index = table.record_index()
    assert index is not None, table.reasons
    found = {}
    for number in range(len(index.pieces)):
        keys, values = merged_records(table.layers_of(RECORD_INDEX, number), SCHEMA)
        where = decode_locations(values, SCHEMA)
        for key, path, file_id in zip(
            keys.to_pylist(), *(where[n].to_pylist() for n in where.column_names[:2]), strict=True
        ):
            path = partition_of(path)
            at = key.decode() if index.shares is None else (path, key.decode())
            assert at not in found
            found[at] = path, file_id
            if index.shares is not None:
                share = index.shares[path]
                assert share.first <= number < share.first + share.groups
    return found


def places_of_rows(storage, *, by_partition=False):
    """The same, by the rows that are there."""
    rows = opened(storage, options=BY_FOLDERS, cache=Cache()).scan(meta_columns=True).to_arrow().to_pylist()
    found = {}
    for row in rows:
        path, key = row["_hoodie_partition_path"], row["_hoodie_record_key"]
        found[(path, key) if by_partition else key] = path, row["_hoodie_file_name"].split("_")[0]
    assert len(found) == len(rows), "a key is there twice"
    return found


def check_index(storage):
    """The record index says of each row where it is, and nothing else."""
    index = opened_metadata(storage).record_index()
    by_partition = index is not None and index.shares is not None
    assert places_in_index(storage) == places_of_rows(storage, by_partition=by_partition)
