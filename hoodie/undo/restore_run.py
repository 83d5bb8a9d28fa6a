"""A restore from its plan to its end, by whoever planned it or comes after (table version 6).

The plan on the timeline names the instants that go. From that moment readers of ours do not see them (`ActiveTimeline.load`), and no
write begins. Completed files go first, newest first: so other readers see one earlier commit after the other, each whole, and then
the one to restore. Data files follow, then what is left of the instants, and the restore completes. Every step may be done twice: a
runner that was only paused finds all of it done, and names of files and instants are never used again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from hoodie.engine.packing import in_parts
from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.format.restore_plans import encode_restore_metadata
from hoodie.model.change import change_of_undoing
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, folder_of, heartbeat_path, name_of, parse_log_file
from hoodie.model.payloads import RestoreMetadata, RestorePlan, RollbackMetadata, RollbackPartition
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.archive_writer import archive_writer_of
from hoodie.timeline.pending import being_restored
from hoodie.timeline.timeline import Timeline
from hoodie.txn.completion import complete
from hoodie.txn.critical import under_lock
from hoodie.txn.earlier_writers import Patience
from hoodie.txn.heartbeat import Heartbeat, Life, held_by_this_thread, life_of
from hoodie.txn.index_changes import note_undone
from hoodie.undo.undo_files import UndonePart, UndoTask, doomed_by, run_undo
from hoodie.undo.undo_rules import unreadable_commits
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")

_PARTITIONS_A_TASK = 64


def after_restores(context: TableContext) -> Timeline:
    """The timeline when no restore is at work any more; as `finish_restore`, of all that are."""
    timeline = context.active.load()
    restores = timeline.pending(Action.RESTORE)
    for restore in restores:
        finish_restore(context, restore)
    return context.active.load() if restores else timeline


def finish_restore(context: TableContext, restore: Instant) -> None:
    """Wait for a restore whose process lives, and carry on one whose process died.

    Raises:
        CommitConflictError: it is still being run after as long as one waits for the lock.
    """
    patience = Patience(context.lock_timeout_s)
    while not _has_ended(context.active, restore):
        if life_of(restore.time, context) is Life.DEAD:
            claimed = _claim(context, restore)
            if claimed is not None:
                carry_out(context, restore.time, *claimed)
        elif held_by_this_thread(restore.time) or not patience.pause(context.clock):
            raise CommitConflictError(
                being_restored(restore, table=context.storage.uri, by=context.liveness.holder(restore.time))
            )


def _has_ended(active: ActiveTimeline, restore: Instant) -> bool:
    return restore.time not in {i.time for i in active.load_all().pending(Action.RESTORE)}


def _claim(context: TableContext, restore: Instant) -> tuple[RestorePlan, Heartbeat] | None:
    """The plan of a dead runner; None where there is nothing to carry on."""
    with context.lock.held(context.lock_timeout_s):
        if _has_ended(context.active, restore) or life_of(restore.time, context) is not Life.DEAD:
            return None
        try:
            plan = context.active.read_restore_plan(restore.time)
        except (CorruptFileError, FileNotFoundError):
            if context.active.exists(restore._replace(state=State.INFLIGHT)):
                raise
            # Other writers do not publish plans atomically: this one died before it had done anything.
            context.active.remove(restore._replace(state=State.REQUESTED))
            return None
        heartbeat = Heartbeat(restore.time, context)
        heartbeat.hold()
        try:
            heartbeat.start()
        except BaseException:
            heartbeat.abandon()
            raise
    return plan, heartbeat


def carry_out(
    context: TableContext, restore_time: InstantTime, plan: RestorePlan, heartbeat: Heartbeat
) -> list[UndonePart]:
    """Do what a plan says, from wherever it stands; gives what was done to files."""
    try:
        parts = _carry_out(context, restore_time, plan)
    except BaseException:
        heartbeat.abandon()
        raise
    heartbeat.stop()
    context.kept_view()  # it lists files that are gone
    log.info("restored table %s to %s: %d instants undone", context.storage.uri, plan.target, len(plan.instants))
    return parts


def _carry_out(context: TableContext, restore_time: InstantTime, plan: RestorePlan) -> list[UndonePart]:
    started = time.monotonic()
    active = context.active
    inflight = Instant(restore_time, Action.RESTORE, State.INFLIGHT)
    if not active.exists(inflight):
        with suppress(CommitConflictError):  # another runner was quicker
            active.create(inflight)
    # Somebody may have put them there who died before they had left: what is archived counts as committed. This plan stands, so
    # nobody archives them again.
    writer = archive_writer_of(
        context.storage, context.config.history_folder, context.config.layout, lock=partial(under_lock, context)
    )
    writer.take_out(frozenset(time for time, _ in plan.instants))
    size_of = _written_sizes(context.active, plan)
    _take_off(context, plan)
    parts = _undo_files(context, restore_time, plan, size_of)
    _forget(context, restore_time, plan)
    metadata = RestoreMetadata(
        started=restore_time,
        took_ms=int((time.monotonic() - started) * 1000),
        undone=plan.instants,
        rollbacks=tuple(_rollback_of(context.storage, restore_time, each, parts) for each in plan.instants),
    )
    context.clock.wait_until_passed(restore_time)
    change = change_of_undoing(inflight._replace(state=State.COMPLETED), metadata.rollbacks)
    complete(context, change, encode_restore_metadata(metadata), under_lock=False)
    return parts


def _keys(plan: RestorePlan) -> frozenset[tuple[InstantTime, Action]]:
    return frozenset((time, COMPLETES_AS.get(action, action)) for time, action in plan.instants)


def _written_sizes(active: ActiveTimeline, plan: RestorePlan) -> dict[str, int]:
    """Path -> size of the files that the commits say they wrote.

    One that was left would count again as soon as the timeline begins later: its instant would be taken for an archived one.
    """
    undone, timeline = _keys(plan), active.load_all()
    damaged = unreadable_commits(active, timeline, [time for time, _ in undone])
    commits = [i for i in timeline.commits if (i.time, i.action) in undone and i.time not in damaged]
    stats = [stat for commit in active.read_commits(commits) for stat in commit.stats()]
    return {
        path: size for stat in stats for path, size in ((stat.path, stat.file_size_bytes), *stat.change_logs.items())
    }


def _take_off(context: TableContext, plan: RestorePlan) -> None:
    """Undo the commits for every reader, newest first."""
    note_undone(context, [time for time, _ in plan.instants])
    files = context.active.state_files(_keys(plan))
    states: dict[str, list[str]] = {}
    for instant, info in files:
        if instant.action in COMPLETES_AS:
            states.setdefault(instant.time, []).append(info.path)
    for instant, info in reversed([each for each in files if each[0].is_completed]):
        # A decision that was left would have the completed file put again.
        context.publisher.forget(instant.time)
        # A compaction must not look pending, and its plan be read, while it goes.
        for path in (*states.get(instant.time, ()), info.path):
            context.storage.delete(path)


def _undo_files(
    context: TableContext, restore_time: str, plan: RestorePlan, size_of: Mapping[str, int]
) -> list[UndonePart]:
    undone = frozenset(time for time, _ in plan.instants)
    committed = context.snapshot().view.committed
    tasks = []
    listing = context.listing.all_files()
    by_partition: dict[str, dict[str, int]] = {}
    for path, size in size_of.items():
        by_partition.setdefault(folder_of(path), {})[path] = size
    partitions = dict.fromkeys((*listing.partitions, *by_partition))
    touched = [path for path in partitions if path in by_partition or _has_work(listing.files.get(path, ()), undone)]
    for chunk in in_parts(touched, _PARTITIONS_A_TASK):
        sizes = {path: size for each in chunk for path, size in committed.of(each).sizes.items() if _is_log(path)}
        known_sizes = {path: size for each in chunk for path, size in by_partition.get(each, {}).items()}
        tasks.append(UndoTask(tuple(chunk), undone, sizes, known_sizes))
    run = partial(run_undo, context.storage, restore_time)
    results = context.engine.run(run, tasks, label=f"restore {context.config.name}") if tasks else []
    return [part for result in results for part in result]


def _has_work(infos: Iterable[FileInfo], undone: frozenset[str]) -> bool:
    names = (info.name for info in infos)
    return any(doomed_by(name, undone) is not None or _is_log(name) for name in names)


def _is_log(path: str) -> bool:
    return parse_log_file(name_of(path)) is not None


def _forget(context: TableContext, restore_time: InstantTime, plan: RestorePlan) -> None:
    """Remove what is left of the instants, and rollbacks of instants that came after the restored one."""
    storage, active = context.storage, context.active
    drop_row_copies(storage, of=frozenset(time for time, _ in plan.instants))
    for time_, _ in plan.instants:
        context.publisher.forget(time_)
        storage.delete(heartbeat_path(time_))
        context.liveness.release(time_)
    paths = [info.path for _, info in reversed(active.state_files(_keys(plan)))]
    storage.each(storage.delete, paths)
    first = min((time for time, _ in plan.instants), default=restore_time)
    rollbacks = [
        i for i in active.load_all() if i.action is Action.ROLLBACK and i.is_completed and first < i.time < restore_time
    ]
    targets = storage.each(active.rollback_target, rollbacks)
    obsolete = [i for i, target in zip(rollbacks, targets, strict=True) if target and target >= first]
    for _, info in active.state_files({(i.time, i.action) for i in obsolete}) if obsolete else ():
        storage.delete(info.path)


def _rollback_of(
    storage: Storage, restore_time: InstantTime, undone: tuple[InstantTime, Action], parts: Sequence[UndonePart]
) -> RollbackMetadata:
    root = storage.uri.rstrip("/")
    partitions = []
    for part in parts:
        if part.instant != undone[0]:
            continue
        folder = f"{root}/{part.partition_path}" if part.partition_path else root
        partitions.append(
            RollbackPartition(
                part.partition_path,
                deleted=tuple(f"{folder}/{name}" for name in part.deleted),
                rollback_log_files={f"{root}/{each.rollback_log}": each.rollback_bytes for each in part.disarmed},
                failed_log_files={each.name: each.size_bytes for each in part.disarmed},
            )
        )
    return RollbackMetadata(restore_time, 0, (undone,), tuple(partitions))
