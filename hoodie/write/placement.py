"""Placement: which file groups take the rows of a batch. Each index has one; a new index is a class and a row of `PLACEMENTS`.

`locate` runs on the engine, before there is an instant, and on a snapshot that may be old by the time that there is one. What it
found plans the write under the lock, without IO, on the slices of that moment; so it must say whether it still holds then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

from hoodie.errors import OptionError
from hoodie.model.buckets import BucketEngine
from hoodie.model.files import FileSlice
from hoodie.model.plans import WriteContext, WriteResult
from hoodie.options.table import TableConfig
from hoodie.options.values import GLOBAL_INDEXES, OUTSIDE_INDEXES, DuplicatePolicy, IndexType
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView
from hoodie.write.batch import Batch
from hoodie.write.by_bucket import ByBucket, ByRing
from hoodie.write.by_external import ByHBase, ByOwnIndex
from hoodie.write.by_global_key import ByGlobalBloom, ByGlobalSimple
from hoodie.write.by_key import ByKey
from hoodie.write.by_record_index import ByPartitionedIndex, ByRecordIndex
from hoodie.write.operation_rules import OperationRules, Step
from hoodie.write.plan import Target, WritePlan


class Location(Protocol):
    """What an index found out about the rows of a batch."""

    @property
    def opened(self) -> int:
        """Files that were opened for it."""

    def ways(self, plan: WritePlan) -> Mapping[str, int]:
        """How it was found out -> for how many files, for the result of the commit."""

    def slices(self, view: FileSystemView) -> list[FileSlice]:
        """The newest slices of the partitions that it is about."""

    def holds(self, slices: Sequence[FileSlice], view: FileSystemView) -> bool:
        """Whether it is true of these file slices, too: the newest ones of those partitions in the view."""

    def plan(self, target: Target) -> WritePlan:
        """Which files of the target take which rows."""


class Placement(Protocol):
    """How one index finds the places of rows. What the index promises stands in its class: it holds for every write."""

    looks_up: ClassVar[bool]
    """Stored keys are looked up in files. Only then can an insert drop the rows of stored keys, or fail on them."""
    combines: ClassVar[bool]
    """Rows of one key in the batch are always reduced to one."""
    starts_anywhere: ClassVar[bool]
    """A row whose key is new may start a file group of its own."""
    rows_may_move: ClassVar[bool]
    """A clustering may move rows to other file groups: the index finds them there."""
    is_global: ClassVar[bool]
    """A key is unique in the whole table, not only in its partition: its row may move from one to another."""

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> Placement:
        """The placement for one write."""

    @property
    def step(self) -> Step | None:
        """What it does, for the progress; None: it need not do anything."""

    def locate(
        self,
        context: TableContext,
        batch: Batch,
        snapshot: Snapshot,
        label: Callable[[Step], str],
        earlier: object = None,
    ) -> Location:
        """Find the places of the batch's rows in the files of a snapshot.

        `earlier`: what this, or another placement, found out of the same batch on an earlier snapshot. Files that have not changed
        since are not looked into again.

        Raises:
            DuplicateKeyError: stored keys are an error to this write, and there is one.
        """

    def key_bytes_to_hold(self, context: TableContext, batch: Batch, files: int) -> int:
        """Bytes of keys of each of so many new files that are to come back to `remember`."""

    def remember(self, context: TableContext, results: Sequence[WriteResult]) -> None:
        """Take note of files that this process has published."""

    def kept(
        self,
        context: TableContext,
        batch: Batch,
        located: object,
        plan: WritePlan,
        results: Mapping[int, WriteResult | None],
        how: WriteContext,
    ) -> AbstractContextManager[None]:
        """Tell what is kept outside of the files where the rows stand, around the completion of the instant.

        Args:
            located: what `locate` gave. results: of the plan's tasks, by number. how: what the tasks shared.
        """


PLACEMENTS: Mapping[IndexType, type[Placement]] = {
    IndexType.BLOOM: ByKey,
    IndexType.SIMPLE: ByKey,
    IndexType.GLOBAL_BLOOM: ByGlobalBloom,
    IndexType.GLOBAL_SIMPLE: ByGlobalSimple,
    IndexType.BUCKET: ByBucket,
    IndexType.INMEMORY: ByKey,
    IndexType.HBASE: ByHBase,
    IndexType.CUSTOM: ByOwnIndex,
    IndexType.RECORD_INDEX: ByRecordIndex,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: ByRecordIndex,
    IndexType.RECORD_LEVEL_INDEX: ByPartitionedIndex,
}


BUCKETS: Mapping[BucketEngine, type[Placement]] = {
    BucketEngine.SIMPLE: ByBucket,
    BucketEngine.CONSISTENT_HASHING: ByRing,
}
"""Of index type BUCKET."""


def placement_class(config: TableConfig) -> type[Placement]:
    """What the table's index promises."""
    return _class_of(config, config.index or IndexType.BLOOM)


def _class_of(config: TableConfig, index: IndexType) -> type[Placement]:
    return PLACEMENTS[index] if config.buckets is None else BUCKETS[config.buckets.engine]


def _index_of(config: TableConfig, choice: IndexType) -> IndexType:
    """The index of a write: that of the table, or, where it has none, that which the write says."""
    if config.index is None:
        return IndexType.BLOOM if choice is IndexType.BUCKET else choice
    in_files = choice in GLOBAL_INDEXES and not {choice, config.index} & set(OUTSIDE_INDEXES)
    return choice if in_files and PLACEMENTS[config.index].is_global else config.index


def is_global(config: TableConfig, options: WriteOptions) -> bool:
    """Whether the write takes a record key for unique in the whole table."""
    return PLACEMENTS[_index_of(config, options.index.type)].is_global


def looks_up(config: TableConfig, options: WriteOptions) -> bool:
    """Whether the write looks its keys up in files."""
    return PLACEMENTS[_index_of(config, options.index.type)].looks_up


def placement_of(config: TableConfig, rules: OperationRules, options: WriteOptions) -> Placement:
    """The placement that the table's index asks for.

    Raises:
        OptionError: the write asks for what this index cannot do.
    """
    chosen = _class_of(config, _index_of(config, options.index.type))
    if options.stored_keys is not DuplicatePolicy.NONE and not chosen.looks_up:
        raise OptionError(
            f"table {config.name!r} has the {str(config.index).lower()} index, which looks no keys up, so an insert cannot drop rows "
            "of stored keys or fail on them: use upsert, or leave the options about duplicates out"
        )
    return chosen.of(config, rules, options)
