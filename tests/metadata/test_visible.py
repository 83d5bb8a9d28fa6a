"""Which instants of a metadata table count, by the timelines of both."""

import pytest

from hoodie.metadata.visible import as_seen, unknown_times, why_not
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
