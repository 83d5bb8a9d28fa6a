"""The benchmark's data: a table of rides, 15 columns and about 180 bytes a row, and batches that change it. Seeded."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEY, PARTITION, ORDERING = "ride_id", "day", "updated_at"
PARTITIONS = 20
RECENT = 4
"""Updates go to this many of the newest partitions, new rows to the newest half of them."""
UPDATES = 0.8
BATCHES = 5

_START_US = 1_767_225_600_000_000
_DAYS = [(date(2026, 1, 1) + timedelta(days=i)).isoformat() for i in range(PARTITIONS)]
_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), dtype=np.uint16)


def make_rides(folder: Path, *, rows: int, batch_rows: int) -> None:
    """Write `base.arrow` and `batch-0.arrow` … into the folder."""
    rng = np.random.default_rng(20260101)
    days = np.sort(rng.integers(0, PARTITIONS, rows))
    base = _rides(rng, keys=_keys(rng, rows), days=days, moment=0)
    _save(base, folder / "base.arrow")
    recent = np.flatnonzero(days >= PARTITIONS - RECENT)
    updates = min(int(batch_rows * UPDATES), len(recent))
    for number in range(BATCHES):
        chosen = rng.choice(recent, updates, replace=False)
        fresh = batch_rows - updates
        keys = pa.concat_arrays([base.column(KEY).combine_chunks().take(pa.array(chosen)), _keys(rng, fresh)])
        places = np.concatenate([days[chosen], rng.integers(PARTITIONS - RECENT // 2, PARTITIONS, fresh)])
        batch = _rides(rng, keys=keys, days=places, moment=1 + number)
        _save(batch.take(pa.array(rng.permutation(batch_rows))), folder / f"batch-{number}.arrow")


def load(folder: Path, name: str) -> pa.Table:
    """A table of `make_rides`, read into memory."""
    with pa.OSFile(str(folder / f"{name}.arrow")) as source:
        return pa.ipc.open_file(source).read_all()


def moment_of(number: int) -> pa.Scalar:
    """Every row of batch `number` was updated at or after this time, every row before it earlier."""
    return pa.scalar(_START_US + (1 + number) * 86_400_000_000, pa.timestamp("us", "UTC"))


def _keys(rng: np.random.Generator, count: int) -> pa.Array:
    """Random hexadecimal keys of 24 characters: no order that a key range could use."""
    text = _HEX[rng.integers(0, 256, (count, 12), dtype=np.uint8)]
    offsets = np.arange(count + 1, dtype=np.int32) * 24
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def _rides(rng: np.random.Generator, *, keys: pa.Array, days: np.ndarray, moment: int) -> pa.Table:
    count = len(keys)

    def one_of(*values: str) -> pa.Array:
        return pa.array(values).take(pa.array(rng.integers(0, len(values), count)))

    def numbered(prefix: str, kinds: int) -> pa.Array:
        return pc.binary_join_element_wise(prefix, pa.array(rng.integers(0, kinds, count)).cast(pa.string()), "-")

    def amount(scale: float) -> pa.Array:
        return pa.array(np.round(rng.gamma(2.0, scale, count), 2))

    times = _START_US + moment * 86_400_000_000 + rng.integers(0, 86_400_000_000, count)
    return pa.table(
        {
            KEY: keys,
            PARTITION: pa.array(_DAYS).take(pa.array(days)),
            ORDERING: pa.array(times, pa.timestamp("us", "UTC")),
            "rider": numbered("rider", 500_000),
            "driver": numbered("driver", 40_000),
            "vehicle": one_of("car", "van", "bike", "scooter"),
            "status": one_of("requested", "under way", "finished", "cancelled"),
            "payment": one_of("card", "cash", "account"),
            "fare": amount(9.0),
            "tip": amount(1.2),
            "distance_km": amount(4.0),
            "duration_min": amount(11.0),
            "passengers": pa.array(rng.integers(1, 5, count), pa.int32()),
            "rating": pa.array(rng.integers(1, 6, count), pa.int32()),
            "zone": pa.array(rng.integers(1, 260, count), pa.int64()),
        }
    )


def _save(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
