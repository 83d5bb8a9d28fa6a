"""What else takes part when an instant is planned and completed, beside its data files and the timeline.

Where a metadata table, an index that is stored or a catalog goes, once it is written: a `Participant`, and `participants_of`
chooses.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie.errors import LockError
from hoodie.metadata.initial import build_files, build_partition
from hoodie.metadata.keys import FILES
from hoodie.metadata.maintenance import is_wanted, maintained_of, missing_of, without
from hoodie.metadata.partition import FAULTS, ListingNeededError, MetadataPartition, PartitionError
from hoodie.metadata.table import finished_partitions
from hoodie.metadata.writer import keep_up, withdraw
from hoodie.model.change import Change
from hoodie.model.enums import Action
from hoodie.model.instant import InstantTime
from hoodie.options.table import parse_table_config
from hoodie.timeline.timeline import WRITES
from hoodie.txn.hash_rings import RingUpkeep
from hoodie.txn.metadata_table import (
    MetadataState,
    Seen,
    announce,
    drop_metadata_table,
    drop_others,
    look_at_metadata_table,
    metadata_state,
)
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


class Participant(Protocol):
    """Is called under the table lock. An error ends the action, whose instant stays pending: a write is rolled back, and a clean, a
    rollback or a restore is carried on by the next process.
    """

    def before_plan(self, context: TableContext, seen: Seen | None) -> None:
        """Before an action is planned. `seen`: the table, looked at under the lock; None: it was not yet."""
        ...

    def takes_part(self, action: Action) -> bool:
        """Whether it is called when an instant of this action is completed; `action` as completed. Does no IO."""
        ...

    def before_completion(self, context: TableContext, change: Change, seen: Seen | None) -> None:
        """When nothing stands against the instant, and its completed file comes next.

        That may still fail to land: what is kept for an instant counts only when the instant is completed. Another process may have
        carried the same action as far as this, and died: the same instant may come again, with a change that says as much.
        """
        ...

    def before_removal(self, context: TableContext, time: InstantTime) -> None:
        """Before a pending instant leaves the timeline without a rollback, as a plan does that is dropped.

        Who ran it may have died after `before_completion`. What was kept for the instant goes: once the timeline begins later, nothing
        tells that it was never completed.
        """
        ...


@dataclass(frozen=True)
class MetadataTableUpkeep:
    """Keeps up the partitions of a metadata table that `metadata/maintenance.py` has, and drops the others, which Apache
    Hudi's next writer builds anew. Where that cannot be, all of it is dropped: nobody shall list files by one that is behind.
    Who has `hoodie.metadata.enable=true`, or asks for one of those partitions, gets one where there is none.
    """

    def before_plan(self, context: TableContext, seen: Seen | None) -> None:
        state = _state_of(context, seen)
        partitions = _kept_partitions(context, state.properties)
        if partitions:
            state = drop_others(context.storage, state, [each.name for each in partitions])
        else:
            drop_metadata_table(context.storage, state)
            if not (is_wanted(context.view_options) and build_files(context)):
                return
            state = announce(context.storage, FILES)
        _build(
            context,
            state,
            missing_of(finished_partitions(state.properties), context.view_options),
        )

    def takes_part(self, action: Action) -> bool:
        return action in WRITES or action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)

    def before_completion(self, context: TableContext, change: Change, seen: Seen | None) -> None:
        # Another writer may have made one since the table was opened, or have dropped it.
        state = _state_of(context, seen)
        partitions = _kept_partitions(context, state.properties)
        while partitions:
            state = drop_others(context.storage, state, [each.name for each in partitions])
            try:
                _keep_up(context, state, change, partitions, seen)
            except FAULTS as exc:
                require_held(context)
                remaining = without(partitions, exc)
                what = f"{exc.partition} of the" if remaining and isinstance(exc, PartitionError) else "the"
                log.warning("%s metadata table of %s cannot be maintained: %s", what, context.storage.uri, exc)
                state, partitions = look_at_metadata_table(context.storage), remaining
            else:
                return
        drop_metadata_table(context.storage, state)

    def before_removal(self, context: TableContext, time: InstantTime) -> None:
        state = _state_of(context, None)
        if partitions := _kept_partitions(context, state.properties):
            try:
                withdraw(context, parse_table_config(state.properties, uri=context.storage.uri), partitions, time)
            except FAULTS:
                drop_metadata_table(context.storage, state)


def _state_of(context: TableContext, seen: Seen | None) -> MetadataState:
    storage = context.storage
    return look_at_metadata_table(storage) if seen is None else metadata_state(context.active, storage, seen)


def _keep_up(
    context: TableContext,
    state: MetadataState,
    change: Change,
    partitions: Sequence[MetadataPartition],
    seen: Seen | None,
) -> None:
    timeline = context.active.load() if seen is None else seen.timeline
    uri = context.storage.uri
    try:
        keep_up(context, parse_table_config(state.properties, uri=uri), timeline, change, partitions)
    except ListingNeededError as exc:
        drop_metadata_table(context.storage, state, why=f"to build it anew: {exc}")
        ignored = {change.instant.time, *(time for time, _ in change.undone)}
        if not build_files(context, ignored=ignored):
            return
        state = _build(context, announce(context.storage, FILES), partitions[1:], ignored)
        built = _kept_partitions(context, state.properties)
        keep_up(context, parse_table_config(state.properties, uri=uri), timeline, change, built, is_new=True)


def _build(
    context: TableContext,
    state: MetadataState,
    partitions: Sequence[MetadataPartition],
    ignored: Collection[InstantTime] = (),
) -> MetadataState:
    """Build further partitions of a metadata table, of which `files` is there; gives what is there then."""
    for each in partitions:
        config = parse_table_config(state.properties, uri=context.storage.uri)
        try:
            more = build_partition(context, config, each, ignored=ignored)
        except FAULTS as exc:
            require_held(context)
            log.warning("%s of the metadata table of %s was not built: %s", each.name, context.storage.uri, exc)
            continue
        if more is None:
            break
        state = announce(context.storage, each.name, more)
    return state


def _kept_partitions(context: TableContext, properties: Mapping[str, str]) -> tuple[MetadataPartition, ...]:
    """The partitions of the metadata table that are kept up; none where the whole table is dropped."""
    return maintained_of(finished_partitions(properties), context.view_options)


def require_held(context: TableContext) -> None:
    """Who has lost the lock may have met another writer's files, and leaves the metadata table to that."""
    if not context.lock.is_held():
        raise LockError(
            f"the lock of table {context.storage.uri} ended while its metadata table was written, because this process was paused or "
            "cut off for too long: nothing of this action is visible, run it again"
        )


def participants_of(context: TableContext) -> tuple[Participant, ...]:
    """Who takes part in what is done to a table, in the order in which they are called."""
    return (RingUpkeep(), MetadataTableUpkeep())


def takes_part(context: TableContext, action: Action) -> bool:
    """Whether anyone is called when an instant of this action is completed."""
    return any(participant.takes_part(action) for participant in participants_of(context))


def before_plan(context: TableContext, seen: Seen | None = None) -> None:
    """Call all of them; under the lock. `seen`: as `Participant.before_plan` has it."""
    for participant in participants_of(context):
        participant.before_plan(context, seen)


def before_completion(context: TableContext, change: Change, seen: Seen | None = None) -> None:
    """Call those that take part in it; under the lock."""
    for participant in participants_of(context):
        if participant.takes_part(change.instant.action):
            participant.before_completion(context, change, seen)


def before_removal(context: TableContext, time: InstantTime) -> None:
    """Call all of them; under the lock."""
    for participant in participants_of(context):
        participant.before_removal(context, time)
