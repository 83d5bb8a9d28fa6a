"""Positions that a restore or a rollback has taken away: whoever read up to one of them has seen rows that are gone.

A restore takes back all commits after its target. Its own instant is greater than theirs, and instants after it are greater
still. So a position from the first of them up to the restore belongs to a past that the table does not have any more. Restores
stay on the active timeline. Of a rollback only the instant itself is known, for as long as the rollback is on the timeline.
"""

from __future__ import annotations

from hoodie.errors import InstantNotFoundError
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline


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
