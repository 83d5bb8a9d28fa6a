"""Checks of what lies in `.hoodie`: properties against the table, instants, plans, savepoints, consumers, and what the dead left."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.format.archive import manifest_number
from hoodie.format.hash_ring import parse_ring
from hoodie.format.layout import ARCHIVE_VERSION, LAYOUTS
from hoodie.lock.file_lock import LOCK_PATH
from hoodie.model.buckets import RING_FILE, RINGS
from hoodie.model.enums import Action, State
from hoodie.model.findings import RepairKind
from hoodie.model.instant import BOOTSTRAP_INSTANTS, Instant, is_instant_time, parse_instant
from hoodie.model.names import (
    AUXILIARY,
    BOOTSTRAP_INDEX,
    BOOTSTRAP_INDEX_BY_FILE,
    COMPLETES_AS,
    CONSUMERS,
    HEARTBEATS,
    HOODIE,
    INDEX_CHANGES,
    MARKERS,
    METADATA_TABLE,
    PRIVATE,
    PROPERTIES,
    PROPERTIES_BACKUP,
    ROW_COPIES,
    SET_ASIDE,
    STAGING,
    folder_of,
    join,
    name_of,
)
from hoodie.model.results import format_count
from hoodie.options.table import PROPERTY_OF
from hoodie.repair.inspection import Hit, Inspection
from hoodie.repair.properties_repair import evident
from hoodie.repair.stray_files import Evidence
from hoodie.timeline.pending import explain_pending
from hoodie.timeline.timeline import WRITES
from hoodie.txn.heartbeat import Life, life_of
from hoodie.undo.recovery import dead_remains, stray_heartbeats, stray_markers
from hoodie.view.columns import SCHEMA_FOLDER
from hoodie.view.consumers import consumer_names, place_path, read_place
from hoodie.view.context import foreign_timeline
from hoodie.write.agreement import contradictions, misnamed_folders

_SHOWN = 5
_OF_ROWS = frozenset({PROPERTY_OF["record_key_fields"]})
_UNKNOWN = "VALUE"
"""In a printed command, what the user has to say."""


# -- properties --------------------------------------------------------------------------------------------------------


def properties(look: Inspection) -> Iterator[Hit]:
    """Properties that the table's files speak against."""
    for contradiction in contradictions(look.context, look.snapshot):
        if contradiction.key in _OF_ROWS and look.has_damaged_index:
            continue  # which gives skeletons the columns of other rows
        if contradiction.is_certain and contradiction.file is None:
            yield Hit(
                contradiction.what,
                subject=shlex.quote(
                    f"{contradiction.key}={contradiction.value or evident(look.context.storage, contradiction.key) or _UNKNOWN}"
                ),
            )


def unstated(look: Inspection) -> Iterator[Hit]:
    """Properties that old writers left out."""
    for contradiction in contradictions(look.context, look.snapshot):
        if not contradiction.is_certain and contradiction.file is None:
            yield Hit(
                contradiction.what,
                subject=shlex.quote(
                    f"{contradiction.key}={contradiction.value or evident(look.context.storage, contradiction.key) or _UNKNOWN}"
                ),
            )


def version(look: Inspection) -> Iterator[Hit]:
    """A timeline of another version than the properties state: nobody would see its commits."""
    sentence = foreign_timeline(look.context.storage, look.context.config)
    if sentence is not None:
        key, ours = PROPERTY_OF["version"], look.context.config.layout.number
        others = [int(each.version) for each in LAYOUTS.values() if each.number != ours]
        yield Hit(sentence, subject=shlex.quote(f"{key}={others[0] if len(others) == 1 else _UNKNOWN}"))


# -- folders and files -------------------------------------------------------------------------------------------------

_FOLDERS = frozenset(
    {
        PRIVATE,
        STAGING,
        ROW_COPIES,
        CONSUMERS,
        INDEX_CHANGES,
        MARKERS,
        HEARTBEATS,
        METADATA_TABLE,
        SET_ASIDE,
        SCHEMA_FOLDER,
    }
    | {layout.folder for layout in LAYOUTS.values()}
)
_FILES = frozenset({PROPERTIES, PROPERTIES_BACKUP, LOCK_PATH, BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE})


