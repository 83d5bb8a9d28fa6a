"""The registration in a Hive metastore as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.hive
from hoodie.maintenance.base import OpenTable
from hoodie.model.hive_results import HiveSyncResult
from hoodie.options.arguments import hive_options
from hoodie.storage.refusals import hoodie_errors

if TYPE_CHECKING:
    import hoodie.hive.sync


class HiveRegistration(OpenTable):
    @hoodie_errors
    def register_in_hive(
        self,
        *,
        metastore: str | None = None,
        database: str | None = None,
        table: str | None = None,
        options: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> HiveSyncResult:
        """Register the table in a Hive metastore, or update its registration, as `hoodie.hive.register` does. With
        `hoodie.datasource.hive_sync.enable=true` writes do this automatically.

        Args:
            metastore: `thrift://host:9083`, several servers of one metastore with commas between.
            database: created if it does not exist.
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
        context, write = self._working(options, hive_options(metastore=metastore, database=database, table=table))
        return hoodie.hive.sync.sync(context, write.hive_sync, dry_run=dry_run)
