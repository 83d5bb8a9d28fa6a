"""Partitions that are older than the table keeps them, told by instants; what is written to them meanwhile is never lost."""

import logging

import pytest

from hoodie.errors import CommitConflictError, InstantNotFoundError, OptionError
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.names import PARTITION_METADATA
from hoodie.services import expiry
from hoodie.storage.cache import Cache
from tests.memory_tables import Input, batch, copy_of, keys, new_table, opened, snapshot_of

DAY_S = 24 * 3600.0
TTL = "hoodie.partition.ttl"
DAYS = f"{TTL}.strategy.days.retain"
INLINE = {f"{TTL}.inline": "true", DAYS: "7"}
BY_CREATION = {f"{TTL}.management.strategy.type": "KEEP_BY_CREATION_TIME"}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request):
    """Partitions a, b and c, each written a day after the one before."""
    storage, clock = new_table(table_type=request.param)
    made = opened(storage, clock, cache=Cache())
    for number, part in enumerate("abc"):
        made.upsert(batch([Input(f"k{number}", part, number, 0)]))
        clock.now_s += DAY_S
    made.storage, made.clock = storage, clock
    return made


def test_what_was_not_changed_for_so_many_days_goes_in_one_replacecommit(table):
    result = table.expire_partitions(days=2)
    assert result.partitions == ("a", "b")  # b was written two days and a moment ago
    assert table.timeline.commits[-1].time == result.instant
    assert table.timeline.commits[-1].action is Action.REPLACECOMMIT
    assert table.history()[-1].operation is WriteOperation.DELETE_PARTITION
    assert table.history()[-1].replaced == 2
    assert [row[:2] for row in snapshot_of(table)] == [("k2", "c")]
    first = table.timeline.commits[1].time
    assert table.scan(as_of=first).count() == 2


def test_a_dry_run_says_it_and_changes_nothing(table):
    before = table.storage.snapshot()
    dry = table.expire_partitions(days=1, dry_run=True)
    assert (dry.instant, dry.partitions) == (None, ("a", "b", "c"))
    assert table.storage.snapshot() == before
    assert table.expire_partitions(days=1).partitions == dry.partitions


def test_what_has_expired_once_does_not_do_so_again(table):
    assert table.expire_partitions(days=1).partitions == ("a", "b", "c")
    commits = table.timeline.commits
    again = table.expire_partitions(days=1)
    assert (again.instant, again.partitions) == (None, ())
    assert table.timeline.commits == commits


def test_a_change_in_a_log_counts_as_well_as_one_in_a_base_file(table):
    table.upsert(batch([Input("k0", "a", 50, 1)]))
    assert table.expire_partitions(days=1).partitions == ("b", "c")
    table.delete(keys([Input("k0", "a")]))
    table.clock.now_s += 0.5 * DAY_S
    assert table.expire_partitions(days=1).partitions == ()


def test_so_does_one_in_the_log_of_a_commit_that_was_archived():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock, cache=Cache())
    table.upsert(batch([Input("k0", "a", 0, 0), Input("k1", "b", 0, 0)]))
    clock.now_s += 10 * DAY_S
    table.upsert(batch([Input("k0", "a", 1, 1)]))
    for turn in range(8):
        table.upsert(batch([Input("k2", "c", turn, turn)]))
    assert len(table.archive(min_commits=3).instants) > 2
    fresh = opened(*copy_of(storage), cache=Cache())
    assert fresh.timeline.start > "2025"
    assert fresh.expire_partitions(days=5).partitions == ("b",)


def test_a_partition_is_kept_while_its_compaction_or_anything_else_made_a_file():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock, cache=Cache())
    table.upsert(batch([Input("k0", "a", 0, 0)]))
    table.upsert(batch([Input("k0", "a", 1, 1)]))
    clock.now_s += 3 * DAY_S
    table.compact()
    assert table.expire_partitions(days=2).partitions == ()
    clock.now_s += 3 * DAY_S
    assert table.expire_partitions(days=2).partitions == ("a",)


def test_by_creation_later_changes_do_not_count(table):
    table.upsert(batch([Input("k0", "a", 50, 1), Input("k9", "a", 50, 1)]))
    assert table.expire_partitions(2, BY_CREATION).partitions == ("a", "b")


def test_rows_that_came_after_the_partition_was_deleted_count_from_there(table):
    """The file that says when it was created outlives it."""
    table.expire_partitions(2, BY_CREATION)
    table.upsert(batch([Input("k0", "a", 60, 1)]))
    assert table.expire_partitions(2, BY_CREATION).partitions == ()
    table.clock.now_s += 2.1 * DAY_S
    assert table.expire_partitions(2, BY_CREATION).partitions == ("c", "a")


def test_by_creation_a_partition_of_which_nobody_knows_it_stays(table):
    table.storage.delete(f"b/{PARTITION_METADATA}")
    table.storage.create_new(f"b/{PARTITION_METADATA}", b"")
    assert table.expire_partitions(1, BY_CREATION, dry_run=True).partitions == ("a", "c")


