"""Compactions and log compactions as methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.maintenance.base import AtWork, OpenTable
from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.model.payloads import CompactionStrategy
from hoodie.model.results import CommitResult
from hoodie.options.arguments import check_seconds, compaction_options, log_compaction_options
from hoodie.options.moments import Moment
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.bounded_compaction
    import hoodie.services.log_compaction
    import hoodie.services.scheduling


class Compactions(OpenTable):
    @changes_table
    def schedule_compaction(
        self,
        options: Mapping[str, str] | None = None,
        *,
        strategy: str | CompactionStrategy | None = None,
        wait_s: float = 30,
    ) -> str | None:
        """Plan a compaction, which merges log files into base files; `run_compaction` runs it, perhaps in another process.

        New writes wait for a moment, so that pending ones can end: the plan leaves out their file groups.

        Args:
            options: Hudi's options of compactions.
            strategy: the choice of slices: a name such as `log_file_size` (the default), `log_file_num` or `day_based`, or the
                class of Apache Hudi; several with commas between them follow each other. Or a function of the candidate slices,
                with their sizes, that returns the slices to take.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when there is nothing to merge.
        """
        return self._schedule(Action.COMPACTION, self._to_compact(options, strategy, None), wait_s=wait_s)

    @changes_table
    def run_compaction(
        self,
        instant: Moment | None = None,
        budget_s: float | None = 300,
        options: Mapping[str, str] | None = None,
        *,
        memory_mb: int | None = None,
    ) -> list[CommitResult]:
        """Run compactions that were scheduled. Several processes may do so at once: each takes other plans.

        Args:
            instant: only the one of this instant, or the last before a moment, as `scan(as_of=…)` takes it. None runs all that are
                pending, oldest first.
            budget_s: the first is always run, and a further one only if it is expected to end in so many seconds; None is no limit.
            options: Hudi's options of files, for the new base files.
            memory_mb: how much a compaction, or each of its tasks on Spark, may hold in memory; the rest goes to disk.

        Returns:
            The results of the compactions that this call ran itself.

        Raises:
            InstantNotFoundError: no compaction is pending at that instant.
            CommitConflictError: another process runs the one at that instant.
        """
        return self._run(
            Action.COMPACTION, self._to_compact(options, None, memory_mb), instant=instant, budget_s=budget_s
        )

    @changes_table
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
            budget_s: run the plans that fit into so many seconds, at least one. Pending plans go first. Then several small
                plans are scheduled. Those that do not fit stay for the next call, or another process.
            memory_mb: as in `run_compaction`.

        Returns:
            What each compaction did; an empty list when there was nothing to merge.

        Example:
            >>> table.compact()
            >>> table.compact(strategy="log_file_num", budget_s=60)
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._to_compact(options, strategy, memory_mb)
        return hoodie.services.bounded_compaction.compact(context, write, budget_s=budget_s)

    def pending_compactions(self) -> tuple[Instant, ...]:
        """The compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.COMPACTION)

    def _to_compact(
        self, options: Mapping[str, str] | None, strategy: str | CompactionStrategy | None, memory_mb: int | None
    ) -> AtWork:
        context, write = self._working(options, compaction_options(strategy=strategy, memory_mb=memory_mb))
        if callable(strategy):
            write = replace(write, compaction=replace(write.compaction, chooses=strategy))
        return context, write


class LogCompactions(OpenTable):
    @changes_table
    def schedule_log_compaction(
        self, options: Mapping[str, str] | None = None, *, blocks: int | None = None, wait_s: float = 30
    ) -> str | None:
        """Plan a log compaction, which merges log files into larger ones; `run_log_compaction` runs it, perhaps in another process.

        Args:
            options: Hudi's options of log compactions.
            blocks: as `compact_logs` has it.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when no file slice has enough logs.
        """
        return self._schedule(Action.LOGCOMPACTION, self._to_compact_logs(options, blocks, None), wait_s=wait_s)

    @changes_table
    def run_log_compaction(
        self,
        instant: Moment | None = None,
        budget_s: float | None = 300,
        options: Mapping[str, str] | None = None,
        *,
        memory_mb: int | None = None,
    ) -> list[CommitResult]:
        """Run log compactions that were scheduled. Several processes may do so at once: each takes other plans.

        Args:
            instant: only the one of this instant, or the last before a moment, as `scan(as_of=…)` takes it. None runs all that are
                pending, oldest first.
            budget_s: begin no further one after so many seconds; None is no limit.
            options: Hudi's options of files, for the new log files.
            memory_mb: as in `run_compaction`.

        Returns:
            The results of the log compactions that this call ran itself. One without an instant had nothing left to do, because its
            file groups were compacted, clustered or replaced meanwhile; its plan is gone.

        Raises:
            InstantNotFoundError: no log compaction is pending at that instant.
            CommitConflictError: another process runs the one at that instant.
        """
        return self._run(
            Action.LOGCOMPACTION, self._to_compact_logs(options, None, memory_mb), instant=instant, budget_s=budget_s
        )

    @changes_table
    def compact_logs(
        self, options: Mapping[str, str] | None = None, *, blocks: int | None = None, memory_mb: int | None = None
    ) -> list[CommitResult]:
        """Merge the log files of file slices into one each, now: schedule a log compaction and run all that are pending.

        Base files do not change, so the cost depends on the size of the log files; that of `compact` depends on the base files.
        Queries open one log file of such a slice instead of many. The older files stay for time travel until the slice is compacted
        and cleaned.

        Args:
            options: Hudi's options of log compactions.
            blocks: slices that got at least so many logs since their last log compaction (5 unless an option says otherwise).
            memory_mb: as in `run_compaction`.

        Returns:
            What each log compaction did; an empty list when no slice has enough logs.

        Raises:
            OptionError: the table has no logs, or merges rows field by field.

        Example:
            >>> table.compact_logs(blocks=3)
        """
        context, write = self._to_compact_logs(options, blocks, memory_mb)
        hoodie.services.scheduling.schedule(hoodie.services.log_compaction.LOG_COMPACTION, context, write)
        return hoodie.services.scheduling.run_pending(hoodie.services.log_compaction.LOG_COMPACTION, context, write)

    def pending_log_compactions(self) -> tuple[Instant, ...]:
        """The log compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.LOGCOMPACTION)

    def _to_compact_logs(self, options: Mapping[str, str] | None, blocks: int | None, memory_mb: int | None) -> AtWork:
        return self._working(options, log_compaction_options(blocks=blocks, memory_mb=memory_mb))
