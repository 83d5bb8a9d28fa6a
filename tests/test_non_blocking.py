"""Writers in non-blocking mode: they append to one file group at once, and none of them waits or is repeated.

The rules: docs/CONCURRENCY.md, and docs/contributing/decisions/writers.md, "Non-blocking writers".
"""

import pytest

import hoodie
from hoodie.errors import CommitConflictError, OptionError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import heartbeat_path
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.begun import begun
from tests.effort import SOAK, in_shares
from tests.memory_tables import (
    SCHEMA,
    Input,
    batch,
    copy_of,
    keys,
    left_by,
    leftovers,
    new_table,
    opened,
    snapshot_of,
    stray_files,
)
from tests.non_blocking import BUCKETS, NON_BLOCKING, Play, group_of, non_blocking_table, writer
from tests.placed import in_memory

pytestmark = in_memory("several writers are at work in one thread")

SEEDS = 400 if SOAK else 5
ONE, TWO = [Input("k", "a", 1, 5), Input("l", "a", 1, 1)], [Input("k", "a", 2, 2), Input("m", "a", 2, 2)]


def values(storage, clock):
    return {row[:2]: row[2] for row in snapshot_of(opened(storage, clock))}


def groups(storage, clock):
    return sorted((each.group.partition_path, each.group.file_id) for each in opened(storage, clock).files())


