"""Manifests and manifest lists of an Iceberg table: Avro files of data files, and of manifests."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import fastavro

EXISTING, ADDED, DELETED = 0, 1, 2


def _field(name: str, number: int, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "field-id": number, "type": ["null", kind], "default": None}
    return {"name": name, "field-id": number, "type": kind}


def _map(key: int, value: int, kind: str) -> dict[str, Any]:
    fields = [_field("key", key, "int"), _field("value", value, kind)]
    return {
        "type": "array",
        "logicalType": "map",
        "items": {"type": "record", "name": f"k{key}_v{value}", "fields": fields},
    }


class Partitioning(NamedTuple):
    """Of the table."""

    columns: Sequence[tuple[str, int, Any]]
    """Name, number of the column, and type in Avro of each."""

    @property
    def spec(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "transform": "identity", "source-id": source, "field-id": 1000 + at}
            for at, (name, source, _) in enumerate(self.columns)
        ]

    @property
    def avro(self) -> dict[str, Any]:
        fields = [_field(name, 1000 + at, kind, optional=True) for at, (name, _, kind) in enumerate(self.columns)]
        return {"type": "record", "name": "r102", "fields": fields}


def _entries(partitioning: Partitioning) -> dict[str, Any]:
    file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _field("content", 134, "int"),
            _field("file_path", 100, "string"),
            _field("file_format", 101, "string"),
            _field("partition", 102, partitioning.avro),
            _field("record_count", 103, "long"),
            _field("file_size_in_bytes", 104, "long"),
            _field("null_value_counts", 110, _map(121, 122, "long"), optional=True),
            _field("lower_bounds", 125, _map(126, 127, "bytes"), optional=True),
            _field("upper_bounds", 128, _map(129, 130, "bytes"), optional=True),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field("status", 0, "int"),
            _field("snapshot_id", 1, "long", optional=True),
            _field("sequence_number", 3, "long", optional=True),
            _field("file_sequence_number", 4, "long", optional=True),
            _field("data_file", 2, file),
        ],
    }


_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", 500, "string"),
        _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"),
        _field("content", 517, "int"),
        _field("sequence_number", 515, "long"),
        _field("min_sequence_number", 516, "long"),
        _field("added_snapshot_id", 503, "long"),
        _field("added_files_count", 504, "int"),
        _field("existing_files_count", 505, "int"),
        _field("deleted_files_count", 506, "int"),
        _field("added_rows_count", 512, "long"),
        _field("existing_rows_count", 513, "long"),
        _field("deleted_rows_count", 514, "long"),
    ],
}


def encode_manifest(
    entries: Sequence[Mapping[str, Any]], partitioning: Partitioning, schema: Mapping[str, Any]
) -> bytes:
    """The bytes of a manifest; `schema` is the table's."""
    about = {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json.dumps(partitioning.spec),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "data",
    }
    return _encoded(_entries(partitioning), entries, about)


def encode_list(manifests: Sequence[Mapping[str, Any]], *, snapshot: int, parent: int | None, sequence: int) -> bytes:
    """The bytes of the list of a snapshot's manifests."""
    about = {
        "snapshot-id": str(snapshot),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(sequence),
        "format-version": "2",
    }
    return _encoded(_LIST, manifests, about)


def _encoded(schema: dict[str, Any], records: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata=dict(about))
    return out.getvalue()


def decode(data: bytes) -> list[dict[str, Any]]:
    """The records of either file."""
    return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]


def manifest_entry(
    path: str, size_bytes: int, entries: Sequence[Mapping[str, Any]], *, snapshot: int, sequence: int
) -> dict[str, Any]:
    """A manifest as a list has it."""

    def count(status: int) -> int:
        return sum(each["status"] == status for each in entries)

    def rows(status: int) -> int:
        return sum(each["data_file"]["record_count"] for each in entries if each["status"] == status)

    sequences = [each["sequence_number"] or sequence for each in entries]
    return {
        "manifest_path": path,
        "manifest_length": size_bytes,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": sequence,
        "min_sequence_number": min(sequences),
        "added_snapshot_id": snapshot,
        "added_files_count": count(ADDED),
        "existing_files_count": count(EXISTING),
        "deleted_files_count": count(DELETED),
        "added_rows_count": rows(ADDED),
        "existing_rows_count": rows(EXISTING),
        "deleted_rows_count": rows(DELETED),
    }
