"""The command `check`: whether a table, such as a copy of one, is whole."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report, format_pairs
from hoodie.errors import CorruptFileError
from hoodie.model.files import FileGroupId
from hoodie.model.payloads import CommitMetadata
from hoodie.model.results import format_size
from hoodie.table import HoodieTable
from hoodie.view.context import Snapshot, TableContext


def register(to: Commands) -> None:
    added = add_command(to, "check", "whether the table, or a copy of it, is whole", check)
    added.add_argument("--rows", action="store_true", help="read all rows of the newest state, too")


def check(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Every file of the newest state is there with all the bytes that its commit states; modification times are as they were.

    Raises:
        CorruptFileError: something is wrong; the text names the file and what to do.
    """
    snapshot = context.snapshot()
    timeline = snapshot.timeline
    commits = {i.time: m for i, m in zip(timeline.commits, context.active.read_commits(timeline.commits), strict=True)}
    slices = snapshot.view.latest_slices()  # which refuses files that are gone or cut
    _require_times(context, snapshot, commits)
    size = sum(each.size_bytes for each in slices)
    data: dict[str, object] = {"commits": len(commits), "file_groups": len(slices), "bytes": size}
    pairs = [("commits", f"{len(commits):,}"), ("file groups", f"{len(slices):,}"), ("size", format_size(size))]
    if args.rows:
        data["rows"] = sum(batch.num_rows for batch in table.scan().to_reader())
        pairs.append(("rows read", f"{data['rows']:,}"))
    return Report(data, ("the table is whole", *format_pairs(pairs)))


def _require_times(context: TableContext, snapshot: Snapshot, commits: Mapping[str, CommitMetadata]) -> None:
    """No commit looks as if it was completed after a compaction of what it wrote was planned.

    Apache Hudi 1.x takes the modification time for the time of completion, and would read such logs after the compaction.
    """
    timeline = snapshot.timeline
    if timeline.by_completion:
        return
    compacted: dict[FileGroupId, list[str]] = {}
    for time in timeline.compactions & commits.keys():
        for group in _groups(commits[time]):
            compacted.setdefault(group, []).append(time)
    for instant in timeline.commits:
        older_than = [
            t for group in _groups(commits[instant.time]) for t in compacted.get(group, ()) if t > instant.time
        ]
        path = context.active.path(instant)
        if older_than and not context.clock.ahead_of(context.storage.stat(path).mtime_s, min(older_than)):
            raise CorruptFileError(
                f"{path} of table {context.storage.uri} was modified after the compaction {min(older_than)} of what it wrote was "
                "planned: it is a copy that did not keep modification times, by which Apache Hudi 1.x orders log files; hoodie "
                "reads it all the same, for Apache Hudi copy it again, such as with `rsync -t`"
            )


def _groups(metadata: CommitMetadata) -> set[FileGroupId]:
    return {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats()}
