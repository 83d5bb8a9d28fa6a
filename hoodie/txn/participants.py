"""What else takes part when an instant is planned and completed, beside its data files and the timeline.

Where a metadata table, an index that is stored or a catalog goes, once it is written: a `Participant`, and `participants_of`
chooses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.metadata.initial import build_files
from hoodie.metadata.keys import FILES
from hoodie.metadata.table import can_read, finished_partitions
from hoodie.metadata.writer import ListingNeededError, keep_up
from hoodie.model.change import Change
from hoodie.model.enums import Action
from hoodie.options.table import parse_table_config
from hoodie.timeline.timeline import WRITES
from hoodie.txn.metadata_table import (
    MetadataState,
    announce_files,
    drop_metadata_table,
    keep_files_alone,
    look_at_metadata_table,
)
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


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


@dataclass(frozen=True)
class KeptMetadataTable:
    """Of a metadata table the partition `files` is kept up, and the others are dropped, which Apache Hudi's next writer builds anew.
    Where that cannot be, all of it is dropped: nobody shall list files by one that is behind. Who has
    `hoodie.metadata.enable=true` gets one where there is none.
    """

    def before_plan(self, context: TableContext) -> None:
        found = look_at_metadata_table(context.storage)
        if _can_keep(context, found.properties):
            keep_files_alone(context.storage, found)
            return
        drop_metadata_table(context.storage, found)
        if context.view_options.metadata and can_read(context.config) and build_files(context):
            announce_files(context.storage)

    def takes_part(self, action: Action) -> bool:
        return action in WRITES or action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)

    def before_completion(self, context: TableContext, change: Change) -> None:
        # Another writer may have made one since the table was opened, or have dropped it.
        found = look_at_metadata_table(context.storage)
        if _can_keep(context, found.properties):
            found = keep_files_alone(context.storage, found)
            try:
                _keep_up(context, found, change)
            except (HoodieError, FileNotFoundError, pa.ArrowInvalid) as exc:
                log.warning("the metadata table of %s is not kept up: %s", context.storage.uri, exc)
                found = look_at_metadata_table(context.storage)
            else:
                return
        drop_metadata_table(context.storage, found)


def _keep_up(context: TableContext, found: MetadataState, change: Change) -> None:
    timeline = context.active.load()
    try:
        keep_up(context, parse_table_config(found.properties, uri=context.storage.uri), timeline, change)
    except ListingNeededError as exc:
        drop_metadata_table(context.storage, found, why=f"to build it anew: {exc}")
        if not build_files(context, ignored={change.instant.time, *(time for time, _ in change.undone)}):
            return
        config = parse_table_config(announce_files(context.storage).properties, uri=context.storage.uri)
        keep_up(context, config, timeline, change, is_new=True)


def _can_keep(context: TableContext, properties: Mapping[str, str]) -> bool:
    is_wanted = context.view_options.metadata is not False and can_read(context.config)
    return is_wanted and FILES in finished_partitions(properties)


def participants_of(context: TableContext) -> tuple[Participant, ...]:
    """Who takes part in what is done to a table, in the order in which they are called."""
    return (KeptMetadataTable(),)


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
