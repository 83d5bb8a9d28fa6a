"""What goes into an archived timeline of version 6: Avro data blocks with one HoodieArchivedMetaEntry for each state file.

An entry holds the content of its file as a record: commits are JSON on the active timeline, the rest are Avro container files.
Fields of the JSON that Apache Hudi's record has not are left out, as Apache Hudi does.

Witness: golden table v6_archived; Apache Hudi reads the files (`integration/test_archiving_with_hudi.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.format.archive import ENTRY
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.format.cursor import i32
from hoodie.format.log_block import encode_block
from hoodie.format.plan_avro import (
    COMPACTION_PLAN,
    REPLACE_PLAN,
    ROLLBACK_METADATA,
    decode_plan,
    encode_entry,
    known_schema,
    schema_text,
)
from hoodie.format.service_plans import CLEAN_METADATA, CLEAN_PLAN
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.instant import Instant

_BLOCK_VERSION = 3
_BLOCK_BYTES = 1 << 20
"""About so much goes into one block. Each has the schema in it, of 16 KB."""

_COMMITS = (Action.COMMIT, Action.DELTACOMMIT)
_RECORDS: Mapping[tuple[Action, State], tuple[str, str]] = {
    (Action.CLEAN, State.REQUESTED): ("hoodieCleanerPlan", CLEAN_PLAN),
    (Action.CLEAN, State.COMPLETED): ("hoodieCleanMetadata", CLEAN_METADATA),
    (Action.ROLLBACK, State.COMPLETED): ("hoodieRollbackMetadata", ROLLBACK_METADATA),
    (Action.COMPACTION, State.REQUESTED): ("hoodieCompactionPlan", COMPACTION_PLAN),
    (Action.LOGCOMPACTION, State.REQUESTED): ("hoodieCompactionPlan", COMPACTION_PLAN),
    (Action.REPLACECOMMIT, State.REQUESTED): ("hoodieRequestedReplaceMetadata", REPLACE_PLAN),
}
"""Field of the entry, and the type of its record, of what is an Avro container on the active timeline."""


class StateFile(NamedTuple):
    """One file of the active timeline."""

    instant: Instant
    content: bytes
    reached: str
    """When the instant reached the state, as an instant time."""


def encode_archive(files: Sequence[StateFile], *, folder: str) -> bytes:
    """Content of an archive file; `folder` is where the files of the timeline are, for errors.

    Raises:
        CorruptFileError: a file does not decode. SchemaError: it holds a value that Apache Hudi's record cannot.
    """
    return b"".join(_blocks([encode_entry(ENTRY, _entry(file, folder)) for file in files]))


def _blocks(records: Sequence[bytes]) -> Iterator[bytes]:
    header = {HeaderKey.SCHEMA: schema_text(ENTRY)}
    start = 0
    while start < len(records):
        stop, size = start, 0
        while stop < len(records) and (stop == start or size + len(records[stop]) <= _BLOCK_BYTES):
            size += len(records[stop])
            stop += 1
        framed = [part for record in records[start:stop] for part in (i32(len(record)), record)]
        content = b"".join([i32(_BLOCK_VERSION), i32(stop - start), *framed])
        yield encode_block(BlockKind.AVRO_DATA, header, content)
        start = stop


def _entry(file: StateFile, folder: str) -> dict[str, Any]:
    time, action, state = file.instant.time, file.instant.action, file.instant.state
    entry: dict[str, Any] = {
        "commitTime": time,
        "actionType": action.value,
        "actionState": state.name,
        "stateTransitionTime": file.reached,
        "version": None,
    }
    path = f"{folder}/{time}.{action}, {state}"
    try:
        return entry | _payload(file, path=path)
    except CorruptFileError:
        if state is State.COMPLETED:
            raise
        return entry  # what was planned is of no use any more, and not everybody writes that atomically


def _payload(file: StateFile, *, path: str) -> dict[str, Any]:
    """Field of the entry -> content of the file; nothing where the file is empty, or of a kind that Apache Hudi does not keep."""
    _, action, state, _ = file.instant
    if not file.content:
        return {}
    if (action, state) in _RECORDS:
        field, record = _RECORDS[action, state]
        return {field: decode_plan(record, file.content, path=path)}
    if action in _COMMITS and state is not State.REQUESTED:
        return {"hoodieCommitMetadata": _commit(file.content, "hoodieCommitMetadata", path=path)}
    if action is Action.REPLACECOMMIT:
        field = "hoodieReplaceCommitMetadata" if state is State.COMPLETED else "HoodieInflightReplaceMetadata"
        return {field: _commit(file.content, field, path=path)}
    return {}


def _commit(content: bytes, field: str, *, path: str) -> dict[str, Any]:
    try:
        parsed: Any = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(f"{path}: no JSON of a commit ({exc}); restore the file from a copy") from exc
    if not isinstance(parsed, dict):
        raise CorruptFileError(f"{path}: no commit, but JSON of another form; restore the file from a copy")
    schema = next(each["type"] for each in known_schema(ENTRY)["fields"] if each["name"] == field)
    extra = parsed.get("extraMetadata")
    if isinstance(extra, dict):
        extra.pop(
            COLUMN_STATS, None
        )  # nobody looks for them here, and they name values of rows that may be deleted since
    return {"version": None, **fitted(parsed, schema)}


def fitted(value: Any, schema: Any) -> Any:
    """The value without what the schema does not know: fields of records, and values that are null."""
    if isinstance(schema, list):
        schema = next(each for each in schema if each != "null")
    schema = _records_by_name().get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record" and isinstance(value, dict):
        fields = {each["name"]: each["type"] for each in schema["fields"]}
        return {name: fitted(value[name], fields[name]) for name in fields if value.get(name) is not None}
    if kind == "map" and isinstance(value, dict):
        return {key: fitted(each, schema["values"]) for key, each in value.items() if each is not None}
    if kind == "array" and isinstance(value, list):
        return [fitted(each, schema["items"]) for each in value]
    return value


@cache
def _records_by_name() -> Mapping[str, Any]:
    """The records that are defined within the entry, by name: a schema names them where they come again."""
    result: dict[str, Any] = {}

    def look(schema: Any) -> None:
        if isinstance(schema, dict):
            if schema.get("type") == "record":
                result[schema["name"]] = schema
            for each in schema.values():
                look(each)
        elif isinstance(schema, list):
            for each in schema:
                look(each)

    look(known_schema(ENTRY))
    return result
