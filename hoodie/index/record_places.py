"""Look-ups of a batch's keys in a record index: which rows have their keys in which file group. No file of the table is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, MissingFileError, UnsupportedTableError
from hoodie.filegroup.chunks import load_chunk, make_matches
from hoodie.metadata.key_places import RecordIndex
from hoodie.model.files import FileGroupId
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import Chunk, Matches
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache

RECORD_INDEX = "record index"
"""How a look-up was done."""
_TASK_ROWS = 500_000
_DISTRUST = (CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError, pa.ArrowInvalid)


@dataclass(frozen=True)
class PlacesTask:
    """Look the keys of some chunks up."""

    chunks: tuple[tuple[int, Chunk], ...]
    """With their numbers in the batch."""
    index: RecordIndex
    stage_to: str | None = None
    """Folder for the row numbers; None keeps them in memory."""

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for _, chunk in self.chunks)


class FoundPlaces(NamedTuple):
    places: tuple[tuple[FileGroupId, Matches], ...]
    problem: str | None = None
    """Why the index cannot be used."""


def plan_places(chunks: Sequence[Chunk], index: RecordIndex, *, stage_to: str | None) -> list[PlacesTask]:
    """Tasks of about half a million keys: each opens the file groups that hold some of them."""
    packs: list[list[tuple[int, Chunk]]] = []
    room = 0
    for number, chunk in enumerate(chunks):
        if not chunk.rows:
            continue
        if not packs or chunk.rows > room:
            packs.append([])
            room = _TASK_ROWS
        packs[-1].append((number, replace(chunk, ranges=())))
        room -= chunk.rows
    return [PlacesTask(tuple(pack), index, stage_to) for pack in packs]


def run_places(storage: Storage, cache: Cache, task: PlacesTask) -> FoundPlaces:
    """The rows whose keys are stored, by file group and chunk."""
    matches_of: list[tuple[FileGroupId, Matches]] = []
    try:
        for number, chunk in task.chunks:
            rows_of = load_chunk(storage, chunk)
            keys, paths = (rows_of.column(name).combine_chunks() for name in (RECORD_KEY, PARTITION_PATH))
            for group, rows in _by_group(task.index.places(storage, cache, keys, paths)):
                matches_of.append((group, make_matches(number, rows, storage=storage, stage_to=task.stage_to)))
    except _DISTRUST as exc:
        return FoundPlaces((), str(exc))
    return FoundPlaces(tuple(matches_of))


def _by_group(places: pa.Table) -> Sequence[tuple[FileGroupId, np.ndarray]]:
    """The numbers of the keys, which ascend, by the file group that they are in."""
    rows = np.flatnonzero(places["file_id"].is_valid())
    if not len(rows):
        return []
    paths, ids = (_encoded(places[name].take(pa.array(rows))) for name in ("partition_path", "file_id"))
    codes = paths.indices.to_numpy().astype(np.int64) * len(ids.dictionary) + ids.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return [(FileGroupId(paths[int(part[0])].as_py(), ids[int(part[0])].as_py()), rows[part]) for part in parts]


def _encoded(column: Any) -> Any:
    return column.combine_chunks().dictionary_encode()
