"""What the table says: rows, changes and commits as the checker takes them."""

from __future__ import annotations

from collections.abc import Sequence

import hoodie
from hoodie.model.payloads import CommitMetadata
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from integration.many_writers.history import Change, Commit, Row


def read_now(table: hoodie.HoodieTable) -> tuple[frozenset[str], str | None, list[Row]]:
    """All rows now, the instants that they are of, and where the active timeline begins: what is older counts, too."""
    scan = table.scan(meta_columns=True)
    visible = scan.plan.context.visible
    return visible.completed, visible.start, _rows(scan)


def read_as_of(table: hoodie.HoodieTable, instant: str) -> list[Row]:
    return _rows(table.scan(as_of=instant, meta_columns=True))


def readable_from(table: hoodie.HoodieTable) -> str:
    """The first instant as of which all rows can be read; empty: all of them."""
    context, timeline = table.writer.context, table.timeline
    start = timeline.start if context.archived().files else None
    return max(context.active.earliest_kept(timeline) or "", start or "")


def read_pull(table: hoodie.HoodieTable, since: str | None) -> tuple[str | None, list[Row]]:
    """The rows since a position, and how far they reach."""
    pull = table.changes(since, meta_columns=True)
    return pull.position or since, _rows(pull)


def read_changes(table: hoodie.HoodieTable, since: str | None) -> tuple[str | None, list[Change]]:
    feed = table.changes(since, columns=("key", "op"), images="before_after")
    lines = feed.to_arrow().to_pylist()
    return feed.position or since, [
        Change(
            line["instant"],
            line["op"],
            (line["after"] or line["before"])["key"],
            line["before"] and line["before"]["op"],
            line["after"] and line["after"]["op"],
        )
        for line in lines
    ]


def _rows(scan: hoodie.Scan) -> list[Row]:
    found = scan.to_arrow().select(["key", "op", "_hoodie_commit_time"])
    return [Row(*row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


def commits_of(table: hoodie.HoodieTable, note: str) -> list[Commit]:
    """All completed commits, each with what it says of itself; archived ones, too."""
    return [Commit(time, metadata.extra.get(note)) for time, metadata in sorted(_metadata_of(table).items())]


def _metadata_of(table: hoodie.HoodieTable) -> dict[str, CommitMetadata]:
    context = table.writer.context
    found = {instant.time: context.active.read_commit(instant) for instant in table.timeline.commits}
    archive = context.archived()
    return archive.read_commits(each for each in archive.commits if each.time not in found) | found


def pending_of(table: hoodie.HoodieTable) -> list[str]:
    return [str(instant) for instant in table.timeline if not instant.is_completed]


def leftovers_of(table: hoodie.HoodieTable, uri: str, storage_options: dict[str, str]) -> list[str]:
    """Files of writes that are over, and of no use: what nobody counts, and signs of life of the dead.

    Not the unfinished files of those that were killed: they go when they are old.
    """
    storage = open_storage(uri, storage_options)
    folders = (
        ".hoodie/.temp",
        ".hoodie/.heartbeat",
        *(f".hoodie/.hoodie_py/{each}" for each in ("staging", "live")),
    )
    kept = {path for folder in folders for path in _files(storage, folder)}
    counted = {stat.path for metadata in _metadata_of(table).values() for stat in metadata.stats()}
    # A rolled back log file stays, and a block in another one disarms it.
    bases = {path for part in table.partitions() for path in _files(storage, part) if path.endswith(".parquet")}
    return sorted(kept | (bases - counted) | set(pending_of(table)))


def _files(storage: Storage, folder: str) -> Sequence[str]:
    try:
        return [info.path for info in storage.list(folder, recursive=True) if not info.is_folder]
    except FileNotFoundError:
        return []
