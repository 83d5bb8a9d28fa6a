"""Plans on the timeline that do not decode, or name files that are gone.

Their planner died while it wrote them, on a storage that shows a file before it is whole; or files went behind the timeline's back.

Apache Hudi's `repair corrupted clean files` is the model. Cleans and rollbacks are planned anew when their damaged plan is gone. So
are compactions and clusterings, as long as nothing is named after them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.model.enums import Action, State
from hoodie.model.findings import Repair, RepairKind
from hoodie.model.instant import Instant
from hoodie.model.names import heartbeat_path, join, parse_base_file, parse_log_file
from hoodie.repair.stray_files import Strays, without_trace
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.participants import before_removal
from hoodie.view.context import TableContext

_REDONE = (Action.CLEAN, Action.ROLLBACK)
"""Done once more from their plans where what they say in the end is lost."""
_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)
_REWRITING = (*_COMPACTIONS, Action.CLUSTERING)
"""Their plans say which files they will read."""
_PLANNED = (*_REDONE, *_REWRITING)


def find_damaged_plans(
    context: TableContext, files: Mapping[str, Sequence[FileInfo]], timeline: Timeline, *, older_than_s: float
) -> Strays:
    """Pending plans that do not decode or name files that are gone, and what completed cleans say; `files`: data files by folder,
    listed before the timeline.
    """
    repairs, skipped = [], []
    there = {info.path for infos in files.values() for info in infos}
    for instant, path, why, missing in _damaged(context, timeline, there):
        repair = Repair(RepairKind.PLANS, path, why, missing=missing)
        is_begun = bool(missing) and instant.state is State.INFLIGHT
        built_on = _built_on(context, timeline, instant, files) if is_begun else None
        reason = _in_the_way(context, instant, files)
        if built_on is not None and without_trace(context, [instant]):
            why = f"{why}; {built_on}, so it seems to have been completed, and its completed file is lost"
            completed = f"the completed file of instant {instant.time}, in `.hoodie`,"
            skipped.append(replace(repair, why=why, restores=completed))
        elif reason is not None:
            skipped.append(replace(repair, why=f"{why}; {reason}", restores=missing or path))
        elif _is_young(context.storage, path, older_than_s):
            skipped.append(replace(repair, why=f"{why}; but it is young, and may just be written", is_young=True))
        else:
            repairs.append(repair)
    return Strays(tuple(repairs), tuple(skipped))


def remove_damaged_plans(context: TableContext, repairs: Sequence[Repair], timeline: Timeline) -> None:
    """Delete the damaged plans from the timeline; call it under the table lock. After a crash run it again."""
    paths = {each.path for each in repairs}
    for instant, path, _, _ in list(_damaged(context, timeline, None)):
        if path not in paths:
            continue
        # A completed one becomes a pending one that is carried out once more, if its plan is whole.
        again = instant.is_completed and not context.clock.is_far_ahead(instant.time)
        if instant.action in _REWRITING and not instant.is_completed:
            before_removal(context, instant.time)
        for state in (State.COMPLETED,) if again else (State.COMPLETED, State.INFLIGHT, State.REQUESTED):
            context.active.remove(instant._replace(state=state))
        context.publisher.forget(instant.time)
        context.storage.delete(heartbeat_path(instant.time))
        context.liveness.release(instant.time)


def _damaged(
    context: TableContext, timeline: Timeline, there: Collection[str] | None
) -> Iterator[tuple[Instant, str, str, str]]:
    """Instant, path, reason, and a file that is gone; `there`: files that are known to be there."""
    for instant in timeline:
        why: str | None
        missing = ""
        if instant.action in _REDONE and context.clock.is_far_ahead(instant.time):
            why = "it lies ahead of the storage's clock, so nobody can write"
        elif instant.is_completed and instant.action in _REDONE:
            why = _error(context, instant)
        elif not instant.is_completed and (instant.action in _PLANNED or _is_begun_restore(instant)):
            why = _error(context, instant._replace(state=State.REQUESTED))
            if why is None and instant.action in _REWRITING:
                missing = _missing(context, instant, there or ())
                why = f"the plan names {missing}, which is not there" if missing else None
        else:
            continue
        if why is not None:
            at = instant if instant.is_completed else instant._replace(state=State.REQUESTED)
            yield instant, context.active.path(at), why, missing


def _is_begun_restore(instant: Instant) -> bool:
    """One that was only requested has done nothing, and the next write drops it."""
    return instant.action is Action.RESTORE and instant.state is State.INFLIGHT


def _missing(context: TableContext, instant: Instant, there: Collection[str]) -> str:
    """Which file the plan names that is gone; empty where there is none."""
    paths = (path for path in _read_files(context, instant) if path not in there)
    return next((path for path in paths if not context.storage.exists(path)), "")


def _built_on(
    context: TableContext, timeline: Timeline, service: Instant, files: Mapping[str, Sequence[FileInfo]]
) -> str | None:
    """What shows that a service was completed whose inputs are gone: a clean has taken them. A log file of version 6 is named after a
    compaction as soon as that is planned, and shows nothing.
    """
    for infos in files.values():
        for info in infos:
            base = parse_base_file(info.name)
            if base is not None and base.instant == service.time:
                return f"{info.path} is of that instant"
    for commit in timeline.commits:
        try:
            stats = context.active.read_commit(commit).stats()
        except HoodieError:
            continue  # another finding
        if any(each.prev_commit == service.time and each.log_version is None for each in stats):
            return f"commit {commit.time} builds on that instant"
    return None


def _read_files(context: TableContext, instant: Instant) -> Iterator[str]:
    """Paths of the files that a service will read by its plan."""
    try:
        if instant.action is Action.CLUSTERING:
            groups = context.active.read_clustering_plan(instant.time).groups
            for each in (each for group in groups for each in group.slices):
                yield from (join(each.partition_path, name) for name in (each.data_file, *each.log_files) if name)
        else:
            for operation in context.active.read_compaction_plan(instant.time, instant.action).operations:
                names = (operation.data_file, *operation.log_files)
                yield from (join(operation.partition_path, name) for name in names if name)
    except FileNotFoundError:
        return


def _error(context: TableContext, instant: Instant) -> str | None:
    """Why the file does not decode; None when it does."""
    active = context.active
    try:
        match instant.action:
            case Action.CLEAN if instant.is_completed:
                active.read_clean(instant)
            case Action.ROLLBACK if instant.is_completed:
                active.read_undone(instant)
            case Action.CLEAN:
                active.read_clean_plan(instant.time)
            case Action.ROLLBACK:
                active.read_rollback_plan(instant.time)
            case Action.CLUSTERING:
                active.read_clustering_plan(instant.time)
            case Action.RESTORE:
                active.read_restore_plan(instant.time)
            case _:
                active.read_compaction_plan(instant.time, instant.action)
    except FileNotFoundError:
        return None if instant.is_completed else f"the plan of {instant.time}.{instant.action} is gone"
    except CorruptFileError:
        empty = not context.storage.stat(active.path(instant)).size_bytes
        return f"{instant} is empty" if empty else f"{instant} does not decode"
    return None


def _is_young(storage: Storage, path: str, older_than_s: float) -> bool:
    try:
        return storage.stat(path).mtime_s > storage.now_s() - older_than_s
    except FileNotFoundError:
        return False


def _in_the_way(context: TableContext, instant: Instant, files: Mapping[str, Sequence[FileInfo]]) -> str | None:
    """Why the plan has to stay; None where it may go."""
    if not instant.is_completed and life_of(instant.time, context) is not Life.DEAD:
        return "its process lives"
    if instant.action not in _REWRITING:
        return None
    for infos in files.values():
        for info in infos:
            name = info.name
            base, log = parse_base_file(name), parse_log_file(name)
            if instant.time in (base.instant if base else "", log.base_instant if log else ""):
                return f"{info.path} is named after it, so it has to stay"
    return None
