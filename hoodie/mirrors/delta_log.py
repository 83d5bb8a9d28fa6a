"""The log of a Delta table: JSON files of actions by version, and checkpoints of all that holds.

Facts are those of Delta's protocol document. A version is there when its JSON file is, which is created whole or not at all; a
checkpoint saves readers the versions before it and says nothing new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.storage.base import Storage

FOLDER = "_delta_log"
_VERSION = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_CHECKPOINT_EVERY = 20
Action = Mapping[str, Any]
"""{kind: fields}"""


@dataclass
class DeltaState:
    """What a log says at a version."""

    version: int = -1
    """The newest; -1: there is no log."""
    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    """The version that an application has noted."""
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By their paths, which are URL-encoded."""

    def apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            for kind, content in action.items():
                fields: Any = {name: value for name, value in (content or {}).items() if value is not None}
                if not content:  # a row of a checkpoint has nulls for all kinds but one
                    continue
                match kind:
                    case "add":
                        self.files[fields["path"]] = fields
                    case "remove":
                        self.files.pop(fields["path"], None)
                    case "metaData":
                        self.metadata = fields
                    case "protocol":
                        self.protocol = fields
                    case "txn":
                        self.transactions[fields["appId"]] = fields["version"]


def read_state(storage: Storage) -> DeltaState:
    """The newest state of the log below a storage's root.

    Raises:
        CorruptFileError: a file of it is damaged, or missing among others.
    """
    names = sorted(storage.names(FOLDER))
    checkpoint = max((int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))), default=-1)
    versions = [int(match[1]) for name in names if (match := _VERSION.fullmatch(name)) and int(match[1]) > checkpoint]
    state = DeltaState(checkpoint)
    if checkpoint >= 0:
        state.apply(_read_checkpoint(storage, checkpoint))
    for version in versions:
        if version != state.version + 1:
            raise CorruptFileError(f"{storage.uri}/{FOLDER} has no version {state.version + 1}, and has {version}")
        state.apply(_read_version(storage, version))
        state.version = version
    return state


def write_version(storage: Storage, version: int, actions: Sequence[Action]) -> None:
    """Create a version.

    Raises:
        FileExistsError: somebody else has.
    """
    lines = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions)
    storage.create_new(f"{FOLDER}/{version:020}.json", "".join(f"{line}\n" for line in lines).encode())


def write_due_checkpoint(storage: Storage, state: DeltaState) -> None:
    """A checkpoint of the state, where it is time for one. Whoever else does it writes the same."""
    if state.version % _CHECKPOINT_EVERY or not state.version:
        return
    rows: list[Action] = [{"protocol": state.protocol}, {"metaData": state.metadata}]
    rows += [{"txn": {"appId": name, "version": version}} for name, version in state.transactions.items()]
    rows += [{"add": {**each, "dataChange": False}} for each in state.files.values()]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=_CHECKPOINT_ROWS), sink)
    with suppress(FileExistsError):
        storage.create_new(_checkpoint_path(state.version), sink.getvalue().to_pybytes())
    storage.replace(f"{FOLDER}/_last_checkpoint", json.dumps({"version": state.version, "size": len(rows)}).encode())


def _checkpoint_path(version: int) -> str:
    return f"{FOLDER}/{version:020}.checkpoint.parquet"


def _read_version(storage: Storage, version: int) -> list[Action]:
    path = f"{FOLDER}/{version:020}.json"
    try:
        return [json.loads(line) for line in storage.read(path).splitlines() if line.strip()]
    except ValueError as exc:
        raise CorruptFileError(f"{storage.uri}/{path} is no version of a Delta log: {exc}") from exc


def _read_checkpoint(storage: Storage, version: int) -> list[Action]:
    path = _checkpoint_path(version)
    try:
        rows: Any = pq.read_table(pa.BufferReader(storage.read(path))).to_pylist(maps_as_pydicts="strict")
    except pa.ArrowException as exc:
        raise CorruptFileError(f"{storage.uri}/{path} is no checkpoint of a Delta log: {exc}") from exc
    return list(rows)


_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT_ROWS = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)
