"""What the embedded systems have in common: a step gives Arrow rows, and pyarrow sums them up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.rides import KEY, ORDERING, SUMMED, digest, load
from benchmarks.systems.base import SNAPSHOT, TableSystem

SHOWN = ("rider", "passengers", "zone")


def total_of(rows: pa.Table) -> str:
    """Number of rows and the sums of two columns in units that add exactly."""
    cents = pc.sum(pc.cast(pc.round(pc.multiply(rows.column("fare"), 100.0)), pa.int64())).as_py()
    return f"{rows.num_rows} rows, {cents} cents, {pc.sum(rows.column('passengers')).as_py()} passengers"


def answer_of(rows: pa.Table) -> str:
    """What a point lookup found."""
    return "; ".join(", ".join(str(row[name]) for name in SHOWN) for row in rows.select(SHOWN).to_pylist())


class EmbeddedSystem(TableSystem):
    """A table in this process; `given` are the rows of a step, in memory before its clock starts."""

    given: pa.Table

    @abstractmethod
    def rows(self, view: str, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of the table."""

    def prepare(self, name: str) -> None:
        self.given = load(self.folder, name)

    def aggregate(self, view: str) -> str:
        return total_of(self.rows(view, SUMMED))

    def scan(self, view: str) -> None:
        self.rows(view)

    def digest(self) -> str:
        return digest(self.rows(SNAPSHOT, [KEY, ORDERING, *SUMMED]))
