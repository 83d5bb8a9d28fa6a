"""The end of an action that several processes may carry on: a clean, a rollback, a restore, a savepoint.

Writes and services with a `Transaction` end in that: they check for conflicts first, and publish data files. Both call
`before_completion` of `txn/participants.py`.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext

from hoodie.errors import CommitConflictError
from hoodie.model.change import Change
from hoodie.model.instant import Instant
from hoodie.txn.participants import before_completion, takes_part
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


def complete(context: TableContext, change: Change, data: bytes, *, under_lock: bool) -> None:
    """Complete the instant of a change, unless another process has done so.

    Args:
        data: the content of the completed file.
        under_lock: the caller holds the table lock. Else it is taken, if anything takes part.
    """
    by_completion = context.config.layout.by_completion
    takes_lock = not under_lock and (by_completion or takes_part(context, change.instant.action))
    with context.lock.held(context.lock_timeout_s) if takes_lock else nullcontext():
        if (takes_lock or by_completion) and context.active.exists(change.instant):
            return
        before_completion(context, change)
        _put(context, context.completing(change.instant), data)


def _put(context: TableContext, completed: Instant, data: bytes) -> None:
    try:
        context.active.create(completed, data)
    except CommitConflictError:
        log.info("%s of table %s was completed by another process", completed, context.storage.uri)
    except OSError:
        if not context.active.exists(completed):
            raise
