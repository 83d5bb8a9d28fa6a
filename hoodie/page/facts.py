"""The data of the page: plain values, gathered from one snapshot. It reads metadata only, no row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hoodie.model.enums import Action, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant, format_instant, parse_instant
from hoodie.model.payloads import CommitMetadata
from hoodie.model.service_results import ConsumerLag
from hoodie.timeline.clock import zone_of
from hoodie.timeline.pending import explain_pending
from hoodie.timeline.timeline import WRITES
from hoodie.view.consumers import consumers_of
from hoodie.view.context import Snapshot, TableContext


class Lane(StrEnum):
    """A row of the timeline's picture; the value is its title."""

    WRITES = "Writes"
    COMPACTION = "Compaction"
    CLUSTERING = "Clustering"
    CLEANING = "Cleaning"
    OTHER = "Savepoint, restore, rollback"


SERVICES = (Lane.COMPACTION, Lane.CLUSTERING)
"""Lanes whose files hold rows that a write has written before."""

SIZE_STEPS_MB = (1, 4, 16, 64, 128, 256, 512)
"""Upper ends of the classes that file slices are counted in; the last class is open."""


@dataclass(frozen=True)
class Mark:
    """One instant of the active timeline."""

    instant: Instant
    lane: Lane
    began: datetime
    operation: str
    """What it did, in a word or two."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files: int = 0
    bytes_written: int = 0
    changed_bytes: float = 0.0
    """The share of those bytes that rows take which the write brought."""


@dataclass(frozen=True)
class PendingInstant:
    """An instant that is not completed."""

    instant: Instant
    began: datetime
    file_groups: int | None
    """How many its plan names; None: that is not known."""
    text: str


@dataclass(frozen=True)
class ConsumerFacts:
    """A named consumer of the table's changes."""

    name: str
    position: str | None
    """None: it has read nothing yet."""
    moved: datetime
    """When its place was last moved."""
    lag: ConsumerLag


@dataclass(frozen=True)
class PartitionFacts:
    """The newest file slices of a partition."""

    path: str
    file_groups: int
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True)
class TableFacts:
    """One page on a table."""

    uri: str
    name: str
    kind: str
    """Table type and version."""
    pairs: Sequence[tuple[str, str]]
    """What does not change often: keys, partition columns, ordering."""
    now: datetime
    """By the clock of the storage. This and all other moments are of the table's time zone, whatever their `tzinfo` says."""
    zone: str
    marks: Sequence[Mark]
    """Instants of the active timeline, oldest first."""
    pending: Sequence[PendingInstant]
    partitions: Sequence[PartitionFacts]
    sizes: Sequence[int]
    """File slices by the classes of `SIZE_STEPS_MB`."""
    slices_with_logs: int
    most_logs: int
    """Log files of the slice that has the most."""
    consumers: Sequence[ConsumerFacts] = ()
    """Named consumers, by name."""

    @property
    def writes(self) -> list[Mark]:
        """Completed commits that brought rows, oldest first."""
        return [mark for mark in self.marks if mark.lane is Lane.WRITES and mark.instant.is_completed]

    @property
    def file_groups(self) -> int:
        return sum(each.file_groups for each in self.partitions)

    @property
    def base_bytes(self) -> int:
        return sum(each.base_bytes for each in self.partitions)

    @property
    def log_bytes(self) -> int:
        return sum(each.log_bytes for each in self.partitions)

    @property
    def written_bytes(self) -> int:
        """By writes and services of the active timeline."""
        return sum(mark.bytes_written for mark in self.marks)

    @property
    def write_amplification(self) -> float | None:
        """Bytes written for each byte of rows that writes brought; None where none did."""
        changed = sum(mark.changed_bytes for mark in self.marks)
        return self.written_bytes / changed if changed else None


def gather(context: TableContext) -> TableFacts:
    """The facts of the newest snapshot.

    Raises:
        CorruptFileError: metadata are damaged. MissingFileError: files of the newest state are gone.
    """
    return context.ask(lambda snapshot: _facts(context, snapshot))


