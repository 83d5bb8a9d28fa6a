"""Which instants of a metadata table count, by the timelines of both."""

import pytest

from hoodie.format.layout import V9
from hoodie.metadata.visibility import as_seen, unknown_times, why_not
from hoodie.timeline.timeline import Timeline
from tests.metadata_tables import FIRST, t

FIRST_STATE = f"{FIRST}.deltacommit"


def timeline(*names):
    return Timeline.from_file_names(names)


def seen(table, metadata):
    return {each.time for each in as_seen(timeline(*table), timeline(*metadata)).commits}


def test_delta_commits_count_where_the_tables_instant_is_completed():
    metadata = [FIRST_STATE, *(f"{t(number)}.deltacommit" for number in (1, 2, 3, 4))]
    table = [f"{t(1)}.deltacommit", f"{t(2)}.deltacommit.inflight", f"{t(3)}.clean"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert seen(table, metadata) == {FIRST, t(1), t(3)}


def test_an_unfinished_savepoint_says_nothing_of_the_commit_that_it_holds():
    metadata = [FIRST_STATE, f"{t(1)}.deltacommit", f"{t(2)}.deltacommit"]
    table = [f"{t(1)}.commit", f"{t(1)}.savepoint.inflight", f"{t(2)}.commit"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert seen(table, metadata) == {FIRST, t(1), t(2)}


def test_those_of_archived_instants_count():
    metadata = [f"{t(number)}.deltacommit" for number in (1, 5)]
    table = [f"{t(5)}.commit"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert seen(table, metadata) == {t(1), t(5)}


def test_a_restore_lists_the_table_and_needs_no_delta_commit_of_each_instant():
    table = [f"{t(number)}.commit" for number in (1, 2, 3)]
    metadata = [FIRST_STATE, f"{t(1)}.deltacommit", f"{t(3)}003.deltacommit"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert f"{t(3)}003" in seen(table, metadata)


def test_a_first_state_knows_the_instants_before_it():
    table = [f"{t(number)}.commit" for number in (1, 2, 3)]
    metadata = [f"{t(2)}010.deltacommit", f"{t(2)}010001.commit", f"{t(3)}.deltacommit"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert seen(table, metadata) == {f"{t(2)}010", f"{t(2)}010001", t(3)}


@pytest.mark.parametrize("suffix", ["001.commit", "002.clean", "005.deltacommit", "006.rollback", "010.deltacommit"])
def test_other_work_of_its_own_makes_up_for_no_instant(suffix):
    """A writer that ignores the metadata table leaves a gap, which a compaction does not fill."""
    table = [f"{t(number)}.commit" for number in (1, 2, 3)]
    metadata = [FIRST_STATE, f"{t(1)}.deltacommit", f"{t(3)}.deltacommit", f"{t(3)}{suffix}"]
    assert "lacks" in why_not(timeline(*table), timeline(*metadata))


@pytest.mark.parametrize("action", ["commit", "deltacommit", "replacecommit", "clean", "rollback", "restore"])
def test_every_action_that_changes_files_is_missed(action):
    table = [f"{t(1)}.commit", f"{t(2)}.{action}"]
    assert "lacks" in why_not(timeline(*table), timeline(FIRST_STATE, f"{t(1)}.deltacommit"))


def test_a_savepoint_and_what_is_pending_are_not_missed():
    table = [f"{t(1)}.commit", f"{t(1)}.savepoint", f"{t(2)}.inflight", f"{t(3)}.clean.requested"]
    assert why_not(timeline(*table), timeline(FIRST_STATE, f"{t(1)}.deltacommit")) is None


def test_a_compaction_later_than_the_snapshot_is_refused():
    metadata = [FIRST_STATE, f"{t(1)}.deltacommit", f"{t(2)}.deltacommit", f"{t(2)}001.commit"]
    assert "compacted" in why_not(timeline(f"{t(1)}.commit"), timeline(*metadata))


def test_a_delta_commit_that_the_table_does_not_know_is_refused():
    """It was rolled back, or is being, by somebody who left the metadata table alone."""
    metadata = [FIRST_STATE, *(f"{t(number)}.deltacommit" for number in (1, 2, 3))]
    assert "says nothing" in why_not(timeline(f"{t(1)}.commit", f"{t(3)}.commit"), timeline(*metadata))


def test_a_clean_may_be_archived_before_an_older_commit():
    """A savepoint keeps the commit."""
    metadata = [FIRST_STATE, *(f"{t(number)}.deltacommit" for number in (1, 2, 3))]
    table = timeline(f"{t(1)}.commit", f"{t(3)}.commit")
    assert unknown_times(table, timeline(*metadata)) == [t(2)]
    assert why_not(table, timeline(*metadata), {t(2)}) is None
    assert {each.time for each in as_seen(table, timeline(*metadata), {t(2)}).commits} == {FIRST, t(1), t(2), t(3)}


def test_one_without_a_completed_commit_is_refused():
    assert why_not(timeline(), timeline(f"{FIRST_STATE}.inflight")) is not None


# -- versions 8 and 9: completion times say what was merged, and the metadata table's own work has instants as any other ------------

FIRST_V9 = f"00000000000000000_{t(5)}.deltacommit"


def later(*names):
    return Timeline.from_file_names(names, layout=V9)


def why(table, metadata):
    return why_not(later(*table), later(*metadata))


def done(time, completion, action="deltacommit"):
    return f"{t(time)}_{t(completion)}.{action}"


def test_instants_before_the_first_state_need_no_delta_commit_and_later_ones_do():
    """Also one that began before it and was completed after it."""
    old, late = done(1, 2, "commit"), done(3, 9, "commit")
    assert why([old], [FIRST_V9]) is None
    assert "lacks" in why([old, late], [FIRST_V9])
    assert why([old, late], [FIRST_V9, done(3, 8)]) is None


def test_a_rollback_needs_none():
    assert why([done(1, 2, "commit"), done(7, 8, "rollback")], [FIRST_V9]) is None
    assert "lacks" in why([done(1, 2, "commit"), done(7, 8, "clean")], [FIRST_V9])


@pytest.mark.parametrize("undoing", ["rollback", "restore"])
def test_a_first_state_is_refused_while_a_commit_before_it_may_be_taken_back(undoing):
    """That is pending again, or not shown; it has no delta commit. One that has one is known by it."""
    pending = f"{t(9)}.{undoing}.requested"
    again = [f"{t(3)}.commit.requested", f"{t(3)}.inflight"]
    first = FIRST_V9.replace(t(5), t(7))
    assert "takes back" in why([done(1, 2, "commit"), pending], [first])
    assert "takes back" in why([pending], [first])
    assert "takes back" in why([done(1, 8, "commit"), *again, pending], [first, done(1, 7)])
    assert why([done(6, 8, "commit"), pending], [FIRST_V9, done(6, 7)]) is None
    timelines = later(done(1, 2, "commit"), pending), later(first)
    assert why_not(*timelines, is_undoing=True) is None


def test_a_compaction_has_merged_what_was_completed_before_it_began():
    table = [done(6, 8, "commit"), f"{t(9)}.commit.requested", f"{t(9)}.inflight"]
    merged = [FIRST_V9, done(6, 7), done(11, 12, "commit")]
    assert why(table, merged) is None
    assert "compacted" in why(table, [*merged, done(9, 10)])
    assert why(table, [*merged, done(9, 13)]) is None
    assert {each.time for each in as_seen(later(*table), later(*merged, done(9, 13))).commits} == {
        "00000000000000000",
        t(6),
        t(11),
    }


def test_a_delta_commit_that_follows_a_restore_of_the_metadata_table_counts():
    """Apache Hudi's: it lists all folders, and brings what it found by an instant of its own."""
    table = [done(1, 2, "commit"), done(10, 16, "restore")]
    restored = [FIRST_V9, done(11, 12, "restore")]
    assert "lacks" in why(table, restored)
    assert why(table, [*restored, done(13, 14)]) is None
    assert "says nothing" in why(table, [FIRST_V9, done(13, 14)])
    assert t(13) in {each.time for each in as_seen(later(*table), later(*restored, done(13, 14))).commits}
