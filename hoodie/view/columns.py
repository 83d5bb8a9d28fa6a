"""The history of a table's columns, where they were renamed, dropped or moved (`hoodie.schema.on.read.enable` of Apache Hudi).

Its sources: `latest_schema` in commits, and the newest file in `.hoodie/.schema`, which has every version and outlives the
commits. A file has the columns of the version that its commit names; without one, of the newest version before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.column_ids import evolved, first_columns
from hoodie.format.internal_schema import (
    LATEST_SCHEMA,
    encode_schema_history,
    parse_internal_schema,
    parse_schema_history,
)
from hoodie.model.columns import Column, ColumnHistory, ColumnSet
from hoodie.model.instant import Instant, InstantTime, is_instant_time
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import HOODIE, join, name_of
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.schema import stated_schema

SCHEMA_FOLDER = join(HOODIE, ".schema")
NO_VERSION = 10**17 - 1
"""Of columns that no instant has yet."""
_COMPLETED = ".schemacommit"


def column_history(
    active: ActiveTimeline, timeline: Timeline, *, until: InstantTime | None = None
) -> ColumnHistory | None:
    """The columns as of instant `until` (None: now), and those of older files; None where names alone tell them apart.

    Raises:
        UnsupportedTableError: a writer that did not keep the history changed the columns since.
        CorruptFileError: a schema is damaged.
    """
    storage = active.storage
    files = _history_files(active.list_beside(SCHEMA_FOLDER), timeline)
    newest = _newest_stated(active, timeline, until)
    if newest is None or not (files or LATEST_SCHEMA in newest[1]):
        return None
    versions: dict[int, ColumnSet] = {}
    if files:
        text = _read(storage, files[-1])
        all_versions = parse_schema_history(text, path=f"{storage.uri}/{files[-1]}")
        versions.update((each.version, each) for each in all_versions)
    versions_of: dict[str, int] = {}
    for instant in timeline.commits:
        text = active.read_commit(instant).extra.get(LATEST_SCHEMA, "")
        if text:
            columns = parse_internal_schema(text, path=f"the metadata of {instant} of table {storage.uri}")
            versions_of[instant.time] = columns.version
            versions[columns.version] = columns
    ordered = tuple(sorted(versions.values()))
    now = ColumnHistory(storage.uri, ColumnSet(0, (), -1), ordered, versions_of).at(newest[0].time)
    if now is None:
        return None  # as of a moment before the first change
    if newest[0].time not in versions_of:
        if not any(0 < version <= int(newest[0].time.padded) for version in versions):
            return None
        schema = stated_schema(newest[0], active.read_commit(newest[0]))
        _refuse_other_names(newest[0], now.columns, schema, storage.uri)
    return ColumnHistory(storage.uri, now, ordered, versions_of)


def history_with(before: ColumnHistory, newest: ColumnSet) -> ColumnHistory:
    """The history after a write that has these columns."""
    if newest == before.newest:
        return before
    others = [each for each in before.versions if each.version != newest.version]
    return ColumnHistory(before.table, newest, tuple(sorted([*others, newest])), before.versions_of)


def history_after(before: ColumnHistory | None, schema: pa.Schema, version: int) -> ColumnHistory | None:
    """The history after a write with this schema, which has no meta columns: what it adds is new."""
    if before is None:
        return None
    widest = max(each.max_id for each in before.versions)
    return history_with(before, evolved(before.newest._replace(max_id=widest), schema, version))


def first_history(table: str, schema: pa.Schema, *, meta_columns: bool, docs: Mapping[str, str]) -> ColumnHistory:
    """The history of a table that had none."""
    columns = first_columns(schema, meta_columns=meta_columns, docs=docs)
    return ColumnHistory(table, columns, (columns,), {})


def keep_history(active: ActiveTimeline, timeline: Timeline, history: ColumnHistory, instant: InstantTime) -> None:
    """Put the history of a commit that is about to be completed where readers look for it, and take away what nobody reads any more.

    A file counts only while its commit does. Each commit has one, as with Apache Hudi, which reads those of the active timeline.
    """
    times = {each.time for each in timeline.instants}
    infos = active.list_beside(SCHEMA_FOLDER)
    newest = _history_files(infos, timeline)[-1:]
    old = [info.path for info in infos if info.path not in newest and _time_of(info.path) not in times]
    # From version 8 on names have the time of completion, too; nobody asks for that of these files.
    name = f"{instant}_{instant}" if timeline.by_completion else str(instant)
    active.storage.mkdirs(SCHEMA_FOLDER)
    data = encode_schema_history(history.versions).encode()
    active.storage.replace(join(SCHEMA_FOLDER, f"{name}{_COMPLETED}"), data)
    active.storage.delete_all(old)


def _history_files(infos: Sequence[FileInfo], timeline: Timeline) -> list[str]:
    """Paths of the files with all versions, oldest first; those of instants that never completed do not count."""
    pairs = []
    for info in infos:
        time = _time_of(info.path)
        if info.name.endswith(_COMPLETED) and is_instant_time(time) and timeline.sees(time):
            pairs.append((InstantTime(time), info.path))
    return [path for _, path in sorted(pairs)]


def _time_of(path: str) -> str:
    return name_of(path).partition(".")[0].partition("_")[0]


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
    data_columns = [column for column in now if column.name not in META_COLUMNS]
    if schema is None or not _names_agree(data_columns, list(schema)):
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
