"""Publication in other formats and in a Hive metastore as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.hive
import hoodie.mirrors
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import LakeFormat
from hoodie.model.hive_results import HiveSyncResult
from hoodie.model.service_results import Published
from hoodie.options.arguments import hive_options, parse_format
from hoodie.storage.refusals import hoodie_errors

if TYPE_CHECKING:
    import hoodie.hive.sync
    import hoodie.mirrors.delta
    import hoodie.mirrors.iceberg


class Publishing(OpenTable):
    @hoodie_errors
    def publish(self, format: str | LakeFormat, *, dry_run: bool = False) -> Published:
        """Publish the table in the metadata of another format, for the same base files, or update that metadata. With
        `hoodie.python.publish.delta=true` (or `.iceberg`) writes do this automatically.

        Readers see base files only: on a merge-on-read table they do not see rows that are still in log files.

        Args:
            format: "delta" or "iceberg".
            dry_run: only say what would change.

        Returns:
            What changed, and the instant that is shown now.

        Raises:
            UnsupportedTableError: the format cannot describe the table's files.
            SchemaError: it has no type for a column.

        Example:
            >>> table.publish("delta")
            >>> duckdb.sql("SELECT * FROM delta_scan('/data/trips')")
        """
        context, _ = self._at_work()
        if parse_format(format) is LakeFormat.ICEBERG:
            return hoodie.mirrors.iceberg.publish_iceberg(context, dry_run=dry_run)
        return hoodie.mirrors.delta.publish_delta(context, dry_run=dry_run)


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
