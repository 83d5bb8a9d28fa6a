"""What is kept of timelines that were read: commits that were parsed, and the timelines of folders."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from hoodie.format.layout import Layout
from hoodie.format.stored_stats import StoredStats
from hoodie.model.log_names import LogNames
from hoodie.model.payloads import CleanMetadata, CommitMetadata
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache, Kind, file_key
from hoodie.timeline.timeline import Timeline

COMMIT: Kind[CommitMetadata] = Kind("commit")
CLEAN: Kind[CleanMetadata] = Kind("clean")
TIMELINE: Kind[tuple[frozenset[str], Timeline]] = Kind("timeline")

_PARSED_FACTOR = 3
"""As many times the bytes of its file a commit takes when it is parsed, but for names of log files."""
_REFERENCE_BYTES = 8
_NAME_BYTES = 512
"""What a name in a timeline folder takes with the instant that it stands for."""


def cached_commit(cache: Cache, storage: Storage, info: FileInfo, load: Callable[[], CommitMetadata]) -> CommitMetadata:
    """The content of a completed file, which never changes, so that each is parsed once in a process."""
    return cache.get(
        COMMIT, file_key(storage, info), load, lambda commit: _PARSED_FACTOR * _memory_bytes(info.size_bytes, commit)
    )


def cached_clean(cache: Cache, storage: Storage, info: FileInfo, load: Callable[[], CleanMetadata]) -> CleanMetadata:
    """The same of a completed clean."""
    return cache.get(CLEAN, file_key(storage, info), load, lambda _: _NAME_BYTES)


def _memory_bytes(file_bytes: int, commit: CommitMetadata) -> int:
    """The memory of a commit. Each names all logs of its slices again, and equal names share one text."""
    text = own = 0
    stats = commit.write_stats
    lists: Iterable[Sequence[str]]
    lists = stats.log_names() if isinstance(stats, StoredStats) else (stat.log_files for stat in commit.stats())
    for names in lists:
        if isinstance(names, LogNames):
            text += names.text_bytes
            own += sum(map(len, names.added)) + _REFERENCE_BYTES * len(names.added)
        else:
            text += sum(map(len, names))
            own += _REFERENCE_BYTES * len(names)
    return max(0, file_bytes - text) + own


def cached_timeline(cache: Cache, folder: Hashable, names: frozenset[str], layout: Layout) -> Timeline:
    """The timeline of a folder with these names: mostly they are those of the last listing, or a few more.

    A timeline is nothing but what its names say, so it does not matter whether it was the same table that had them.
    """
    last = cache.find(TIMELINE, (folder, layout))
    if last is not None and last[0] == names:
        return last[1]
    if last is not None and last[0] < names:
        timeline = last[1].extended(names - last[0])
    else:
        timeline = Timeline.from_file_names(names, layout=layout)
    cache.put(TIMELINE, (folder, layout), (names, timeline), _NAME_BYTES * len(names))
    return timeline


def last_timeline(cache: Cache, folder: Hashable, layout: Layout) -> Timeline | None:
    """The timeline that was loaded last from a folder, if it is still kept."""
    last = cache.find(TIMELINE, (folder, layout))
    return None if last is None else last[1]