def misplaced(look: Inspection) -> Iterator[Hit]:
    """Files where a folder has to be, and folders where a file has to be: all that uses them fails."""
    context = look.context
    infos = list(context.storage.list(HOODIE))
    if any(info.path == PRIVATE and info.is_folder for info in infos):
        infos += context.storage.list(PRIVATE)
    folders = _FOLDERS | {context.config.history_folder}
    for path in (BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE) if any(info.path == AUXILIARY for info in infos) else ():
        infos += [info for info in context.storage.list(folder_of(path)) if info.path == path]
    for info in infos:
        is_instant = info.path.startswith(f"{context.config.timeline_folder}/") and bool(
            context.config.layout.parse(info.name)
        )
        if info.is_folder and (info.path in _FILES or is_instant):
            yield Hit(f"a folder stands at {info.path}, where a file has to be", info.path)
        elif not info.is_folder and info.path in folders:
            yield Hit(f"a file stands at {info.path}, where a folder has to be", info.path)
    try:
        tops = {path.partition("/")[0] for path in look.snapshot.view.committed.partitions if path}
    except HoodieError:
        return  # said by other checks
    for info in context.storage.list("") if tops else ():
        if not info.is_folder and info.path in tops:
            yield Hit(f"a file stands at {info.path}, where the folder of a partition has to be", info.path)


# -- instants ----------------------------------------------------------------------------------------------------------


def lost_timeline(look: Inspection) -> Iterator[Hit]:
    """A timeline without any instant, beside data files."""
    if look.lost_timeline and not any(misnamed_folders(look.context, look.snapshot)):
        folder = look.context.config.timeline_folder
        yield Hit(f"{folder} has no instant, and {look.lost_timeline} is a data file: nothing can be read", folder)


def newest_commit(look: Inspection) -> Iterator[Hit]:
    """The newest completed write, where its metadata do not decode, or state a schema of another table."""
    for newest in look.snapshot.timeline.commits[-1:]:
        wrong = _wrong(look, newest)
        if wrong is not None and not look.context.clock.is_far_ahead(newest.time):
            yield Hit(look.plain(wrong), look.context.active.path(newest), newest.time)


def older_commits(look: Inspection) -> Iterator[Hit]:
    """The same of completed writes before the newest."""
    for instant in look.snapshot.timeline.commits[:-1]:
        wrong = _wrong(look, instant)
        if wrong is not None:
            yield Hit(look.plain(wrong), look.context.active.path(instant))


def _wrong(look: Inspection, commit: Instant) -> HoodieError | None:
    if commit.time in look.unreadable:
        return look.unreadable[commit.time]
    of_schema = look.wrong_schema
    return of_schema[1] if of_schema is not None and of_schema[0] == commit else None


def emptied_commits(look: Inspection) -> Iterator[Hit]:
    """Completed writes that name no file, and whose files are there: readers leave these out."""
    if look.unreadable:
        return
    evidence = Evidence(look.context, look.snapshot)
    for time, files in evidence.unnamed_files(look.context.listing.all_files().files).items():
        path = look.context.active.path(look.snapshot.timeline.commit_at[time])
        yield Hit(f"{path} names no file, and {files[0]} is of that instant: its rows do not count", path)


def unreplaced_groups(look: Inspection) -> Iterator[Hit]:
    """Clusterings whose commit does not replace the file groups that they read."""
    active = look.context.active
    for commit in look.snapshot.timeline.commits:
        if commit.action is not Action.REPLACECOMMIT or commit.time in look.unreadable:
            continue
        try:
            plan = active.read_clustering_plan(commit.time)
        except (FileNotFoundError, CorruptFileError):
            continue  # an overwrite
        metadata = active.read_commit(commit)
        replaced = {(folder, each) for folder, those in metadata.replaced_file_ids.items() for each in those}
        written = {(stat.partition_path, stat.file_id) for stat in metadata.stats()}
        read = {(each.partition_path, each.file_id) for group in plan.groups for each in group.slices}
        unreplaced = sorted(read - replaced - written)
        if unreplaced:
            path = active.path(commit)
            groups = format_count(len(unreplaced), "file group")
            yield Hit(
                f"{path} does not replace {groups} that the clustering read, such as {join(*unreplaced[0])}: their rows count twice",
                path,
            )


def no_moment(look: Inspection) -> Iterator[Hit]:
    """Instants whose digits are no moment: nobody can write after one. Those of a bootstrap are none, and come before all."""
    for instant in look.snapshot.timeline:
        if instant.time in BOOTSTRAP_INSTANTS:
            continue
        try:
            parse_instant(instant.time)
        except CorruptFileError:
            path = look.context.active.path(instant)
            yield Hit(f"{path} names no time, so nobody can write", path)


