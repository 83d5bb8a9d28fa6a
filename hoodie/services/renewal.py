"""The upgrade of a table of version 3, 4 or 5 to version 6, on request (Apache Hudi: its handlers `ThreeToFour` to `FiveToSix`).

Timeline and files stay as they are. The properties are replaced, which is the one step that counts. Then what dead processes left is
rolled back, and a merge-on-read table is compacted in full, because hudi-rs does not read the log blocks of those releases. Apache
Hudi up to 0.13 keeps the plan of a compaction twice; the second one, which later readers do not know, goes before. It wrote null
partition values into a partition `default`, later releases write them into another one: such a table has to be written anew first.
The metadata table is dropped.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from hoodie.errors import CommitConflictError, UnsupportedTableError
from hoodie.format.layout import V6
from hoodie.model.enums import Action, State, TableType
from hoodie.model.names import AUXILIARY, join
from hoodie.model.service_results import UpgradeResult
from hoodie.options.compatibility import check_writable
from hoodie.options.table import parse_table_config
from hoodie.options.table_changes import renewed_properties
from hoodie.options.write import WriteOptions
from hoodie.services.scheduling import settle
from hoodie.services.version_change import compact_all, described_changes, put_properties
from hoodie.txn.critical import require_same_table
from hoodie.view.context import TableContext, load_config

log = logging.getLogger("hoodie")


def renew(context: TableContext, options: WriteOptions, *, dry_run: bool) -> UpgradeResult:
    """Make the table one of version 6, or say what that would do.

    Raises:
        UnsupportedTableError: it may have null partition values in a partition that later writers give another name.
    """
    config, storage = context.config, context.storage
    properties = renewed_properties(config)
    result = UpgradeResult(
        int(config.version),
        int(V6.version),
        compacted=sum(1 for each in context.snapshot().view.latest_slices() if each.logs),
        changes=described_changes(config.raw, properties),
        dry_run=dry_run,
    )
    _require_known_nulls(context)
    if dry_run:
        return result
    with context.lock.held(context.lock_timeout_s):
        require_same_table(config, load_config(storage))
        plans = [i for i in context.active.load().pending(Action.COMPACTION) if i.state is State.REQUESTED]
        storage.each(storage.delete, [join(AUXILIARY, config.layout.file_name(plan)) for plan in plans])
        put_properties(context, properties, verb="upgraded")
    log.info("upgraded table %s from version %d to %d", storage.uri, result.before, result.after)
    renewed = replace(context, config=parse_table_config(properties, uri=storage.uri))
    try:
        check_writable(renewed.config)
        settle(renewed, options)
        compacted = compact_all(renewed, options) if config.table_type is TableType.MERGE_ON_READ else 0
    except (CommitConflictError, UnsupportedTableError) as exc:
        log.warning(
            "table %s was upgraded, and not compacted, so that hudi-rs cannot read its logs: %s", storage.uri, exc
        )
        compacted = 0
    return replace(result, compacted=compacted)


def _require_known_nulls(context: TableContext) -> None:
    """As Apache Hudi asks it: of the first partition column alone."""
    config = context.config
    null = config.layout.old_null
    if not config.partition_fields or not null:
        return
    path = f"{config.partition_fields[0]}={null}" if config.hive_style else null
    if context.storage.list(path):
        raise UnsupportedTableError(
            f"table {config.uri} was not upgraded: it has the partition {path!r}, where releases of Apache Hudi before 0.12 put rows "
            "without a partition value, and later ones do not look for them. The table can be read: write its rows into a new one"
        )
