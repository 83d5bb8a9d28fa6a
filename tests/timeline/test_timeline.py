"""The timeline as a value: folded from file names."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.layout import V6, V8
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantRange
from hoodie.timeline.timeline import Timeline


def t(number):
    return f"20260101000000{number:03d}"


def timeline(*names):
    """`1.commit`: the number is the instant's milliseconds."""
    found = []
    for name in names:
        number, dot, rest = name.partition(".")
        found.append(t(int(number)) + dot + rest)
    random.Random(len(found)).shuffle(found)
    return Timeline.from_file_names(found)


def shown(instants):
    return [f"{int(i.time[14:])}.{i.action}.{i.state}" for i in instants]


WRITE = (".deltacommit.requested", ".deltacommit.inflight", ".deltacommit")


@pytest.mark.parametrize(("files", "state"), [(1, "requested"), (2, "inflight"), (3, "completed")])
def test_an_instant_is_in_its_furthest_state(files, state):
    found = timeline(*(f"1{ending}" for ending in WRITE[:files]))
    assert shown(found) == [f"1.deltacommit.{state}"]


def test_states_count_also_where_earlier_ones_are_gone():
    assert shown(timeline("1.commit", "2.inflight")) == ["1.commit.completed", "2.commit.inflight"]


def test_other_files_of_the_folder_do_not_matter():
    names = [f"{t(1)}.commit", "hoodie.properties", "archived", f".{t(1)}.commit.crc", f"{t(2)}.commit.a-b-c", "", "x"]
    assert shown(Timeline.from_file_names(names)) == ["1.commit.completed"]


def test_an_empty_folder():
    empty = Timeline.from_file_names([])
    assert len(empty) == 0
    assert empty.latest_time is empty.start is empty.latest_commit is empty.readable_until() is None
    assert not empty.sees(t(1))


def test_a_completed_compaction_is_a_commit_and_known_as_one():
    found = timeline("1.deltacommit", "2.compaction.requested", "2.compaction.inflight", "2.commit", "3.commit")
    assert shown(found) == ["1.deltacommit.completed", "2.commit.completed", "3.commit.completed"]
    assert found.compactions == {t(2)}
    assert found.pending() == ()


def test_a_completed_log_compaction_is_a_delta_commit():
    found = timeline("1.logcompaction.requested", "1.logcompaction.inflight", "1.deltacommit")
    assert shown(found) == ["1.deltacommit.completed"]
    assert found.compactions == frozenset()


def test_a_pending_compaction_stays_one():
    found = timeline("1.deltacommit", "2.compaction.requested", "2.compaction.inflight", "3.deltacommit")
    assert shown(found.pending(Action.COMPACTION)) == ["2.compaction.inflight"]
    assert found.compactions == frozenset()


def test_a_savepoint_stands_beside_its_commit():
    found = timeline("1.commit", "1.savepoint.inflight", "1.savepoint", "2.commit")
    assert shown(found) == ["1.commit.completed", "1.savepoint.completed", "2.commit.completed"]
    assert shown(found.commits) == ["1.commit.completed", "2.commit.completed"]
    assert found.find(t(1)) == Instant(t(1), Action.COMMIT, State.COMPLETED)
    assert found.find(t(1), Action.SAVEPOINT) == Instant(t(1), Action.SAVEPOINT, State.COMPLETED)
    assert found.find(t(1), Action.CLEAN) is None
    assert found.find(t(9)) is None


def test_instants_stand_in_order_and_14_digits_at_the_end_of_their_second():
    found = Timeline.from_file_names(f"{time}.commit" for time in ("20260101000001000", "20260101000000", t(999), t(5)))
    assert [i.time for i in found] == [t(5), "20260101000000", t(999), "20260101000001000"]
    assert found.latest_time == "20260101000001000"


SOME_NAMES = st.frozensets(
    st.one_of(
        st.builds(
            "{}.{}{}".format,
            st.integers(1, 6).map(t),
            st.sampled_from(sorted(Action)),
            st.sampled_from(["", ".inflight", ".requested"]),
        ),
        st.sampled_from(
            [f"{t(3)}.inflight", "hoodie.properties", f"{t(2)}_{t(9)}.deltacommit", f"{t(2)}_{t(9)}.commit"]
        ),
    )
)


@pytest.mark.parametrize("layout", [V6, V8])
@given(before=SOME_NAMES, after=SOME_NAMES)
def test_a_timeline_with_more_names_is_that_of_all_names(layout, before, after):
    one_by_one = Timeline.from_file_names(before, layout=layout)
    for name in sorted(after - before):
        one_by_one = one_by_one.extended([name])
    whole = Timeline.from_file_names(before | after, layout=layout)
    assert Timeline.from_file_names(before, layout=layout).extended(after - before) == one_by_one == whole