def old_pending(look: Inspection) -> Iterator[Hit]:
    """A pending write that is older than archived commits: the timeline begins with it, and what came after and is not on it does not
    count. No archiving passes a pending write, so its file was put there later.
    """
    timeline, archived = look.snapshot.timeline, look.snapshot.archived
    first = timeline.find(timeline.start or "", *WRITES)
    if first is None or first.is_completed or not archived.files or first.time in {i.time for i in archived.commits}:
        return
    hidden = [i for i in archived.commits if i.time > first.time]
    if any(i.time not in timeline.completed_times for i in hidden):
        what = f"{first} is pending and older than archived commits, whose rows readers leave out"
        yield Hit(what, look.context.active.path(first), first.time)


def returned(look: Inspection) -> Iterator[Hit]:
    """Files of archived writes, where later ones are archived and gone: an old copy of `.hoodie` was put over the table. The timeline
    begins with them, and what came between does not count. To undo one would delete its rows.
    """
    active, timeline, archived = look.context.active, look.snapshot.timeline, look.snapshot.archived
    if not archived.files:
        return
    times = {instant.time for instant in archived.commits}
    latest = max(times - timeline.completed_times, default="")
    instants = {(each.time, each.action) for each in timeline if each.time in times and each.time < latest}
    for instant, info in active.state_files(instants) if instants else ():
        yield Hit(f"{info.path} is of instant {instant.time}, which was archived, as later ones were", info.path)


def lost_archived(look: Inspection) -> Iterator[Hit]:
    """Instants of files that readers count, which are older than the timeline and not in the archive."""
    lost = Evidence(look.context, look.snapshot).lost_archived
    if lost:
        time = min(lost)
        others = f" and {format_count(len(lost) - 1, 'more instant')}" if len(lost) > 1 else ""
        folder = look.context.config.history_folder
        yield Hit(
            f"{folder} lacks instant {time}{others}, which wrote {lost[time]}: its rows count, and change feeds from before instant "
            f"{look.snapshot.timeline.start} lack them",
            folder,
        )


def future(look: Inspection) -> Iterator[Hit]:
    """Writes that a wrong clock put into the future: until then nobody can write."""
    ahead = [i for i in look.snapshot.timeline if i.action in WRITES and look.context.clock.is_far_ahead(i.time)]
    # Each can be taken back when it is the newest.
    for instant in ahead[-1:]:
        others = f", and so do {format_count(len(ahead) - 1, 'more instant')}" if len(ahead) > 1 else ""
        what = f"{instant} lies ahead of the storage's clock, so nobody can write{others}"
        yield Hit(what, look.context.active.path(instant), instant.time)


def plans(look: Inspection) -> Iterator[Hit]:
    """Plans that do not decode, and instants of services in the future."""
    for each in look.repairs.of(RepairKind.PLANS):
        yield Hit(f"{each.path}: {each.why}", each.path)


def young_plans(look: Inspection) -> Iterator[Hit]:
    """Plans that do not decode, and are so young that they may just be written."""
    for each in look.repairs.left:
        if each.kind is RepairKind.PLANS and each.is_young:
            yield Hit(f"{each.path}: {each.why}", each.path)


def kept_plans(look: Inspection) -> Iterator[Hit]:
    """Damaged plans that cannot go."""
    for each in look.repairs.left:
        if each.kind is RepairKind.PLANS and not each.is_young:
            yield Hit(f"{each.path}: {each.why}", each.path, each.restores)


def future_plans(look: Inspection) -> Iterator[Hit]:
    """Plans and unfinished services of a wrong clock that `future`, `plans` and `savepoints` do not name."""
    others = look.snapshot.timeline.pending(*set(Action) - {*WRITES, Action.CLEAN, Action.ROLLBACK})
    for instant in others:
        if look.context.clock.is_far_ahead(instant.time):
            what = f"{instant} lies ahead of the storage's clock, so nobody can write"
            yield Hit(what, look.context.active.path(instant))


def completions(look: Inspection) -> Iterator[Hit]:
    """Completed instants whose files state a time of completion that is no moment, or in the future."""
    clock = look.context.clock
    for instant in look.snapshot.timeline:
        path = look.context.active.path(instant)
        if instant.completion is None or clock.is_far_ahead(instant.time):
            continue
        try:
            parse_instant(instant.completion)
        except CorruptFileError:
            yield Hit(f"{path} names no time of completion, so nobody can write", path)
            continue
        if clock.is_far_ahead(instant.completion):
            yield Hit(f"{path} says that it was completed in the future, so nobody can write", path)


