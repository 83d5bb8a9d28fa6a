"""What commit metadata says of data files: which were committed, and how long they were when that happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
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
        self._by_time = timeline.commit_at
        self._payload = read_commit
        self._payloads: dict[Instant, CommitMetadata] = {}
        self._logs: dict[str, int] = {}
        self._log_entries: dict[str, tuple[tuple[str, int], ...]] = {}
        self._logs_since: str | None = None
        self._named: dict[FileGroupId, tuple[str, ...]] = {}
        """The logs that the newest commit of each group names."""
        self._onto: dict[str, str] = {}
        self._onto_since: str | None = None

    def following(self, timeline: Timeline, commit: Instant) -> CommittedFiles:
        """The same after one more commit, the newest of `timeline`; what was read for this one is not read again."""
        later = CommittedFiles(timeline, self._payload)
        later._logs, later._log_entries, later._onto = self._logs.copy(), self._log_entries.copy(), self._onto.copy()
        later._logs_since, later._onto_since = self._logs_since, self._onto_since
        later._named = self._named.copy()
        if later._logs_since is not None:
            later._add_logs((commit,), later._named)
        if later._onto_since is not None:
            later._add_onto(commit)
        return later

    def moved_to(self, read_commit: Callable[[Instant], CommitMetadata]) -> CommittedFiles:
        """The same, where further metadata are read by another opening of the table."""
        moved = copy(self)
        moved._payload = read_commit
        return moved

    def base_size(self, path: str, instant_time: str) -> int | None:
        """Committed size of a base file; -1 when its commit is active and does not name it (a stray), None when archived."""
        commit = self._by_time.get(instant_time)
        if commit is None:
            return None
        return self._read_commit(commit).sizes.get(path, -1)

    def log_sizes(self, since: str) -> dict[str, int]:
        """Path -> committed size of every log file that commits from instant `since` on name (0: named without a size)."""
        if self._logs_since is None or sort_key(since) < sort_key(self._logs_since):
            stop = self._logs_since
            commits = [
                commit
                for commit in self._commits
                if sort_key(commit.time) >= sort_key(since) and (stop is None or sort_key(commit.time) < sort_key(stop))
            ]
            self._add_logs(commits, self._named if stop is None else {})
            self._logs_since = since
        return self._logs

    def _add_logs(self, commits: Iterable[Instant], named: dict[FileGroupId, tuple[str, ...]]) -> None:
        """`named`: the logs that the commit before these names for each group; kept up to date."""
        for commit in commits:
            metadata = self._read_commit(commit)
            for path, size in metadata.sizes.items():
                self._logs[path] = max(size, self._logs.get(path, 0))
            for path, count in metadata.records.items():
                self._log_entries[path] = (*self._log_entries.get(path, ()), (commit.time, count))
            for stat in metadata.stats():
                if not stat.log_files:
                    continue
                # Each commit names all logs of the slice again: only those count that the one before did not name.
                group = FileGroupId(stat.partition_path, stat.file_id)
                known = named.get(group, ())
                fresh = stat.log_files[len(known) :] if stat.log_files[: len(known)] == known else stat.log_files
                named[group] = stat.log_files
                for name in fresh:
                    self._logs.setdefault(join(stat.partition_path, name), 0)

    def log_entries(self, since: str) -> dict[str, tuple[tuple[str, int], ...]]:
        """Path -> (instant, records and deletes written) of every file that commits from instant `since` on wrote."""
        self.log_sizes(since)
        return self._log_entries

    def named_instead(self, base: BaseFile) -> str | None:
        """The base file that the commit of `base` names for its file group, when that is another one; else None."""
        commit = self._by_time.get(base.instant)
        for path in self._read_commit(commit).sizes if commit is not None else ():
            folder, _, name = path.rpartition("/")
            other = parse_base_file(name)
            if (
                other is not None
                and (folder, other.file_id) == (base.partition_path, base.file_id)
                and path != base.path
            ):
                return path
        return None

    def written_onto(self, since: str) -> Mapping[str, str]:
        """Path of a log file -> name of the base file that its writer saw in its slice ("": none), by commits from `since` on."""
        if self._onto_since is None or sort_key(since) < sort_key(self._onto_since):
            for commit in self._commits:
                if sort_key(commit.time) >= sort_key(since):
                    self._add_onto(commit)
            self._onto_since = since
        return self._onto

    def _add_onto(self, commit: Instant) -> None:
        for stat in self._read_commit(commit).stats():
            if stat.base_file is not None:
                self._onto[stat.path] = stat.base_file

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

    def _read_commit(self, commit: Instant) -> CommitMetadata:
        """Each is asked for once: to look whether a file has changed costs a call of the storage."""
        found = self._payloads.get(commit)
        if found is None:
            found = self._payloads[commit] = self._payload(commit)
        return found