@pytest.mark.parametrize("by_ordering", [True, False], ids=["event time", "commit time"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_writers_that_begin_and_end_in_any_order_beside_compactions(version, by_ordering):
    for seed in range(SEEDS):
        Play(seed, version, by_ordering=by_ordering).run()


def test_two_writers_that_begin_a_bucket_meet_in_one_file_group_and_no_write_is_repeated():
    storage, clock = non_blocking_table()
    with begun(writer(storage, clock), batch(ONE)) as end:
        with begun(writer(storage, clock), batch(TWO)) as end_of_later:
            end_of_later()
        before = clock.slept_s
        end()
    assert values(storage, clock) == {("k", "a"): 1, ("l", "a"): 1, ("m", "a"): 2}
    assert clock.slept_s - before < 1
    assert {file_id[8:] for _, file_id in groups(storage, clock)} == {"-0000-0000-0000-000000000000-0"}
    table = opened(storage, clock)
    assert [each.action for each in table.timeline] == [Action.DELTACOMMIT] * 2
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


def test_a_compaction_that_is_planned_and_run_before_a_write_ends_does_not_miss_its_rows():
    storage, clock = non_blocking_table(ordering=None)
    table = writer(storage, clock)
    table.upsert(batch(ONE))
    with begun(writer(storage, clock), batch(TWO)) as end:
        assert table.schedule_compaction(wait_s=0) is not None
        assert table.run_compaction()
        end()
    assert values(storage, clock) == {("k", "a"): 2, ("l", "a"): 1, ("m", "a"): 2}
    assert table.compact()
    assert values(storage, clock) == {("k", "a"): 2, ("l", "a"): 1, ("m", "a"): 2}


def test_a_compaction_does_not_turn_round_which_of_two_writers_wins():
    storage, clock = non_blocking_table(ordering=None)
    same = [Input("k", "a", 1), Input("k", "b", 1)]
    with begun(writer(storage, clock), batch(same[:1])) as end:
        table = writer(storage, clock)
        table.upsert(batch([row._replace(val=2) for row in same]))
        planned = table.schedule_compaction(wait_s=0)
        plan = table._context.active.read_compaction_plan(planned)
        assert [each.partition_path for each in plan.operations] == ["b"]
        end()
    assert values(storage, clock) == {("k", "a"): 2, ("k", "b"): 2}
    table.run_compaction()
    table.compact()
    assert values(storage, clock) == {("k", "a"): 2, ("k", "b"): 2}


def test_a_log_compaction_leaves_out_what_a_write_names_and_changes_no_row():
    storage, clock = non_blocking_table(ordering=None)
    table = writer(storage, clock)
    with begun(writer(storage, clock), batch([Input("k", "a", 1), Input("l", "a", 1)])) as end:
        for val in range(2, 5):
            table.upsert(batch([Input("k", "a", val), Input("k", "b", val)]))
        planned = table.schedule_log_compaction(blocks=2, wait_s=0)
        plan = table._context.active.read_compaction_plan(planned, Action.LOGCOMPACTION)
        assert [each.partition_path for each in plan.operations] == ["b"]
        end()
    expected = {("k", "a"): 4, ("k", "b"): 4, ("l", "a"): 1}
    assert values(storage, clock) == expected
    table.run_log_compaction()
    assert values(storage, clock) == expected
    assert table.compact_logs(blocks=2)
    assert values(storage, clock) == expected
    table.compact()
    assert values(storage, clock) == expected


def test_a_bucket_of_a_deleted_partition_begins_in_another_file_group():
    storage, clock = non_blocking_table()
    table = writer(storage, clock)
    table.upsert(batch(ONE))
    table.delete_partitions(["a"])
    assert values(storage, clock) == {}
    with begun(writer(storage, clock), batch(ONE)) as end:
        table.upsert(batch(TWO))
        end()
    assert values(storage, clock) == {("k", "a"): 1, ("l", "a"): 1, ("m", "a"): 2}
    assert {file_id[8:] for _, file_id in groups(storage, clock)} == {"-0000-0000-0000-000000000001-0"}


@pytest.mark.parametrize("there", [[], ONE], ids=["a new bucket", "a bucket that is there"])
def test_a_write_beside_which_its_partition_is_deleted_is_repeated(there):
    storage, clock = non_blocking_table()
    table = writer(storage, clock)
    table.upsert(batch([*there, Input("other", "a")]))
    with begun(writer(storage, clock), batch(ONE)) as end:
        opened(storage, clock, {"hoodie.write.lock.wait_time_ms": "0"}).delete_partitions(["a"])
        with pytest.raises(CommitConflictError, match="replaced"):
            end()
    table.upsert(batch(ONE))
    assert values(storage, clock) == {("k", "a"): 1, ("l", "a"): 1}


def test_beside_a_writer_in_the_usual_mode_a_bucket_does_not_begin_twice():
    storage, clock = non_blocking_table()
    at_once = {"hoodie.write.lock.wait_time_ms": "0"}
    with (
        begun(writer(storage, clock), batch(ONE)) as end,
        begun(opened(storage, clock, at_once), batch(ONE)) as end_of_usual,
    ):
        end()
        with pytest.raises(CommitConflictError):
            end_of_usual()
    opened(storage, clock).upsert(batch(TWO))
    with begun(writer(storage, clock), batch([Input("k", "b")])) as end:
        opened(storage, clock, at_once).upsert(batch([Input("k", "b", 7, 7)]))
        with pytest.raises(CommitConflictError, match="inserted into partition"):
            end()
    writer(storage, clock).upsert(batch([Input("l", "b", 7, 7)]))
    assert values(storage, clock) == {("k", "a"): 1, ("l", "a"): 1, ("m", "a"): 2, ("k", "b"): 7, ("l", "b"): 7}


def test_what_rests_on_stored_rows_is_not_written_blindly():
    storage, clock = non_blocking_table()
    table = writer(storage, clock)
    table.upsert(batch(ONE))
    partial = batch([Input("l", "a", None, 3)]).select(["id", "part", "ts"])
    whole = [Input("l", "a", 9, 2)]
    with begun(writer(storage, clock), batch(whole)) as end:
        table.upsert(partial, options={"hoodie.python.upsert.partial": "true"})
        end()
    assert values(storage, clock)["l", "a"] in (1, 9)
    assert table.update({"val": "val + 1"}, where="id = 'l'").instant
    assert table.delete(where="id = 'k'").instant
    assert ("k", "a") not in values(storage, clock)
    table.upsert(
        batch([Input("new", "a", 4, 4)]).select(["id", "part", "ts"]), {"hoodie.python.upsert.partial": "true"}
    )
    assert values(storage, clock)["new", "a"] is None


def test_deletes_and_bulk_inserts_append_too():
    storage, clock = non_blocking_table()
    table = writer(storage, clock)
    table.bulk_insert(batch(ONE))
    table.insert(batch([Input("n", "b", 1, 1)]))
    with begun(writer(storage, clock), batch(TWO)) as end:
        table.delete(keys([Input("l", "a"), Input("nowhere", "c")]))
        end()
    assert values(storage, clock) == {("k", "a"): 1, ("m", "a"): 2, ("n", "b"): 1}
    assert all(each.base is None for each in opened(storage, clock).files())


def test_a_row_behind_a_delete_of_its_key_makes_a_base_file_and_follows_the_usual_rules():
    storage, clock = non_blocking_table()
    table = writer(storage, clock)
    table.upsert(batch(ONE))
    table.compact()
    table.delete(keys(ONE[:1]))
    older = [Input("k", "a", 7, 1)]
    with begun(writer(storage, clock), batch(older)) as end:
        table.upsert(batch([Input("m", "a", 8, 8)]))
        with pytest.raises(CommitConflictError, match="changed file group"):
            end()
    table.upsert(batch([row._replace(ts=2) for row in older]))
    expected = {("k", "a"): 7, ("l", "a"): 1, ("m", "a"): 8}
    assert values(storage, clock) == expected
    table.compact()
    assert values(storage, clock) == expected


def test_it_works_beside_a_living_writer_of_another_program():
    storage, clock = non_blocking_table()
    theirs = InstantTime("20251124160000500")
    table = writer(storage, clock)
    table.upsert(batch(ONE))
    clock.sleep(3600)
    active = table._context.active
    active.create(Instant(theirs, Action.DELTACOMMIT, State.REQUESTED), b"")
    storage.touch(heartbeat_path(theirs))
    with pytest.raises(CommitConflictError, match="another writer is working"):
        opened(storage, clock).upsert(batch(TWO))
    table.upsert(batch(TWO))
    # A plan takes no logs that were completed after the other one began: theirs may come in between.
    late = {group_of((row.id, row.part)) for row in TWO}
    free = {group_of((row.id, row.part)) for row in ONE} - late
    planned = table.schedule_compaction(wait_s=0)
    assert {(each.partition_path, each.file_id) for each in active.read_compaction_plan(planned).operations} == free
    assert values(storage, clock) == {("k", "a"): 1, ("l", "a"): 1, ("m", "a"): 2}


RING = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
V9 = {"hoodie.write.table.version": "9"}
UNFIT = {
    "version 6": ("MERGE_ON_READ", BUCKETS, "it has version 6"),
    "copy-on-write": ("COPY_ON_WRITE", V9 | BUCKETS, "copy-on-write"),
    "another index": ("MERGE_ON_READ", V9, "hoodie.index.type=BUCKET"),
    "hash rings": ("MERGE_ON_READ", V9 | RING, "hoodie.index.bucket.engine=SIMPLE"),
    "change logs": ("MERGE_ON_READ", V9 | BUCKETS | {"hoodie.table.cdc.enabled": "true"}, "change logs"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_is_refused_before_anything_is_written(case):
    kind, more, reason = UNFIT[case]
    storage, clock = new_table(table_type=kind, more=more)
    before = storage.snapshot()
    with pytest.raises(OptionError, match=reason):
        writer(storage, clock).upsert(batch(ONE))
    assert storage.snapshot() == before


@pytest.mark.parametrize("case", UNFIT)
def test_no_table_is_made_for_a_writer_that_it_does_not_fit(case, tmp_path):
    kind, more, reason = UNFIT[case]
    with pytest.raises(OptionError, match=reason):
        hoodie.create_table(
            tmp_path / "t", SCHEMA, record_key="id", ordering="ts", table_type=kind, options={**more, **NON_BLOCKING}
        )
    assert not hoodie.is_table(tmp_path / "t")


def test_an_overwrite_is_refused():
    storage, clock = non_blocking_table()
    with pytest.raises(OptionError, match="insert_overwrite replaces"):
        writer(storage, clock).insert_overwrite(batch(ONE))
    assert not opened(storage, clock).timeline.commits


@in_shares(4)
def test_a_writer_that_dies_at_any_call_beside_another_one_shows_all_or_nothing(share):
    start, clock = non_blocking_table()
    writer(start, clock).upsert(batch([Input("k", "a", 0, 0)]))

    def run(faults):
        storage, clock = copy_of(start)
        faulty = FaultStorage(storage, faults)
        with begun(writer(storage, clock), batch(ONE)) as end:
            try:
                writer(faulty, clock).upsert(batch(TWO))
            except InjectedFault:
                return (*left_by(storage), True, end)
            else:
                return storage, clock, False, faulty.trace

    *_, died, trace = run([])
    assert not died
    for fault in share.of(crash_points(trace)):
        storage, clock, died, _ = run([fault])
        assert died, fault
        found = values(storage, clock)
        assert found in ({("k", "a"): 0}, {("k", "a"): 2, ("m", "a"): 2}), fault
        writer(storage, clock).upsert(batch([Input("k", "b", 3, 3)]))
        assert values(storage, clock) == {**found, ("k", "b"): 3}, fault
        writer(storage, clock).compact()
        assert values(storage, clock) == {**found, ("k", "b"): 3}, fault
        table = opened(storage, clock)
        table.rollback()
        assert leftovers(storage) == [], fault
        assert stray_files(storage, table) == [], fault
