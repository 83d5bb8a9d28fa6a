"""The index of a bootstrap as it is written: which file of the source completes which skeleton, by partition and by file group.

Two HFiles of Avro container files, as Apache Hudi's `HFileBootstrapIndexWriter` makes them; `view/bootstrap.py` reads the first.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from hoodie.format.plan_avro import encode_plan
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.storage.base import Storage
from hoodie.view.bootstrap import INDEX

INDEX_BY_FILE = INDEX.replace("/.partitions/", "/.fileids/")
_INFO = b"INDEX_INFO"
_BLOCK_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Mapped:
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


def write_index(storage: Storage, base: str, mapped: Sequence[Mapped], *, made_ms: int) -> None:
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


def _partition(path: str, files: Sequence[Mapped]) -> bytes:
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
