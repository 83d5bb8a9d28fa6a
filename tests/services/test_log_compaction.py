"""Log compaction: one log file stands for many, and no reader sees a difference."""

import itertools
from dataclasses import replace

import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError, InstantNotFoundError, OptionError
from hoodie.filegroup.log_blocks import counted_logs
from hoodie.filegroup.row_copies import row_copies_of
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.plan_avro import COMPACTION_PLAN, decode_plan
from hoodie.model.enums import BlockKind, HeaderKey, State, WriteOperation
from hoodie.model.tuning import TUNING
from hoodie.services.inline import wait_for_background
from hoodie.storage.faults import FaultStorage, InjectedFault
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable
from hoodie.view.commit_files import LOG_COMPACTED
from tests.change_feed import changes_of
from tests.effort import long_but
from tests.golden_tables import copy_golden
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    create,
    keys,
    leftovers,
    new_storage,
    new_table,
    opened,
    plain,
    snapshot_of,
)
from tests.placed import in_memory
from tests.scan_files import check as check_scan_files

DIES_UNDECIDED = in_memory("a storage without renames has decided for the commit before it is on the timeline")
FIRST = [Input(f"k{n}", "ab"[n % 2], n, 10) for n in range(8)]
WRITES = [
    [Input("k0", "a", 100, 20), Input("k1", "b", 101, 20)],
    [Input("k0", "a", 200, 15), Input("k2", "a", 201, 30)],  # k0 is late
    [Input("k2", "a", 300, 40, deleted=True), Input("k3", "b", 301, 5)],  # k3 is later than the stored row
    [Input("k4", "a", 400, 30), Input("k5", "b", 401, 30)],
    [Input("k0", "a", 500, 30), Input("k5", "b", 501, 35)],
]
GONE = [Input("k6", "a"), Input("k4", "a")]
LAST = [Input("k2", "a", 600, 50), Input("k4", "a", 601, 12), Input("k1", "b", 602, 25)]
FREELY = {"hoodie.compact.inline.max.delta.commits": "1"}
"""For archives: commits do not stay so that a compaction can count them."""
PARQUET = {"hoodie.logfile.data.block.format": "parquet"}


def fill(table, writes=WRITES):
    for rows in writes:
        table.upsert(batch(rows))
    table.delete(keys(GONE))


def begin(*, ordering="ts", options=None):
    storage, clock = new_table(table_type="MERGE_ON_READ", ordering=ordering)
    table = opened(storage, clock, options)
    table.upsert(batch(FIRST))
    fill(table)
    return storage, clock


def everything(storage, clock):
    """All that readers can ask for, at every moment and over many ranges; no row of it lost against one of another log."""
    table = opened(storage, clock)
    times = [i.time for i in table.timeline.commits if i.time not in table.timeline.log_compactions]
    found = {
        "now": snapshot_of(table),
        "read optimized": plain(table.scan(query="read_optimized", meta_columns=True)),
        "feed": changes_of(table, meta_columns=True),
    }
    for time in times:
        found["as of", time] = plain(table.scan(as_of=time, meta_columns=True))
        found["until", time] = plain(table.changes(until=time, meta_columns=True))
    for since, until in itertools.pairwise(times):
        found["from", since] = plain(table.changes(since=since, until=until, meta_columns=True))
    for since in times[:7]:  # up to now: of commits whose rows lost against no other log
        found["since", since] = plain(table.changes(since=since, meta_columns=True))
    check_scan_files(table)
    return found


def blocks_of(storage, table, group=None):
    """Blocks of the newest log file of each slice."""
    found = {}
    for file_slice in table._context.snapshot().view.latest_slices():
        if file_slice.logs:
            path = file_slice.logs[-1].path
            found[file_slice.group.partition_path] = [
                b for b in scan_blocks(storage.read(path)) if isinstance(b, LogBlock)
            ]
    return found


KINDS = [({}, "ts"), (PARQUET, "ts"), ({}, None), ({"hoodie.python.mor.row.copies": "false"}, "ts")]


