"""Publishes a table as a Delta table over the same base files: the read-optimized view, without rows that are still in log files.

The log is compared with the table, and a version with what differs is created. So whoever dies leaves a whole version or none, and
the next publication makes up for it. Each reads the log before the table: when the version that follows is free, no newer state of
the table can be in the log.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from hoodie.errors import CommitConflictError, SchemaError, UnsupportedTableError
from hoodie.keygen.unstored import FolderValues, folder_values
from hoodie.mirrors.base_files import Described, Describing, bases_of, refuse_renamed
from hoodie.mirrors.delta_log import Action, DeltaState, read_state, write_due_checkpoint, write_version
from hoodie.mirrors.delta_types import has_local_times, partition_values, schema_string, stats_string
from hoodie.model.enums import LakeFormat, QueryType
from hoodie.model.instant import parse_instant
from hoodie.model.plans import ReadPlan
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
    bases = {_encoded(base.path): base for base in bases_of(plan)}
    described = _metadata(context, state, schema, folders, now_ms)
    new = [path for path in bases if path not in state.files]
    old_paths = [path for path in state.files if path not in bases]
    # Where columns changed, older files have to fit as well.
    looked_at = list(bases) if described else new
    refuse_renamed(plan, (bases[path] for path in looked_at), table)
    descriptions = context.storage.each(Describing(context, schema, folders), [bases[path] for path in looked_at])
    files = dict(zip(looked_at, descriptions, strict=True))
    actions = [
        *_protocol(state, schema),
        *described,
        *({"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": True}} for path in old_paths),
        *(_adding(files[path], schema) for path in new),
    ]
    latest = snapshot.timeline.latest_commit
    instant = None if latest is None else str(latest.time)
    result = Published(LakeFormat.DELTA, instant, state.version + 1, len(new), len(old_paths))
    if not actions:
        return _Change(replace(result, version=state.version, changed=False), ())
    noted = [] if instant is None else [{"txn": {"appId": APP, "version": int(instant), "lastUpdated": now_ms}}]
    operation = {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "hoodie", "hoodie.instant": instant}
    return _Change(result, [{"commitInfo": operation}, *noted, *actions])


def _protocol(state: DeltaState, schema: pa.Schema) -> list[Action]:
    features = set(state.protocol.get("readerFeatures", ()))  # what a log has once, it keeps
    local = [_LOCAL_TIMES] if _LOCAL_TIMES in features or has_local_times(schema) else []
    protocol: dict[str, Any] = {"minReaderVersion": 3 if local else 1, "minWriterVersion": 7}
    protocol |= {"readerFeatures": local} if local else {}
    protocol |= {"writerFeatures": [*local, _READ_ONLY]}
    return [] if state.protocol == protocol else [{"protocol": protocol}]


def _metadata(
    context: TableContext, state: DeltaState, schema: pa.Schema, folders: FolderValues | None, now_ms: int
) -> list[Action]:
    metadata = {
        "schemaString": schema_string(schema),
        "partitionColumns": [] if folders is None else [field.name for field in folders.fields],
    }
    if all(state.metadata.get(name) == value for name, value in metadata.items()):
        return []
    first = {
        "id": str(uuid.uuid4()),
        "name": context.config.name,
        "format": {"provider": "parquet", "options": {}},
        "configuration": {_MADE_BY_US: "true"},
        "createdTime": now_ms,
    }
    return [{"metaData": {**first, **state.metadata, **metadata}}]


def _adding(file: Described, schema: pa.Schema) -> Action:
    base = file.base
    return {
        "add": {
            "path": _encoded(base.path),
            "partitionValues": partition_values(file.values),
            "size": base.size_bytes,
            "modificationTime": int(parse_instant(base.instant).timestamp() * 1000),
            "dataChange": True,
            "stats": stats_string(file.rows, file.ranges, schema),
        }
    }


def _encoded(path: str) -> str:
    return quote(path, safe="/=")
