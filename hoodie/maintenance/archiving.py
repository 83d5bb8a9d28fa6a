"""Archiving as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.maintenance.base import OpenTable
from hoodie.model.results import ArchiveResult
from hoodie.options.arguments import archive_options
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.archiving


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
        context, write = self._working(options, archive_options(min_commits=min_commits, max_commits=max_commits))
        return hoodie.services.archiving.archive(context, write, dry_run=dry_run)
