"""What others changed in a table since the rows of a write were prepared: taken over where that is sound, else refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hoodie.errors import CommitConflictError, SchemaError
from hoodie.model.columns import Column
from hoodie.model.instant import InstantTime
from hoodie.model.nested import column_paths
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import WriteBasis, find_conflict
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.batch import Batch
from hoodie.write.plan import WritePlan
from hoodie.write.schema import Leave, reconcile


class StaleSnapshotError(CommitConflictError):
    """The files that were looked into changed before the instant was allotted: look again. Nothing was written."""


def schema_after(context: TableContext, batch: Batch, leave: Leave, snapshot: Snapshot) -> pa.Schema:
    """The table's columns after this write, as the table is now: others may have changed them since the rows were prepared."""
    config = context.config
    _require_columns_there(batch, snapshot, config.name)
    # What the batch lacks was asked when its rows were prepared. A column that another writer added since is null in them.
    since = replace(leave, null_for_missing=True)
    schema = reconcile(snapshot.schema, batch.input_schema, table_name=config.name, leave=since)
    for name in (*config.record_key_fields, *config.partition_fields):
        top = name.split(".")[0]
        # Keys and paths are texts of the values, and were made from the types that the columns had.
        if top in batch.schema.names and schema.field(top).type != batch.schema.field(top).type:
            raise SchemaError(
                f"another writer changed column {top!r} of table {config.name!r} from {batch.schema.field(top).type} to "
                f"{schema.field(top).type} while this batch was read; nothing was written, run the write again"
            )
    return schema


def _require_columns_there(batch: Batch, snapshot: Snapshot, table: str) -> None:
    """Raises SchemaError where a column that the batch brings was renamed or dropped since its rows were prepared: it would be a new
    one, and rows would have nulls in the one that was meant.
    """
    if snapshot.history is None or snapshot.schema is None or batch.prepared_for is None:
        return
    meant = {*column_paths(batch.input_schema)} & {*column_paths(batch.prepared_for)}
    missing = sorted(meant - {*column_paths(snapshot.schema)})
    if missing:
        raise SchemaError(
            f"another writer renamed or dropped column {missing[0]!r} of table {table!r} while this batch was read; nothing was "
            f"written, write it again with the columns of now: {', '.join(snapshot.schema.names)}"
        )


def require_same_columns(context: TableContext, looked_at: Snapshot, now: Snapshot) -> None:
    """Raises StaleSnapshotError when another writer changed the table's columns since."""
    if now.schema is not None and (looked_at.schema != now.schema or _columns(looked_at) != _columns(now)):
        raise StaleSnapshotError(
            f"another writer changed the schema of table {context.config.name!r}; run the write again"
        )


def _columns(snapshot: Snapshot) -> tuple[Column, ...] | None:
    return None if snapshot.history is None else snapshot.history.now


def require_same_rows(context: TableContext, found_on: Timeline, now: Snapshot, plan: WritePlan) -> None:
    """The rows that a condition found are as they were: nobody has changed the file groups that they are in since, or inserted
    where the plan inserts.

    From here on the commit itself sees to that. Rows that came to fit the condition meanwhile are left: the write goes before
    the one that brought them.
    """
    before, there = found_on.completed_times, now.timeline.completed_times
    conflict = find_conflict(
        InstantTime(),
        WriteBasis(plan.based_on, frozenset() if plan.replaced else plan.absent_in),
        current={group: now.view.slice_of(group) for group in plan.based_on},
        others=((i, now.active.read_commit(i)) for i in now.timeline.commits if i.time not in before),
    )
    changed = None if conflict is None else conflict.reason
    if changed is None and found_on.commits and found_on.commits[-1].time not in there:
        changed = f"commit {found_on.commits[-1]} was removed from the timeline"
    if changed is not None:
        raise StaleSnapshotError(
            f"table {context.config.name!r} was changed after the condition was evaluated: {changed}; nothing was written, run the "
            "write again"
        )
