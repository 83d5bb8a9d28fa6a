"""The upgrade of a table of version 3, 4 or 5 to version 6, on request (Apache Hudi: its handlers `ThreeToFour` to `FiveToSix`).

Timeline, files and logs stay as they are, and so does what is pending. The properties are replaced, which is the one step that
counts. Apache Hudi up to 0.13 keeps the plan of a compaction twice; the second one, which later readers do not know, goes before. It
wrote null partition values into a partition `default`, later releases write them into another one: such a table has to be
written anew first. The metadata table is dropped.
"""

from __future__ import annotations

import logging

from hoodie.errors import UnsupportedTableError
from hoodie.format.layout import V6
from hoodie.model.enums import Action, State
from hoodie.model.names import HOODIE, join
from hoodie.model.service_results import UpgradeResult
from hoodie.options.table import renewed_properties
from hoodie.services.version_change import described_changes, put_properties
from hoodie.txn.same_table import require_same_table
from hoodie.view.context import TableContext, load_config

log = logging.getLogger("hoodie")

_AUX = join(HOODIE, ".aux")


def renew(context: TableContext, *, dry_run: bool) -> UpgradeResult:
    """Make the table one of version 6, or say what that would do.

    Raises:
        UnsupportedTableError: it may have null partition values in a partition that later writers give another name.
    """
    config, storage = context.config, context.storage
    properties = renewed_properties(config)
    found = UpgradeResult(
        int(config.version), int(V6.version), changes=described_changes(config.raw, properties), dry_run=dry_run
    )
    _require_known_nulls(context)
    if dry_run:
        return found
    with context.lock.held(context.lock_timeout_s):
        require_same_table(config, load_config(storage))
        plans = [i for i in context.active.load().pending(Action.COMPACTION) if i.state is State.REQUESTED]
        storage.each(storage.delete, [join(_AUX, config.layout.file_name(plan)) for plan in plans])
        put_properties(context, properties, done="upgraded")
    log.info("upgraded table %s from version %d to %d", storage.uri, found.before, found.after)
    return found


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
