"""Tables in a Hive metastore, as Apache Hudi registers them: `hoodie.hive.register`. What is registered and how: docs/HIVE.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from hoodie.model.hive_results import HiveSyncResult
from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)


class _Table(Protocol):
    def register_in_hive(
        self,
        *,
        metastore: str | None,
        database: str | None,
        table: str | None,
        options: Mapping[str, str] | None,
        dry_run: bool,
    ) -> HiveSyncResult: ...


def register(
    t: _Table,
    *,
    metastore: str | None = None,
    database: str | None = None,
    table: str | None = None,
    options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> HiveSyncResult:
    """Register a table in a Hive metastore, or bring its registration up to date.

    Copy-on-write tables get one name. Merge-on-read tables get `…_rt`, which merges logs, `…_ro`, which does not, and as in Apache
    Hudi the name itself, which is the same as `…_rt`.

    Args:
        t: the open table, embedded or on Spark.
        metastore, database, table, options, dry_run: as `HoodieTable.register_in_hive` has them.

    Returns:
        What changed in the metastore.

    Raises:
        HiveSyncError: the metastore does not answer in time, or refuses.

    Example:
        >>> hoodie.hive.register(t, metastore="thrift://hive:9083", database="lake", table="trips")
    """
    return t.register_in_hive(metastore=metastore, database=database, table=table, options=options, dry_run=dry_run)
