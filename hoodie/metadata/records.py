"""Records of a metadata table as Apache Hudi writes them: each in Avro, and all of a file group in an HFile."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from hoodie.format.avro_record import read_record, write_record
from hoodie.format.bloom import build_bloom
from hoodie.hfile.writer import HFileOptions, HFileWriter

_AT_ONCE = 1 << 18
"""Values that are spelled out at a time."""
_BLOOM, _BLOOM_RATE, _LEAST_ENTRIES = "DYNAMIC_V0", 1e-9, 1000


def encode_hfile(keys: Any, values: Any, schema: str, *, is_base: bool = False) -> bytes:
    """An HFile with records in Avro binary, which may be those of a dictionary; keys stand in the order of their bytes.

    `is_base`: with what Apache Hudi's base files have besides: least and greatest key, and a bloom filter of their own form.
    """
    out = io.BytesIO()
    writer = HFileWriter(out, HFileOptions(bloom_rate=None))
    for start in range(0, len(keys), _AT_ONCE):
        part = values.slice(start, _AT_ONCE)
        plain = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
        writer.write(keys.slice(start, _AT_ONCE), plain)
    if is_base and len(keys):
        entries = max(_LEAST_ENTRIES, len(keys))
        bloom = build_bloom(
            _BLOOM, keys.cast(pa.large_string()), num_entries=entries, fpp=_BLOOM_RATE, max_entries=10 * entries
        )
        writer.add_meta("bloomFilter", b64encode(bloom.to_bytes()))
        writer.add_info(b"bloomFilterTypeCode", _BLOOM.encode())
        writer.add_info(b"minRecordKey", keys[0].as_py())
        writer.add_info(b"maxRecordKey", keys[-1].as_py())
    writer.add_info(b"schema", schema.encode())
    writer.finish()
    return out.getvalue()


def encode_record(fields: Mapping[str, Any], schema: str) -> bytes:
    """A record in Avro binary. The HFile has the key, so that the record's own is empty."""
    return write_record(_parsed(schema), {"key": "", **fields})


def convert_record(record: bytes, written: str, schema: str) -> bytes:
    """A record that was written by another schema of metadata tables, in this one."""
    return write_record(_parsed(schema), read_record(io.BytesIO(record), _parsed(written), _parsed(schema)))


@lru_cache(4)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))
