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
        """Make a table one of a later version: 8 or 9, which Apache Hudi 1.x makes by default, or 6, which hoodie writes.

        Nothing else upgrades a table. The metadata table is dropped. Who has the table open, opens it again: this very object, too.
        Tables of version 3, 4 and 5, which are read and not written, become one of version 6 first: their properties change, and
        logs are compacted. On the way to 8 or 9 writes and services that are pending have to end first, and a merge-on-read table is
        compacted in full. Versions before 1.0 of Apache Hudi cannot read it any more; `downgrade` is the way back.

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
        """Make a table of version 8 or 9 one of version 6, which Apache Hudi 0.14 and later read, or one of 9 one of 8.

        Writes and services that are pending have to end first. On the way to version 6 a merge-on-read table is compacted in full, and
        states before that cannot be read any more. The metadata table is dropped. Who has the table open, opens it again: this very
        object, too.

        Args:
            version: 6 or 8.
            options: Hudi's options, of the compaction.
            dry_run: say what would be done, and change nothing.

        Raises:
            OptionError: there is no such version.
            UnsupportedTableError: it is no earlier version, or has no way to say how the table merges.
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
