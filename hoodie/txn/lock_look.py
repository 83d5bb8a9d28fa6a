"""What a writer sees of a table under its lock, asked for at once."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from hoodie.errors import CommitConflictError
from hoodie.index.rings import ruled
from hoodie.options.table import TableConfig
from hoodie.storage.parallel import together
from hoodie.txn.critical import require_same_table
from hoodie.txn.gate import is_closed, wait_at_gate
from hoodie.txn.metadata_table import Seen, list_metadata_folder
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.view.view import FileSystemView


def look_under_lock(context: TableContext, hold: ExitStack, last_view: FileSystemView | None) -> tuple[Snapshot, Seen]:
    """The table under the lock, which `hold` gets; where the gate is closed, who closed it goes first."""
    may_wait = True
    while True:
        hold.enter_context(context.lock.held(context.lock_timeout_s))
        now, snapshot, waits, folder = together(
            context.storage,
            partial(require_same_layout, context, places_rows=True),
            partial(context.snapshot, last_view),
            partial(is_closed, context),
            partial(list_metadata_folder, context.active, context.storage),
        )
        if not (waits and may_wait):
            return snapshot, Seen(now.raw, snapshot.timeline, folder)
        hold.close()
        wait_at_gate(context)
        may_wait = False


def require_same_layout(context: TableContext, *, places_rows: bool) -> TableConfig:
    """Refuse to go on after a change of what this write rests on, and give what the table says now; `places_rows`: the write
    chose file groups for keys.
    """
    now = load_config(context.storage)
    require_same_table(context.config, now)
    mine = context.config.buckets
    is_same = now.buckets is None if mine is None else mine.holds_against(now.buckets)
    if is_same and mine is not None and mine.rules is not None and places_rows:
        is_same = ruled(context.storage, context.active.load(), mine) == mine
    if places_rows and not is_same:
        raise CommitConflictError(
            f"table {context.storage.uri} was given the bucket index, or other numbers of buckets, by another writer while this one "
            "was at work; nothing was written, run the write again"
        )
    return now
