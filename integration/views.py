"""All views of a table, by every reader, as rows that compare."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import hoodie
from integration import rust_peer
from integration.hudi_client import HudiPeer
from tests.rows import Row, rows_of

BEGINNING = "000"
"""Lies before every instant; Hudi's incremental queries need a begin."""


class View(NamedTuple):
    """One question to a table; `begin` is exclusive, `end` inclusive."""

    query: str = "snapshot"
    begin: str | None = None
    end: str | None = None
    as_of: str | None = None


Reader = Callable[[str | Path, View], list[Row]]


def ours(path: str | Path, view: View) -> list[Row]:
    table = hoodie.open_table(path)
    if view.query == "incremental":
        begin = None if view.begin == BEGINNING else view.begin
        return rows_of(table.changes(since=begin, until=view.end, meta_columns=True).to_arrow())
    return rows_of(table.scan(query=view.query, as_of=view.as_of, meta_columns=True).to_arrow())


def by_hudi(hudi: HudiPeer, options: Mapping[str, str] | None = None) -> Reader:
    """`options` are further read options, such as `hoodie.metadata.enable`."""

    def read(path: str | Path, view: View) -> list[Row]:
        answer = hudi.read(path, view.query, begin=view.begin, end=view.end, as_of=view.as_of, options=options)
        return answer.rows

    return read


def by_rust(path: str | Path, view: View) -> list[Row]:
    return rust_peer.read(path, view.query, begin=view.begin, end=view.end, as_of=view.as_of)


def views_of(path: str | Path) -> Iterator[View]:
    """Snapshot, read-optimized, incremental between all neighbouring commits, over all and over most, as of each commit."""
    commits = hoodie.open_table(path).timeline.commits
    # Commit times, or completion times where the table states those (versions 8 and 9).
    ends = sorted(commit.position for commit in commits)
    yield View()
    yield View("read_optimized")
    yield View("incremental", BEGINNING, ends[-1])
    yield View("incremental", ends[len(ends) // 3], ends[-1])
    for begin, end, commit in zip([BEGINNING, *ends], ends, commits, strict=False):
        yield View("incremental", begin, end)
        yield View(as_of=commit.time)


def differences(
    path: str | Path, one: Reader, other: Reader, skip: Callable[[View], bool] = lambda _: False
) -> list[str]:
    """A line for each view in which two readers disagree: what it asks, how many rows, the first rows that differ."""
    found = []
    for view in views_of(path):
        if skip(view):
            continue
        left, right = one(path, view), other(path, view)
        if left != right:
            missing = [row for row in left if row not in right][:1]
            extra = [row for row in right if row not in left][:1]
            found.append(f"{view}: {len(left)} and {len(right)} rows; only left: {missing}; only right: {extra}")
    return found
