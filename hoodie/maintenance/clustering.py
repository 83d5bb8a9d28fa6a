"""Clusterings as methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import hoodie.read
import hoodie.services
from hoodie.maintenance.base import AtWork, OpenTable
from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.model.payloads import ClusteringPlan
from hoodie.model.results import CommitResult
from hoodie.options.arguments import cluster_options
from hoodie.options.moments import Moment
from hoodie.storage.refusals import hoodie_errors
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.read.prune
    import hoodie.services.clustering
    from hoodie.read.where import Where


class Clusterings(OpenTable):
    @changes_table
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
        """Plan a clustering, which sorts rows into new files; `run_clustering` runs it, perhaps in another process.

        Until it has been run, writes that change rows of its files are refused (`hoodie.clustering.updates.strategy`).

        Args:
            sort_by, layout, where, target_file_mb, options: as `cluster` has them.
            wait_s: how long to wait for pending writes; then the plan goes without their file groups.

        Returns:
            The instant of the plan, or None when there is nothing to sort or merge.
        """
        return self._schedule(
            Action.CLUSTERING, self._clustering(sort_by, layout, where, target_file_mb, options), wait_s=wait_s
        )

    @changes_table
    def run_clustering(
        self, instant: Moment | None = None, budget_s: float | None = 300, options: Mapping[str, str] | None = None
    ) -> list[CommitResult]:
        """Run clusterings that were scheduled.

        Args:
            instant: only the one of this instant, or the last before a moment, as `scan(as_of=…)` takes it. None runs all that are
                pending, oldest first.
            budget_s: begin no further one after so many seconds; None is no limit.
            options: Hudi's options of files, for the new base files.

        Returns:
            What each of them did.

        Raises:
            InstantNotFoundError: no clustering is pending at that instant.
            CommitConflictError: a write changed files that the plan names. The plan is dropped.
        """
        return self._run(Action.CLUSTERING, self._at_work(options), instant=instant, budget_s=budget_s)

    def cluster(
        self,
        sort_by: str | Sequence[str] | None = None,
        layout: str | None = None,
        where: Where | None = None,
        *,
        target_file_mb: float | None = None,
        options: Mapping[str, str] | None = None,
    ) -> list[CommitResult]:
        """Sort the rows of each partition into new files, so that filters open few of them; without `sort_by`, merge small
        files. Schedules a clustering and runs all pending ones.

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
            OptionError: a column cannot be sorted by, or `where` names one that makes no partitions; or the table has simple
                buckets.

        Example:
            >>> table.cluster(sort_by=["city"], target_file_mb=128)
        """
        self.schedule_clustering(sort_by, layout, where, target_file_mb=target_file_mb, options=options)
        return self.run_clustering(budget_s=None, options=options)

    @hoodie_errors
    def preview_clustering(
        self,
        sort_by: str | Sequence[str] | None = None,
        layout: str | None = None,
        where: Where | None = None,
        *,
        target_file_mb: float | None = None,
        options: Mapping[str, str] | None = None,
    ) -> ClusteringPlan:
        """The groups of files that `cluster` would sort, and how many files each would become. Changes nothing."""
        context, write = self._clustering(sort_by, layout, where, target_file_mb, options)
        return hoodie.services.clustering.preview_clustering(context, write)

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
    ) -> AtWork:
        context, write = self._working(
            options, cluster_options(sort_by=sort_by, layout=layout, target_file_mb=target_file_mb)
        )
        hoodie.services.clustering.CLUSTERING.require_fit(context)
        partitions = None if where is None else hoodie.read.prune.partitions_where(context, where)
        return context, replace(write, clustering=replace(write.clustering, whole=True, partitions=partitions))
