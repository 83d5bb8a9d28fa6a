"""Cleaning: delete the versions of files that no reader within the retention can see. What goes: `clean_plan.py`.

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
from dataclasses import dataclass, replace
from functools import partial

from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.filegroup.row_copies import row_copies_of
from hoodie.format.service_plans import encode_clean_metadata, encode_clean_plan
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant, sort_key
from hoodie.model.names import COMPLETES_AS, HOODIE, PARTITION_METADATA, join, parse_log_file
from hoodie.model.payloads import CleanMetadata, CleanPlan
from hoodie.model.results import CleanResult
from hoodie.options.fits import check_version
from hoodie.options.services import CleaningOptions
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.clean_plan import CleanRules, earliest_to_retain, plan_partition, touched_partitions
from hoodie.services.consumer_needs import needed_by_consumers
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.many import for_each
from hoodie.timeline.pending import being_run, run_by_others
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.participants import participants_of
from hoodie.txn.same_table import require_same_table
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.view.listing import AllFiles
from hoodie.view.queries import read_at
from hoodie.view.view import FileSystemView

log = logging.getLogger("hoodie")

SAVEPOINTS = "savepointed_timestamps"
"""Key of Apache Hudi in a clean's extra metadata: which savepoints held files when it was planned."""
BYTES = "hoodie.python.clean.bytes"
"""Key of ours there: how many bytes the files have."""
READABLE = "hoodie.python.clean.readable.from"
"""From which instant on every file group is as it was, where the first commit that was kept does not say it."""
CHECKPOINT = "hoodie.python.clean.checkpoint"
"""By versions: the commits up to this one have been looked at, for so many versions as `VERSIONS` says."""
VERSIONS = "hoodie.python.clean.versions"

CHECKPOINT_EVERY = 10
"""After so many commits that left nothing to delete, a clean of nothing says so: the next one begins there."""
_FILES_A_TASK = 500
_PARTITIONS_A_TASK = 64
_EMPTIED_AT_A_TIME = 16
"""Folders that go while the lock is held once: so long writers wait, however many there are."""
_TRIES = 3
_DECIDING = frozenset({Action.CLEAN, Action.SAVEPOINT, Action.RESTORE, Action.ROLLBACK})
"""Actions after which older files may be needed again, or another clean has planned the same."""
_WRITING = tuple({*WRITES, *COMPLETES_AS})


@dataclass(frozen=True)
class _Scope:
    """What a clean has to look at, known from the timeline and its metadata alone."""

    earliest: Instant | None
    partitions: tuple[str, ...] | None
    """None: all of them, by listing the table."""
    passed: int
    """Commits since the last clean that this one looks at."""
    savepoints: tuple[str, ...]
    read_at: tuple[str, ...]
    followed_from: str | None
    checkpoint: str | None

    @property
    def is_worth_it(self) -> bool:
        return self.partitions is None or bool(self.partitions) or self.passed >= CHECKPOINT_EVERY


@dataclass(frozen=True)
class _Planned:
    plan: CleanPlan
    size_bytes: int


