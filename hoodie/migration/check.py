"""Whether two readers gave the same rows, in whatever order: counts, and sums of hashes of columns and of whole rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from hoodie.hashes.of_values import mixed, value_hashes
from hoodie.model.migration_results import ColumnCheck

ROWS = "*"


class Digest:
    """Of the batches that `add` was given."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._names = schema.names
        self.nulls = dict.fromkeys([*schema.names, ROWS], 0)
        self._sums = {name: np.uint64(0) for name in self.nulls}

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        whole = np.zeros(batch.num_rows, np.uint64)
        with np.errstate(over="ignore"):
            for number, name in enumerate(self._names):
                column = batch.column(batch.schema.get_field_index(name))
                self.nulls[name] += column.null_count
                hashes = mixed(value_hashes(column), number)
                self._sums[name] += hashes.sum(dtype=np.uint64)
                whole += hashes
            self._sums[ROWS] += mixed(whole).sum(dtype=np.uint64)

    def hash_of(self, name: str) -> str:
        return f"{int(self._sums[name]):016x}"


def digest(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Digest:
    """Of rows in the types of the schema."""
    result = Digest(schema)
    for batch in batches:
        result.add(batch)
    return result


def compared(source: Digest, target: Digest) -> tuple[ColumnCheck, ...]:
    """Whole rows first, then each column."""
    names = [ROWS, *(name for name in source.nulls if name != ROWS)]
    return tuple(
        ColumnCheck(name, source.nulls[name], target.nulls[name], source.hash_of(name), target.hash_of(name))
        for name in names
    )
