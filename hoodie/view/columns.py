"""The history of a table's columns, where they were renamed, dropped or moved by Apache Hudi (`hoodie.schema.on.read.enable`).

Its sources: `latest_schema` in commits, and the newest file in `.hoodie/.schema`, which has every version and outlives the
commits. A file has the columns of the version that its commit names; without one, of the newest version before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.internal_schema import LATEST_SCHEMA, parse_internal_schema, parse_schema_history
from hoodie.model.columns import Column, ColumnHistory
from hoodie.model.instant import Instant, InstantTime, is_instant_time
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import HOODIE, join
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.schema import stated_schema

SCHEMA_FOLDER = join(HOODIE, ".schema")
_COMPLETED = ".schemacommit"

Versions = dict[int, tuple[Column, ...]]


def column_history(
    storage: Storage,
    active: ActiveTimeline,
    timeline: Timeline,
    *,
    until: InstantTime | None = None,
) -> ColumnHistory | None:
    """The columns as of instant `until` (None: now), and those of older files; None where names alone tell them apart.

    Raises:
        UnsupportedTableError: a writer that did not keep the history changed the columns since.
        CorruptFileError: a schema is damaged.
    """
    files = _history_files(active.list_beside(SCHEMA_FOLDER), timeline)
    newest = _newest_stated(active, timeline, until)
    if newest is None or not (files or LATEST_SCHEMA in newest[1]):
        return None
    versions: Versions = {}
    if files:
        text = _read(storage, files[-1])
        versions.update(parse_schema_history(text, path=f"{storage.uri}/{files[-1]}"))
    stated: dict[str, int] = {}
    for instant in timeline.commits:
        text = active.read_commit(instant).extra.get(LATEST_SCHEMA, "")
        if text:
            version, columns = parse_internal_schema(text, path=f"the metadata of {instant} of table {storage.uri}")
            stated[instant.time] = version
            versions[version] = columns
    history = ColumnHistory(storage.uri, (), tuple(sorted(versions.items())), stated)
    now = history.at(newest[0].time)
    if now is None:
        return None  # as of a moment before the first change
    if newest[0].time not in stated:
        if not any(0 < version <= int(newest[0].time.padded) for version in versions):
            return None
        _refuse_other_names(newest[0], now, stated_schema(newest[0], active.read_commit(newest[0])), storage.uri)
    return ColumnHistory(storage.uri, now, history.versions, stated)


def refuse_to_write(storage: Storage, active: ActiveTimeline, timeline: Timeline) -> None:
    """Raises UnsupportedTableError where the columns have a history: this release would not carry it on."""
    if column_history(storage, active, timeline) is not None:
        raise UnsupportedTableError(
            f"table at {storage.uri} can be read, not written: its columns were changed with hoodie.schema.on.read.enable, and this "
            "release does not carry their history on; write it with Apache Hudi"
        )


def _history_files(listed: Sequence[FileInfo], timeline: Timeline) -> list[str]:
    """Paths of the files with all versions, oldest first; those of instants that never completed do not count."""
    found = []
    for info in listed:
        name = info.name
        time = name.removesuffix(_COMPLETED).partition("_")[0]
        if name.endswith(_COMPLETED) and is_instant_time(time) and timeline.sees(time):
            found.append((InstantTime(time), info.path))
    return [path for _, path in sorted(found)]


def _newest_stated(
    active: ActiveTimeline, timeline: Timeline, until: InstantTime | None
) -> tuple[Instant, dict[str, str]] | None:
    for instant in reversed(timeline.commits):
        if until is None or instant.time <= until:
            metadata = active.read_commit(instant)
            if metadata.schema_json or metadata.extra.get(LATEST_SCHEMA):
                return instant, dict(metadata.extra)
    return None


def _read(storage: Storage, path: str) -> str:
    try:
        return storage.read(path).decode()
    except (UnicodeDecodeError, FileNotFoundError) as exc:
        raise CorruptFileError(
            f"{storage.uri}/{path}, the history of the table's columns, cannot be read: {exc}"
        ) from exc


def _refuse_other_names(instant: Instant, now: tuple[Column, ...], schema: pa.Schema | None, table: str) -> None:
    named = [column for column in now if column.name not in META_COLUMNS]
    if schema is None or not _names_agree(named, list(schema)):
        raise UnsupportedTableError(
            f"{instant} of table {table} changed columns without hoodie.schema.on.read.enable, after others had been renamed or "
            "dropped with it: which column of an older file is which is not known any more. Write once more with that option of "
            "Apache Hudi, or read as of an earlier instant"
        )


def _names_agree(columns: list[Column], fields: list[pa.Field]) -> bool:
    if [column.name for column in columns] != [field.name for field in fields]:
        return False
    return all(_parts_agree(column, field.type) for column, field in zip(columns, fields, strict=True))


def _parts_agree(column: Column, kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return _names_agree(list(column.parts), [kind.field(i) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return len(column.parts) == 1 and _parts_agree(column.parts[0], kind.value_type)
    if pa.types.is_map(kind):
        return len(column.parts) == 2 and _parts_agree(column.parts[1], kind.item_type)
    return not column.parts
