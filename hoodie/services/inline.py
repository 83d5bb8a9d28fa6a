"""What follows a commit: services that are due. Never inside the commit; their failure does not undo it."""

from __future__ import annotations

import logging

from hoodie.model.enums import Action, TableType
from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions
from hoodie.services.compaction import run_compaction, schedule_compaction
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


def after_commit(context: TableContext, options: WriteOptions) -> list[CommitResult]:
    """Compact when enough delta commits have come together and `hoodie.compact.inline` says so."""
    if not options.compaction.inline or context.config.table_type is not TableType.MERGE_ON_READ:
        return []
    try:
        if delta_commits_since_compaction(context.active.load()) < options.compaction.max_delta_commits:
            return []
        schedule_compaction(context, target_io_bytes=options.compaction.target_io_mb * 1024 * 1024, wait_s=0)
        return run_compaction(context, options=options.file_options())
    except Exception as exc:  # noqa: BLE001 - whatever it is, the caller must not take the commit for failed
        log.warning("the commit stands, but the compaction after it failed and is tried again later: %s", exc)
        return []


def delta_commits_since_compaction(timeline: Timeline) -> int:
    last = max((i.time for i in timeline.commits if i.time in timeline.compactions), default="")
    return sum(1 for i in timeline.commits if i.action is Action.DELTACOMMIT and i.time > last)
