"""Writing the archived timeline: files of instants are added, and small ones are put together.

An archive file appears whole and holds each of its instants in every state. Who dies before the instants have left the active
timeline leaves them in both: the archive is read without them, and the next one to archive does not add them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count

from hoodie.format.archive import archive_number
from hoodie.format.archive_entries import StateFile
from hoodie.format.layout import Layout
from hoodie.model.names import COMPLETES_AS, join
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.lsm_writer import LsmArchiveWriter

SMALL_BYTES = 20 * 1024 * 1024
"""Files below are put together, as Apache Hudi 0.x did (`hoodie.archive.merge.small.file.limit.bytes`)."""
_LOOKED_INTO_BYTES = 1024 * 1024
MERGE_FILES = 10
"""So many of them at once."""
_FEW = 8
"""Files smaller than this part of that are put together by themselves: a large one is not written again for each few that come."""
APART = 3
"""So many of the newest stay by themselves: who pulls reads them for a few commits, and should not read all that is archived."""


def archive_writer_of(
    storage: Storage, folder: str, layout: Layout, *, lock: Callable[[], AbstractContextManager[object]]
) -> ArchiveWriter | LsmArchiveWriter:
    """The writer of a table's archive in this folder; `lock` takes the table lock, unless the caller holds it."""
    if layout.by_completion:
        return LsmArchiveWriter(storage, folder, layout=layout, lock=lock)
    return ArchiveWriter(storage, folder, layout=layout)


class ArchiveWriter:
    """The archive folder of one table, for whoever archives. Two that do so at once leave instants there twice, which does no harm."""

    def __init__(self, storage: Storage, folder: str, *, layout: Layout) -> None:
        self._storage = storage
        self._folder = folder
        self._layout = layout

    def add(self, files: Sequence[StateFile], *, timeline: str) -> None:
        """Put the state files of some instants into a new file; `timeline` is where they are, for errors."""
        infos = self._infos()
        names = self._layout.archive_files(list(infos), self._read, path=self._full(""))
        last = names[-1] if names else None
        if last is not None and infos[last].size_bytes <= _LOOKED_INTO_BYTES and self._has(last, files):
            return  # who put them there died before they left the timeline
        content = self._layout.encode_archive(files, folder=timeline)
        first = 1 if last is None else (archive_number(last) or 0) + 1
        for number in count(first):
            try:
                self._storage.create_new(join(self._folder, f".commits_.archive.{number}_1-0-1"), content)
            except FileExistsError:
                continue
            return

    def merge(self, *, files: int = MERGE_FILES, small_bytes: int = SMALL_BYTES, apart: int = APART) -> int:
        """Put the oldest small files into one, as soon as there are so many beside the newest; gives how many went.

        What is put together stands in the last of them before the others go. So nothing is lost, whoever dies or is late.
        """
        infos = self._infos()
        names = self._layout.archive_files(list(infos), self._read, path=self._full(""))
        old = [infos[name] for name in names[: max(0, len(names) - apart)]]
        small = _run_of(old, files, below=small_bytes // _FEW, enough_bytes=small_bytes)
        small = small or _run_of(old, 2 * files, below=small_bytes, enough_bytes=small_bytes)
        if len(small) < 2:
            return 0
        paths = [info.path for info in small]
        try:
            parts = self._storage.each(self._storage.read, paths)
        except FileNotFoundError:
            return 0  # another process puts the same ones together
        self._storage.replace(paths[-1], b"".join(parts))
        self._storage.each(self._storage.delete, paths[:-1])
        return len(paths) - 1

    def take_out(self, times: frozenset[str]) -> None:
        """Remove every trace of some instants, which are on the active timeline still: who put them there has died since.

        Reads the whole archive. May be done twice, and by two at once.
        """
        infos = self._infos()
        for name in self._layout.archive_files(list(infos), self._read, path=self._full("")):
            with suppress(FileNotFoundError):  # another one has put it together with others, or removed it
                data = self._read(name)
                if any(i.time in times for i in self._layout.archived_instants(data, path=self._full(name))):
                    content = self._layout.archive_without(data, times, path=self._full(name))
                    if content:
                        self._storage.replace(infos[name].path, content)
                    else:
                        self._storage.delete(infos[name].path)

    def _has(self, name: str, files: Sequence[StateFile]) -> bool:
        there = self._layout.archived_instants(self._read(name), path=self._full(name))
        archived = {(instant.time, instant.action) for instant in there}
        return all((i.time, COMPLETES_AS.get(i.action, i.action)) in archived for i, _, _ in files)

    def _infos(self) -> Mapping[str, FileInfo]:
        """The files of the folder by their names."""
        infos = self._storage.list(self._folder)
        return {info.name: info for info in infos if not info.is_folder}

    def _read(self, name: str) -> bytes:
        return self._storage.read(join(self._folder, name))

    def _full(self, name: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{join(self._folder, name)}"


def _run_of(infos: Sequence[FileInfo], files: int, *, below: int, enough_bytes: int) -> Sequence[FileInfo]:
    """The first files that follow one another, are smaller than that, and are so many, or come to enough bytes; else none."""
    run: list[FileInfo] = []
    for info in infos:
        if info.size_bytes >= below:
            run.clear()
            continue
        run.append(info)
        if len(run) >= files or sum(each.size_bytes for each in run) >= enough_bytes:
            return run
    return ()
