"""The steps that an upgrade and a downgrade of a table have in common; each brings its own way to move the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

from hoodie.errors import CommitConflictError, LockError, UnsupportedTableError
from hoodie.format.layout import Layout
from hoodie.format.properties import format_properties
from hoodie.model.enums import TableType
from hoodie.model.names import PROPERTIES
from hoodie.model.service_results import UpgradeResult
from hoodie.options.compaction import Strategy
from hoodie.options.write import WriteOptions
from hoodie.services.bounded_compaction import compact
from hoodie.services.scheduling import settle
from hoodie.txn.critical import under_lock
from hoodie.txn.metadata_table import drop_metadata_table
from hoodie.view.context import Snapshot, TableContext


def change_version(
    context: TableContext,
    options: WriteOptions,
    layout: Layout,
    properties: Mapping[str, str],
    *,
    move: Callable[[Snapshot], None],
    after_compaction: Callable[[], None] | None = None,
    verb: str,
    dry_run: bool,
) -> UpgradeResult:
    """Give a table the version of this layout and these properties, or say what that would do.

    Args:
        move: puts the timeline of the other layout in place, and then the properties, under the lock. Not called where both versions
            have the same timeline: only the properties change.
        after_compaction: of a merge-on-read table whose timeline moves.
        verb: "upgraded" or "downgraded", for messages.

    Raises:
        CommitConflictError: writes or services are pending, and not dead.
    """
    config = context.config
    moves = layout.number != config.layout.number
    if moves and config.bootstrap_base:
        raise UnsupportedTableError(
            f"table {config.uri} was bootstrapped, and the timeline of such a table is not moved: let Apache Hudi do it, or copy its "
            "rows into a new table"
        )
    compacted = 0
    if not dry_run:
        settle(context, options)
        if moves and config.table_type is TableType.MERGE_ON_READ:
            compacted = compact_all(context, options)
            if after_compaction is not None:
                after_compaction()
    with under_lock(context) if not dry_run else nullcontext():
        snapshot = context.snapshot()
        result = UpgradeResult(
            int(config.version),
            int(layout.version),
            instants=len(snapshot.timeline) if moves else 0,
            archived=len(snapshot.archived.instants) if moves else 0,
            compacted=sum(1 for each in snapshot.view.latest_slices() if each.logs) if moves else 0,
            changes=described_changes(config.raw, properties),
            dry_run=dry_run,
        )
        if dry_run:
            return result
        _require_rest(context, snapshot, verb=verb)
        if moves:
            move(snapshot)
        else:
            put_properties(context, properties, verb=verb)
    return replace(result, compacted=compacted)


def compact_all(context: TableContext, options: WriteOptions) -> int:
    """Compact every file slice with logs; gives how many there were."""
    everything = replace(options.compaction, strategies=(Strategy.UNBOUNDED,), chooses=None)
    results = compact(context, replace(options, compaction=everything), budget_s=None)
    return sum(each.files for each in results)


def described_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each property that is another one."""
    result = []
    for name in sorted({*before, *after}):
        was, becomes = before.get(name, "").strip(), after.get(name, "").strip()
        if was != becomes:
            result.append(f"{name}={becomes}, was {was or 'not set'}" if becomes else f"{name} is dropped, was {was}")
    return tuple(result)


def put_properties(context: TableContext, properties: Mapping[str, str], *, verb: str) -> None:
    """The one step that counts: it drops the metadata table, which is of the version before, and replaces the properties."""
    storage = context.storage
    drop_metadata_table(storage, why="which was of the version before")
    if not context.lock.is_held():
        raise LockError(f"the lock of table {storage.uri} ended while it was {verb}; it is as it was, run it again")
    now = datetime.now(UTC)
    comment = [f"Updated at {now.isoformat()}", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
    storage.replace(PROPERTIES, format_properties(dict(properties), comment=comment).encode())


def _require_rest(context: TableContext, snapshot: Snapshot, *, verb: str) -> None:
    pending = snapshot.timeline.pending()
    if pending:
        raise CommitConflictError(
            f"table {context.storage.uri} was not {verb}: {pending[0]} is pending; let it end, or roll it back, and try again"
        )
