"""Plain pyarrow over Parquet files: the least that the same answers take. No log, no commit, no fsync."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.meter import Meter
from benchmarks.rides import (
    BATCHES,
    CODEC,
    KEY,
    LAST,
    ORDERING,
    PARTITION,
    SUMMED,
    batches,
    count_of_small,
    digest,
    load,
    moment_of,
    random_batches,
    small,
)
from benchmarks.systems.base import (
    AFTER,
    AGGREGATE,
    LOAD,
    NOTHING,
    PULL,
    RANDOM,
    READ,
    SCAN,
    SMALL_COMMITS,
    SNAPSHOT,
    UPSERT,
    Effort,
    Measured,
)
from benchmarks.systems.embedded import total_of


class PlainArrow:
    """A Parquet file for each partition. `append` writes a batch beside it, `rewrite` reads, merges and writes."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root
        self.table = root / "rides"

    def run(self, steps: Sequence[str], effort: Effort) -> Iterator[Measured]:
        if LOAD in steps:
            yield from self._loads(effort)
        for name in batches() if UPSERT in steps else ():
            yield from self._upsert("", name)
        if PULL in steps:
            for _ in range(effort.pulls):
                with Meter() as meter:
                    rows = ds.dataset(self.table).to_table(filter=pc.field(ORDERING) >= moment_of(BATCHES - 1))
                yield Measured("incremental, last commit", meter.cost, total_of(rows))
        for called, name in random_batches() if RANDOM in steps else ():
            yield from self._upsert(f", {called}", name)
        if UPSERT in steps or RANDOM in steps:
            yield Measured("rows after the upserts", NOTHING, digest(self._read([KEY, ORDERING, *SUMMED])))
        if READ in steps:
            yield from self._reads(effort.reads)
        if SMALL_COMMITS in steps:
            for number in range(count_of_small(self.folder)):
                batch = load(self.folder, small(number))
                with Meter(self.root) as meter:
                    _write_partitions(batch, self.root / "small", f"{number}")
                yield Measured("small append", meter.cost)

    def _loads(self, effort: Effort) -> Iterator[Measured]:
        rows = load(self.folder, "base")
        for _ in range(effort.loads):
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.mkdir(parents=True)
            with Meter(self.root) as meter:
                _write_partitions(rows, self.table)
            yield Measured("copy", meter.cost)

    def _upsert(self, called: str, name: str) -> Iterator[Measured]:
        batch = load(self.folder, name)
        with Meter(self.root) as meter:
            _write_partitions(batch, self.root / "delta", name)
        yield Measured(f"append{called}", meter.cost)
        with Meter() as meter:
            keys = ds.dataset(self.table).to_table(columns=[KEY]).column(KEY)
            pc.index_in(keys, value_set=batch.column(KEY).combine_chunks())
        yield Measured(f"look-up{called}", meter.cost)
        if name in {LAST, batches()[0]}:
            with Meter(self.root) as meter:
                _write_partitions(_merged(self._read(), batch), self.root / "all")
            yield Measured("rewrite all", meter.cost)
            shutil.rmtree(self.root / "all")
        with Meter(self.root) as meter:
            for day, part in _partitions_of(batch):
                path = self.table / day / "part.parquet"
                merged = _merged(pq.read_table(path, partitioning=None), part)
                pq.write_table(merged, path.with_suffix(".new"), compression=CODEC)
                path.with_suffix(".new").replace(path)
        yield Measured(f"rewrite what is touched{called}", meter.cost)

    def _reads(self, rounds: int) -> Iterator[Measured]:
        """Of the merged table, which is what a table looks like after its compaction."""
        for _ in range(rounds):
            with Meter() as meter:
                check = total_of(self._read(SUMMED))
            yield Measured(f"{AGGREGATE}, {SNAPSHOT}, {AFTER}", meter.cost, check)
            with Meter() as meter:
                self._read()
            yield Measured(f"{SCAN}, {SNAPSHOT}, {AFTER}", meter.cost)

    def _read(self, columns: Sequence[str] | None = None) -> pa.Table:
        return ds.dataset(self.table, format="parquet").to_table(columns=None if columns is None else list(columns))


def _merged(old: pa.Table, changes: pa.Table) -> pa.Table:
    kept = old.filter(pc.invert(pc.is_in(old.column(KEY), value_set=changes.column(KEY).combine_chunks())))
    return pa.concat_tables([kept, changes])


def _partitions_of(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    for day in sorted(pc.unique(rows.column(PARTITION)).to_pylist()):
        yield day, rows.filter(pc.equal(rows.column(PARTITION), day))


def _write_partitions(rows: pa.Table, root: Path, name: str = "part") -> None:
    """A file for each partition, with all columns in it."""
    for day, part in _partitions_of(rows):
        (root / day).mkdir(parents=True, exist_ok=True)
        pq.write_table(part, root / day / f"{name}.parquet", compression=CODEC)
