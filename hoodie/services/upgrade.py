"""The upgrade of a table of version 6 to version 8 or 9, or of 8 to 9, on request (Apache Hudi: `UpgradeDowngrade`). Older ones
become one of version 6 first (`services/renewal.py`).

First what is pending is ended, and a merge-on-read table is compacted in full: logs of version 6 are named with the instant of their
slice, logs of later versions with their own. Then, under the table lock, everything of the new timeline is put beside the old one,
where no reader of version 6 looks. The properties are the one step that counts: before it the table is of version 6, after it of the
other. What is left of the old timeline goes last, so that who dies on the way leaves files that nobody reads, and the next
upgrade, or this one again, takes them away. The old archive stays, as Apache Hudi leaves it. From 8
to 9 only the properties change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

from hoodie.errors import CommitConflictError, UnsupportedTableError
from hoodie.filegroup.row_copies import drop_row_copies, row_copies_of
from hoodie.format.archive_entries import StateFile
from hoodie.format.downgraded import COMPLETED_AT
from hoodie.format.layout import LAYOUTS, V6, Layout
from hoodie.format.upgraded import upgraded_entries, upgraded_file
from hoodie.model.enums import Action, TableVersion
from hoodie.model.instant import Instant, InstantTime, format_instant, is_instant_time, parse_instant
from hoodie.model.names import COMPLETES_AS, HOODIE, join
from hoodie.model.service_results import UpgradeResult
from hoodie.options.table import parse_table_config
from hoodie.options.table_changes import renewed_properties, upgraded_properties
from hoodie.options.write import WriteOptions
from hoodie.services.renewal import renew
from hoodie.services.version_change import change_version, put_properties
from hoodie.storage.base import FileInfo
from hoodie.timeline.lsm_writer import LsmArchiveWriter
from hoodie.timeline.timeline import WRITES
from hoodie.txn.critical import under_lock
from hoodie.view.consumers import encode_place, place_path, stored_places
from hoodie.view.context import Snapshot, TableContext

log = logging.getLogger("hoodie")


def upgrade(context: TableContext, options: WriteOptions, version: TableVersion, *, dry_run: bool) -> UpgradeResult:
    """Make the table one of this version, or say what that would do.

    Raises:
        UnsupportedTableError: the version is not a later one, or as `renew` says.
        CommitConflictError: writes or services are pending, and not dead; nothing was changed, but for compactions that were due.
    """
    context = context.on_storage()
    if not context.config.layout.is_written:
        renewed = renew(context, options, dry_run=dry_run)
        if version is V6.version:
            return renewed
        config = parse_table_config(renewed_properties(context.config), uri=context.storage.uri)
        second = upgrade(replace(context, config=config), options, version, dry_run=dry_run)
        return replace(
            second,
            before=renewed.before,
            compacted=max(
                renewed.compacted, second.compacted
            ),  # the first compaction leaves the second one nothing to do
            changes=renewed.changes + second.changes,
        )
    layout = LAYOUTS[version]
    if context.config.layout is layout:
        if layout.by_completion and not dry_run:
            _sweep(context)
        return UpgradeResult(int(version), int(version), dry_run=dry_run)
    if version < context.config.version:
        raise UnsupportedTableError(
            f"table {context.storage.uri} has version {int(context.config.version)}, which is more than {int(version)}: downgrade it"
        )
    properties = upgraded_properties(context.config, layout)

    def move(snapshot: Snapshot) -> None:
        _require_no_logs(context, snapshot)
        _Upgrade(context, layout, snapshot).put(properties)

    return change_version(context, options, layout, properties, move=move, verb="upgraded", dry_run=dry_run)


def _require_no_logs(context: TableContext, snapshot: Snapshot) -> None:
    logs = [each for each in snapshot.view.latest_slices() if each.logs]
    if logs:
        raise CommitConflictError(
            f"table {context.storage.uri} was not upgraded: file group {logs[0].group.file_id} in partition "
            f"{logs[0].group.partition_path!r} got a log after the compaction; upgrade again while nobody writes"
        )


class _Upgrade:
    """What one upgrade puts and takes away, under the lock."""

    def __init__(self, context: TableContext, layout: Layout, snapshot: Snapshot) -> None:
        self._context = context
        self._storage = context.storage
        self._layout = layout
        self._active = {(i.time, i.action) for i in snapshot.timeline}
        self._files = context.active.state_files(self._active)
        self._archived = [join(context.config.history_folder, name) for name in context.archived().files]
        self._completions = self._all_completions()

    def put(self, properties: Mapping[str, str]) -> None:
        storage, layout = self._storage, self._layout
        folder = layout.folder
        storage.delete_folder(folder)  # of an upgrade that died: nobody reads it while the table is of version 6
        self._put_archive(join(folder, layout.history.default))
        self._put_timeline(folder)
        places = [place for place in stored_places(storage) if place.position is not None]
        put_properties(self._context, properties, verb="upgraded")
        # From here on the table is of the new version. A place that is not moved gives its last commit once more.
        for place in places:
            moved = replace(place, position=self._position(place.position or InstantTime("")))
            storage.replace(place_path(place.name), encode_place(moved))
        drop_row_copies(storage, of=frozenset(row_copies_of(storage)))
        storage.each(storage.delete, [info.path for _, info in self._files])
        log.info("upgraded table %s to version %d", storage.uri, int(layout.version))

    def _all_completions(self) -> dict[tuple[str, Action], InstantTime]:
        """When each instant was completed: as its file says, and after its own beginning; of writes also after all before it, so that
        they are in one order by both times.
        """
        reached = {
            (instant.time, instant.action): self._completed_at(instant, info)
            for instant, info in self._files
            if instant.is_completed
        }
        for path in self._archived:
            for file in upgraded_entries(self._storage.read(path), path=path):
                if file.instant.is_completed:
                    reached.setdefault((file.instant.time, file.instant.action), InstantTime(file.reached))
        result: dict[tuple[str, Action], InstantTime] = {}
        last = InstantTime("")
        for (time, action), when in sorted(reached.items()):
            least = max(time, last) if action in WRITES else time
            result[time, action] = max(when, format_instant(parse_instant(least) + timedelta(milliseconds=1)))
            last = result[time, action] if action in WRITES else last
        return result

    def _completed_at(self, instant: Instant, info: FileInfo) -> InstantTime:
        """As a downgrade has stated it, or as its file says."""
        if instant.action in WRITES:
            text = self._context.active.read_commit(instant).extra.get(COMPLETED_AT, "")
            if is_instant_time(text):
                return InstantTime(text)
        return format_instant(self._context.clock.wall(info.mtime_s))

    def _put_archive(self, folder: str) -> None:
        writer = LsmArchiveWriter(self._storage, folder, layout=self._layout, lock=nullcontext)
        for path in self._archived:
            entries = upgraded_entries(self._storage.read(path), path=path)
            # One that is on both timelines lost its archiver, and is archived again.
            files = [file for file in map(self._completed, entries) if _key(file.instant) not in self._active]
            if files:
                writer.add(files, timeline=folder)
        writer.merge()

    def _completed(self, file: StateFile) -> StateFile:
        instant = file.instant
        completion = self._completions[instant.time, instant.action] if instant.is_completed else None
        return file._replace(instant=instant._replace(completion=completion))

    def _put_timeline(self, folder: str) -> None:
        storage = self._storage
        contents = storage.each(storage.read, [info.path for _, info in self._files])
        files = []
        for (instant, info), content in zip(self._files, contents, strict=True):
            file = self._completed(
                StateFile(self._renamed(instant), upgraded_file(instant, content, path=info.path), "")
            )
            files.append((join(folder, self._layout.file_name(file.instant)), file.content))
        storage.mkdirs(join(folder, self._layout.history.default))
        storage.each(lambda each: storage.replace(*each), files)

    def _renamed(self, instant: Instant) -> Instant:
        """Pending states of a completed clustering say so from version 8 on."""
        is_clustering = instant.action is Action.REPLACECOMMIT and not instant.is_completed
        if is_clustering and self._context.active.is_pending_clustering(instant):
            return instant._replace(action=Action.CLUSTERING)
        return instant

    def _position(self, position: InstantTime) -> InstantTime:
        """A consumer's position as a completion time: that of the last write up to it."""
        completions = [
            each for (time, action), each in self._completions.items() if action in WRITES and time <= position
        ]
        return max(completions, default=position)


def _key(instant: Instant) -> tuple[InstantTime, Action]:
    return instant.time, COMPLETES_AS.get(instant.action, instant.action)


def _sweep(context: TableContext) -> None:
    """Delete the files of the old timeline that a dead upgrade has left."""
    with under_lock(context):
        leftovers = [
            info for info in context.storage.list(HOODIE) if not info.is_folder and V6.parse(info.name) is not None
        ]
        context.storage.each(context.storage.delete, [info.path for info in leftovers])
