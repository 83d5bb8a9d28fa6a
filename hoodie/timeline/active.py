"""The active timeline on storage: loads it, reads payloads, makes transitions.

What its files are called and hold is the business of its layout (`format/layout.py`). A transition is one atomic step: the
file of the new state appears whole under its name or not at all. Files of earlier states stay until the instant is archived.
Who may make which transition when: txn/ and services/.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import hoodie.format
from hoodie.errors import CommitConflictError, CorruptFileError, HoodieError, InstantNotFoundError
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.commit_json import decode_commit
from hoodie.format.layout import TIMELINES, V6, Layout
from hoodie.format.log_name_texts import LogNameTexts
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, HOODIE, doctor_of, folder_of, join, name_of
from hoodie.model.payloads import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    ClusteringPlan,
    CommitMetadata,
    CompactionPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackPlan,
    SavepointMetadata,
)
from hoodie.publish.base import Publisher
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache
from hoodie.storage.parallel import in_turns
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.timeline.cache import cached_clean, cached_commit, cached_timeline, last_timeline
from hoodie.timeline.timeline import WRITES, Timeline

if TYPE_CHECKING:
    import hoodie.format.clustering_plan
    import hoodie.format.commit_avro
    import hoodie.format.plan_avro
    import hoodie.format.restore_plans
    import hoodie.format.service_plans

P = TypeVar("P")

_READ_TRIES = 3
_LISTED_AGAIN = 50
"""Each time a commit was archived meanwhile; who archives deletes some ten in a row."""
LISTED_AT_ONCE = 400
"""So many names a storage gives in one answer, as they are at one moment: a disk's 32 KB, and more elsewhere."""
_READ_PAUSE_S = 0.02

_ASIDE = (".bak", ".old", ".orig", ".save", "~")
"""What people and editors put behind the name of a file."""


