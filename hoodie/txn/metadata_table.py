"""What a table's properties say of its metadata table: it is announced, partitions of it are dropped, or all of it is.

Apache Hudi's writers make one by default, also on tables that had none, and its default readers then take its word for
which files there are. What is not kept up to date goes before we publish anything, as it does when a writer of Apache Hudi
has `hoodie.metadata.enable=false`. A later writer that wants it builds it again from a listing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from hoodie.format.properties import format_properties, parse_properties_file
from hoodie.metadata.index_definitions import forget_definition
from hoodie.model.names import HOODIE, METADATA_TABLE, PROPERTIES, PROPERTIES_BACKUP
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.parallel import together
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline

log = logging.getLogger("hoodie")

_KEYS = "hoodie.table.metadata.partitions"
"""Of this key and `….inflight`: readers go by them, not by the folder."""


class MetadataState(NamedTuple):
    """What a table says of its metadata table, and what is there of it."""

    properties: Mapping[str, str]
    left_behind: Sequence[FileInfo]


class Seen(NamedTuple):
    """The table as it was looked at under the lock a moment ago."""

    properties: Mapping[str, str]
    timeline: Timeline
    metadata_folder: Sequence[FileInfo] | None
    """What `list_metadata_folder` gave, at the same time."""


def list_metadata_folder(active: ActiveTimeline, storage: Storage) -> Sequence[FileInfo] | None:
    """What stands in the folder of the metadata table; None where the timeline, when it was loaded last, showed that there is none."""
    return storage.list(METADATA_TABLE) if active.may_have(METADATA_TABLE) else None


def look_at_metadata_table(storage: Storage) -> MetadataState:
    """Raises FileNotFoundError: there are no properties, nor a backup of them."""
    (path, data), left_behind = together(
        storage, partial(_read_properties, storage), partial(storage.list, METADATA_TABLE)
    )
    return MetadataState(parse_properties_file(data, path=f"{path} of table {storage.uri}"), left_behind)


def metadata_state(active: ActiveTimeline, storage: Storage, seen: Seen) -> MetadataState:
    """The same from what was seen already: no folder is listed again, or that the timeline does not show."""
    properties = seen.properties
    if seen.metadata_folder is not None:
        return MetadataState(properties, seen.metadata_folder)
    announced = any(properties[key].strip() for key in properties if key.startswith(_KEYS))
    return MetadataState(properties, storage.list(METADATA_TABLE) if announced else active.list_beside(METADATA_TABLE))


def drop_metadata_table(
    storage: Storage,
    state: MetadataState | None = None,
    *,
    why: str = "which cannot be kept up to date",
) -> bool:
    """Take the table's word that it has a metadata table back, then delete that; False when there was none.

    Call it under the table lock, before anything is published. The properties go first: a crash in between leaves a
    folder that nobody reads, and the next call deletes it. Keys that we do not know stay as they are.

    Raises:
        FileNotFoundError: there are no properties, nor a backup of them.
    """
    properties, left_behind = look_at_metadata_table(storage) if state is None else state
    keys = [key for key in properties if key.startswith(_KEYS)]
    announced = any(properties[key].strip() for key in keys)
    if not announced and not left_behind:
        return False
    if announced:
        _replace_properties(storage, {key: value for key, value in properties.items() if key not in keys})
    storage.delete_folder(METADATA_TABLE)
    log.warning(
        "dropped the metadata table of %s (%s), %s; readers list the files instead",
        storage.uri,
        ", ".join(properties[key] for key in keys if properties[key]) or "left behind",
        why,
    )
    return True


def announce(storage: Storage, partition: str, more: Mapping[str, str] | None = None) -> MetadataState:
    """Say that the metadata table has this partition; under the lock, when that is whole. `more`: further properties."""
    properties, _ = look_at_metadata_table(storage)
    names = sorted({partition, *filter(None, properties.get(_KEYS, "").split(","))})
    _replace_properties(storage, {**properties, **(more or {}), _KEYS: ",".join(names), f"{_KEYS}.inflight": ""})
    return look_at_metadata_table(storage)


def drop_others(storage: Storage, state: MetadataState, partitions: Collection[str]) -> MetadataState:
    """Drop all partitions but these, in the way in which `drop_metadata_table` drops the table; gives the new state."""
    old_lists = {key: state.properties[key] for key in state.properties if key.startswith(_KEYS)}
    others = [info for info in state.left_behind if info.is_folder and info.name not in (HOODIE, *partitions)]
    if others or set(old_lists.pop(_KEYS).split(",")) != set(partitions) or any(old_lists.values()):
        names = ",".join(sorted(partitions))
        properties = {key: state.properties[key] for key in state.properties if key not in old_lists} | {_KEYS: names}
        if properties != state.properties:
            _replace_properties(storage, properties)
        for info in others:
            storage.delete_folder(info.path)
        dropped = ", ".join(info.name for info in others)
        log.warning("dropped %s of the metadata table of %s: hoodie does not maintain it", dropped, storage.uri)
        return MetadataState(properties, [info for info in state.left_behind if info not in others])
    return state


def drop_partitions(storage: Storage, *partitions: str) -> bool:
    """Drop some partitions; False where there was none. As `drop_metadata_table` drops all of it, under the table lock."""
    properties, left_behind = look_at_metadata_table(storage)
    lists = {key: properties[key].split(",") for key in (_KEYS, f"{_KEYS}.inflight") if properties.get(key)}
    new_lists = {key: [each for each in names if each not in partitions] for key, names in lists.items()}
    folders = [info for info in left_behind if info.is_folder and info.name in partitions and info.name != HOODIE]
    if new_lists != lists:
        _replace_properties(storage, {**properties, **{key: ",".join(names) for key, names in new_lists.items()}})
    for each in partitions:
        forget_definition(storage, properties, each)
    for info in folders:
        storage.delete_folder(info.path)
    return new_lists != lists or bool(folders)


def _replace_properties(storage: Storage, properties: Mapping[str, str]) -> None:
    now = datetime.now(UTC)
    comment = [f"Updated at {now.isoformat()}", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
    storage.replace(PROPERTIES, format_properties(properties, comment=comment).encode())


def _read_properties(storage: Storage) -> tuple[str, bytes]:
    try:
        return PROPERTIES, storage.read(PROPERTIES)
    except FileNotFoundError:
        return PROPERTIES_BACKUP, storage.read(PROPERTIES_BACKUP)
