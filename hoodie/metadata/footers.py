"""Footers of base files, from which bounds of columns and bloom filters go into a metadata table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from hoodie.filegroup.slice_reader import open_base_file
from hoodie.metadata.partition import Scope, TableFiles
from hoodie.model.files import BaseFile
from hoodie.model.names import parse_base_file
from hoodie.storage.base import Storage

Footers = Mapping[tuple[str, str], pq.FileMetaData]
"""Partition path and file name -> footer."""


def read_footers(storage: Storage, files: Mapping[str, Mapping[str, int]]) -> Footers:
    """The footers of the Parquet files among these; `files`: partition path -> name -> size.

    Raises:
        CorruptFileError, FileNotFoundError: one is damaged or gone.
    """
    bases = list(_bases(files))

    def read(base: BaseFile) -> pq.FileMetaData:
        with open_base_file(storage, base, whole=True) as (_, footer):
            return footer

    footers = storage.each(read, bases)
    return {(base.partition_path, base.name): footer for base, footer in zip(bases, footers, strict=True)}


def of_footers(
    scope: Scope, files: TableFiles, kind: Hashable, make: Callable[[str, str, pq.FileMetaData], Any]
) -> list[Any]:
    """What `make` gives for each Parquet file among these, of its partition path, its name and its footer. Footers that the scope
    has seen for this kind of record are not read again.

    Raises:
        CorruptFileError, FileNotFoundError: a file is damaged or gone.
    """
    cache = scope.cache
    fresh = {
        path: {name: size for name, size in sizes.items() if (kind, path, name) not in cache}
        for path, sizes in files.items()
    }
    for (path, name), footer in read_footers(scope.context.storage, fresh).items():
        cache[kind, path, name] = make(path, name, footer)
    places = ((kind, path, name) for path, sizes in files.items() for name in sizes)
    return [cache[place] for place in places if place in cache]


def _bases(files: Mapping[str, Mapping[str, int]]) -> Iterator[BaseFile]:
    for path, sizes in files.items():
        for name, size_bytes in sizes.items():
            parsed = parse_base_file(name)
            if parsed is not None and name.endswith(".parquet"):
                yield BaseFile(path, parsed.file_id, parsed.instant, name, size_bytes)