def foreign_names(look: Inspection) -> Iterator[Hit]:
    """Completed writes under names that readers of this table do not know."""
    for _, path in look.context.active.renamed_commits(look.snapshot.timeline):
        yield Hit(f"{path} has a name of another table version, or of a copy, so readers ignore its rows", path)


def _saved(look: Inspection) -> list[Instant]:
    return [i for i in look.snapshot.timeline if i.action is Action.SAVEPOINT and i.is_completed]


def savepoints(look: Inspection) -> Iterator[Hit]:
    """Savepoints that do not say which files they hold, so that no clean runs, and those of a wrong clock."""
    for instant in _saved(look):
        path = look.context.active.path(instant)
        if look.context.clock.is_far_ahead(instant.time):
            yield Hit(f"{path} lies ahead of the storage's clock, so nobody can write", path, instant.time)
            continue
        try:
            look.context.active.read_savepoint(instant)
        except HoodieError as exc:
            yield Hit(look.plain(exc), path, instant.time)


def saved_files(look: Inspection) -> Iterator[Hit]:
    """Missing files that savepoints hold. The newest state may need them, too."""
    saved = _saved(look)
    files = look.context.listing.all_files().files if saved else {}
    there = {info.path for infos in files.values() for info in infos}
    for instant in saved:
        try:
            files_of = look.context.active.read_savepoint(instant).files
        except HoodieError:
            continue  # said by `savepoints`
        missing = [
            path for folder, names in files_of.items() for name in names if (path := join(folder, name)) not in there
        ]
        if missing:
            more = f" and {len(missing) - 1:,} more files" if len(missing) > 1 else ""
            yield Hit(f"{missing[0]}{more} of savepoint {instant.time} are gone", missing[0])


def consumers(look: Inspection) -> Iterator[Hit]:
    """Named consumers whose place is not known."""
    for name in consumer_names(look.context.storage):
        try:
            read_place(look.context.storage, name)
        except CorruptFileError as exc:
            what = look.plain(exc).partition(": drop the consumer")[0]
            yield Hit(what, place_path(name), shlex.quote(name))


def hash_rings(look: Inspection) -> Iterator[Hit]:
    """Hash rings of consistent buckets that cannot be read: nobody could write into their partitions."""
    storage = look.context.storage
    for info in storage.list(RINGS, recursive=True):
        if not info.is_folder and info.name.endswith(RING_FILE):
            partition_path = folder_of(info.path).removeprefix(RINGS).strip("/")
            try:
                parse_ring(storage.read(info.path), path=info.path, partition_path=partition_path)
            except HoodieError as exc:
                yield Hit(look.plain(exc), info.path)


def archive(look: Inspection) -> Iterator[Hit]:
    """An archive that cannot be read. The newest state does not need it."""
    archived = look.snapshot.archived
    try:
        archived.read_commits(archived.commits)
    except (HoodieError, FileNotFoundError) as exc:
        yield Hit(look.plain(exc) if isinstance(exc, HoodieError) else str(exc))


def stray_states(look: Inspection) -> Iterator[Hit]:
    """Completed writes of one instant under two actions: the one that nobody has begun is a copy."""
    times: dict[str, list[Instant]] = {}
    for instant in look.snapshot.timeline.commits:
        times.setdefault(instant.time, []).append(instant)
    for time, those in times.items():
        if len(those) > 1:
            paths = [look.context.active.path(each) for each in those]
            flags = [_is_begun(look, each) for each in those]
            path = paths[flags.index(False)] if False in flags else paths[-1]
            names = " and ".join(name_of(each) for each in paths)
            yield Hit(f"instant {time} was completed twice, as {names}", path)


def _is_begun(look: Inspection, instant: Instant) -> bool:
    before = (instant.action, *(action for action, completed in COMPLETES_AS.items() if completed is instant.action))
    return any(look.context.active.exists(Instant(instant.time, action, State.REQUESTED)) for action in before)


# -- what is not done --------------------------------------------------------------------------------------------------


