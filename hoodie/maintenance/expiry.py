"""The expiry of partitions as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.errors import OptionError
from hoodie.maintenance.base import OpenTable
from hoodie.model.service_results import ExpiryResult
from hoodie.options.arguments import expiry_options
from hoodie.options.expiry import ExpiryOptions
from hoodie.options.option import option_name
from hoodie.txn.heartbeat import changes_table

if TYPE_CHECKING:
    import hoodie.services.expiry


class Expiry(OpenTable):
    @changes_table
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
        context, write = self._working(options, expiry_options(days=days))
        if write.expiry.days <= 0:
            raise OptionError(
                f"after how many days does a partition of table {context.config.name!r} expire? Give days=…, or set "
                f"{option_name(ExpiryOptions, 'days')}"
            )
        if not context.config.partition_fields:
            raise OptionError(f"table {context.config.name!r} is not partitioned: no partition of it can expire")
        return hoodie.services.expiry.expire(context, write, dry_run=dry_run)
