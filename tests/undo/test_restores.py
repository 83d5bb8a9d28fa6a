"""Savepoints, restores and the rollback of a commit: what goes, what stays, who is refused, and what others see of it."""

import errno
import threading
from dataclasses import replace

import pytest

from hoodie.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    HoodieError,
    InstantNotFoundError,
    MissingFileError,
)
from hoodie.format.plan_avro import decode_plan, encode_rollback_plan
from hoodie.format.restore_plans import decode_restore_plan, decode_savepoint, encode_restore_plan, encode_savepoint
from hoodie.model.enums import Action, State
from hoodie.model.findings import Level
from hoodie.model.instant import Instant
from hoodie.model.names import name_of
from hoodie.model.payloads import RestorePlan, RollbackPlan
from hoodie.model.streams import StreamBatch
from hoodie.options.parse import parse_write_options
from hoodie.services.clean_plan import plan_clean
from hoodie.services.cleaning import CLEANING
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.undo import restore
from hoodie.undo.undo_rules import preview
from hoodie.write.attempt import Attempt
from tests.effort import in_shares, long_but
from tests.golden_tables import copy_golden
from tests.memory_tables import Input, batch, copy_of, leftovers, new_table, opened, plain, snapshot_of, stray_files

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def rows(turn, count=4):
    return batch([Input(f"k{n}", "ab"[n % 2], turn, turn) for n in range(count)])


class Scene:
    """A table after some commits, and its rows after each."""

    def __init__(self, kind, turns=5, *, compacts_after=(), options=None):
        self.kind = kind
        self.storage, self.clock = new_table(table_type=kind)
        self.table = opened(self.storage, self.clock, options)
        self.instants, self.rows = [], []
        for turn in range(turns):
            self.instants.append(self.table.upsert(rows(turn)).instant)
            self.rows.append(snapshot_of(self.table))
            if turn in compacts_after:
                self.compact()

    def compact(self):
        if self.kind == "MERGE_ON_READ":
            self.table.compact()

    def fresh(self):
        """Another process."""
        return opened(self.storage, self.clock, cache=Cache())


@pytest.mark.parametrize("completed", [True, False])
def test_a_restore_undoes_a_clustering_that_was_run_or_only_planned(kind, completed):
    scene = Scene(kind, turns=2)
    scene.table.insert(batch([Input(f"m{n}", "ab"[n % 2], 1, 1) for n in range(4)]))
    before, saved = snapshot_of(scene.table), scene.table.timeline.latest_commit.time
    if completed:
        assert scene.table.cluster(["val"])
        scene.table.upsert(rows(5))
    else:
        assert scene.table.schedule_clustering(["val"])
    result = scene.table.restore(saved)
    assert len(result.undone) == (2 if completed else 1)
    assert snapshot_of(scene.fresh()) == before
    assert not scene.fresh().pending_clusterings()
    assert leftovers(scene.storage) == stray_files(scene.storage, scene.table) == []
    scene.table.upsert(rows(9))
    assert {row[2] for row in snapshot_of(scene.fresh()) if row[0].startswith("k")} == {9}


def test_a_restore_takes_the_table_back_and_the_next_write_goes_on_from_there(kind):
    scene = Scene(kind, compacts_after=(2,))
    result = scene.table.restore(scene.instants[1])
    assert snapshot_of(scene.table) == snapshot_of(scene.fresh()) == scene.rows[1]
    assert set(scene.instants[2:]) <= set(result.undone)
    assert result.updated == 12
    assert leftovers(scene.storage) == stray_files(scene.storage, scene.table) == []
    after = scene.table.upsert(rows(9))
    assert after.instant > result.instant > scene.instants[-1]
    assert {row[2] for row in snapshot_of(scene.fresh())} == {9}
    scene.compact()
    assert {row[2] for row in snapshot_of(scene.fresh())} == {9}


def test_a_preview_says_what_the_restore_then_does_and_changes_nothing(kind):
    scene = Scene(kind, compacts_after=(2,))
    before = scene.storage.snapshot()
    said = scene.table.restore(scene.instants[1], dry_run=True)
    assert scene.storage.snapshot() == before
    assert said.dry_run
    assert said.instant is None
    done = scene.table.restore(scene.instants[1])
    for name in ("restored_to", "undone", "inserted", "updated", "deleted", "files", "bytes_freed", "logs"):
        assert getattr(said, name) == getattr(done, name), name
    assert said.files > 0
    assert "would undo" in str(said)


