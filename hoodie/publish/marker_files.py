"""Markers of the files that an instant is about to give names: an empty file each, or all of them in one, a line each.

Who rolls an instant of ours back needs none: it finds the files by listing. Apache Hudi's writers go by them. `MARKERS.type` tells
which form it is; where it is not there, it is the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from hoodie.model.names import MARKERS, join, marker_path
from hoodie.model.plans import StagedFile
from hoodie.storage.base import Storage

TYPE_FILE = "MARKERS.type"
GATHERED = b"TIMELINE_SERVER_BASED"
"""What stands in it where markers are gathered: Apache Hudi's timeline server has them so."""
PREFIX = "MARKERS"


def put_markers(
    storage: Storage, instant: str, files: Iterable[StagedFile], *, gathered: bool = False
) -> Sequence[str]:
    """A marker for each file that states one, before any of them has its name; gives the paths of what was written. More may follow
    for the same instant.
    """
    marked = [file for file in files if file.marker]
    if not gathered:
        paths = []
        for file in marked:
            partition_path, _, name = file.final.rpartition("/")
            paths.append(marker_path(instant, partition_path, name, file.marker))
        storage.each(storage.touch, paths)
        return paths
    if marked:
        folder = join(MARKERS, instant)
        if not storage.exists(join(folder, TYPE_FILE)):
            storage.replace(join(folder, TYPE_FILE), GATHERED)
        names = encode_markers([f"{file.final}.marker.{file.marker}" for file in marked])
        for number in count():
            try:
                storage.create_new(join(folder, f"{PREFIX}{number}"), names)
            except FileExistsError:
                continue  # of an earlier part of the same write
            return [join(folder, TYPE_FILE), join(folder, f"{PREFIX}{number}")]
    return ()


def encode_markers(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def read_marker_files(storage: Storage, folder: str) -> Mapping[int, list[str]]:
    """Number of each file of gathered markers -> the markers in it."""
    result = {}
    for info in storage.list(folder):
        number = info.name.removeprefix(PREFIX)
        if number.isdigit():
            result[int(number)] = [line for line in storage.read(info.path).decode().splitlines() if line]
    return result
