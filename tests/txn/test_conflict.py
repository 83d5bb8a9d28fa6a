from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.txn.conflict import ABSENT_IN, WriteBasis, find_conflict, find_missed_delete, format_absent_in

GROUP, OTHER = FileGroupId("a", "f1-0"), FileGroupId("a", "f2-0")
BASE, OURS = "20260101000000000", "20260101000000007"
LATER = Instant("20260101000000009", Action.DELTACOMMIT, State.COMPLETED)


def stat(group, **counts):
    return WriteStat(file_id=group.file_id, partition_path=group.partition_path, path="", **counts)


def found(*, current=None, others=(), inserted=(), instant=OURS, appended=None):
    slices = {GROUP: FileSlice(GROUP, BASE, None, ())} if current is None else current
    footing = WriteBasis({GROUP: BASE}, frozenset(inserted), appended or {})
    return find_conflict(instant, footing, current=slices, others=others)


def conflict(**given):
    conflict = found(**given)
    return None if conflict is None else conflict.reason


def commit(*stats, compacted=False):
    return (LATER, CommitMetadata(write_stats={"a": stats}, compacted=compacted))


def test_nothing_happened():
    assert conflict() is None


def test_another_file_group_does_not_matter():
    assert conflict(others=[commit(stat(OTHER, num_updates=3))]) is None


def test_the_same_file_group_does():
    assert "changed file group f1-0" in conflict(others=[commit(stat(GROUP, num_updates=3))])


def test_a_compaction_of_the_same_file_group_does_too():
    assert "changed file group f1-0" in conflict(others=[commit(stat(GROUP), compacted=True)])
    assert conflict(others=[commit(stat(OTHER, num_inserts=3), compacted=True)], inserted=["a"]) is None


def test_a_log_compaction_of_the_same_file_group_does_not():
    of_logs = CommitMetadata(
        WriteOperation.LOG_COMPACT, {"a": (stat(GROUP, num_updates=3, log_version=9),)}, compacted=True
    )
    assert conflict(others=[(LATER, of_logs)], appended={GROUP: 1}) is None
    assert conflict(others=[(LATER._replace(time="20260101000000002"), of_logs)], inserted=["a"]) is None


def test_a_group_that_was_replaced_or_moved_on():
    assert "was replaced" in conflict(current={GROUP: None})
    moved = {GROUP: FileSlice(GROUP, "20260101000000005", None, ())}
    assert f"moved from slice {BASE} to 20260101000000005" in conflict(current=moved)


def test_both_inserted_into_one_partition():
    others = [commit(stat(OTHER, num_inserts=1))]
    assert "inserted into partition 'a' too" in conflict(others=others, inserted=["a"])
    assert conflict(others=others, inserted=["b"]) is None


def overwrite(operation, *partitions):
    return (LATER, CommitMetadata(operation=operation, replaced_file_ids=dict.fromkeys(partitions, ("gone-0",))))


def test_an_insert_and_an_overwrite_of_its_partition():
    others = [overwrite(WriteOperation.DELETE_PARTITION, "b", "a")]
    assert "overwrote partition 'a'" in conflict(others=others, inserted=["a"])
    assert conflict(others=others, inserted=["c"]) is None
    assert conflict(others=[overwrite(WriteOperation.CLUSTER, "a")], inserted=["a"]) is None


def test_an_overwrite_of_the_whole_table_meets_inserts_anywhere():
    def found(*others):
        conflict = find_conflict(OURS, WriteBasis(absent_in=None), current={}, others=others)
        return None if conflict is None else conflict.reason

    assert "inserted into partition 'a' too" in found(commit(stat(OTHER, num_inserts=1)))
    assert "overwrote partition 'q'" in found(overwrite(WriteOperation.INSERT_OVERWRITE_TABLE, "q"))
    assert found(commit(stat(OTHER, num_updates=1))) is None  # of a group that is in `based_on` when it was there


def test_a_later_delete_that_did_not_find_what_is_inserted():
    ours = CommitMetadata(write_stats={"a": (stat(OTHER, num_inserts=1),)})
    later = [(LATER, CommitMetadata(extra=format_absent_in(frozenset({"b", "a"}))))]

    def found(instant, absent_in=frozenset({"a"}), others=later):
        return find_missed_delete(instant, ours, absent_in, others)

    assert "absent from partition 'a'" in found(BASE)
    assert "absent from partition 'a'" in found(BASE, None)
    assert found("20260101000000010") is None  # the delete comes first in the timeline, too
    assert found(BASE, frozenset({"b"})) is None  # a load, which nothing stands in the way of
    everywhere = [(LATER, CommitMetadata(extra=format_absent_in(None)))]
    assert "absent from partition 'a'" in found(BASE, others=everywhere)
    for damaged in ("{", "7", "[7]"):
        assert found(BASE, others=[(LATER, CommitMetadata(extra={ABSENT_IN: damaged}))]) is None


def test_what_was_changed_under_a_smaller_instant_can_be_mended():
    earlier = Instant("20260101000000005", Action.DELTACOMMIT, State.COMPLETED)
    same_group = CommitMetadata(write_stats={"a": (stat(GROUP),)})
    inserts = CommitMetadata(write_stats={"a": (stat(OTHER, num_inserts=1),)})
    moved = {GROUP: FileSlice(GROUP, earlier.time, None, ())}
    assert found(others=[(earlier, same_group)]).mends
    assert found(others=[(earlier, inserts)], inserted=["a"]).mends
    assert found(current=moved).mends
    assert not found(others=[(LATER, same_group)]).mends
    assert not found(others=[(LATER, inserts)], inserted=["a"]).mends
    assert not found(current={GROUP: FileSlice(GROUP, LATER.time, None, ())}).mends
    assert not found(current={GROUP: None}).mends
    # Of several, the one that cannot be mended.
    assert not found(others=[(earlier, same_group), (LATER, same_group)]).mends


def test_deletes_in_an_earlier_log_are_a_conflict_where_a_row_may_be_in_vain_behind_them():
    earlier = Instant("20260101000000005", Action.DELTACOMMIT, State.COMPLETED)
    slices = {GROUP: FileSlice(GROUP, BASE, None, ())}
    for deletes, heeds, mends in ((1, True, True), (1, False, None), (0, True, None)):
        theirs = CommitMetadata(write_stats={"a": (stat(GROUP, num_deletes=deletes, log_version=1),)})
        footing = WriteBasis({GROUP: BASE}, appended={GROUP: 2}, heeds_deletes=heeds)
        conflict = find_conflict(OURS, footing, current=slices, others=[(earlier, theirs)])
        assert (conflict and conflict.mends) is mends


def test_logs_in_the_order_of_instants_are_no_conflict():
    earlier = Instant("20260101000000005", Action.DELTACOMMIT, State.COMPLETED)

    def beside(theirs, ours, by=earlier):
        others = [(by, CommitMetadata(write_stats={"a": (stat(GROUP, num_updates=1, log_version=theirs),)}))]
        return conflict(others=others, appended={GROUP: ours} if ours else {})

    assert beside(1, 2) is None
    assert "changed file group" in beside(2, 2)  # of two of one version chance decides which one is merged last
    assert "changed file group" in beside(3, 2)
    assert "changed file group" in beside(None, 2)  # a base file
    assert "changed file group" in beside(1, None)  # ours holds something of what was stored
    assert "changed file group" in beside(1, 2, by=LATER)
