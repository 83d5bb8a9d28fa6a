"""Whether a later timeline can be followed from an older one, and what instants do to a partition."""

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.payloads import CleanedPartition, CommitMetadata, RollbackPartition, WriteStat
from hoodie.timeline.timeline import Timeline
from hoodie.view.timeline_changes import Changes, PartitionChange, has_files_of, lost_track

C, D, X = Action.COMMIT, Action.DELTACOMMIT, Action.CLEAN
MARK = ".hoodie_partition_metadata"


def at(number):
    return f"2026112500{number:04}000"


def timeline(*instants):
    """Of (number, action) for what is completed, and (number, action, state)."""
    made = [Instant(at(n), action, *(state or [State.COMPLETED])) for n, action, *state in instants]
    return Timeline(tuple(sorted(made)))


def lost(old, new, *, undone=(), archived=False):
    return lost_track(old, new, undone={at(n) for n in undone}, has_archived=lambda: archived)


OLD = timeline((1, C), (2, X), (3, C), (4, D, State.INFLIGHT))


@pytest.mark.parametrize(
    "new",
    [
        timeline((1, C), (2, X), (3, C), (4, D), (5, C)),
        timeline((2, X), (3, C), (4, D)),  # the first was archived, and what is left begins with one that is known
        timeline((1, C), (2, X), (3, C), (4, D, State.INFLIGHT), (6, X), (7, Action.ROLLBACK)),
    ],
)
def test_an_older_timeline_is_followed(new):
    assert lost(OLD, new) is None


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (timeline((2, X), (4, D)), "commits were archived"),  # one after 3 may have been
        (timeline((2, X), (9, C)), "commits were archived"),
        (timeline((1, C), (2, X), (4, D)), "gone from the timeline"),  # 3 is younger than 1
        (timeline((1, C), (2, X), (3, C)), "gone from the timeline"),  # blocks of 4 may be in logs
        (timeline((1, C), (3, C), (4, D), (6, X)), "clean were archived"),  # and others with it, after 2
        (timeline((1, C), (3, C), (4, D), (6, X), (8, X)), "clean were archived"),
    ],
)
def test_where_something_may_have_come_and_gone_it_is_not(new, why):
    assert why in lost(OLD, new, archived=True)


def test_the_archive_says_that_nothing_did():
    assert lost(OLD, timeline((1, C), (3, C), (4, D), (6, X))) is None
    assert lost(Timeline(()), timeline((1, C), (2, C))) is None
    assert lost(Timeline(()), timeline((1, C), (2, C)), archived=True) is not None


def test_a_commit_that_was_undone_is_not_missed():
    new = timeline((1, C), (2, X), (8, Action.RESTORE))
    assert lost(OLD, new) is not None
    assert lost(OLD, new, undone=(3, 4)) is None


def test_commits_that_savepoints_hold_do_not_tell_that_later_ones_are_there():
    old = timeline((1, C), (1, Action.SAVEPOINT), (2, C))
    assert lost(old, timeline((1, C), (1, Action.SAVEPOINT), (5, C)), archived=True) == "commits were archived since"
    assert lost(old, timeline((1, C), (1, Action.SAVEPOINT), (2, C), (5, C)), archived=True) is None


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING])
def test_a_plan_that_was_dropped_has_left_nothing(action):
    old = timeline((1, C), (2, action, State.REQUESTED))
    assert lost(old, timeline((1, C), (3, C)), archived=True) is None
    completed = {Action.COMPACTION: C, Action.CLUSTERING: Action.REPLACECOMMIT}[action]
    assert lost(old, timeline((1, C), (2, completed), (3, C)), archived=True) is None
    later = timeline((3, C))
    assert lost(timeline((1, C), (2, action, State.REQUESTED), (3, C)), later) is None
    assert "may have been archived" in lost(
        timeline((1, C), (2, action, State.REQUESTED), (3, C)), later, archived=True
    )


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK, Action.RESTORE])
@pytest.mark.parametrize("archived", [False, True])
def test_a_service_that_vanished_may_have_removed_files(action, archived):
    old = timeline((1, C), (2, action, State.INFLIGHT))
    assert "gone from the timeline" in lost(old, timeline((1, C), (3, C)), archived=archived)


def base(n, name="f"):
    return f"{name}_0-0-0_{at(n)}.parquet"


def log_name(n, version, name="f"):
    return f".{name}_{at(n)}.log.{version}_0-0-0"


def stat(name, size, *, partition="p", logs=()):
    return WriteStat("f", partition, f"{partition}/{name}", file_size_bytes=size, log_files=logs)


