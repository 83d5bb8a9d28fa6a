"""The embedded cases: hoodie in this process, and plain pyarrow doing the least that the same answer takes.

One process runs steps of one system and prints a JSON line for each measurement:
`python -m benchmarks.embedded FOLDER SYSTEM STEP…`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import hoodie
from benchmarks.meter import Cost, Meter
from benchmarks.rides import BATCHES, KEY, ORDERING, PARTITION, load, moment_of

SYSTEMS = ("arrow", "mor", "cow")
CODEC = "zstd"
READS = 3
"""A read is measured this often; the report takes the median."""


class Measured(NamedTuple):
    """One measurement, and a figure of its result that all systems must agree on."""

    case: str
    cost: Cost
    check: str


def main(argv: list[str]) -> int:
    folder, system = Path(argv[0]), argv[1]
    steps: dict[tuple[str, str], Callable[[Path], Iterator[Measured]]] = {
        ("arrow", "load"): _arrow_load,
        ("arrow", "upsert"): _arrow_upsert,
        ("arrow", "read"): _arrow_read,
        ("arrow", "compact"): _arrow_compact,
        ("mor", "load"): lambda f: _load(f, "mor"),
        ("mor", "upsert"): lambda f: _upsert(f, "mor"),
        ("mor", "read"): lambda f: _read(f, "mor"),
        ("mor", "compact"): _compact,
        ("cow", "load"): lambda f: _load(f, "cow"),
        ("cow", "upsert"): lambda f: _upsert(f, "cow"),
        ("cow", "read"): lambda f: _read(f, "cow"),
    }
    for step in argv[2:]:
        for measured in steps[system, step](folder):
            print(json.dumps({"case": measured.case, "check": measured.check, **measured.cost.as_dict()}), flush=True)
    return 0


def total_of(rows: pa.Table) -> str:
    """Number of rows and the sums of two columns in units that add exactly."""
    cents = pc.sum(pc.cast(pc.round(pc.multiply(rows.column("fare"), 100.0)), pa.int64())).as_py()
    return f"{rows.num_rows} rows, {cents} cents, {pc.sum(rows.column('passengers')).as_py()} passengers"


# -- hoodie ----------------------------------------------------------------------------------------------------------


def _load(folder: Path, kind: str) -> Iterator[Measured]:
    base = load(folder, "base")
    with Meter() as meter:
        table = hoodie.create_table(
            folder / kind,
            base.schema,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            table_type={"mor": "MERGE_ON_READ", "cow": "COPY_ON_WRITE"}[kind],
        )
        result = table.bulk_insert(base)
    yield Measured("bulk load", meter.cost, f"{result.inserted} rows")


def _upsert(folder: Path, kind: str) -> Iterator[Measured]:
    table = hoodie.open_table(folder / kind)
    for number in range(BATCHES):
        batch = load(folder, f"batch-{number}")
        with Meter() as meter:
            result = table.upsert(batch)
        yield Measured("upsert", meter.cost, f"{number}: {result.inserted} new, {result.updated} updated")


def _read(folder: Path, kind: str) -> Iterator[Measured]:
    table = hoodie.open_table(folder / kind)
    before = table.timeline.commits[-2].time
    for _ in range(READS):
        with Meter() as meter:
            rows = table.scan(columns=["fare", "passengers"]).to_arrow()
        yield Measured("aggregate, snapshot", meter.cost, total_of(rows))
        del rows
        with Meter() as meter:
            rows = table.scan().to_arrow()
        yield Measured("full scan, snapshot", meter.cost, total_of(rows))
        del rows
        if kind == "mor":
            with Meter() as meter:
                rows = table.scan(columns=["fare", "passengers"], query="read_optimized").to_arrow()
            yield Measured("aggregate, read-optimized", meter.cost, "")
            del rows
            with Meter() as meter:
                rows = table.scan(query="read_optimized").to_arrow()
            yield Measured("full scan, read-optimized", meter.cost, "")
            del rows
        with Meter() as meter:
            rows = table.changes(since=before).to_arrow()
        yield Measured("incremental, last commit", meter.cost, total_of(rows))
        del rows


def _compact(folder: Path) -> Iterator[Measured]:
    table = hoodie.open_table(folder / "mor")
    with Meter() as meter:
        table.compact()
    yield Measured("compaction", meter.cost, total_of(table.scan(query="read_optimized").to_arrow()))


# -- plain pyarrow ---------------------------------------------------------------------------------------------------


def _arrow_load(folder: Path) -> Iterator[Measured]:
    base = load(folder, "base")
    with Meter() as meter:
        _write_partitions(base, folder / "arrow")
    yield Measured("bulk load", meter.cost, f"{base.num_rows} rows")


def _arrow_upsert(folder: Path) -> Iterator[Measured]:
    """`append`: the batch beside the rest, nothing looked up. `upsert`: read, merge, and write what it touches."""
    _copy(folder / "arrow", folder / "arrow-base")  # what the compaction starts from
    for number in range(BATCHES):
        batch = load(folder, f"batch-{number}")
        with Meter() as meter:
            _write_partitions(batch, folder / "arrow-delta", f"batch-{number}")
        yield Measured("append", meter.cost, f"{number}: {batch.num_rows} rows")
        new = updated = 0
        with Meter() as meter:
            for day, part in _partitions_of(batch):
                path = folder / "arrow" / day / "part.parquet"
                old = pq.read_table(path, partitioning=None)
                merged = _merged(old, part)
                pq.write_table(merged, path.with_suffix(".new"), compression=CODEC)
                path.with_suffix(".new").replace(path)
                new += merged.num_rows - old.num_rows
                updated += part.num_rows - (merged.num_rows - old.num_rows)
        yield Measured("upsert", meter.cost, f"{number}: {new} new, {updated} updated")


def _arrow_read(folder: Path) -> Iterator[Measured]:
    for _ in range(READS):
        with Meter() as meter:
            rows = _dataset(folder).to_table(columns=["fare", "passengers"])
        yield Measured("aggregate, snapshot", meter.cost, total_of(rows))
        del rows
        with Meter() as meter:
            rows = _dataset(folder).to_table()
        yield Measured("full scan, snapshot", meter.cost, total_of(rows))
        del rows
        with Meter() as meter:
            rows = _dataset(folder).to_table(filter=pc.field(ORDERING) >= moment_of(BATCHES - 1))
        yield Measured("incremental, last commit", meter.cost, total_of(rows))
        del rows


def _arrow_compact(folder: Path) -> Iterator[Measured]:
    """Read the partitions that have deltas, merge all of them in, write once."""
    root = folder / "arrow-base"
    with Meter() as meter:
        for day in sorted(path.name for path in (folder / "arrow-delta").iterdir()):
            path = root / day / "part.parquet"
            rows = pq.read_table(path, partitioning=None)
            for delta in sorted((folder / "arrow-delta" / day).iterdir()):
                rows = _merged(rows, pq.read_table(delta, partitioning=None))
            pq.write_table(rows, path.with_suffix(".new"), compression=CODEC)
            path.with_suffix(".new").replace(path)
    yield Measured("compaction", meter.cost, total_of(ds.dataset(root, format="parquet").to_table()))


def _dataset(folder: Path) -> ds.Dataset:
    return ds.dataset(folder / "arrow", format="parquet")


def _merged(old: pa.Table, changes: pa.Table) -> pa.Table:
    kept = old.filter(pc.invert(pc.is_in(old.column(KEY), value_set=changes.column(KEY).combine_chunks())))
    return pa.concat_tables([kept, changes])


def _partitions_of(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    for day in sorted(pc.unique(rows.column(PARTITION)).to_pylist()):
        yield day, rows.filter(pc.equal(rows.column(PARTITION), day))


def _write_partitions(rows: pa.Table, root: Path, name: str = "part") -> None:
    """A file a partition, with all columns in it."""
    for day, part in _partitions_of(rows):
        (root / day).mkdir(parents=True, exist_ok=True)
        pq.write_table(part, root / day / f"{name}.parquet", compression=CODEC)


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*.parquet"):
        copied = target / path.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
