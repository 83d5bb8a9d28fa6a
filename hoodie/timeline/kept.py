"""What a process keeps of timelines that it has read: commits that were parsed, and the timelines of folders.

Shared by all tables of a process and thread-safe. Each is bounded: nothing here grows with the number of commits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from hoodie.model.log_names import LogNames
from hoodie.model.payloads import CommitMetadata
from hoodie.timeline.timeline import Timeline

_CACHED_BYTES = 32 * 1024 * 1024
"""Bytes of completed files whose content is kept parsed, but for names of log files; parsed they take two to three times as much."""
_REFERENCE_BYTES = 8
_LOADED_FOLDERS = 16


class PayloadKey(NamedTuple):
    uri: str
    path: str
    size_bytes: int
    mtime_s: float


class PayloadCache:
    """Completed payloads never change, so each is parsed once in a process; least recently used go first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._entries: OrderedDict[PayloadKey, tuple[CommitMetadata, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: PayloadKey, load: Callable[[], CommitMetadata]) -> CommitMetadata:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        value = load()
        size = _kept_bytes(key.size_bytes, value)
        with self._lock:
            if key not in self._entries:
                self._bytes += size
            self._entries[key] = value, size
            while self._bytes > self._capacity and len(self._entries) > 1:
                self._bytes -= self._entries.popitem(last=False)[1][1]
        return value


def _kept_bytes(file_bytes: int, commit: CommitMetadata) -> int:
    """What a commit counts for: every one names all logs of its slices again, which are one text each in memory."""
    text = kept = 0
    for stat in commit.stats():
        names = stat.log_files
        if isinstance(names, LogNames):
            text += names.text_bytes
            kept += sum(map(len, names.added)) + _REFERENCE_BYTES * len(names.added)
        else:
            text += sum(map(len, names))
            kept += _REFERENCE_BYTES * len(names)
    return max(0, file_bytes - text) + kept


COMMITS = PayloadCache(_CACHED_BYTES)


class LoadedTimelines:
    """The timelines of the folders that a process listed last: mostly the next listing shows the same, or a few names more.

    A timeline is nothing but what its names say, so it does not matter whether it was the same table that had them.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, int], tuple[frozenset[str], Timeline]] = OrderedDict()
        self._lock = Lock()

    def timeline(self, names: frozenset[str], layout: int, *, folder: str) -> Timeline:
        with self._lock:
            seen = self._last.get((folder, layout))
        if seen is not None and seen[0] == names:
            return seen[1]
        if seen is not None and seen[0] < names:
            timeline = seen[1].extended(names - seen[0])
        else:
            timeline = Timeline.from_file_names(names, layout=layout)
        with self._lock:
            self._last[folder, layout] = names, timeline
            self._last.move_to_end((folder, layout))
            while len(self._last) > _LOADED_FOLDERS:
                self._last.popitem(last=False)
        return timeline


TIMELINES = LoadedTimelines()