class CleaningService:
    """Cleaning as a table service; see `Service`."""

    action = Action.CLEAN
    resumes = True

    def require_fit(self, context: TableContext) -> None:
        check_version(context.config)

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
        last = last_clean(context, timeline)
        since = [i for i in timeline.commits if last is None or sort_key(i.time) > sort_key(last.last_completed)]
        if len(since) < cleaning.trigger_commits:
            return False
        # Without a look at consumers, which costs a listing: the plan has it.
        scope = _scope(context, timeline, replace(cleaning, consumer_hours=0))
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
            kept = context.kept_view()
            snapshot = context.snapshot(kept)
            try:
                if snapshot.timeline.pending(Action.CLEAN) and not options.cleaning.multiple:
                    return None
                planned = plan_clean(context, snapshot, options.cleaning)
                if planned is None:
                    return None
                put = self._put(context, snapshot, planned.plan)
            finally:
                if kept is not None and snapshot.view is kept:
                    context.keep_view(kept)
            if put is not None:
                _keep_view(context, *put)
                return put[0].time
        raise CommitConflictError(
            f"no clean of table {context.storage.uri} could be planned: other processes cleaned, restored or made savepoints at the "
            "same time; nothing was changed, try again"
        )

    def _put(self, context: TableContext, snapshot: Snapshot, plan: CleanPlan) -> tuple[Instant, Timeline] | None:
        """The clean, and the timeline with it; None where the plan may not hold any more."""
        with context.lock.held(context.lock_timeout_s):
            require_same_table(context.config, load_config(context.storage))
            timeline = context.active.load()
            if deciding(timeline) != deciding(snapshot.timeline):
                return None
            for participant in participants_of(context):
                participant.before_plan(context)
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
            held = context.active.savepointed_files(timeline)
            paths = [
                join(partition, name) for partition, names in plan.files.items() for name in names if name not in held
            ]
            size_bytes = _size_of(context, plan)
            _delete(context, paths)
            _drop_row_copies(context, timeline, paths)
            removed = _remove_emptied(context, plan)
            took_ms = int((time.monotonic() - started) * 1000)
            data = encode_clean_metadata(plan, instant=instant.time, took_ms=took_ms, kept=held, removed=removed)
            context.clock.wait_until_passed(instant.time)
            _complete(context, instant, data)
        except BaseException:
            context.liveness.abandon(instant.time)
            raise
        context.liveness.release(instant.time)
        if removed:
            context.kept_view()  # it lists partitions that are gone
        else:
            gone = {path: frozenset(names) - held for path, names in plan.files.items()}
            completed = instant._replace(state=State.COMPLETED)
            _keep_view(context, completed, context.active.extended(timeline, completed), gone)
        return CleanResult(
            instant=instant.time,
            files=len(paths),
            bytes_freed=size_bytes,
            earliest_retained=_readable_from(plan.extra, plan.earliest and plan.earliest[0], timeline),
            partitions=sum(1 for names in plan.files.values() if names),
            seconds=time.monotonic() - started,
        )

    def recover(self, context: TableContext, instant_time: str) -> None:
        return None


CLEANING: Service[CleanResult] = CleaningService()


def preview(context: TableContext, options: CleaningOptions) -> CleanResult:
    """What a clean would delete now. Nothing is changed."""
    started = time.monotonic()
    snapshot = context.snapshot()
    planned = plan_clean(context, snapshot, options)
    last = last_clean(context, snapshot.timeline)
    if planned is None:
        extra, earliest = (last.extra, last.earliest) if last else ({}, None)
        return CleanResult(None, earliest_retained=_readable_from(extra, earliest, snapshot.timeline), dry_run=True)
    plan = planned.plan
    return CleanResult(
        None,
        files=plan.count,
        bytes_freed=planned.size_bytes,
        earliest_retained=_readable_from(plan.extra, plan.earliest and plan.earliest[0], snapshot.timeline),
        partitions=sum(1 for names in plan.files.values() if names),
        dry_run=True,
        seconds=time.monotonic() - started,
    )


def summed(results: Sequence[CleanResult]) -> CleanResult | None:
    """Several cleans as one; None when there was none."""
    done = [each for each in results if each.instant is not None]
    return (
        None
        if not done
        else replace(
            done[-1],
            files=sum(each.files for each in done),
            bytes_freed=sum(each.bytes_freed for each in done),
            partitions=sum(each.partitions for each in done),
            seconds=sum(each.seconds for each in done),
        )
    )


def nothing_cleaned(context: TableContext) -> CleanResult:
    """The result where there was nothing to do."""
    timeline = context.active.load()
    last = last_clean(context, timeline)
    extra, earliest = (last.extra, last.earliest) if last else ({}, None)
    return CleanResult(None, earliest_retained=_readable_from(extra, earliest, timeline))


# -- planning ----------------------------------------------------------------------------------------------------------


