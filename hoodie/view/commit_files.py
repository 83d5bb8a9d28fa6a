"""What commit metadata says of data files: which were committed, and how long they were when that happened.

The commit of a log compaction also says which log files its output replaces; readers need not open these. The header of its blocks
lists instants. To know by them that an older log file says nothing else, one would have to read it. So the extra metadata have
`hoodie.python.log.compacted`: a JSON object from the path of each log file that it wrote to the names of those of its slice
(`logFiles` of its write stat) that it does not stand for; mostly none. Other writers leave the key out, and who does not know it
opens the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from hoodie.format.stored_stats import StoredStats
from hoodie.model.enums import WriteOperation
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.log_names import names_since
from hoodie.model.names import join, name_of, parse_base_file
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.timeline.timeline import Timeline
from hoodie.view.listing import Choice

Entries = tuple[tuple[InstantTime, int], ...]


@dataclass
class PartitionFiles:
    """What the active commits say of the files of one partition; paths are relative to the table."""

    sizes: dict[str, int] = field(default_factory=dict)
    """Each file that a commit wrote: its size, 0 where none is stated."""
    named_logs: set[str] = field(default_factory=set)
    """Log files that a commit names in their slice, and no active commit wrote."""
    entries: dict[str, Entries] = field(default_factory=dict)
    """(instant, records and deletes written) of each file."""
    onto: dict[str, str] = field(default_factory=dict)
    """Log file -> name of the base file that its writer saw in its slice ("": none)."""
    last_named: dict[str, Sequence[str]] = field(default_factory=dict)
    """File id -> the logs that the newest commit of the group names."""
    stands_for: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Log file that a log compaction wrote -> as `LogFile.stands_for`."""
    deletes: set[str] = field(default_factory=set)
    """The files of commits that deleted rows by them."""

    def copy(self) -> PartitionFiles:
        return PartitionFiles(
            self.sizes.copy(),
            self.named_logs.copy(),
            self.entries.copy(),
            self.onto.copy(),
            self.last_named.copy(),
            self.stands_for.copy(),
            self.deletes.copy(),
        )

    def add(self, stat: WriteStat, instant: InstantTime) -> None:
        """One more file, of a commit that is not older than those before."""
        path, count = stat.path, stat.num_writes + stat.num_deletes
        if path:
            self.sizes[path] = max(stat.file_size_bytes, self.sizes.get(path, 0))
            if count:
                self.entries[path] = (*self.entries.get(path, ()), (instant, count))
            if stat.num_deletes:
                self.deletes.add(path)
            if stat.base_file is not None:
                self.onto[path] = stat.base_file
        if stat.log_files:
            # Each commit names all logs of the slice again: only those count that the one before did not name.
            fresh = names_since(stat.log_files, self.last_named.get(stat.file_id, ()))
            self.last_named[stat.file_id] = stat.log_files
            self.named_logs.update({join(stat.partition_path, name) for name in fresh} - self.sizes.keys())

    def log_size(self, path: str) -> int | None:
        """Committed size of a log file, 0 where it is named without one; None when no active commit names it."""
        size = self.sizes.get(path)
        return size if size is not None or path not in self.named_logs else 0


_NOTHING = PartitionFiles()


@dataclass
class FoldedCommits:
    """The commits, oldest first, as far as it matters which files there are."""

    partitions: dict[str, PartitionFiles] = field(default_factory=dict)
    replaced: dict[FileGroupId, InstantTime] = field(default_factory=dict)

    def add(self, commit: Instant, metadata: CommitMetadata) -> None:
        """Add a commit with its files in all partitions."""
        for partition_path in metadata.write_stats:
            _add_files(self.partitions.setdefault(partition_path, PartitionFiles()), partition_path, commit, metadata)
        self.replaced.update(_replaced_by(commit, metadata))

    @property
    def written(self) -> tuple[str, ...]:
        """The partitions into which a commit wrote a file."""
        return tuple(path for path, files in self.partitions.items() if any(files.sizes.values()))


def _add_files(files: PartitionFiles, partition_path: str, commit: Instant, metadata: CommitMetadata) -> None:
    for stat in metadata.write_stats[partition_path]:
        files.add(stat, commit.time)
    files.stands_for.update(stood_for(metadata, partition_path))


def _replaced_by(commit: Instant, metadata: CommitMetadata) -> dict[FileGroupId, InstantTime]:
    if commit.action != "replacecommit":
        return {}
    groups = metadata.replaced_file_ids.items()
    return {FileGroupId(partition_path, file_id): commit.time for partition_path, ids in groups for file_id in ids}


