"""How a table with the simple bucket index spreads its keys: the hash of a key says in which file group it stands."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.names import join
from hoodie.model.plans import Chunk, Matches

BUCKET_INDEX = join(".hoodie", ".bucket_index")
"""Folder in which Apache Hudi keeps what other bucket engines than the simple one need to find a key."""


@dataclass(frozen=True)
class BucketLayout:
    """One file group for each bucket of each partition; its file id begins with the bucket's number."""

    count: int
    """Buckets of a partition."""
    fields: tuple[str, ...]
    """Record key columns whose values are hashed."""


@dataclass(frozen=True)
class BucketTask:
    """Find the bucket of every row of a chunk."""

    number: int
    """The chunk's, in arrival order."""
    chunk: Chunk
    layout: BucketLayout
    stage_to: str | None = None
    """Folder for the row numbers; None keeps them in memory."""

    @property
    def size_bytes(self) -> int:
        return self.chunk.size_bytes


@dataclass(frozen=True)
class BucketRows:
    """The rows of one chunk that belong into one bucket of one partition."""

    partition_path: str
    bucket: int
    rows: Matches
