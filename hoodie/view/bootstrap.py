"""Base files of a bootstrapped table that have the `_hoodie_` columns alone are told which file has the others.

The index of the bootstrap says it: an HFile from partition to the files of its file groups, each value an Avro file of one record
(`HoodieBootstrapPartitionMetadata`). All base files of the bootstrap's instant are such skeletons, and none of later ones.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import fastavro
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.plan_avro import encode_plan
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import StorageSource
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.model.files import FileGroup, FileSlice, SourceFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS
from hoodie.model.late import once
from hoodie.options.table import TableConfig
from hoodie.storage.base import Storage

INDEX = ".hoodie/.aux/.bootstrap/.partitions/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
INSTANT = BOOTSTRAP_INSTANTS[0]


class BootstrapIndex:
    """Of one table; it is opened when a skeleton is found."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage, self._config = storage, config

    def completed(self, partition_path: str, groups: Sequence[FileGroup]) -> tuple[FileGroup, ...]:
        """The file groups of a partition, where skeletons say what completes them.

        Raises:
            CorruptFileError: the index is gone or damaged, or does not know a file group.
        """
        if not any(_is_skeleton(each) for group in groups for each in group.slices):
            return tuple(groups)
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
                f"{each.base.path} of table {self._storage.uri} is of its bootstrap, and the index of that, {INDEX}, does not say "
                "which file has its columns: restore the index from a copy"
            )
        return each._replace(base=each.base._replace(source=source))

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
            return HFileReader(StorageSource(storage, storage.stat(INDEX)))
        except FileNotFoundError as exc:
            raise CorruptFileError(
                f"table {storage.uri} was bootstrapped from {self._config.bootstrap_base}, and {INDEX} is gone, which says what file "
                "has the columns of which: restore it from a copy"
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
        raise CorruptFileError(f"{INDEX}: an entry does not decode: {exc!r}; restore it from a copy") from exc


INDEX_BY_FILE = INDEX.replace("/.partitions/", "/.fileids/")
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
    for path, entries in ((INDEX, partitions), (INDEX_BY_FILE, files)):
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
