"""Publishing on a disk: by hard links out of a folder that each instant has, and a rename that takes it away.

Files are moved from the folder, and the completed file is linked to its name from inside it. So the rename is the one step that
ends a writer, alive, paused or dead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO

from hoodie.model.instant import is_instant_time
from hoodie.model.names import MARKERS, STAGING, join, marker_path, staging_folder
from hoodie.model.plans import StagedFile
from hoodie.storage.base import RenamingStorage

_FENCED = ".rolled-back"


class RenamingPublisher:
    def __init__(self, storage: RenamingStorage) -> None:
        self._storage = storage

    def staging(self, instant: str) -> str:
        return staging_folder(instant)

    def begin(self, instant: str) -> None:
        self._storage.delete_folder(staging_folder(instant))
        self._storage.mkdirs(staging_folder(instant), durable=False)

    def open_staged(self, path: str, *, within: str, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        return self._storage.open_output(path, within=within, durable=durable)

    def publish(self, instant: str, files: Sequence[StagedFile]) -> None:
        for file in files:
            if file.marker:
                partition_path, _, name = file.final.rpartition("/")
                self._storage.touch(marker_path(instant, partition_path, name, file.marker))
        self._storage.move_all_new([(file.staged, file.final) for file in files])

    def epoch(self, instant: str) -> Hashable:
        return None  # the system takes a lock on a disk back from the dead only

    def advance(self, instant: str) -> bool:
        return False

    def complete(self, instant: str, path: str, data: bytes, epoch: Hashable) -> None:
        self._storage.create_new(path, data, via=staging_folder(instant))

    def fence(self, instant: str) -> None:
        staging, fenced = staging_folder(instant), _fenced_folder(instant)
        try:
            self._storage.rename_folder(staging, fenced)
        except FileNotFoundError:
            return  # another kind of writer, or an earlier try
        except FileExistsError:
            self._storage.delete_folder(fenced)
            self._storage.rename_folder(staging, fenced)

    def abandon(self, instant: str) -> None:
        self._storage.delete_folder(staging_folder(instant))

    def clear(self, instant: str) -> None:
        self._storage.delete_folder(join(MARKERS, instant))
        self._storage.delete_folder(staging_folder(instant))

    def forget(self, name: str) -> None:
        if is_instant_time(name):
            self._storage.delete_folder(join(MARKERS, name))
        self._storage.delete_folder(_fenced_folder(name))
        self._storage.delete_folder(staging_folder(name))

    def remains(self) -> frozenset[str]:
        return frozenset(
            info.path.rpartition("/")[2].removesuffix(_FENCED) for info in self._storage.list(STAGING) if info.is_folder
        )


def _fenced_folder(instant: str) -> str:
    """Where the staging folder of an instant is moved, so that its writer does not find it any more."""
    return staging_folder(instant) + _FENCED
