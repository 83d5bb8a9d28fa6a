"""Publishes a table as an Iceberg table over the same base files, as `delta.py` does for Delta.

Metadata are files `v1.metadata.json`, `v2.metadata.json` and so on, each created whole or not at all, and `version-hint.text` names
the newest: the layout of Iceberg's file system tables. A manifest is written anew only where a file of it is gone.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hoodie.errors import CommitConflictError, CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.keygen.virtual_columns import FolderValues, folder_values
from hoodie.mirrors.base_files import BaseFileFacts, FileDescriber, bases_of, refuse_renamed
from hoodie.mirrors.iceberg_manifests import (
    ADDED,
    DELETED,
    EXISTING,
    Partitioning,
    decode,
    encode_list,
    encode_manifest,
    manifest_entry,
)
from hoodie.mirrors.iceberg_types import ColumnIds, avro_of, bounds, fields_of, ids_of, name_mapping
from hoodie.model.enums import LakeFormat, QueryType
from hoodie.model.service_results import Published
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_pinned
from hoodie.storage.base import Storage
from hoodie.view.context import Snapshot, TableContext

FOLDER = "metadata"
_METADATA = re.compile(r"v([0-9]+)\.metadata\.json")
_MADE_BY_US, _MAPPING, INSTANT = "hoodie.published", "schema.name-mapping.default", "hoodie.instant"
_TRIES = 10
_MOST_MANIFESTS = 30
"""More are made one."""
_MOST_SNAPSHOTS = 100
"""Of which a version tells."""
Entry = dict[str, Any]


class _State:
    """The newest version of an Iceberg table."""

    def __init__(self, storage: Storage) -> None:
        self.version = _newest(storage)
        path = f"{FOLDER}/v{self.version}.metadata.json"
        try:
            self.metadata: dict[str, Any] = json.loads(storage.read(path)) if self.version else {}
        except ValueError as exc:
            raise CorruptFileError(f"{storage.uri}/{path} is no metadata of an Iceberg table: {exc}") from exc
        if self.version:
            _require_ours(storage, self.metadata)
        self.snapshot = next(
            (
                each
                for each in self.metadata.get("snapshots", ())
                if each["snapshot-id"] == self.metadata.get("current-snapshot-id")
            ),
            None,
        )
        manifests = (
            [] if self.snapshot is None else decode(storage.read(_below(storage, self.snapshot["manifest-list"])))
        )
        self.manifests = [(each, self._live(storage, each["manifest_path"])) for each in manifests]
        self.paths = {entry["data_file"]["file_path"] for _, entries in self.manifests for entry in entries}

    @staticmethod
    def _live(storage: Storage, path: str) -> list[Entry]:
        return [each for each in decode(storage.read(_below(storage, path))) if each["status"] != DELETED]


def _require_ours(storage: Storage, metadata: Mapping[str, Any]) -> None:
    """Raises UnsupportedTableError for metadata of somebody else, or of another place."""
    ours, place = _MADE_BY_US in metadata.get("properties", {}), metadata.get("location")
    if not ours or place != storage.uri:
        what = f"was published at {place}" if ours else "hoodie has not published"
        raise UnsupportedTableError(
            f"{storage.uri} holds an Iceberg table that {what}: move its folder {FOLDER} away, or leave it"
        )


def _newest(storage: Storage) -> int:
    """The newest version; 0: there is none."""
    matches = (_METADATA.fullmatch(name) for name in storage.names(FOLDER))
    return max((int(each[1]) for each in matches if each), default=0)


def _point_to_newest(storage: Storage) -> None:
    """Let the hint name the newest version: for readers that go by it. Whoever is late sees that there is a newer one."""
    newest, path = _newest(storage), f"{FOLDER}/version-hint.text"
    for _ in range(_TRIES):
        previous, newest = newest, max(newest, _newest(storage))
        if storage.exists(path) and storage.read(path) == str(newest).encode() and previous == newest:
            return
        storage.replace(path, str(newest).encode())


def _below(storage: Storage, uri: str) -> str:
    return uri.removeprefix(f"{storage.uri}/")


def iceberg_files(storage: Storage) -> set[str]:
    """The data files of the newest version."""
    return _State(storage).paths


def publish_iceberg(context: TableContext, *, dry_run: bool = False) -> Published:
    """Bring the Iceberg metadata of the table up to its newest commit.

    Raises:
        UnsupportedTableError: Iceberg cannot say what the table's files are. SchemaError: it has no type for a column.
        CommitConflictError: others publish all the time.
    """
    for _ in range(_TRIES):
        state = _State(context.storage)
        options = ReadOptions(query=QueryType.READ_OPTIMIZED)
        plan, snapshot = plan_pinned(context, options, meta_columns=False)
        schema = snapshot.schema
        if schema is None:
            raise SchemaError(f"table {context.storage.uri} has no columns yet: write to it first")
        bases = {f"{context.storage.uri}/{base.path}": base for base in bases_of(plan)}
        version = _Version(context, state, snapshot, schema)
        new = [path for path in bases if path not in state.paths]
        looked_at = list(bases) if version.changes_columns else new
        refuse_renamed(plan, (bases[path] for path in looked_at), context.storage.uri)
        descriptions = context.storage.each(
            FileDescriber(context, schema, version.folders), [bases[path] for path in looked_at]
        )
        files = dict(zip(looked_at, descriptions, strict=True))
        old_paths = state.paths - set(bases)
        latest = snapshot.timeline.latest_commit
        instant = None if latest is None else str(latest.time)
        result = Published(LakeFormat.ICEBERG, instant, state.version + 1, len(new), len(old_paths))
        if not new and not old_paths and not version.changes_columns:
            if not dry_run:
                _point_to_newest(context.storage)  # the previous publisher may have died
            return replace(result, version=state.version, changed=False)
        if dry_run:
            return result
        stored = [each.stored for each in descriptions]
        metadata = version.written({path: files[path] for path in new}, old_paths, instant, stored)
        try:
            context.storage.create_new(f"{FOLDER}/v{result.version}.metadata.json", json.dumps(metadata).encode())
        except FileExistsError:
            continue
        _point_to_newest(context.storage)
        return result
    raise CommitConflictError(f"other processes kept publishing {context.storage.uri} as Iceberg: publish it again")


class _Version:
    """Makes the version that follows a state."""

    def __init__(self, context: TableContext, state: _State, snapshot: Snapshot, schema: pa.Schema) -> None:
        self._storage = context.storage
        self._state = state
        self._arrow = schema
        self.folders: FolderValues | None = folder_values(context.config, schema)
        old = state.metadata
        schemas = old.get("schemas", [])
        current = next((each for each in schemas if each["schema-id"] == old["current-schema-id"]), None)
        self._ids = ColumnIds(old.get("last-column-id", 0), {} if current is None else ids_of(current["fields"]))
        fields = fields_of(schema, self._ids)
        self.changes_columns = current is None or current["fields"] != fields
        if current is None or self.changes_columns:
            number = max((each["schema-id"] for each in schemas), default=-1) + 1
            current = {"type": "struct", "schema-id": number, "fields": fields}
            schemas = [*schemas, current]
        self._schema, self._schemas = current, schemas
        self._numbers = ids_of(fields)
        columns = () if self.folders is None else self.folders.fields
        self._partitioning = Partitioning(
            [(each.name, self._numbers[each.name], avro_of(each.type)) for each in columns]
        )

    def written(
        self, new: Mapping[str, BaseFileFacts], old_paths: set[str], instant: str | None, stored: Sequence[pa.Schema]
    ) -> dict[str, Any]:
        """Write the manifests; gives the metadata that names them. `stored`: the columns of the files that were looked at."""
        old, now_ms = self._state.metadata, int(self._storage.now_s() * 1000)
        sequence = old.get("last-sequence-number", 0) + 1
        snapshot, parent = uuid.uuid4().int >> 66, self._state.snapshot and self._state.snapshot["snapshot-id"]
        manifests = self._manifests(new, old_paths, snapshot, sequence)
        place = f"{FOLDER}/snap-{snapshot}-1-{uuid.uuid4()}.avro"
        self._storage.create_new(place, encode_list(manifests, snapshot=snapshot, parent=parent, sequence=sequence))
        summary = {"operation": "overwrite", **({} if instant is None else {INSTANT: instant})}
        added = {
            "snapshot-id": snapshot,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": sequence,
            "timestamp-ms": now_ms,
            "manifest-list": f"{self._storage.uri}/{place}",
            "summary": summary,
            "schema-id": self._schema["schema-id"],
        }
        before = old.get("properties", {}).get(_MAPPING, "[]")
        mapping = name_mapping(self._schema["fields"], before, stored)
        partitions = self._partitioning.spec
        return {
            "format-version": 2,
            "table-uuid": old.get("table-uuid", str(uuid.uuid4())),
            "location": self._storage.uri,
            "last-sequence-number": sequence,
            "last-updated-ms": now_ms,
            "last-column-id": self._ids.last,
            "schemas": self._schemas,
            "current-schema-id": self._schema["schema-id"],
            "partition-specs": [{"spec-id": 0, "fields": partitions}],
            "default-spec-id": 0,
            "last-partition-id": 999 + len(partitions),
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {_MADE_BY_US: "true", _MAPPING: mapping},
            "current-snapshot-id": snapshot,
            "refs": {"main": {"snapshot-id": snapshot, "type": "branch"}},
            "snapshots": [*old.get("snapshots", ()), added][-_MOST_SNAPSHOTS:],
            "snapshot-log": [
                *old.get("snapshot-log", ()),
                {"snapshot-id": snapshot, "timestamp-ms": now_ms},
            ][-_MOST_SNAPSHOTS:],
            "metadata-log": [],
        }

    def _manifests(
        self, new: Mapping[str, BaseFileFacts], old_paths: set[str], snapshot: int, sequence: int
    ) -> list[dict[str, Any]]:
        entries: list[Entry] = [
            {
                "status": ADDED,
                "snapshot_id": snapshot,
                "sequence_number": None,
                "file_sequence_number": None,
                "data_file": self._data_file(path, file),
            }
            for path, file in new.items()
        ]
        manifests, rewritten = [], []
        for manifest, live in self._state.manifests:
            if len(self._state.manifests) < _MOST_MANIFESTS and all(
                each["data_file"]["file_path"] not in old_paths for each in live
            ):
                manifests += [manifest] if live else []
            else:
                rewritten += [self._carried(each, manifest, old_paths, snapshot) for each in live]
        for group in (entries, rewritten):
            if group:
                data = encode_manifest(group, self._partitioning, self._schema)
                place = f"{FOLDER}/{uuid.uuid4()}-m0.avro"
                self._storage.create_new(place, data)
                path = f"{self._storage.uri}/{place}"
                manifests.append(manifest_entry(path, len(data), group, snapshot=snapshot, sequence=sequence))
        return manifests

    @staticmethod
    def _carried(entry: Entry, manifest: Mapping[str, Any], old_paths: set[str], snapshot: int) -> Entry:
        """The entry for a rewritten manifest; it states the numbers that it inherited from the old one."""
        is_gone = entry["data_file"]["file_path"] in old_paths
        sequence = entry["sequence_number"] or manifest["sequence_number"]
        return {
            "status": DELETED if is_gone else EXISTING,
            "snapshot_id": snapshot if is_gone else entry["snapshot_id"] or manifest["added_snapshot_id"],
            "sequence_number": sequence,
            "file_sequence_number": entry["file_sequence_number"] or sequence,
            "data_file": entry["data_file"],
        }

    def _data_file(self, path: str, file: BaseFileFacts) -> dict[str, Any]:
        bounds_of = {name: bounds(each, self._arrow.field(name).type) for name, each in file.ranges.items()}
        limits = {self._numbers[name]: each for name, each in bounds_of.items() if each is not None}
        return {
            "content": 0,
            "file_path": path,
            "file_format": "PARQUET",
            "partition": {name: value.as_py() for name, value in file.values.items()},
            "record_count": file.rows,
            "file_size_in_bytes": file.base.size_bytes,
            "null_value_counts": None,
            "lower_bounds": [{"key": number, "value": each[0]} for number, each in limits.items()],
            "upper_bounds": [{"key": number, "value": each[1]} for number, each in limits.items()],
        }