@pytest.mark.parametrize("kind", long_but(KINDS[:2], KINDS))
def test_readers_see_the_same_before_and_after(kind):
    options, ordering = kind
    storage, clock = begin(options=options, ordering=ordering)
    before = everything(storage, clock)
    (result,) = opened(storage, clock, options).compact_logs(blocks=3)
    assert (result.operation, result.files) == (WriteOperation.LOG_COMPACT, 2)
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 0)
    assert everything(storage, clock) == before
    # Later writes, and what comes of all of it in the end.
    other, other_clock = begin(options=options, ordering=ordering)
    for each, its_clock in ((storage, clock), (other, other_clock)):
        opened(each, its_clock, options).upsert(batch(LAST))
    rows = [row[:-1] for row in snapshot_of(opened(storage, clock))]
    assert rows == [row[:-1] for row in snapshot_of(opened(other, other_clock))]
    check_scan_files(opened(storage, clock))
    opened(storage, clock, options).compact()
    assert [row[:-1] for row in snapshot_of(opened(storage, clock))] == rows
    assert [row[:-1] for row in plain(opened(storage, clock).scan(query="read_optimized", meta_columns=True))] == rows


def test_a_log_compaction_may_go_over_the_output_of_another():
    storage, clock = begin()
    before = snapshot_of(opened(storage, clock))
    opened(storage, clock).compact_logs(blocks=3)
    assert opened(storage, clock).compact_logs(blocks=3) == []
    fill(opened(storage, clock))
    rows = everything(storage, clock)
    assert snapshot_of(opened(storage, clock)) != before
    (second,) = opened(storage, clock).compact_logs(blocks=3)
    assert everything(storage, clock) == rows
    first, _ = sorted(opened(storage, clock).timeline.log_compactions)
    for blocks in blocks_of(storage, opened(storage, clock)).values():
        for block in blocks:
            named = block.header[HeaderKey.COMPACTED_BLOCK_TIMES].split(",")
            assert named[0] == first
            assert second.instant not in named
            assert named == sorted(named)


def test_the_blocks_and_the_plan_are_those_of_apache_hudi():
    storage, clock = begin()
    table = opened(storage, clock)
    inputs = [i.time for i in table.timeline.commits[1:]]
    time = table.schedule_log_compaction(blocks=3)
    plan = decode_plan(COMPACTION_PLAN, storage.read(f".hoodie/{time}.logcompaction.requested"), path="plan")
    assert (plan["version"], plan["preserveHoodieMetadata"]) == (2, True)
    assert plan["strategy"]["compactorClassName"].endswith(".LogCompactionExecutionHelper")
    assert [len(each["deltaFilePaths"]) for each in plan["operations"]] == [6, 4]
    opened(storage, clock).run_log_compaction()
    assert storage.exists(f".hoodie/{time}.logcompaction.inflight")
    assert storage.exists(f".hoodie/{time}.deltacommit")
    found = blocks_of(storage, opened(storage, clock))
    assert {block.header[HeaderKey.INSTANT_TIME] for blocks in found.values() for block in blocks} == {time}
    assert [block.kind for block in found["a"]] == [BlockKind.AVRO_DATA, BlockKind.DELETE]
    assert [block.kind for block in found["b"]] == [BlockKind.AVRO_DATA]
    assert found["a"][0].header[HeaderKey.COMPACTED_BLOCK_TIMES] == ",".join(inputs)
    assert storage.read(f".hoodie/{time}.deltacommit").count(b'"LOG_COMPACT"') == 1


class Counting(MemoryStorage):
    logs = 0

    def read(self, path, offset=0, length=None):
        Counting.logs += ".log." in path
        return super().read(path, offset, length)


@pytest.mark.parametrize("copies", ["true", "false"])
def test_readers_open_one_log_of_a_slice(copies):
    clock = FakeClock()
    storage = new_storage(clock, Counting)
    create(storage, table_type="MERGE_ON_READ")
    options = {"hoodie.python.mor.row.copies": copies}
    opened(storage, clock, options).upsert(batch(FIRST))
    fill(opened(storage, clock, options))

    def logs_opened(**scan):
        Counting.logs = 0
        found = plain(opened(storage, clock).scan(meta_columns=True, **scan))
        return Counting.logs, found

    many, rows = logs_opened()
    then = opened(storage, clock).timeline.commits[-1].time
    opened(storage, clock, options).compact_logs(blocks=3)
    assert logs_opened() == (0 if copies == "true" else 2, rows)
    assert logs_opened(as_of=then) == (
        many + (2 if copies == "false" else 0),
        rows,
    )  # no skipping, with the new ones on top
    opened(storage, clock, options).upsert(batch(LAST))
    assert logs_opened()[0] == (0 if copies == "true" else 4)