def plan_clean(context: TableContext, snapshot: Snapshot, options: CleaningOptions) -> _Planned | None:
    """The plan of a clean; None when there is nothing to delete, and nothing to remember of that."""
    timeline = snapshot.timeline
    if timeline.pending(Action.RESTORE):
        return None
    scope = _scope(context, timeline, options)
    if scope is None or not scope.is_worth_it:
        return None
    listing = _Listing(context)
    view = snapshot.view
    # Also where files are followed, unless that was asked for: who lists sees what failed writes have left, too.
    if context.view_options.follows is not True and (scope.partitions is None or view.found.groups == {}):
        view = FileSystemView(listing, context.active, timeline, snapshot.archived)
    partitions = view.every_partition() if scope.partitions is None else scope.partitions
    view.list_all(partitions)
    rules = CleanRules(
        policy=options.policy,
        earliest=scope.earliest.time if scope.earliest else None,
        versions=options.versions,
        replaced=view.committed.replaced,
        scheduled=_scheduled(context, timeline),
        held=context.active.savepointed_files(timeline) | context.active.clustered_files(timeline),
        read_at=scope.read_at,
        followed_from=scope.followed_from,
        # A savepoint may hold back older commits than those that were archived.
        start=None if scope.savepoints else timeline.start,
        known=frozenset(i.time for i in timeline),
        is_archived=lambda time: any(i.time == time for i in snapshot.archived.instants),
    )
    files: dict[str, tuple[str, ...]] = {}
    emptied, since, size_bytes = [], [], 0
    for partition_path in partitions:
        found = plan_partition(view.file_groups(partition_path), rules, listing.seen.pop(partition_path, ()))
        if found.names:
            files[partition_path] = found.names
            size_bytes += found.size_bytes
            emptied += [partition_path] if found.emptied and partition_path else []
            since += [found.readable_from] if found.readable_from else []
    if not files and scope.partitions is not None and scope.passed < CHECKPOINT_EVERY:
        return None
    last = last_clean(context, timeline)
    extra = {BYTES: str(size_bytes)}
    if scope.savepoints:
        extra[SAVEPOINTS] = ",".join(scope.savepoints)
    # What is gone stays so, also where this clean keeps more than the one before.
    before = (last.extra.get(READABLE), last.earliest) if last else ()
    readable = max((each for each in (*since, *before) if each), key=sort_key, default=None)
    if readable is not None and (rules.earliest is None or sort_key(readable) > sort_key(rules.earliest)):
        extra[READABLE] = readable
    if rules.by_versions:
        extra |= {VERSIONS: str(options.versions)} | ({CHECKPOINT: scope.checkpoint} if scope.checkpoint else {})
    plan = CleanPlan(
        policy=options.policy,
        files=files,
        earliest=(scope.earliest.time, scope.earliest.action) if scope.earliest else None,
        last_completed=timeline.commits[-1].time if timeline.commits else "",
        emptied=tuple(emptied),
        extra=extra,
    )
    return _Planned(plan, size_bytes)


def _scope(context: TableContext, timeline: Timeline, options: CleaningOptions) -> _Scope | None:
    """None when nothing can be cleaned yet. Reads metadata of the commits since the last clean, and lists nothing."""
    last = last_clean(context, timeline)
    need = needed_by_consumers(context, timeline, hours=options.consumer_hours, readable_from=_stated_readable(last))
    followed = (need.time,) if need is not None else ()
    reading = (*read_at(context.storage.identity), *followed)
    savepoints = tuple(i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed)
    known = last is not None and set((last.extra.get(SAVEPOINTS) or "").split(",")) - {""} <= set(savepoints)
    if options.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        pending = timeline.pending(*_WRITING)
        before = [i.time for i in timeline.commits if not pending or sort_key(i.time) < sort_key(pending[0].time)]
        if not before:
            return None
        seen = (*reading, *(before[-1:] if pending else ()))
        checkpoint = min((before[-1], *seen), key=sort_key)
        since = last.extra.get(CHECKPOINT) if last and last.extra.get(VERSIONS) == str(options.versions) else None
        passed = [i for i in timeline.commits if since and sort_key(i.time) > sort_key(since)]
        earliest = None
    else:
        kept = last.earliest if last else None
        earliest = earliest_to_retain(timeline, options, now=context.clock.now(), last=kept, read_at=reading)
        if earliest is None:
            return None
        since, seen, checkpoint = kept, reading, None
        until = sort_key(earliest.time)
        passed = [i for i in timeline.commits if since and sort_key(since) <= sort_key(i.time) < until]
    # What was archived cannot be looked at any more, but by listing.
    whole = since is None or timeline.start is None or sort_key(since) < sort_key(timeline.start)
    partitions: tuple[str, ...] | None = None
    if options.incremental and known and not whole:
        touched: set[str] = set()
        for instant, metadata in zip(passed, context.active.read_commits(passed), strict=True):
            touched |= touched_partitions(metadata, compacted=instant.time in timeline.compactions)
        partitions = tuple(sorted(touched))
    return _Scope(earliest, partitions, len(passed), savepoints, seen, need and need.time, checkpoint)


