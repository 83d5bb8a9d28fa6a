"""Records of the partition `files` of a metadata table as Apache Hudi writes them: the files that an instant added and removed."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from hoodie.format.bloom import build_bloom
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.metadata.keys import ALL_PARTITIONS, identifier_of
from hoodie.model.change import Change

_ALL, _FILES = 1, 2
"""What the field `type` says."""
_REMOVED_BYTES = 0
_BLOOM, _BLOOM_RATE, _LEAST_ENTRIES = "DYNAMIC_V0", 1e-9, 1000

Entries = Mapping[str, tuple[int, bool]]
"""File name, or partition -> its size, and whether it is gone: as `payload.FileSizes`."""


def entries_of(change: Change) -> dict[str, Entries]:
    """Key of a record -> what it says. A partition whose folder is gone has no files left."""
    found: dict[str, dict[str, tuple[int, bool]]] = {}
    partitions: dict[str, tuple[int, bool]] = {}
    for path, names in change.removed.items():
        found.setdefault(identifier_of(path), {}).update(dict.fromkeys(names, (_REMOVED_BYTES, True)))
    for path, sizes in change.added.items():
        partitions[identifier_of(path)] = (0, False)
        found.setdefault(identifier_of(path), {}).update({name: (size, False) for name, size in sizes.items()})
    for path in change.partitions_removed:
        partitions.setdefault(identifier_of(path), (0, True))
    records: dict[str, Entries] = {key: entries for key, entries in found.items() if entries}
    return {**records, ALL_PARTITIONS: partitions} if partitions else records


def encode_entries(records: Mapping[str, Entries], schema: str, *, is_base: bool = False) -> bytes:
    """An HFile with these records; `schema` is that of the metadata table's records. A row loop: a record lists many files.

    `is_base`: with what Apache Hudi's base files have besides: least and greatest key, and a bloom filter of their own form.
    """
    parsed = _parsed(schema)
    out = io.BytesIO()
    writer = HFileWriter(out, HFileOptions(bloom_rate=None))
    keys = sorted(records, key=str.encode)
    values = [_encoded(records[key], _ALL if key == ALL_PARTITIONS else _FILES, parsed) for key in keys]
    writer.write(pa.array([key.encode() for key in keys], pa.binary()), pa.array(values, pa.binary()))
    if is_base:
        entries = max(_LEAST_ENTRIES, len(keys))
        bloom = build_bloom(_BLOOM, pa.array(keys), num_entries=entries, fpp=_BLOOM_RATE, max_entries=10 * entries)
        writer.add_meta("bloomFilter", b64encode(bloom.to_bytes()))
        writer.add_info(b"bloomFilterTypeCode", _BLOOM.encode())
        writer.add_info(b"minRecordKey", keys[0].encode())
        writer.add_info(b"maxRecordKey", keys[-1].encode())
    writer.add_info(b"schema", schema.encode())
    writer.finish()
    return out.getvalue()


@lru_cache(4)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def _encoded(entries: Entries, kind: int, schema: Any) -> bytes:
    body = io.BytesIO()
    files = {name: {"size": size, "isDeleted": is_gone} for name, (size, is_gone) in entries.items()}
    # The HFile has the key, so that the record's own is empty.
    fastavro.schemaless_writer(body, schema, {"key": "", "type": kind, "filesystemMetadata": files})
    return body.getvalue()
