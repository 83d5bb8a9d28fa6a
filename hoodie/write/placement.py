"""Placement: which file groups take the rows of a batch. An index is one way to say it; a new one is one class and one line here.

`locate` runs on the engine, before there is an instant, and on a snapshot that may be old by the time that there is one. What it
found plans the write under the lock, without IO, on the slices of that moment; so it must say whether it still holds then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from hoodie.model.files import FileSlice
from hoodie.model.plans import WriteResult
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.batch import Batch
from hoodie.write.by_bucket import ByBucket
from hoodie.write.by_key import ByKey
from hoodie.write.operation_rules import OperationRules, Step
from hoodie.write.plan import Target, WritePlan


class Located(Protocol):
    """What an index found out about the rows of a batch."""

    @property
    def opened(self) -> int:
        """Files that were opened for it."""

    def ways(self, plan: WritePlan) -> Mapping[str, int]:
        """How it was found out -> for how many files, for the result of the commit."""

    def holds(self, slices: Sequence[FileSlice]) -> bool:
        """Whether it is true of these file slices, too: the newest ones of the batch's partitions."""

    def plan(self, target: Target) -> WritePlan:
        """Which files of the target take which rows."""


class Placement(Protocol):
    """How one index finds the places of rows."""

    @property
    def step(self) -> Step | None:
        """What it does, for the progress; None: it need not do anything."""

    @property
    def combines(self) -> bool:
        """Whether rows of one key in the batch are always reduced to one."""

    @property
    def starts_anywhere(self) -> bool:
        """Whether a row whose key is new may start a file group of its own."""

    def locate(
        self,
        context: TableContext,
        batch: Batch,
        snapshot: Snapshot,
        label: Callable[[Step], str],
        known: object = None,
    ) -> Located:
        """Find the places of the batch's rows in the files of a snapshot.

        `known`: what this, or another placement, found out of the same batch on an earlier snapshot. Files that have not changed
        since are not looked into again.

        Raises:
            DuplicateKeyError: stored keys are an error to this write, and there is one.
        """

    def key_bytes_to_hold(self, context: TableContext, batch: Batch, files: int) -> int:
        """Bytes of keys of each of so many new files that are to come back to `remember`."""

    def remember(self, context: TableContext, results: Sequence[WriteResult]) -> None:
        """Take note of files that this process has published."""


def placement_of(config: TableConfig, rules: OperationRules, options: WriteOptions) -> Placement:
    """The placement that the table's index asks for.

    Raises:
        OptionError: the write asks for what this index cannot do.
    """
    if config.buckets is not None:
        return ByBucket.of(config, config.buckets, rules, options)
    return ByKey.of(config, rules, options)
