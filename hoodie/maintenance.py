"""Table services as methods: what `HoodieTable` has of them, embedded and on Spark. How each is done: services/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, overload

from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.model.results import ArchiveResult, CleanResult, CommitResult, RestoreResult, Savepoint
from hoodie.options.arguments import archive_options, check_seconds, clean_options, parse_options
from hoodie.options.write import WriteOptions
from hoodie.services.acts import run_pending, schedule
from hoodie.services.archiving import archive
from hoodie.services.cleaning import CLEANING, nothing_cleaned, preview, summed
from hoodie.services.compaction import COMPACTION
from hoodie.services.recovery import rollback_failed
from hoodie.services.restore import restore
from hoodie.services.rollback import is_completed, preview_rollback, roll_back_commit, rollback_instant
from hoodie.services.savepoints import drop_savepoint, make_savepoint, savepoints_of
from hoodie.storage.refusals import said_plainly
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import undisturbed
from hoodie.view.context import TableContext


class TableServices(ABC):
    """The verbs of table services. The engine of the open table does the work: threads of this process, or executors."""

    @property
    @abstractmethod
    def uri(self) -> str: ...

    @property
    @abstractmethod
    def timeline(self) -> Timeline: ...

    @abstractmethod
    def _at_work(self, options: Mapping[str, str] | None = None) -> tuple[TableContext, WriteOptions]:
        """The table among the writers that the options speak of, and these options."""

    @undisturbed()
    @said_plainly
    def schedule_compaction(self, options: Mapping[str, str] | None = None, *, wait_s: float = 30) -> str | None:
        """Plan a compaction, which merges log files into base files; `run_compaction` runs it, perhaps in another process.

        New writes are held back for a moment, so that pending ones can end: their file groups could not be planned.

        Args:
            options: Hudi's options of compactions.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when there is nothing to merge.
        """
        check_seconds(wait_s, "wait_s")
        context, write = self._at_work(options)
        return schedule(COMPACTION, context, write, wait_s=wait_s)

    @undisturbed()
    @said_plainly
    def run_compaction(
        self, instant: str | None = None, budget_s: float | None = 300, options: Mapping[str, str] | None = None
    ) -> list[CommitResult]:
        """Run compactions that were scheduled.

        Args:
            instant: only the one of this instant; None runs all that are pending, oldest first.
            budget_s: begin no further one after so many seconds; None is no limit.
            options: Hudi's options of files, for the new base files.

        Returns:
            What each of them did.

        Raises:
            InstantNotFoundError: no compaction is pending at that instant.
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._at_work(options)
        return run_pending(COMPACTION, context, write, instant=instant, budget_s=budget_s)

    def compact(self, options: Mapping[str, str] | None = None) -> list[CommitResult]:
        """Merge log files into base files now: schedule a compaction and run all that are pending.

        Args:
            options: Hudi's options of compactions.

        Returns:
            What each compaction did; an empty list when there was nothing to merge.

        Example:
            >>> table.compact()
        """
        self.schedule_compaction(options)
        return self.run_compaction(budget_s=None, options=options)

    @undisturbed()
    @said_plainly
    def clean(
        self,
        options: Mapping[str, str] | None = None,
        *,
        retain_commits: int | None = None,
        retain_hours: int | None = None,
        retain_versions: int | None = None,
        dry_run: bool = False,
    ) -> CleanResult:
        """Delete old versions of files. Writes do this by themselves where `hoodie.clean.automatic` is true.

        Queries of this process that are being read keep their files. Other processes, and Spark with a DataFrame, need to be done
        with a query before as many commits, or hours, have passed as are retained.

        Args:
            options: Hudi's options of cleans.
            retain_commits: the state after each of so many commits stays readable (10 unless an option says otherwise).
            retain_hours: the same for the commits of so many hours.
            retain_versions: each file keeps so many versions, however old they are.
            dry_run: delete nothing, and say what would be deleted.

        Returns:
            How many files went, their bytes, and the earliest instant that can be read afterwards.

        Raises:
            OptionError: more than one of the three was given.
            CommitConflictError: another process cleans the table right now.

        Example:
            >>> table.clean(dry_run=True).bytes_freed
            >>> table.clean(retain_commits=3)
        """
        asked = clean_options(commits=retain_commits, hours=retain_hours, versions=retain_versions)
        context, write = self._at_work({**parse_options(options), **asked})
        CLEANING.require_fit(context)
        if dry_run:
            return preview(context, write.cleaning)
        pending = run_pending(CLEANING, context, write)  # what a dead process has begun
        schedule(CLEANING, context, write)
        return summed([*pending, *run_pending(CLEANING, context, write)]) or nothing_cleaned(context)

    @undisturbed()
    @said_plainly
    def archive(
        self,
        options: Mapping[str, str] | None = None,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
    ) -> ArchiveResult:
        """Move the oldest commits to the archived timeline, so that readers and writers have few to look at. Writes do this by
        themselves where `hoodie.archive.automatic` is true.

        Rows and files stay as they are. `history(archived=True)` and pulls reach the commits still.

        Args:
            options: Hudi's options of archiving.
            min_commits: so many commits stay (20 unless an option says otherwise).
            max_commits: nothing is done unless there are more than so many; one more than `min_commits` where only that is given.
            dry_run: move nothing, and say what would be moved.

        Returns:
            The instants that were moved, and what held back others: a savepoint, a write at work, files that were replaced and not
            yet cleaned.

        Raises:
            CorruptFileError: the file of an instant is damaged; nothing was moved.

        Example:
            >>> table.archive(min_commits=20)
        """
        asked = archive_options(min_commits=min_commits, max_commits=max_commits)
        context, write = self._at_work({**parse_options(options), **asked})
        return archive(context, write, dry_run=dry_run)

    @undisturbed()
    @said_plainly
    def savepoint(self, instant: str | None = None, comment: str = "") -> str:
        """Keep the state after a commit: its files are not cleaned, and the table can be restored to it, until the savepoint is
        dropped.

        Args:
            instant: the commit; None is the latest.
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
        return make_savepoint(context, instant, comment)

    @said_plainly
    def savepoints(self) -> list[Savepoint]:
        """The savepoints of the table, oldest first.

        Example:
            >>> [each.comment for each in table.savepoints()]
        """
        context, _ = self._at_work()
        return savepoints_of(context)

    @undisturbed()
    @said_plainly
    def drop_savepoint(self, instant: str) -> None:
        """Let a savepoint go. Its commit stays; later cleans may delete its files.

        Args:
            instant: of the savepoint.

        Raises:
            InstantNotFoundError: there is no savepoint at that instant.
        """
        context, _ = self._at_work()
        drop_savepoint(context, instant)

    @undisturbed()
    @said_plainly
    def restore(self, instant: str, *, dry_run: bool = False) -> RestoreResult:
        """Take the table back to a commit: what was written, compacted and clustered after it is undone, for good.

        Nobody may be writing. Whoever pulled changes beyond that commit gets an error that says so.

        Args:
            instant: a savepoint, or a commit on the active timeline whose files were not cleaned.
            dry_run: change nothing, and say what would be lost.

        Returns:
            The instants that are gone, with the rows, files and bytes of these.

        Raises:
            InstantNotFoundError: there is no such commit, or files of its state were cleaned.
            CommitConflictError: somebody is writing, or a savepoint of a later commit has to be dropped first.

        Example:
            >>> table.restore(table.savepoints()[-1].instant, dry_run=True)
        """
        context, write = self._at_work()
        return restore(context, write, instant, dry_run=dry_run)

    @overload
    def rollback(self, instant: str | None = None, *, dry_run: Literal[False] = False) -> list[str]: ...

    @overload
    def rollback(self, instant: str | None = None, *, dry_run: Literal[True]) -> RestoreResult: ...

    def rollback(self, instant: str | None = None, *, dry_run: bool = False) -> list[str] | RestoreResult:
        """Undo the newest commit, or writes that died on the way. Every write undoes those first, so without an instant it is
        hardly ever needed.

        Args:
            instant: the newest commit, or a pending instant; None undoes all pending ones whose writer is dead.
            dry_run: change nothing, and say what would be lost.

        Returns:
            The instants that were undone; in a dry run what a restore says.

        Raises:
            InstantNotFoundError: there is no such instant, or files of the state before it were cleaned.
            CommitConflictError: other commits came after it (`restore` undoes them, too), it has a savepoint, or somebody is writing.

        Example:
            >>> table.rollback(table.history()[-1].instant, dry_run=True)
        """
        return self._preview_rollback(instant) if dry_run else self._rollback(instant)

    @said_plainly
    def _preview_rollback(self, instant: str | None) -> RestoreResult:
        context, _ = self._at_work()
        return preview_rollback(context, instant)

    @undisturbed()
    @said_plainly
    def _rollback(self, instant: str | None) -> list[str]:
        context, _ = self._at_work()
        if instant is None:
            return rollback_failed(context)
        if is_completed(context, instant):
            rollback_failed(context)
            roll_back_commit(context, instant)
            return [instant]
        return [instant] if rollback_instant(context, instant) else []

    def pending_compactions(self) -> tuple[Instant, ...]:
        """The compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.COMPACTION)
