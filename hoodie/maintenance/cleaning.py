"""Cleans as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.maintenance.base import OpenTable
from hoodie.model.results import CleanResult
from hoodie.options.arguments import clean_options
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.acts
    import hoodie.services.cleaning


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
        context, write = self._working(
            options, clean_options(commits=retain_commits, hours=retain_hours, versions=retain_versions)
        )
        cleaning, acts = hoodie.services.cleaning, hoodie.services.acts
        cleaning.CLEANING.require_fit(context)
        if dry_run:
            return cleaning.preview(context, write.cleaning)
        pending = acts.run_pending(cleaning.CLEANING, context, write)  # what a dead process has begun
        acts.schedule(cleaning.CLEANING, context, write)
        done = acts.run_pending(cleaning.CLEANING, context, write)
        return cleaning.summed([*pending, *done]) or cleaning.nothing_cleaned(context.active)
