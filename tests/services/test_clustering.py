"""Clustering: what moves, what stays as it was, and what happens beside writers, other services, and when a runner dies."""

import logging
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    HoodieError,
    InstantNotFoundError,
    OptionError,
    StorageError,
)
from hoodie.filegroup.cluster import run_join
from hoodie.format.clustering_plan import encode_clustering_plan
from hoodie.format.plan_avro import encode_rollback_metadata, encode_rollback_plan
from hoodie.model import arrow_bytes
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.payloads import RollbackMetadata, RollbackPlan, RollbackRequest
from hoodie.services.clustering import CLUSTERING
from hoodie.services.inline import wait_for_background
from hoodie.storage.cache import Cache
from hoodie.table import HoodieTable
from hoodie.txn.transaction import Transaction
from hoodie.undo.recovery import take_back
from hoodie.write.attempt import ClusteringInTheWayError
from tests.effort import long_but
from tests.golden_tables import copy_golden
from tests.memory_tables import (
    Input,
    batch,
    copy_of,
    keys,
    leftovers,
    new_table,
    opened,
    plain,
    snapshot_of,
    stray_files,
)
from tests.rows import rows_of

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
APART = {"hoodie.parquet.small.file.limit": "0"}
ALLOW = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}
LAYOUTS = ["linear", "z-order", "hilbert"]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def filled(kind, turns=4, options=None):
    """Each turn makes a file group in each of two partitions."""
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock, APART | (options or {}))
    for turn in range(turns):
        table.upsert(batch([Input(f"{turn}-{n}", "ab"[n % 2], (7 * n + turn) % 10, turn) for n in range(10)]))
    return storage, clock, table


def groups(table, part):
    return {s.group.file_id for s in table._context.snapshot().view.latest_slices([part])}


def in_files(table, part):
    """The values of each file of a partition, the files in the order of their first values."""
    found = table.scan(columns=["val", "_hoodie_file_name"], where=[("part", "=", part)]).to_arrow().to_pylist()
    files = {}
    for row in found:
        files.setdefault(row["_hoodie_file_name"], []).append(row["val"])
    return sorted(files.values())


def test_rows_are_sorted_over_files_that_do_not_overlap_and_stay_what_they_were(kind):
    storage, _, table = filled(kind)
    before = snapshot_of(table)
    (result,) = table.cluster(sort_by=["val"], target_file_mb=0.006)
    assert snapshot_of(table) == before
    assert result.operation is WriteOperation.CLUSTER
    assert result.replaced == 8
    for part in "ab":
        files = in_files(table, part)
        assert len(files) > 1
        assert [value for file in files for value in file] == sorted(value for file in files for value in file)
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


def test_many_rows_are_cut_into_ranges_and_sorted_range_by_range(kind):
    storage, _, table = filled(kind, turns=6)
    table.upsert(batch([Input("0-0", "a", None, 9), Input("1-1", "b", None, 9)]))
    before = snapshot_of(table)
    few = replace(table._context, tuning=replace(table._context.tuning, sorted_bytes=1))
    HoodieTable(few, APART).cluster(sort_by=["val"], target_file_mb=0.006)
    assert snapshot_of(table) == before
    for part in "ab":
        files = in_files(table, part)
        values = [value for file in sorted(files, key=lambda file: (file[0] is None, file[0])) for value in file]
        assert len(files) > 1
        assert values == sorted(values, key=lambda value: (value is None, value))
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("columns", [["text"], ["text", "val"]])
def test_rows_that_are_far_larger_than_their_files_are_cut_into_ranges(kind, layout, columns, monkeypatch):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    number = np.random.default_rng(1).permutation(400)
    texts = [f"{n % 7}{'x' * 10_000}" for n in number]
    table.upsert(pa.table({"id": number.astype(str), "part": ["a"] * 400, "val": number, "ts": number, "text": texts}))
    (file,) = table.files()
    few = replace(table._context.tuning, sorted_bytes=file.size_bytes + 1)
    ranges = []
    monkeypatch.setattr(
        "hoodie.services.clustering.run_join",
        lambda storage, context, task: ranges.append(task.ranges) or run_join(storage, context, task),
    )
    monkeypatch.setattr(arrow_bytes, "MOST_BYTES", 30_000)  # as if an array held no more, in each range
    before = table.scan(meta_columns=True).to_arrow().drop_columns("_hoodie_file_name").sort_by("val")
    HoodieTable(replace(table._context, tuning=few)).cluster(sort_by=columns, layout=layout)
    assert sum(map(len, ranges)) > 1
    after = table.scan(meta_columns=True).to_arrow().drop_columns("_hoodie_file_name")
    assert after.sort_by("val").equals(before)
    if layout == "linear":
        found = after.select(columns).to_pylist()
        assert found == sorted(found, key=lambda row: tuple(row.values()))


