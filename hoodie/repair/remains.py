"""Places of a table that may still hold deleted rows: older versions of files, log files, bounds in commits, files that were set
aside.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie.filegroup.row_copies import row_copies_of
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.model.instant import InstantTime
from hoodie.model.names import SET_ASIDE, parse_base_file, parse_log_file
from hoodie.repair.set_aside import set_aside_names
from hoodie.view.context import TableContext


def remains(context: TableContext, before: InstantTime | None) -> tuple[str, ...]:
    """Why rows that were deleted by the commit `before`, or earlier, may still be read from files; nothing where they are gone."""
    return tuple(_remains(context.on_storage(), before))


def _remains(context: TableContext, before: InstantTime | None) -> Iterator[str]:
    storage, snapshot = context.storage, context.snapshot()
    slices = snapshot.view.latest_slices(snapshot.view.every_partition())
    newest = {piece.base.path for piece in slices if piece.base is not None}
    logs = {log.path for piece in slices for log in piece.logs}
    for partition_path in snapshot.view.every_partition():
        for info in storage.list(partition_path):
            name = info.name
            if parse_log_file(name) is not None and info.path in logs:
                yield f"{info.path}: a log that is not compacted"
            elif info.path not in newest and (parse_log_file(name) or parse_base_file(name)) is not None:
                yield f"{info.path}: an older version, which a reader, a consumer or a plan of a service keeps from being cleaned"
    if before is not None:
        for commit in snapshot.timeline.commits:
            metadata = snapshot.active.read_commit(commit)
            speaks_of_others = any(stat.path not in newest for stat in metadata.stats())
            if commit.time < before and COLUMN_STATS in metadata.extra and speaks_of_others:
                yield f"commit {commit.time}: it states bounds of columns and is not archived"
        archived = snapshot.archived.read_commits(snapshot.archived.commits)
        for time in sorted(time for time, metadata in archived.items() if COLUMN_STATS in metadata.extra):
            yield f"archived commit {time}: it states bounds of columns, as Apache Hudi or an older version of hoodie archived it"
        for instant, paths in row_copies_of(storage).items():
            yield from (f"{path}: copies of log rows" for path in paths if instant < before)
    yield from (f"{SET_ASIDE}/{name}: files that a repair took out" for name in set_aside_names(storage))
