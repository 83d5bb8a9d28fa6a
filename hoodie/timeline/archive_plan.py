"""Which instants leave the active timeline: the rules of Apache Hudi's `TimelineArchiverV1`, and some more. Pure.

Commits leave from the oldest on and without gaps, because what is older than the active timeline counts as committed. So the first
commit that has to stay holds back all that came after it. Cleans and rollbacks are counted apart, each action by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS
from hoodie.timeline.timeline import WRITES, Timeline


class Hold(NamedTuple):
    """An instant that has to stay, with all after it."""

    time: InstantTime
    why: str


def leaving_commits(
    timeline: Timeline, *, least: int, most: int, holds: Iterable[Hold], beyond_savepoints: bool = False
) -> tuple[tuple[Instant, ...], Hold | None]:
    """The commits that leave so that `least` stay, once there are more than `most`; and what held back others of those.

    Args:
        beyond_savepoints: savepointed commits stay, and those after them may leave.
    """
    commits = timeline.commits
    if len(commits) <= most:
        return (), None
    candidates = commits[: len(commits) - least]
    saved = {i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed}
    all_holds = list(holds)
    if beyond_savepoints:
        candidates = tuple(i for i in candidates if i.time not in saved)
    elif saved:
        all_holds.append(Hold(min(saved), "a savepoint"))
    first = min(all_holds, key=lambda hold: hold.time, default=None)
    if first is None:
        return candidates, None
    leaving = tuple(i for i in candidates if i.time < first.time)
    return leaving, first if len(leaving) < len(candidates) else None


def leaving_others(timeline: Timeline, *, least: int, most: int, start: InstantTime | None) -> tuple[Instant, ...]:
    """The cleans and rollbacks that leave; `start` is the first commit that stays.

    A rollback stays as long as commits of its time: it says why files of the instant that it undid do not count.
    """
    result: list[Instant] = []
    for action in (Action.CLEAN, Action.ROLLBACK):
        ended = [i for i in timeline if i.action is action and i.is_completed]
        if len(ended) > most:
            old = ended[: len(ended) - least]
            result += old if action is Action.CLEAN else [i for i in old if start and i.time < start]
    return tuple(result)


def held_by_pending(timeline: Timeline) -> Hold | None:
    """The last commit before the oldest write or service that is at work; that one itself where there is none.

    Writers look at what was committed since they began, and readers must not take a pending instant for an archived one.
    """
    pending = timeline.pending(*WRITES, *COMPLETES_AS)
    if not pending:
        return None
    before = [i.time for i in timeline.commits if i.time < pending[0].time]
    return Hold(before[-1] if before else pending[0].time, f"{pending[0]}, which is pending")


def held_for_compaction(timeline: Timeline, *, trigger_commits: int) -> Hold | None:
    """The delta commits by whose number it is told that a compaction is due, back to the last one."""
    deltas: list[Instant] = []
    last: Instant | None = None
    for instant in reversed(timeline.commits):
        if instant.time in timeline.compactions:
            last = instant
            break
        if instant.action is Action.DELTACOMMIT:
            deltas.append(instant)
    if len(deltas) >= trigger_commits:
        return Hold(deltas[trigger_commits - 1].time, f"the {trigger_commits} delta commits after which to compact")
    first = last or (deltas[-1] if deltas else None)
    return None if first is None else Hold(first.time, "the delta commits since the last compaction")