def _facts(context: TableContext, snapshot: Snapshot) -> TableFacts:
    config, zone = context.config, zone_of(context.config.timezone)
    slices = snapshot.view.counted_slices()
    by_partition: dict[str, list[FileSlice]] = defaultdict(list)
    for path in snapshot.view.partitions():
        by_partition[path] = []
    for each in slices:
        by_partition[each.group.partition_path].append(each)
    sizes = [0] * (len(SIZE_STEPS_MB) + 1)
    for each in slices:
        sizes[_size_class(each.size_bytes)] += 1
    return TableFacts(
        uri=context.storage.uri,
        name=config.name,
        kind=f"{config.table_type.value}, table version {int(config.version)}",
        pairs=(
            ("Record key", ", ".join(config.record_key_fields) or "generated"),
            ("Partitioned by", ", ".join(config.partition_fields) or "not partitioned"),
            ("Ordering", f"{', '.join(config.ordering_fields) or 'none'} ({config.merge_mode.value})"),
        ),
        now=parse_instant(context.clock.now()),
        zone=str(zone) if zone is not None else "local time",
        marks=tuple(_marks(snapshot)),
        pending=tuple(
            PendingInstant(
                i, parse_instant(i.time), _planned(snapshot, i), explain_pending(i, table=context.storage.uri)
            )
            for i in snapshot.timeline.pending()
        ),
        partitions=tuple(
            _partition(path, slices_of_partition) for path, slices_of_partition in sorted(by_partition.items())
        ),
        sizes=tuple(sizes),
        slices_with_logs=sum(1 for each in slices if each.logs),
        most_logs=max((len(each.logs) for each in slices), default=0),
        consumers=tuple(
            ConsumerFacts(each.name, each.position, _moment(context, each.moved_at_ms / 1000), each.lag)
            for each in consumers_of(context, snapshot)
        ),
    )


def _moment(context: TableContext, seconds: float) -> datetime:
    return parse_instant(format_instant(context.clock.wall(seconds)))


def _marks(snapshot: Snapshot) -> Iterable[Mark]:
    commits = snapshot.timeline.commits
    metadata = dict(zip((commit.time for commit in commits), snapshot.active.read_commits(commits), strict=True))
    for instant in snapshot.timeline:
        began = parse_instant(instant.time)
        if instant.is_completed and instant.action in WRITES:
            yield _completed(instant, began, metadata[instant.time])
        else:
            yield Mark(instant, _lane(instant), began, _WORDS.get(instant.action, instant.action.value))


_WORDS = {Action.COMMIT: "write", Action.DELTACOMMIT: "write", Action.REPLACECOMMIT: "overwrite"}


def _lane(instant: Instant) -> Lane:
    if instant.action in WRITES:
        return Lane.WRITES
    if instant.action in (Action.COMPACTION, Action.LOGCOMPACTION):
        return Lane.COMPACTION
    if instant.action is Action.CLUSTERING:
        return Lane.CLUSTERING
    return Lane.CLEANING if instant.action is Action.CLEAN else Lane.OTHER


def _completed(instant: Instant, began: datetime, commit: CommitMetadata) -> Mark:
    if commit.compacted or commit.operation in (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT):
        lane, operation = Lane.COMPACTION, "compaction"
    elif commit.operation is WriteOperation.CLUSTER:
        lane, operation = Lane.CLUSTERING, "clustering"
    else:
        lane, operation = Lane.WRITES, commit.operation.value.lower().replace("_", " ")
    stats = list(commit.stats())
    brings = lane is Lane.WRITES
    return Mark(
        instant=instant,
        lane=lane,
        began=began,
        operation=operation,
        inserted=sum(stat.num_inserts for stat in stats) if brings else 0,
        updated=sum(stat.num_updates for stat in stats) if brings else 0,
        deleted=sum(stat.num_deletes for stat in stats) if brings else 0,
        files=len(stats),
        bytes_written=sum(stat.total_bytes for stat in stats),
        changed_bytes=sum(stat.changed_bytes for stat in stats) if brings else 0.0,
    )


def _planned(snapshot: Snapshot, instant: Instant) -> int | None:
    if instant.action is Action.COMPACTION:
        plan = snapshot.view.pending_compaction_plans.get(instant.time)
        return None if plan is None else len(plan.operations)
    if instant.action is Action.CLUSTERING:
        return sum(1 for time in snapshot.view.pending_clusterings().values() if time == instant.time) or None
    return None


def _partition(path: str, slices: Sequence[FileSlice]) -> PartitionFacts:
    logs = [log for each in slices for log in each.logs]
    return PartitionFacts(
        path=path,
        file_groups=len(slices),
        base_bytes=sum(each.base.size_bytes for each in slices if each.base is not None),
        log_files=len(logs),
        log_bytes=sum(log.size_bytes for log in logs),
    )


def _size_class(size_bytes: int) -> int:
    return sum(size_bytes >= step << 20 for step in SIZE_STEPS_MB)