@pytest.mark.parametrize("layout", ["z-order", "zorder", "hilbert"])
@pytest.mark.parametrize("sorted_bytes", long_but([1 << 26], [1, 1 << 26]))
def test_a_curve_serves_filters_on_each_column(tmp_path, layout, sorted_bytes):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    side = 64
    table.bulk_insert(
        pa.table(
            {
                "id": list(range(side * side)),
                "x": [f"{(n * 37) % side:03d}" for n in range(side * side)],
                "y": [float(n // side) for n in range(side * side)],
            }
        )
    )
    size = sum(f.size_bytes for f in table.files()) if hasattr(table.files()[0], "size_bytes") else 60_000
    few = HoodieTable(replace(table._context, tuning=replace(table._context.tuning, sorted_bytes=sorted_bytes)))
    few.cluster(sort_by=["x", "y"], layout=layout, target_file_mb=size / 16 / 2**20)
    for where in ("x = '011'", "y = 40"):
        pruning = table.scan(where=where).plan.pruning
        assert pruning.total >= 12
        assert pruning.after_statistics <= pruning.total * 0.55, where
        assert len(table.scan(where=where).to_arrow()) == side


def test_without_columns_small_files_are_put_together_and_one_alone_is_left(kind):
    _, _, table = filled(kind)
    before = snapshot_of(table)
    (result,) = table.cluster()
    assert (result.files, result.replaced) == (2, 8)
    assert snapshot_of(table) == before
    assert table.cluster() == []


def test_logs_are_merged_and_deleted_rows_are_gone():
    _, _, table = filled("MERGE_ON_READ")
    table.upsert(batch([Input("0-0", "a", 77, 9)]))
    table.delete(keys([Input("1-0", "a")]))
    before = snapshot_of(table)
    table.cluster()
    assert snapshot_of(table) == before
    assert plain(table.scan(query="read_optimized", meta_columns=True)) == before


def test_pulls_feeds_and_moments_before_and_after_show_the_same_rows(kind):
    _, _, table = filled(kind)
    commits = [i.time for i in table.timeline.commits]
    pulled = plain(table.changes(since=commits[1], meta_columns=True))
    feed = table.changes(since=commits[0], images="cdc").to_arrow().num_rows
    then = {time: plain(table.scan(as_of=time, meta_columns=True)) for time in commits}
    (result,) = table.cluster(sort_by="val")
    assert plain(table.changes(since=commits[1], meta_columns=True)) == pulled
    assert table.changes(since=commits[0], images="cdc").to_arrow().num_rows == feed
    assert table.changes(since=commits[-1]).to_arrow().num_rows == 0
    for time in commits:
        assert plain(table.scan(as_of=time, meta_columns=True)) == then[time]
    assert plain(table.scan(as_of=result.instant, meta_columns=True)) == then[commits[-1]]


def test_a_pending_clustering_holds_back_neither_pulls_nor_moments(kind):
    _, _, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    last = table.upsert(batch([Input("new", "a")]))
    assert ("new", "a") in {
        row[:2] for row in plain(table.changes(since=table.timeline.commits[-2].time, meta_columns=True))
    }
    assert table.scan(as_of=last.instant).to_arrow().num_rows == 41


def test_where_chooses_partitions_and_takes_no_other_columns(kind):
    _, _, table = filled(kind)
    before = groups(table, "b")
    (result,) = table.cluster(sort_by="val", where="part = 'a'")
    assert result.replaced == 4
    assert groups(table, "b") == before
    with pytest.raises(OptionError, match="column 'val' makes none: name part"):
        table.cluster(where="val > 3")
    with pytest.raises(OptionError, match="by what it computes"):
        table.cluster(where="NOT (part = 'a' AND lower(part) = 'b')")
    assert table.cluster(where="part = 'nowhere'") == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sort_by": "city"}, "no column 'city'"),
        ({"sort_by": "val", "layout": "peano"}, "layout='peano' is not one of linear"),
        ({"sort_by": []}, "names no column"),
        ({"target_file_mb": 0}, "is not a size"),
        ({"options": {"hoodie.clustering.plan.strategy.class": "org.acme.Mine"}}, "is not one of"),
        ({"options": {"hoodie.clustering.preserve.commit.metadata": "false"}}, "only true is"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_done(asked, said):
    _, _, table = filled("COPY_ON_WRITE", turns=1)
    with pytest.raises(OptionError, match=said):
        table.cluster(**asked)
    assert len(table.timeline) == 1


def test_nested_columns_are_no_order_and_buckets_are_not_clustered(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert([{"id": 1, "tags": ["a"]}])
    with pytest.raises(OptionError, match="cannot be clustered by column 'tags'"):
        table.cluster(sort_by="tags")
    buckets = hoodie.create_table(
        tmp_path / "b",
        record_key="id",
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    )
    buckets.upsert([{"id": 1}])
    with pytest.raises(OptionError, match="has the bucket index"):
        buckets.cluster(sort_by="id")


# -- beside writers ----------------------------------------------------------------------------------------------------


def test_a_write_to_rows_that_are_to_be_moved_is_refused_and_says_what_to_do(kind):
    storage, _clock, table = filled(kind)
    instant = table.schedule_clustering(sort_by="val", where="part = 'a'")
    before = sorted(info.path for info in storage.list("", recursive=True))
    for act in (
        lambda: table.upsert(batch([Input("0-0", "a", 5, 9)])),
        lambda: table.delete(keys([Input("0-0", "a")])),
        lambda: table.insert_overwrite(batch([Input("0-0", "a", 5, 9)])),
        lambda: table.delete_partitions(["a"]),
    ):
        with pytest.raises(
            ClusteringInTheWayError, match=f"clustering {instant} is going to move.*clustering run memory:"
        ):
            act()
        assert sorted(info.path for info in storage.list("", recursive=True)) == before
    table.upsert(batch([Input("0-1", "b", 5, 9), Input("new", "a", 5, 9)]))
    assert len(groups(table, "a")) == 5
    table.run_clustering()
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    assert ("0-0", "a", 5, 9) in {row[:4] for row in snapshot_of(table)}


def test_new_rows_do_not_fill_small_files_that_are_to_be_moved(kind):
    storage, clock, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    packing = opened(storage, clock, {"hoodie.parquet.small.file.limit": "104857600"})
    before = groups(table, "a")
    packing.upsert(batch([Input("new", "a")]))
    assert len(groups(table, "a") - before) == 1
    assert len(table.run_clustering()) == 1


def test_where_writes_may_go_first_the_clustering_fails_and_its_plan_is_dropped(kind):
    storage, _, table = filled(kind, options=ALLOW)
    instant = table.schedule_clustering(sort_by="val")
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    after = snapshot_of(table)
    with pytest.raises(CommitConflictError, match=f"clustering {instant} .*was changed by a write after the plan"):
        table.run_clustering()
    assert table.pending_clusterings() == ()
    assert snapshot_of(table) == after
    assert leftovers(storage) == []
    table.cluster(sort_by="val")
    assert snapshot_of(table) == after


def during_the_run(table, act):
    """Run the pending clustering, and do something when its files are made and not yet published."""
    context = table._context

    class Acting(type(context.engine)):
        def run(self, fn, tasks, *, label, at_once=1):
            results = super().run(fn, tasks, label=label, at_once=at_once)
            act()
            return results

    return HoodieTable(replace(context, engine=Acting(1)), table._options if hasattr(table, "_options") else {})


def test_a_write_that_goes_before_a_running_clustering_wins(kind):
    storage, _clock, table = filled(kind, options=ALLOW)
    table.schedule_clustering(sort_by="val")
    acting = during_the_run(table, lambda: table.upsert(batch([Input("0-0", "a", 55, 9)])))
    with pytest.raises(CommitConflictError):
        acting.run_clustering()
    assert ("0-0", "a", 55, 9) in {row[:4] for row in snapshot_of(table)}
    table.upsert(batch([NEXT := Input("next", "a")]))
    assert len(snapshot_of(table)) == 41, NEXT
    assert table.pending_clusterings() == ()
    assert stray_files(storage, table) == []


def test_inserts_beside_a_running_clustering_disturb_nobody(kind):
    _, _, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    acting = during_the_run(table, lambda: table.upsert(batch([Input("new", "a")])))
    assert len(acting.run_clustering()) == 1
    assert len(snapshot_of(table)) == 41


def test_a_write_that_looked_its_keys_up_before_the_clustering_looks_again(kind):
    _storage, _clock, table = filled(kind)
    table.schedule_clustering(sort_by="val")

    class Late(type(table._context.engine)):
        def run(self, fn, tasks, *, label, at_once=1):
            results = super().run(fn, tasks, label=label, at_once=at_once)
            if "look up" in label and table.pending_clusterings():
                table.run_clustering()
            return results

    late = HoodieTable(replace(table._context, engine=Late(1)), APART)
    late.upsert(batch([Input(f"{turn}-0", "a", 500, 9) for turn in range(4)]))
    found = snapshot_of(table)
    assert len(found) == 40
    assert sum(row[2] == 500 for row in found) == 4
    assert table.pending_clusterings() == ()


def test_two_run_it_and_one_does(kind):
    storage, clock, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    (plan,) = table.pending_clusterings()
    other = opened(storage, clock, APART, cache=Cache())
    left = []

    def beside():
        left.append(other.run_clustering())
        with pytest.raises(CommitConflictError, match="is being run by another process"):
            other.run_clustering(plan.time)

    assert len(during_the_run(table, beside).run_clustering()) == 1
    assert left == [[]]
    with pytest.raises(InstantNotFoundError, match=f"no clustering is pending at instant {plan.time}"):
        other.run_clustering(plan.time)
    assert len(snapshot_of(table)) == 40


def test_a_paused_runner_publishes_nothing_after_its_plan_was_withdrawn(kind):
    storage, clock, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    before = snapshot_of(table)

    def withdrawn():
        mine, _ = copy_of(storage)  # its marks are nobody's there
        opened(mine, clock, APART).rollback()
        storage.restore(mine.snapshot())

    with pytest.raises((CommitConflictError, StorageError)):  # its staging folder is gone
        during_the_run(table, withdrawn).run_clustering()
    assert snapshot_of(table) == before
    assert table.pending_clusterings() == ()
    assert len(table.cluster(sort_by="val")) == 1
    assert snapshot_of(table) == before
    assert stray_files(storage, table) == []


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid("offset overflow"),
        MemoryError(),
        RuntimeError("x"),
        OSError(5, "broken"),
        CorruptFileError("bad page"),
    ],
)
def test_a_clustering_that_fails_takes_its_plan_along_and_stops_no_writer(kind, error, monkeypatch):
    storage, _, table = filled(kind)
    before = snapshot_of(table)

    def fail(*_):
        raise error

    monkeypatch.setattr("hoodie.services.clustering.run_cluster", fail)
    with pytest.raises((HoodieError, OSError, MemoryError)) as raised:
        table.cluster(sort_by="val")
    assert table.pending_clusterings() == ()
    if not isinstance(error, HoodieError | OSError | MemoryError):
        assert "The plan was dropped: schedule another one" in str(raised.value)
    assert snapshot_of(table) == before
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


def test_an_interrupted_clustering_stops_no_writer(kind, monkeypatch):
    _, _, table = filled(kind)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hoodie.services.clustering.run_cluster", interrupt)
    with pytest.raises(KeyboardInterrupt):
        table.cluster(sort_by="val")
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    assert table.pending_clusterings() == ()


# -- beside other services ---------------------------------------------------------------------------------------------


def test_a_clustering_whose_runner_died_is_withdrawn_by_the_next_write_and_run_again_by_whoever_runs_it(kind):
    _storage, _clock, table = filled(kind)
    instant = table.schedule_clustering(sort_by="val")
    claimed = Transaction.claim(table._context, Instant(instant, Action.CLUSTERING, State.REQUESTED))
    claimed.heartbeat.abandon()
    assert len(table.run_clustering()) == 1
    table.upsert(batch([Input("more", "a")]))
    instant = table.schedule_clustering(sort_by="val", target_file_mb=0.006)
    claimed = Transaction.claim(table._context, Instant(instant, Action.CLUSTERING, State.REQUESTED))
    claimed.heartbeat.abandon()
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    assert table.pending_clusterings() == ()
    assert not [i for i in table.timeline if i.action is Action.ROLLBACK]


def test_compactions_and_clusterings_leave_each_others_files_alone():
    _, _, table = filled("MERGE_ON_READ")
    table.upsert(batch([Input("0-0", "a", 5, 9), Input("0-1", "b", 5, 9)]))
    table.schedule_clustering(sort_by="val", where="part = 'a'")
    table.schedule_compaction()
    (compaction,) = table.pending_compactions()
    plan = table._context.active.read_compaction_plan(compaction.time)
    assert {operation.partition_path for operation in plan.operations} == {"b"}
    table.schedule_clustering(sort_by="val", where="part = 'b'")
    named = {
        g.file_id
        for p in table.pending_clusterings()
        for c in table._context.active.read_clustering_plan(p.time).groups
        for g in c.slices
    }
    assert not named & {operation.file_id for operation in plan.operations}
    before = snapshot_of(table)
    table.run_compaction()
    table.run_clustering()
    assert snapshot_of(table) == before


def test_a_plan_is_dropped_by_hand_and_not_while_it_is_run(kind):
    storage, _, table = filled(kind)
    instant = table.schedule_clustering(sort_by="val")
    assert table.rollback() == []
    assert len(table.pending_clusterings()) == 1
    with pytest.raises(CommitConflictError, match="is being run by another process"):
        during_the_run(table, lambda: table.rollback(instant)).run_clustering()
    (left,) = table.pending_clusterings()
    said = table.rollback(left.time, dry_run=True)
    assert (said.undone, said.files, said.updated) == ((instant,), 0, 0)
    assert table.pending_clusterings() == (left,)
    assert table.rollback(left.time) == [instant]
    assert table.pending_clusterings() == ()
    table.upsert(batch([Input("0-0", "a", 5, 9)]))
    assert leftovers(storage) == []


def test_whoever_comes_late_to_a_dead_claim_finds_what_others_made_of_it(kind):
    _storage, _, table = filled(kind)
    instant = table.schedule_clustering(sort_by="val")
    assert take_back(table._context, CLUSTERING, instant), "others have taken it back: it is requested"
    table.rollback(instant)
    assert not take_back(table._context, CLUSTERING, instant), "others have dropped it"


def test_files_of_a_pending_clustering_are_not_cleaned_and_replaced_ones_are(kind):
    _storage, _, table = filled(kind)
    table.schedule_clustering(sort_by="val")
    for turn in range(3):
        table.upsert(batch([Input(f"new{turn}", "a")]))
    table.clean(retain_commits=1)
    table.run_clustering()
    for turn in range(3):
        table.upsert(batch([Input(f"later{turn}", "a")]))
    before = snapshot_of(table)
    assert table.clean(retain_commits=1).files >= 8
    assert snapshot_of(table) == before


def test_a_clustering_that_was_rolled_back_once_and_then_completed_keeps_its_files_when_it_is_archived():
    """Apache Hudi rolls a failed run back, leaves the plan, and runs it again."""
    _storage, _clock, table = filled("COPY_ON_WRITE")
    instant = table.schedule_clustering(sort_by="val")
    time = table._context.clock.allot(instant)
    requests = (RollbackRequest("a", files_to_delete=()), RollbackRequest("b", files_to_delete=()))
    plan = RollbackPlan(instant, Action.REPLACECOMMIT, requests)
    active = table._context.active
    active.create(Instant(time, Action.ROLLBACK, State.REQUESTED), encode_rollback_plan(plan))
    active.create(Instant(time, Action.ROLLBACK, State.INFLIGHT))
    done = RollbackMetadata(time, 0, ((instant, Action.REPLACECOMMIT),))
    active.create(Instant(time, Action.ROLLBACK, State.COMPLETED), encode_rollback_metadata(done))
    table.run_clustering()
    before = snapshot_of(table)
    for turn in range(6):
        table.insert(batch([Input(f"more{turn}", "c")]))
        table.clean(retain_commits=1)
        table.archive(min_commits=2)
    assert instant not in {i.time for i in table.timeline}
    assert {row[:4] for row in before} <= {row[:4] for row in snapshot_of(table)}


# -- after writes ------------------------------------------------------------------------------------------------------

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "val"}


def clusterings(table):
    return [r.instant for r in table.history() if r.operation is WriteOperation.CLUSTER]


def test_inline_clusterings_run_when_enough_commits_have_come_together(kind):
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3", **SORTED}
    _, _, table = filled(kind, turns=7, options=inline)
    assert len(clusterings(table)) == 2
    assert len(snapshot_of(table)) == 70


def test_scheduled_ones_wait_for_others_and_are_not_scheduled_again_at_once(kind, caplog):
    asked = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "3", **SORTED}
    with caplog.at_level(logging.WARNING, "hoodie"):
        _, _, table = filled(kind, turns=5, options=asked)
    assert len(table.pending_clusterings()) == 1
    assert clusterings(table) == []
    assert not caplog.records
    assert len(table.run_clustering()) == 1


