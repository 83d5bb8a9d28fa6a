"""Random histories of one table in memory beside a plain model of it."""

import contextlib
import random
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedTableError
from hoodie.filegroup.run import run_read
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.tuning import TUNING
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import HoodieTable
from hoodie.timeline.timeline import WRITES
from hoodie.write.attempt import ClusteringInTheWayError
from tests.change_feed import check_feed, check_in_order, is_settled
from tests.effort import SOAK
from tests.followed import Followers
from tests.history_model import Model
from tests.memory_tables import Input, batch, keys, leftovers, new_table, opened, plain, snapshot_of, stray_files
from tests.scan_files import check as check_scan_files
from tests.small_files import SIZED, treat_small_files
from tests.table_version import chosen

IDS = st.sampled_from([f"k{n}" for n in range(5)])
PARTS = st.sampled_from(["a", "b/c"])
TIMES = st.one_of(st.none(), st.integers(-2, 6))
ROWS = st.builds(Input, IDS, PARTS, st.integers(0, 99), TIMES, st.sampled_from([False, False, False, None, True]))
BATCHES = st.lists(ROWS, min_size=1, max_size=8)
DIFFERENT = st.lists(ROWS, min_size=1, max_size=4, unique_by=lambda row: row[:2])
KEYS = st.lists(st.builds(Input, IDS, PARTS, st.just(0), st.just(0), st.just(False)), min_size=1, max_size=4)
PARQUET_BLOCKS = {"hoodie.logfile.data.block.format": "parquet"}
FOLLOWING = {"hoodie.filesystem.view.incr.timeline.sync.enable": "true"}
SOME_PARTITIONS = {"hoodie.compaction.partition.path.regex": "^a$"}
CRAMPED = {"hoodie.memory.compaction.max.size": "200"}
"""Bytes: a compaction puts all on disk, a row or two at a time."""
BEYOND_SAVEPOINTS = {"hoodie.archive.beyond.savepoint": "true", "hoodie.compact.inline.max.delta.commits": "1"}
"""The second, so that the delta commits after which to compact hold back as few as they can."""
STRATEGIES = st.sampled_from(
    ["log_file_size", "log_file_num", "bounded_io", "unbounded", "partition_regex", lambda slices: slices[::-2]]
)
BUDGETS = st.sampled_from([None, 0, 0, 1000])
LAYOUTS = st.sampled_from(["linear", "z-order", "hilbert"])
MOMENTS = st.sampled_from(["before", "torn", "after"])
_PLANNED = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)