def test_options_choose_partitions_and_how_many_go_at_once(table):
    most = {f"{TTL}.strategy.max.delete.partitions": "2"}
    assert table.expire_partitions(1, {f"{TTL}.strategy.partition.selected": "c,b,x"}, dry_run=True).partitions == (
        "b",
        "c",
    )
    first = table.expire_partitions(1, most)
    assert (first.partitions, first.more) == (("a", "b"), 1)
    second = table.expire_partitions(1, most)
    assert (second.partitions, second.more) == (("c",), 0)


def test_a_path_with_a_star_is_that_one_partition_only():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input("k0", "*", 0, 0)]))
    star = table.partitions()
    clock.now_s += 3 * DAY_S
    table.upsert(batch([Input("k1", "b", 0, 0)]))
    assert table.expire_partitions(days=2).partitions == star
    assert [row[0] for row in snapshot_of(table)] == ["k1"]


@pytest.mark.parametrize("moment", ["found", "planned"])
def test_rows_that_are_written_while_a_partition_expires_are_never_lost(table, monkeypatch, moment):
    """Between the look and the instant, and between the instant and its commit."""
    other = opened(table.storage, table.clock, cache=Cache())
    wrote = []

    def write(*_):
        if not wrote:
            wrote.append("begun")
            other.upsert(batch([Input("fresh", "a", 7, 7)]))
            wrote.append("done")

    if moment == "found":
        find = expiry._find

        def found_then_written(*args):
            found = find(*args)
            write()
            return found

        monkeypatch.setattr(expiry, "_find", found_then_written)
    else:
        plan = expiry.Attempt.plan

        def planned_then_written(self, located, hold):
            planned = plan(self, located, hold)
            hold.close()  # no other one writes under the lock
            write()
            return planned

        monkeypatch.setattr(expiry.Attempt, "plan", planned_then_written)
    result = table.expire_partitions(days=2)
    assert wrote == ["begun", "done"]
    assert result.partitions == ("b",)
    assert {row[0] for row in snapshot_of(table)} == {"k0", "fresh", "k2"}
    assert not table.timeline.pending()


def test_after_writes_where_an_option_asks(table):
    table.clock.now_s += 5.5 * DAY_S  # a: 8.5 days, b: 7.5, c: 6.5
    table.upsert(batch([Input("k7", "d", 0, 0)]), {DAYS: "7"})
    assert table.partitions() == ("a", "b", "c", "d")
    table.upsert(batch([Input("k8", "d", 0, 0)]), INLINE)
    assert [path for path in "abcd" if table.scan(where=f"part = '{path}'").count()] == ["c", "d"]
    table.clock.now_s += 0.6 * DAY_S
    table.upsert(batch([Input("k8", "d", 1, 1)]), INLINE)
    assert [path for path in "abcd" if table.scan(where=f"part = '{path}'").count()] == ["d"]


def test_nothing_is_looked_for_until_the_oldest_partition_expires(table, monkeypatch):
    looked = []
    find = expiry._find
    monkeypatch.setattr(expiry, "_find", lambda *args: looked.append(args) or find(*args))
    for _ in range(3):
        table.upsert(batch([Input("k7", "d", 0, 0)]), INLINE)
    assert len(looked) == 1
    table.clock.now_s += 4.5 * DAY_S  # a is older than seven days now
    for _ in range(3):
        table.upsert(batch([Input("k7", "d", 0, 0)]), INLINE)
    assert len(looked) == 2
    assert table.scan(where="part = 'a'").count() == 0


def test_an_expiry_that_fails_after_a_write_is_a_warning(table, monkeypatch, caplog):
    def fails(*_):
        raise CommitConflictError("others wrote")

    monkeypatch.setattr(expiry, "_find", fails)
    with caplog.at_level(logging.INFO, "hoodie"):
        assert table.upsert(batch([Input("k7", "d", 0, 0)]), INLINE).instant
    assert "partition expiry after a commit is left to another process" in caplog.text


def test_what_cannot_be_meant_is_an_error():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    with pytest.raises(OptionError, match="after how many days a partition expires"):
        table.expire_partitions()
    with pytest.raises(OptionError, match="days=0"):
        table.expire_partitions(days=0)
    with pytest.raises(OptionError, match="is not one of"):
        table.expire_partitions(1, {f"{TTL}.strategy.class": "com.mine.Strategy"})
    assert table.expire_partitions(days=1).instant is None  # an empty table
    plain, clock = new_table(table_type="COPY_ON_WRITE", more={"hoodie.datasource.write.partitionpath.field": ""})
    with pytest.raises(OptionError, match="is not partitioned"):
        opened(plain, clock).expire_partitions(days=1)


def test_files_of_an_expired_partition_go_with_the_next_clean(table):
    table.expire_partitions(days=2)
    table.upsert(batch([Input("k2", "c", 5, 5)]))
    table.clean(retain_commits=1)
    assert not table.storage.exists("a")
    with pytest.raises(InstantNotFoundError):
        table.scan(as_of=table.timeline.commits[0].time)
