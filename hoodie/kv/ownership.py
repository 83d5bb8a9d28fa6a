"""A bucket in the hands of one writer: refused to a second one while the first lives, taken over from a dead one.

On a disk the system locks the mark, and lets go of it with the process, however long that is paused. Elsewhere the mark names the
process, and a heartbeat shows that it lives. A writer that was paused for longer may have lost the bucket: see `wal` and `manifest`
for what fences it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.errors import LockError
from hoodie.lock.base import Coordination, Liveness
from hoodie.lock.providers import coordinate
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import Storage
from hoodie.txn.heartbeat import Heartbeat

_MARK = "writer"


@dataclass(frozen=True)
class _Beaten:
    """What `Heartbeat` needs to know of a table."""

    storage: Storage
    liveness: Liveness
    concurrency: ConcurrencyOptions


class Hold:
    def __init__(self, storage: Storage, what: str, concurrency: ConcurrencyOptions = CONCURRENCY) -> None:
        """Take it.

        Args:
            what: for messages, such as "bucket 3 of store s3://lake/state".

        Raises:
            LockError: a living writer has it.
        """
        coordination: Coordination = coordinate(storage, concurrency)
        self._what = what
        self._heartbeat = Heartbeat(_MARK, _Beaten(storage, coordination.liveness, concurrency))
        try:
            self._heartbeat.hold()
        except LockError as exc:
            holder = coordination.liveness.holder(_MARK)
            raise LockError(
                f"{what} has a writer: {holder or 'another one'}. A bucket has one writer at a time; close that one first"
            ) from exc
        try:
            self._heartbeat.start()
        except BaseException:
            self.abandon()
            raise

    def is_lost(self) -> bool:
        return self._heartbeat.is_lost()

    def let_go(self) -> None:
        self._heartbeat.stop()

    def abandon(self) -> None:
        """As if the process had died."""
        self._heartbeat.abandon()