def test_restoring_to_the_latest_commit_does_nothing(kind):
    scene = Scene(kind)
    before = scene.storage.snapshot()
    assert scene.table.restore(scene.instants[-1]).instant is None
    assert scene.storage.snapshot() == before


def test_replaced_groups_count_again(kind):
    scene = Scene(kind)
    scene.table.insert_overwrite_table(batch([Input("new", "a", 1, 1)]))
    scene.table.restore(scene.instants[-1])
    assert snapshot_of(scene.fresh()) == scene.rows[-1]
    overwritten = scene.table.insert_overwrite(batch([Input("new", "a", 1, 1)])).instant
    scene.table.rollback(overwritten)
    assert snapshot_of(scene.fresh()) == scene.rows[-1]


def test_a_savepoint_keeps_its_files_and_lets_them_go_when_it_is_dropped(kind):
    scene = Scene(kind, turns=2, compacts_after=(1,))
    saved = scene.table.savepoint(scene.instants[1], comment="kept")
    (found,) = scene.table.savepoints()
    assert (found.instant, found.comment) == (saved, "kept")
    for turn in range(5, 10):
        scene.table.upsert(rows(turn))
        scene.compact()
    scene.table.clean(retain_commits=1)
    assert plain(scene.fresh().scan(as_of=saved, meta_columns=True)) == scene.rows[1]
    scene.table.restore(saved)
    assert snapshot_of(scene.fresh()) == scene.rows[1]
    scene.table.drop_savepoint(saved)
    assert scene.table.savepoints() == []
    assert snapshot_of(scene.fresh()) == scene.rows[1]
    for turn in range(10, 14):
        scene.table.upsert(rows(turn))
        scene.compact()
        scene.table.clean(retain_commits=1)
        assert {row[2] for row in snapshot_of(scene.fresh())} == {turn}
    assert not [info.path for part in "ab" for info in scene.storage.list(part) if f"_{saved}." in info.path]


def test_cleans_after_a_restore_keep_what_is_read_and_take_the_rest(kind):
    scene = Scene(kind, turns=3)
    saved = scene.table.savepoint(scene.instants[0])
    scene.table.clean(retain_commits=1)
    scene.table.restore(saved)
    scene.table.drop_savepoint(saved)
    assert scene.table.savepoint() == saved  # the newest state is whole, whatever the clean before the restore said
    scene.table.drop_savepoint(saved)
    second = scene.table.upsert(rows(7)).instant
    assert scene.fresh().scan(as_of=saved).to_arrow().num_rows == 4
    for turn in range(8, 12):
        scene.table.upsert(rows(turn))
        scene.compact()
    cleaned = scene.table.clean(retain_commits=1)
    assert cleaned.files > 0
    assert {row[2] for row in snapshot_of(scene.fresh())} == {11}
    with pytest.raises(InstantNotFoundError, match="cleaned"):
        scene.fresh().scan(as_of=second)


def test_no_restore_where_files_of_that_state_were_cleaned(kind):
    scene = Scene(kind, turns=6, compacts_after=(1, 2, 3, 4))
    scene.table.clean(retain_commits=2)
    before = scene.storage.snapshot()
    with pytest.raises(InstantNotFoundError, match=r"files of that state were cleaned.*A savepoint keeps"):
        scene.table.restore(scene.instants[0])
    with pytest.raises(InstantNotFoundError, match="were cleaned, so a savepoint cannot keep them"):
        scene.table.savepoint(scene.instants[0])
    assert scene.storage.snapshot() == before


def test_a_savepoint_in_the_way_has_to_be_dropped_first(kind):
    scene = Scene(kind)
    saved = scene.table.savepoint()
    with pytest.raises(CommitConflictError, match=f"{saved}.*Drop the savepoint first"):
        scene.table.restore(scene.instants[0])
    with pytest.raises(CommitConflictError, match="Drop the savepoint first"):
        scene.table.rollback(saved)
    with pytest.raises(CommitConflictError, match="has a savepoint already"):
        scene.table.savepoint()
    scene.table.drop_savepoint(saved)
    with pytest.raises(InstantNotFoundError, match="no savepoint at"):
        scene.table.drop_savepoint(saved)
    scene.table.restore(scene.instants[0])
    assert snapshot_of(scene.fresh()) == scene.rows[0]


