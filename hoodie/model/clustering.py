"""Tasks of clusterings: what one worker puts in order, and what it gives back. Values that any engine can carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.model.buckets import RingNode
from hoodie.model.enums import RowOrder
from hoodie.model.files import FileSlice, total_bytes


class Order(NamedTuple):
    """How rows are ordered; nulls come last."""

    columns: tuple[str, ...]
    layout: RowOrder = RowOrder.LINEAR


class NewBuckets(NamedTuple):
    """Buckets of a hash ring that take the rows of others."""

    fields: tuple[str, ...]
    """Record key columns whose values are hashed."""
    nodes: tuple[RingNode, ...]


@dataclass(frozen=True)
class ClusterTask:
    """The rows of some slices of a partition, into new file groups; so few that they are sorted in memory, or not sorted."""

    number: int
    partition_path: str
    slices: tuple[FileSlice, ...]
    outputs: int
    """About so many files take them."""
    order: Order | None
    """None: in the order in which they stand."""
    at_any_size: bool = False
    """There is nothing to take a sample of, so that they are sorted in memory however much that takes."""
    buckets: NewBuckets | None = None
    """Each row goes to the bucket of its key, in place of files of a size."""

    @property
    def size_bytes(self) -> int:
        return total_bytes(self.slices)


@dataclass(frozen=True)
class SampleTask:
    """Some rows of a base file, of the columns that decide."""

    slice: FileSlice
    order: Order
    rows: int

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes // 10


class Sample(NamedTuple):
    """What a `SampleTask` found."""

    size_bytes: int
    """Of all rows of the file in memory, about."""
    rows: pa.Table | None
    """None: the file has none of the columns."""


@dataclass(frozen=True)
class Cuts:
    """Where an order is cut into ranges, so that about as many rows lie in each. Taken from a sample."""

    order: Order
    bounds: pa.Table | npt.NDArray[np.uint64]
    """Each range but the first begins at one of these: rows of the columns, or places on the curve."""
    marks: tuple[pa.Array, ...] = ()
    """Along a curve: of each column values that lie evenly among its rows, ascending."""

    @property
    def ranges(self) -> int:
        return len(self.bounds) + 1


@dataclass(frozen=True)
class SplitTask:
    """The rows of a slice, laid down by the range that they belong to."""

    slice: FileSlice
    cuts: Cuts
    name: str
    """Of the file in the staging folder that takes them."""

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes


class Pieces(NamedTuple):
    """What a `SplitTask` wrote."""

    path: str
    """Relative to the table; an Arrow file."""
    ranges: tuple[int, ...]
    """The range of each batch in it."""


@dataclass(frozen=True)
class JoinTask:
    """Ranges that follow each other, into one new file group."""

    number: int
    partition_path: str
    pieces: Sequence[Pieces]
    ranges: range
    order: Order
    size_bytes: int