def test_where_the_commit_does_not_say_what_it_stands_for_all_logs_are_opened_and_rows_are_the_same():
    storage, clock = begin(options={"hoodie.python.mor.row.copies": "false"})
    rows = everything(storage, clock)
    (result,) = opened(storage, clock).compact_logs(blocks=3)
    path = f".hoodie/{result.instant}.deltacommit"
    whole = storage.read(path).decode()
    assert whole.count(LOG_COMPACTED) == 1
    for was, now in ((LOG_COMPACTED, "of.another.program"), (f'{LOG_COMPACTED}":"{{', f'{LOG_COMPACTED}":"no json {{')):
        text = whole.replace(was, now)
        assert text != whole
        storage.delete(path)
        storage.create_new(path, text.encode())
        found = opened(storage, clock)._context.snapshot().view.latest_slices()
        assert all(each.logs[-1].stands_for == () for each in found)
        assert everything(storage, clock) == rows


# -- when --------------------------------------------------------------------------------------------------------------


def test_only_slices_with_enough_new_logs_are_taken():
    storage, clock = begin()
    assert opened(storage, clock).schedule_log_compaction(blocks=7) is None
    time = opened(storage, clock).schedule_log_compaction()  # 5: four logs of partition b are too few
    found = opened(storage, clock)._context.active.read_compaction_plan(
        time, opened(storage, clock).timeline.find(time).action
    )
    assert [each.partition_path for each in found.operations] == ["a"]
    assert opened(storage, clock).schedule_log_compaction(blocks=5) is None  # it is planned
    opened(storage, clock).run_log_compaction()
    opened(storage, clock).upsert(batch(WRITES[0]))
    assert [r.files for r in opened(storage, clock).compact_logs(blocks=2)] == [1]  # b
    assert [r.files for r in opened(storage, clock).compact_logs(blocks=1)] == [1]  # a


@pytest.mark.parametrize("more", [{"hoodie.log.compaction.inline": "true"}, {"hoodie.log.compaction.enable": "true"}])
def test_writers_do_it_when_it_is_due(more):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    options = {**more, "hoodie.log.compaction.blocks.threshold": "2"}
    if "hoodie.log.compaction.enable" in more:
        options["hoodie.datasource.compaction.async.enable"] = "true"
    opened(storage, clock, options).upsert(batch(FIRST))
    counts = []
    for number, rows in enumerate(WRITES):
        opened(storage, clock, options).upsert(batch([*rows, Input("k7", "b", number, 60)]))
        wait_for_background()
        timeline = opened(storage, clock).timeline
        counts.append((len(timeline.compactions), len(timeline.log_compactions)))
    if "hoodie.log.compaction.inline" in more:
        assert [logs for _, logs in counts] == [0, 1, 1, 2, 2]
    else:
        assert counts[-1][1] == 2
    assert snapshot_of(opened(storage, clock))[-1][2] == 4


def test_a_compaction_counts_it_as_a_delta_commit():
    """As Apache Hudi does: integration/test_log_compaction_with_hudi.py."""
    for most, due in ((10, True), (11, False)):
        storage, clock = begin()  # seven delta commits
        opened(storage, clock).compact_logs(blocks=3)
        options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": str(most)}
        for number in range(2):
            table = opened(storage, clock, options)
            table.upsert(batch([Input("k7", "b", number, 60)]))
            assert bool(table.timeline.compactions) is (due and number == 1)


def test_writers_may_only_plan_it():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    options = {
        "hoodie.log.compaction.enable": "true",
        "hoodie.compact.schedule.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "100",
        "hoodie.log.compaction.blocks.threshold": "2",
    }
    opened(storage, clock, options).upsert(batch(FIRST))
    for rows in WRITES[:4]:
        opened(storage, clock, options).upsert(batch(rows))
    table = opened(storage, clock)
    assert not table.timeline.log_compactions
    pending = [i.time for i in table.pending_log_compactions()]
    planned = list(table._context.snapshot().view.pending_log_compactions().values())
    assert sorted(planned) == pending != []  # no file group twice
    assert [r.instant for r in table.run_log_compaction()] == pending


