"""Cleaning: delete the versions of files that no reader within the retention can see. The plan: `clean_plan.py`.

A plan on the timeline names every file. To delete a file twice does no harm, so a clean whose process died is gone on with by
whoever comes next, Apache Hudi included, and its claim is never taken back. A cleaner that was only paused, and wakes up when
others are done, deletes files that are gone and finds the clean completed.

Files that are old enough to go stay so, whatever is written meanwhile. So the plan is made without the table lock; that is taken to
put it on the timeline, if no savepoint, restore or other clean came between.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.engine.packing import in_parts
from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.filegroup.row_copies import row_copies_of
from hoodie.format.service_plans import encode_clean_metadata, encode_clean_plan
from hoodie.model.change import change_of_clean
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.instant import Instant
from hoodie.model.names import PARTITION_METADATA, join, name_of, parse_log_file
from hoodie.model.payloads import CleanPlan
from hoodie.model.results import CleanResult
from hoodie.options.cleaning import CleaningOptions
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.clean_plan import BYTES, plan_clean
from hoodie.services.clean_rules import WRITING
from hoodie.services.clean_scope import clean_scope, deciding, last_clean, readable_from, stated_readable
from hoodie.storage.base import Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.pending import being_run, run_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.completion import complete
from hoodie.txn.critical import under_lock
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.participants import before_plan
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.listing import Listing

log = logging.getLogger("hoodie")

_FILES_A_TASK = 500
_EMPTIED_AT_A_TIME = 16
"""Folders that go while the lock is held once: so long writers wait, however many there are."""
_TRIES = 3


class CleaningService:
    """Cleaning as a table service; see `Service`."""

    action = Action.CLEAN
    resumes = True

    def require_fit(self, context: TableContext) -> None:
        return None

    def is_due(self, context: TableContext, options: WriteOptions) -> bool:
        """When `hoodie.clean.automatic` says so, enough commits came since the last clean, and they left something to look at; or
        when a clean waits whose process died.
        """
        cleaning = options.cleaning
        if not cleaning.automatic:
            return False
        # The commit that was just made has loaded the timeline.
        timeline = context.active.last_loaded() or context.active.load()
        pending = timeline.pending(Action.CLEAN)
        if pending:
            return any(life_of(each.time, context) is Life.DEAD for each in pending)
        if len(timeline.commits) <= (cleaning.commits if cleaning.policy is CleanPolicy.KEEP_LATEST_COMMITS else 1):
            return False
        last = last_clean(context.active, timeline)
        since = [i for i in timeline.commits if last is None or i.time > last.last_completed]
        if len(since) < cleaning.trigger_commits:
            return False
        # Without a look at consumers, which costs a listing: the plan has it.
        scope = clean_scope(context, timeline, replace(cleaning, consumer_hours=0))
        return scope is not None and scope.is_worth_it

    def in_background(self, options: WriteOptions) -> bool:
        return options.cleaning.in_background

    def only_schedules(self, options: WriteOptions) -> bool:
        return False

    def plan(self, context: TableContext, options: WriteOptions, *, wait_s: float) -> str | None:
        """Put a plan on the timeline; None when nothing is to be deleted, or another clean is pending.

        Raises:
            CommitConflictError: others cleaned, restored or made savepoints all the time.
        """
        for _ in range(_TRIES):
            last_view = context.kept_view()
            snapshot = context.snapshot(last_view)
            try:
                if snapshot.timeline.pending(Action.CLEAN) and not options.cleaning.multiple:
                    return None
                planned = plan_clean(context, snapshot, options.cleaning)
                if planned is None:
                    return None
                put = self._put(context, snapshot, planned.plan)
            finally:
                if last_view is not None and snapshot.view is last_view:
                    context.keep_view(last_view)
            if put is not None:
                _keep_view(context, *put)
                return put[0].time
        raise CommitConflictError(
            f"no clean of table {context.storage.uri} could be planned: other processes cleaned, restored or made savepoints at the "
            "same time; nothing was changed, try again"
        )

    def _put(self, context: TableContext, snapshot: Snapshot, plan: CleanPlan) -> tuple[Instant, Timeline] | None:
        """The clean, and the timeline with it; None where the plan may not hold any more."""
        with under_lock(context):
            timeline = context.active.load()
            if deciding(timeline) != deciding(snapshot.timeline):
                return None
            before_plan(context)
            instant = Instant(context.clock.allot(timeline.latest_time), Action.CLEAN, State.REQUESTED)
            context.active.create(instant, encode_clean_plan(plan, uri=context.storage.uri))
        return instant, context.active.extended(timeline, instant)

    def run(self, context: TableContext, instant: Instant, options: WriteOptions) -> CleanResult:
        """Delete the files that the plan names, and complete."""
        started = time.monotonic()
        timeline = _claim(context, instant)
        try:
            plan = _read_plan(context, instant)
            if plan is None:
                return CleanResult(None)
            # A savepoint may have come after the plan, by a writer that does not share our lock.
            savepointed_names = context.active.savepointed_files(timeline)
            paths = [
                join(partition, name)
                for partition, names in plan.files.items()
                for name in names
                if name not in savepointed_names
            ]
            size_bytes = _size_of(context.listing, plan)
            _delete(context, paths)
            _drop_row_copies(context, timeline, paths)
            removed = _remove_emptied(context, plan)
            took_ms = int((time.monotonic() - started) * 1000)
            data = encode_clean_metadata(
                plan, instant=instant.time, took_ms=took_ms, surviving=savepointed_names, removed=removed
            )
            context.clock.wait_until_passed(instant.time)
            completed = instant._replace(state=State.COMPLETED)
            change = change_of_clean(completed, plan, surviving=savepointed_names, partitions_removed=removed)
            complete(context, change, data, under_lock=False)
        except BaseException:
            context.liveness.abandon(instant.time)
            raise
        context.liveness.release(instant.time)
        if removed:
            context.kept_view()  # it lists deleted partitions
        else:
            deleted_files = {path: frozenset(names) - savepointed_names for path, names in plan.files.items()}
            _keep_view(context, completed, context.active.extended(timeline, completed), deleted_files)
        return CleanResult(
            instant=instant.time,
            files=len(paths),
            bytes_freed=size_bytes,
            earliest_retained=_readable_after(plan, timeline),
            partitions=sum(1 for names in plan.files.values() if names),
            seconds=time.monotonic() - started,
        )

    def withdraw(self, context: TableContext, instant_time: str) -> bool:
        return False

    def recover(self, context: TableContext, instant_time: str) -> None:
        return None


CLEANING: Service[CleanResult] = CleaningService()


def preview(context: TableContext, options: CleaningOptions) -> CleanResult:
    """What a clean would delete now. Nothing is changed."""
    started = time.monotonic()
    snapshot = context.snapshot()
    planned = plan_clean(context, snapshot, options)
    if planned is None:
        return replace(_nothing_cleaned(context.active, snapshot.timeline), dry_run=True)
    plan = planned.plan
    return CleanResult(
        None,
        files=plan.count,
        bytes_freed=planned.size_bytes,
        earliest_retained=_readable_after(plan, snapshot.timeline),
        partitions=sum(1 for names in plan.files.values() if names),
        dry_run=True,
        seconds=time.monotonic() - started,
    )


def summed(results: Sequence[CleanResult]) -> CleanResult | None:
    """Several cleans as one; None when there was none."""
    cleans = [each for each in results if each.instant is not None]
    return (
        None
        if not cleans
        else replace(
            cleans[-1],
            files=sum(each.files for each in cleans),
            bytes_freed=sum(each.bytes_freed for each in cleans),
            partitions=sum(each.partitions for each in cleans),
            seconds=sum(each.seconds for each in cleans),
        )
    )


def nothing_cleaned(active: ActiveTimeline) -> CleanResult:
    """The result where there was nothing to do."""
    return _nothing_cleaned(active, active.load())


def _nothing_cleaned(active: ActiveTimeline, timeline: Timeline) -> CleanResult:
    last = last_clean(active, timeline)
    earliest = stated_readable(last.extra, last.earliest) if last else None
    return CleanResult(None, earliest_retained=readable_from(earliest, timeline))


def _readable_after(plan: CleanPlan, timeline: Timeline) -> str | None:
    return readable_from(stated_readable(plan.extra, plan.earliest and plan.earliest[0]), timeline)


def _claim(context: TableContext, instant: Instant) -> Timeline:
    """Say that this process works on a clean; gives the timeline of now. Should two do so, both delete the same files, and one of
    them completes.

    Raises:
        CommitConflictError: another process works on it, or has completed it.
    """
    table = context.storage.uri
    with under_lock(context):
        timeline = context.active.load()
        clean = timeline.find(instant.time, Action.CLEAN)
        if clean is None or clean.is_completed:
            raise CommitConflictError(run_by_others(instant, table=table))
        if life_of(instant.time, context) is not Life.DEAD:
            raise CommitConflictError(being_run(clean, table=table, by=context.liveness.holder(instant.time)))
        before_plan(context)
        context.liveness.hold(instant.time)
        try:
            if clean.state is State.REQUESTED:
                context.active.create(clean._replace(state=State.INFLIGHT))
        except BaseException:
            context.liveness.abandon(instant.time)
            raise
    return timeline


def _read_plan(context: TableContext, instant: Instant) -> CleanPlan | None:
    """None where the plan was never written: its planner died. Then nothing was deleted, and it goes."""
    requested = instant._replace(state=State.REQUESTED)
    try:
        return context.active.read_clean_plan(instant.time)
    except CorruptFileError:
        if context.storage.stat(context.active.path(requested)).size_bytes:
            raise
    with context.lock.held(context.lock_timeout_s):
        context.active.remove(instant._replace(state=State.INFLIGHT))
        context.active.remove(requested)
    context.liveness.release(instant.time)
    return None


def _size_of(listing: Listing, plan: CleanPlan) -> int:
    """Our plans say it; for others the partitions are listed."""
    text = plan.extra.get(BYTES, "")
    if text.isdigit():
        return int(text)
    pairs = zip(plan.files.items(), listing.files(list(plan.files)), strict=True)
    return sum(info.size_bytes for (_, names), infos in pairs for info in infos if info.name in frozenset(names))


def _delete(context: TableContext, paths: Sequence[str]) -> None:
    tasks = in_parts(paths, _FILES_A_TASK)
    run = partial(_delete_files, context.storage)
    if len(tasks) <= 1:
        for task in tasks:
            run(task)
    else:
        context.engine.run(run, tasks, label=f"clean {context.config.name}")


def _delete_files(storage: Storage, paths: Sequence[str]) -> int:
    return len(storage.each(storage.delete, paths))


def _drop_row_copies(context: TableContext, timeline: Timeline, deleted: Iterable[str]) -> None:
    """Remove the copies of commits of which no log is left. What cannot be removed costs room only."""
    logs = frozenset(path for path in deleted if parse_log_file(name_of(path)) is not None)
    if not logs:
        return
    storage = context.storage
    try:
        copies = row_copies_of(storage)
        for commit in timeline.commits:
            if commit.time in copies:
                stats = context.active.read_commit(commit).stats()
                written = {stat.path for stat in stats if stat.log_version is not None}
                if written & logs and not any(storage.exists(path) for path in written - logs):
                    for path in copies[commit.time]:
                        storage.delete(path)
    except OSError as exc:
        log.warning("row copies of table %s were not removed: %s", storage.uri, exc)


def _remove_emptied(context: TableContext, plan: CleanPlan) -> tuple[str, ...]:
    """Remove the folders of partitions without file groups, while nobody writes into them. Gives those that are gone.

    Not under a lock that can end while its holder is paused: a writer could have begun by then.
    """
    if not plan.emptied or context.lock.is_leased:
        return ()
    removed: list[str] = []
    for chosen in in_parts(plan.emptied, _EMPTIED_AT_A_TIME):
        with context.lock.held(context.lock_timeout_s):
            if context.active.load().pending(*WRITING):
                break
            removed += [path for path in chosen if _remove_folder(context.storage, path)]
    return tuple(removed)


def _remove_folder(storage: Storage, partition_path: str) -> bool:
    """False where there are data files in it."""
    infos = storage.list(partition_path)
    files = [info for info in infos if not info.is_folder]
    if not all(PARTITION_METADATA in info.name for info in files):
        return False
    for info in files:
        storage.delete(info.path)
    if len(files) == len(infos):
        storage.delete_folder(partition_path)
    return True


def _keep_view(
    context: TableContext,
    clean: Instant,
    timeline: Timeline,
    deleted_files: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Keep the view for the next write, which need not list the table anew because of this clean."""
    last_view = context.kept_view()
    later = None if last_view is None else last_view.beside_clean(timeline, clean.time, deleted_files or {})
    if later is not None:
        context.keep_view(later)
