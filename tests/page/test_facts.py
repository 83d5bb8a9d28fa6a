"""What the page tells of a table is what the table's own answers say."""

import pytest

import hoodie
from hoodie.page.facts import SERVICES, SIZE_STEPS_MB, Lane, _size_class, gather
from hoodie.page.render import page
from tests.golden_tables import FOLDER, golden_names
from tests.memory_tables import Input, batch, new_table, opened


def rows(turn, count=4):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(count)])


def new(kind="MERGE_ON_READ"):
    storage, clock = new_table(table_type=kind)
    return opened(storage, clock)


def facts_of(table):
    return gather(table._context)


def test_each_kind_of_work_has_its_lane():
    table = new()
    table.upsert(rows(1))
    table.upsert(rows(2))
    table.compact()
    table.cluster(sort_by=["id"])
    table.savepoint()
    table.upsert(rows(3))
    table.schedule_compaction()
    facts = facts_of(table)
    assert [(mark.lane, mark.operation) for mark in facts.marks] == [
        (Lane.WRITES, "upsert"),
        (Lane.WRITES, "upsert"),
        (Lane.COMPACTION, "compaction"),
        (Lane.CLUSTERING, "clustering"),
        (Lane.OTHER, "savepoint"),
        (Lane.WRITES, "upsert"),
        (Lane.COMPACTION, "compaction"),
    ]
    assert [mark.instant.is_completed for mark in facts.marks] == [True] * 6 + [False]
    assert [(mark.inserted, mark.updated) for mark in facts.writes] == [(4, 0), (0, 4), (0, 4)]
    (pending,) = facts.pending
    assert (pending.file_groups, pending.instant) == (len(table.files()), table.pending_compactions()[0])
    assert "hoodie compaction run" in pending.text


def test_partitions_and_sizes_are_those_of_the_newest_slices():
    table = new()
    table.upsert(rows(1))
    table.upsert(batch([Input("k0", "a", 2, 2)]))
    facts, slices = facts_of(table), table.files()
    assert [each.path for each in facts.partitions] == list(table.partitions())
    assert facts.file_groups == len(slices) == sum(facts.sizes)
    assert facts.base_bytes + facts.log_bytes == sum(each.size_bytes for each in slices)
    assert [each.log_files for each in facts.partitions] == [1, 0]
    assert (facts.slices_with_logs, facts.most_logs) == (1, 1)
    assert len(facts.sizes) == len(SIZE_STEPS_MB) + 1


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_rewrite_of_rows_that_did_not_change_is_amplification(kind):
    table = new(kind)
    table.insert(batch([Input(f"k{n:04d}", "a", n, 1) for n in range(1000)]))
    assert facts_of(table).write_amplification == 1
    table.upsert(batch([Input("k0000", "a", 5, 2)]))
    facts = facts_of(table)
    rewritten = facts.writes[-1]
    if kind == "COPY_ON_WRITE":
        assert rewritten.changed_bytes == pytest.approx(rewritten.bytes_written / 1000)
        assert facts.write_amplification > 1.9
    else:
        assert rewritten.changed_bytes == rewritten.bytes_written
        table.compact()
        assert facts_of(table).write_amplification > 1.5


def test_a_slice_is_counted_in_the_class_that_begins_with_its_size():
    ends = [step << 20 for step in SIZE_STEPS_MB]
    assert [_size_class(size) for size in (0, ends[0] - 1, *ends)] == [0, 0, *range(1, len(ends) + 1)]


def test_what_services_write_changes_no_row():
    table = new()
    table.upsert(rows(1))
    table.upsert(rows(2))
    table.upsert(rows(3))
    table.compact_logs(blocks=2)
    table.compact()
    table.cluster(sort_by=["id"])
    served = [mark for mark in facts_of(table).marks if mark.lane in SERVICES]
    assert len(served) == 3
    for mark in served:
        assert mark.bytes_written > 0
        assert (mark.changed_bytes, mark.inserted, mark.updated, mark.deleted) == (0, 0, 0, 0)


def test_of_a_new_table_there_is_little_to_tell():
    table = new()
    facts = facts_of(table)
    assert (facts.marks, facts.partitions, facts.write_amplification) == ((), (), None)


def test_consumers_are_those_that_the_table_lists():
    table = new()
    assert facts_of(table).consumers == ()
    table.upsert(rows(1))
    with table.consumer("dash") as consumer:
        consumer.changes()
    table.consumer("new")
    table._context.clock.pause(3600)
    table.upsert(rows(2))
    dash, fresh = facts_of(table).consumers
    assert [(each.name, each.position, each.lag) for each in table.consumers()] == [
        (each.name, each.position, each.lag) for each in (dash, fresh)
    ]
    assert (dash.lag.commits, fresh.position, fresh.lag.commits) == (1, None, 2)
    assert 3600 <= (facts_of(table).now - dash.moved).total_seconds() < 3610


@pytest.mark.parametrize("name", golden_names())
def test_tables_of_apache_hudi(name):
    table = hoodie.open_table(FOLDER / name / "table")
    facts = facts_of(table)
    assert len(facts.writes) + sum(mark.lane in SERVICES and mark.instant.is_completed for mark in facts.marks) == len(
        table.timeline.commits
    )
    assert [each.instant for each in facts.pending] == list(table.timeline.pending())
    assert facts.base_bytes + facts.log_bytes == sum(each.size_bytes for each in table.files())
    assert f"<h1>{facts.name}</h1>" in page(facts)
