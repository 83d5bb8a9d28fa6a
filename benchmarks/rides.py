"""The benchmark's data: a table of rides, 15 columns and about 180 bytes a row as Parquet, and batches that change it. Seeded."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY, PARTITION, ORDERING = "ride_id", "day", "updated_at"
SUMMED = ("fare", "passengers")
PARTITIONS = 20
RECENT = 4
"""Updates of a batch go to this many of the newest partitions, new rows to the newest half of them."""
UPDATES = 0.8
BATCHES = 5
RANDOM_PERCENTS = (1, 10)
"""Batches of so many per cent of the table's rows, all of them updates of random keys of all partitions."""
SMALL_ROWS = 1_000
CODEC = "zstd"
"""Of every file that any system writes."""

BASE = "base"
SMALL = "small"
"""The batches of `SMALL_ROWS` rows, one after the other."""
LAST = f"batch-{BATCHES - 1}"
"""The commit that an incremental pull asks for."""

_START_US = 1_767_225_600_000_000
_DAY_US = 86_400_000_000
_DAYS = [(date(2026, 1, 1) + timedelta(days=i)).isoformat() for i in range(PARTITIONS)]
_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), dtype=np.uint16)
_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)
_ROUTE = 144
_SOURCE_FILES = 4


def batches() -> list[str]:
    """The upserts of the newest partitions, in their order."""
    return [f"batch-{number}" for number in range(BATCHES)]


def random_batches() -> list[tuple[str, str]]:
    """The upserts of random keys: what a report calls them, and their names."""
    return [(f"random {percent} %", f"random-{percent}") for percent in RANDOM_PERCENTS]


