"""The records of a metadata table as rows, by the names of Apache Hudi: for those who look into one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from hoodie.format.avro_record import read_record
from hoodie.metadata.slices import HFileRecords
from hoodie.metadata.table import MetadataTable, finished_partitions
from pyspark_hoodie.procedure_files import metadata_table
from pyspark_hoodie.table import HoodieTable

_ALL_PARTITIONS, _FILES, _EVERY, _LISTING = "__all_partitions__", "files", 1, 2
_ENTRY = pa.struct([("size", pa.int64()), ("isDeleted", pa.bool_())])
_BOUNDS = pa.struct(
    [
        *((name, pa.string()) for name in ("fileName", "columnName", "minValue", "maxValue")),
        *((name, pa.int64()) for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        ("isDeleted", pa.bool_()),
    ]
)
_BLOOM = pa.struct(
    [("type", pa.string()), ("timestamp", pa.string()), ("bloomFilter", pa.binary()), ("isDeleted", pa.bool_())]
)
_PLACE = pa.struct(
    [
        ("partitionName", pa.string()),
        *((name, pa.int64()) for name in ("fileIdHighBits", "fileIdLowBits")),
        ("fileIndex", pa.int32()),
        ("fileId", pa.string()),
        ("instantTime", pa.int64()),
        ("fileIdEncoding", pa.int32()),
    ]
)
_KINDS = {"ColumnStatsMetadata": _BOUNDS, "BloomFilterMetadata": _BLOOM, "recordIndexMetadata": _PLACE}
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("key", pa.string()),
    ("type", pa.int32()),
    ("filesystemMetadata", pa.map_(pa.string(), _ENTRY)),
    *((name, kind) for name, kind in _KINDS.items()),
]


def metadata_rows(table: HoodieTable) -> pa.Table:
    """Every record that counts. Bounds are texts."""
    metadata = metadata_table(table)
    rows = list(_listings(metadata))
    for partition in sorted(finished_partitions(table.config.raw) - {_FILES}):
        for number in range(len(metadata.slices_of(partition))):
            rows += _records(metadata, partition, number)
    return pa.Table.from_pylist(rows, pa.schema(_FIELDS))


def _listings(metadata: MetadataTable) -> Iterator[dict[str, Any]]:
    for key, sizes in metadata.all_entries().items():
        entries = [(name, {"size": size, "isDeleted": False}) for name, size in sizes.items()]
        kind = _EVERY if key == _ALL_PARTITIONS else _LISTING
        yield {"key": key, "type": kind, "filesystemMetadata": entries}


def _records(metadata: MetadataTable, partition: str, number: int) -> Iterator[dict[str, Any]]:
    """The newest record of each key in a file group."""
    newest: dict[Any, tuple[Any, str]] = {}
    for layer in metadata.layers_of(partition, number):
        if not isinstance(layer, HFileRecords):
            for key in layer.keys.to_pylist():
                newest.pop(key, None)
            continue
        for batch in layer.reader.scan():
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                newest[key] = value, layer.schema
    for key, (value, schema) in sorted(newest.items()):
        record: Any = read_record(io.BytesIO(value), _parsed(schema), _parsed(schema))
        fields = {name: _plain(record.get(name), kind) for name, kind in _KINDS.items()}
        if not any(each and each.get("isDeleted") for each in fields.values()):
            yield {"key": bytes(key).decode(), "type": record["type"], **fields}


def _plain(stored: Mapping[str, Any] | None, kind: pa.StructType) -> dict[str, Any] | None:
    if stored is None:
        return None
    result: dict[str, Any] = {field.name: stored.get(field.name) for field in kind}
    for bound in ("minValue", "maxValue"):
        if isinstance(result.get(bound), dict):
            result[bound] = str(result[bound].get("value"))
    return result


@lru_cache(4)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))
