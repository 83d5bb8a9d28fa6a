"""What else takes part in a commit, beside its data files and the timeline.

Where a metadata table or an index that is stored goes, once it is written: a `Participant`, and `participants_of` chooses.
"""

from __future__ import annotations

from typing import Protocol

from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata
from hoodie.txn.metadata_table import drop_metadata_table
from hoodie.view.context import TableContext


class Participant(Protocol):
    """Is called under the table lock. An error ends the write, of which nothing can be seen then."""

    def before_plan(self, context: TableContext) -> None:
        """Before a write is planned, while the snapshot is taken for it."""
        ...

    def before_publish(self, context: TableContext, instant: Instant, metadata: CommitMetadata) -> None:
        """When nothing stands against the commit, and its completed file comes next. That may still fail to land."""
        ...


class NoMetadataTable:
    """Nobody shall list files through a metadata table that we do not write."""

    def before_plan(self, context: TableContext) -> None:
        drop_metadata_table(context.storage)

    def before_publish(self, context: TableContext, instant: Instant, metadata: CommitMetadata) -> None:
        drop_metadata_table(context.storage)  # a writer of Apache Hudi may have made one meanwhile


def participants_of(context: TableContext) -> tuple[Participant, ...]:
    """Who takes part in the commits of a table, in the order in which they are called."""
    return (NoMetadataTable(),)


def before_plan(context: TableContext) -> None:
    """Call all of them before something is planned."""
    for participant in participants_of(context):
        participant.before_plan(context)
