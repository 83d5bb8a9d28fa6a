"""The critical section of whoever plans or changes something beside the writes: the lock of the very table that was opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.errors import CommitConflictError
from hoodie.model.enums import Action
from hoodie.options.fits import check_version
from hoodie.timeline.pending import being_restored
from hoodie.timeline.timeline import Timeline
from hoodie.txn.same_table import require_same_table
from hoodie.view.context import TableContext, load_config


@contextmanager
def under_lock(context: TableContext) -> Iterator[None]:
    """Hold the table lock.

    Raises:
        LockError: nobody let it go in time. TableChangedError, UnsupportedTableError: as `require_same_table`.
        UnsupportedTableError: the table's version is only read.
    """
    check_version(context.config)
    with context.lock.held(context.lock_timeout_s):
        require_same_table(context.config, load_config(context.storage))
        yield


def refuse_amid_restore(context: TableContext, timeline: Timeline) -> None:
    """Raises CommitConflictError while a restore is at work. Ask under the lock."""
    for restore in timeline.pending(Action.RESTORE):
        by = context.liveness.holder(restore.time)
        raise CommitConflictError(being_restored(restore, table=context.storage.uri, by=by))
