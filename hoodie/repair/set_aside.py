"""Files that a repair takes out of a table are not deleted: they are moved into a folder of ours, and can be put back.

`.hoodie/.hoodie_py_set_aside/<name>/<path in the table>`: a file's place says where it came from, so nothing else has to be kept.
Beside the folder `<name>.json` says why each went. It is written first, for people; the way back does not need it.

`remains` lists the places that may still hold deleted rows: older versions, logs, bounds in commits, and files that were set aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import cast

from hoodie.filegroup.row_copies import row_copies_of
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.mirrors.delta_log import FOLDER as DELTA_LOG
from hoodie.mirrors.iceberg import FOLDER as ICEBERG
from hoodie.model.findings import Repair
from hoodie.model.instant import InstantTime, is_instant_time, next_instant, parse_instant
from hoodie.model.names import HOODIE, METADATA_TABLE, QUARANTINE, SET_ASIDE, join, parse_base_file, parse_log_file
from hoodie.storage.base import CopyingStorage, FileInfo, RenamingStorage, Storage
from hoodie.view.context import Snapshot, TableContext

_NOTE = ".json"
_HINT = "version-hint.text"
_WITHOUT_VALUES = (HOODIE, "files", "bloom_filters")
"""Folders of the metadata table."""


def new_name(storage: Storage, now: str, why: Sequence[Repair]) -> str:
    """Begin a set of files that are moved away; its name is a moment."""
    note = json.dumps([{"path": each.path, "why": each.why, "size_bytes": each.size_bytes} for each in why], indent=1)
    name = now
    while True:
        try:
            storage.create_new(join(SET_ASIDE, f"{name}{_NOTE}"), note.encode())
        except FileExistsError:
            name = next_instant(parse_instant(name), name)
            continue
        return name


def move_away(storage: Storage, name: str, paths: Sequence[str]) -> None:
    """Move files of the table into the set; a file that is missing by now is passed over."""
    storage.each(lambda path: _move(storage, path, _path_aside(name, path)), paths)


def put_back(storage: Storage, name: str, paths: Sequence[str]) -> None:
    """Move files of the set to where they came from.

    Raises:
        FileExistsError: another file stands there.
    """
    storage.each(lambda path: _move(storage, _path_aside(name, path), path), paths)


def forget(storage: Storage, name: str) -> None:
    """Remove the note and the folder of a set that is empty."""
    if not set_aside_files(storage, name):
        storage.delete_folder(join(SET_ASIDE, name))
        storage.delete(join(SET_ASIDE, f"{name}{_NOTE}"))


def set_aside_names(storage: Storage) -> tuple[str, ...]:
    """The sets that there are, oldest first."""
    names = {info.name.removesuffix(_NOTE) for info in storage.list(SET_ASIDE)}
    return tuple(sorted(name for name in names if is_instant_time(name)))


def set_aside_files(storage: Storage, name: str) -> dict[str, FileInfo]:
    """The files of a set, by where they stood in the table."""
    folder = join(SET_ASIDE, name)
    infos = (info for info in storage.list(folder, recursive=True) if not info.is_folder)
    return {info.path.removeprefix(f"{folder}/"): info for info in infos}


def keep_copy(storage: Storage, name: str, path: str, data: bytes) -> None:
    """Keep these bytes in the set as the file of the table that they are; who died on the way has done so."""
    try:
        storage.create_new(_path_aside(name, path), data)
    except FileExistsError:
        return


def _path_aside(name: str, path: str) -> str:
    return join(SET_ASIDE, name, path)


def _move(storage: Storage, source: str, target: str) -> None:
    """Where there are no renames: a copy, and then the file goes. Who dies in between leaves both, and the next one ends it."""
    if isinstance(storage.lock_root, RenamingStorage):
        try:
            cast(RenamingStorage, storage).move_new(source, target)
        except FileNotFoundError:
            return
        except FileExistsError:
            if not _are_same(storage, source, target):
                raise
            storage.delete(source)
        return
    try:
        if storage.exists(target):
            if not _are_same(storage, source, target):
                raise FileExistsError(target)
        else:
            cast(CopyingStorage, storage).copy_file(source, target)
    except FileNotFoundError:
        return
    storage.delete(source)


def _are_same(storage: Storage, one: str, other: str) -> bool:
    """Whether a move between the two was begun before: a crash can leave the file under both names."""
    return storage.stat(one).size_bytes == storage.stat(other).size_bytes and storage.read(one) == storage.read(other)


def remains(context: TableContext, before: InstantTime | None) -> tuple[str, ...]:
    """Why rows that were deleted by the commit `before`, or earlier, may still be read from files; nothing where they are gone."""
    return tuple(_remains(context.on_storage(), before))


def _remains(context: TableContext, before: InstantTime | None) -> Iterator[str]:
    storage, snapshot = context.storage, context.snapshot()
    slices = snapshot.view.latest_slices(snapshot.view.every_partition())
    newest = {piece.base.path for piece in slices if piece.base is not None}
    logs = {log.path for piece in slices for log in piece.logs}
    for partition_path in snapshot.view.every_partition():
        for info in storage.list(partition_path):
            name = info.name
            if parse_log_file(name) is not None and info.path in logs:
                yield f"{info.path}: a log that is not compacted"
            elif info.path not in newest and (parse_log_file(name) or parse_base_file(name)) is not None:
                yield f"{info.path}: an older version, which a reader, a consumer or a plan of a service keeps from being cleaned"
    if before is not None:
        for commit in snapshot.timeline.commits:
            metadata = snapshot.active.read_commit(commit)
            speaks_of_others = any(stat.path not in newest for stat in metadata.stats())
            if commit.time < before and COLUMN_STATS in metadata.extra and speaks_of_others:
                yield f"commit {commit.time}: it states bounds of columns and is not archived"
        archived = snapshot.archived.read_commits(snapshot.archived.commits)
        for time in sorted(time for time, metadata in archived.items() if COLUMN_STATS in metadata.extra):
            yield f"archived commit {time}: it states bounds of columns, as Apache Hudi or an older version of hoodie archived it"
        for instant, paths in row_copies_of(storage).items():
            yield from (f"{path}: copies of log rows" for path in paths if instant < before)
        yield from _from_before_deletes(context, snapshot)
    yield from (f"{SET_ASIDE}/{name}: files that a repair took out" for name in set_aside_names(storage))


def _from_before_deletes(context: TableContext, snapshot: Snapshot) -> Iterator[str]:
    """Folders beside the data, as far as they have files from before the last commit that deleted rows was completed."""
    storage = context.storage
    deleting = {
        c.time
        for c in snapshot.timeline.commits
        if any(each.num_deletes for each in snapshot.active.read_commit(c).stats())
    }
    files = storage.list(context.config.timeline_folder)
    until_s = max((info.mtime_s for info in files if info.name.startswith(max(deleting, default="-"))), default=None)
    if until_s is None:
        return
    indexes = [
        info.name for info in storage.list(METADATA_TABLE) if info.is_folder and info.name not in _WITHOUT_VALUES
    ]
    for folder, what in (
        *(
            (f"{METADATA_TABLE}/{name}", f"the index {name} has keys or values: drop it, and build it again")
            for name in indexes
        ),
        (DELTA_LOG, "published metadata state bounds of columns: delete the folder, and publish again"),
        *(
            [(ICEBERG, "published metadata state bounds of columns: delete the folder, and publish again")]
            if storage.exists(f"{ICEBERG}/{_HINT}")
            else []
        ),
        (QUARANTINE, "records that an ingestion set apart: delete those of the rows"),
    ):
        older = sorted(
            info.path for info in storage.list(folder, recursive=True) if not info.is_folder and info.mtime_s < until_s
        )
        if older:
            yield f"{folder}: {what}"
