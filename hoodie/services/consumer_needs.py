"""What named consumers still need of a table's past: cleans and archiving leave it, up to a bound.

A pull of the latest state reads the newest files and says with the commits' metadata, archived ones among them, which rows are new.
So it needs no older file, however far it is behind. The change feed compares the files before and after each commit. It needs all from
its place on, and its commits on the active timeline.

A consumer that nobody runs any more must not hold files for ever. So it holds them as long as the first commit that it has not read
is younger than the bound: that moment passes once, and does not come again.
"""

from __future__ import annotations

from typing import NamedTuple

from hoodie.model.instant import InstantTime
from hoodie.timeline.timeline import Timeline
from hoodie.view.consumers import ConsumerPlace, begins_in_archive, stored_places, unread_commits
from hoodie.view.context import TableContext

_ALL = InstantTime("00000000000000000")
"""Before every instant."""


class Need(NamedTuple):
    time: InstantTime
    """The state after this commit, and all that came later, has to stay."""
    name: str
    """Of the consumer."""


def needed_by_consumers(
    context: TableContext, timeline: Timeline, *, hours: int, readable_from: InstantTime | None = None
) -> Need | None:
    """The most that a consumer needs; None where nobody does.

    Args:
        readable_from: what lies before is gone already, and who needs it cannot be helped.
    """
    if not hours:
        return None
    needs: list[Need] = []
    for place in stored_places(context.storage):
        time = _needed(context, timeline, place, hours) if place.before_images else None
        if time is not None and (readable_from is None or time >= readable_from):
            needs.append(Need(time, place.name))
    return min(needs, key=lambda need: need.time, default=None)


def _needed(context: TableContext, timeline: Timeline, place: ConsumerPlace, hours: int) -> InstantTime | None:
    unread = unread_commits(context.active, timeline, place.position)
    if not unread or context.clock.age_s(unread[0].time) > hours * 3600:
        return None
    if begins_in_archive(timeline, place.position) and context.archived().files:
        return None  # commits that it has not read may be among the archived ones, so its feed has ended
    read = [i.time for i in timeline.commits if place.position and i.time <= place.position]
    return read[-1] if read else _ALL