def _pending(look: Inspection, *, life: bool) -> Iterator[Instant]:
    """But for those whose plan is damaged: that is another finding."""
    damaged = {each.path for each in (*look.repairs.repairs, *look.repairs.left) if each.kind is RepairKind.PLANS}
    for instant in look.snapshot.timeline.pending():
        if look.context.active.path(instant._replace(state=State.REQUESTED)) in damaged:
            continue
        if (life_of(instant.time, look.context) is not Life.DEAD) is life:
            yield instant


def at_work(look: Inspection) -> Iterator[Hit]:
    """Instants whose writer lives."""
    for instant in _pending(look, life=True):
        yield Hit(f"{instant} is at work", look.context.active.path(instant))


def lost_completions(look: Inspection) -> Iterator[Hit]:
    """Pending writes that seem to have been completed, by what their writers left."""
    for instant, file in look.lost_completions.items():
        path = look.context.active.path(instant)
        what = (
            f"{path} seems to have been completed: its writer left no trace but {file}, and its completed file is lost"
        )
        yield Hit(what, path, str(instant.time))


def dead_writes(look: Inspection) -> Iterator[Hit]:
    """Writes, rollbacks and restores whose process died."""
    for instant in _pending(look, life=False):
        is_elsewhere = look.context.clock.is_far_ahead(instant.time) or instant in look.lost_completions
        if instant.action in (*WRITES, Action.ROLLBACK, Action.RESTORE) and not is_elsewhere:
            yield Hit(f"{instant} is pending, and nobody works on it", look.context.active.path(instant))


def dead_services(look: Inspection) -> Iterator[Hit]:
    """Services that were begun, and whose process died."""
    for instant in _pending(look, life=False):
        if instant.action in _RUN_BY and (instant.state is State.INFLIGHT or instant.action is Action.CLEAN):
            what = f"{instant} is pending, and nobody works on it"
            yield Hit(what, look.context.active.path(instant), _RUN_BY[instant.action])


_RUN_BY = {
    Action.COMPACTION: "compaction run",
    Action.LOGCOMPACTION: "log-compaction run",
    Action.CLUSTERING: "clustering run",
    Action.CLEAN: "clean",
}


def waiting(look: Inspection) -> Iterator[Hit]:
    """Plans that wait to be run, and savepoints in the making."""
    for instant in _pending(look, life=False):
        runs = instant.action in _RUN_BY and (instant.state is State.INFLIGHT or instant.action is Action.CLEAN)
        if not runs and instant.action not in (*WRITES, Action.ROLLBACK, Action.RESTORE):
            explanation = explain_pending(instant, table=look.context.storage.uri)
            yield Hit(f"{instant} waits: {explanation}", look.context.active.path(instant))


def remains(look: Inspection) -> Iterator[Hit]:
    """Staged files, marks, markers and heartbeats that no pending instant stands for."""
    context = look.context
    dead = dead_remains(context)
    if dead:
        yield Hit(f"{format_count(len(dead), 'dead writer')} left staged files or marks: {', '.join(dead[:_SHOWN])}")
    for folder, names in ((MARKERS, stray_markers(context)), (HEARTBEATS, stray_heartbeats(context))):
        if names:
            yield Hit(f"{folder} has {', '.join(names[:_SHOWN])}, of instants that are not pending", folder)


def odd_names(look: Inspection) -> Iterator[Hit]:
    """Files in the timeline's folder that are none of a timeline, as copies and editors leave them."""
    config = look.context.config
    folder = config.timeline_folder
    renamed = {name_of(path) for _, path in look.context.active.renamed_commits(look.snapshot.timeline)}
    for name in look.context.storage.names(folder):
        if (
            name not in renamed
            and config.layout.parse(name) is None
            and is_instant_time(name.partition(".")[0].partition("_")[0])
        ):
            yield Hit(f"{join(folder, name)} is not a timeline file, and nobody reads it", join(folder, name))


def archive_version(look: Inspection) -> Iterator[Hit]:
    """An archive that does not say which manifest counts, or names one that is not there: readers take the newest one."""
    config = look.context.config
    names = look.context.storage.names(config.history_folder) if config.layout.by_completion else ()
    numbers = {number for name in names if (number := manifest_number(name)) is not None}
    path = join(config.history_folder, ARCHIVE_VERSION)
    if ARCHIVE_VERSION in names:
        text = look.context.storage.read(path).decode("ascii", "replace").strip()
        if not text.isdigit() or int(text) not in numbers:
            yield Hit(f"{path} names no manifest that exists, so readers take the newest one", path)
    elif numbers:
        yield Hit(f"{path} is gone, so readers take the newest manifest", path)
