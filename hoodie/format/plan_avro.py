"""Plans and metadata of table services: Avro object container files with one record.

    "Obj" 1 | map of header metadata (`avro.schema`) | 16 bytes sync
    | long record count, 1 | long size | record | the 16 bytes sync again

Longs are zigzag varints. The codec is null. The schema in the file is whatever its writer chose: a self-referring one
makes Avro decoders overflow the C stack, one of empty records makes a few bytes mean millions of values. So
`_safe_schema` reads it first and refuses what no plan has. Records then decode with the file's schema and are resolved
to the one of `schemas.json`: fields that another Hudi version adds are left out, those it lacks get their default.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import io
import json
import struct
from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException
from fastavro.types import Schema

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_record import read_record, write_record
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.avro_wire import varint
from hoodie.format.plan_check import check_operation, check_rollback
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.instant import InstantTime
from hoodie.model.names import doctor_of, name_of
from hoodie.model.payloads import (
    CompactionOperation,
    CompactionPlan,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
)

MAX_SCHEMA_BYTES = 1 << 20
MAX_SCHEMA_DEPTH = 64

_SYNC_BYTES = 16
_HEADER_ENTRIES = 64
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
# What fastavro raises on bytes that are no value of the schema.
_DECODE_ERRORS = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, MemoryError)

COMPACTION_PLAN = "HoodieCompactionPlan"
ROLLBACK_PLAN = "HoodieRollbackPlan"
ROLLBACK_METADATA = "HoodieRollbackMetadata"
REPLACE_PLAN = "HoodieRequestedReplaceMetadata"


def encode_plan(record_name: str, value: Mapping[str, Any]) -> bytes:
    """The container file of one record of a known type, the same bytes for equal values.

    Raises:
        SchemaError: the value has a field that the type has not, lacks one without a default, or holds a wrong type.
    """
    text, record = _record_schema(record_name)[0], encode_entry(record_name, value)
    # A random marker would give equal plans different bytes, and nothing searches for it in a file of one block.
    sync = hashlib.md5(text + record, usedforsecurity=False).digest()
    entry = _long(1) + _sized(b"avro.schema") + _sized(text) + _long(0)
    return CONTAINER_MAGIC + entry + sync + _long(1) + _sized(record) + sync


def encode_entry(record_name: str, value: Mapping[str, Any]) -> bytes:
    """One record outside of a container, as `decode_entry` reads it by `schema_text`.

    Raises:
        SchemaError: as `encode_plan`.
    """
    try:
        return write_record(_record_schema(record_name)[1], value, strict=True)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, struct.error) as exc:
        raise SchemaError(f"a value does not fit {record_name}: {exc}") from exc


def decode_plan(record_name: str, data: bytes, *, path: str, exact: bool = True) -> dict[str, Any]:
    """The record in a container file, with the fields of the known type.

    `exact`: it is encoded again, to see that it is as a writer encodes it. That takes twice the time of decoding.

    Raises:
        CorruptFileError: the bytes are no such file, or its schema is none that a plan can have; names `path`.
        UnsupportedTableError: it is compressed, which no version of Hudi does with timeline files.
    """
    try:
        return _decode(record_name, data, exact=exact)
    except CorruptFileError as exc:
        advice = f"; {doctor_of(path)}" if "/.hoodie/" in path else ""
        raise CorruptFileError(f"{path}: no readable {record_name} ({len(data)} bytes): {exc}{advice}") from exc
    except UnsupportedTableError as exc:
        raise UnsupportedTableError(f"{path}: {exc}") from exc


def _decode(record_name: str, data: bytes, *, exact: bool) -> dict[str, Any]:
    header, at = _read_header(data)
    codec = header.get("avro.codec", b"null")
    if codec != b"null":
        raise UnsupportedTableError(
            f"codec {codec.decode(errors='replace')!r} of an Avro file on the timeline; only null is read"
        )
    sync, at = data[at : at + _SYNC_BYTES], at + _SYNC_BYTES
    count, at = _read_long(data, at)
    size, at = _read_long(data, at)
    if count != 1:
        raise CorruptFileError(f"{count} records in the first block, expected 1")
    if size < 0 or data[at + size :] != sync:
        raise CorruptFileError(
            f"a record of {size} bytes at byte {at} is not followed by the header's marker and the end of the file"
        )
    writer = _writer_schema(record_name, header.get("avro.schema", b""))
    reader = None if writer == _known_as_written(record_name) else _record_schema(record_name)[1]
    return _resolved(data[at : at + size], writer, reader, exact=exact)


def decode_entry(record_name: str, schema_text: bytes, record: bytes, fields: tuple[str, ...]) -> dict[str, Any]:
    """Some fields of one record outside of a container, by the schema that its writer had (entries of archived timelines).

    `fields` are names of the known type, in its order; a type must stand at its definition or behind it.

    Raises:
        CorruptFileError: as `decode_plan`, but names no path.
    """
    return _resolved(record, _writer_schema(record_name, schema_text), _known_part(record_name, fields))


def schema_text(record_name: str) -> str:
    """The schema of a known type, as it stands in files."""
    return _record_schema(record_name)[0].decode()


def known_schema(record_name: str) -> Mapping[str, Any]:
    """The schema of a known type, as JSON."""
    result: Mapping[str, Any] = _all_schemas()[record_name]
    return result


@functools.cache
def _known_part(record_name: str, fields: tuple[str, ...]) -> Schema:
    schemas = _all_schemas()[record_name]
    return fastavro.parse_schema(schemas | {"fields": [each for each in schemas["fields"] if each["name"] in fields]})


def _resolved(record: bytes, writer: Schema, reader: Schema | None, *, exact: bool = True) -> dict[str, Any]:
    """`reader`: None where it would be the same schema: to resolve takes longer than to read."""
    stream = io.BytesIO(record)
    try:
        resolved = read_record(stream, writer, reader)
        written = resolved if reader is None or not exact else read_record(io.BytesIO(record), writer)
        again = write_record(writer, written) if exact else record
    except SchemaResolutionError as exc:
        raise CorruptFileError(f"the schema in the file does not lead to the known one: {exc}") from exc
    except _DECODE_ERRORS as exc:
        raise CorruptFileError(f"the record does not decode: {exc}") from exc
    # fastavro takes a negative union branch, any byte for a boolean, and bytes after the record. The writers of plans
    # encode a value in one way only, so a record that does not come back the same is damaged.
    if again != record or stream.tell() != len(record):
        raise CorruptFileError("the record does not decode cleanly to the end of its block")
    return dict(resolved)


@functools.cache
def _all_schemas() -> dict[str, Any]:
    result = json.loads(importlib.resources.files("hoodie.format").joinpath("schemas.json").read_text(encoding="utf-8"))
    return dict(result)


@functools.cache
def _record_schema(record_name: str) -> tuple[bytes, Schema]:
    """The schema of a known record: its JSON as it goes into files, and parsed."""
    schema = _all_schemas()[record_name]
    return json.dumps(schema, separators=(",", ":")).encode(), fastavro.parse_schema(schema)


@functools.cache
def _known_as_written(record_name: str) -> Schema:
    """The schema of a known record, as that of a file is taken."""
    return _writer_schema(record_name, _record_schema(record_name)[0])


# Hudi writes the same text into each plan of a kind.
@functools.lru_cache(maxsize=16)
def _writer_schema(record_name: str, text: bytes) -> Schema:
    """The validated schema of a file, without all that decoding does not need."""
    if not 0 < len(text) <= MAX_SCHEMA_BYTES:
        raise CorruptFileError(f"a schema of {len(text)} bytes; 1 to {MAX_SCHEMA_BYTES} are read")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(f"the schema is not JSON ({exc})") from exc
    if not isinstance(parsed, dict) or str(parsed.get("name")).rpartition(".")[2] != record_name:
        raise CorruptFileError(f"the schema is not that of a record {record_name}")
    safe, _ = _safe_schema(parsed, "", {}, 0)
    try:
        return fastavro.parse_schema(safe)
    except (SchemaParseException, ValueError, TypeError, KeyError) as exc:
        raise CorruptFileError(f"the schema does not parse: {exc}") from exc


def _safe_schema(schema: object, namespace: str, heights: dict[str, int], depth: int) -> tuple[Any, int]:
    """The types, names and order of a schema and nothing else of it, with the levels of nesting below it.

    Refused are records inside themselves, nesting beyond MAX_SCHEMA_DEPTH (through names too), unions other than of
    null and one type, and types whose values take no byte. With these out, decoding takes time and memory in proportion
    to the bytes, and little stack. `heights` has the levels of each complete named record, 0 while it is incomplete.
    """
    if isinstance(schema, str) and schema not in _PRIMITIVES:
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if not heights.get(full):
            raise CorruptFileError(f"the schema uses {full[:80]!r}, which it does not define or which contains itself")
        safe, height = full, heights[full]
    elif isinstance(schema, str):
        safe, height = schema, 0
    elif depth > MAX_SCHEMA_DEPTH:
        raise CorruptFileError(f"the schema is nested deeper than {MAX_SCHEMA_DEPTH}")
    elif isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(schema) != 2 or len(others) != 1:
            raise CorruptFileError(f"a union of {len(schema)} types in the schema, expected null and one other")
        other, height = _safe_schema(others[0], namespace, heights, depth + 1)
        return ["null", other] if schema[0] == "null" else [other, "null"], height + 1
    elif not isinstance(schema, dict):
        raise CorruptFileError(f"{str(schema)[:80]!r} in the schema is not a type")
    elif schema.get("type") == "record":
        return _safe_record(schema, namespace, heights, depth)
    elif schema.get("type") in ("array", "map"):
        part = "items" if schema["type"] == "array" else "values"
        items, height = _safe_schema(schema.get(part), namespace, heights, depth + 1)
        return {"type": schema["type"], part: items}, height + 1
    elif isinstance(schema.get("type"), str) and schema["type"] in _PRIMITIVES:
        return schema["type"], 0  # logical types are left out too: plans have none
    else:
        raise CorruptFileError(f"type {str(schema.get('type'))[:80]!r} in the schema, which no plan has")
    if depth + height > MAX_SCHEMA_DEPTH:
        raise CorruptFileError(f"the schema is nested deeper than {MAX_SCHEMA_DEPTH}")
    return safe, height


def _safe_record(
    schema: Mapping[str, Any], namespace: str, heights: dict[str, int], depth: int
) -> tuple[dict[str, Any], int]:
    name, fields = schema.get("name"), schema.get("fields")
    space = schema.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(space, str) or not isinstance(fields, list) or not fields:
        raise CorruptFileError("a record in the schema has no name or no fields")
    full = name if "." in name or not space else f"{space}.{name}"
    if full in heights:
        raise CorruptFileError(f"the schema defines {full[:80]!r} twice")
    heights[full] = 0
    safe, height = [], 0
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise CorruptFileError(f"a field of {full[:80]!r} in the schema has no name")
        kind, below = _safe_schema(field.get("type"), full.rpartition(".")[0], heights, depth + 1)
        safe.append({"name": field["name"], "type": kind})
        height = max(height, below)
    heights[full] = height + 1
    return {"type": "record", "name": full, "fields": safe}, height + 1


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    if not data.startswith(CONTAINER_MAGIC):
        raise CorruptFileError("it does not begin as an Avro container file")
    header: dict[str, bytes] = {}
    at = len(CONTAINER_MAGIC)
    while True:
        count, at = _read_long(data, at)
        if count == 0:
            return header, at
        if count < 0:  # the block's size in bytes follows
            count = -count
            _, at = _read_long(data, at)
        if count + len(header) > _HEADER_ENTRIES:
            raise CorruptFileError(f"{count} entries in the header, at most {_HEADER_ENTRIES} are read")
        for _ in range(count):
            key, at = _read_sized(data, at)
            header[key.decode("utf-8", "replace")], at = _read_sized(data, at)


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), at + number + 1
    raise CorruptFileError(f"no whole number at byte {at} of {len(data)}")


def _read_sized(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise CorruptFileError(f"{size} bytes are to follow at byte {at} of {len(data)}")
    return data[at : at + size], at + size


def _sized(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(value: int) -> bytes:
    return varint(value << 1)  # zigzag; only lengths and counts are written here, none of them negative


_LOG_COMPACTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def encode_compaction_plan(plan: CompactionPlan, *, of_logs: bool = False) -> bytes:
    """Content of `T.compaction.requested`, always as version 2 (names relative to the partition).

    `of_logs`: of `T.logcompaction.requested`, as Apache Hudi writes it (golden table v6_log_compaction).
    """
    operations = [
        {
            "baseInstantTime": operation.base_instant,
            "deltaFilePaths": list(operation.log_files),
            "dataFilePath": operation.data_file,
            "fileId": operation.file_id,
            "partitionPath": operation.partition_path,
            "metrics": dict(operation.metrics),
            "bootstrapFilePath": operation.bootstrap_file,
        }
        for operation in plan.operations
    ]
    return encode_plan(
        COMPACTION_PLAN,
        {
            "operations": operations,
            "extraMetadata": dict(plan.extra),
            "version": 2,
            "strategy": {"compactorClassName": _LOG_COMPACTOR, "strategyParams": {}, "version": 1} if of_logs else None,
            "preserveHoodieMetadata": of_logs,
            "missingSchedulePartitions": list(plan.missing_partitions),
        },
    )


def decode_compaction_plan(data: bytes, path: str) -> CompactionPlan:
    """The plan in `T.compaction.requested`, or `T.logcompaction.requested`; names of files, whatever version it was stored as.

    Raises:
        CorruptFileError: the bytes are no such plan, or an operation names no file group or a file elsewhere.
    """
    record = decode_plan(COMPACTION_PLAN, data, path=path)
    stored = record["version"]

    def name(text: str) -> str:
        return name_of(text) if stored in (None, 1) else text  # version 1 stored full paths

    operations = []
    for operation in record["operations"] or []:
        base_instant, file_id = operation["baseInstantTime"], operation["fileId"]
        if base_instant is None or file_id is None:
            raise CorruptFileError(f"{path}: an operation without base instant or file id: roll the compaction back")
        data_file = operation["dataFilePath"]
        parsed_operation = CompactionOperation(
            partition_path=operation["partitionPath"] or "",
            file_id=file_id,
            base_instant=InstantTime(base_instant),
            data_file=name(data_file) if data_file else None,
            log_files=tuple(name(log) for log in operation["deltaFilePaths"] or []),
            metrics=operation["metrics"] or {},
            bootstrap_file=operation["bootstrapFilePath"] or None,
        )
        check_operation(parsed_operation, path)
        operations.append(parsed_operation)
    return CompactionPlan(
        tuple(operations),
        record["extraMetadata"] or {},
        missing_partitions=tuple(record.get("missingSchedulePartitions") or ()),
    )


def encode_replace_plan(operation: WriteOperation) -> bytes:
    """Content of `T.replacecommit.requested` for an operation that replaces file groups, as Apache Hudi writes it.

    It says only that this is no clustering; what is replaced stands in the completed commit.
    """
    states_operation = operation is WriteOperation.DELETE_PARTITION
    return encode_plan(
        REPLACE_PLAN,
        {
            "operationType": operation.value if states_operation else None,
            "clusteringPlan": None,
            "extraMetadata": {} if states_operation else None,
            "version": 1 if states_operation else None,
        },
    )


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """Content of `T.rollback.requested`."""
    requests = [
        {
            "partitionPath": request.partition_path,
            "fileId": request.file_id,
            "latestBaseInstant": request.base_instant,
            "filesToBeDeleted": list(request.files_to_delete),
            "logBlocksToBeDeleted": dict(request.log_blocks),
        }
        for request in plan.requests
    ]
    instant = {"commitTime": plan.instant, "action": plan.action.value}
    return encode_plan(
        ROLLBACK_PLAN, {"instantToRollback": instant, "RollbackRequests": requests, "version": plan.version}
    )


def decode_rollback_plan(data: bytes, path: str) -> RollbackPlan:
    """The plan in `T.rollback.requested`.

    Raises:
        CorruptFileError: the bytes are no such plan, it does not say what to roll back, or it would delete other files than
            those of the instant.
    """
    record = decode_plan(ROLLBACK_PLAN, data, path=path)
    instant = record["instantToRollback"]
    if instant is None:
        raise CorruptFileError(f"{path}: the plan names no instant to roll back: delete it and plan the rollback anew")
    requests = tuple(
        RollbackRequest(
            partition_path=request["partitionPath"],
            file_id=request["fileId"],
            base_instant=InstantTime(request["latestBaseInstant"] or "") or None,
            files_to_delete=tuple(request["filesToBeDeleted"]),
            log_blocks=request["logBlocksToBeDeleted"] or {},
        )
        for request in record["RollbackRequests"] or []
    )
    plan = RollbackPlan(
        InstantTime(instant["commitTime"]), _action(instant["action"], path), requests, record["version"] or 1
    )
    check_rollback(plan, path)
    return plan


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """Content of a completed `T.rollback`."""
    return encode_plan(ROLLBACK_METADATA, rollback_record(metadata))


def rollback_record(metadata: RollbackMetadata) -> dict[str, Any]:
    """The same as a record, of which a completed restore has one for each instant."""
    partitions = {
        partition.partition_path: {
            "partitionPath": partition.partition_path,
            "successDeleteFiles": list(partition.deleted),
            "failedDeleteFiles": list(partition.failed),
            "rollbackLogFiles": dict(partition.rollback_log_files),
            "logFilesFromFailedCommit": dict(partition.failed_log_files),
        }
        for partition in metadata.partitions
    }
    return {
        "startRollbackTime": metadata.started,
        "timeTakenInMillis": metadata.took_ms,
        "totalFilesDeleted": sum(len(partition.deleted) for partition in metadata.partitions),
        "commitsRollback": [instant for instant, _ in metadata.rolled_back],
        "partitionMetadata": partitions,
        "version": metadata.version,
        "instantsRollback": [
            {"commitTime": instant, "action": action.value} for instant, action in metadata.rolled_back
        ],
    }


def decode_rollback_metadata(data: bytes, path: str) -> RollbackMetadata:
    """What a completed `T.rollback` says.

    Raises:
        CorruptFileError: the bytes are no such metadata.
    """
    return rollback_of(decode_plan(ROLLBACK_METADATA, data, path=path), path=path)


def rollback_of(record: Mapping[str, Any], *, path: str) -> RollbackMetadata:
    """The same of a record, as a completed restore has them.

    Raises:
        CorruptFileError: it names an action that no timeline has.
    """
    rolled_back = [(entry["commitTime"], _action(entry["action"], path)) for entry in record["instantsRollback"]]
    # Old metadata lists only the times; all that could be rolled back then and left a trace here were commits.
    times = {instant for instant, _ in rolled_back}
    rolled_back += [
        (InstantTime(instant), Action.COMMIT) for instant in record["commitsRollback"] if instant not in times
    ]
    partitions = tuple(
        RollbackPartition(
            partition_path=partition["partitionPath"],
            deleted=tuple(partition["successDeleteFiles"]),
            failed=tuple(partition["failedDeleteFiles"]),
            rollback_log_files=partition["rollbackLogFiles"] or {},
            failed_log_files=partition["logFilesFromFailedCommit"] or {},
        )
        for partition in record["partitionMetadata"].values()
    )
    return RollbackMetadata(
        InstantTime(record["startRollbackTime"]),
        record["timeTakenInMillis"],
        tuple(rolled_back),
        partitions,
        record["version"] or 1,
    )


def _action(text: str, path: str) -> Action:
    try:
        return Action(text)
    except ValueError as exc:
        raise CorruptFileError(f"{path}: {text!r} is not an action of a timeline") from exc
