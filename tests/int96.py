"""Base files with timestamps as Spark, and Apache Hudi's row writer, may store them: INT96."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hoodie

MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1677, 9, 21, tzinfo=UTC),
    datetime(2024, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC),
    None,
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
KIND = pa.timestamp("us", "UTC")


def rows(first: int = 0, ts: int = 0) -> pa.Table:
    """A row for each moment, in nested columns too."""
    count = len(MOMENTS)
    at = pa.array(MOMENTS, KIND)
    return pa.table(
        {
            "id": range(first, first + count),
            "ts": [ts] * count,
            "at": at,
            "inside": pa.StructArray.from_arrays([at], ["at"]),
            "listed": pa.array([[moment] for moment in MOMENTS], pa.list_(KIND)),
        }
    )


def int96_table(path: Path, table_type: str) -> hoodie.HoodieTable:
    """A table of these rows, whose base files hold INT96."""
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type=table_type)
    table.upsert(rows())
    for commit in (path / ".hoodie").glob("*commit"):
        stated = json.loads(commit.read_text(encoding="utf-8"))
        for stats in stated["partitionToWriteStats"].values():
            for stat in stats:
                file = path / stat["path"]
                pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True, store_schema=False)
                stat["fileSizeInBytes"] = stat["totalWriteBytes"] = file.stat().st_size
        commit.write_text(json.dumps(stated), encoding="utf-8")
    return hoodie.open_table(path)
