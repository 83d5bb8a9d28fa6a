"""Base files of a bootstrapped table that have the `_hoodie_` columns alone are told which file has the others.

The index of the bootstrap says it: an HFile from partition to the files of its file groups, each value an Avro file of one record
(`HoodieBootstrapPartitionMetadata`). All base files of the bootstrap's instant are such skeletons, and none of later ones.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.plan_avro import decode_plan, encode_plan
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import StorageSource
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.model.files import FileGroup, FileSlice, SourceFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS
from hoodie.model.late import once
from hoodie.model.names import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE, doctor_of
from hoodie.options.table import TableConfig
from hoodie.storage.base import Storage

INSTANT = BOOTSTRAP_INSTANTS[0]


class BootstrapIndex:
    """Of one table; it is opened when a skeleton is found."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage, self._config = storage, config

    def completed(self, partition_path: str, groups: Sequence[FileGroup]) -> tuple[FileGroup, ...]:
        """The file groups of a partition with skeletons, which say what completes them.

        Raises:
            CorruptFileError: the index is gone or damaged, or does not know a file group.
        """
        sources = self._sources(partition_path)
        return tuple(
            group._replace(slices=tuple(self._completed(each, sources) for each in group.slices)) for group in groups
        )

    def _completed(self, each: FileSlice, sources: Mapping[str, SourceFile]) -> FileSlice:
        if each.base is None or not _is_skeleton(each):
            return each
        source = sources.get(each.group.file_id)
        if source is None:
            raise CorruptFileError(
                f"{each.base.path} of table {self._storage.uri} is of its bootstrap, and the index of that, {BOOTSTRAP_INDEX}, does "
                f"not say which file has its columns: {doctor_of(self._storage.uri)}"
            )
        return each._replace(base=each.base._replace(source=source))

    def source(self, partition_path: str, file_id: str) -> SourceFile | None:
        """What completes a skeleton.

        Raises:
            CorruptFileError: as `completed`.
        """
        return self._sources(partition_path).get(file_id)

    def _sources(self, partition_path: str) -> Mapping[str, SourceFile]:
        """By file id."""
        config = self._config
        (value,) = self._reader.get_many(pa.array([f"part={partition_path}".encode()], pa.large_binary())).to_pylist()
        return {
            file_id: SourceFile(
                uri,
                size,
                partition_fields=config.partition_fields,
                hive_style=config.hive_style,
                url_encode=config.url_encode,
                slash_dates=bool(config.key_settings.slash_dates) and len(config.partition_fields) == 1,
            )
            for file_id, (uri, size) in (_files(value) if value is not None else {}).items()
        }

    @once
    def _reader(self) -> HFileReader:
        storage = self._storage
        try:
            return HFileReader(StorageSource(storage, storage.stat(BOOTSTRAP_INDEX)))
        except FileNotFoundError as exc:
            raise CorruptFileError(
                f"table {storage.uri} was bootstrapped from {self._config.bootstrap_base or 'other files'}, and {BOOTSTRAP_INDEX} is "
                f"gone, which says what file has the columns of which: {doctor_of(storage.uri)}"
            ) from exc


def _is_skeleton(each: FileSlice) -> bool:
    return each.base is not None and each.base.instant == INSTANT


def _files(value: bytes) -> Mapping[str, tuple[str, int]]:
    """File id -> address and size of the file that has its columns."""
    try:
        (record,) = fastavro.reader(io.BytesIO(value))
        files: Any = record["fileIdToBootstrapFile"]  # type: ignore[call-overload, index]
        return {str(name): (str(each["path"]["uri"]), int(each["length"])) for name, each in files.items()}
    except (ValueError, KeyError, TypeError, EOFError, IndexError) as exc:
        raise CorruptFileError(f"{BOOTSTRAP_INDEX}: an entry does not decode: {exc!r}; restore it from a copy") from exc


_INFO = b"INDEX_INFO"
_BLOCK_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class SkeletonSource:
    """A skeleton and the file that completes it."""

    partition_path: str
    file_id: str
    source_folder: str
    """In the source."""
    uri: str
    """As Hadoop writes paths: nothing in it is encoded."""
    size_bytes: int
    changed_ms: int

    @property
    def status(self) -> Mapping[str, Any]:
        return {
            "version": 1,
            "path": {"version": 1, "uri": self.uri},
            "length": self.size_bytes,
            "isDir": False,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "modificationTime": self.changed_ms,
            "accessTime": self.changed_ms,
        }