def last_clean(context: TableContext, timeline: Timeline) -> CleanMetadata | None:
    """What the newest completed clean said; None where there is none that can be read."""
    newest = timeline.newest(Action.CLEAN)
    if newest is None:
        return None
    try:
        found = context.active.read_clean(newest)
        restored = context.active.restored_since(timeline, newest)
        return found if restored is None else _not_after(found, restored)
    except (CorruptFileError, FileNotFoundError):
        return None  # other writers do not complete atomically; without it the whole table is looked at


def _not_after(clean: CleanMetadata, restored: str) -> CleanMetadata:
    """What a clean says when the table was taken back since: of what it looked at, the commits after that are gone."""
    earlier = {
        key: min(clean.extra[key], restored, key=sort_key) for key in (READABLE, CHECKPOINT) if key in clean.extra
    }
    return CleanMetadata(
        clean.earliest and min(clean.earliest, restored, key=sort_key),
        min(clean.last_completed, restored, key=sort_key) if clean.last_completed else "",
        {**clean.extra, **earlier},
    )


def _scheduled(context: TableContext, timeline: Timeline) -> dict[FileGroupId, str]:
    """File group -> where the slice begins that a pending compaction, or log compaction, reads."""
    found: dict[FileGroupId, str] = {}
    for instant in timeline.pending(Action.COMPACTION, Action.LOGCOMPACTION):
        for operation in context.active.read_compaction_plan(instant.time, instant.action).operations:
            group = FileGroupId(operation.partition_path, operation.file_id)
            found[group] = min(operation.base_instant, found.get(group, operation.base_instant), key=sort_key)
    return found


