"""Slices of a bootstrapped table: base files that have the `_hoodie_` columns alone are told which file has the others.

The index of the bootstrap says it: an HFile from partition to the files of its file groups, each value an Avro file of one record
(`HoodieBootstrapPartitionMetadata`). All base files of the bootstrap's instant are such skeletons, and none of later ones.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import fastavro
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import StorageSource
from hoodie.model.files import FileGroupId, FileSlice, SourceFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS
from hoodie.view.context import TableContext

INDEX = ".hoodie/.aux/.bootstrap/.partitions/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
INSTANT = BOOTSTRAP_INSTANTS[0]


def with_sources(context: TableContext, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """The slices, where skeletons say what completes them.

    Raises:
        CorruptFileError: the index of the bootstrap is gone or damaged, or does not know a file group.
    """
    if not context.config.bootstrap_base:
        return list(slices)
    skeletons = {s.group.partition_path for s in slices if s.base is not None and s.base.instant == INSTANT}
    if not skeletons:
        return list(slices)
    sources = _sources(context, sorted(skeletons))
    return [_completed(context, each, sources) for each in slices]


def _completed(context: TableContext, each: FileSlice, sources: Mapping[FileGroupId, SourceFile]) -> FileSlice:
    base = each.base
    if base is None or base.instant != INSTANT:
        return each
    source = sources.get(each.group)
    if source is None:
        raise CorruptFileError(
            f"{base.path} of table {context.storage.uri} is of its bootstrap, and the index of that, {INDEX}, does not say which "
            "file has its columns: restore the index from a copy"
        )
    return each._replace(base=base._replace(source=source))


def _sources(context: TableContext, partitions: Sequence[str]) -> Mapping[FileGroupId, SourceFile]:
    storage, config = context.storage, context.config
    try:
        reader = HFileReader(StorageSource(storage, storage.stat(INDEX)))
    except FileNotFoundError as exc:
        raise CorruptFileError(
            f"table {storage.uri} was bootstrapped from {config.bootstrap_base}, and {INDEX} is gone, which says what file has the "
            "columns of which: restore it from a copy"
        ) from exc
    found: dict[FileGroupId, SourceFile] = {}
    values = reader.get_many(pa.array([f"part={path}".encode() for path in partitions], pa.large_binary()))
    made = partial(
        SourceFile,
        partition_fields=config.partition_fields,
        hive_style=config.hive_style,
        url_encode=config.url_encode,
        slash_dates=bool(config.key_settings.slash_dates) and len(config.partition_fields) == 1,
    )
    for path, value in zip(partitions, values.to_pylist(), strict=True):
        for file_id, (uri, size) in (_files(value) if value is not None else {}).items():
            found[FileGroupId(path, file_id)] = made(uri, size)
    return found


def _files(value: bytes) -> Mapping[str, tuple[str, int]]:
    """File id -> address and size of the file that has its columns."""
    try:
        (record,) = fastavro.reader(io.BytesIO(value))
        files: Any = record["fileIdToBootstrapFile"]  # type: ignore[call-overload, index]
        return {str(name): (str(each["path"]["uri"]), int(each["length"])) for name, each in files.items()}
    except (ValueError, KeyError, TypeError, EOFError, IndexError) as exc:
        raise CorruptFileError(f"{INDEX}: an entry does not decode: {exc!r}; restore it from a copy") from exc
