"""Publishing on a disk: by hard links out of a folder that each instant has, and a rename that takes it away.

Files are moved from the folder, and the completed file is linked to its name from inside it. So the rename is the one step that
ends a writer, alive, paused or dead.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO

from hoodie.model.instant import is_instant_time
from hoodie.model.names import MARKERS, STAGING, join, staging_folder
from hoodie.model.plans import StagedFile
from hoodie.publish.marker_files import put_markers
from hoodie.storage.base import RenamingStorage

_FENCED = ".rolled-back"
_EPOCH = "epoch-"


class RenamingPublisher:
    """`leased`: the table lock can end while its holder sleeps, so that epochs are needed.

    An epoch is an empty folder inside the instant's. The completed file is linked to its name from inside it, and who makes
    the instant advance gives it another name.
    """

    def __init__(self, storage: RenamingStorage, *, leased: bool = False) -> None:
        self._storage = storage
        self._leased = leased

    def staging(self, instant: str) -> str:
        return staging_folder(instant)

    def begin(self, instant: str) -> None:
        self._storage.delete_folder(staging_folder(instant))
        epoch = [f"{_EPOCH}0"] if self._leased else []
        self._storage.mkdirs(join(staging_folder(instant), *epoch), durable=False)

    def open_staged(self, path: str, *, within: str, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        return self._storage.open_output(path, within=within or None, durable=durable)  # the table's own folder stands

    def stage_all(self, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
        self._storage.create_all(files, within=within)

    def publish(
        self,
        instant: str,
        files: Sequence[StagedFile],
        *,
        gathered: bool = False,
        stage_more: Callable[[], Sequence[StagedFile]] = tuple,
    ) -> Sequence[str]:
        all_files = [*files, *stage_more()]
        put_markers(self._storage, instant, files, gathered=gathered)
        self._storage.move_all_new([(file.staged, file.final) for file in all_files])
        return ()

    def epoch(self, instant: str) -> Hashable:
        if not self._leased:
            return None  # the system takes a lock on a disk back from the dead only
        folder = self._epoch_folder(instant)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), staging_folder(instant))
        return folder

    def advance(self, instant: str) -> bool:
        if not self._leased:
            return False
        folder = self._epoch_folder(instant)
        if folder is not None:
            # Not there any more: another made it advance, or it was fenced.
            with suppress(FileNotFoundError):
                self._storage.rename_folder(folder, join(staging_folder(instant), f"{_EPOCH}{secrets.token_hex(8)}"))
        return True  # it may have been completed just before

    def complete(self, instant: str, path: str, data: bytes, epoch: Hashable) -> None:
        self._storage.create_new(path, data, via=str(epoch) if self._leased else staging_folder(instant))

    def _epoch_folder(self, instant: str) -> str | None:
        infos = self._storage.list(staging_folder(instant))
        return next((i.path for i in infos if i.is_folder and i.name.startswith(_EPOCH)), None)

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

    def clear(self, instant: str, paths: Sequence[str] | None = None, others: Sequence[str] = ()) -> None:
        self._storage.delete_folder(join(MARKERS, instant))
        self._storage.delete_all(others)
        self._storage.delete_folder(staging_folder(instant))

    def forget(self, name: str) -> None:
        if is_instant_time(name):
            self._storage.delete_folder(join(MARKERS, name))
        self._storage.delete_folder(_fenced_folder(name))
        self._storage.delete_folder(staging_folder(name))

    def remains(self) -> frozenset[str]:
        return frozenset(info.name.removesuffix(_FENCED) for info in self._storage.list(STAGING) if info.is_folder)


def _fenced_folder(instant: str) -> str:
    """Where the staging folder of an instant is moved, so that its writer does not find it any more."""
    return staging_folder(instant) + _FENCED
