from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.txn.conflict import ABSENT_IN, find_conflict, find_missed_delete, format_absent_in

GROUP, OTHER = FileGroupId("a", "f1-0"), FileGroupId("a", "f2-0")
BASE = "20260101000000000"
LATER = Instant("20260101000000009", Action.DELTACOMMIT, State.COMPLETED)


def stat(group, **counts):
    return WriteStat(file_id=group.file_id, partition_path=group.partition_path, path="", **counts)


def conflict(*, current=None, others=(), inserted=()):
    slices = {GROUP: FileSlice(GROUP, BASE, None, ())} if current is None else current
    return find_conflict(based_on={GROUP: BASE}, absent_in=frozenset(inserted), current=slices, others=others)


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
        return find_conflict(based_on={}, absent_in=None, current={}, others=others)

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
    for damaged in ("{", "7", "[7]", "null"):
        assert found(BASE, others=[(LATER, CommitMetadata(extra={ABSENT_IN: damaged}))]) is None
