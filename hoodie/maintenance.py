"""Table services as methods: what `HoodieTable` has of them, embedded and on Spark. How each is done: services/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from hoodie.model.compaction import CompactionStrategy
from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.model.results import ArchiveResult, CleanResult, CommitResult
from hoodie.options.arguments import (
    archive_options,
    check_seconds,
    clean_options,
    compaction_options,
    parse_options,
)
from hoodie.options.write import WriteOptions
from hoodie.services.acts import run_pending, schedule
from hoodie.services.archiving import archive
from hoodie.services.budget import Budget
from hoodie.services.cleaning import CLEANING, nothing_cleaned, preview, summed
from hoodie.services.compacting import compact
from hoodie.services.compaction import COMPACTION
from hoodie.services.recovery import rollback_failed
from hoodie.services.rollback import rollback_instant
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
    def schedule_compaction(
        self,
        options: Mapping[str, str] | None = None,
        *,
        strategy: str | CompactionStrategy | None = None,
        wait_s: float = 30,
    ) -> str | None:
        """Plan a compaction, which merges log files into base files; `run_compaction` runs it, perhaps in another process.

        New writes are held back for a moment, so that pending ones can end: their file groups could not be planned.

        Args:
            options: Hudi's options of compactions.
            strategy: which slices are taken: a name such as `log_file_size` (the default), `log_file_num` or `day_based`, or the
                class of Apache Hudi; several with commas between them follow each other. Or a function of the candidate slices,
                with their sizes, that gives those to take.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when there is nothing to merge.
        """
        check_seconds(wait_s, "wait_s")
        context, write = self._to_compact(options, strategy, None)
        return schedule(COMPACTION, context, write, wait_s=wait_s)

    @undisturbed()
    @said_plainly
    def run_compaction(
        self,
        instant: str | None = None,
        budget_s: float | None = 300,
        options: Mapping[str, str] | None = None,
        *,
        memory_mb: int | None = None,
    ) -> list[CommitResult]:
        """Run compactions that were scheduled. Several processes may do so at once: each takes other plans.

        Args:
            instant: only the one of this instant; None runs all that are pending, oldest first.
            budget_s: the first is always run, and a further one only if it is expected to end in so many seconds; None is no limit.
            options: Hudi's options of files, for the new base files.
            memory_mb: how much a compaction may hold in memory, on Spark each of its tasks; what is more goes to disk.

        Returns:
            What each of them did that this call ran itself.

        Raises:
            InstantNotFoundError: no compaction is pending at that instant.
            CommitConflictError: another process runs the one at that instant.
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._to_compact(options, None, memory_mb)
        return run_pending(COMPACTION, context, write, instant=instant, budget=Budget(budget_s))

    @undisturbed()
    @said_plainly
    def compact(
        self,
        options: Mapping[str, str] | None = None,
        *,
        strategy: str | CompactionStrategy | None = None,
        budget_s: float | None = None,
        memory_mb: int | None = None,
    ) -> list[CommitResult]:
        """Merge log files into base files now: schedule a compaction and run all that are pending.

        Args:
            options: Hudi's options of compactions.
            strategy: as in `schedule_compaction`.
            budget_s: run what fits into so many seconds, at least one plan. What is pending goes first. Then several small plans are
                scheduled, and those that do not fit stay for the next call, or another process.
            memory_mb: as in `run_compaction`.

        Returns:
            What each compaction did; an empty list when there was nothing to merge.

        Example:
            >>> table.compact()
            >>> table.compact(strategy="log_file_num", budget_s=60)
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._to_compact(options, strategy, memory_mb)
        return compact(context, write, budget_s=budget_s)

    def _to_compact(
        self, options: Mapping[str, str] | None, strategy: str | CompactionStrategy | None, memory_mb: int | None
    ) -> tuple[TableContext, WriteOptions]:
        asked = compaction_options(strategy=strategy, memory_mb=memory_mb)
        context, write = self._at_work({**parse_options(options), **asked})
        if callable(strategy):
            write = replace(write, compaction=replace(write.compaction, chooses=strategy))
        return context, write

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
    def rollback(self, instant: str | None = None) -> list[str]:
        """Undo writes that died on the way. Every write does this first, so it is hardly ever needed.

        Args:
            instant: only this pending instant; None undoes all whose writer is dead.

        Returns:
            The instants that were undone.

        Raises:
            InstantNotFoundError: there is no such instant, or it is completed.
        """
        context, _ = self._at_work()
        if instant is None:
            return rollback_failed(context)
        return [instant] if rollback_instant(context, instant) else []

    def pending_compactions(self) -> tuple[Instant, ...]:
        """The compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.COMPACTION)
