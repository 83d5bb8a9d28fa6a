"""Clustering: put the rows of several file groups in order, in new file groups that take their place.

The plan stands on the timeline as a requested replacecommit. From then on its file groups are not to be changed: writers that
find their keys there are refused, or, where they are told so, go first, and the clustering fails. New file groups may come
beside. Rows keep their commit times, so nobody who pulls sees them twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.engine.base import Engine
from hoodie.engine.local import TASK_BYTES
from hoodie.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    HoodieError,
    OptionError,
    UnsupportedTableError,
)
from hoodie.filegroup.cluster import ARROW_BYTES, run_cluster, run_join, run_sample, run_split, sorted_bytes_of
from hoodie.filegroup.row_order import MAX_CURVE_COLUMNS, can_sort, cuts_of
from hoodie.format.clustering_plan import encode_clustering_plan
from hoodie.index.rings import ring_path
from hoodie.model.clustering import ClusterTask, Cuts, JoinTask, NewBuckets, Order, SampleTask, SplitTask
from hoodie.model.enums import Action, RowOrder, State, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice, total_bytes
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.names import heartbeat_path, hoodie_command, parse_base_file
from hoodie.model.payloads import ClusteringGroup, ClusteringPlan
from hoodie.model.plans import WriteContext, WriteResult
from hoodie.model.results import CommitResult
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.option import key_of, option_name
from hoodie.options.write import WriteOptions
from hoodie.read.where import no_column
from hoodie.services.base import Service
from hoodie.services.clustering_plan import chosen_partitions, plan_clustering
from hoodie.services.log_slices import is_explained, named_by_pending_writes
from hoodie.services.ring_clustering import new_buckets, plan_ring_clustering, refuse_rows_beside
from hoodie.storage.base import Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.critical import under_lock
from hoodie.txn.gate import planned_behind_gate
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.participants import before_removal
from hoodie.txn.transaction import Transaction
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.layout import basis_of, with_layout
from hoodie.write.placement import placement_class
from hoodie.write.publish import commit_metadata, publish_files

log = logging.getLogger("hoodie")

_SAMPLE_ROWS = 50_000
"""Of a group of files, to cut its order into ranges: of a hundred ranges each is then right to a tenth or so."""


class ClusteringService:
    """Clustering as a table service; see `Service`."""

    action = Action.CLUSTERING
    resumes = False

    def require_fit(self, context: TableContext) -> None:
        if not placement_class(context.config).rows_may_move:
            raise OptionError(
                f"table {context.config.name!r} has the bucket index: the hash of a key says in which file group it stands, and a "
                "clustering would move it to another one; nothing was clustered"
            )

    def is_due(self, context: TableContext, options: WriteOptions) -> bool:
        """When enough commits have come together and an option says so."""
        clustering = options.clustering
        if not (clustering.inline or clustering.in_background or clustering.schedules):
            return False
        least = clustering.inline_commits if clustering.inline else clustering.background_commits
        return _commits_since_clustering(context.active, context.active.load(), most=least) >= least

    def in_background(self, options: WriteOptions) -> bool:
        return options.clustering.in_background and not options.clustering.inline

    def only_schedules(self, options: WriteOptions) -> bool:
        return options.clustering.schedules and not (options.clustering.inline or options.clustering.in_background)

    def plan(self, context: TableContext, options: WriteOptions, *, wait_s: float) -> str | None:
        """Put a clustering plan on the timeline; gives its instant, None when there is nothing to put in order.

        File groups that a pending write names are left out, as `CompactionService.plan` has it.

        Raises:
            CommitConflictError: pending writes named every file group all the time. OptionError: a column does not fit.
        """
        context = self._laid_out(context, options)
        return planned_behind_gate(
            context,
            lambda take_what_is_free: _try_to_schedule(context, options, take_what_is_free=take_what_is_free),
            wait_s=wait_s,
            refusal=f"no clustering of table {context.storage.uri} could be scheduled within {wait_s:.0f} s: its file groups are "
            "named by writes in progress; nothing was changed, try again when they are done",
        )

    def run(self, context: TableContext, instant: Instant, options: WriteOptions) -> CommitResult:
        """Put the rows that the plan names in order, and complete as a replacecommit.

        A plan that failed is dropped, whatever the reason: as long as it stands, writes to its file groups are refused.

        Raises:
            CommitConflictError: another process runs it, or a write changed a file group that it names; then the plan is dropped.
        """
        context = self._laid_out(context, options)
        try:
            return _run(context, instant, options)
        except CommitConflictError:
            _drop_if_overtaken(context, instant.time)
            raise
        except (CommitOutcomeUnknownError, UnsupportedTableError):
            raise  # it may have landed; somebody else can run it
        except Exception:
            # What cannot be dropped now, the next write drops: its runner is dead.
            with suppress(HoodieError, OSError):
                drop(context, instant.time)
            raise

    def _laid_out(self, context: TableContext, options: WriteOptions) -> TableContext:
        """With the buckets of a table that Apache Hudi made, which only its files show: its rows must not go anywhere."""
        result = with_layout(context, options.index, basis_of(context))
        self.require_fit(result)
        return result

    def withdraw(self, context: TableContext, instant_time: InstantTime) -> bool:
        return drop(context, instant_time)

    def recover(self, context: TableContext, instant_time: InstantTime) -> None:
        _delete_output(context.storage, instant_time, context.active.read_clustering_plan(instant_time))


CLUSTERING: Service[CommitResult] = ClusteringService()


def preview_clustering(context: TableContext, options: WriteOptions) -> ClusteringPlan:
    """What a clustering would name now. Changes nothing.

    Raises:
        OptionError: a column does not fit.
    """
    return _planned(context, context.snapshot(), options)[0]


def drop(context: TableContext, instant_time: InstantTime) -> bool:
    """Take a pending clustering off the timeline; nothing of it was visible. False when it is gone, or completed.

    Raises:
        CommitConflictError: somebody is running it.
    """
    active, storage = context.active, context.storage
    with context.lock.held(context.lock_timeout_s):
        if active.load().find(instant_time, Action.CLUSTERING) is None:
            return False
        if life_of(instant_time, context) is not Life.DEAD:
            raise CommitConflictError(
                f"clustering {instant_time} of table {storage.uri} is being run by another process"
                + (f", {by}" if (by := context.liveness.holder(instant_time)) else "")
                + "; nothing was changed, try again later"
            )
        context.publisher.fence(instant_time)
        if active.exists(Instant(instant_time, Action.CLUSTERING, State.COMPLETED)):
            return False
        plan = active.read_clustering_plan(instant_time)
        refuse_rows_beside(storage, plan, instant_time)
        _delete_output(storage, instant_time, plan)
        before_removal(context, instant_time)
        context.publisher.forget(instant_time)
        storage.delete(heartbeat_path(instant_time))
        context.liveness.release(instant_time)
        active.remove(Instant(instant_time, Action.CLUSTERING, State.INFLIGHT))
        # Last: should this process die before, the plan is there as it was.
        active.remove(Instant(instant_time, Action.CLUSTERING, State.REQUESTED))
    log.info("dropped the plan of clustering %s of table %s", instant_time, storage.uri)
    return True


# -- planning ----------------------------------------------------------------------------------------------------------


def _commits_since_clustering(active: ActiveTimeline, timeline: Timeline, *, most: int) -> int:
    """Completed writes after the last clustering, pending ones included; counts no further than `most`."""
    pending = max((i.time for i in timeline.pending(Action.CLUSTERING)), default="")
    count = 0
    for instant in reversed(timeline.commits):
        if count >= most or instant.time <= pending:
            break
        is_replacing = instant.action is Action.REPLACECOMMIT
        if is_replacing and active.read_commit(instant).operation is WriteOperation.CLUSTER:
            break
        count += 1
    return count


def _try_to_schedule(
    context: TableContext, options: WriteOptions, *, take_what_is_free: bool
) -> tuple[str | None, bool]:
    """The instant of the new plan, if one was made, and whether pending writes stood in the way of a (fuller) one."""
    with under_lock(context):
        snapshot = context.snapshot()
        plan, busy = _planned(context, snapshot, options)
        if busy and not take_what_is_free:
            return None, True
        if not plan.groups:
            return None, busy
        instant = context.clock.allot(snapshot.timeline.latest_time)
        data = encode_clustering_plan(plan, uri=context.storage.uri)
        context.active.create(Instant(instant, Action.CLUSTERING, State.REQUESTED), data)
    return instant, busy


def _planned(context: TableContext, snapshot: Snapshot, options: WriteOptions) -> tuple[ClusteringPlan, bool]:
    """The plan, and whether a pending write names files that would be in it."""
    if snapshot.schema is None:
        return ClusteringPlan(()), False
    clustering = options.clustering
    check_order(snapshot.schema, Order(clustering.sort_columns, clustering.layout), table=context.config.name)
    view = snapshot.view
    partitions = chosen_partitions(view.every_partition(), clustering)
    busy_groups = {*view.pending_compactions(), *view.pending_log_compactions(), *view.pending_clusterings()}
    slices = [s for s in view.latest_slices(partitions) if s.group not in busy_groups] if partitions else []
    busy_by_writes = named_by_pending_writes(context.active, snapshot)
    excluded = frozenset(s.group for s in slices) if busy_by_writes is None else busy_by_writes
    busy = any(s.group in excluded for s in slices)
    candidates = [s for s in slices if s.group not in excluded and is_explained(context, s, snapshot.timeline)]
    if context.config.buckets is not None:
        return plan_ring_clustering(context, snapshot, candidates, options, context.config.buckets), busy
    return plan_clustering(candidates, clustering), busy


def check_order(schema: pa.Schema, order: Order, *, table: str) -> None:
    """Raises OptionError where rows with this schema cannot be put in this order."""
    full = with_meta_fields(schema)
    for name in order.columns:
        if name not in full.names:
            raise OptionError(f"table {table!r} cannot be sorted by {name!r}: {no_column(name, schema.names)}")
        kind = full.field(name).type
        if not can_sort(kind):
            raise OptionError(
                f"table {table!r} cannot be clustered by column {name!r}: rows are not ordered by a {kind}"
            )
    if order.layout is not RowOrder.LINEAR and len(order.columns) > MAX_CURVE_COLUMNS:
        raise OptionError(
            f"table {table!r} cannot be clustered by {len(order.columns)} columns along a curve, which serves {MAX_CURVE_COLUMNS} at "
            "most: name those that queries filter by"
        )


# -- running -----------------------------------------------------------------------------------------------------------


def _run(context: TableContext, instant: Instant, options: WriteOptions) -> CommitResult:
    started = time.monotonic()
    with Transaction.claim(context, instant) as transaction:
        snapshot = context.snapshot()
        plan = context.active.read_clustering_plan(instant.time)
        if not plan.keeps_commit_times:
            raise UnsupportedTableError(
                f"clustering {instant.time} of table {context.storage.uri} would give rows new commit times, which this release does "
                f"not do: run it with Apache Hudi, or drop it "
                f"({hoodie_command('rollback', context.storage.uri, instant.time, '--yes')})"
            )
        refuse_rows_beside(context.storage, plan, instant.time)
        _delete_output(context.storage, instant.time, plan)
        groups = _as_planned(snapshot, plan, instant.time, table=context.storage.uri)
        schema = snapshot.schema_of_plan(instant.time)
        if schema is None:
            raise HoodieError(
                f"table {context.storage.uri} has no completed commit, so clustering {instant.time} has no schema"
            )
        order = order_of(plan, options.clustering)
        if order is not None:
            check_order(schema, order, table=context.config.name)
        memory_bytes = options.compaction.memory_bytes
        engine = context.engine.within(memory_bytes)
        slices = sum(len(each) for _, each in groups)
        at_once = max(1, min(slices, memory_bytes // TASK_BYTES)) if engine.shares_memory else 1
        write_context = replace(
            transaction.write_context(schema, options.file_options()),
            visible=snapshot.timeline.visible(),
            memory_bytes=max(memory_bytes // at_once, context.tuning.least_room_bytes),
        )
        buckets = new_buckets(context, snapshot, plan, instant.time)
        results = _Runner(context, engine, write_context, order).run(groups, buckets)
        publish_files(context, transaction.instant, results)
        replaced = _replaced(plan)
        metadata = commit_metadata(
            results,
            operation=WriteOperation.CLUSTER,
            schema=schema,
            table_name=context.config.name,
            replaced=replaced,
        )
        based_on = {each.group: each.base_instant for _, slices in groups for each in slices}
        transaction.commit(metadata, WriteBasis(based_on))
    stats = [result.stat for result in results]
    completed = transaction.completed_at
    result = CommitResult.of(instant.time, WriteOperation.CLUSTER, stats, replaced=replaced, completed=completed)
    return replace(result, seconds=time.monotonic() - started, engine=context.engine.name)


def order_of(plan: ClusteringPlan, options: ClusteringOptions) -> Order | None:
    """As the plan says; what it leaves open, the options of whoever runs it say."""
    texts = plan.params.get(option_name(ClusteringOptions, "sort_columns"), "").split(",")
    columns = tuple(name.strip() for name in texts if name.strip())
    layout_text = plan.params.get(option_name(ClusteringOptions, "layout"))
    try:
        layout = options.layout if layout_text is None else key_of(ClusteringOptions, "layout").kind.read(layout_text)
    except ValueError:
        layout = options.layout
    return Order(columns, layout) if columns else None


def _as_planned(
    snapshot: Snapshot, plan: ClusteringPlan, instant_time: str, *, table: str
) -> list[tuple[ClusteringGroup, list[FileSlice]]]:
    """The slices that the plan names, as they are now.

    Raises:
        CommitConflictError: one of them is another by now.
    """
    snapshot.view.list_all({each.partition_path for group in plan.groups for each in group.slices})
    result = []
    for group in plan.groups:
        slices = []
        for each in group.slices:
            now = snapshot.view.slice_of(FileGroupId(each.partition_path, each.file_id))
            if now is None or not _is_as_planned(now, each.data_file, each.log_files):
                raise CommitConflictError(
                    f"clustering {instant_time} of table {table} cannot be run: file group {each.file_id} in partition "
                    f"{each.partition_path!r} was changed by a write after the plan was made. The plan is dropped, and nothing of it "
                    "is visible: schedule another one"
                )
            slices.append(now)
        result.append((group, slices))
    return result


def _is_as_planned(now: FileSlice, data_file: str | None, log_files: Sequence[str]) -> bool:
    base = now.base.name if now.base else None
    return base == data_file and {log.name for log in now.logs} == set(log_files)


def _replaced(plan: ClusteringPlan) -> dict[str, tuple[str, ...]]:
    ids_of: dict[str, list[str]] = {}
    for group in plan.groups:
        for each in group.slices:
            ids_of.setdefault(each.partition_path, []).append(each.file_id)
    return {path: tuple(ids) for path, ids in sorted(ids_of.items())}


class _Runner:
    """The work of a claimed plan, as tasks of the engine. Groups that fit into a worker's memory are one task each."""

    def __init__(self, context: TableContext, engine: Engine, write_context: WriteContext, order: Order | None) -> None:
        self._context = context
        self._engine = engine
        self._write_context = write_context
        self._order = order
        self._label = f"cluster {context.config.name}"
        self._sorted_bytes = sorted_bytes_of(write_context)

    def run(
        self, groups: Sequence[tuple[ClusteringGroup, list[FileSlice]]], buckets: Sequence[NewBuckets] | None
    ) -> list[WriteResult]:
        """`buckets`: of each group, where the table has hash rings."""
        if buckets is not None:
            return self._run_buckets(groups, buckets)
        large = [each for each in groups if self._order is not None and total_bytes(each[1]) > self._sorted_bytes]
        small = [each for each in groups if each not in large]
        tasks = [
            ClusterTask(number, group.slices[0].partition_path, tuple(slices), group.output_groups, self._order)
            for number, (group, slices) in enumerate(small)
        ]
        results: list[WriteResult] = []
        for task, results_of_task in zip(tasks, self._run(tasks), strict=True):
            results += results_of_task or ()
            if results_of_task is None:
                large.append(small[task.number])
        if large and self._order is not None:
            results += self._run_large(large, self._order, first=len(tasks))
        return results

    def _run_buckets(
        self, groups: Sequence[tuple[ClusteringGroup, list[FileSlice]]], buckets: Sequence[NewBuckets]
    ) -> list[WriteResult]:
        """A bucket is sorted in memory, whatever its size: that is what splits are for."""
        tasks = [
            ClusterTask(
                number,
                group.slices[0].partition_path,
                tuple(slices),
                group.output_groups,
                self._order,
                at_any_size=True,
                buckets=new,
            )
            for number, ((group, slices), new) in enumerate(zip(groups, buckets, strict=True))
        ]
        return [result for results_of_task in self._run(tasks) for result in results_of_task or ()]

    def _run_large(
        self, groups: Sequence[tuple[ClusteringGroup, list[FileSlice]]], order: Order, *, first: int
    ) -> list[WriteResult]:
        """Sample, cut, lay down by range, and sort each range."""
        engine, storage = self._engine, self._context.storage
        samples = [
            SampleTask(each, order, max(1, _SAMPLE_ROWS * each.size_bytes // max(1, total_bytes(slices))))
            for _, slices in groups
            for each in slices
        ]
        label = f"{self._label}: look at rows"
        samples_found = iter(engine.run(partial(run_sample, storage, self._write_context), samples, label=label))
        cuts: list[Cuts | None] = []
        for group, slices in groups:
            found_in = [next(samples_found) for _ in slices]
            tables = [each_sample.rows for each_sample in found_in if each_sample.rows is not None]
            ranges = self._ranges(group, max(total_bytes(slices), sum(s.size_bytes for s in found_in) // ARROW_BYTES))
            cuts.append(cuts_of(pa.concat_tables(tables), order, ranges) if tables else None)
        splits = [
            (at, SplitTask(each, each_sample, f"cluster-{at}-{number}"))
            for at, ((_, slices), each_sample) in enumerate(zip(groups, cuts, strict=True))
            if each_sample is not None
            for number, each in enumerate(slices)
        ]
        label = f"{self._label}: lay rows down"
        pieces = engine.run(partial(run_split, storage, self._write_context), [s for _, s in splits], label=label)
        joins: list[JoinTask] = []
        rest: list[ClusterTask] = []
        for at, ((group, slices), each_sample) in enumerate(zip(groups, cuts, strict=True)):
            partition_path = group.slices[0].partition_path
            if each_sample is None:
                rest.append(ClusterTask(first, partition_path, tuple(slices), group.output_groups, order, True))
                first += 1
                continue
            mine = tuple(piece for (of, _), piece in zip(splits, pieces, strict=True) if of == at)
            for ranges_of_file in _shares(each_sample.ranges, group.output_groups):
                size = total_bytes(slices) * len(ranges_of_file) // each_sample.ranges
                joins.append(JoinTask(first, partition_path, mine, ranges_of_file, order, size))
                first += 1
        joined = engine.run(
            partial(run_join, storage, self._write_context), joins, label=f"{self._label}: sort and write"
        )
        return [result for results in (*self._run(rest), *joined) for result in results or ()]

    def _ranges(self, group: ClusteringGroup, size_bytes: int) -> int:
        """As many for each file, and each small enough to be sorted in memory."""
        of_a_file = max(1, -(-size_bytes // (group.output_groups * self._sorted_bytes)))
        return of_a_file * group.output_groups

    def _run(self, tasks: Sequence[ClusterTask]) -> list[list[WriteResult] | None]:
        if not tasks:
            return []
        run = partial(run_cluster, self._context.storage, self._write_context)
        return self._engine.run(run, tasks, label=self._label)


def _shares(ranges: int, files: int) -> Iterator[range]:
    """So many ranges for so many files, those that follow each other together."""
    ends = [ranges * (number + 1) // files for number in range(files)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            yield range(start, end)


# -- afterwards --------------------------------------------------------------------------------------------------------


def _drop_if_overtaken(context: TableContext, instant_time: InstantTime) -> None:
    """Drop a plan that can never be run any more, because writes changed its file groups; leave any other as it is."""
    with suppress(HoodieError, OSError):
        snapshot = context.snapshot()
        if snapshot.timeline.find(instant_time, Action.CLUSTERING) is None:
            return
        try:
            _as_planned(
                snapshot, context.active.read_clustering_plan(instant_time), instant_time, table=context.storage.uri
            )
        except CommitConflictError:
            drop(context, instant_time)


def _delete_output(storage: Storage, instant_time: str, plan: ClusteringPlan) -> None:
    """Delete the base files that an earlier try of this very clustering left, and the hash rings."""
    for partition_path in sorted({each.partition_path for group in plan.groups for each in group.slices}):
        if any(group.extra for group in plan.groups):
            storage.delete(ring_path(partition_path, instant_time))
        for info in storage.list(partition_path):
            base = parse_base_file(info.name)
            if base is not None and base.instant == instant_time:
                storage.delete(info.path)
