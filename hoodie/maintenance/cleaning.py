"""Cleans, archiving and expiry of partitions as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.errors import OptionError
from hoodie.maintenance.base import OpenTable
from hoodie.model.results import ArchiveResult, CleanResult
from hoodie.model.service_results import ExpiryResult
from hoodie.options.arguments import archive_options, clean_options, expiry_options
from hoodie.options.cleaning import ExpiryOptions
from hoodie.options.option import option_name
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.archiving
    import hoodie.services.cleaning
    import hoodie.services.expiry
    import hoodie.services.scheduling


class Cleans(OpenTable):
    @changes_table
    def clean(
        self,
        options: Mapping[str, str] | None = None,
        *,
        retain_commits: int | None = None,
        retain_hours: int | None = None,
        retain_versions: int | None = None,
        dry_run: bool = False,
    ) -> CleanResult:
        """Delete old versions of files. Writes do this automatically if `hoodie.clean.automatic` is true.

        A clean keeps files of queries that this process is reading. Queries of other processes, and DataFrames of Spark, must end
        while their commit is still retained.

        Args:
            options: Hudi's options of cleans.
            retain_commits: the state after each of so many commits stays readable (10 unless an option says otherwise).
            retain_hours: the same for the commits of so many hours.
            retain_versions: each file keeps so many versions, however old they are.
            dry_run: delete nothing, and say what would be deleted.

        Returns:
            The number of deleted files, their bytes, and the earliest instant that can be read afterwards.

        Raises:
            OptionError: more than one of the three was given.
            CommitConflictError: another process cleans the table right now.

        Example:
            >>> table.clean(dry_run=True).bytes_freed
            >>> table.clean(retain_commits=3)
        """
        context, write = self._working(
            options, clean_options(commits=retain_commits, hours=retain_hours, versions=retain_versions)
        )
        cleaning, acts = hoodie.services.cleaning, hoodie.services.scheduling
        cleaning.CLEANING.require_fit(context)
        if dry_run:
            return cleaning.preview(context, write.cleaning)
        pending = acts.run_pending(cleaning.CLEANING, context, write)  # what a dead process has begun
        acts.schedule(cleaning.CLEANING, context, write)
        results = acts.run_pending(cleaning.CLEANING, context, write)
        return cleaning.summed([*pending, *results]) or cleaning.nothing_cleaned(context.active)


class Archiving(OpenTable):
    @changes_table
    def archive(
        self,
        options: Mapping[str, str] | None = None,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
    ) -> ArchiveResult:
        """Move the oldest commits to the archived timeline, so that readers and writers list few of them. Writes do this automatically
        if `hoodie.archive.automatic` is true.

        Rows and files stay as they are. `history(archived=True)` and pulls still reach the commits.

        Args:
            options: Hudi's options of archiving.
            min_commits: so many commits stay (20 unless an option says otherwise).
            max_commits: nothing is done unless there are more than so many; one more than `min_commits` if only that is given.
            dry_run: move nothing, and say what would be moved.

        Returns:
            The moved instants, and the reason why others stayed: a savepoint, a pending write, replaced files that are not
            cleaned yet.

        Raises:
            CorruptFileError: the file of an instant is damaged; nothing was moved.

        Example:
            >>> table.archive(min_commits=20)
        """
        context, write = self._working(options, archive_options(min_commits=min_commits, max_commits=max_commits))
        return hoodie.services.archiving.archive(context, write, dry_run=dry_run)


class Expiry(OpenTable):
    @changes_table
    def expire_partitions(
        self, days: int | None = None, options: Mapping[str, str] | None = None, *, dry_run: bool = False
    ) -> ExpiryResult:
        """Delete partitions that have not been changed for some days. With `hoodie.partition.ttl.inline=true` writes do this
        automatically, and so does a services job.

        New queries do not see their rows, as after `delete_partitions`. Files stay for readers of earlier moments until they
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
            CommitConflictError: other writers kept writing to these partitions.

        Example:
            >>> table.expire_partitions(days=90, dry_run=True).partitions
            >>> table.expire_partitions(days=90)
        """
        context, write = self._working(options, expiry_options(days=days))
        if write.expiry.days <= 0:
            raise OptionError(
                f"table {context.config.name!r} does not say after how many days a partition expires: give days=…, or set "
                f"{option_name(ExpiryOptions, 'days')}"
            )
        if not context.config.partition_fields:
            raise OptionError(f"table {context.config.name!r} is not partitioned: no partition of it can expire")
        return hoodie.services.expiry.expire(context, write, dry_run=dry_run)