@pytest.mark.parametrize("enable", ["true", "false"])
def test_a_services_job_does_it_where_an_option_asks(enable):
    storage, clock = begin()
    options = {"hoodie.log.compaction.enable": enable, "hoodie.compact.inline.max.delta.commits": "100"}
    job = opened(storage, clock, options).services(options=options)
    found = job.run_once()
    assert not found.errors
    assert len(opened(storage, clock).timeline.log_compactions) == (enable == "true")


def test_tables_that_it_is_not_for():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch(FIRST))
    with pytest.raises(OptionError, match="COPY_ON_WRITE: it has no logs"):
        opened(storage, clock).compact_logs(blocks=3)
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    storage, clock = new_table(table_type="MERGE_ON_READ", more=payload)
    opened(storage, clock).upsert(batch(FIRST))
    with pytest.raises(OptionError, match=r"field by field .*`hoodie compaction run PATH`"):
        opened(storage, clock).compact_logs(blocks=3)


# -- beside others -----------------------------------------------------------------------------------------------------


def test_writes_that_overtake_it_count_after_it():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)
    later = opened(storage, clock).upsert(batch(LAST)).instant
    before = everything(storage, clock)
    (result,) = opened(storage, clock).run_log_compaction()
    assert result.instant == time < later
    assert everything(storage, clock) == before
    # The log of the newer write is none of those that it stands for.
    for each in opened(storage, clock)._context.snapshot().view.latest_slices():
        counted = counted_logs(each.logs, opened(storage, clock).timeline.visible())
        assert counted.by == time
        assert len(counted.logs) == 2
        assert len(counted.skipped) == len(each.logs) - 2


class Meddling(LocalEngine):
    """Lets somebody else act while a pending instant is worked on."""

    def __init__(self, act):
        super().__init__(1)
        self.act, self.labels = act, []

    def within(self, memory_bytes):
        return self

    def run(self, fn, tasks, *, label, at_once=1):
        self.labels.append(label)
        found = super().run(fn, tasks, label=label)
        self.act()
        return found


def test_a_writer_at_work_meanwhile_does_not_write_again():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)

    def run_beside():
        if opened(storage, clock).timeline.pending_writes:
            opened(storage, clock).run_log_compaction()

    engine = Meddling(run_beside)
    table = HoodieTable(replace(opened(storage, clock)._context, engine=engine))
    result = table.upsert(batch(LAST))
    timeline = opened(storage, clock).timeline
    assert time in timeline.log_compactions
    assert len(engine.labels) == len(set(engine.labels))  # each step once
    assert {row[-1] for row in snapshot_of(opened(storage, clock)) if row[0] == "k1"} == {result.instant}


def test_one_that_is_being_run_is_left_alone():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)
    refused = []

    def try_beside():
        for act in ("rollback", "run_log_compaction"):
            with pytest.raises(CommitConflictError):
                getattr(opened(storage, clock), act)(time)
            refused.append(act)

    table = HoodieTable(replace(opened(storage, clock)._context, engine=Meddling(try_beside)))
    assert [r.instant for r in table.run_log_compaction()] == [time]
    assert len(refused) == 2


def test_what_a_compaction_or_an_overwrite_has_taken_is_left_out():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)
    opened(storage, clock).insert_overwrite(batch([Input("k0", "a", 1, 1)]))
    rows = snapshot_of(opened(storage, clock))
    (result,) = opened(storage, clock).run_log_compaction()
    assert (result.instant, result.files) == (time, 1)
    assert snapshot_of(opened(storage, clock)) == rows


def test_a_plan_of_which_nothing_is_left_is_taken_back():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)
    opened(storage, clock).compact()
    (result,) = opened(storage, clock).run_log_compaction(time)
    assert (result.instant, result.operation) == (None, WriteOperation.LOG_COMPACT)
    assert not opened(storage, clock).timeline.pending()
    assert leftovers(storage) == []
    with pytest.raises(InstantNotFoundError):
        opened(storage, clock).run_log_compaction(time)


