"""Payloads of timeline files: what commits, compactions and rollbacks say about themselves.

Field names are ours; `format/commit_json.py` and `format/plan_avro.py` map them to Hudi's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hoodie.model.enums import MOVES_ROWS, Action, CleanPolicy, WriteOperation
from hoodie.model.instant import InstantTime

NEW_GROUPS_ONLY = "hoodie.python.new.file.groups.only"
"""Key in an inflight file's extra metadata: the write names no file group because it touches none that is there."""
NON_BLOCKING = "hoodie.python.non.blocking"
"""The same: the write only appends, and no plan of a compaction need wait for it that is younger than all that it would merge."""


@dataclass(frozen=True)
class WriteStat:
    """One file written by a commit (Hudi: HoodieWriteStat / HoodieDeltaWriteStat)."""

    file_id: str
    partition_path: str
    path: str
    """Relative to the table's base."""
    prev_commit: InstantTime | None = None
    """Instant of the file slice the write was based on; None (stored as the string "null") for a new file group."""
    num_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    num_deletes: int = 0
    total_bytes: int = 0
    file_size_bytes: int = 0
    prev_base_file: str | None = None
    log_version: int | None = None
    """Set makes it a delta write stat (a log file)."""
    base_file: str | None = None
    """Logs: name of the slice's base file, "" when there is none."""
    log_files: Sequence[str] = ()
    """Logs: names of all log files of the slice up to this write, oldest first."""
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_bytes_compacted: int = 0
    total_updated_records_compacted: int = 0
    change_logs: Mapping[str, int] = field(default_factory=dict)
    """Path, relative to the table's base -> size of the change logs that were written beside the file."""

    @property
    def changed_bytes(self) -> float:
        """What of the file is rows that the write brought: all of a log; of a base file that was written anew, their share."""
        if self.log_version is not None or not self.num_writes:
            return float(self.total_bytes)
        return self.total_bytes * min(1.0, (self.num_inserts + self.num_updates) / self.num_writes)


@dataclass(frozen=True)
class CommitMetadata:
    """Content of a completed commit, deltacommit, replacecommit, or compaction's commit."""

    operation: WriteOperation = WriteOperation.UNKNOWN
    write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    """By partition path; "" for a non-partitioned table."""
    schema_json: str | None = None
    """Avro schema of the table without the five meta columns (`extraMetadata.schema`)."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """The other entries of `extraMetadata`."""
    compacted: bool = False
    replaced_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def moves_rows(self) -> bool:
        """Whether a service wrote what had been written before."""
        return self.compacted or self.operation in MOVES_ROWS

    def stats(self) -> Iterator[WriteStat]:
        for stats in self.write_stats.values():
            yield from stats


@dataclass(frozen=True)
class CompactionOperation:
    """One file slice to compact; names are relative to the partition."""

    partition_path: str
    file_id: str
    base_instant: InstantTime
    data_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file: str | None = None
    """Address of the file that completes the data file, a skeleton: Apache Hudi merges what plans name."""


@dataclass(frozen=True)
class CompactionPlan:
    operations: tuple[CompactionOperation, ...]
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int = 2
    """2: names relative to the partition. Plans of version 1 (full paths) are normalised when decoded."""
    missing_partitions: tuple[str, ...] = ()
    """Where slices with logs were left out. Apache Hudi's next planner looks at these, and at what was written since."""


class ClusteredSlice(NamedTuple):
    """One file slice to cluster; names are relative to the partition."""

    partition_path: str
    file_id: str
    data_file: str | None
    """Its base file; None where it has only logs."""
    log_files: tuple[str, ...] = ()
    bootstrap_file: str | None = None
    """Address of the file that completes the base file, a skeleton."""


@dataclass(frozen=True)
class ClusteringGroup:
    """Slices of one partition whose rows are sorted together."""

    slices: tuple[ClusteredSlice, ...]
    """Those whose rows go into new files."""
    output_groups: int = 1
    """The rows go into about so many new file groups."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    """What a table with consistent buckets says of its hash ring."""


@dataclass(frozen=True)
class ClusteringPlan:
    """The files that a clustering sorts or merges."""

    groups: tuple[ClusteringGroup, ...]
    """Each is done by itself; empty where there is nothing to do."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The options of Apache Hudi that the runner of the plan needs, by their names."""
    keeps_commit_times: bool = True
    """Rows keep their commit times and sequence numbers."""


