"""Which instants leave the active timeline, rule by rule."""

import pytest

from hoodie.model.enums import Action
from hoodie.timeline.archive_plan import (
    Hold,
    held_by_pending,
    held_for_compaction,
    leaving_commits,
    leaving_others,
)
from hoodie.timeline.timeline import Timeline


def at(n):
    return f"2026112112000{n:04d}"


def timeline(*names):
    """Of names such as `3.commit`, with the earlier states of each."""
    files = []
    for name in names:
        number, _, rest = name.partition(".")
        files.append(f"{at(int(number))}.{rest}")
    return Timeline.from_file_names(files)


def commits(*numbers):
    return [f"{n}.{state}" for n in numbers for state in ("commit.requested", "inflight", "commit")]


def deltas(*numbers):
    return [f"{n}.deltacommit{state}" for n in numbers for state in (".requested", ".inflight", "")]


def leaving(found, **given):
    instants, hold = leaving_commits(found, **{"least": 2, "most": 4, "holds": (), **given})
    return [int(i.time[-4:]) for i in instants], hold and hold.time


def test_nothing_leaves_until_there_are_more_than_the_most_and_then_the_least_stay():
    assert leaving(timeline(*commits(*range(4)))) == ([], None)
    assert leaving(timeline(*commits(*range(5)))) == ([0, 1, 2], None)


def test_what_has_to_stay_holds_back_all_after_it():
    six = timeline(*commits(*range(6)))
    assert leaving(six, holds=[Hold(at(2), "a"), Hold(at(1), "b")]) == ([0], at(1))
    assert leaving(six, holds=[Hold(at(4), "a")]) == ([0, 1, 2, 3], None)


def test_a_savepoint_holds_back_unless_commits_may_leave_beyond_it():
    saved = timeline(*commits(*range(6)), "1.savepoint", "1.savepoint.inflight")
    assert leaving(saved) == ([0], at(1))
    assert leaving(saved, beyond_savepoints=True) == ([0, 2, 3], None)
    pending = timeline(*commits(*range(6)), "1.savepoint.inflight")
    assert leaving(pending) == ([0, 1, 2, 3], None)


@pytest.mark.parametrize(
    ("names", "held"),
    [
        (commits(0, 1, 2), None),
        ([*commits(0, 1, 3), "2.commit.requested"], 1),
        ([*commits(1, 2), "0.inflight"], 0),
        ([*deltas(0, 1, 3), "2.compaction.requested"], 1),
        ([*commits(0, 1, 3), "2.clean.requested"], None),
        ([*commits(0, 1, 3), "2.replacecommit.requested"], 1),
    ],
)
def test_the_commit_before_the_oldest_pending_instant_stays(names, held):
    hold = held_by_pending(timeline(*names))
    assert (hold and hold.time) == (None if held is None else at(held))


def test_the_delta_commits_that_a_compaction_waits_for_stay():
    compacted = [*deltas(0, 1), "2.compaction.requested", "2.compaction.inflight", "2.commit"]
    assert held_for_compaction(timeline(*commits(0, 1)), trigger_commits=3) is None
    assert held_for_compaction(timeline(*deltas(0, 1)), trigger_commits=3).time == at(0)
    assert held_for_compaction(timeline(*deltas(*range(6))), trigger_commits=3).time == at(3)
    assert held_for_compaction(timeline(*compacted), trigger_commits=3).time == at(2)
    assert held_for_compaction(timeline(*compacted, *deltas(3, 4)), trigger_commits=3).time == at(2)
    assert held_for_compaction(timeline(*compacted, *deltas(3, 4, 5, 6)), trigger_commits=3).time == at(4)


def test_cleans_and_rollbacks_are_counted_apart_and_rollbacks_stay_with_their_commits():
    names = [*commits(*range(10, 20)), *(f"{n}.clean" for n in range(5)), *(f"{n}.rollback" for n in range(8, 13))]
    found = leaving_others(timeline(*names), least=2, most=4, start=at(9))
    assert [(int(i.time[-4:]), i.action) for i in found] == [
        *((n, Action.CLEAN) for n in range(3)),
        (8, Action.ROLLBACK),
    ]
    assert leaving_others(timeline(*names), least=2, most=5, start=at(9)) == ()