class IndexContent(NamedTuple):
    """What one of the two files of the index says; both say the same."""

    base: str | None
    """Where the source is; None: the file does not say it."""
    made_ms: int
    mapped: Sequence[SkeletonSource]


def read_index(storage: Storage, path: str) -> IndexContent:
    """All of one of the two files.

    Raises:
        FileNotFoundError: it is gone. CorruptFileError: it does not decode.
    """
    reader = HFileReader(StorageSource(storage, storage.stat(path)))
    note = reader.info.get(_INFO)
    info: Mapping[str, Any] = {} if note is None else decode_plan("HoodieBootstrapIndexInfo", note, path=path)
    cells = [each for batch in reader.scan() for each in batch.to_pylist()]
    mapped = _by_file(cells, path) if path == BOOTSTRAP_INDEX_BY_FILE else _by_partition(cells, path)
    return IndexContent(info.get("bootstrapBasePath"), int(info.get("createdTimestamp") or 0), tuple(mapped))


def _by_partition(cells: Iterable[Mapping[str, bytes]], path: str) -> Iterator[SkeletonSource]:
    for cell in cells:
        record = decode_plan("HoodieBootstrapPartitionMetadata", cell["value"], path=path, exact=False)
        for file_id, status in record["fileIdToBootstrapFile"].items():
            yield _mapped(record, file_id, status)


def _by_file(cells: Iterable[Mapping[str, bytes]], path: str) -> Iterator[SkeletonSource]:
    for cell in cells:
        record = decode_plan("HoodieBootstrapFilePartitionInfo", cell["value"], path=path, exact=False)
        file_id = cell["key"].rpartition(b";fileid=")[2].decode()
        yield _mapped(record, file_id, record["bootstrapFileStatus"])


def _mapped(record: Mapping[str, Any], file_id: str, status: Mapping[str, Any]) -> SkeletonSource:
    return SkeletonSource(
        record["partitionPath"],
        file_id,
        record["bootstrapPartitionPath"],
        status["path"]["uri"],
        status["length"],
        status["modificationTime"],
    )


def write_index(storage: Storage, base: str, mapped: Sequence[SkeletonSource], *, made_ms: int) -> None:
    """Both files; `base`: where the source is."""
    ordered = sorted(mapped, key=lambda each: each.partition_path.encode())
    partitions = {
        f"part={path}": _partition(path, list(files))
        for path, files in groupby(ordered, lambda each: each.partition_path)
    }
    files = {
        f"part={each.partition_path};fileid={each.file_id}": encode_plan(
            "HoodieBootstrapFilePartitionInfo",
            {
                "version": 1,
                "bootstrapPartitionPath": each.source_folder,
                "bootstrapFileStatus": each.status,
                "partitionPath": each.partition_path,
            },
        )
        for each in mapped
    }
    for path, entries in ((BOOTSTRAP_INDEX, partitions), (BOOTSTRAP_INDEX_BY_FILE, files)):
        storage.replace(path, _hfile(entries, base, made_ms))


def _partition(path: str, files: Sequence[SkeletonSource]) -> bytes:
    return encode_plan(
        "HoodieBootstrapPartitionMetadata",
        {
            "version": 1,
            "bootstrapPartitionPath": files[0].source_folder,
            "partitionPath": path,
            "fileIdToBootstrapFile": {each.file_id: each.status for each in files},
        },
    )


def _hfile(entries: Mapping[str, bytes], base: str, made_ms: int) -> bytes:
    out = io.BytesIO()
    writer = HFileWriter(out, HFileOptions(bloom_rate=None))
    cells = sorted((key.encode(), value) for key, value in entries.items())
    keys, values = (pa.array(column, pa.large_binary()) for column in zip(*cells, strict=True))
    writer.write(keys, values)
    info = {"version": 1, "bootstrapBasePath": base, "createdTimestamp": made_ms, "numKeys": len(entries)}
    writer.add_info(_INFO, encode_plan("HoodieBootstrapIndexInfo", info))
    writer.finish()
    return out.getvalue()
