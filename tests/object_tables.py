"""The life of a small table: what tests in a bucket do to it, and what they see."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hoodie.table import HoodieTable

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def rows(first: int, last: int, ts: int) -> pa.Table:
    ids = list(range(first, last))
    return pa.table(
        {"id": ids, "part": [f"p {n % 3}" for n in ids], "ts": [ts] * len(ids), "v": [n * ts for n in ids]},
        schema=pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]),
    )


def life(table: HoodieTable, *, compact: bool) -> Iterator[list[object]]:
    """What readers see after each of the operations, but for the times of the instants."""
    first = table.upsert(rows(0, 60, 1))
    yield seen(table)
    table.upsert(rows(30, 90, 2))
    yield seen(table)
    table.delete(rows(80, 85, 0).select(["id", "part"]))
    yield seen(table)
    if compact:
        table.compact()
        yield seen(table)
    table.upsert(rows(0, 3, 3))
    yield seen(table)
    table.insert_overwrite(rows(300, 303, 4))
    yield seen(table)
    yield sorted(table.changes(since=first.instant).to_arrow().column("id").to_pylist())
    yield sorted(table.scan(as_of=first.instant).to_arrow().column("v").to_pylist())
    yield sorted(table.scan(["id"], "v > 100").to_arrow().column("id").to_pylist())


def seen(table: HoodieTable) -> list[object]:
    return sorted(table.scan().to_arrow().select(["id", "part", "ts", "v"]).to_pylist(), key=lambda row: row["id"])