def test_a_compaction_that_is_scheduled_meanwhile_merges_the_same_rows():
    storage, clock = begin()
    rows = snapshot_of(opened(storage, clock))
    opened(storage, clock).schedule_log_compaction(blocks=1)
    opened(storage, clock).schedule_compaction()
    (result,) = opened(storage, clock).run_log_compaction()
    assert result.instant is None
    assert opened(storage, clock).schedule_log_compaction(blocks=1) is None
    opened(storage, clock).run_compaction()
    assert snapshot_of(opened(storage, clock)) == rows


def test_a_clustering_leaves_its_file_groups_alone_and_it_those_of_a_clustering():
    storage, clock = begin()
    opened(storage, clock).schedule_log_compaction(blocks=1)
    assert opened(storage, clock).schedule_clustering(["val"]) is None
    opened(storage, clock).run_log_compaction()
    assert opened(storage, clock).schedule_clustering(["val"]) is not None
    opened(storage, clock).upsert(batch([]))
    assert opened(storage, clock).compact_logs(blocks=1) == []


def test_the_old_logs_stay_until_the_slice_is_cleaned():
    storage, clock = begin()
    logs = [i.path for i in storage.list("", recursive=True) if ".log." in i.path]
    opened(storage, clock).compact_logs(blocks=1)
    opened(storage, clock).clean(retain_commits=1)
    assert all(storage.exists(path) for path in logs)
    opened(storage, clock).compact()
    opened(storage, clock).upsert(batch(LAST))
    opened(storage, clock).clean(retain_commits=1)
    assert not any(storage.exists(path) for path in logs)


def test_archived_commits_and_archived_log_compactions():
    storage, clock = begin()
    rows = snapshot_of(opened(storage, clock))
    opened(storage, clock).compact_logs(blocks=1)
    opened(storage, clock).archive(min_commits=2)
    assert snapshot_of(opened(storage, clock)) == rows
    for number in range(4):
        opened(storage, clock).upsert(batch([Input("k7", "b", number, 50 + number)]))
        opened(storage, clock).archive(FREELY, min_commits=2)
    assert not opened(storage, clock).timeline.log_compactions
    assert [row for row in snapshot_of(opened(storage, clock)) if row[0] != "k7"] == [r for r in rows if r[0] != "k7"]
    check_scan_files(opened(storage, clock))
    rows = snapshot_of(opened(storage, clock))
    assert opened(storage, clock).compact_logs(blocks=1)
    assert snapshot_of(opened(storage, clock)) == rows
    opened(storage, clock).compact()
    assert snapshot_of(opened(storage, clock)) == rows


# -- taken back --------------------------------------------------------------------------------------------------------


def test_a_log_compaction_is_rolled_back_and_restored_over():
    storage, clock = begin()
    before = everything(storage, clock)
    (result,) = opened(storage, clock).compact_logs(blocks=1)
    assert opened(storage, clock).rollback(result.instant) == [result.instant]
    assert everything(storage, clock) == before
    opened(storage, clock).compact_logs(blocks=1)
    opened(storage, clock).upsert(batch(LAST))
    target = opened(storage, clock).timeline.commits[2].time
    opened(storage, clock).restore(target)
    assert snapshot_of(opened(storage, clock)) == before["as of", target]
    for number in range(4):  # past the instants that are gone: blocks are told by them
        opened(storage, clock).upsert(batch([Input("k7", "b", number, 50)]))
        opened(storage, clock).archive(FREELY, min_commits=1)
    rows = [row for row in snapshot_of(opened(storage, clock)) if row[0] != "k7"]
    assert rows == [row for row in before["as of", target] if row[0] != "k7"]


def died_when_published(storage, clock):
    """A log compaction whose files have their names, and that is not completed; gives its instant."""

    class Dies(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".deltacommit"):
                raise InjectedFault("the process died")
            super().create_new(path, data, via=via, durable=durable)

    with pytest.raises(InjectedFault):
        opened(Dies(storage), clock).compact_logs(blocks=1)
    (pending,) = opened(storage, clock).timeline.pending()
    return pending.time


