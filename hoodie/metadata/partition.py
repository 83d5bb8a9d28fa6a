"""A partition of a metadata table for its writer: the records of an instant, its initial state, and how records merge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import HoodieError, UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.keys import group_numbers
from hoodie.metadata.table import MetadataTable, OpenedMetadata
from hoodie.metadata.visibility import BEGINNING
from hoodie.model.change import Change
from hoodie.model.files import FileSlice
from hoodie.model.instant import InstantTime
from hoodie.options.view import ViewOptions
from hoodie.view.context import TableContext

pc: Any = pyarrow.compute


FAULTS = (HoodieError, FileNotFoundError, pa.ArrowInvalid)
"""What is wrong with a metadata table, or with a file that goes into it."""


class PartitionError(UnsupportedTableError):
    """One partition cannot be kept up; nothing is said of the others."""

    def __init__(self, partition: str, reason: str) -> None:
        super().__init__(reason)
        self.partition = partition


class ListingNeededError(UnsupportedTableError):
    """What an instant took back is not known from its metadata alone: the metadata table has to be built anew."""


class Shard(NamedTuple):
    """Records of one file group. Keys stand in the order of their bytes, each of them once."""

    number: int
    keys: Any
    values: Any
    """Avro binary, or a dictionary of it."""
    removed: Any = pa.array([], BINARY)
    """Keys that a delete block takes away."""
    begins: str = ""
    """The id of the file group, where that was not there before."""


@dataclass(frozen=True)
class Scope:
    """What records are made with. The caller holds the table's lock."""

    context: TableContext
    """Of the table."""
    properties: Mapping[str, str]
    """Of the table, as they are now."""
    schema: str
    """Of the metadata table's records."""
    is_new: bool = False
    """The metadata table was built for the instant that is written, and without what that takes back."""
    cache: dict[Hashable, Any] = field(default_factory=dict)
    """What was read already of files that do not change, for who builds a partition in several steps."""


TableFiles = Mapping[str, Mapping[str, int]]
"""Partition path -> name -> size of the files in it."""


class MetadataPartition(Protocol):
    """A partition that our writers keep up."""

    @property
    def name(self) -> str: ...

    def is_wanted(self, options: ViewOptions) -> bool | None:
        """True: it is built where it is not there. False: it is dropped. None: it is kept up where it is there."""
        ...

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        """The records of an instant; no shard for file groups that get nothing. `metadata`: as it was before.

        Raises:
            ListingNeededError: what the instant takes back is in a base file already, and cannot be told from other records.
        """
        ...

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        """The ids of the file groups that the partition gets where it is not there, and the records of all that the table has.

        Files are read at once, and `scope.cache` keeps what they say. Records are made when they are asked for, under the lock.
        """
        ...

    def properties(self, scope: Scope) -> Mapping[str, str]:
        """What the table's properties say of it besides, once it is there."""
        ...

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        """What a file group holds, each key once, for its compaction.

        Raises:
            UnsupportedTableError: its records do not fit into one file.
        """
        ...


def require_in_logs(scope: Scope, metadata: MetadataTable, pieces: Sequence[FileSlice], change: Change) -> None:
    """Raises ListingNeededError where these file slices may begin with what an instant takes back: it was compacted, or it was there
    when the partition was built.
    """
    base = max(
        (each.base_instant for each in pieces if not _begins_empty(metadata.opened, each)), default=InstantTime("")
    )
    if base and not scope.is_new and any(_begins_with(metadata.opened, base, time) for time, _ in change.undone):
        raise ListingNeededError("what a rollback takes back was compacted, or is older than an index")


def _begins_empty(metadata: OpenedMetadata, piece: FileSlice) -> bool:
    """Whether a file group of a record index by partitions came with a delta commit, all of which is in its logs."""
    return piece.base is None and metadata.own.by_completion and not piece.base_instant.startswith(BEGINNING)


def _begins_with(metadata: OpenedMetadata, base: InstantTime, time: InstantTime) -> bool:
    """Whether slices that begin at `base` may have what an instant of the table wrote."""
    own = metadata.own
    if not own.by_completion:
        return time <= base  # which is that of the last instant of the table before it, and more digits
    first = {each.time: each.position for each in own.commits if each.time.startswith(BEGINNING)}
    if not first:
        first = {each.time: each.position for each in metadata.past.instants if each.time.startswith(BEGINNING)}
    written = next((each for each in own.commits if each.time == time), None)
    if written is None:  # never completed, unless that was before the partition was built
        return time <= max(first.values(), default=time)
    return written.position <= (first.get(base, written.position) if base.startswith(BEGINNING) else base)


@contextmanager
def naming(partition: MetadataPartition) -> Iterator[None]:
    """Faults within are those of a partition."""
    try:
        yield
    except (ListingNeededError, PartitionError):
        raise
    except FAULTS as exc:
        raise PartitionError(partition.name, str(exc)) from exc


def shards_of(keys: Any, values: Any, groups: int) -> Iterator[Shard]:
    """Records by file group; `keys` are texts, each of them once, and `values` Avro binary."""
    numbers = group_numbers(keys, groups)
    for number in np.unique(numbers).tolist():
        rows = pa.array(np.flatnonzero(numbers == number))
        yield in_order(number, keys.take(rows).cast(pa.binary()), values.take(rows))


def in_order(number: int, keys: Any, values: Any) -> Shard:
    """Records of a file group, by the bytes of their keys."""
    order = pc.sort_indices(keys)
    return Shard(number, keys.take(order), values.take(order))
