"""What commit metadata says of data files: which were committed, and how long they were when that happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.instant import Instant, sort_key
from hoodie.model.names import join, parse_base_file
from hoodie.model.payloads import CommitMetadata
from hoodie.timeline.timeline import Timeline


class CommittedFiles:
    """Reads commit metadata only as far as it is asked for. One per snapshot; not shared between threads."""

    def __init__(self, timeline: Timeline, read_commit: Callable[[Instant], CommitMetadata]) -> None:
        self._commits = timeline.commits
        self._by_time = {i.time: i for i in timeline.commits}
        self._read_commit = read_commit
        self._files: dict[str, dict[str, int]] = {}
        self._logs: dict[str, int] = {}
        self._wrote: dict[str, dict[str, int]] = {}
        self._log_entries: dict[str, tuple[tuple[str, int], ...]] = {}
        self._logs_since: str | None = None
        self._onto: dict[str, str] = {}
        self._onto_since: str | None = None

    def base_size(self, path: str, instant_time: str) -> int | None:
        """Committed size of a base file; -1 when its commit is active and does not name it (a stray), None when archived."""
        commit = self._by_time.get(instant_time)
        if commit is None:
            return None
        return self._of(commit).get(path, -1)

    def log_sizes(self, since: str) -> dict[str, int]:
        """Path -> committed size of every log file that commits from instant `since` on name."""
        if self._logs_since is None or sort_key(since) < sort_key(self._logs_since):
            stop = self._logs_since
            for commit in self._commits:
                below = sort_key(commit.time) < sort_key(since)
                if below or (stop is not None and sort_key(commit.time) >= sort_key(stop)):
                    continue
                for path, size in self._of(commit).items():
                    self._logs[path] = max(size, self._logs.get(path, 0))
                for path, count in self._wrote[commit.time].items():
                    self._log_entries[path] = (*self._log_entries.get(path, ()), (commit.time, count))
            self._logs_since = since
        return self._logs

    def log_entries(self, since: str) -> dict[str, tuple[tuple[str, int], ...]]:
        """Path -> (instant, records and deletes written) of every file that commits from instant `since` on wrote."""
        self.log_sizes(since)
        return self._log_entries

    def named_instead(self, base: BaseFile) -> str | None:
        """The base file that the commit of `base` names for its file group, when that is another one; else None."""
        commit = self._by_time.get(base.instant)
        for path in self._of(commit) if commit is not None else ():
            folder, _, name = path.rpartition("/")
            other = parse_base_file(name)
            if (
                other is not None
                and (folder, other.file_id) == (base.partition_path, base.file_id)
                and path != base.path
            ):
                return path
        return None

    def written_onto(self, path: str, since: str) -> str | None:
        """Name of the base file that a log file's writer saw in its slice ("": none); None when no active commit names it."""
        if self._onto_since is None or sort_key(since) < sort_key(self._onto_since):
            for commit in self._commits:
                if sort_key(commit.time) >= sort_key(since):
                    for stat in self._read_commit(commit).stats():
                        if stat.base_file is not None:
                            self._onto[stat.path] = stat.base_file
            self._onto_since = since
        return self._onto.get(path)

    @cached_property
    def replaced(self) -> dict[FileGroupId, str]:
        """File group -> instant of the completed replacecommit that replaced it."""
        found: dict[FileGroupId, str] = {}
        for commit in self._commits:
            if commit.action != "replacecommit":
                continue
            for partition_path, file_ids in self._read_commit(commit).replaced_file_ids.items():
                found.update({FileGroupId(partition_path, file_id): commit.time for file_id in file_ids})
        return found

    def _of(self, commit: Instant) -> dict[str, int]:
        if commit.time not in self._files:
            files: dict[str, int] = {}
            wrote: dict[str, int] = {}
            for stat in self._read_commit(commit).stats():
                for name in stat.log_files:
                    files.setdefault(join(stat.partition_path, name), 0)
                files[stat.path] = max(stat.file_size_bytes, files.get(stat.path, 0))
                if stat.num_writes + stat.num_deletes:
                    wrote[stat.path] = wrote.get(stat.path, 0) + stat.num_writes + stat.num_deletes
            self._files[commit.time], self._wrote[commit.time] = files, wrote
        return self._files[commit.time]
