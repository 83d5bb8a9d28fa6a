"""Procedures that show the timeline of a table: commits, services, savepoints and rollbacks."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.format.plan_avro import decode_plan
from hoodie.format.service_plans import CLEAN_METADATA
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.names import COMPLETES_AS
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.timeline.timeline import WRITES
from pyspark_hoodie.table import HoodieTable

Row = tuple[Any, ...]


class Arguments(dict[str, Any]):
    """The parameters of a call by their names, with defaults; None where there is neither."""

    def __init__(self, procedure: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.procedure = procedure

    def text(self, name: str) -> str:
        """Empty where it is not given."""
        return str(self.get(name) or "")

    def number(self, name: str) -> int | None:
        """None where it is not given, or negative: no limit."""
        value = self.get(name)
        return None if value is None or value < 0 else int(value)

    def texts(self, name: str) -> list[str]:
        """What stands between commas."""
        return [each.strip() for each in self.text(name).split(",") if each.strip()]

    def options(self) -> dict[str, str]:
        """`a=b,c=d`, as Apache Hudi's procedures take options."""
        result = {}
        for each in self.texts("options"):
            key, equals, text = each.partition("=")
            if not equals:
                raise OptionError(
                    f"CALL {self.procedure}: options are key=value, with commas between; {each!r} is none"
                )
            result[key.strip()] = text.strip()
        return result


def completed_at(table: HoodieTable, instant: Instant) -> str | None:
    """The time of completion; on version 6, whose names do not say it, that of the file."""
    if instant.completion is not None or not instant.is_completed:
        return instant.completion
    context = table._context
    return _digits(context.clock.wall(context.active.reached_at(instant)))


def _digits(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03}"


# -- Commits.


def _newest(table: HoodieTable) -> Iterator[tuple[Instant, CommitMetadata]]:
    for instant in reversed(table.timeline.commits):
        yield instant, table._context.active.read_commit(instant)


def _archived(table: HoodieTable, arguments: Arguments) -> list[tuple[Instant, CommitMetadata]]:
    first, last = arguments.text("start_ts"), arguments.text("end_ts")
    there = [i for i in table.archived_instants() if i.action in WRITES]
    there = [i for i in there if (not first or i.time >= first) and (not last or i.time <= last)]
    metadata = table._context.archived().read_commits(there)
    return [(instant, metadata[instant.time]) for instant in reversed(there)]


def _commit(table: HoodieTable, arguments: Arguments) -> tuple[Instant, CommitMetadata]:
    """The commit that `instant_time` names."""
    time = arguments.text("instant_time")
    instant = next((i for i in table.timeline.commits if i.time == time), None)
    if instant is not None:
        return instant, table._context.active.read_commit(instant)
    for instant in table.archived_instants():
        if instant.time == time and instant.action in WRITES:
            return instant, table._context.archived().read_commits([instant])[instant.time]
    raise InstantNotFoundError(table.timeline.not_found(time, table=table.uri))


def _is_new(stat: WriteStat) -> bool:
    """Whether the file begins a file group."""
    return stat.prev_commit is None


def record_sums(commit: CommitMetadata) -> tuple[int, int, int, int, int, int, int]:
    """Bytes, files added and updated, partitions, records written and updated, errors."""
    stats = list(commit.stats())
    new = sum(map(_is_new, stats))
    written, updated = sum(stat.num_writes for stat in stats), sum(stat.num_updates for stat in stats)
    return sum(s.total_bytes for s in stats), new, len(stats) - new, len(commit.write_stats), written, updated, 0


def _details(when: str | None, instant: Instant, commit: CommitMetadata) -> Iterator[Row]:
    for stat in commit.stats():
        counts = stat.num_writes, stat.num_inserts, stat.num_deletes, stat.num_updates, 0, 0, 0, 0
        more = stat.total_log_records, stat.total_updated_records_compacted, stat.total_bytes
        place = stat.partition_path, stat.file_id, stat.prev_commit or "null"
        yield (instant.time, when, instant.action, *place, *counts, *more)


