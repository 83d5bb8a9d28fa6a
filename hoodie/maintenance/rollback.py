"""Rollbacks as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

import hoodie.services
import hoodie.undo
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import Action
from hoodie.model.instant import InstantTime
from hoodie.model.results import RestoreResult
from hoodie.options.moments import Moment
from hoodie.storage.refusals import hoodie_errors
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.catalog
    import hoodie.services.clustering
    import hoodie.undo.recovery
    import hoodie.undo.rollback


class Rollbacks(OpenTable):
    @overload
    def rollback(self, instant: Moment | None = None, *, dry_run: Literal[False] = False) -> list[str]: ...

    @overload
    def rollback(self, instant: Moment | None = None, *, dry_run: Literal[True]) -> RestoreResult: ...

    def rollback(self, instant: Moment | None = None, *, dry_run: bool = False) -> list[str] | RestoreResult:
        """Undo the newest commit, or writes whose process died. Every write undoes those first, so a call without an instant is
        hardly ever needed.

        Args:
            instant: the newest commit, as a moment that `scan(as_of=…)` takes, or a pending instant, which may be a clustering or a
                log compaction that was scheduled; None undoes all writes whose writer is dead, and no plan.
            dry_run: change nothing, and say what would be lost.

        Returns:
            The instants that were undone; in a dry run what a restore says.

        Raises:
            InstantNotFoundError: there is no such instant, or files of the state before it were cleaned.
            CommitConflictError: other commits came after it (`restore` undoes them, too), it has a savepoint, or somebody is writing.

        Example:
            >>> table.rollback(table.history()[-1].instant, dry_run=True)
        """
        instant_time = None if instant is None else self._instant(instant, lambda timeline: timeline.commits)
        return self._preview_rollback(instant_time) if dry_run else self._rollback(instant_time)

    @hoodie_errors
    def _preview_rollback(self, instant: InstantTime | None) -> RestoreResult:
        context, _ = self._at_work()
        return hoodie.undo.rollback.preview_rollback(context, instant)

    @changes_table
    def _rollback(self, instant: InstantTime | None) -> list[str]:
        context, _ = self._at_work()
        if instant is None:
            return hoodie.undo.recovery.recover(context, hoodie.services.catalog.SERVICES)
        if hoodie.undo.rollback.is_completed(context.active, instant):
            hoodie.undo.recovery.rollback_failed(context, hoodie.services.catalog.SERVICES)
            hoodie.undo.rollback.roll_back_commit(context, instant)
            return [str(instant)]
        if context.active.load().find(instant, Action.CLUSTERING) is not None:
            return [str(instant)] if hoodie.services.clustering.drop(context, instant) else []
        return [str(instant)] if hoodie.undo.rollback.rollback_instant(context, instant) else []
