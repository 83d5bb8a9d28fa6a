"""The timeline of table versions 8 and 9: completion times in names, and what of it is seen at an earlier moment."""

import pytest

from hoodie.format.layout import V8
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantRange
from hoodie.timeline.timeline import Timeline


def t(number):
    return f"20260101000000{number:03d}"


def timeline(*names):
    """`1-4.commit` is instant 1, completed at 4; `1.commit.requested` and `1.inflight` as in files."""
    found = []
    for name in names:
        times, dot, rest = name.partition(".")
        found.append("_".join(t(int(number)) for number in times.split("-")) + dot + rest)
    return Timeline.from_file_names(found, layout=V8)


OVERLAP = timeline("1-2.commit", "3-9.deltacommit", "4-5.deltacommit", "6.compaction.requested", "7-8.deltacommit")
"""Instant 3 is completed last."""


def shown(instants):
    return [int(i.time[14:]) for i in instants]


def test_a_completed_instant_has_its_completion_time_and_lies_there():
    found = timeline("1.commit.requested", "1.inflight", "1-4.commit")
    assert found.instants == (Instant(t(1), Action.COMMIT, State.COMPLETED, t(4)),)
    assert found.commits[0].position == t(4)
    assert timeline("1.inflight").instants == (Instant(t(1), Action.COMMIT, State.INFLIGHT),)


@pytest.mark.parametrize(
    "name", ["1.commit", "1-2.commit.requested", "1-2.inflight", "1-2", "1-x.commit", "1-2-3.commit"]
)
def test_names_of_the_other_layout_are_no_instants(name):
    times, dot, rest = name.partition(".")
    stored = "_".join(t(int(part)) if part.isdigit() else part for part in times.split("-")) + dot + rest
    assert len(Timeline.from_file_names([stored], layout=V8)) == 0


def test_a_completed_clustering_is_a_replacecommit_and_a_pending_one_brings_no_rows():
    done = timeline("1.clustering.requested", "1.clustering.inflight", "1-2.replacecommit")
    assert [i.action for i in done] == [Action.REPLACECOMMIT]
    pending = timeline("1-2.commit", "3.clustering.requested")
    assert pending.pending_writes == ()
    assert pending.pending_times == {t(3)}
    assert not pending.sees(t(3))


def test_ranges_go_by_completion_and_order_by_request():
    assert shown(OVERLAP.completed_in(InstantRange(t(2), t(8)))) == [4, 7]
    assert shown(OVERLAP.completed_in(InstantRange(t(8)))) == [3]
    assert OVERLAP.latest_position == t(9)
    assert OVERLAP.readable_until() == t(9)
    assert OVERLAP.latest_commit.time == t(7)


def test_what_was_completed_later_is_pending_at_an_earlier_position():
    then = OVERLAP.completed_by(t(8))
    assert shown(then.commits) == [1, 4, 7]
    assert not then.sees(t(3))
    assert then.until == t(8)
    assert OVERLAP.completed_by(t(9)) is OVERLAP


def test_as_of_goes_by_instants():
    then = OVERLAP.as_of(t(3))
    assert shown(then.commits) == [1, 3]
    assert [then.sees(t(n)) for n in (1, 3, 4, 7)] == [True, True, False, False]


def test_an_archived_write_that_was_completed_later_is_not_seen():
    late = Instant("20251231000000000", Action.COMMIT, State.COMPLETED, t(7))
    early = Instant("20251231000000001", Action.COMMIT, State.COMPLETED, t(0))
    then = OVERLAP.completed_by(t(5), [late, early])
    assert not then.sees(late.time)
    assert then.sees(early.time)
    assert OVERLAP.sees(late.time)


def test_a_pull_waits_for_pending_writes_in_layout_1_only():
    names = [f"{t(1)}.commit", f"{t(2)}.inflight", f"{t(3)}.commit"]
    assert Timeline.from_file_names(names).readable_until() == t(1)
    assert Timeline.from_file_names(names).readable_until(()) == t(3)
    assert timeline("1-4.commit", "2.inflight", "3-5.commit").readable_until() == t(5)
