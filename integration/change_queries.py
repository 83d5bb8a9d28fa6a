"""Tables with change logs, and what Apache Hudi's change queries say of them."""

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration.hudi_client import HudiPeer

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int32()), ("tags", pa.list_(pa.string())), ("ts", pa.int64())]
)
OPTIONS = {
    "hoodie.table.name": "cdc",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.cdc.enabled": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.index.bloom.num_entries": "100",
}
KINDS_OF_LOGS = list(
    itertools.product(
        ["COPY_ON_WRITE", "MERGE_ON_READ"], ["6", "9"], ["data_before_after", "data_before", "op_key_only"]
    )
)
EACH_PAIR = [
    ("COPY_ON_WRITE", "6", "data_before_after"),
    ("COPY_ON_WRITE", "9", "data_before"),
    ("COPY_ON_WRITE", "9", "op_key_only"),
    ("MERGE_ON_READ", "6", "data_before"),
    ("MERGE_ON_READ", "6", "op_key_only"),
    ("MERGE_ON_READ", "9", "data_before_after"),
]
"""Any two of the three stand together in one of them."""


def options_of(kind: str, version: str, mode: str) -> dict[str, str]:
    return {
        **OPTIONS,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }


def rows(*keys: str, n: int, ts: int) -> pa.Table:
    """A row for each key; the partition is the key's last letter."""
    found = [{"id": key, "part": key[-1], "n": n, "tags": [key, str(n)], "ts": ts} for key in keys]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def changes_by_hudi(hudi: HudiPeer, path: Path, begin: str, end: str) -> pa.Table:
    options = {"hoodie.datasource.query.incremental.format": "cdc"}
    return hudi.read(path, "incremental", begin=begin, end=end, options=options).table


def events(table: pa.Table) -> list[Any]:
    """Without what Hudi's texts have by the way it found a change: meta columns, and nulls or their absence."""
    found = []
    for row in table.to_pylist():
        images = (json.loads(row[side] or "null") for side in ("before", "after"))
        bare = [
            image and {n: v for n, v in image.items() if v is not None and not n.startswith("_hoodie_")}
            for image in images
        ]
        found.append((row["op"], row["ts_ms"], *bare))
    return sorted(found, key=repr)
