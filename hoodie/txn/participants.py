"""What else takes part when an instant is planned and completed, beside its data files and the timeline.

Where a metadata table, an index that is stored or a catalog goes, once it is written: a `Participant`, and `participants_of`
chooses.
"""

from __future__ import annotations

from typing import Protocol

from hoodie.model.change import Change
from hoodie.model.enums import Action
from hoodie.timeline.timeline import WRITES
from hoodie.txn.metadata_table import drop_metadata_table
from hoodie.view.context import TableContext


class Participant(Protocol):
    """Is called under the table lock. An error ends the action, whose instant stays pending: a write is rolled back, and a clean, a
    rollback or a restore is carried on by the next process.
    """

    def before_plan(self, context: TableContext) -> None:
        """Before an action is planned, while the snapshot is taken for it."""
        ...

    def takes_part(self, action: Action) -> bool:
        """Whether it is called when an instant of this action is completed; `action` as completed. Does no IO."""
        ...

    def before_completion(self, context: TableContext, change: Change) -> None:
        """When nothing stands against the instant, and its completed file comes next.

        That may still fail to land: what is kept for an instant counts only when the instant is completed. Another process may have
        carried the same action as far as this, and died: the same instant may come again, with a change that says as much.
        """
        ...


class NoMetadataTable:
    """Nobody shall list files through a metadata table that we do not write."""

    def before_plan(self, context: TableContext) -> None:
        drop_metadata_table(context.storage)

    def takes_part(self, action: Action) -> bool:
        return action in WRITES

    def before_completion(self, context: TableContext, change: Change) -> None:
        drop_metadata_table(context.storage)  # a writer of Apache Hudi may have made one meanwhile


def participants_of(context: TableContext) -> tuple[Participant, ...]:
    """Who takes part in what is done to a table, in the order in which they are called."""
    return (NoMetadataTable(),)


def takes_part(context: TableContext, action: Action) -> bool:
    """Whether anyone is called when an instant of this action is completed."""
    return any(participant.takes_part(action) for participant in participants_of(context))


def before_plan(context: TableContext) -> None:
    """Call all of them; under the lock."""
    for participant in participants_of(context):
        participant.before_plan(context)


def before_completion(context: TableContext, change: Change) -> None:
    """Call those that take part in it; under the lock."""
    for participant in participants_of(context):
        if participant.takes_part(change.instant.action):
            participant.before_completion(context, change)
