"""The upgrade of a table to a later version, and the way back, as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.errors import OptionError
from hoodie.format.layout import VERSIONS, written_layout
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import TableVersion
from hoodie.model.service_results import UpgradeResult
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.downgrade
    import hoodie.services.upgrade


class Upgrades(OpenTable):
    @changes_table
    def upgrade(
        self, version: int = 9, options: Mapping[str, str] | None = None, *, dry_run: bool = False
    ) -> UpgradeResult:
        """Upgrade the table to version 8 or 9, which Apache Hudi 1.x creates by default, or to 6.

        Nothing else upgrades a table. The upgrade drops the metadata table. Afterwards open the table again, in every process and in
        place of this object. A table of version 3, 4 or 5, which hoodie does not write, first becomes one of version 6: its properties
        change, and its log files are compacted. For an upgrade to 8 or 9, pending writes and services must end first, and a
        merge-on-read table is compacted completely. Apache Hudi before 1.0 cannot read the result; `downgrade` goes back.

        Args:
            version: 6, 8 or 9.
            options: Hudi's options, of the compaction.
            dry_run: say what would be done, and change nothing.

        Raises:
            OptionError: there is no such version, or a table of it cannot merge as this one does.
            UnsupportedTableError: the table has a later version, or one before 5 and a partition `default`.
            CommitConflictError: something is pending.

        Example:
            >>> table.upgrade(9)
            >>> table = hoodie.open_table(table.uri)
        """
        context, write = self._at_work(options)
        return hoodie.services.upgrade.upgrade(context, write, _version(version), dry_run=dry_run)

    @changes_table
    def downgrade(
        self, version: int = 6, options: Mapping[str, str] | None = None, *, dry_run: bool = False
    ) -> UpgradeResult:
        """Downgrade the table from version 8 or 9 to 6, which Apache Hudi 0.14 and later read, or from 9 to 8.

        Pending writes and services must end first. A downgrade to version 6 compacts a merge-on-read table completely, and earlier
        states are no longer readable. The downgrade drops the metadata table. Afterwards open the table again, in every process and in
        place of this object.

        Args:
            version: 6 or 8.
            options: Hudi's options, of the compaction.
            dry_run: say what would be done, and change nothing.

        Raises:
            OptionError: there is no such version.
            UnsupportedTableError: it is no earlier version, or cannot express how the table merges.
            CommitConflictError: something is pending, or a savepoint keeps logs.

        Example:
            >>> table.downgrade(6, dry_run=True)
            >>> table.downgrade(6)
            >>> table = hoodie.open_table(table.uri)
        """
        context, write = self._at_work(options)
        return hoodie.services.downgrade.downgrade(context, write, _version(version), dry_run=dry_run)


def _version(version: int) -> TableVersion:
    layout = written_layout(str(version))
    if layout is None:
        raise OptionError(f"version={version!r:.50} is not a table version; there are {VERSIONS}")
    return layout.version