MIXED = (
    "0.clean",
    "1.deltacommit",
    "2.compaction.requested",
    "3.deltacommit.inflight",
    "4.replacecommit",
    "5.rollback.inflight",
    "6.clean.requested",
    "7.deltacommit.requested",
    "8.logcompaction.requested",
    "9.savepoint",
)


def test_which_instants_are_pending():
    found = timeline(*MIXED)
    assert [int(i.time[14:]) for i in found.pending()] == [2, 3, 5, 6, 7, 8]
    assert [int(i.time[14:]) for i in found.pending(Action.ROLLBACK, Action.CLEAN)] == [5, 6]
    assert [int(i.time[14:]) for i in found.pending_writes] == [3, 7]
    assert found.pending_times == {t(2), t(3), t(7), t(8)}


def test_which_instants_are_writes():
    found = timeline(*MIXED)
    assert found.completed_times == {t(1), t(4)}
    assert found.latest_commit == Instant(t(4), Action.REPLACECOMMIT, State.COMPLETED)
    assert found.latest_time == t(9)
    assert found.start == t(1)  # a clean is no write


def test_the_active_timeline_begins_with_a_pending_write_too():
    assert timeline("1.inflight", "2.commit").start == t(1)
    assert timeline("1.compaction.requested", "2.commit").start == t(1)


def test_completed_in_a_range():
    found = timeline("1.commit", "2.commit", "3.inflight", "4.commit")
    assert shown(found.completed_in(InstantRange(t(1), t(4)))) == ["2.commit.completed", "4.commit.completed"]


def test_a_pull_may_go_to_the_last_commit_below_the_first_pending_write():
    assert timeline("1.commit", "2.commit").readable_until() == t(2)
    assert timeline("1.commit", "2.inflight", "3.commit").readable_until() == t(1)
    assert timeline("1.inflight", "2.commit").readable_until() is None
    assert timeline("1.commit", "2.replacecommit.requested", "3.commit", "4.inflight").readable_until() == t(1)


def test_savepointed_commits_do_not_begin_the_active_timeline():
    """Others after them may have been archived."""
    assert timeline("1.commit", "1.savepoint", "2.commit").start == t(2)
    assert timeline("1.commit", "1.savepoint", "2.commit", "2.savepoint").start == t(2)
    assert timeline("1.commit", "1.savepoint").start == t(1)


def test_a_savepoint_that_was_made_later_has_kept_its_commit_from_the_archive():
    """What was archived between it and the active commits counts as of a moment before the savepoint, too."""
    names = [f"{t(1)}_{t(2)}.commit", f"{t(1)}_{t(9)}.savepoint", f"{t(5)}_{t(6)}.commit", f"{t(7)}_{t(8)}.commit"]
    then = Timeline.from_file_names(names, layout=V8).completed_by(t(6))
    assert (then.start, then.sees(t(3)), then.sees(t(7))) == (t(5), True, False)


def test_neither_a_pending_compaction_nor_a_pending_clean_holds_a_pull_back():
    assert timeline(
        "1.deltacommit", "2.compaction.inflight", "3.clean.inflight", "4.deltacommit"
    ).readable_until() == t(4)


@pytest.mark.parametrize(
    ("before", "later", "archived"),
    [
        (["1.commit", "2.commit"], ["1.commit", "2.commit", "3.commit"], False),
        (["1.commit", "2.commit"], ["2.commit", "3.commit"], False),
        (["1.commit", "2.commit"], ["5.commit"], True),
        ([], ["1.commit"], False),
        (
            ["1.commit", "1.savepoint", "2.compaction.requested"],
            ["1.commit", "1.savepoint", "2.compaction.requested"],
            False,
        ),
        (["1.commit", "1.savepoint"], ["1.commit", "1.savepoint", "5.commit"], True),
    ],
    ids=["none", "an older one", "all", "there was none", "a saved one and a plan", "what came after a saved one"],
)
def test_whether_later_commits_may_be_archived(before, later, archived):
    assert timeline(*before).is_archived_on(timeline(*later)) is archived


def test_what_is_seen():
    found = timeline("1.deltacommit", "2.compaction.requested", "3.deltacommit.inflight", "4.deltacommit", "5.clean")
    assert [n for n in range(8) if found.sees(t(n))] == [0, 1, 4]
    seen = found.visible(until=t(3), since=t(0))
    assert [n for n in range(8) if seen.sees(t(n))] == [1]


def test_a_missing_commit_is_told_with_the_ends_of_the_timeline():
    found = timeline("1.commit", "2.inflight", "3.commit", "4.clean")
    for missing in (t(2), t(4), t(9)):
        assert all(word in found.not_found(missing, table="/t") for word in (missing, "/t", t(1), t(3)))
    assert "no completed commit yet" in timeline("1.inflight").not_found(t(1), table="/t")
