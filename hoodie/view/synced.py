"""A listing that is fed by the timeline: it lists a partition once, and afterwards goes by what instants say of themselves.

`SyncedFiles` is what is known of a table: a `FileStore`, and the timeline up to which that holds. All openings of the table in a
process may share one. `SyncedListing` asks and feeds it with the storage and the timeline of one opening.

A listing and the timeline are two looks at a table that others change. So the timeline is loaded again after a listing, and what
was completed in between is applied to what the listing shows: each change can be applied twice. What cannot be followed
(`following.lost_track`), is unclear, or does not decode is listed anew. Where a clean, a rollback or a restore is at work, files go
and come without a word until it is completed: partitions that it has named are listed each time until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import compress
from threading import RLock
from typing import NamedTuple

from hoodie.errors import CorruptFileError, InstantNotFoundError, UnsupportedTableError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.late import once
from hoodie.model.names import SET_ASIDE, join
from hoodie.model.payloads import RestoreMetadata
from hoodie.storage.base import FileInfo
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.commit_files import CommittedFiles
from hoodie.view.file_store import Files, FileStore
from hoodie.view.listing import AllFiles, Choice, FileChoice, Listing
from hoodie.view.timeline_changes import UNDOING, Changes, completed, counted_files, has_files_of, lost_track

log = logging.getLogger("hoodie")

_LISTED_AGAIN = 5
"""Times that is listed anew beside a table whose timeline cannot be followed meanwhile; then the listing is given as it is."""
_SAVED_EVERY = 8
"""Instants between two checkpoints."""
_PASSED = 16
"""So many timelines that were left behind are remembered: a slow reader may still ask for one."""
_UNREADABLE = (CorruptFileError, FileNotFoundError, InstantNotFoundError, UnsupportedTableError)

FolderState = frozenset[tuple[str, int]]
"""Path and size of each file in a folder."""


@dataclass
class SyncedFiles:
    """The files of a table as far as they are known. Whoever uses it holds `lock`."""

    store: FileStore
    timeline: Timeline | None = None
    """Where it stands; None: nowhere yet."""
    archive: FolderState = frozenset()
    """What the archive was before that timeline was loaded."""
    set_aside: FolderState = frozenset()
    """What repairs had moved away by then."""
    is_whole: bool = False
    """Every partition was listed: one that is not in the store is not there, unless it is to be listed anew."""
    doubted: set[str] = field(default_factory=set)
    """Partitions to be listed anew."""
    listed_partitions: set[str] = field(default_factory=set)
    """Partitions that were listed before anything was followed."""
    listed_all: bool = False
    """The whole table was."""
    passed: list[tuple[Instant, ...]] = field(default_factory=list)
    """Earlier timelines, the newest last."""
    source: str | None = None
    """The checkpoint that this was read from, as long as nothing was followed from there."""
    save: Callable[[SyncedFiles], None] | None = None
    """Leaves a checkpoint."""
    followed: int = 0
    """Instants since the last checkpoint."""
    learned: int = 0
    """Partitions that were listed since then."""
    saved: int = 0
    """Partitions that it has."""
    lock: RLock = field(default_factory=RLock, repr=False)

    def find(self, partition_path: str) -> Files | None:
        """The files of a partition; None where they are not known."""
        files = self.store.get(partition_path)
        if files is None and self.is_whole and partition_path not in self.doubted:
            return {}
        return files

    def put(self, partition_path: str, files: Files) -> None:
        self.store.put(partition_path, files)
        self.doubted.discard(partition_path)

    def save_if_due(self, *, now: bool = False) -> None:
        """Leave a checkpoint after some instants, or where much was listed. To read an older one takes a little longer only."""
        due = self.followed >= _SAVED_EVERY or self.learned > self.saved // 2
        if self.save is None or self.timeline is None or not (due or (now and self.followed + self.learned)):
            return
        self.save(self)
        self.followed = self.learned = 0
        self.saved = len(self.store.partitions())

    def doubt(self, partition_path: str) -> None:
        """Have the partition listed anew when it is asked for next."""
        self.store.drop(partition_path)
        if self.is_whole:
            self.doubted.add(partition_path)

    def forget(self) -> None:
        """Know nothing any more."""
        self.store.clear()
        self.timeline, self.is_whole, self.source = None, False, None
        self.passed.clear()
        self.doubted.clear()

    def stand_at(self, timeline: Timeline) -> None:
        if self.timeline is not None and self.timeline.instants != timeline.instants:
            self.pass_by(self.timeline)
        self.timeline = timeline

    def pass_by(self, timeline: Timeline) -> None:
        """It is an older one."""
        self.passed = [*self.passed[1 - _PASSED :], timeline.instants]

    def covers(self, timeline: Timeline) -> bool:
        """Whether nothing was completed on that timeline since this one, or it is known to be older."""
        if self.timeline is None:
            return False
        same = self.timeline.instants == timeline.instants
        return same or timeline.instants in self.passed or completed(timeline) == completed(self.timeline)


class _LostTrackError(Exception):
    """Why what was completed cannot be followed."""


class _ListingResult(NamedTuple):
    """What a listing showed."""

    files: AllFiles
    is_kept: bool
    """False where the table changed too much all the time."""


class SyncedListing:
    """What is known of one table, asked and fed through one opening of it. Thread-safe."""

    def __init__(
        self,
        files: SyncedFiles,
        listing: Listing,
        active: ActiveTimeline,
        list_archive: Callable[[], Iterable[FileInfo]],
        list_set_aside: Callable[[], Iterable[FileInfo]],
        *,
        at_once: bool = True,
    ) -> None:
        """`listing` asks the storage, and so do the others: what is in the archive of the timeline, and what repairs moved away.

        `at_once`: follow what is listed first. Else what is asked for a second time: a process that asks once has nothing of it.
        """
        self._files = files
        self._listing = listing
        self._active = active
        self._list_archive = list_archive
        self._list_set_aside = list_set_aside
        self.at_once = at_once
        self._committed: CommittedFiles | None = None
        """Of the timeline after the last listing."""
        self._committed_on: tuple[Instant, ...] = ()

    @property
    def uri(self) -> str:
        return self._listing.uri

    @property
    def timeline(self) -> Timeline | None:
        """Where it stands; None: nothing was asked yet."""
        return self._files.timeline

    def under(self, timeline: Timeline) -> Listing:
        """For a view under this timeline: shows at least every file that a commit on it names, as of now or of that timeline."""
        return _Under(self, timeline)

    def sync(self, timeline: Timeline) -> None:
        """Come up to a timeline that was just loaded. Reads the metadata of what was completed since, and lists nothing."""
        with self._files.lock:
            self._sync(timeline)

    def save(self) -> None:
        """Leave a checkpoint if there is a place for it, and something new since the last one."""
        with self._files.lock:
            self._files.save_if_due(now=True)

    def forget(self) -> None:
        """List all anew, when it is asked for: files were moved without a word on the timeline."""
        with self._files.lock:
            self._files.forget()

    def only_listed(self, partition_paths: Sequence[str] | None) -> Listing | None:
        """What to ask for these partitions (None: for all) as long as nothing is followed."""
        files = self._files
        if self.at_once:
            return None
        with files.lock:
            again = (
                files.listed_all if partition_paths is None else not files.listed_partitions.isdisjoint(partition_paths)
            )
            if files.timeline is not None or again:
                return None
            files.listed_partitions.update(partition_paths or ())
            files.listed_all |= partition_paths is None
        return self._listing

    def files_under(
        self, timeline: Timeline, partition_paths: Sequence[str], unsettled: frozenset[str] | None
    ) -> Sequence[Sequence[FileInfo]]:
        """`unsettled`: as the method says it of that timeline."""
        with self._files.lock:
            self._sync(timeline)
            live = [path for path in partition_paths if unsettled is None or path in unsettled]
            files_of = dict(zip(live, self._listing.files(live) if live else (), strict=True))
            known_files = {path: self._files.find(path) for path in partition_paths if path not in files_of}
            files_of |= {path: _infos(path, files) for path, files in known_files.items() if files is not None}
            unknown = [path for path, files in known_files.items() if files is None]
            files_of |= self._list(unknown) if unknown else {}
            return [files_of[path] for path in partition_paths]

    def all_files_under(self, timeline: Timeline, unsettled: frozenset[str] | None) -> AllFiles:
        with self._files.lock:
            self._sync(timeline)
            if unsettled is None:
                return self._listing.all_files()
            if not self._files.is_whole:
                return self._learn(self._listing.all_files, whole=True).files
            paths = sorted({*self._files.store.partitions(), *self._files.doubted, *unsettled})
            listings = self.files_under(timeline, paths, unsettled)
            return AllFiles.of(info for infos in listings for info in infos if not info.is_folder)

    def chosen_files_under(self, timeline: Timeline, choice: Choice, unsettled: frozenset[str] | None) -> FileChoice:
        """Where not all of the table is known, the storage is asked: the choice lists less than following would."""
        with self._files.lock:
            if self._files.is_whole:
                self._sync(timeline)
            if unsettled is None or not self._files.is_whole:
                return self._listing.chosen_files(choice)
            paths = sorted({*self._files.store.partitions(), *self._files.doubted, *unsettled})
            paths_of_choice = list(compress(paths, choice.wants(paths)))
            listings = self.files_under(timeline, paths_of_choice, unsettled)
            files = AllFiles.of(info for infos in listings for info in infos if not info.is_folder)
            return FileChoice.of(choice, files, len(paths) - len(paths_of_choice))

    # -- following -----------------------------------------------------------------------------------------------------

    def _sync(self, timeline: Timeline) -> None:
        files = self._files
        # A repair moves files without a word on the timeline, so this is asked also where nothing was completed.
        if files.timeline is None or self._set_aside_now() != files.set_aside:
            self._begin()
        elif not files.covers(timeline):
            if completed(timeline) < completed(files.timeline):
                # A slow reader's, or somebody has put an older copy of the table in its place.
                files.pass_by(timeline)
                timeline = self._active.load()
            self._follow(timeline)
            files.save_if_due()

    def _begin(self) -> None:
        """Stand at the timeline of now, with no file known. What is compared later is looked at before."""
        self._files.forget()
        self._files.archive = _state(self._list_archive())
        self._files.stand_at(self._active.load())
        self._files.set_aside = self._set_aside_now()

    def _set_aside_now(self) -> FolderState:
        """As of the last time that the timeline was loaded, or newer. A repair makes the folder before it moves anything."""
        return _state(self._list_set_aside()) if self._active.may_have(SET_ASIDE) else frozenset()

    def _follow(self, timeline: Timeline) -> bool:
        """Apply what was completed since. False where that cannot be told: then nothing is known any more."""
        synced = self._files
        old = synced.timeline
        assert old is not None
        if old.instants == timeline.instants:
            return True
        try:
            changes = self._changes(old, timeline)
        except (_LostTrackError, *_UNREADABLE) as exc:
            if synced.source is not None:
                log.warning("the checkpoint %s of table %s is out of date: %s", synced.source, self.uri, exc)
            else:
                log.info("the files of table %s are listed anew: %s", self.uri, exc)
            self._begin()
            return False
        if changes.undone:
            for path in synced.store.partitions():
                if has_files_of(synced.store.get(path) or {}, changes.undone):
                    changes.of(path).unclear = True
        for path, change in changes.partitions.items():
            files = synced.find(path)
            if files is None:
                continue
            after = change.applied(files)
            if after is None:
                synced.doubt(path)
            elif after != files:
                synced.put(path, after)
        synced.stand_at(timeline)
        synced.followed += changes.instants
        synced.source = None
        return True

    def _changes(self, old: Timeline, new: Timeline) -> Changes:
        """What was completed in between.

        Raises:
            _LostTrackError: that cannot be told.
        """
        if self._set_aside_now() != self._files.set_aside:
            raise _LostTrackError("a repair moved files away, or put some back")
        before = completed(old)
        fresh = [i for i in new if i.is_completed and (i.time, i.action) not in before]
        undoing = [i for i in fresh if i.action in UNDOING]
        undos: Sequence[RestoreMetadata] = self._active.each(self._active.read_undone, undoing)
        undone = {time for each in undos for time, _ in each.undone}
        has_archived = cache(lambda: _state(self._list_archive()) != self._files.archive)
        reason = lost_track(old, new, undone=undone | self._planned_to_undo(new), has_archived=has_archived)
        if reason is not None:
            raise _LostTrackError(reason)
        changes = Changes()
        changes.instants = len(fresh)
        counted = old.completed_times
        for instant, undo in zip(undoing, undos, strict=True):
            partitions = [each for rollback in undo.rollbacks for each in rollback.partitions]
            times = {time for time, _ in undo.undone} & counted
            if instant.action is Action.RESTORE or times:
                changes.add_restore(partitions, {time for time, _ in undo.undone})
            else:
                changes.add_rollback(partitions)
        # An instant that was undone and is there was run once more.
        commits = [i for i in new.commits if (i.time, i.action) not in before or i.time in undone]
        for metadata in self._active.read_commits(commits):
            changes.add_commit(metadata)
        cleans = [i for i in fresh if i.action is Action.CLEAN]
        for cleaned in self._active.each(self._active.read_cleaned, cleans):
            changes.add_clean(cleaned)
        return changes

    def _planned_to_undo(self, timeline: Timeline) -> set[str]:
        """What rollbacks and restores that are at work take back: `ActiveTimeline.load` shows it no more."""
        result: set[str] = set()
        for instant in timeline.pending(*UNDOING):
            if instant.action is Action.RESTORE:
                result.update(time for time, _ in self._active.planned_to_undo(instant))
            elif target := self._active.rollback_target(instant):
                result.add(target)
        return result

    def unsettled(self, timeline: Timeline) -> frozenset[str] | None:
        """Partitions in which a clean, a rollback or a restore is at work; None: it may be any."""
        result: set[str] = set()
        for instant in timeline.pending(Action.CLEAN, *UNDOING):
            if instant.action is Action.RESTORE:
                return None
            try:
                if instant.action is Action.CLEAN:
                    plan = self._active.read_clean_plan(instant.time)
                    result.update(plan.files, plan.emptied)
                else:
                    requests = self._active.read_rollback_plan(instant.time).requests
                    result.update(each.partition_path for each in requests)
            except _UNREADABLE:
                if instant.state is not State.REQUESTED:  # else it is only being planned: nothing was deleted
                    return None
        return frozenset(result)

    # -- listing -------------------------------------------------------------------------------------------------------

    def _list(self, partition_paths: Sequence[str]) -> Mapping[str, Sequence[FileInfo]]:
        """List partitions, and know them from now on."""

        def look() -> AllFiles:
            pairs = zip(partition_paths, self._listing.files(partition_paths), strict=True)
            return AllFiles(tuple(partition_paths), dict(pairs))

        learned, is_kept = self._learn(look, whole=False)
        if not is_kept:
            return learned.files
        pairs = {path: self._files.find(path) for path in partition_paths}
        # One that was in doubt again at once is as it was listed: to be there now is enough for who began before.
        return {path: learned.files[path] if files is None else _infos(path, files) for path, files in pairs.items()}

    def _learn(self, look: Callable[[], AllFiles], *, whole: bool) -> _ListingResult:
        """Take in a listing."""
        files = self._files
        for _ in range(_LISTED_AGAIN):
            listing = look()
            after = self._active.load()
            committed = self._committed_of(after)
            for path, infos in listing.files.items():
                files.put(path, counted_files(path, infos, after, committed))
            files.is_whole |= whole
            if self._follow(after):
                files.learned += len(listing.files)
                files.save_if_due()
                return _ListingResult(listing, is_kept=True)
        return _ListingResult(listing, is_kept=False)

    def _committed_of(self, timeline: Timeline) -> CommittedFiles:
        if self._committed is None or self._committed_on != timeline.instants:
            self._committed = CommittedFiles(timeline, self._active.read_commits)
            self._committed_on = timeline.instants
        return self._committed


@dataclass(frozen=True)
class _Under:
    """`Listing` for one view."""

    synced: SyncedListing
    timeline: Timeline

    @property
    def uri(self) -> str:
        return self.synced.uri

    @once
    def _unsettled(self) -> frozenset[str] | None:
        return self.synced.unsettled(self.timeline)

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        listing = self.synced.only_listed(partition_paths)
        if listing is not None:
            return listing.files(partition_paths)
        return self.synced.files_under(self.timeline, partition_paths, self._unsettled)

    def all_files(self) -> AllFiles:
        listing = self.synced.only_listed(None)
        return listing.all_files() if listing else self.synced.all_files_under(self.timeline, self._unsettled)

    def chosen_files(self, choice: Choice) -> FileChoice:
        if self.synced.at_once:
            return FileChoice.of(choice, self.all_files())
        return self.synced.chosen_files_under(self.timeline, choice, self._unsettled)


def _state(infos: Iterable[FileInfo]) -> FolderState:
    return frozenset((info.path, info.size_bytes) for info in infos if not info.is_folder)


def _infos(partition_path: str, files: Files) -> Sequence[FileInfo]:
    """Their modification times and identities are not known: nobody who asks for slices needs them."""
    return [FileInfo(join(partition_path, name), size, 0.0, False, None) for name, size in files.items()]