@dataclass(frozen=True)
class RollbackRequest:
    """What to undo in one file group."""

    partition_path: str
    file_id: str | None = None
    base_instant: InstantTime | None = None
    files_to_delete: tuple[str, ...] = ()
    """Full paths (URI or plain) as stored."""
    log_blocks: Mapping[str, int] = field(default_factory=dict)
    """Log file name -> size in bytes, of log files that hold blocks of the failed instant."""


@dataclass(frozen=True)
class RollbackPlan:
    instant: InstantTime
    """The instant to roll back."""
    action: Action
    requests: tuple[RollbackRequest, ...]
    version: int = 1


@dataclass(frozen=True)
class RollbackPartition:
    """What a rollback did in one partition."""

    partition_path: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    """Full path of the log file that holds the new rollback block -> its size."""
    failed_log_files: Mapping[str, int] = field(default_factory=dict)
    """Name of each log file of the failed commit -> its size."""


@dataclass(frozen=True)
class RollbackMetadata:
    started: InstantTime
    """Instant time of the rollback."""
    took_ms: int
    rolled_back: tuple[tuple[InstantTime, Action], ...]
    """(instant, action) of what was rolled back."""
    partitions: tuple[RollbackPartition, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class CleanPlan:
    """Which files a clean deletes."""

    policy: CleanPolicy
    files: Mapping[str, tuple[str, ...]]
    """Names by partition path."""
    earliest: tuple[InstantTime, Action] | None
    """The first commit whose files are kept, with its action; None when numbers of versions decide."""
    last_completed: str
    """The newest completed commit when this was planned; empty: there was none."""
    emptied: tuple[str, ...] = ()
    """Partitions that have no file group any more when the files are gone."""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(map(len, self.files.values()))


@dataclass(frozen=True)
class CleanMetadata:
    """What a completed clean says of itself, as far as the next one needs it."""

    earliest: InstantTime | None
    last_completed: str
    extra: Mapping[str, str] = field(default_factory=dict)


class CleanedPartition(NamedTuple):
    """What a completed clean did in one partition; names of files."""

    partition_path: str
    deleted: tuple[str, ...]
    failed: tuple[str, ...]
    """To be deleted, and perhaps still there."""
    is_gone: bool
    """Not even the folder is left."""


@dataclass(frozen=True)
class SavepointMetadata:
    """What a savepoint says; its instant is that of the commit whose state it keeps."""

    user: str
    at_ms: int
    """When it was made, in milliseconds since the epoch."""
    comment: str
    files: Mapping[str, tuple[str, ...]]
    """Names of base files and log files, by partition path."""


@dataclass(frozen=True)
class RestorePlan:
    """Which instants a restore takes back."""

    target: InstantTime | None
    """The commit whose state is to be the table's again; None: old writers do not say it."""
    instants: tuple[tuple[InstantTime, Action], ...]
    """(instant, action), newest first."""


@dataclass(frozen=True)
class RestoreMetadata:
    """What a restore did."""

    started: InstantTime
    """Instant time of the restore."""
    took_ms: int
    undone: tuple[tuple[InstantTime, Action], ...]
    """As the plan has them."""
    rollbacks: tuple[RollbackMetadata, ...]
    """One for each of them."""


# -- What a compaction chooses among.


@dataclass(frozen=True)
class CompactionCandidate:
    """A file slice with logs that a compaction may take."""

    partition_path: str
    file_id: str
    log_files: int
    """How many there are."""
    log_bytes: int
    base_bytes: int
    """Of the base file; 0 where there is none yet."""
    read_mb: int
    """Whole megabytes of logs and base file."""
    write_mb: int
    """Whole megabytes of the new base file, taken to be as large as the one before, or as large as files get."""

    @property
    def io_mb(self) -> int:
        """What a compaction of the slice reads and writes, as Apache Hudi reckons it."""
        return self.read_mb + self.write_mb


CompactionStrategy = Callable[[Sequence[CompactionCandidate]], Iterable[CompactionCandidate]]
"""Of the candidates those to take, in the order in which it is worth doing."""
