"""Log files that a dead writer of another program has left open on HDFS.

While its lease stands, nobody without a JVM can read such a file to its end: not the rollback, which looks what the dead writer has
put there, and no query. Writers of ours hold no file open under its final name.
"""

from __future__ import annotations

from typing import cast

from hoodie.errors import CommitConflictError
from hoodie.model.instant import Instant
from hoodie.model.names import parse_log_file
from hoodie.storage.base import AppendingStorage
from hoodie.timeline.pending import written_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.view.context import TableContext


def end_open_logs(context: TableContext, timeline: Timeline, instant: Instant) -> None:
    """Recover the leases of log files, of which a pending write that is dead may hold some. It can write no more then.

    A log does not say in its name who writes it: so all are asked for, a request each. Ask under the lock.

    Raises:
        CommitConflictError: a living writer of another program may hold some of them. OSError: a lease was not recovered.
    """
    storage = context.storage
    if not (storage.can.is_remote and isinstance(storage.lock_root, AppendingStorage)):
        return
    if context.liveness.is_alive(instant.time) is not None:
        return  # ours
    for other in timeline.pending_writes:
        if other != instant and life_of(other.time, context) is Life.FOREIGN_ALIVE:
            raise CommitConflictError(written_by_others(other, table=storage.uri))
    for partition_path in context.listing.all_files().partitions:
        for info in storage.list(partition_path):
            if not info.is_folder and parse_log_file(info.name) is not None:
                cast(AppendingStorage, storage).end_log(info.path)