def show_commits(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the commits, the newest first."""
    for instant, commit in _newest(table):
        yield (instant.time, completed_at(table, instant), instant.action, *record_sums(commit))


def show_commits_metadata(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the files that the commits wrote."""
    for instant, commit in _newest(table):
        yield from _details(completed_at(table, instant), instant, commit)


def show_archived_commits(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the commits that were archived."""
    for instant, commit in _archived(table, arguments):
        yield (instant.time, instant.completion, *record_sums(commit))


def show_archived_commits_metadata(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the files that archived commits wrote."""
    for instant, commit in _archived(table, arguments):
        yield from _details(instant.completion, instant, commit)


def show_commit_files(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the files that one commit wrote."""
    instant, commit = _commit(table, arguments)
    for stat in commit.stats():
        place = instant.action, stat.partition_path, stat.file_id, stat.prev_commit or "null"
        yield (*place, stat.num_updates, stat.num_writes, stat.total_bytes, 0, stat.file_size_bytes)


def show_commit_partitions(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows what one commit wrote into each partition."""
    instant, commit = _commit(table, arguments)
    for path, stats in commit.write_stats.items():
        new = [stat for stat in stats if _is_new(stat)]
        inserted = sum(stat.num_writes if _is_new(stat) else stat.num_inserts for stat in stats)
        counts = len(new), len(stats) - len(new), inserted, sum(stat.num_updates for stat in stats)
        yield (instant.action, path, *counts, sum(stat.total_bytes for stat in stats), 0)


def show_commit_write_stats(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows how much one commit wrote."""
    instant, commit = _commit(table, arguments)
    size, *_, written, _, _ = record_sums(commit)
    yield instant.action, size, written, math.ceil(size / written) if written else 0


def show_commit_extra_metadata(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the metadata that writers keep in commits: of one, or of the newest."""
    pair = _commit(table, arguments) if arguments.text("instant_time") else next(_newest(table), None)
    if pair is None:
        return
    instant, commit = pair
    extra = {**commit.extra, **({"schema": commit.schema_json} if commit.schema_json else {})}
    for key, text in extra.items():
        if not arguments.text("metadata_key") or key == arguments.text("metadata_key"):
            yield instant.time, instant.action, key, text


def commits_compare(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Says how many commits one table is ahead of another, or behind it."""
    other = HoodieTable.for_path(table._spark, arguments.text("path"))
    mine, theirs = ([i.time for i in each.timeline.commits] for each in (table, other))
    last_mine, last_theirs = (times[-1] if times else "0" for times in (mine, theirs))
    is_behind = last_theirs > last_mine
    missing = [time for time in theirs if time > last_mine] if is_behind else [t for t in mine if t > last_theirs]
    word = "behind" if is_behind else "ahead"
    yield (
        f"Source {table.config.name} is {word} by {len(missing)} commits. Commits to catch up - [{', '.join(missing)}]",
    )


# -- Services, savepoints and the timeline.


def show_timeline(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the instants in all states, the newest first."""
    first, last = arguments.text("startTime"), arguments.text("endTime")
    active = table._context.active
    undone: dict[str, list[str]] = {}
    for rollback in (i for i in table.timeline if i.action is Action.ROLLBACK and i.is_completed):
        for time, _ in active.read_undone(rollback).undone:
            undone.setdefault(str(time), []).append(rollback.time)
    times: dict[tuple[str, Action], dict[State, str]] = defaultdict(dict)
    there = {(i.time, COMPLETES_AS.get(i.action, i.action)) for i in table.timeline}
    for instant, info in active.state_files(there):
        key = instant.time, COMPLETES_AS.get(instant.action, instant.action)
        times[key][instant.state] = f"{table._context.clock.wall(info.mtime_s):%m-%d %H:%M:%S}"
    older = [(i, "ARCHIVED") for i in table.archived_instants()] if arguments["showArchived"] else []
    everything = [*older, *((i, "ACTIVE") for i in table.timeline)]
    for instant, kind in sorted(everything, key=lambda each: each[0].time, reverse=True):
        if (first and instant.time < first) or (last and instant.time > last):
            continue
        at = times.get((instant.time, COMPLETES_AS.get(instant.action, instant.action)), {})
        moments = (at.get(state, "-") for state in (State.REQUESTED, State.INFLIGHT, State.COMPLETED))
        if instant.action is Action.ROLLBACK and instant.is_completed and kind == "ACTIVE":
            about = ", ".join(f"Rolled back {time}" for time, _ in active.read_undone(instant).undone)
        else:
            about = ", ".join(f"Rolled back by {time}" for time in undone.get(str(instant.time), ()))
        yield instant.time, instant.action, instant.state.name, *moments, kind, about or None


def show_savepoints(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the savepoints, the newest first."""
    for each in reversed(table.savepoints()):
        yield (each.instant,)


def show_rollbacks(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows which instants were rolled back."""
    for instant in table.timeline:
        if instant.action is Action.ROLLBACK and instant.is_completed:
            (rollback,) = table._context.active.read_undone(instant).rollbacks
            files = sum(len(each.deleted) for each in rollback.partitions)
            for time, _ in rollback.rolled_back:
                yield rollback.started, time, files, rollback.took_ms, len(rollback.partitions)


def show_rollback_detail(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the files that one rollback deleted."""
    time = arguments.text("instant_time")
    instant = table.timeline.find(time, Action.ROLLBACK)
    if instant is None or not instant.is_completed:
        raise InstantNotFoundError(f"there is no rollback {time} in table {table.uri}: CALL show_rollbacks lists them")
    (rollback,) = table._context.active.read_undone(instant).rollbacks
    undone = f"[{', '.join(time for time, _ in rollback.rolled_back)}]"
    for each in rollback.partitions:
        for names, succeeded in ((each.deleted, True), (each.failed, False)):
            for name in names:
                yield rollback.started, undone, each.partition_path, name, succeeded


def cleans(table: HoodieTable, arguments: Arguments) -> Iterator[tuple[Instant, Mapping[str, Any]]]:
    """Completed cleans with what they say of themselves, the newest first."""
    active = table._context.active
    for instant in reversed(tuple(table.timeline)):
        if instant.action is Action.CLEAN and instant.is_completed:
            path = active.path(instant)
            yield instant, decode_plan(CLEAN_METADATA, active.storage.read(path), path=path)


def show_cleans(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the cleans, the newest first."""
    for instant, metadata in cleans(table, arguments):
        head = instant.time, completed_at(table, instant), instant.action, metadata["startCleanTime"]
        counts = metadata["timeTakenInMillis"], metadata["totalFilesDeleted"]
        yield (
            *head,
            *counts,
            metadata["earliestCommitToRetain"],
            metadata["lastCompletedCommitTimestamp"],
            metadata["version"],
        )


def show_cleans_metadata(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows what cleans deleted in each partition."""
    for instant, metadata in cleans(table, arguments):
        head = instant.time, completed_at(table, instant), instant.action, metadata["startCleanTime"]
        for path, each in metadata["partitionMetadata"].items():
            names = (len(each[key]) for key in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles"))
            counts = bool(each["isPartitionDeleted"]), metadata["timeTakenInMillis"], metadata["totalFilesDeleted"]
            yield (*head, path, each["policy"], *names, *counts)


def show_clean_plans(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows what cleans planned to delete."""
    for instant in reversed(tuple(table.timeline)):
        if instant.action is Action.CLEAN:
            plan = table._context.active.read_clean_plan(instant.time)
            earliest = plan.earliest[0] if plan.earliest else None
            head = instant.time, instant.state.name, instant.action, earliest, plan.last_completed or None
            extra = json.dumps(dict(plan.extra)) if plan.extra else None
            yield (*head, plan.policy, 2, len(plan.files), len(plan.emptied), extra)


def compactions(table: HoodieTable, times: Iterable[str] | None = None) -> Iterator[Row]:
    """Time, operations and state of compactions: of all, or of these."""
    only = None if times is None else set(times)
    for instant in reversed(tuple(table.timeline)):
        is_one = instant.action is Action.COMPACTION or instant.time in table.timeline.compactions
        if is_one and instant.action in (Action.COMPACTION, Action.COMMIT) and (only is None or instant.time in only):
            plan = table._context.active.read_compaction_plan(instant.time)
            yield instant.time, len(plan.operations), instant.state.name


def show_compaction(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the compactions, the newest first."""
    return compactions(table)


def clusterings(table: HoodieTable, times: Iterable[str] | None = None, *, partitions: bool = False) -> Iterator[Row]:
    """Time, groups, state and partitions of clusterings: of all, or of these."""
    only, active = None if times is None else set(times), table._context.active
    for instant in reversed(tuple(table.timeline)):
        if instant.action not in (Action.CLUSTERING, Action.REPLACECOMMIT) or (
            only is not None and instant.time not in only
        ):
            continue
        if instant.is_completed and active.read_commit(instant).operation is not WriteOperation.CLUSTER:
            continue
        if not instant.is_completed and not active.is_pending_clustering(instant):
            continue
        plan = active.read_clustering_plan(instant.time)
        paths = sorted({each.partition_path for group in plan.groups for each in group.slices})
        yield instant.time, len(plan.groups), instant.state.name, ",".join(paths) if partitions else "*"


def show_clustering(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the clusterings, the newest first."""
    return clusterings(table, partitions=arguments["show_involved_partition"])


TIMELINE: Mapping[str, Callable[[HoodieTable, Arguments], Iterable[Row]]] = {
    each.__name__: each
    for each in (
        *(show_commits, show_commits_metadata, show_archived_commits, show_archived_commits_metadata),
        *(
            show_commit_files,
            show_commit_partitions,
            show_commit_write_stats,
            show_commit_extra_metadata,
            commits_compare,
        ),
        *(show_timeline, show_savepoints, show_rollbacks, show_rollback_detail),
        *(show_cleans, show_cleans_metadata, show_clean_plans, show_compaction, show_clustering),
    )
}
"""By the name of the procedure."""
