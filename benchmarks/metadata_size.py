"""How commit metadata and the archive grow with many small delta commits: bytes, and processor time, with and without compaction.

`python -m benchmarks.metadata_size [COMMITS]` prints a line for each tenth of the commits. Tables are in memory, of one file group.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

import hoodie
from hoodie.storage.cache import Cache
from hoodie.storage.uri import open_storage
from hoodie.table import open_at

COMMITS = 1000
CASES: Mapping[str, Mapping[str, str]] = {
    "compaction after 5 delta commits": {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "5",
    },
    "never compacted": {},
}
_ROWS = 20


class Line(NamedTuple):
    """What a table was like after so many commits."""

    commits: int
    cpu_ms: float
    """For each of the commits since the line before, services included."""
    commit_bytes: int
    """Of the newest commit's metadata."""
    timeline_bytes: int
    archive_bytes: int
    archive_files: int
    reader_ms: float
    """Processor time of a first query by a process that knows nothing of the table."""


def run(case: str, commits: int, name: str) -> Iterator[Line]:
    """Make so many commits, and look ten times."""
    uri = f"memory://metadata-size-{name}"
    rows = pa.table({"id": [f"k{n}" for n in range(_ROWS)], "n": [0] * _ROWS})
    table = hoodie.create_table(uri, rows.schema, record_key="id", table_type="MERGE_ON_READ", options=CASES[case])
    table = hoodie.open_table(uri, options=CASES[case])
    table.upsert(rows)
    storage = open_storage(uri)
    step = max(1, commits // 10)
    begun = time.process_time()
    for number in range(1, commits + 1):
        table.upsert(rows.slice(number % _ROWS, 1))
        if number % step:
            continue
        cpu_ms = (time.process_time() - begun) * 1000 / step
        files = [f for f in storage.list(".hoodie") if f.path.endswith((".deltacommit", ".commit"))]
        archive = storage.list(".hoodie/history")
        read = time.process_time()
        open_at(storage, cache=Cache(64 << 20)).scan().count()
        reader_ms = (time.process_time() - read) * 1000
        yield Line(
            number,
            cpu_ms,
            files[-1].size_bytes,
            sum(f.size_bytes for f in files),
            sum(f.size_bytes for f in archive),
            len(archive),
            reader_ms,
        )
        begun = time.process_time()


def main(commits: int = COMMITS) -> None:
    for case in CASES:
        print(case)
        for line in run(case, commits, case.replace(" ", "-")):
            print(
                f"{line.commits:>7,} commits: {line.cpu_ms:6.1f} ms each; newest {line.commit_bytes:>7,} bytes; timeline "
                f"{line.timeline_bytes / 1e6:6.2f} MB; archive {line.archive_bytes / 1e6:7.2f} MB in {line.archive_files} files; "
                f"first query {line.reader_ms:.0f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
