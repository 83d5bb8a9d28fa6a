"""Moments as users name them -> instants of a timeline: what `as_of` takes, every other method and command takes, too.

A restore takes back all commits after its target. Its own instant is greater than theirs, and instants after it are greater
still. So a position from the first of them up to the restore belongs to a past that the table does not have any more:
`refuse_undone` refuses it. Restores stay on the active timeline. Of a rollback only the instant itself is known, for as long as
the rollback is on the timeline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from hoodie.errors import InstantNotFoundError
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.results import CommitResult, Savepoint
from hoodie.options.moments import parse_instant_option
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline

_FROM_THE_END = re.compile(r"-[1-9]\d{0,8}", re.ASCII)


def counted(value: Any, instants: Callable[[], Sequence[Instant]], *, name: str) -> Any:
    """-1 is the newest of the instants, -2 the one before it, as a number or text; every other value is given back as it is.

    Raises:
        InstantNotFoundError: there are not so many.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool) and value < 0
    if not is_number and not (isinstance(value, str) and _FROM_THE_END.fullmatch(value.strip())):
        return value
    there = instants()
    if -int(str(value)) > len(there):
        choices = f"the earliest is {there[0].time}, the latest {there[-1].time}" if there else "there are none"
        raise InstantNotFoundError(
            f"{name}={value} counts back further than there are instants ({len(there)}): {choices}"
        )
    return there[int(str(value))]


def instant_of(
    value: object, instants: Callable[[], Sequence[Instant]], *, name: str, zone: tzinfo | None, table: str
) -> InstantTime:
    """The instant that is meant: one that is named, or the last of these at or before the moment.

    Args:
        instants: those that the moment may fall on, oldest first.
        zone: the timeline's, as `parse_instant_option` has it.

    Raises:
        OptionError: the value names no moment. InstantNotFoundError: there is no instant as early as that.
    """
    value = counted(value, instants, name=name)
    if isinstance(value, str) and value.strip().isdigit():
        return InstantTime(value.strip())
    result = parse_instant_option(value, name=name, zone=zone)
    if isinstance(value, CommitResult | Instant | Savepoint):
        return result
    there = instants()
    before = [instant.time for instant in there if instant.time <= result]
    if not before:
        choices = f"the earliest is {there[0].time}, the latest {there[-1].time}" if there else "there are none"
        raise InstantNotFoundError(
            f"{name}={value!r} lies before every instant of table {table} that it could mean: {choices}"
        )
    return before[-1]


def refuse_undone(active: ActiveTimeline, timeline: Timeline, position: InstantTime | None, *, table: str) -> None:
    """Raises InstantNotFoundError when the position lies where a restore or a rollback has changed the past.

    Where positions are times of completion, that of an instant that was rolled back is not known any more.
    """
    if position is None or any(position == commit.position for commit in timeline.commits):
        return
    later = [i for i in timeline if i.time > position]
    for restore in (i for i in later if i.action is Action.RESTORE):
        undone = active.planned_to_undo(restore)
        if undone and position >= min(time for time, _ in undone):
            raise InstantNotFoundError(_restored(active, timeline, restore, position, table))
    rollbacks = [i for i in later if i.action is Action.ROLLBACK]
    for rollback, target in zip(rollbacks, active.each(active.rollback_target, rollbacks), strict=True):
        if target == position:
            raise InstantNotFoundError(
                f"instant {position} of table {table} was rolled back by {rollback}, and its rows are gone. What was read up to it "
                f"may hold them: read the table anew and go on from there. The latest commit is {_latest(timeline)}"
            )


def _restored(active: ActiveTimeline, timeline: Timeline, restore: Instant, position: str, table: str) -> str:
    target = active.restored_to(restore)
    return (
        f"instant {position} is not on the timeline of table {table} any more: {restore} took the table back to "
        f"{target or 'an earlier commit'}, and the commits from then up to the restore are gone. What was read up to {position} may "
        f"hold rows that the table no longer has: go back to {target or 'a commit before it'}, or read the table again and go on "
        f"from there. The latest commit is {_latest(timeline)}"
    )


def _latest(timeline: Timeline) -> str:
    return timeline.commits[-1].time if timeline.commits else "none"