@DIES_UNDECIDED
def test_a_dead_one_is_run_again_and_what_it_left_does_not_count_twice():
    storage, clock = begin()
    before = everything(storage, clock)
    time = died_when_published(storage, clock)
    assert everything(storage, clock) == before
    opened(storage, clock).upsert(batch(LAST))  # takes the claim back, and names the file that was left
    (pending,) = opened(storage, clock).timeline.pending()
    assert (pending.time, pending.state) == (time, State.REQUESTED)
    assert not row_copies_of(storage).get(time)
    rows = everything(storage, clock)
    (result,) = opened(storage, clock).run_log_compaction()
    assert result.instant == time
    assert everything(storage, clock) == rows
    opened(storage, clock).compact()
    assert snapshot_of(opened(storage, clock)) == rows["now"]


@DIES_UNDECIDED
def test_a_compaction_does_not_wait_for_a_dead_one():
    storage, clock = begin()
    rows = snapshot_of(opened(storage, clock))
    died_when_published(storage, clock)
    assert opened(storage, clock).compact()
    assert snapshot_of(opened(storage, clock)) == rows
    (result,) = opened(storage, clock).run_log_compaction()
    assert result.instant is None
    assert snapshot_of(opened(storage, clock)) == rows


@DIES_UNDECIDED
def test_what_a_dropped_one_left_never_counts():
    storage, clock = begin()
    before = everything(storage, clock)
    target = opened(storage, clock).timeline.commits[1].time
    time = died_when_published(storage, clock)
    opened(storage, clock).upsert(batch(LAST))  # its commit names the file that was left
    assert opened(storage, clock).rollback(time, dry_run=True).undone == (time,)
    assert opened(storage, clock).rollback(time) == [time]
    assert not opened(storage, clock).timeline.pending()
    opened(storage, clock).restore(target)
    for number in range(4):
        opened(storage, clock).upsert(batch([Input("k7", "b", number, 50)]))
        opened(storage, clock).archive(FREELY, min_commits=1)
    assert opened(storage, clock).timeline.start > time
    rows = [row for row in snapshot_of(opened(storage, clock)) if row[0] != "k7"]
    assert rows == [row for row in before["as of", target] if row[0] != "k7"]


def test_memory_bounds_what_is_held():
    storage, clock = begin()
    rows = everything(storage, clock)
    cramped = {"hoodie.memory.compaction.max.size": "100"}
    tuning = replace(TUNING, least_room_bytes=1)
    opened(storage, clock, cramped, tuning=tuning).compact_logs(blocks=1)
    assert everything(storage, clock) == rows
    kinds = [block.kind for block in blocks_of(storage, opened(storage, clock))["a"]]
    assert len(kinds) > 2  # part by part


def test_columns_that_came_after_the_plan_are_none_of_its_moment():
    storage, clock = begin()
    time = opened(storage, clock).schedule_log_compaction(blocks=1)
    more = batch(LAST)
    opened(storage, clock).upsert(more.append_column("more", more.column("val")))
    before = opened(storage, clock).scan().to_arrow().sort_by("id")
    opened(storage, clock).run_log_compaction()
    assert opened(storage, clock).scan().to_arrow().sort_by("id") == before
    assert "more" not in opened(storage, clock).scan(as_of=time).to_arrow().column_names
    opened(storage, clock).upsert(batch(WRITES[0]), {"hoodie.write.set.null.for.missing.columns": "true"})
    (result,) = opened(storage, clock).compact_logs(blocks=1)
    assert "more" in opened(storage, clock).scan(as_of=result.instant).to_arrow().column_names


def test_columns_that_came_later():
    storage, clock = begin()
    table = opened(storage, clock)
    more = batch(WRITES[0])
    more = more.append_column("more", more.column("val"))
    table.upsert(more)
    before = opened(storage, clock).scan().to_arrow().sort_by("id").to_pylist()
    opened(storage, clock).compact_logs(blocks=1)
    assert opened(storage, clock).scan().to_arrow().sort_by("id").to_pylist() == before
    assert {row["more"] for row in before} == {None, 101}


def test_blocks_with_some_columns_wait_for_a_compaction(tmp_path):
    path = copy_golden("v9_partial_updates", tmp_path).path
    table = hoodie.open_table(path)
    rows = sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert rows
    assert [each.instant for each in table.compact_logs(blocks=1)] == [None]
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == rows
    assert not table.timeline.pending()
    table.compact()
    assert sorted(map(str, table.scan(query="read_optimized").to_arrow().to_pylist())) == rows
