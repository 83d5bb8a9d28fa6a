"""Savepoints, restores and rollbacks as methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

import hoodie.services
import hoodie.undo
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.results import RestoreResult, Savepoint
from hoodie.options.moments import Moment
from hoodie.storage.refusals import hoodie_errors
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.catalog
    import hoodie.services.clustering
    import hoodie.services.savepoints
    import hoodie.services.scheduling
    import hoodie.undo.recovery
    import hoodie.undo.restore
    import hoodie.undo.rollback


def _commits(timeline: Timeline) -> Sequence[Instant]:
    return timeline.commits


def _savepoints(timeline: Timeline) -> Sequence[Instant]:
    return [each for each in timeline if each.action is Action.SAVEPOINT and each.is_completed]


class Savepoints(OpenTable):
    @changes_table
    def savepoint(self, instant: Moment | None = None, comment: str = "") -> str:
        """Protect the state after a commit: until the savepoint is dropped, cleans keep its files, and the table can be restored to
        it.

        Args:
            instant: the commit, or a moment as `scan(as_of=…)` takes it: then the last commit before it. None is the latest.
            comment: why it is kept.

        Returns:
            The instant of the commit, which stands for the savepoint.

        Raises:
            InstantNotFoundError: there is no such commit, or files of its state were cleaned.
            CommitConflictError: it has a savepoint already, or is being cleaned.

        Example:
            >>> table.savepoint(comment="before the migration")
        """
        context, _ = self._at_work()
        return hoodie.services.savepoints.make_savepoint(
            context, None if instant is None else self._instant(instant, _commits), comment
        )

    @hoodie_errors
    def savepoints(self) -> list[Savepoint]:
        """The savepoints of the table, oldest first.

        Example:
            >>> [each.comment for each in table.savepoints()]
        """
        context, _ = self._at_work()
        return hoodie.services.savepoints.savepoints_of(context.active)

    @changes_table
    def drop_savepoint(self, instant: Moment) -> None:
        """Drop a savepoint. Its commit stays; later cleans may delete its files.

        Args:
            instant: of the savepoint, or a moment: then the last one before it.

        Raises:
            InstantNotFoundError: there is no savepoint at that instant.
        """
        context, _ = self._at_work()
        hoodie.services.savepoints.drop_savepoint(context, self._instant(instant, _savepoints))

    @changes_table
    def restore(self, instant: Moment, *, dry_run: bool = False) -> RestoreResult:
        """Restore the table to a commit: all later writes, compactions and clusterings are undone permanently.

        There must be no write in progress. Pulls that have read beyond that commit get an error that says so.

        Args:
            instant: a savepoint, a commit on the active timeline whose files were not cleaned, or a moment as `scan(as_of=…)` takes
                it: then the last commit before it.
            dry_run: change nothing, and say what would be lost.

        Returns:
            The undone instants, with their rows, files and bytes.

        Raises:
            InstantNotFoundError: there is no such commit, or files of its state were cleaned.
            CommitConflictError: somebody is writing, or a savepoint of a later commit has to be dropped first.

        Example:
            >>> table.restore("1 hour ago", dry_run=True)
            >>> table.restore(table.savepoints()[-1])
        """
        context, write = self._at_work()
        settle = partial(hoodie.services.scheduling.settle, options=write)
        return hoodie.undo.restore.restore(context, self._instant(instant, _commits), settle=settle, dry_run=dry_run)


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
