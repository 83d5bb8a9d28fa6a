"""Which instants of a metadata table count, by the timelines of both."""

import pytest

from hoodie.metadata.visible import as_seen, why_not
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


@pytest.mark.parametrize("suffix", ["001.commit", "003.deltacommit", "010.deltacommit", "010001.commit"])
def test_what_covers_the_table_needs_no_delta_commit_of_each_instant(suffix):
    table = [f"{t(number)}.commit" for number in (1, 2, 3)]
    metadata = [FIRST_STATE, f"{t(1)}.deltacommit", f"{t(3)}{suffix}"]
    assert why_not(timeline(*table), timeline(*metadata)) is None
    assert t(3) + suffix.partition(".")[0] in seen(table, metadata)


@pytest.mark.parametrize("suffix", ["005.deltacommit", "006.rollback", "002.clean"])
def test_other_work_of_its_own_covers_nothing(suffix):
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


def test_one_without_a_completed_commit_is_refused():
    assert why_not(timeline(), timeline(f"{FIRST_STATE}.inflight")) is not None
