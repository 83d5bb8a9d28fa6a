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
from hoodie.timeline.timeline import BEFORE_ALL, Timeline
from hoodie.view.consumers import ConsumerPlace, begins_in_archive, stored_places, unread_commits
from hoodie.view.context import TableContext


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
        read = _read_by(context, timeline, place, hours) if place.before_images else None
        if read is None:
            continue
        last = read.latest_commit.time if read.latest_commit else BEFORE_ALL
        if last >= (readable_from or BEFORE_ALL):
            needs.append(Need(max(read.needed_from, readable_from or BEFORE_ALL), place.name))
    return min(needs, key=lambda need: need.time, default=None)


def _read_by(context: TableContext, timeline: Timeline, place: ConsumerPlace, hours: int) -> Timeline | None:
    """The timeline as far as a consumer has read it; None where it needs nothing of the past."""
    unread = unread_commits(context.active, timeline, place.position)
    if not unread or context.clock.age_s(unread[0].time) > hours * 3600:
        return None
    if begins_in_archive(timeline, place.position) and context.archived().files:
        return None  # commits that it has not read may be among the archived ones, so its feed has ended
    return timeline.completed_by(place.position or BEFORE_ALL)