class CommittedFiles:
    """Reads the active commits when it is asked first, each once, and keeps of them what is asked for. One per snapshot; not
    shared between threads.

    All of them: only the newer commits tell that a file is not the last one of its group. But of commits that wrote into many
    partitions only the parts of those partitions are decoded that are asked for, as long as these are few.
    """

    def __init__(
        self,
        timeline: Timeline,
        read_commits: Callable[[Sequence[Instant]], Iterable[CommitMetadata]],
        fold: FoldedCommits | None = None,
        *,
        most_alone: int = 1_000,
    ) -> None:
        """`most_alone`: so many partitions are decoded one by one, before all are."""
        self._commits = timeline.commits
        self._by_time = timeline.commit_at
        self._payloads = read_commits
        self.fold = fold
        """What was read; None before all of it was asked for."""
        self._most_alone = most_alone
        self._alone: dict[str, PartitionFiles] = {}
        self._read: list[CommitMetadata] | None = None
        """The commits, until all of them are folded."""

    def following(self, timeline: Timeline, commit: Instant) -> CommittedFiles:
        """The same after one more commit, the newest of `timeline`; what was read for this one is not read again."""
        later = CommittedFiles(timeline, self._payloads, most_alone=0)
        if self.fold is not None:
            (metadata,) = self._payloads([commit])
            partitions = self.fold.partitions.copy()
            for touched in metadata.write_stats.keys() & partitions.keys():
                partitions[touched] = partitions[touched].copy()
            later.fold = FoldedCommits(partitions, self.fold.replaced.copy())
            later.fold.add(commit, metadata)
        return later

    @property
    def partitions(self) -> tuple[str, ...]:
        """Every partition into which an active commit wrote a file."""
        return self._folded.written

    def partitions_of(self, choice: Choice) -> tuple[str, ...]:
        """The partitions of a choice into which an active commit wrote a file."""
        if self.fold is not None:
            return tuple(compress(self.fold.written, choice.wants(self.fold.written)))
        names = tuple(dict.fromkeys(path for _, metadata in self._metadata() for path in metadata.write_stats))
        return tuple(path for path in compress(names, choice.wants(names)) if any(self.of(path).sizes.values()))

    def of(self, partition_path: str) -> PartitionFiles:
        if self.fold is None and partition_path not in self._alone and self._decodes_alone():
            files = PartitionFiles()
            for commit, metadata in self._metadata():
                if partition_path in metadata.write_stats:
                    _add_files(files, partition_path, commit, metadata)
            self._alone[partition_path] = files
        if partition_path in self._alone:
            return self._alone[partition_path]
        return self._folded.partitions.get(partition_path, _NOTHING)

    def _decodes_alone(self) -> bool:
        return len(self._alone) < self._most_alone and any(
            isinstance(metadata.write_stats, StoredStats) for _, metadata in self._metadata()
        )

    def _metadata(self) -> Iterable[tuple[Instant, CommitMetadata]]:
        if self._read is None:
            self._read = list(self._payloads(self._commits))
        return zip(self._commits, self._read, strict=True)

    def base_size(self, base: BaseFile) -> int | None:
        """Committed size of a base file; -1 when its commit is active and does not name it (a stray), None when archived."""
        if base.instant not in self._by_time:
            return None
        return self.of(base.partition_path).sizes.get(base.path, -1)

    def named_instead(self, base: BaseFile) -> str | None:
        """The base file that the commit of `base` names for its file group, when that is another one; else None."""
        for path in self.of(base.partition_path).sizes:
            folder, _, name = path.rpartition("/")
            other = parse_base_file(name) if path != base.path else None
            if other is not None and (folder, other.file_id, other.instant) == (
                base.partition_path,
                base.file_id,
                base.instant,
            ):
                return path
        return None

    @property
    def replaced(self) -> Mapping[FileGroupId, InstantTime]:
        """File group -> instant of the completed replacecommit that replaced it."""
        return self._replaced if self.fold is None else self.fold.replaced

    @once
    def _replaced(self) -> Mapping[FileGroupId, InstantTime]:
        return {group: time for each in self._metadata() for group, time in _replaced_by(*each).items()}

    @property
    def _folded(self) -> FoldedCommits:
        if self.fold is None:
            folded = FoldedCommits()
            for commit, metadata in self._metadata():
                folded.add(commit, metadata)
            self.fold, self._read = folded, None
            self._alone.clear()
        return self.fold


LOG_COMPACTED = "hoodie.python.log.compacted"


def format_stood_for(others: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The entry. `others`: path of a log file that was written -> names of the older ones that it does not stand for."""
    return {LOG_COMPACTED: json.dumps({path: list(names) for path, names in others.items()}, separators=(",", ":"))}


def stood_for(metadata: CommitMetadata, partition_path: str) -> dict[str, tuple[str, ...]]:
    """Path of each log file that a log compaction wrote into a partition -> names of those that it stands for; none where that is
    not known. Nothing for another commit.
    """
    if metadata.operation is not WriteOperation.LOG_COMPACT:
        return {}
    others = _others(metadata.extra.get(LOG_COMPACTED))
    result: dict[str, tuple[str, ...]] = {}
    for stat in metadata.write_stats.get(partition_path, ()):
        if stat.log_version is not None:
            other_logs = others.get(stat.path)
            older_logs = {*other_logs, name_of(stat.path)} if other_logs is not None else frozenset(stat.log_files)
            result[stat.path] = tuple(name for name in stat.log_files if name not in older_logs)
    return result


def _others(text: str | None) -> Mapping[str, Sequence[str]]:
    """Nothing where the entry is damaged: then the files are opened."""
    try:
        names_of = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(names_of, dict):
        return {}
    return {path: names for path, names in names_of.items() if _are_texts(names)}


def _are_texts(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