def test_only_the_newest_commit_is_rolled_back(kind):
    scene = Scene(kind)
    with pytest.raises(
        CommitConflictError, match=f"came after it. To undo both, restore the table to {scene.instants[2]}"
    ):
        scene.table.rollback(scene.instants[3])
    said = scene.table.rollback(scene.instants[4], dry_run=True)
    assert said.undone == (scene.instants[4],)
    assert scene.table.rollback(scene.instants[4]) == [scene.instants[4]]
    assert snapshot_of(scene.fresh()) == scene.rows[3]
    assert leftovers(scene.storage) == stray_files(scene.storage, scene.table) == []
    with pytest.raises(InstantNotFoundError, match="was rolled back"):
        scene.fresh().changes(since=scene.instants[4])
    for turn in (3, 2, 1, 0):
        scene.table.rollback(scene.instants[turn])
        assert snapshot_of(scene.fresh()) == (scene.rows[turn - 1] if turn else [])
    scene.table.upsert(rows(3))
    assert len(snapshot_of(scene.fresh())) == 4


def test_a_compaction_is_rolled_back_with_its_plan():
    scene = Scene("MERGE_ON_READ")
    (compaction,) = scene.table.compact()
    scene.table.rollback(compaction.instant)
    table = scene.fresh()
    assert snapshot_of(table) == scene.rows[-1]
    assert not table.timeline.pending()
    assert not table.timeline.compactions
    table.upsert(rows(9))
    table.compact()
    assert {row[2] for row in snapshot_of(scene.fresh())} == {9}


def test_who_read_beyond_the_restored_commit_is_told_also_when_others_have_written_since(kind):
    scene = Scene(kind)
    scene.table.restore(scene.instants[1])
    for _ in range(2):
        for act in (
            lambda: scene.fresh().changes(since=scene.instants[3]),
            lambda: scene.fresh().changes(since=scene.instants[0], until=scene.instants[3]),
            lambda: scene.fresh().changes(since=scene.instants[2], images="before_after"),
            lambda: scene.fresh().scan(as_of=scene.instants[2]),
        ):
            with pytest.raises(InstantNotFoundError, match=f"took the table back to {scene.instants[1]}.*go back to"):
                act()
        assert scene.fresh().changes(since=scene.instants[0]).to_arrow().num_rows == 4
        newest = scene.table.upsert(rows(20)).instant
        assert scene.fresh().changes(since=scene.instants[1], until=newest).to_arrow().num_rows == 4


def test_a_living_writer_is_not_restored_over_and_a_dead_one_is_undone(kind):
    scene = Scene(kind)
    begun, goes_on = threading.Event(), threading.Event()

    class Waits(FaultStorage):
        def create_new(self, path, data, **how):
            if path.endswith("commit"):
                begun.set()
                assert goes_on.wait(20)
            return super().create_new(path, data, **how)

    writer = threading.Thread(target=lambda: opened(Waits(scene.storage), scene.clock).upsert(rows(7)))
    # The clean-up of a test that fails here would wait for the thread for ever.
    writer.start()
    try:
        assert begun.wait(20)
        with pytest.raises(HoodieError, match=r"is still being written|was not granted|lock"):
            opened(scene.storage, scene.clock, {"hoodie.write.lock.wait_time_ms": "1"}).restore(scene.instants[0])
    finally:
        goes_on.set()
        writer.join()
    assert {row[2] for row in snapshot_of(scene.fresh())} == {7}


