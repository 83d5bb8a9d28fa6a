"""Publishes a table as a Delta table over the same base files: the read-optimized view, without rows that are still in log files.

The log is compared with the table, and a version with what differs is created. So whoever dies leaves a whole version or none, and
the next publication makes up for it. Each reads the log before the table: when the version that follows is free, no newer state of
the table can be in the log.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from hoodie.errors import CommitConflictError, SchemaError, UnsupportedTableError
from hoodie.keygen.virtual_columns import FolderValues, folder_values
from hoodie.mirrors.base_files import BaseFileFacts, FileDescriber, bases_of, refuse_renamed
from hoodie.mirrors.delta_log import Action, DeltaState, read_state, write_due_checkpoint, write_version
from hoodie.model.enums import LakeFormat, QueryType
from hoodie.model.instant import parse_instant
from hoodie.model.plans import ReadPlan
from hoodie.model.service_results import Published
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_pinned
from hoodie.view.context import Snapshot, TableContext

APP = "hoodie"
"""The application whose transaction notes the instant."""
_MADE_BY_US = "hoodie.published"
_BOUNDED = "delta.dataSkippingStatsColumns"
"""By it delta-rs looks for the bounds of no other columns."""
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
    raise CommitConflictError(f"other processes kept publishing {context.storage.uri} as Delta: publish it again")


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
    descriptions = context.storage.each(FileDescriber(context, schema, folders), [bases[path] for path in looked_at])
    files = dict(zip(looked_at, descriptions, strict=True))
    bounded = _bounded_columns(schema, folders)
    actions = [
        *_protocol(state, schema),
        *described,
        *({"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": True}} for path in old_paths),
        *(_adding(file, bounded, is_new=path not in state.files) for path, file in files.items()),
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
    bounded = _bounded_columns(schema, folders)
    metadata = {
        "schemaString": schema_string(schema),
        "partitionColumns": [] if folders is None else [field.name for field in folders.fields],
        "configuration": {_MADE_BY_US: "true", **({_BOUNDED: ",".join(bounded.names)} if bounded.names else {})},
    }
    if all(state.metadata.get(name) == value for name, value in metadata.items()):
        return []
    first = {
        "id": str(uuid.uuid4()),
        "name": context.config.name,
        "format": {"provider": "parquet", "options": {}},
        "createdTime": now_ms,
    }
    return [{"metaData": {**first, **state.metadata, **metadata}}]


def _adding(file: BaseFileFacts, bounded: pa.Schema, *, is_new: bool) -> Action:
    base = file.base
    return {
        "add": {
            "path": _encoded(base.path),
            "partitionValues": partition_values(file.values),
            "size": base.size_bytes,
            "modificationTime": int(parse_instant(base.instant).timestamp() * 1000),
            "dataChange": is_new,
            "stats": stats_string(file.rows, file.ranges, bounded),
        }
    }


def _encoded(path: str) -> str:
    return quote(path, safe="/=")


_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def schema_string(schema: pa.Schema) -> str:
    """The columns as JSON.

    Raises:
        SchemaError: Delta has no such type.
    """
    return json.dumps({"type": "struct", "fields": [_field(each) for each in schema]}, ensure_ascii=False)


def has_local_times(schema: pa.Schema) -> bool:
    """Whether there are timestamps without a zone, of which not every reader of Delta knows."""
    return any(pa.types.is_timestamp(kind) and kind.tz is None for field in schema for kind in _kinds(field.type))


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for at in range(kind.num_fields if pa.types.is_nested(kind) else 0):
        yield from _kinds(kind.field(at).type)


def _field(field: Any) -> dict[str, Any]:
    try:
        return {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": {}}
    except SchemaError as exc:
        raise SchemaError(f"column {field.name!r}: {exc}") from None


def _type(kind: Any) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    types = pa.types
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind) and kind.unit != "ns":
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if types.is_fixed_size_binary(kind):
        return "binary"
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(at)) for at in range(kind.num_fields)]}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if types.is_map(kind):
        key, item = _type(kind.key_type), _type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}
    raise SchemaError(f"Delta Lake has no type for {kind}")


def _bounded_columns(schema: pa.Schema, folders: FolderValues | None) -> pa.Schema:
    """The columns whose bounds files have.

    Not floats, where NaN is in no bounds, nor types whose text readers may take for another value.
    """
    in_folders = set() if folders is None else {field.name for field in folders.fields}
    return pa.schema([field for field in schema if _is_bounded(field.type) and field.name not in in_folders])


def stats_string(rows: int, ranges: Mapping[str, ValueRange], bounded: pa.Schema) -> str:
    """What is known of the columns of a file, by which readers leave it out.

    All of these columns or none: delta-rs finds no rows by a column that it looks for and that has no bounds.
    """
    low, high, nulls = {}, {}, {}
    for field in bounded:
        limits = ranges.get(field.name, UNKNOWN)
        if limits.values:
            bounds = _bounds(limits, field.type)
            if bounds is None:
                return json.dumps({"numRecords": rows})
            low[field.name], high[field.name] = bounds
        nulls[field.name] = limits.nulls
    return json.dumps({"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}, ensure_ascii=False)


def _is_bounded(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_date32(kind) or types.is_timestamp(kind))


def _bounds(limits: ValueRange, kind: Any) -> tuple[Any, Any] | None:
    low, high = limits.low, limits.high
    if low is None or high is None:
        return None
    try:
        if pa.types.is_date32(kind):
            return tuple(str(date(1970, 1, 1) + timedelta(days)) for days in (low, high))  # type: ignore[return-value]
        if pa.types.is_timestamp(kind):  # of milliseconds; readers of Spark's take bounds for cut off
            unit = {"s": 1, "ms": 1_000, "us": 1_000_000}[kind.unit]
            zone = "Z" if kind.tz is not None else ""
            return _moment(low * 1_000 // unit, zone), _moment(-(-high * 1_000 // unit), zone)
    except (OverflowError, KeyError):
        return None
    return low, high


def _moment(milliseconds: int, zone: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone


def partition_values(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Values of partition columns as texts."""
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str | None:
    if not value.is_valid or value.as_py() == "":  # Delta takes an empty text for null
        return None
    if pa.types.is_boolean(value.type):
        return str(value.as_py()).lower()
    if pa.types.is_timestamp(value.type):
        moment = value.cast(pa.timestamp("us", value.type.tz)).as_py()
        return f"{moment.replace(tzinfo=None).isoformat(' ', 'microseconds')}"
    return str(value.as_py())