def change_of(*stats):
    changes = Changes()
    changes.add_commit(CommitMetadata(write_stats={"p": stats}))
    return changes.of("p")


def test_a_commit_adds_its_files_and_a_second_time_nothing():
    change = change_of(stat(base(2), 20), stat(log_name(1, 2), 5, logs=(log_name(1, 1), log_name(1, 2))))
    before = {MARK: 3, base(1): 10, log_name(1, 1): 4}
    after = change.applied(before)
    assert after == {**before, base(2): 20, log_name(1, 2): 5}
    assert change.applied(after) == after


def test_a_log_that_was_appended_to_grows():
    assert change_of(stat(log_name(1, 1), 9)).applied({MARK: 1, log_name(1, 1): 4})[log_name(1, 1)] == 9
    assert change_of(stat(log_name(1, 1), 3)).applied({MARK: 1, log_name(1, 1): 4})[log_name(1, 1)] == 4


@pytest.mark.parametrize(
    "change",
    [
        change_of(stat(base(2), 0)),
        change_of(stat("what is this", 1)),
        change_of(stat(base(2), 1, partition="elsewhere")),
        change_of(stat(log_name(1, 2), 5, logs=(log_name(1, 1),))),
    ],
    ids=["no size", "no name", "another partition", "a log that is not known"],
)
def test_what_a_commit_leaves_open_is_listed(change):
    assert change.applied({MARK: 1, base(1): 10}) is None


def test_who_writes_first_makes_the_partition():
    change = change_of(stat(base(1), 1))
    assert change.applied({}) == {base(1): 1, MARK: 0}
    assert change.applied({base(0): 1}) is None, "there are files, and no mark: it was lost, or it is back"


def test_change_logs_are_no_files_of_a_view():
    assert change_of(stat(base(1), 1), stat(f"{log_name(1, 1)}.cdc", 4)).applied({MARK: 1}) == {MARK: 1, base(1): 1}


def test_a_clean_comes_after_commits_and_a_rollback_before():
    changes = Changes()
    changes.add_rollback([RollbackPartition("p", (f"file:/t/p/{base(3)}",), (), {f"t/p/{log_name(1, 3)}": 7})])
    changes.add_commit(CommitMetadata(write_stats={"p": (stat(base(3), 30),)}))  # the compaction ran again
    changes.add_clean([CleanedPartition("p", (base(1),), (), False)])
    change = changes.of("p")
    before = {MARK: 1, base(1): 1, base(3): 29, log_name(1, 1): 2}
    assert change.applied(before) == {MARK: 1, base(3): 30, log_name(1, 1): 2, log_name(1, 3): 7}
    assert change.applied(change.applied(before)) == change.applied(before)


@pytest.mark.parametrize("later", ["a rollback", "a clean"])
def test_a_log_of_a_rollback_that_has_gone_since_is_looked_for(later):
    changes = Changes()
    changes.add_rollback([RollbackPartition("p", rollback_log_files={f"t/p/{log_name(3, 2)}": 7})])
    before = {MARK: 1, log_name(3, 1): 2}
    assert changes.of("p").applied(before) == {**before, log_name(3, 2): 7}
    if later == "a clean":
        changes.add_clean([CleanedPartition("p", (log_name(3, 1), log_name(3, 2)), (), False)])
    else:
        changes.add_rollback([RollbackPartition("p", (f"t/p/{log_name(3, 1)}", f"t/p/{log_name(3, 2)}"))])
    assert changes.of("p").applied(before) is None, "or it came again, by the same name"


@pytest.mark.parametrize(
    "cleaned", [CleanedPartition("p", (), (base(1),), False), CleanedPartition("p", (base(1),), (), True)]
)
def test_what_was_not_deleted_and_what_is_gone_altogether_is_looked_at(cleaned):
    changes = Changes()
    changes.add_clean([cleaned])
    assert changes.of("p").applied({MARK: 1, base(1): 1}) is None


def test_a_failed_log_that_was_never_there_does_not_come_by_its_rollback():
    changes = Changes()
    changes.add_rollback([RollbackPartition("p", failed_log_files={log_name(1, 1): 9, log_name(1, 2): 9})])
    assert changes.of("p").applied({log_name(1, 1): 4}) == {log_name(1, 1): 9}


def test_nothing_changes_nothing():
    assert PartitionChange().applied({base(1): 1}) == {base(1): 1}


def test_files_of_an_instant_are_those_with_its_name_in_theirs():
    assert has_files_of({base(2): 1}, {at(2)})
    assert has_files_of({log_name(2, 1): 1}, {at(2)})
    assert not has_files_of({MARK: 1, base(1): 1, log_name(1, 1): 1}, {at(2)})