@pytest.mark.parametrize("name", long_but(["rollback"], ["restore", "rollback"]))
@in_shares(3)
def test_an_interrupted_one_is_seen_as_done_and_the_next_write_finishes_it(kind, name, share):
    scene = Scene(kind, turns=6, compacts_after=(2,))
    scene.table.rollback(scene.instants.pop())
    scene.rows.pop()

    def act(table):
        return table.restore(scene.instants[0]) if name == "restore" else table.rollback(scene.instants[-1])

    after = scene.rows[0] if name == "restore" else scene.rows[-2]
    start = scene.storage
    trial, clock = copy_of(start)
    traced = FaultStorage(trial)
    act(opened(traced, clock))
    seen = set()
    for fault in share.of(crash_points(traced.trace)):
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            act(opened(FaultStorage(storage, [fault]), clock))
        bare, clock = copy_of(storage)
        now = snapshot_of(opened(bare, clock, cache=Cache()))
        assert now in (scene.rows[-1], after), fault
        seen.add(now == after)
        opened(bare, clock).upsert(batch([Input("next", "a", 1, 1)]))
        assert [row for row in snapshot_of(opened(bare, clock)) if row[0] != "next"] == now
        assert leftovers(bare) == []
        timeline = opened(bare, clock).timeline
        assert not timeline.pending()
        if name == "restore" and now == after:
            assert timeline.newest(Action.ROLLBACK) is None, fault
    assert True in seen  # the places of a share may all lie behind the plan


def test_two_restores_at_once_end_in_one_of_the_two(kind):
    """The second begins at every step of the first: it waits, is refused, or takes the table further back."""
    scene = Scene(kind)
    trial, clock = copy_of(scene.storage)
    traced = FaultStorage(trial)
    opened(traced, clock).restore(scene.instants[2])
    for call in traced.trace:
        storage, clock = copy_of(scene.storage)
        found = []

        class Meets(FaultStorage):
            def _count(self, verb, path):
                result = super()._count(verb, path)
                if result[0].n == call.n and not found:  # noqa: B023
                    found.append(None)  # noqa: B023
                    try:
                        impatient = {"hoodie.write.lock.wait_time_ms": "0"}
                        opened(storage, clock, impatient, cache=Cache()).restore(scene.instants[1])  # noqa: B023
                        found[0] = True  # noqa: B023
                    except HoodieError:
                        found[0] = False  # noqa: B023
                return result

        opened(Meets(storage), clock).restore(scene.instants[2])
        assert snapshot_of(opened(storage, clock)) == scene.rows[2 if not found[0] else 1], call
        assert leftovers(storage) == []


def test_writes_and_services_wait_for_a_restore_of_a_living_process_and_then_say_so(kind):
    scene = Scene(kind)
    context = scene.table._context
    time = context.clock.allot(context.active.load().latest_time)
    plan = RestorePlan(
        scene.instants[0], tuple((t, context.active.load().commit_at[t].action) for t in reversed(scene.instants[1:]))
    )
    context.active.create(Instant(time, Action.RESTORE, State.REQUESTED), encode_restore_plan(plan))
    context.liveness.hold(time)
    table = opened(scene.storage, scene.clock, {"hoodie.write.lock.wait_time_ms": "100"}, cache=Cache())
    assert snapshot_of(table) == scene.rows[0]
    for act in (
        lambda: table.upsert(rows(8)),
        lambda: table.insert_overwrite(rows(8)),
        table.savepoint,
        lambda: table.restore(scene.instants[0]),
        lambda: table.rollback(scene.instants[0]),
    ):
        with pytest.raises(CommitConflictError, match="being restored to an earlier commit"):
            act()
    assert plan_clean(table._context, table._context.snapshot(), parse_write_options({}).write.cleaning) is None
    context.liveness.abandon(time)
    table.upsert(rows(8))
    assert {row[2] for row in snapshot_of(scene.fresh())} == {8}


def died_when_planned(scene, target):
    """A restore whose process died as soon as its plan stood."""
    trial, clock = copy_of(scene.storage)
    probe = FaultStorage(trial)
    opened(probe, clock).restore(target)
    (at,) = (call.n for call in probe.trace if call.path.endswith(".restore.requested"))
    with pytest.raises(InjectedFault):
        opened(FaultStorage(scene.storage, [Fault(at, "after")]), scene.clock).restore(target)


def test_while_a_restore_that_died_stands_only_file_groups_that_are_left_are_shown():
    scene = Scene("MERGE_ON_READ", turns=1)
    shown = scene.table.files()
    scene.table.insert(batch([Input("new", "c", 1, 1)]))
    scene.table.upsert(batch([Input("new", "c", 2, 2)]))  # a log, of a slice whose base file is to go as well
    died_when_planned(scene, scene.instants[0])
    assert scene.fresh().files() == shown
    scene.table.upsert(batch([Input("next", "d", 1, 1)]))
    assert len(scene.fresh().files()) == len(shown) + 1


