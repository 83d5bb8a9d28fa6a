"""What a commit or a service did in figures, for those who are told of it; OpenTelemetry is told here."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata
from hoodie.model.results import CommitResult
from hoodie.telemetry import record
from hoodie.view.consumers import consumers_of
from hoodie.view.context import TableContext


def figures(metadata: CommitMetadata, seconds: float) -> Mapping[str, float]:
    """By the names of Apache Hudi's metrics."""
    stats = list(metadata.stats())
    return {
        "duration": round(seconds * 1000),
        "totalPartitionsWritten": len(metadata.write_stats),
        "totalFilesInsert": sum(stat.prev_commit is None for stat in stats),
        "totalFilesUpdate": sum(stat.prev_commit is not None for stat in stats),
        "totalRecordsWritten": sum(stat.num_writes for stat in stats),
        "totalInsertRecordsWritten": sum(stat.num_inserts for stat in stats),
        "totalUpdateRecordsWritten": sum(stat.num_updates for stat in stats),
        "totalRecordsDeleted": sum(stat.num_deletes for stat in stats),
        "totalBytesWritten": sum(stat.total_bytes for stat in stats),
    }


_KINDS = {
    "inserted": "totalInsertRecordsWritten",
    "updated": "totalUpdateRecordsWritten",
    "deleted": "totalRecordsDeleted",
}


def record_commit(context: TableContext, instant: Instant, *, seconds: float) -> None:
    """Tell what a write brought, what is pending after it, and how far consumers lag: also those that read nothing any more."""
    metadata, table = context.active.read_commit(instant), context.config.name
    values, operation = figures(metadata, seconds), metadata.operation.value
    record("write.duration", seconds, table=table, operation=operation)
    record("write.bytes", values["totalBytesWritten"], table=table, operation=operation)
    changed = sum(stat.changed_bytes for stat in metadata.stats())
    record("write.changed_bytes", changed, table=table, operation=operation)
    for kind, name in _KINDS.items():
        record("write.rows", values[name], table=table, operation=operation, kind=kind)
    snapshot = context.snapshot()
    oldest_s = max((context.clock.age_s(each.time) for each in snapshot.timeline.pending()), default=0.0)
    record("pending.oldest_age", max(0.0, oldest_s), table=table)
    for consumer in consumers_of(context, snapshot):
        record("consumer.lag", consumer.lag.seconds, table=table, consumer=consumer.name)
        record("consumer.lag_commits", consumer.lag.commits, table=table, consumer=consumer.name)


def record_service(context: TableContext, action: str, seconds: float, result: object) -> None:
    """Tell of a service that has done its work."""
    table = context.config.name
    record("service.duration", seconds, table=table, action=action)
    if isinstance(result, CommitResult):
        record("write.bytes", result.bytes_written, table=table, operation=result.operation.value)
