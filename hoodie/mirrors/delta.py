"""Publishes a table as a Delta table over the same base files: the read-optimized view, without rows that still stand in logs.

The log is compared with the table, and a version with what differs is created. So whoever dies leaves a whole version or none, and
the next publication makes up for it. Each reads the log before the table: when the version that follows is free, no newer state of
the table can be in the log.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from hoodie.errors import CommitConflictError, SchemaError, UnsupportedTableError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.timestamp_labels import holds_mislabelled
from hoodie.keygen.unstored import FolderValues, folder_values
from hoodie.mirrors.delta_log import Action, DeltaState, read_state, write_due_checkpoint, write_version
from hoodie.mirrors.delta_types import has_local_times, partition_values, schema_string, stats_string
from hoodie.model.columns import Column
from hoodie.model.enums import LakeFormat, QueryType
from hoodie.model.files import BaseFile
from hoodie.model.instant import parse_instant
from hoodie.model.plans import ReadPlan, ReadTask
from hoodie.model.service_results import Published
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_pinned
from hoodie.view.context import Snapshot, TableContext

APP = "hoodie"
"""The application whose transaction notes the instant."""
_MADE_BY_US = "hoodie.published"
_TRIES = 10
_READ_ONLY = "hoodiePublished"
"""A feature of writers that none of them has: who does not know it does not write, nor vacuum files that the table needs."""
_LOCAL_TIMES = "timestampNtz"


def publish_delta(context: TableContext, *, dry_run: bool = False) -> Published:
    """Bring the Delta log of the table up to its newest commit.

    Raises:
        UnsupportedTableError: Delta cannot say what the table's files are. SchemaError: it has no type for a column.
        CommitConflictError: others publish all the time.
    """
    for _ in range(_TRIES):
        state = read_state(context.storage)
        plan, snapshot = plan_pinned(context, ReadOptions(query=QueryType.READ_OPTIMIZED), meta_columns=False)
        change = _change(context, state, plan, snapshot)
        if dry_run or not change.actions:
            return change.result
        try:
            write_version(context.storage, change.result.version, change.actions)
        except FileExistsError:
            continue
        state.apply(change.actions)
        state.version = change.result.version
        write_due_checkpoint(context.storage, state)
        return change.result
    raise CommitConflictError(f"{context.storage.uri} is published as Delta by others all the time: publish it again")


class _Change(NamedTuple):
    result: Published
    actions: Sequence[Action]


def _change(context: TableContext, state: DeltaState, plan: ReadPlan, snapshot: Snapshot) -> _Change:
    table, schema, now_ms = context.storage.uri, snapshot.schema, int(context.storage.now_s() * 1000)
    if state.version >= 0 and _MADE_BY_US not in state.metadata.get("configuration", {}):
        raise UnsupportedTableError(
            f"{table} holds a Delta table that hoodie has not published: move its _delta_log away, or leave it"
        )
    if schema is None:
        raise SchemaError(f"table {table} has no columns yet, so there is nothing to publish: write to it first")
    folders = folder_values(context.config, schema)
    bases = {_encoded(base.path): base for base in _bases(plan)}
    described = _metadata(context, state, schema, folders, now_ms)
    new = [path for path in bases if path not in state.files]
    gone = [path for path in state.files if path not in bases]
    # Where columns changed, older files have to fit as well.
    looked_at = list(bases) if described else new
    _refuse_renamed(plan, (bases[path] for path in looked_at), table)
    made = context.storage.each(_Adding(context, schema, folders), [bases[path] for path in looked_at])
    adds: Mapping[str, Action] = dict(zip(looked_at, made, strict=True))
    actions = [
        *_protocol(state, schema),
        *described,
        *({"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": True}} for path in gone),
        *(adds[path] for path in new),
    ]
    latest = snapshot.timeline.latest_commit
    instant = None if latest is None else str(latest.time)
    result = Published(LakeFormat.DELTA, instant, state.version + 1, len(new), len(gone))
    if not actions:
        return _Change(replace(result, version=state.version, changed=False), ())
    noted = [] if instant is None else [{"txn": {"appId": APP, "version": int(instant), "lastUpdated": now_ms}}]
    operation = {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "hoodie", "hoodie.instant": instant}
    return _Change(result, [{"commitInfo": operation}, *noted, *actions])


def _bases(plan: ReadPlan) -> Iterator[BaseFile]:
    for task in plan.tasks:
        if isinstance(task, ReadTask) and task.slice.base is not None:
            yield task.slice.base


def _protocol(state: DeltaState, schema: pa.Schema) -> list[Action]:
    features = set(state.protocol.get("readerFeatures", ()))  # what a log has once, it keeps
    local = [_LOCAL_TIMES] if _LOCAL_TIMES in features or has_local_times(schema) else []
    wanted: dict[str, Any] = {"minReaderVersion": 3 if local else 1, "minWriterVersion": 7}
    wanted |= {"readerFeatures": local} if local else {}
    wanted |= {"writerFeatures": [*local, _READ_ONLY]}
    return [] if state.protocol == wanted else [{"protocol": wanted}]


def _metadata(
    context: TableContext, state: DeltaState, schema: pa.Schema, folders: FolderValues | None, now_ms: int
) -> list[Action]:
    wanted = {
        "schemaString": schema_string(schema),
        "partitionColumns": [] if folders is None else [field.name for field in folders.fields],
    }
    if all(state.metadata.get(name) == value for name, value in wanted.items()):
        return []
    first = {
        "id": str(uuid.uuid4()),
        "name": context.config.name,
        "format": {"provider": "parquet", "options": {}},
        "configuration": {_MADE_BY_US: "true"},
        "createdTime": now_ms,
    }
    return [{"metaData": {**first, **state.metadata, **wanted}}]


class _Adding:
    """Makes the action that adds a base file, of its footer."""

    def __init__(self, context: TableContext, schema: pa.Schema, folders: FolderValues | None) -> None:
        self._context = context
        self._folders = folders
        made = set() if folders is None else {field.name for field in folders.fields}
        self._stored = pa.schema([field for field in schema if field.name not in made])

    def __call__(self, base: BaseFile) -> Action:
        place = f"{self._context.storage.uri}/{base.path}"
        if not base.name.endswith(".parquet"):
            raise UnsupportedTableError(f"{place} is no Parquet file: files of a Delta table are")
        with open_base_file(self._context.storage, base) as (file, footer):
            stored = {field.name: field.type for field in file.schema_arrow}
            for field in self._stored:
                if field.name in stored and not _reads_as(stored[field.name], field.type):
                    raise UnsupportedTableError(
                        f"{place} has column {field.name!r} as {stored[field.name]}, and the table as {field.type}: readers of Delta "
                        "do not convert that. Rewrite older files, by clustering for instance"
                    )
            stats = stats_string(footer, [field for field in self._stored if stored.get(field.name) == field.type])
        values = {} if self._folders is None else partition_values(self._folders.of(base.partition_path))
        return {
            "add": {
                "path": _encoded(base.path),
                "partitionValues": values,
                "size": base.size_bytes,
                "modificationTime": int(parse_instant(base.instant).timestamp() * 1000),
                "dataChange": True,
                "stats": stats,
            }
        }


_WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def _reads_as(stored: Any, now: Any) -> bool:
    if holds_mislabelled(stored, now):
        return False
    types = pa.types
    if types.is_nested(now) or (types.is_timestamp(stored) and types.is_timestamp(now)):
        return bool(stored.id == now.id)
    return bool(stored == now or _WIDER.get(stored) == now)


def _encoded(path: str) -> str:
    return quote(path, safe="/=")


def _refuse_renamed(plan: ReadPlan, bases: Iterable[BaseFile], table: str) -> None:
    """Raises UnsupportedTableError where a name means another column in a file than now: Delta goes by names."""
    history = plan.context.history
    if history is None:
        return
    now = dict(_places(history.now))
    ids = {place: number for number, place in now.items()}
    for version in {id(found): found for base in bases if (found := history.at(base.instant)) is not None}.values():
        for number, place in _places(version.columns):
            if now.get(number, place) != place or ids.get(place, number) != number:
                raise UnsupportedTableError(
                    f"column {now.get(number, place)!r} of table {table} has another name in older files, and Delta goes by names: "
                    "rewrite these files, by clustering for instance"
                )


def _places(columns: Iterable[Column], above: str = "") -> Iterator[tuple[int, str]]:
    for column in columns:
        yield column.id, f"{above}{column.name}"
        yield from _places(column.parts, f"{above}{column.name}.")