def test_asynchronous_ones_run_in_a_thread_of_the_writer(kind):
    asked = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "4", **SORTED}
    _, _, table = filled(kind, options=asked)
    wait_for_background()
    assert len(clusterings(table)) == 1


# -- Apache Hudi's -----------------------------------------------------------------------------------------------------


def test_a_plan_of_apache_hudi_is_run(tmp_path):
    """As Hudi left it before it ran it."""
    path = copy_golden("v6_replace", tmp_path).path
    timeline = path / ".hoodie"
    last = "20261121075746327"
    for file in timeline.iterdir():
        if file.name[:17] > last and file.name[:17].isdigit():
            file.unlink()
    (timeline / f"{last}.replacecommit").unlink()
    (timeline / f"{last}.replacecommit.inflight").unlink()
    for file in path.rglob(f"*_{last}.parquet"):
        file.unlink()
    table = hoodie.open_table(path)
    assert [i.time for i in table.pending_clusterings()] == [last]
    before = rows_of(table.scan().to_arrow())
    (result,) = table.run_clustering()
    assert result.replaced == 6
    assert rows_of(table.scan().to_arrow()) == before
    for part in "ab":
        qty = [r["qty"] for r in table.scan(where=[("part", "=", part)]).to_arrow().to_pylist()]
        assert qty == sorted(qty, key=lambda q: (q is None, q))


def test_a_plan_that_wants_new_commit_times_is_refused():
    _, _, table = filled("COPY_ON_WRITE")
    context = table._context
    plan = replace(table.preview_clustering(sort_by="val"), keeps_commit_times=False)
    time = context.clock.allot(context.active.load().latest_time)
    data = encode_clustering_plan(plan, uri=context.storage.uri)
    context.active.create(Instant(time, Action.CLUSTERING, State.REQUESTED), data)
    with pytest.raises(hoodie.UnsupportedTableError, match="new commit times"):
        table.run_clustering()
    assert table.rollback(time) == [time]
