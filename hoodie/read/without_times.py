"""Incremental queries of a table whose rows do not store the commit that wrote them (hoodie.populate.meta.fields=false).

What is known of its rows is known of its files: a log block names its instant, and a file that began its file group holds rows of its
own commit alone. A base file that was merged from an older one holds rows of other commits, too, and nothing tells which.
(Apache Hudi 1.2.0 refuses every incremental query of such a table.)
"""

from __future__ import annotations

from hoodie.errors import UnsupportedTableError
from hoodie.model.enums import MOVES_ROWS
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.instant import InstantRange, InstantTime
from hoodie.read.ranges import PulledRange
from hoodie.view.context import Snapshot


def require_own_rows(snapshot: Snapshot, found: PulledRange, begin: InstantTime | None, *, table: str) -> None:
    """Fail unless all rows of the range's slices were committed in it.

    Raises:
        UnsupportedTableError: a file holds rows of other commits, too, or may hold them.
    """
    if not found.slices:
        return
    if found.visible.until is None:  # the newest files in place of those of the range
        raise _unknown(table, "the files of the range are gone, and the newest ones")
    if begin is None or not begin.strip("0"):
        return  # all rows as of its end
    span = InstantRange(begin, found.until)
    timeline = snapshot.timeline
    merged = next((i for i in timeline.completed_in(span) if i.time in timeline.log_compactions), None)
    if merged is not None:
        raise _unknown(table, f"the logs that log compaction {merged.time} wrote")
    for file_slice in found.slices:
        if file_slice.base is not None and not _began_its_group(snapshot, file_slice, file_slice.base):
            raise _unknown(table, file_slice.base.path)


def _began_its_group(snapshot: Snapshot, file_slice: FileSlice, base: BaseFile) -> bool:
    commit = snapshot.timeline.commit_at.get(base.instant)
    if commit is None:
        return False
    metadata = snapshot.active.read_commit(commit)
    if metadata.operation in MOVES_ROWS or commit.time in snapshot.timeline.compactions:
        return False
    stats = metadata.write_stats.get(file_slice.group.partition_path, ())
    return any(stat.file_id == base.file_id and stat.prev_commit is None for stat in stats)


def _unknown(table: str, what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"table {table} does not store the _hoodie_ columns (hoodie.populate.meta.fields=false), and {what} may hold rows of other "
        "commits than those of the range, so its changes are not known: read the whole table, and go on from that scan's position "
        "(a consumer: seek('latest') first)"
    )