class ActiveTimeline:
    """Timeline files of one table. `load` lists them, and gives a value that stays as it is. Thread-safe."""

    def __init__(
        self,
        storage: Storage,
        cache: Cache,
        *,
        layout: Layout = V6,
        folder: str = HOODIE,
        history: str | None = None,
        listed_at_once: int = LISTED_AT_ONCE,
        with_sizes: bool = False,
    ) -> None:
        """`history` is the folder of the archived timeline: commits that leave this one while somebody reads it are found there.

        `with_sizes`: also on a disk a listing tells which file each is, for who reads all commits of a short timeline.
        """
        self._with_sizes = with_sizes
        self._listed_at_once = listed_at_once
        self._storage = storage
        self._history = history
        self._cache = cache
        self._layout = layout
        self._folder = folder
        self._log_names = LogNameTexts()
        self._infos: Mapping[str, FileInfo] = {}
        self._folders: set[str] = set()
        """Those that a listing of the timeline has shown; none is taken out again: a slow thread hides nothing from others."""
        self._kinds: dict[str, bool] = {}
        """Time of a pending replacecommit -> whether its plan is that of a clustering."""
        self._own_file: str | None = None
        """The file that this process put into the folder last."""

    @property
    def storage(self) -> Storage:
        """Where the table is."""
        return self._storage

    def load(self) -> Timeline:
        """The timeline as it is now; the same object as the last time where the folder has the same names.

        Commits that a restore or a rollback at work takes back are not on it, from the moment when its plan stands.
        """
        timeline = self.load_all()
        undoing = timeline.pending(Action.RESTORE, Action.ROLLBACK)
        if not undoing:
            return timeline
        undone: set[str] = set()
        for instant in undoing:
            if instant.action is Action.RESTORE:
                undone.update(time for time, _ in self.planned_to_undo(instant))
            else:  # mostly of a write that died
                target = self.rollback_target(instant)
                undone.update({target} & timeline.completed_times if target else ())
        return timeline.without(undone)

    def load_all(self) -> Timeline:
        """The same with what a restore or a rollback at work has yet to take off: for who carries it on.

        Who archives deletes completed instants one by one, oldest first. A listing that saw the first of them and not the second
        would show a hole, and rows of the second would not count. So where that may be, it is asked whether the first is still
        there: then nothing had been deleted before the listing ended. A restore begins with the last one.

        A listing without an instant that this process has seen or made, and that is still there, is not taken, either.
        """
        previous = self.last_loaded()
        for tried in range(_LISTED_AGAIN):
            if tried:
                time.sleep(min(tried, 5) * _READ_PAUSE_S)
            timeline, names = self._load()
            if self._is_older(timeline, names, previous):
                continue
            if not timeline.commits:
                return timeline
            first, last = timeline.commits[0], timeline.commits[-1]
            if len(names) > self._listed_at_once:
                if self.exists(first) and self.exists(last):
                    return timeline
            elif not self._is_leaving(first, names) or self.exists(first):
                return timeline
        raise HoodieError(
            f"the timeline of table {self._storage.uri} could not be listed: its files changed during every attempt, or its storage"
            " shows an old state of the folder; run it again"
        )

    def _is_older(self, timeline: Timeline, names: frozenset[str], previous: Timeline | None) -> bool:
        """Whether the listing shows an older state of the folder than this process knows of: no store should do that."""
        own_file = self._own_file
        if own_file is not None and name_of(own_file) not in names:
            if self._storage.exists(own_file):
                return True
            self._own_file = None  # the file was archived, or rolled back
        if previous is None:
            return False
        missing_times = previous.completed_times - timeline.completed_times
        return bool(missing_times) and self.exists(previous.commit_at[max(missing_times)])

    def _is_leaving(self, commit: Instant, names: frozenset[str]) -> bool:
        """Whether the other states of a completed instant are gone: they go first."""
        before = (commit.action, *(action for action, completed in COMPLETES_AS.items() if completed is commit.action))
        requested = (Instant(commit.time, action, State.REQUESTED) for action in before)
        return not any(self._layout.file_name(each) in names for each in requested)

    def _load(self) -> tuple[Timeline, frozenset[str]]:
        if self._storage.can.local_root is not None and not self._with_sizes:
            names = frozenset(self._storage.names(self._folder))
        else:  # the same answer says which file it is, and nobody needs to ask for that again
            infos = self._storage.list(self._folder)
            self._infos = {info.path: info for info in infos if not info.is_folder}
            self._folders.update(info.path for info in infos if info.is_folder)
            names = frozenset(name_of(path) for path in self._infos)
        timeline = cached_timeline(self._cache, (self._storage.identity, self._folder), names, self._layout)
        return self._told_apart(timeline), names

    def _told_apart(self, timeline: Timeline) -> Timeline:
        """The timeline with its pending clusterings as such.

        Where both have the same file names only the plan tells a clustering from an overwrite. Everything follows from that:
        whether a dead writer's instant is undone or its plan kept, and what readers and other writers wait for.
        """
        if self._layout.names_clusterings:
            return timeline
        pending = timeline.pending(Action.REPLACECOMMIT)
        return (
            timeline.with_clusterings(i.time for i in pending if self.is_pending_clustering(i)) if pending else timeline
        )

    def may_have(self, folder: str) -> bool:
        """Whether the folder may have been there when the timeline was loaded last. False is certain.

        Beside the timeline's files a listing of them shows it. On a disk, where it does not, to ask costs little.
        """
        is_shown = folder_of(folder) == self._folder and self._storage.can.local_root is None and self._infos
        return not is_shown or folder in self._folders

    def list_beside(self, folder: str) -> Sequence[FileInfo]:
        """What stands in a folder, where it may have been there when the timeline was loaded last."""
        return self._storage.list(folder) if self.may_have(folder) else ()

    def renamed_commits(self, timeline: Timeline) -> Iterator[tuple[Instant, str]]:
        """Completed writes whose file has the name of another timeline layout, or one that an editor or a copy leaves, with its path:
        readers see them as pending, or not at all.
        """
        completed = {instant.time for instant in timeline if instant.is_completed}
        for name in self._storage.names(self._folder):
            if self._layout.parse(name) is not None:
                continue
            own = next((name.removesuffix(each) for each in _ASIDE if name.endswith(each)), name)
            found = next(filter(None, (layout.parse(own) for layout in (self._layout, *TIMELINES))), None)
            if found is not None and found.is_completed and found.action in WRITES and found.time not in completed:
                yield found, join(self._folder, name)

    def last_loaded(self) -> Timeline | None:
        """What this process saw of the timeline last, without a look at the storage; None when that is forgotten."""
        return last_timeline(self._cache, (self._storage.identity, self._folder), self._layout)

    def extended(self, timeline: Timeline, instant: Instant) -> Timeline:
        """The timeline with one state more, which this process has just reached."""
        return timeline.extended([name_of(self.path(instant))])

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """Metadata of a completed commit, deltacommit, replacecommit or compaction; from the archive, if it went there meanwhile.

        Write stats of many partitions are decoded as they are asked for, and raise then what is raised here.

        Raises:
            CorruptFileError: the file does not parse, also after a short wait; an empty one is never a commit.
        """
        try:
            return self._read_commit(instant)
        except FileNotFoundError:
            if self._history is None:
                raise
            archived = ArchivedTimeline(self._storage, self._history, layout=self._layout, cache=self._cache)
            try:
                return archived.read_commits([instant])[instant.time]
            except InstantNotFoundError:
                pass
            raise

    def check_commit(self, instant: Instant) -> None:
        """Decode all of it.

        Raises:
            CorruptFileError: as `read_commit`.
        """
        for _ in self.read_commit(instant).stats():
            pass

    def _read_commit(self, instant: Instant) -> CommitMetadata:
        path = self.path(instant._replace(state=State.COMPLETED))
        return cached_commit(
            self._cache,
            self._storage,
            self._info(path),
            lambda: self._read(
                path,
                lambda data: hoodie.format.commit_avro.decode_commit_file(
                    data, instant.action, path=self._full(path), time=instant.time, texts=self._log_names
                ),
            ),
        )

    def read_commits(self, instants: Sequence[Instant]) -> Iterator[CommitMetadata]:
        """`read_commit` of each, several at the same time where the storage is far away."""
        return in_turns(self._storage, self.read_commit, instants)

    def remember(self, instant: Instant, metadata: CommitMetadata) -> None:
        """Keep what this process has just published, so that it is not read back to be parsed."""
        path = self.path(instant)
        cached_commit(self._cache, self._storage, self._info(path), lambda: metadata)

    def read_inflight(self, instant: Instant) -> CommitMetadata | None:
        """The plan that a writer left in its inflight file; None when that is empty or absent (Hudi allows both)."""
        path = self.path(instant._replace(state=State.INFLIGHT))
        try:
            data = self._storage.read(path)
        except FileNotFoundError:
            return None
        if not data:
            return None
        try:
            if data.startswith(CONTAINER_MAGIC):
                return hoodie.format.commit_avro.decode_commit_file(data, instant.action, path=self._full(path))
            return decode_commit(data, path=self._full(path))
        except CorruptFileError:
            return None  # other writers do not publish inflight files atomically; nothing depends on its content

    def read_compaction_plan(self, instant_time: InstantTime, action: Action = Action.COMPACTION) -> CompactionPlan:
        """The plan of a compaction, or of a log compaction."""
        path = self.path(Instant(instant_time, action, State.REQUESTED))
        return self._read(
            path, lambda data: hoodie.format.plan_avro.decode_compaction_plan(data, path=self._full(path))
        )

    def each(self, read: Callable[[Instant], P], instants: Sequence[Instant]) -> Sequence[P]:
        """`read` of each, several at the same time where the storage is far away."""
        return self._storage.each(read, instants)

    def restored_to(self, restore: Instant) -> InstantTime | None:
        """The commit to which a restore took, or takes, the table back; None where that is not known."""
        try:
            return self.read_restore_plan(restore.time).target
        except (FileNotFoundError, CorruptFileError):
            return None

    def restored_since(self, timeline: Timeline, instant: Instant) -> InstantTime | None:
        """The earliest commit to which a restore after this instant took the table back: all of its files were there then."""
        restores = (i for i in timeline if i.action is Action.RESTORE and i.time > instant.time)
        targets = (self.restored_to(restore) for restore in restores)
        return min((time for time in targets if time), default=None)

    def earliest_kept(self, timeline: Timeline) -> InstantTime | None:
        """The first commit whose files the newest clean keeps, or one that is running; None when none says so."""
        times = []
        newest = timeline.newest(Action.CLEAN)
        if newest is not None:
            earliest, restored = self.read_clean(newest).earliest, self.restored_since(timeline, newest)
            times.append(min(earliest, restored) if earliest and restored else earliest)
        for pending in timeline.pending(Action.CLEAN):
            path = self.path(pending._replace(state=State.REQUESTED))
            try:
                times.append(
                    hoodie.format.service_plans.earliest_kept_by_plan(self._storage.read(path), path=self._full(path))
                )
            except (FileNotFoundError, CorruptFileError):
                continue  # only being planned: nothing is deleted before the plan stands
        return max((time for time in times if time), default=None)

    def read_clean_plan(self, instant_time: InstantTime) -> CleanPlan:
        path = self.path(Instant(instant_time, Action.CLEAN, State.REQUESTED))
        return self._read(path, lambda data: hoodie.format.service_plans.decode_clean_plan(data, path=self._full(path)))

    def read_clean(self, instant: Instant) -> CleanMetadata:
        """Metadata of a completed clean.

        Raises:
            CorruptFileError: as `read_commit`.
        """
        path = self.path(instant._replace(state=State.COMPLETED))
        return cached_clean(
            self._cache,
            self._storage,
            self._info(path),
            lambda: self._read(
                path, lambda data: hoodie.format.service_plans.decode_clean_metadata(data, path=self._full(path))
            ),
        )

    def savepointed_files(self, timeline: Timeline) -> frozenset[str]:
        """Names of the files that savepoints hold."""
        result: frozenset[str] = frozenset()
        for instant in timeline:
            if instant.action is Action.SAVEPOINT and instant.is_completed:
                result |= {name for names in self.read_savepoint(instant).files.values() for name in names}
        return result

    def read_savepoint(self, instant: Instant) -> SavepointMetadata:
        """What a savepoint says."""
        path = self.path(instant._replace(state=State.COMPLETED))
        return self._read(path, lambda data: hoodie.format.restore_plans.decode_savepoint(data, path=self._full(path)))

    def read_restore_plan(self, instant_time: InstantTime) -> RestorePlan:
        path = self.path(Instant(instant_time, Action.RESTORE, State.REQUESTED))
        return self._read(
            path, lambda data: hoodie.format.restore_plans.decode_restore_plan(data, path=self._full(path))
        )

    def planned_to_undo(self, restore: Instant) -> tuple[tuple[InstantTime, Action], ...]:
        """What a restore takes back, newest first; nothing while its plan is only being written."""
        path = self.path(restore._replace(state=State.REQUESTED))
        try:
            return hoodie.format.restore_plans.decode_restore_plan(
                self._storage.read(path), path=self._full(path)
            ).instants
        except (FileNotFoundError, CorruptFileError):
            return ()

    def clustered_files(self, timeline: Timeline) -> frozenset[str]:
        """Names of the files that pending clusterings will read."""
        result: frozenset[str] = frozenset()
        for instant in timeline.pending(Action.REPLACECOMMIT, Action.CLUSTERING):
            path = self.path(instant._replace(state=State.REQUESTED))
            with suppress(
                FileNotFoundError, CorruptFileError
            ):  # only being planned: such a plan names the newest files
                result |= hoodie.format.service_plans.clustered_files(self._storage.read(path), path=self._full(path))
        return result

    def is_pending_clustering(self, instant: Instant) -> bool:
        """Whether a pending replacecommit is a clustering: one that moves rows and brings none."""
        if instant.action is not Action.REPLACECOMMIT:
            return False
        path = self.path(instant._replace(state=State.REQUESTED))
        is_clustering = self._kinds.get(instant.time)
        if is_clustering is None:
            try:
                is_clustering = hoodie.format.service_plans.is_clustering_plan(
                    self._storage.read(path), path=self._full(path)
                )
            except (FileNotFoundError, CorruptFileError):
                return False  # its plan is only being written, or it was rolled back: to wait for it is the safe answer
            self._kinds[instant.time] = is_clustering
        return is_clustering

    def read_clustering_plan(self, instant_time: InstantTime) -> ClusteringPlan:
        """The plan of a clustering.

        Raises:
            CorruptFileError: the file does not parse, or is none of a clustering.
        """
        path = self.path(Instant(instant_time, Action.CLUSTERING, State.REQUESTED))
        return self._read(
            path, lambda data: hoodie.format.clustering_plan.decode_clustering_plan(data, path=self._full(path))
        )

    def read_rollback_plan(self, instant_time: InstantTime) -> RollbackPlan:
        path = self.path(Instant(instant_time, Action.ROLLBACK, State.REQUESTED))
        return self._read(path, lambda data: hoodie.format.plan_avro.decode_rollback_plan(data, path=self._full(path)))

    def rollback_target(self, rollback: Instant) -> InstantTime | None:
        """The instant that a rollback undoes; None while its plan is only being written, or when it is gone.

        A completed one also says so itself. Early Apache Hudi wrote no plan, and who takes a rollback off the timeline may
        die after its plan is deleted.
        """
        with suppress(FileNotFoundError, CorruptFileError):
            return self.read_rollback_plan(rollback.time).instant
        with suppress(FileNotFoundError, CorruptFileError):
            if rollback.is_completed:
                return next((time for time, _ in self.read_undone(rollback).undone), None)
        return None

    def rollback_of(self, timeline: Timeline, instant_time: InstantTime) -> Instant | None:
        """The rollback that undoes an instant, or has undone it; only those after the instant are looked at."""
        after = [r for r in timeline if r.action is Action.ROLLBACK and r.time > instant_time]
        return next((r for r in after if self.rollback_target(r) == instant_time), None)

    def read_cleaned(self, clean: Instant) -> tuple[CleanedPartition, ...]:
        """Which files a completed clean deleted."""
        path = self.path(clean._replace(state=State.COMPLETED))
        return self._read(path, lambda data: hoodie.format.service_plans.decode_cleaned(data, path=self._full(path)))

    def read_undone(self, undo: Instant) -> RestoreMetadata:
        """What a completed restore did, or a completed rollback."""
        path = self.path(undo._replace(state=State.COMPLETED))
        if undo.action is Action.RESTORE:
            return self._read(
                path, lambda data: hoodie.format.restore_plans.decode_restore_metadata(data, path=self._full(path))
            )
        rollback = self._read(
            path, lambda data: hoodie.format.plan_avro.decode_rollback_metadata(data, path=self._full(path))
        )
        return RestoreMetadata(rollback.started, rollback.took_ms, rollback.rolled_back, (rollback,))

    def create(self, instant: Instant, data: bytes = b"", *, durable: bool = True) -> None:
        """Reach a state by putting its file; `durable` as in `Storage.create_new`.

        Raises:
            CommitConflictError: the state file is there already, so somebody else acts on this instant.
        """
        with self._taken_is_conflict(instant):
            self._storage.create_new(self.path(instant), data, durable=durable)
        self._own_file = self.path(instant)

    def complete(self, instant: Instant, data: bytes, publisher: Publisher, epoch: Hashable) -> None:
        """Reach the completed state of an instant that was begun with this publisher, and is in this epoch.

        Raises:
            CommitConflictError: as `create`. FileNotFoundError: the instant was fenced, or the epoch is outdated.
        """
        with self._taken_is_conflict(instant):
            publisher.complete(instant.time, self.path(instant), data, epoch)
        self._own_file = self.path(instant)

    def remove(self, instant: Instant) -> None:
        """Take back a state (rollback; failed compaction), if it is there."""
        self._kinds.pop(instant.time, None)  # by a clock that stands still the next write gets the same time
        self._storage.delete(self.path(instant))

    def state_files(self, instants: Container[tuple[str, Action]]) -> list[tuple[Instant, FileInfo]]:
        """The files of instants, each given by time and by the action of its completed state; by time, as the states follow."""
        result = []
        for info in self._storage.list(self._folder):
            instant = None if info.is_folder else self._layout.parse(info.name)
            if instant is not None and (instant.time, COMPLETES_AS.get(instant.action, instant.action)) in instants:
                result.append((instant, info))
        return sorted(result, key=lambda each: (each[0].time, list(State).index(each[0].state)))

    def reached_at(self, instant: Instant) -> float:
        """When the file of this state came, by the storage's clock, in seconds since the epoch."""
        return self._info(self.path(instant)).mtime_s

    def exists(self, instant: Instant) -> bool:
        return self._storage.exists(self.path(instant))

    @contextmanager
    def _taken_is_conflict(self, instant: Instant) -> Iterator[None]:
        try:
            yield
        except FileExistsError as exc:
            raise CommitConflictError(
                f"{self._full(self.path(instant))} is there already: another process works on instant {instant.time}; "
                "nothing of this write is visible, run it again"
            ) from exc

    def _read(self, path: str, decode: Callable[[bytes], P]) -> P:
        # Other writers create the file first and fill it afterwards on some storages: look again before judging.
        for remaining in range(_READ_TRIES - 1, -1, -1):
            data = self._storage.read(path)
            try:
                if not data:
                    raise CorruptFileError(
                        f"{self._full(path)} is empty: its writer died while publishing it, or it was truncated; "
                        f"it is not taken as completed; {doctor_of(self._full(path))}"
                    )
                return decode(data)
            except CorruptFileError:
                if remaining == 0:
                    raise
                time.sleep(_READ_PAUSE_S)
        raise AssertionError("unreachable")

    def encode_commit(self, instant: Instant, metadata: CommitMetadata) -> bytes:
        """The content of the file of a state, as tables of this version have it."""
        return self._layout.encode_commit(instant, metadata)

    def path(self, instant: Instant) -> str:
        """Of the file that says that the instant has reached its state, relative to the table.

        Where such a file names the time of completion, which only its writer and a listing know, the folder is looked at; without
        one the path is of no file.
        """
        if self._layout.by_completion and instant.is_completed and instant.completion is None:
            instant = self._completed(instant) or instant
        return join(self._folder, self._layout.file_name(instant))

    def _completed(self, instant: Instant) -> Instant | None:
        """A completed instant with the time of its completion; None where there is none."""
        action = COMPLETES_AS.get(instant.action, instant.action)
        names = (info.name for info in self._storage.list(self._folder) if not info.is_folder)
        instants = (self._layout.parse(name) for name in names if name.startswith(f"{instant.time}_"))
        return next((each for each in instants if each is not None and each[:2] == (instant.time, action)), None)

    def _info(self, path: str) -> FileInfo:
        return self._infos.get(path) or self._storage.stat(path)

    def _full(self, path: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{path}"
