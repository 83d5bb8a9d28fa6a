"""What an index does for a write: it says where the rows of a batch are stored, and which files take them.

`locate` runs on the engine, before there is an instant, and on a snapshot that may be old by the time that there is one. What it
found plans the write under the lock, without IO, on the slices of that moment; so it must say whether it still holds then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, Protocol

from hoodie.model.files import FileSlice
from hoodie.model.plans import WriteContext, WriteResult
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView
from hoodie.write.batch import Batch
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


class Search(NamedTuple):
    """What an index is asked."""

    context: TableContext
    batch: Batch
    snapshot: Snapshot
    label: Callable[[Step], str]
    earlier: object = None
    """What this, or another placement, found out of the same batch on an earlier snapshot. Files that have not changed since are not
    looked into again.
    """


class Written(NamedTuple):
    """A batch whose files are written, and whose instant is about to be completed."""

    context: TableContext
    batch: Batch
    located: object
    """What `locate` gave."""
    plan: WritePlan
    results: Mapping[int, WriteResult | None]
    """Of the plan's tasks, by number."""
    how: WriteContext
    """What the tasks shared."""


class Placement(ABC):
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
    step: Step | None
    """What it does, for the progress; None: it need not do anything."""

    @classmethod
    @abstractmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> Placement:
        """The placement for one write."""

    @abstractmethod
    def locate(self, search: Search) -> Location:
        """Find the places of the batch's rows in the files of a snapshot.

        Raises:
            DuplicateKeyError: stored keys are an error to this write, and there is one.
        """

    def key_bytes_to_hold(self, context: TableContext, batch: Batch, files: int) -> int:
        """Bytes of keys of each of so many new files that are to come back to `remember`."""
        return 0

    def remember(self, context: TableContext, results: Sequence[WriteResult]) -> None:
        """Take note of files that this process has published."""
        return

    def kept(self, written: Written) -> AbstractContextManager[None]:
        """Tell what is kept outside of the files where the rows stand, around the completion of the instant."""
        return nullcontext()