def deciding(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants that decide which files may go: where others have come, a plan may not hold any more."""
    return tuple(i for i in timeline if i.action in _DECIDING)


def _stated_readable(last: CleanMetadata | None) -> str | None:
    """From where on, by what the newest clean says, every file group is as it was."""
    said = (last.earliest, last.extra.get(READABLE)) if last is not None else ()
    return max((each for each in said if each), key=sort_key, default=None)


def _readable_from(extra: Mapping[str, str], earliest: str | None, timeline: Timeline) -> str | None:
    first = timeline.commits[0].time if timeline.commits else None
    return max((each for each in (earliest, extra.get(READABLE), first) if each), key=sort_key, default=None)


class _Listing:
    """A listing that keeps what it has seen, for leftovers; on a cluster its workers list."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self.seen: dict[str, Sequence[FileInfo]] = {}

    @property
    def uri(self) -> str:
        return self._context.storage.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        context = self._context
        if context.engine.shares_memory or len(partition_paths) <= _PARTITIONS_A_TASK:
            found = context.listing.files(partition_paths)
        else:
            tasks = _chunks(partition_paths, _PARTITIONS_A_TASK)
            run = partial(_list_partitions, context.storage)
            parts = context.engine.run(run, tasks, label=f"list {context.config.name}")
            found = [files for part in parts for files in part]
        self.seen.update(zip(partition_paths, found, strict=True))
        return found

    def all_files(self) -> AllFiles:
        context = self._context
        if context.engine.shares_memory:
            found = context.listing.all_files()
        else:
            tops = context.storage.list("")
            folders = [top.path for top in tops if top.is_folder and top.path != HOODIE]
            run = partial(_list_below, context.storage)
            parts = context.engine.run(run, folders, label=f"list {context.config.name}")
            found = AllFiles.of([*(top for top in tops if not top.is_folder), *(f for part in parts for f in part)])
        self.seen.update(found.files)
        return found


def _list_partitions(storage: Storage, partition_paths: Sequence[str]) -> list[Sequence[FileInfo]]:
    return for_each(storage.list, partition_paths, at_once=storage.at_once)


def _chunks(items: Sequence[str], size: int) -> list[Sequence[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _list_below(storage: Storage, folder: str) -> Sequence[FileInfo]:
    return storage.list(folder, recursive=True)


# -- running -----------------------------------------------------------------------------------------------------------


def _claim(context: TableContext, instant: Instant) -> Timeline:
    """Say that this process works on a clean; gives the timeline of now. Should two do so, both delete the same files, and one of
    them completes.

    Raises:
        CommitConflictError: another process works on it, or has completed it.
    """
    table = context.storage.uri
    with context.lock.held(context.lock_timeout_s):
        require_same_table(context.config, load_config(context.storage))
        timeline = context.active.load()
        found = timeline.find(instant.time, Action.CLEAN)
        if found is None or found.is_completed:
            raise CommitConflictError(run_by_others(instant, table=table))
        if life_of(instant.time, context) is not Life.DEAD:
            raise CommitConflictError(being_run(found, table=table, by=context.liveness.holder(instant.time)))
        for participant in participants_of(context):
            participant.before_plan(context)
        context.liveness.hold(instant.time)
        try:
            if found.state is State.REQUESTED:
                context.active.create(found._replace(state=State.INFLIGHT))
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


def _size_of(context: TableContext, plan: CleanPlan) -> int:
    """Our plans say it; for others the partitions are listed."""
    stated = plan.extra.get(BYTES, "")
    if stated.isdigit():
        return int(stated)
    listed = zip(plan.files.items(), context.listing.files(list(plan.files)), strict=True)
    return sum(
        info.size_bytes
        for (_, names), infos in listed
        for info in infos
        if info.path.rpartition("/")[2] in frozenset(names)
    )


def _delete(context: TableContext, paths: Sequence[str]) -> None:
    tasks = _chunks(paths, _FILES_A_TASK)
    run = partial(_delete_files, context.storage)
    if len(tasks) <= 1:
        for task in tasks:
            run(task)
    else:
        context.engine.run(run, tasks, label=f"clean {context.config.name}")


def _delete_files(storage: Storage, paths: Sequence[str]) -> int:
    return len(for_each(storage.delete, paths, at_once=storage.at_once))


def _drop_row_copies(context: TableContext, timeline: Timeline, deleted: Iterable[str]) -> None:
    """Remove the copies of commits of which no log is left. What cannot be removed costs room only."""
    logs = frozenset(path for path in deleted if parse_log_file(path.rpartition("/")[2]) is not None)
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
    for chosen in _chunks(plan.emptied, _EMPTIED_AT_A_TIME):
        with context.lock.held(context.lock_timeout_s):
            if context.active.load().pending(*_WRITING):
                break
            removed += [path for path in chosen if _remove_folder(context.storage, path)]
    return tuple(removed)


def _remove_folder(storage: Storage, partition_path: str) -> bool:
    """False where there are data files in it."""
    infos = storage.list(partition_path)
    files = [info for info in infos if not info.is_folder]
    if not all(PARTITION_METADATA in info.path.rpartition("/")[2] for info in files):
        return False
    for info in files:
        storage.delete(info.path)
    if len(files) == len(infos):
        storage.delete_folder(partition_path)
    return True


def _complete(context: TableContext, instant: Instant, data: bytes) -> None:
    completed = instant._replace(state=State.COMPLETED)
    try:
        context.active.create(completed, data)
    except CommitConflictError:
        log.info("%s of table %s was completed by another process", completed, context.storage.uri)
    except OSError:
        if not context.active.exists(completed):
            raise


def _keep_view(
    context: TableContext, clean: Instant, timeline: Timeline, gone: Mapping[str, Collection[str]] | None = None
) -> None:
    """Leave what was listed to the next write, for which this clean is no reason to list anew."""
    kept = context.kept_view()
    later = None if kept is None else kept.beside_clean(timeline, clean.time, gone or {})
    if later is not None:
        context.keep_view(later)