def make_rides(folder: Path, *, rows: int, batch_rows: int, small_count: int) -> None:
    """Write the table, its batches and `small_count` batches of `SMALL_ROWS` rows into the folder, as Arrow files."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20260101)
    days = np.sort(rng.integers(0, PARTITIONS, rows))
    base = _rides(rng, keys=_keys(rng, rows), days=days, moment=0)
    _save(base, folder / f"{BASE}.arrow")
    keys = base.column(KEY).combine_chunks()
    del base
    recent = np.flatnonzero(days >= PARTITIONS - RECENT)

    def of_recent(count: int, moment: int) -> pa.Table:
        chosen = rng.choice(recent, min(round(count * UPDATES), len(recent)), replace=False)
        fresh = count - len(chosen)
        places = np.concatenate([days[chosen], rng.integers(PARTITIONS - RECENT // 2, PARTITIONS, fresh)])
        of_both = pa.concat_arrays([keys.take(pa.array(chosen)), _keys(rng, fresh)])
        batch = _rides(rng, keys=of_both, days=places, moment=moment)
        return batch.take(pa.array(rng.permutation(count)))

    for number, name in enumerate(batches()):
        _save(of_recent(batch_rows, 1 + number), folder / f"{name}.arrow")
    for number, percent in enumerate(RANDOM_PERCENTS):
        chosen = rng.choice(rows, max(rows * percent // 100, 1), replace=False)
        batch = _rides(rng, keys=keys.take(pa.array(chosen)), days=days[chosen], moment=1 + BATCHES + number)
        _save(batch, folder / f"random-{percent}.arrow")
    with (
        pa.OSFile(str(folder / f"{SMALL}.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, load(folder, batches()[0]).schema) as writer,
    ):
        for number in range(small_count):
            writer.write_batch(of_recent(SMALL_ROWS, 10 + number).combine_chunks().to_batches()[0])


def load(folder: Path, name: str) -> pa.Table:
    """A table of `make_rides`, read into memory."""
    kind, _, number = name.partition("-")
    if kind == SMALL:
        with pa.memory_map(str(folder / f"{SMALL}.arrow")) as source:
            return pa.Table.from_batches([pa.ipc.open_file(source).get_batch(int(number))])
    with pa.OSFile(str(folder / f"{name}.arrow")) as source:
        return pa.ipc.open_file(source).read_all()


def small(number: int) -> str:
    """The name of a small batch."""
    return f"{SMALL}-{number:04d}"


def count_of_small(folder: Path) -> int:
    """How many small batches there are."""
    with pa.memory_map(str(folder / f"{SMALL}.arrow")) as source:
        return pa.ipc.open_file(source).num_record_batches


def probe(folder: Path) -> tuple[str, str]:
    """The key that point lookups ask for, and its partition; the batches may have changed its row."""
    with pa.memory_map(str(folder / f"{BASE}.arrow")) as source:
        rows = pa.ipc.open_file(source).read_all()
        row = rows.select([KEY, PARTITION]).slice(rows.num_rows // 2, 1).to_pylist()[0]
    return row[KEY], row[PARTITION]


def moment_of(number: int) -> pa.Scalar:
    """Every row of batch `number` was updated at or after this time, every row before it earlier."""
    return pa.scalar(_START_US + (1 + number) * _DAY_US, pa.timestamp("us", "UTC"))


def make_sources(folder: Path) -> None:
    """The same data as Parquet, which is where Spark takes it from: some files for each name, one for a small batch."""
    root = folder / "source"
    if root.exists():
        return
    for name in (BASE, *batches(), *(name for _, name in random_batches())):
        _write_source(load(folder, name), root / name, _SOURCE_FILES)
    for number in range(count_of_small(folder)):
        _write_source(load(folder, small(number)), root / small(number), 1)


def digest(rows: pa.Table) -> str:
    """Number of rows and an order-free checksum over keys, times and two columns: equal for equal rows, whatever wrote them.

    Sums modulo 2^64 of a multiplicative hash of each row; a row that is missing, doubled or of another version changes it.
    """
    text = rows.column(KEY).cast(pa.string()).combine_chunks()
    if not isinstance(text, pa.StringArray):
        text = pa.concat_arrays(text.chunks)
    words = np.frombuffer(text.buffers()[2], np.uint64, 3 * len(text), 24 * text.offset).reshape(-1, 3)
    moments = rows.column(ORDERING).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    cents = pc.cast(pc.round(pc.multiply(rows.column("fare"), 100.0)), pa.int64())
    columns = [*words.T, moments.to_numpy(), cents.to_numpy(), rows.column("passengers").cast(pa.int64()).to_numpy()]
    hashes = np.full(rows.num_rows, 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        hashes ^= column.astype(np.uint64)
        hashes *= np.uint64(0xFF51AFD7ED558CCD)
        hashes ^= hashes >> np.uint64(32)
    return f"{rows.num_rows} rows, checksum {int(np.sum(hashes, dtype=np.uint64)):016x}"


def _write_source(rows: pa.Table, target: Path, files: int) -> None:
    target.mkdir(parents=True)
    size = -(-rows.num_rows // files)
    for number in range(files):
        pq.write_table(rows.slice(number * size, size), target / f"{number}.parquet", compression=CODEC)


def _keys(rng: np.random.Generator, count: int) -> pa.Array:
    """Random hexadecimal keys of 24 characters: no order that a key range could use."""
    return _texts(_HEX[rng.integers(0, 256, (count, 12), dtype=np.uint8)], 24)


def _texts(letters: np.ndarray, width: int) -> pa.Array:
    count = len(letters)
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters)))


def _rides(rng: np.random.Generator, *, keys: pa.Array, days: np.ndarray, moment: int) -> pa.Table:
    count = len(keys)

    def one_of(*values: str) -> pa.Array:
        return pa.array(values).take(pa.array(rng.integers(0, len(values), count)))

    def numbered(prefix: str, kinds: int) -> pa.Array:
        return pc.binary_join_element_wise(prefix, pa.array(rng.integers(0, kinds, count)).cast(pa.string()), "-")

    times = _START_US + moment * _DAY_US + rng.integers(0, _DAY_US, count)
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
            "fare": pa.array(np.round(rng.gamma(2.0, 9.0, count), 2)),
            "tip": pa.array(rng.gamma(2.0, 1.2, count)),
            "distance_km": pa.array(rng.gamma(2.0, 4.0, count)),
            "duration_min": pa.array(rng.gamma(2.0, 11.0, count)),
            "passengers": pa.array(rng.integers(1, 5, count), pa.int32()),
            "zone": pa.array(rng.integers(1, 260, count), pa.int64()),
            "route": _texts(_LETTERS[rng.integers(0, 64, (count, _ROUTE), dtype=np.uint8)], _ROUTE),
        }
    )


def _save(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
