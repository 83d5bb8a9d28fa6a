"""Histories of a table that is published after each step."""

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.model.enums import LakeFormat

HISTORIES = [("COPY_ON_WRITE", False), ("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)]
"""Type of the table; whether its files leave the partition column out."""
ACTS = {
    "upsert": lambda t, rng, n: t.upsert(some(rng, n)),
    "insert": lambda t, rng, n: t.insert(some(rng, n, base=1000 * n)),
    "delete": lambda t, rng, n: t.delete(where=f"id % 7 = {rng.randrange(7)}"),
    "overwrite": lambda t, rng, n: t.insert_overwrite(some(rng, n, base=100 * n)),
    "drop": lambda t, rng, n: t.delete_partitions([f"p={rng.randrange(3)}"]),
    "compact": lambda t, rng, n: t.compact() if t.config.table_type == "MERGE_ON_READ" else t.cluster(),
    "cluster": lambda t, rng, n: t.cluster(),
    "clean": lambda t, rng, n: t.clean(retain_commits=1),
    "restore": lambda t, rng, n: t.rollback(),
    "new column": lambda t, rng, n: t.upsert(some(rng, n).append_column(f"c{n}", [[float(n)] * 6]), options=NULLS),
}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}


def some(rng, n, base=0):
    ids = rng.sample(range(base, base + 30), 6)
    kind = pa.int32() if n < 4 else pa.int64()  # which widens the column
    return pa.table(
        {
            "id": ids,
            "p": [each % 3 for each in ids],
            "ts": [n] * 6,
            "v": [None if each % 5 == 0 else f"{n}-{each}" for each in ids],
            "n": pa.array(ids, kind),
        }
    )


def published_history(
    path: Path, kind: str, *, left_out: bool, length: int = 6, widens: bool = True
) -> Iterator[tuple[str, pa.Table]]:
    """Each act once, and `length` more: after each the table is published in all formats. Gives the act, and the rows to be read.

    `widens`: a column gets a wider type on the way.
    """
    rng = random.Random(f"{kind}{left_out}")
    options = {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.drop.partition.columns": str(left_out).lower(),
        **NULLS,
    }
    first = some(rng, 0 if widens else 4)
    table = hoodie.create_table(
        path, first, record_key="id", partition_by="p", ordering="ts", table_type=kind, options=options
    )
    table.insert(first)
    acts = [*ACTS, *rng.choices(list(ACTS), k=length)]
    rng.shuffle(acts)
    for n, act in enumerate(acts, 1):
        if act in ("upsert", "insert", "overwrite"):
            ACTS[act](hoodie.open_table(path, options=NULLS), rng, n)
        else:
            ACTS[act](table, rng, n)
        for format in LakeFormat:
            table.publish(format)
        yield f"{n}: {act}", table.scan(query="read_optimized").to_arrow()