class Histories(RuleBasedStateMachine):
    """A table in memory beside its model. Subclasses say what kind of table."""

    table_type = "MERGE_ON_READ"
    ordering: str | None = "ts"
    clusters = True
    model_type: type[Model] = Model
    overwrites = True
    left_out: Mapping[str, str] = {}
    """Options of the table by which its files lack something of its rows."""
    always: Mapping[str, str] = {}
    """Options of whoever opens the table."""
    version = chosen()

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.archived: list[str] = []
        """Commits that left the active timeline."""

    kept_from = ""
    """Older commits were cleaned."""

    @initialize(
        pack=st.booleans(),
        parquet=st.booleans(),
        cheap=st.booleans(),
        cramped=st.booleans(),
        allows=st.booleans(),
        follows=st.booleans(),
    )
    def begin(self, pack, parquet, cheap, cramped=False, allows=False, follows=False):
        treat_small_files(self.patch, as_small=cheap)
        # Hypothesis seeds `random`: file ids are the same each time that it plays this history.
        self.patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=random.getrandbits(128), version=4))
        self.storage, self.clock = self.new_table()
        # Without small files to fill, every batch of new keys makes a file group of its own.
        self.options = dict(self.always) | ({} if pack else {"hoodie.parquet.small.file.limit": "0"})
        if parquet:
            self.options |= PARQUET_BLOCKS
        self.tuning = replace(TUNING if cheap else SIZED, least_room_bytes=1, least_plan_bytes=1)
        if cramped:
            self.options |= CRAMPED
        self.allows = allows
        if allows:
            self.options |= {"hoodie.clustering.updates.strategy": "allow"}
        if follows:
            self.options |= FOLLOWING
        self.followers = Followers(self.storage, f"memory://{secrets.token_hex(16)}")
        self.model = self.model_type(
            event_time=self.ordering is not None, merge_on_read=self.table_type == "MERGE_ON_READ"
        )
        self.fresh = 0
        self.known: list[str] = []
        """Completed commits on the active timeline, in the order of instants."""
        self.recovered = True

    def new_table(self):
        """The storage with an empty table in it, and the clock that tests own; None is the true one."""
        more = {"hoodie.write.table.version": str(int(self.version.version)), **self.left_out}
        return new_table(table_type=self.table_type, ordering=self.ordering, more=more)

    @property
    def says_times(self):
        """Whether rows store the instants of their commits."""
        return "hoodie.populate.meta.fields" not in self.left_out

    def _as_stored(self, rows):
        return rows if self.says_times else sorted(((*row[:-1], None) for row in rows), key=repr)

    # -- writes ------------------------------------------------------------------------------------------------------

    @rule(rows=BATCHES)
    def upsert(self, rows):
        self._write(rows, lambda table: table.upsert(batch(rows)))

    @rule(rows=KEYS)
    def delete(self, rows):
        if self.model.keys or self.known:
            self._write(rows, lambda table: table.delete(keys(rows)), delete=True)

    @rule(count=st.integers(1, 4), part=PARTS, bulk=st.booleans())
    def insert(self, count, part, bulk):
        rows = self._new_rows(count, part)
        self._write(rows, lambda table: (table.bulk_insert if bulk else table.insert)(batch(rows)))

    @rule(rows=BATCHES)
    def partial_upsert(self, rows):
        rows = [row._replace(ts=None, deleted=False) for row in rows]
        some = batch(rows).select(["id", "part", "val"])
        self._write(rows, lambda table: table.upsert(some, partial=True), partial=True)

    @precondition(lambda self: self.overwrites)
    @rule(rows=DIFFERENT)
    def insert_overwrite(self, rows):
        emptied = {row.part for row in rows}
        self._write(rows, lambda table: table.insert_overwrite(batch(rows)), emptied=emptied)

    @precondition(lambda self: self.overwrites)
    @rule(rows=st.one_of(st.just([]), DIFFERENT))
    def insert_overwrite_table(self, rows):
        self._write(rows, lambda table: table.insert_overwrite_table(batch(rows)), emptied=None)

    @rule(part=PARTS, pattern=st.booleans())
    def delete_partitions(self, part, pattern):
        if self.known:
            self._write((), lambda table: table.delete_partitions([f"{part[0]}*" if pattern else part]), emptied={part})

    @precondition(lambda self: self.overwrites)
    @rule(rows=DIFFERENT, at=st.integers(1, 30), moment=MOMENTS)
    def insert_overwrite_dies(self, rows, at, moment):
        emptied = {row.part for row in rows}
        fault = Fault(at, moment)
        self._write(rows, lambda table: table.insert_overwrite(batch(rows)), emptied=emptied, fault=fault)

    @rule(rows=BATCHES, at=st.integers(1, 40), moment=MOMENTS)
    def upsert_dies(self, rows, at, moment):
        self._write(rows, lambda table: table.upsert(batch(rows)), fault=Fault(at, moment))

    @rule(rows=KEYS, at=st.integers(1, 30), moment=MOMENTS)
    def delete_dies(self, rows, at, moment):
        if self.known:
            self._write(rows, lambda table: table.delete(keys(rows)), delete=True, fault=Fault(at, moment))

    # -- compaction --------------------------------------------------------------------------------------------------

    def is_merge_on_read(self):
        return self.table_type == "MERGE_ON_READ"

    @precondition(is_merge_on_read)
    @rule(strategy=STRATEGIES)
    def schedule_compaction(self, strategy="log_file_size"):
        self._table().schedule_compaction(SOME_PARTITIONS, strategy=strategy)
        self._learn((), delete=False)

    @precondition(is_merge_on_read)
    @rule(which=st.integers(0, 10**6), row=ROWS, run=st.booleans())
    def write_again_what_was_deleted_before_a_compaction_was_scheduled(self, which, row, run):
        """Chance alone seldom does this; it once made a second row of a key."""
        rows = self.model.snapshot()
        if rows:
            key, part, *_ = rows[which % len(rows)]
            again = [row._replace(id=key, part=part)]
            self.delete(again)
            self.schedule_compaction()
            self.upsert(again)
            if run:
                self.run_compaction()
                self.upsert(again)

    @precondition(is_merge_on_read)
    @rule()
    def run_compaction(self):
        self._table().run_compaction()
        self._learn((), delete=False)
        assert not self._table().pending_compactions()

    @precondition(is_merge_on_read)
    @rule()
    def run_one_compaction(self):
        waiting = len(self._table().pending_compactions())
        assert len(self._table().run_compaction(budget_s=0)) == min(1, waiting)
        self._learn((), delete=False)
        assert len(self._table().pending_compactions()) == max(0, waiting - 1)

    @precondition(is_merge_on_read)
    @rule(strategy=STRATEGIES, budget=BUDGETS)
    def compact(self, strategy, budget):
        self._table().compact(SOME_PARTITIONS, strategy=strategy, budget_s=budget)
        self._learn((), delete=False)

    @precondition(is_merge_on_read)
    @rule(at=st.integers(1, 30), moment=MOMENTS, budget=BUDGETS)
    def compaction_dies(self, at, moment, budget=None):
        self._write((), lambda table: table.compact(budget_s=budget), fault=Fault(at, moment))

    # -- log compaction ----------------------------------------------------------------------------------------------

    @precondition(is_merge_on_read)
    @rule(blocks=st.integers(1, 3))
    def schedule_log_compaction(self, blocks):
        self._table().schedule_log_compaction(blocks=blocks)
        self.recovered = True
        self._learn((), delete=False)

    @precondition(is_merge_on_read)
    @rule()
    def run_log_compaction(self):
        self._table().run_log_compaction()
        self._learn((), delete=False)
        assert not self._table().pending_log_compactions()

    @precondition(is_merge_on_read)
    @rule(blocks=st.integers(1, 3))
    def compact_logs(self, blocks):
        self._table().compact_logs(blocks=blocks)
        self.recovered = True
        self._learn((), delete=False)

    @precondition(is_merge_on_read)
    @rule(at=st.integers(1, 30), moment=MOMENTS)
    def log_compaction_dies(self, at, moment):
        self._write((), lambda table: table.compact_logs(blocks=1), fault=Fault(at, moment))

    @precondition(is_merge_on_read)
    @rule(which=st.integers(0, 10**6))
    def drop_a_log_compaction(self, which):
        pending = self._table().pending_log_compactions()
        if pending:
            self._table().rollback(pending[which % len(pending)].time)
            self._learn((), delete=False)

    # -- clustering --------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.clusters)
    @rule(part=st.one_of(st.none(), PARTS))
    def schedule_clustering(self, part):
        self._table().schedule_clustering(["val"], where=part and [("part", "=", part)])
        self._learn((), delete=False)

    @precondition(lambda self: self.clusters)
    @rule()
    def run_clustering(self):
        self._run_clusterings()

    @precondition(lambda self: self.clusters)
    @rule(sort_by=st.sampled_from([None, ["val"], ["ts", "id"]]), layout=LAYOUTS, large=st.booleans())
    def cluster(self, sort_by, layout, large):
        self._run_clusterings()
        self._table(sorted_bytes=1 if large else None).cluster(sort_by, layout, target_file_mb=0.003 if large else None)
        self._learn((), delete=False)

    @precondition(lambda self: self.clusters)
    @rule(at=st.integers(1, 30), moment=MOMENTS)
    def clustering_dies(self, at, moment):
        self._run_clusterings()
        self._write((), lambda table: table.cluster(["val"]), fault=Fault(at, moment))

    def _run_clusterings(self):
        """All that are pending; those that a write went before are dropped."""
        while self._table().pending_clusterings():
            before = len(self._table().pending_clusterings())
            try:
                self._table().run_clustering()
            except CommitConflictError:
                assert self.allows
                assert len(self._table().pending_clusterings()) < before
            self._learn((), delete=False)

    # -- cleaning ----------------------------------------------------------------------------------------------------

    @rule(keep=st.integers(1, 6))
    def clean(self, keep):
        if self.known:
            self._table().clean(retain_commits=keep)
            self.recovered = True
            self._learn_clean()

    @rule(keep=st.integers(1, 3), at=st.integers(1, 14), moment=MOMENTS)
    def clean_dies(self, keep, at, moment):
        if self.known:
            try:
                opened(FaultStorage(self.storage, [Fault(at, moment)]), self.clock, self.options).clean(
                    retain_commits=keep
                )
            except InjectedFault:
                self.views_equal_the_model()
            self._learn_clean()
            self.clean(keep)

    def _learn_clean(self):
        table = self._table()
        self._learn((), delete=False)
        self.kept_from = max(self.kept_from, table._context.active.earliest_kept(table.timeline) or "")

    # -- archiving ---------------------------------------------------------------------------------------------------

    @rule(keep=st.integers(1, 4), beyond=st.booleans())
    def archive(self, keep, beyond=False):
        if self.known:
            self._table().archive(BEYOND_SAVEPOINTS if beyond else None, min_commits=keep)
            self._learn((), delete=False)

    @rule(keep=st.integers(1, 3), beyond=st.booleans(), at=st.integers(1, 14), moment=MOMENTS)
    def archive_dies(self, keep, at, moment, beyond=False):
        if self.known:
            faulty = FaultStorage(self.storage, [Fault(at, moment)])
            try:
                opened(faulty, self.clock, self.options).archive(
                    BEYOND_SAVEPOINTS if beyond else None, min_commits=keep
                )
            except InjectedFault:
                self.views_equal_the_model()
            self._learn((), delete=False)

    @rule(rows=BATCHES, which=st.integers(0, 10**6))
    def archive_beyond_a_savepoint(self, rows, which):
        """Chance alone seldom archives what came after the commit of a savepoint."""
        self.savepoint(which)
        for _ in range(2):
            self.upsert(rows)
        self.archive(1, beyond=True)

    # -- savepoints and restores -------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 10**6))
    def savepoint(self, which):
        readable = [time for time in self.known if time >= self.kept_from and time not in self._savepoints()]
        if readable:
            self._table().savepoint(readable[which % len(readable)])

    @rule(which=st.integers(0, 10**6))
    def drop_savepoint(self, which):
        saved = self._savepoints()
        if saved:
            dropped = saved[which % len(saved)]
            # Its commit would have to leave where later ones were archived, and what it replaced may still be there.
            refused = CommitConflictError if self._archived_after(dropped) else ()
            with contextlib.suppress(refused):
                self._table().drop_savepoint(dropped)
            self._learn((), delete=False)  # its commit leaves with it where later ones were archived

    @rule(back=st.integers(0, 4), write=ROWS)
    def restore(self, back, write):
        target = self._target(back)
        if target:
            result = self._table().restore(target)
            self.recovered = True
            self._learn_restore(target, done=result.instant is not None)
            self.upsert([write])

    @rule(back=st.integers(1, 4), at=st.integers(1, 60), moment=MOMENTS)
    def restore_dies(self, back, at, moment):
        target = self._target(back)
        if target and self.recovered:
            try:
                opened(FaultStorage(self.storage, [Fault(at, moment)]), self.clock, self.options).restore(target)
            except InjectedFault:
                self.recovered = False
            gone = [time for time in self.known if time > target]
            there = self._table().timeline.completed_times
            assert not there & set(gone) or there >= set(gone), "some of the commits are gone"
            if not there & set(gone):
                self._learn_restore(target, done=True)
            self.views_equal_the_model()

    @rule(dies=st.booleans(), at=st.integers(1, 16), moment=MOMENTS)
    def roll_back_the_newest(self, dies, at, moment):
        if len(self.known) < 2 or not self.recovered or self._savepoints()[-1:] == self.known[-1:]:
            return
        newest, before = self.known[-1], self.known[-2]
        if before < self.kept_from or any(time > newest for time in self.model.planned) or self._archived_after(before):
            return
        storage = FaultStorage(self.storage, [Fault(at, moment)]) if dies else self.storage
        try:
            opened(storage, self.clock, self.options).rollback(newest)
        except InjectedFault:
            self.recovered = False
        if newest not in self._table().timeline.completed_times:
            self._learn_restore(before, done=True, only=newest)
        self.views_equal_the_model()

    def _savepoints(self):
        return [each.instant for each in self._table().savepoints()]

    def _target(self, back):
        """A commit to go back to; nothing where that would be refused, which has tests of its own."""
        if not self.known:
            return None
        target = self.known[-1 - back % len(self.known)]
        saved = self._savepoints()
        beside = any(time > target for time in saved) or (target < self.kept_from and target not in saved)
        return None if beside or self._archived_after(target) else target

    def _archived_after(self, target):
        """Whether a commit after it has left for the archive."""
        return any(instant.time > target for instant in self._table().archived_instants() if instant.action in WRITES)

    def _learn_restore(self, target, *, done, only=None):
        if not done:
            return
        table = self._table()
        self.model.restored(target) if only is None else self.model.taken_back(only)
        self.known = [instant.time for instant in table.timeline.commits]
        self.kept_from = min(self.kept_from, target)
        self._learn((), delete=False)

    # -- reads -------------------------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 10**6))
    def read_as_of(self, which):
        if self.known and self.recovered:
            time = self.known[which % len(self.known)]
            if time < self.kept_from and time not in self._savepoints():
                with pytest.raises(InstantNotFoundError, match="were cleaned"):
                    self._table().scan(as_of=time)
                return
            assert plain(self._table().scan(as_of=time, meta_columns=True)) == self._as_stored(
                self.model.snapshot(time)
            )

    @rule(first=st.integers(-1, 10**6), last=st.integers(0, 10**6))
    def read_incrementally(self, first, last):
        if self.known and self.recovered:
            end = self.known[last % len(self.known)]
            at = self._positions()
            begins = sorted(time for time in (*self.archived, *self.known) if at[time] <= at[end])
            begin = None if first < 0 else begins[first % len(begins)]
            if self._is_kept(end, at):
                self._check_changes(begin, end)

    @invariant()
    def views_equal_the_model(self):
        table = self._table()
        found = snapshot_of(table)
        assert found == self._as_stored(self.model.snapshot())
        assert len({row[:2] for row in found}) == len(found), "a key is there twice"
        assert plain(table.scan(query="read_optimized", meta_columns=True)) == self._as_stored(
            self.model.read_optimized()
        )
        if self.known and not self.left_out:
            check_scan_files(table)

    @invariant()
    def views_that_follow_show_what_a_listing_shows(self):
        self.followers.check()
        assert snapshot_of(HoodieTable(self.followers.quick)) == self._as_stored(self.model.snapshot())

    @invariant()
    def nothing_is_left_over(self):
        timeline = self._table().timeline
        times = [instant.time for instant in timeline if instant.action is not Action.SAVEPOINT]
        assert times == sorted(set(times))
        if self.recovered:
            pending = timeline.pending()
            assert {i.time for i in pending} == set(self.model.planned)
            assert all(i.action in _PLANNED for i in pending)
            assert leftovers(self.storage) == []
            assert stray_files(self.storage, self._table()) == []

    def teardown(self):
        if hasattr(self, "known"):
            try:
                self._finish()
            finally:
                self.patch.undo()

    def _finish(self):
        table = self._table()
        if not self.recovered:
            table.rollback()
            self.recovered = True
            self._learn(())  # the plan of a clustering that died goes, so that it holds up no writer
            self.views_equal_the_model()
            self.nothing_is_left_over()
        in_pulls = sorted(self.known, key=self._positions().__getitem__)
        for at, end in enumerate(in_pulls):
            if end < self.kept_from:
                continue
            assert plain(table.scan(as_of=end, meta_columns=True)) == self._as_stored(self.model.snapshot(end))
            if self._is_kept(end, self._positions()):
                self._check_changes(in_pulls[at - 1] if at else None, end)
        if self.kept_from or self.archived or not self.says_times:
            return
        check_feed(table)
        ends = [None, *sorted(each.position for each in table.timeline.commits if is_settled(table, each))]
        if len(ends) > 1:
            since, until = sorted(random.Random(str(self.known)).sample(range(len(ends)), 2))
            check_in_order(table, ends[since], ends[until], lambda row: (row["id"], row["part"]))

    # -- what the rules share ----------------------------------------------------------------------------------------

    def _positions(self):
        """Of commits in pulls: their instants, or where the table states that the times when they were completed."""
        table = self._table()
        return {i.time: i.position for i in (*table.archived_instants(), *table.timeline) if i.action in WRITES}

    def _is_kept(self, end, positions):
        """Whether a pull may end there: nothing that was completed later was cleaned for, under an earlier instant."""
        later = [time for time in self.known if positions[time] > positions[end]]
        return min([end, *later]) >= self.kept_from

    def _check_changes(self, begin, end):
        at = self._positions()
        since, until = at.get(begin, begin), at.get(end, end)
        try:
            found = plain(self._table().changes(since=since, until=until, meta_columns=True))
        except UnsupportedTableError:
            assert not self.says_times
            assert begin is not None, "from the beginning all rows are in the range"
            return
        assert found == self._as_stored(self.model.incremental(since, until, lambda time: at.get(time, time))), (
            begin,
            end,
            [str(i) for i in self._table().timeline],
        )

    def _table(self, *, sorted_bytes=None):
        tuning = self.tuning if sorted_bytes is None else replace(self.tuning or TUNING, sorted_bytes=sorted_bytes)
        return opened(self.storage, self.clock, self.options, tuning=tuning)

    def _new_rows(self, count, part):
        self.fresh += count
        return [Input(f"new{self.fresh - n}", part, n, n) for n in range(count)]

    def _write(self, rows, act, *, fault=None, **change):
        """`change`: as `_learn` takes it."""
        if fault is None:
            try:
                result = act(self._table())
            except ClusteringInTheWayError:
                assert not self.allows
                self._run_clusterings()
                result = act(self._table())
            self.recovered = True
            landed = self._learn(rows, **change)
            assert [result.instant] == landed or (result.instant is None and not landed)
            return
        try:
            act(opened(FaultStorage(self.storage, [fault]), self.clock, self.options, tuning=self.tuning))
            self.recovered = True
        except InjectedFault:
            self.recovered = False
        except ClusteringInTheWayError:
            self._run_clusterings()
            return
        self._learn(rows, **change)

    def _learn(self, rows, *, delete=False, partial=False, emptied=()):
        """Take over what has become visible; gives the instants of writes (not of compactions).

        `emptied`: partitions that the rows overwrite (None: the whole table), () for no overwrite.
        """
        table = self._table()
        timeline, active = table.timeline, table._context.active
        landed = []
        self.model.told = frozenset(instant.time for instant in timeline.commits)
        for instant in timeline.pending(*_PLANNED):
            self._learn_plan(active, instant)
        for instant in timeline.commits:
            if instant.time in self.known:
                continue
            if instant.time in timeline.compactions or active.read_commit(instant).operation is WriteOperation.CLUSTER:
                self._learn_plan(active, instant)
                self.model.compacted(instant.time)
            elif instant.time in timeline.log_compactions:
                self._learn_plan(active, instant)
                merged = frozenset(stat.file_id for stat in active.read_commit(instant).stats())
                self.model.log_compacted(instant.time, merged)
            else:
                landed.append(instant.time)
                stats = list(active.read_commit(instant).stats())
                rewritten = frozenset(s.file_id for s in stats if s.log_version is None and s.prev_commit)
                if emptied is None or emptied:
                    self.model.overwrite(instant.time, rows, emptied)
                else:
                    self.model.write(instant.time, rows, delete=delete, rewritten=rewritten, partial=partial)
                assert instant.time > max(self.known, default="")
        pending = {instant.time for instant in timeline.pending()}
        for dropped in self.model.planned.keys() - pending:
            del self.model.planned[dropped]
        there = [instant.time for instant in timeline.commits]
        self.archived = sorted([*self.archived, *(time for time in self.known if time not in there)])
        self.known = there
        assert [r.instant for r in table.history(archived=True)] == sorted(self.archived + self.known)
        for query in ("read_optimized", "snapshot"):
            plan = table.scan(query=query, columns=["id", "part"]).plan
            for task in plan.tasks:
                for found in run_read(self.storage, plan.context, task):
                    rows_of_group = zip(*(column.to_pylist() for column in found.columns), strict=True)
                    self.model.stand_in(rows_of_group, task.slice.group.file_id)
        if there:
            self.model.stood(there[-1])
        return landed

    def _learn_plan(self, active, instant):
        time = instant.time
        if time in self.model.planned:
            return
        if instant.action in (Action.CLUSTERING, Action.REPLACECOMMIT):
            groups = active.read_clustering_plan(time).groups
            ids = {each.file_id for group in groups for each in group.slices}
        else:
            action = Action.COMPACTION if instant.action in (Action.COMPACTION, Action.COMMIT) else Action.LOGCOMPACTION
            ids = {operation.file_id for operation in active.read_compaction_plan(time, action).operations}
        self.model.schedule(time, frozenset(ids))


def play(machine, examples, steps):
    """What soaking finds is kept in `.hypothesis`: the next run of that test begins with it."""
    # To make a failure smaller takes long: only soaking does that.
    how = {
        "phases": tuple(Phase),
        "database": DirectoryBasedExampleDatabase(".hypothesis/examples"),
        "print_blob": True,
    }
    if not SOAK:
        how = {"phases": (Phase.generate,), "derandomize": True}
    effort = settings(max_examples=examples, stateful_step_count=steps, deadline=None, **how)
    run_state_machine_as_test(machine, settings=effort)
