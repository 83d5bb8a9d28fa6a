"""Writing the LSM timeline, the archive of versions 8 and 9: files of instants are added, and those of a level are put together.

As Apache Hudi's `LSMTimelineWriter` does it: a Parquet file, then a manifest that lists all files, then its number in `_version_`.
Readers go by that, so who dies in between leaves a file, or a manifest, that nobody reads, and the next one overwrites. All of it
is done under the table lock, as Apache Hudi's writers do it: of two at once one's instants would be in no manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from hoodie.format.archive import manifest_number
from hoodie.format.archive_entries import StateFile
from hoodie.format.archive_lsm import LsmFile, encode_manifest, lsm_level, lsm_name, merged_lsm
from hoodie.format.layout import ARCHIVE_VERSION, Layout
from hoodie.model.instant import Instant
from hoodie.model.names import COMPLETES_AS, join
from hoodie.storage.base import Storage

_MERGED_FILES = 10
"""`hoodie.timeline.compaction.batch.size`: so many files of a level become one of the next."""
_HIGHEST_LEVEL = 9
_KEPT_MANIFESTS = 3
"""Readers may be at work by an older one."""


class LsmArchiveWriter:
    """The archive folder of one table, for whoever archives. `lock`: takes the table lock, which the caller does not hold."""

    def __init__(
        self, storage: Storage, folder: str, *, layout: Layout, lock: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._layout = layout
        self._lock = lock

    def add(self, files: Sequence[StateFile], *, timeline: str) -> None:
        """Put instants with all their state files into a new file; `timeline` is where they are, for errors.

        Instants that the archive has already are left out: their process died before it took them off the timeline.
        """
        with self._lock():
            there = self._live_files()
            keys = {(f.instant.time, COMPLETES_AS.get(f.instant.action, f.instant.action)) for f in files}
            least = min(time for time, _ in keys)
            archived = {
                (instant.time, instant.action)
                for name in there
                if max(name.split("_")[:2]) >= least
                for instant in self._instants(name)
            }
            fresh = [
                f
                for f in files
                if (f.instant.time, COMPLETES_AS.get(f.instant.action, f.instant.action)) not in archived
            ]
            content = self._layout.encode_archive(fresh, folder=timeline)
            if content:
                self._put(there, content, self._layout.archived_instants(content, path=timeline), level=0)

    def merge(self) -> int:
        """Merge the oldest files of each level that has ten of them into one of the next level; gives by how many fewer they are."""
        removed_count = 0
        for level in range(_HIGHEST_LEVEL):
            if not self._is_full(level, self._live_files()):
                break
            with self._lock():
                there = self._live_files()
                old = self._is_full(level, there)
                if old:
                    content, instants = merged_lsm({self._full(name): self._read(name) for name in old})
                    rest = {name: size for name, size in there.items() if name not in old}
                    self._put(rest, content, instants, level=level + 1)
                    removed_count += len(old) - 1
        if removed_count:
            with self._lock():
                self._sweep()
        return removed_count

    def take_out(self, times: frozenset[str]) -> None:
        """Remove every trace of some instants, which are on the active timeline still: who put them there has died since.

        May be done twice.
        """
        with self._lock():
            there = self._live_files()
            remaining = dict(there)
            for name in there:
                data = self._read(name) if self._layout.may_hold(name, times) else None
                if data is not None and any(
                    i.time in times for i in self._layout.archived_instants(data, path=self._full(name))
                ):
                    content = self._layout.archive_without(data, times, path=self._full(name))
                    if content:  # its name may say a wider range than it has
                        self._storage.replace(join(self._folder, name), content)
                        remaining[name] = len(content)
                    else:
                        del remaining[name]
            if remaining != there:
                self._publish(remaining)

    @staticmethod
    def _is_full(level: int, there: Mapping[str, int]) -> list[str]:
        """The files of a level that are to be put together; none while there are few."""
        of_level = sorted(name for name in there if lsm_level(name) == level)
        return of_level[:_MERGED_FILES] if len(of_level) >= _MERGED_FILES else []

    def _put(self, there: Mapping[str, int], content: bytes, instants: Sequence[Instant], *, level: int) -> None:
        name = lsm_name([instant.time for instant in instants], level)
        self._storage.replace(join(self._folder, name), content)  # one that is there is of no manifest
        self._publish({**there, name: len(content)})

    def _publish(self, files: Mapping[str, int]) -> None:
        numbers = self._manifests()
        number = 1 + self._current(numbers)
        manifest = encode_manifest(LsmFile(name, files[name]) for name in sorted(files))
        self._storage.replace(join(self._folder, numbers.get(number, f"manifest_{number}")), manifest)
        self._storage.replace(join(self._folder, ARCHIVE_VERSION), str(number).encode())

    def _current(self, numbers: Mapping[int, str]) -> int:
        """The number of the manifest that counts; 0 without one."""
        try:
            text = self._read(ARCHIVE_VERSION).decode("ascii", "replace").strip()
        except FileNotFoundError:
            text = ""
        return int(text) if text.isdigit() and int(text) in numbers else max(numbers, default=0)

    def _sweep(self) -> None:
        """Remove old manifests, and the files that no manifest names any more."""
        numbers = self._manifests()
        current = self._current(numbers)
        manifests = {name for number, name in numbers.items() if number > current - _KEPT_MANIFESTS}
        files = {name for each in manifests for name in self._files_of(each)}
        for info in self._storage.list(self._folder):
            is_old = info.name in numbers.values() and info.name not in manifests
            if is_old or (info.name.endswith(".parquet") and info.name not in files):
                self._storage.delete(info.path)

    def _manifests(self) -> dict[int, str]:
        names = (info.name for info in self._storage.list(self._folder))
        return {number: name for name in names if (number := manifest_number(name)) is not None}

    def _files_of(self, manifest: str) -> Sequence[str]:
        return self._layout.archive_files([manifest], self._read, path=self._full(""))

    def _live_files(self) -> dict[str, int]:
        """The files that count -> their sizes."""
        infos = {info.name: info for info in self._storage.list(self._folder) if not info.is_folder}
        names = self._layout.archive_files(list(infos), self._read, path=self._full(""))
        return {name: infos[name].size_bytes for name in names if name in infos}

    def _instants(self, name: str) -> Sequence[Instant]:
        return self._layout.archived_instants(self._read(name), path=self._full(name))

    def _read(self, name: str) -> bytes:
        return self._storage.read(join(self._folder, name))

    def _full(self, name: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{join(self._folder, name)}"