def test_who_makes_or_drops_a_savepoint_finishes_a_restore_whose_process_died(kind):
    for act in (lambda table: table.savepoint(), lambda table: table.drop_savepoint(table.savepoints()[-1].instant)):
        scene = Scene(kind)
        scene.table.savepoint(scene.instants[1])
        died_when_planned(scene, scene.instants[2])
        assert scene.fresh().timeline.pending(Action.RESTORE)
        act(scene.fresh())
        assert not scene.fresh().timeline.pending()
        assert snapshot_of(scene.fresh()) == scene.rows[2]
        saved = [each.instant for each in scene.fresh().savepoints()]
        assert saved in ([], scene.instants[1:3])
        assert leftovers(scene.storage) == stray_files(scene.storage, scene.table) == []


ACTIONS = {
    "run_compaction": lambda table: table.run_compaction(),
    "run_clustering": lambda table: table.run_clustering(),
    "run_log_compaction": lambda table: table.run_log_compaction(),
    "compact": lambda table: table.compact(),
    "cluster": lambda table: table.cluster(["val"]),
    "clean": lambda table: table.clean(),
    "expire_partitions": lambda table: table.expire_partitions(days=1),
    "services": lambda table: table.services().run_once(),
    "add_column": lambda table: table.alter.add_column("fresh", "string"),
    "delete": lambda table: table.delete(where="id = 'new'"),
    "upgrade": lambda table: table.upgrade(9),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_whatever_comes_next_finishes_a_restore_whose_process_died(action):
    """With a plan that is older than the commit it goes back to."""
    scene = Scene("MERGE_ON_READ", turns=3)
    assert scene.table.schedule_compaction()
    later = [scene.table.upsert(batch([Input("new", "c", turn, turn)])).instant for turn in range(2)]
    died_when_planned(scene, later[0])
    shown = [row for row in snapshot_of(scene.fresh()) if action != "delete" or row[0] != "new"]
    ACTIONS[action](scene.fresh())
    assert not scene.fresh().timeline.pending(Action.RESTORE)
    assert snapshot_of(scene.fresh()) == shown
    scene.fresh().delete(where="id = 'k1'")
    assert leftovers(scene.storage) == stray_files(scene.storage, scene.fresh()) == []


@pytest.mark.parametrize("undo", ["restore", "rollback"])
def test_file_groups_with_logs_that_were_taken_back_are_compacted_clustered_and_upgraded(undo):
    """All that is left of these logs is a block that disarms them; no active commit names them."""
    for act in (
        lambda table: table.compact(),
        lambda table: table.cluster(["val"]),
        lambda table: table.upgrade(9),
    ):
        scene = Scene("MERGE_ON_READ", turns=2)
        if undo == "restore":
            scene.table.restore(scene.instants[0])
        else:
            scene.table.rollback(scene.instants[1])
        assert all(each.logs for each in scene.fresh()._context.snapshot().view.latest_slices())
        act(scene.fresh())
        assert not any(each.logs for each in scene.fresh()._context.snapshot().view.latest_slices())
        assert snapshot_of(scene.fresh()) == scene.rows[0]


def test_a_savepoint_that_stands_is_no_error_whatever_becomes_of_its_inflight_file(kind):
    scene = Scene(kind, turns=1)
    trial, clock = copy_of(scene.storage)
    probe = FaultStorage(trial)
    opened(probe, clock).savepoint()
    (at,) = (call.n for call in probe.trace if call.path.endswith(".savepoint.inflight"))
    failing = FaultStorage(scene.storage, [Fault(at, error_number=errno.EIO)])
    assert opened(failing, scene.clock).savepoint() == scene.instants[0]
    assert [found.instant for found in scene.fresh().savepoints()] == scene.instants


def test_a_clean_planned_before_a_savepoint_stands_is_planned_anew(kind):
    scene = Scene(kind, turns=3, compacts_after=(0, 1))
    context = scene.table._context
    options = parse_write_options({"hoodie.clean.commits.retained": "1"}).write
    snapshot = context.snapshot()
    planned = plan_clean(context, snapshot, options.cleaning)
    assert planned is not None
    scene.table.savepoint(scene.instants[0])
    assert CLEANING._put(context, snapshot, planned.plan) is None


def test_a_savepoint_of_what_a_clean_is_deleting_is_refused():
    scene = Scene("COPY_ON_WRITE", turns=3)
    context = scene.table._context
    CLEANING.plan(context, parse_write_options({"hoodie.clean.commits.retained": "1"}).write, wait_s=0)
    with pytest.raises((CommitConflictError, InstantNotFoundError), match="clean"):
        scene.table.savepoint(scene.instants[0])
    assert scene.table.savepoints() == []


def test_a_restore_finishes_a_clean_whose_process_died_before_it_looks_at_the_files():
    scene = Scene("COPY_ON_WRITE", turns=4)
    options = parse_write_options({"hoodie.clean.commits.retained": "2"}).write
    CLEANING.plan(scene.table._context, options, wait_s=0)
    scene.table.restore(scene.instants[2])
    assert snapshot_of(scene.fresh()) == scene.rows[2]
    assert not scene.table.timeline.pending()


def test_a_batch_of_a_stream_that_was_undone_is_written_again(kind):
    scene = Scene(kind)
    write = replace(parse_write_options({}).write, stream=StreamBatch("s", 3))

    def once():
        table = opened(scene.storage, scene.clock)
        return table.writer.write(rows(30), rows(30).schema, write.operation, write, engine=table._context.engine)

    first = once()
    assert once().instant is None
    scene.table.restore(scene.instants[-1])
    again = once()
    assert again.instant is not None
    assert again.instant > first.instant
    assert {row[2] for row in snapshot_of(scene.fresh())} == {30}


def test_a_look_up_made_before_a_restore_is_made_again(kind, monkeypatch):
    """Keys that the restore took away were found by it, and would be updated in files that are gone."""
    scene = Scene(kind, turns=1)
    scene.table.insert(batch([Input("gone", "a", 1, 1)]), {"hoodie.parquet.small.file.limit": "0"})
    met = []
    before = Attempt.plan

    def plan(self, located, *how):
        if not met:
            met.append(opened(scene.storage, scene.clock, cache=Cache()).restore(scene.instants[0]))
        return before(self, located, *how)

    monkeypatch.setattr(Attempt, "plan", plan)
    scene.table.upsert(batch([Input("gone", "a", 5, 5), Input("k0", "a", 5, 5)]))
    assert met
    found = {row[0]: row[2] for row in snapshot_of(scene.fresh())}
    assert found == {"k0": 5, "k1": 0, "k2": 0, "k3": 0, "gone": 5}
    assert len(snapshot_of(scene.fresh())) == 5


def test_an_error_of_the_storage_after_the_plan_stands_says_so(kind):
    scene = Scene(kind)
    with pytest.raises(CommitOutcomeUnknownError, match="the next write or service finishes it"):
        opened(FaultStorage(scene.storage, [Fault(5, "before", 5)]), scene.clock).restore(scene.instants[0])
    assert snapshot_of(scene.fresh()) == scene.rows[0]
    assert scene.fresh().rollback() == []
    assert not scene.fresh().timeline.pending()


def test_archived_commits_are_not_undone(kind):
    scene = Scene(kind, turns=6)
    saved = scene.table.savepoint(scene.instants[0])
    beyond = {"hoodie.archive.beyond.savepoint": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    scene.compact()
    scene.table.archive(beyond, min_commits=2)
    assert scene.instants[1] not in scene.table.timeline.completed_times
    with pytest.raises(InstantNotFoundError, match="were archived, and cannot be undone"):
        scene.table.restore(saved)


def test_commits_that_an_archiver_who_died_left_in_both_timelines_are_undone_and_leave_the_archive(kind):
    scene = Scene(kind, turns=6)
    scene.compact()
    few = {"hoodie.compact.inline.max.delta.commits": "1"}
    trial, clock = copy_of(scene.storage)
    probe = FaultStorage(trial)
    assert scene.instants[2] in opened(probe, clock).archive(few, min_commits=2).instants
    put = next(call.n for call in probe.trace if "archive." in call.path)
    with pytest.raises(InjectedFault):
        opened(FaultStorage(scene.storage, [Fault(put, "after")]), scene.clock).archive(few, min_commits=2)
    before = scene.fresh()
    assert before._context.archived().commits
    assert not before.archived_instants()
    saved = before.savepoint(scene.instants[1])
    start, _ = copy_of(scene.storage)
    trial, clock = copy_of(start)
    traced = FaultStorage(trial)
    opened(traced, clock).restore(saved)
    for fault in [None, *crash_points(traced.trace)][::9]:
        storage, clock = copy_of(start)
        if fault is None:
            opened(storage, clock).restore(saved)
        else:
            with pytest.raises(InjectedFault):
                opened(FaultStorage(storage, [fault]), clock).restore(saved)
            opened(storage, clock).rollback()  # finishes what was begun
            opened(storage, clock, cache=Cache()).restore(saved)
        table = opened(storage, clock, cache=Cache())
        assert snapshot_of(table) == scene.rows[1], fault
        assert [each.instant for each in table.history(archived=True)] == scene.instants[:2], fault
        assert {i.time for i in table._context.archived().commits} <= set(scene.instants[:2]), fault
        assert leftovers(storage) == stray_files(storage, table) == []


class BeyondASavepoint:
    """Commits with a file group each. The second has a savepoint, and those after it but the newest were archived."""

    def __init__(self, kind):
        self.storage, self.clock = new_table(table_type=kind)
        for turn in range(6):
            self.fresh().insert(batch([Input(f"k{turn}", "a", turn, turn)]), {"hoodie.parquet.small.file.limit": "0"})
            if turn == 1:
                self.saved = self.fresh().savepoint()
        beyond = {"hoodie.archive.beyond.savepoint": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        self.archived = self.fresh().archive(beyond, min_commits=1).instants
        self.rows = snapshot_of(self.fresh())
        assert len(self.archived) == 4
        assert len(self.rows) == 6

    def fresh(self):
        return opened(self.storage, self.clock, cache=Cache())


def test_no_row_is_lost_and_none_said_to_be_where_all_commits_that_were_not_archived_have_savepoints(kind):
    scene = BeyondASavepoint(kind)
    assert not [each for each in scene.fresh().doctor(deep=True).findings if each.level is Level.DAMAGE]
    scene.fresh().savepoint()
    assert snapshot_of(scene.fresh()) == scene.rows


def test_the_state_of_a_savepoint_is_read_also_where_later_commits_were_archived(kind):
    scene = BeyondASavepoint(kind)
    assert plain(scene.fresh().scan(as_of=scene.saved, meta_columns=True)) == scene.rows[:2]


def test_so_is_a_pull_that_ends_at_it(kind):
    scene = BeyondASavepoint(kind)
    pulled = scene.fresh().changes(until=scene.saved, meta_columns=True)
    assert plain(pulled) == scene.rows[:2]


def test_a_savepoint_that_is_dropped_takes_its_commit_along_where_later_ones_were_archived(kind):
    """Rows of these would not count otherwise: the timeline would begin before them, and they are not on it."""
    scene = BeyondASavepoint(kind)
    before = scene.storage.snapshot()
    history = [each.instant for each in scene.fresh().history(archived=True)]
    traced = FaultStorage(scene.storage)
    opened(traced, scene.clock, cache=Cache()).drop_savepoint(scene.saved)
    assert scene.fresh().savepoints() == []
    assert len(scene.fresh().timeline.commits) == 1
    assert snapshot_of(scene.fresh()) == scene.rows
    assert [each.instant for each in scene.fresh().history(archived=True)] == history
    for fault in crash_points(traced.trace):
        scene.storage.restore(before)
        try:
            opened(FaultStorage(scene.storage, [fault]), scene.clock, cache=Cache()).drop_savepoint(scene.saved)
        except InjectedFault:
            assert snapshot_of(scene.fresh()) == scene.rows
            if scene.fresh().savepoints():
                scene.fresh().drop_savepoint(scene.saved)
        assert snapshot_of(scene.fresh()) == scene.rows
        assert [each.instant for each in scene.fresh().history(archived=True)] == history


@pytest.mark.parametrize("write", ["upsert", "insert_overwrite_table"])
def test_writes_go_on_beside_a_plan_where_the_only_commit_has_a_savepoint(kind, write):
    """The timeline begins with the plan then, and the commit was taken for an archived one."""
    scene = Scene(kind, turns=1, options={"hoodie.clustering.updates.strategy": "allow"})
    scene.table.savepoint()
    planned = scene.table.schedule_clustering(["val"])
    assert scene.table.timeline.start == planned
    getattr(scene.table, write)(rows(7))
    assert {row[2] for row in snapshot_of(scene.fresh())} == {7}


def test_the_bytes_are_those_of_apache_hudi(tmp_path):
    folder = copy_golden("v6_savepoint", tmp_path).path / ".hoodie"
    saved = (folder / "20261121081324984.savepoint").read_bytes()
    found = decode_savepoint(saved, path="s")
    assert (found.user, found.comment, sorted(found.files)) == ("me", "cmt", ["a", "b"])
    assert decode_plan("HoodieSavepointMetadata", encode_savepoint(found), path="s") == decode_plan(
        "HoodieSavepointMetadata", saved, path="s"
    )
    planned = (folder / "20261121081348819.restore.requested").read_bytes()
    plan = decode_restore_plan(planned, path="r")
    assert plan == RestorePlan("20261121081324984", (("20261121081334747", Action.COMMIT),))
    assert decode_plan("HoodieRestorePlan", encode_restore_plan(plan), path="r") == decode_plan(
        "HoodieRestorePlan", planned, path="r"
    )


def test_a_pending_rollback_of_a_completed_commit_hides_it(kind):
    scene = Scene(kind)
    active = scene.table._context.active
    time = scene.table._context.clock.allot(active.load().latest_time)
    plan = RollbackPlan(scene.instants[-1], active.load().latest_commit.action, ())
    active.create(Instant(time, Action.ROLLBACK, State.REQUESTED), encode_rollback_plan(plan))
    assert snapshot_of(scene.fresh()) == scene.rows[-2]


@pytest.mark.parametrize("name", ["restore", "rollback"])
def test_a_query_whose_files_are_taken_back_while_it_is_read_says_by_what_and_to_run_it_again(kind, name):
    scene = Scene(kind, compacts_after=(4,))
    query = scene.fresh().scan()
    undone = scene.table.timeline.latest_commit.time
    scene.table.restore(scene.instants[1]) if name == "restore" else scene.table.rollback(undone)
    newest = scene.table.timeline.newest(Action.RESTORE if name == "restore" else Action.ROLLBACK)
    with pytest.raises(
        MissingFileError, match=rf"deleted by the {name} of instant {newest.time}.*Query the table again"
    ):
        list(query.to_batches())
    assert query.to_arrow() == scene.fresh().scan().to_arrow()  # of which nobody has seen a part: it begins again


def test_other_readers_never_see_a_commit_whose_files_are_gone(kind):
    """They do not look at the plan. So commits go first, newest first, and then their files."""
    scene = Scene(kind, compacts_after=(2,))
    traced = FaultStorage(scene.storage)
    undone = opened(traced, scene.clock).restore(scene.instants[1]).undone
    gone = [call.path for call in traced.trace if call.verb == "delete"]
    commits = [path for path in gone if path.startswith(".hoodie/2") and path.endswith("commit")]
    data = [path for path in gone if path.startswith(("a/", "b/"))]
    assert data
    assert [name_of(path).partition(".")[0] for path in commits] == list(undone)
    assert max(map(gone.index, commits)) < min(map(gone.index, data))


def test_a_write_that_comes_between_the_look_and_the_plan_is_undone_as_well(kind, monkeypatch):
    """Else it would stand on the timeline with the restored commit before it, and with rows of those that were undone."""
    scene = Scene(kind)
    came = []

    def previewed(listing, *args, **how):
        if not came:
            came.append(scene.fresh().upsert(rows(9)).instant)
        return preview(listing, *args, **how)

    monkeypatch.setattr(restore, "preview", previewed)
    result = scene.table.restore(scene.instants[1])
    assert came[0] in result.undone
    assert snapshot_of(scene.fresh()) == scene.rows[1]


def test_rollbacks_of_what_came_after_the_restored_commit_go_with_it(kind, tmp_path):
    """As Apache Hudi does it: golden table v6_savepoint, whose rollback is gone."""
    scene = Scene(kind)
    scene.table.rollback(scene.instants[-1])
    assert scene.table.timeline.newest(Action.ROLLBACK)
    scene.table.upsert(rows(9))
    scene.table.restore(scene.instants[1])
    assert scene.fresh().timeline.newest(Action.ROLLBACK) is None
    names = {file.name for file in (copy_golden("v6_savepoint", tmp_path).path / ".hoodie").iterdir()}
    assert not any("rollback" in name for name in names)
