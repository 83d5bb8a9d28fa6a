"""polars over Parquet files: batches lie beside the base, and every read merges them in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from benchmarks.rides import CODEC, KEY, PARTITION
from benchmarks.systems.embedded import EmbeddedSystem, answer_of


class PolarsMerge(EmbeddedSystem):
    """No look-up, no log, no commit: the later file wins."""

    pulls = False

    @property
    def base(self) -> Path:
        return self.root / "base"

    def load(self) -> None:
        rows = pl.from_arrow(self.given)
        for (day,), part in rows.partition_by(PARTITION, as_dict=True).items():
            (self.base / day).mkdir(parents=True)
            part.write_parquet(self.base / day / "part.parquet", compression=CODEC)

    def upsert(self, name: str) -> None:
        (self.root / "delta").mkdir(exist_ok=True)
        number = len(list((self.root / "delta").iterdir()))
        pl.from_arrow(self.given).write_parquet(self.root / "delta" / f"{number:05d}.parquet", compression=CODEC)

    def rows(self, view: str, columns: Sequence[str] | None = None) -> pa.Table:
        found = self._merged()
        if columns is not None:
            found = found.select(columns)
        return found.collect().to_arrow()

    def lookup(self, view: str) -> str:
        return answer_of(self._merged().filter(pl.col(KEY) == self.key).collect().to_arrow())

    def compact(self) -> None:
        for (day,), part in self._merged().collect().partition_by(PARTITION, as_dict=True).items():
            part.write_parquet(self.base / day / "part.new", compression=CODEC)
            (self.base / day / "part.new").replace(self.base / day / "part.parquet")
        for path in (self.root / "delta").iterdir():
            path.unlink()

    def _merged(self) -> pl.LazyFrame:
        base = pl.scan_parquet(self.base / "*" / "*.parquet")
        deltas = sorted((self.root / "delta").glob("*.parquet"))
        if not deltas:
            return base
        newer = pl.scan_parquet(deltas).unique(subset=KEY, keep="last", maintain_order=True)
        return pl.concat([base.join(newer.select(KEY), on=KEY, how="anti"), newer])
