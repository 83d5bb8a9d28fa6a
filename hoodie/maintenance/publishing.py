"""The publication in other formats as a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hoodie.mirrors
from hoodie.maintenance.base import OpenTable
from hoodie.model.enums import LakeFormat
from hoodie.model.service_results import Published
from hoodie.options.arguments import parse_format
from hoodie.storage.refusals import hoodie_errors

if TYPE_CHECKING:
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
