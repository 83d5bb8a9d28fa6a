"""Table services as methods: what `HoodieTable` has of them, embedded and on Spark. How each is done: services/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal, overload

from hoodie.errors import OptionError
from hoodie.hive.sync import sync
from hoodie.lock.providers import coordinate
from hoodie.model.compaction import CompactionStrategy
from hoodie.model.enums import Action
from hoodie.model.findings import Diagnosis, PropertiesRepair, RepairResult, ValidationResult
from hoodie.model.hive_results import HiveSyncResult
from hoodie.model.instant import Instant
from hoodie.model.payloads import ClusteringPlan
from hoodie.model.results import ArchiveResult, CleanResult, CommitResult, RestoreResult, Savepoint
from hoodie.model.service_results import ExpiryResult
from hoodie.options.arguments import (
    archive_options,
    check_seconds,
    clean_options,
    cluster_options,
    compaction_options,
    expiry_options,
    hive_options,
    log_compaction_options,
    parse_options,
)
from hoodie.options.fits import check_version
from hoodie.options.keys import EXPIRY_DAYS
from hoodie.options.parse import load_defaults, parse_write_options
from hoodie.options.write import WriteOptions
from hoodie.read.partitions import partitions_where
from hoodie.read.where import Where
from hoodie.services.acts import run_pending, schedule
from hoodie.services.archiving import archive
from hoodie.services.budget import Budget
from hoodie.services.cleaning import CLEANING, nothing_cleaned, preview, summed
from hoodie.services.clustering import CLUSTERING, drop, preview_clustering
from hoodie.services.compacting import compact
from hoodie.services.compaction import COMPACTION
from hoodie.services.doctor import diagnose
from hoodie.services.expiry import expire
from hoodie.services.job import ServicesJob
from hoodie.services.log_compaction import LOG_COMPACTION
from hoodie.services.properties_repair import plan_properties, repair_at
from hoodie.services.recovery import rollback_failed
from hoodie.services.repairs import kinds_of, repair, undo
from hoodie.services.restore import restore
from hoodie.services.rollback import is_completed, preview_rollback, roll_back_commit, rollback_instant
from hoodie.services.savepoints import drop_savepoint, make_savepoint, savepoints_of
from hoodie.services.stray_files import YOUNG_S
from hoodie.services.validation import validate
from hoodie.storage.refusals import said_plainly
from hoodie.storage.uri import open_storage
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
        check_seconds(wait_s, "wait_s")
        context, write = self._to_compact_logs(options, blocks, None)
        return schedule(LOG_COMPACTION, context, write, wait_s=wait_s)

    @undisturbed()
    @said_plainly
    def run_log_compaction(
        self,
        instant: str | None = None,
        budget_s: float | None = 300,
        options: Mapping[str, str] | None = None,
        *,
        memory_mb: int | None = None,
    ) -> list[CommitResult]:
        """Run log compactions that were scheduled. Several processes may do so at once: each takes other plans.

        Args:
            instant: only the one of this instant; None runs all that are pending, oldest first.
            budget_s: begin no further one after so many seconds; None is no limit.
            options: Hudi's options of files, for the new log files.
            memory_mb: as in `run_compaction`.

        Returns:
            What each of them did that this call ran itself. One without an instant had nothing left to do, because its file groups
            were compacted, clustered or replaced meanwhile; its plan is gone.

        Raises:
            InstantNotFoundError: no log compaction is pending at that instant.
            CommitConflictError: another process runs the one at that instant.
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._to_compact_logs(options, None, memory_mb)
        return run_pending(LOG_COMPACTION, context, write, instant=instant, budget=Budget(budget_s))

    @undisturbed()
    @said_plainly
    def compact_logs(
        self, options: Mapping[str, str] | None = None, *, blocks: int | None = None, memory_mb: int | None = None
    ) -> list[CommitResult]:
        """Merge the log files of file slices into one each, now: schedule a log compaction and run all that are pending.

        Base files stay as they are, so it costs what the logs weigh; `compact` costs as much as the base files do. Queries open one
        log of such a slice instead of many. The older files stay for readers of earlier moments until the slice is compacted and
        cleaned.

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
        schedule(LOG_COMPACTION, context, write)
        return run_pending(LOG_COMPACTION, context, write)

    def _to_compact_logs(
        self, options: Mapping[str, str] | None, blocks: int | None, memory_mb: int | None
    ) -> tuple[TableContext, WriteOptions]:
        asked = log_compaction_options(blocks=blocks, memory_mb=memory_mb)
        return self._at_work({**parse_options(options), **asked})

    @undisturbed()
    @said_plainly
    def schedule_clustering(
        self,
        sort_by: str | Sequence[str] | None = None,
        layout: str | None = None,
        where: Where | None = None,
        *,
        target_file_mb: float | None = None,
        options: Mapping[str, str] | None = None,
        wait_s: float = 30,
    ) -> str | None:
        """Plan a clustering, which puts rows in order in new files; `run_clustering` runs it, perhaps in another process.

        Until it has been run, writes that change rows of its files are refused (`hoodie.clustering.updates.strategy`).

        Args:
            sort_by, layout, where, target_file_mb, options: as `cluster` has them.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when there is nothing to put in order.
        """
        check_seconds(wait_s, "wait_s")
        context, write = self._clustering(sort_by, layout, where, target_file_mb, options)
        return schedule(CLUSTERING, context, write, wait_s=wait_s)

    @undisturbed()
    @said_plainly
    def run_clustering(
        self, instant: str | None = None, budget_s: float | None = 300, options: Mapping[str, str] | None = None
    ) -> list[CommitResult]:
        """Run clusterings that were scheduled.

        Args:
            instant: only the one of this instant; None runs all that are pending, oldest first.
            budget_s: begin no further one after so many seconds; None is no limit.
            options: Hudi's options of files, for the new base files.

        Returns:
            What each of them did.

        Raises:
            InstantNotFoundError: no clustering is pending at that instant.
            CommitConflictError: a write changed files that the plan names. The plan is dropped.
        """
        check_seconds(budget_s, "budget_s", or_none=True)
        context, write = self._at_work(options)
        return run_pending(CLUSTERING, context, write, instant=instant, budget=Budget(budget_s))

    def cluster(
        self,
        sort_by: str | Sequence[str] | None = None,
        layout: str | None = None,
        where: Where | None = None,
        *,
        target_file_mb: float | None = None,
        options: Mapping[str, str] | None = None,
    ) -> list[CommitResult]:
        """Put the rows of each partition in order in new files, so that filters open few of them; without `sort_by`, put small
        files together. Schedules a clustering and runs all that are pending.

        Args:
            sort_by: the columns that queries filter by.
            layout: "linear" sorts by the first column, then by the next (the default); "z-order" and "hilbert" serve filters on each
                of the columns.
            where: a condition on partition columns, as `scan` takes it: only these partitions.
            target_file_mb: about how large new files become (1024 unless an option says otherwise).
            options: Hudi's options of clusterings.

        Returns:
            What each clustering did; an empty list when there was nothing to do.

        Raises:
            OptionError: a column cannot be sorted by, or `where` names one that makes no partitions; or the table has buckets.

        Example:
            >>> table.cluster(sort_by=["city"], target_file_mb=128)
        """
        self.schedule_clustering(sort_by, layout, where, target_file_mb=target_file_mb, options=options)
        return self.run_clustering(budget_s=None, options=options)

    def preview_clustering(
        self,
        sort_by: str | Sequence[str] | None = None,
        layout: str | None = None,
        where: Where | None = None,
        *,
        target_file_mb: float | None = None,
        options: Mapping[str, str] | None = None,
    ) -> ClusteringPlan:
        """What `cluster` would put in order: groups of files, and into how many files each. Changes nothing."""
        context, write = self._clustering(sort_by, layout, where, target_file_mb, options)
        return preview_clustering(context, write.clustering)

    def pending_clusterings(self) -> tuple[Instant, ...]:
        """The clusterings that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.CLUSTERING)

    def _clustering(
        self,
        sort_by: str | Sequence[str] | None,
        layout: str | None,
        where: Where | None,
        target_file_mb: float | None,
        options: Mapping[str, str] | None,
    ) -> tuple[TableContext, WriteOptions]:
        asked = cluster_options(sort_by=sort_by, layout=layout, target_file_mb=target_file_mb)
        context, write = self._at_work({**parse_options(options), **asked})
        CLUSTERING.require_fit(context)
        partitions = None if where is None else partitions_where(context, where)
        return context, replace(write, clustering=replace(write.clustering, whole=True, partitions=partitions))

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
    def expire_partitions(
        self, days: int | None = None, options: Mapping[str, str] | None = None, *, dry_run: bool = False
    ) -> ExpiryResult:
        """Delete partitions that have not been changed for some days. With `hoodie.partition.ttl.inline=true` writes do this by
        themselves, and so does a services job.

        Their rows are gone for readers of now, as after `delete_partitions`. Files stay for readers of earlier moments until they
        are cleaned.

        Args:
            days: a partition expires after so many; None takes `hoodie.partition.ttl.strategy.days.retain`.
            options: Hudi's options of partition TTL: which partitions, how many at once, and whether the days count from the
                creation of a partition instead of from its last change.
            dry_run: delete nothing, and say what would be deleted.

        Returns:
            The partitions that were deleted, and the instant of the commit.

        Raises:
            OptionError: nothing says after how many days, or the table is not partitioned.
            CommitConflictError: other writers wrote to these partitions all the time.

        Example:
            >>> table.expire_partitions(days=90, dry_run=True).partitions
            >>> table.expire_partitions(days=90)
        """
        context, write = self._at_work({**parse_options(options), **expiry_options(days=days)})
        if write.expiry.days <= 0:
            raise OptionError(
                f"after how many days does a partition of table {context.config.name!r} expire? Give days=…, or set "
                f"{EXPIRY_DAYS.name}"
            )
        if not context.config.partition_fields:
            raise OptionError(f"table {context.config.name!r} is not partitioned: no partition of it can expire")
        return expire(context, write, dry_run=dry_run)

    @said_plainly
    def register_in_hive(
        self,
        *,
        metastore: str | None = None,
        database: str | None = None,
        table: str | None = None,
        options: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> HiveSyncResult:
        """Register the table in a Hive metastore, or bring its registration up to date: what `hoodie.hive.register` does. With
        `hoodie.datasource.hive_sync.enable=true` writes do this by themselves.

        Args:
            metastore: `thrift://host:9083`, several servers of one metastore with commas between.
            database: made when it is not there.
            table: the name to register by; None is the name of the table.
            options: Hudi's options `hoodie.datasource.hive_sync.*` and `hoodie.meta.sync.*`.
            dry_run: only ask, and say what would change.

        Returns:
            What changed in the metastore.

        Raises:
            HiveSyncError: the metastore does not answer in time, or refuses.

        Example:
            >>> table.register_in_hive(metastore="thrift://hive:9083", database="lake")
        """
        said = hive_options(metastore=metastore, database=database, table=table)
        context, write = self._at_work({**parse_options(options), **said})
        return sync(context, write.hive_sync, dry_run=dry_run)

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
            instant: the newest commit, or a pending instant, which may be a clustering or a log compaction that was scheduled; None
                undoes all writes whose writer is dead, and no plan.
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
        if context.active.load().find(instant, Action.CLUSTERING) is not None:
            return [instant] if drop(context, instant) else []
        return [instant] if rollback_instant(context, instant) else []

    def services(
        self, *, every_s: float = 300, budget_s: float | None = 120, options: Mapping[str, str] | None = None
    ) -> ServicesJob:
        """Table services beside an ingest loop: in a `with` block a thread does what is due, round after round.

        It rolls dead writers back, runs plans that wait, compacts, cleans and archives. When something is due, docs/SERVICES.md says
        under "A services job". Give the writers `hoodie.table.services.enabled=false`, so that they leave it all to this job.

        Errors of a round are logged once, are in its result, and do not end the job. The end of the block begins nothing more and
        waits for the piece of work that has begun. Any number of jobs, in any process, may serve one table.

        Args:
            every_s: from the beginning of a round to that of the next.
            budget_s: a round begins nothing more after so many seconds; None is no limit.
            options: Hudi's options of services.

        Returns:
            The job, to be entered by `with`. Its `last` and `rounds` say what was done.

        Raises:
            UnsupportedTableError: the table's version is only read.

        Example:
            >>> with table.services(every_s=60) as job:
            ...     for batch in batches:
            ...         table.upsert(batch)
            >>> job.last
        """
        check_seconds(every_s, "every_s")
        check_seconds(budget_s, "budget_s", or_none=True)
        check_version(self._at_work(options)[0].config)
        return ServicesJob(lambda: self._at_work(options), uri=self.uri, every_s=every_s, budget_s=budget_s)

    @undisturbed()
    @said_plainly
    def repair(
        self, what: str | Sequence[str] | None = None, *, dry_run: bool = True, older_than_s: float = YOUNG_S
    ) -> RepairResult:
        """Find what is damaged beside the rows, and with `dry_run=False` mend it.

        "partition-metadata" are the files that make folders partitions: missing and damaged ones are written anew. "stray-files" are
        data files that no completed instant explains: they are moved away, and `undo_repair` puts them back. "plans" are damaged
        plans of cleans, rollbacks and compactions: they are removed, and planned anew the next time.

        Args:
            what: one of these, or several; None: all of them.
            dry_run: change nothing, and say what would be done.
            older_than_s: younger files are left alone, whatever the timeline says of them.

        Returns:
            What is repaired, and what was left alone with the reason.

        Raises:
            OptionError: there is no such repair.
            CorruptFileError: metadata of an instant do not decode, so that nothing can be told of files.

        Example:
            >>> table.repair()
            >>> table.repair("stray-files", dry_run=False).set_aside
        """
        check_seconds(older_than_s, "older_than_s")
        context, _ = self._at_work()
        return repair(context, kinds_of(what), dry_run=dry_run, older_than_s=older_than_s)

    @undisturbed()
    @said_plainly
    def undo_repair(self, set_aside: str) -> list[str]:
        """Put back the files that a repair moved away.

        Args:
            set_aside: as the result of the repair has it.

        Returns:
            The paths of the files, relative to the table.

        Raises:
            InstantNotFoundError: there is no such set of files.
            OptionError: readers would take a file for data by now, or another one stands in its place. Nothing was moved.
        """
        context, _ = self._at_work()
        return undo(context, set_aside)

    @said_plainly
    def validate(self, *, deep: bool = False) -> ValidationResult:
        """Whether the newest state of the table is whole: every file that a commit wrote is there with the bytes that it states,
        and every folder with files is a partition.

        Args:
            deep: also read all rows. Keys are unique in each partition, files decode, and their footers and bloom filters agree with
                the rows in them.

        Returns:
            What was looked at, and every problem; it is true where there is none.

        Example:
            >>> assert table.validate(deep=True)
        """
        context, _ = self._at_work()
        return validate(context, deep=deep)

    @said_plainly
    def doctor(self) -> Diagnosis:
        """What is wrong with the table, or will be, and what mends it.

        Returns:
            The findings, worst first. Nothing is changed.

        Example:
            >>> print(table.doctor())
        """
        context, write = self._at_work()
        return diagnose(context, write)

    def pending_compactions(self) -> tuple[Instant, ...]:
        """The compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.COMPACTION)

    def pending_log_compactions(self) -> tuple[Instant, ...]:
        """The log compactions that were scheduled and have not been run to their end."""
        return self.timeline.pending(Action.LOGCOMPACTION)


def repair_properties(
    path: str | PathLike[str],
    known: Mapping[str, str] | None = None,
    *,
    dry_run: bool = True,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> PropertiesRepair:
    """Find out the properties of a table whose `hoodie.properties` is missing or damaged, and with `dry_run=False` write them.

    They are taken from the file's backup, from the lines that are left, and from what the files of the table say for sure. The rest
    has to be said. The damaged file is kept in `.hoodie/.hoodie_py/set-aside/`.

    Args:
        path: the table's folder, as `open_table` takes it.
        known: properties by their names; they win over what is found, and an empty text says that there is none.
        dry_run: change nothing, and say what is known, from where, and what is not.
        storage_options: how to reach the storage.
        options: Hudi's options of locks.

    Returns:
        The properties, each with its source, and what is not known.

    Raises:
        TableNotFoundError: there is nothing of a table at the path.
        OptionError: something is not known (only without `dry_run`), or the properties contradict each other.

    Example:
        >>> hoodie.repair_properties("/data/trips", {"hoodie.table.ordering.fields": "ts"}, dry_run=False)
    """
    storage = open_storage(path, storage_options)
    if dry_run:
        return plan_properties(storage, known)
    concurrency = parse_write_options(parse_options(options), defaults=load_defaults()).write.concurrency
    with undisturbed():
        return repair_at(storage, coordinate(storage, concurrency).lock, known, timeout_s=concurrency.lock_timeout_s)
