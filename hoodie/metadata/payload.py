"""Records of a metadata table: Avro binary, without their keys, which HFiles have beside them -> columns.

All kinds of records share one schema with a nullable field for each kind, and a record fills one of them. So a record is
decoded as if the other fields were whole numbers: the number of the branch that they take, which is that of null, 0. That leaves
types that are decoded column by column. Bounds are unions of a wrapper for each type: records of one type are decoded together.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.avro_codec import decode_records, positions_behind
from hoodie.format.avro_record import read_record, write_record
from hoodie.format.avro_schema import AvroType, parse_schema, resolve_record
from hoodie.format.avro_wire import Ints, data_of, offsets_in, padded, read_varints
from hoodie.format.bloom import build_bloom
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS, FILES, RECORD_INDEX, SECONDARY_INDEX
from hoodie.model.meta_fields import META_COLUMNS

pc: Any = pyarrow.compute
_FIELDS = {
    FILES: "filesystemMetadata",
    COLUMN_STATS: "ColumnStatsMetadata",
    BLOOM_FILTERS: "BloomFilterMetadata",
    RECORD_INDEX: "recordIndexMetadata",
    SECONDARY_INDEX: "SecondaryIndexMetadata",
}
_KINDS = {FILES: (1, 2), COLUMN_STATS: (3, 6), BLOOM_FILTERS: (4,), RECORD_INDEX: (5,), SECONDARY_INDEX: (7,)}
"""What the field `type` says; 1 is the list of all partitions, 6 the statistics of a partition of the table."""
_SHARED = frozenset({*META_COLUMNS, "key", "type"})
_OTHER = "no_"
"""In front of the names of fields that are null."""
_LOW, _HIGH = "minValue", "maxValue"
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)
_NO_INDEX = -1

FileSizes = Mapping[str, tuple[int, bool]]
"""File name, or partition -> its size, and whether it was deleted."""


class Stats(NamedTuple):
    """Bounds of a column in some files; `rows` says in which, among those that were decoded."""

    rows: Ints
    columns: pa.Table
    """low and high, of the same type; nulls; values, nulls among them; deleted; tight; decimal: precision and scale as a text."""


def decode_files(values: Any, schema: str) -> list[FileSizes]:
    """The files of each record, or its partitions.

    A row loop: a record lists all files of a partition, and fastavro decodes them in C.

    Raises:
        CorruptFileError: a record is damaged, or of another kind. UnsupportedTableError: the schema is.
    """
    parsed = fastavro.parse_schema(_narrow(schema, FILES))
    result: list[FileSizes] = []
    for value in values.to_pylist():
        stream = io.BytesIO(value)
        try:
            record: Any = read_record(stream, parsed)
            sizes = {name: (file["size"], file["isDeleted"]) for name, file in (record[_FIELDS[FILES]] or {}).items()}
        except (EOFError, IndexError, ValueError, OverflowError, MemoryError, KeyError) as exc:
            raise CorruptFileError(f"a record of {len(value)} bytes does not decode: {exc!r}") from exc
        has_other = any(branch for name, branch in record.items() if name.startswith(_OTHER))
        if stream.tell() != len(value) or record["type"] not in _KINDS[FILES] or has_other:
            raise CorruptFileError(f"a record of {len(value)} bytes is not a record of files")
        result.append(sizes)
    return result


def decode_locations(values: Any, schema: str) -> pa.Table:
    """partition_path, file_id and written (when the row was first written) of each record; raises as `decode_files`."""
    fields = _decode(values, schema, RECORD_INDEX)
    uuids = _uuid_texts(fields["fileIdHighBits"], fields["fileIdLowBits"])
    index = fields["fileIndex"]
    numbered = pc.binary_join_element_wise(uuids, index.cast(pa.string()), "-")
    from_uuid = pc.if_else(pc.equal(index, _NO_INDEX), uuids, numbered)
    encoding = fields["fileIdEncoding"]
    if not pc.all(pc.is_in(encoding, value_set=pa.array([0, 1], pa.int32())), min_count=0).as_py():
        raise UnsupportedTableError("a record spells a file id in a way that is not known")
    return pa.table(
        {
            "partition_path": fields["partitionName"],
            "file_id": pc.if_else(pc.equal(encoding, 0), from_uuid, fields["fileId"]),
            "written": fields["instantTime"].cast(pa.timestamp("ms", "UTC")),
        }
    )


def decode_blooms(values: Any, schema: str) -> pa.Table:
    """type, bloom (as base64 text) and deleted of each record; raises as `decode_files`."""
    fields = _decode(values, schema, BLOOM_FILTERS)
    return pa.table({"type": fields["type"], "bloom": fields["bloomFilter"], "deleted": fields["isDeleted"]})


def decode_secondary(values: Any, schema: str) -> Any:
    """Of each record of a secondary index whether it says that its key is gone; raises as `decode_files`."""
    fields = _decode(values, schema, SECONDARY_INDEX)
    if list(fields) != ["isDeleted"]:
        raise UnsupportedTableError(f"a secondary index has records of {', '.join(fields)}")
    return fields["isDeleted"]


def decode_stats(values: Any, schema: str) -> Iterator[Stats]:
    """The records, those of one type of bounds together; raises as `decode_files`."""
    record = _narrow_stats(schema)
    starts, ends = _spans(values)
    content = memoryview(data_of(values))
    behind = positions_behind(content, starts, ends, record.before)
    branches = read_varints(padded(content), behind)[0]
    for branch in np.unique(branches).tolist():
        rows = np.flatnonzero(branches == branch)
        of_type = values.take(pa.array(rows))
        records = _checked(_decoded(of_type, record.of_branch(branch)), COLUMN_STATS)
        if not (_all_equal(records["has"], 1) and _all_equal(records["high_branch"], branch)):
            raise CorruptFileError("a record has no bounds of a column, or bounds of two types")
        yield Stats(rows, _stats_table(records))


class _StatsRecord(NamedTuple):
    """The schema of a column's statistics, without its unions of many types."""

    before: AvroType
    """The fields in front of the lower bound's branch."""
    head: Sequence[Mapping[str, Any]]
    tail: Sequence[Mapping[str, Any]]
    branches: Sequence[Any]

    def of_branch(self, branch: int) -> AvroType:
        """The schema of records whose bounds take this branch."""
        if not 0 <= branch < len(self.branches):
            raise CorruptFileError(f"bounds of a column take branch {branch} of {len(self.branches)}")
        wrapper = self.branches[branch]
        low, high = [{"name": "low_branch", "type": "long"}], [{"name": "high_branch", "type": "long"}]
        if wrapper != "null":
            kind = wrapper["fields"][0]["type"]
            low.append({"name": "low", "type": kind})
            high.append({"name": "high", "type": kind})
        return resolve_record(_record([*self.head, *low, *high, *self.tail]))


@lru_cache(16)
def _narrow_stats(schema: str) -> _StatsRecord:
    fields = _narrow(schema, COLUMN_STATS)["fields"]
    at = _place(fields, _FIELDS[COLUMN_STATS])
    own = fields[at]["type"][1]["fields"]
    low, high = _place(own, _LOW), _place(own, _HIGH)
    branches = own[low]["type"]
    if high != low + 1 or not isinstance(branches, list):
        raise UnsupportedTableError("the schema of column statistics has the bounds in places that are not known")
    head = [*fields[:at], {"name": "has", "type": "long"}, *_prefixed(own[:low])]
    tail = [*_prefixed(own[high + 1 :]), *fields[at + 1 :]]
    return _StatsRecord(resolve_record(_record(head)), head, tail, branches)


def _stats_table(records: pa.Table) -> pa.Table:
    has_bounds, says_tight = "low" in records.column_names, "own_isTightBound" in records.column_names
    more = pa.nulls(records.num_rows, pa.string())
    if "own_valueType" in records.column_names:
        more = pc.struct_field(records["own_valueType"], "additionalInfo")
    return pa.table(
        {
            "low": records["low"] if has_bounds else pa.nulls(records.num_rows),
            "high": records["high"] if has_bounds else pa.nulls(records.num_rows),
            "nulls": records["own_nullCount"],
            "values": records["own_valueCount"],
            "deleted": records["own_isDeleted"],
            "tight": records["own_isTightBound"] if says_tight else pa.array([False] * records.num_rows),
            "decimal": more,
        }
    )


def _prefixed(fields: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fields of the statistics beside those of the record, whose names some of them have."""
    return [{"name": f"own_{field['name']}", "type": field["type"]} for field in fields]


def _decode(values: Any, schema: str, partition: str) -> Mapping[str, Any]:
    """The fields of the records of a partition, by name."""
    record = resolve_record(_narrow(schema, partition))
    records: Any = _checked(_decoded(values, record), partition)[_FIELDS[partition]].combine_chunks()
    if records.null_count:
        raise CorruptFileError(f"a record of {partition} is empty")
    return {field.name: records.field(number) for number, field in enumerate(records.type)}


def _checked(records: pa.Table, partition: str) -> pa.Table:
    is_kind = pc.is_in(records["type"], value_set=pa.array(_KINDS[partition], pa.int32()))
    others = [name for name in records.column_names if name.startswith(_OTHER)]
    if not (pc.all(is_kind, min_count=0).as_py() and all(_all_equal(records[name], 0) for name in others)):
        raise CorruptFileError(f"a record is not one of {partition}")
    return records


def _all_equal(column: Any, value: int) -> bool:
    return pc.all(pc.equal(column, value)).as_py() is not False


def _decoded(values: Any, record: AvroType) -> pa.Table:
    return decode_records(memoryview(data_of(values)), *_spans(values), record)


def _spans(values: Any) -> tuple[Ints, Ints]:
    offsets = offsets_in(values)
    return offsets[:-1], offsets[1:]


def _narrow(schema: str, partition: str) -> Any:
    """The record schema where only the partition's own field and those that all have are what they are."""
    fields, own = parse_schema(schema)["fields"], _FIELDS[partition]
    _place(fields, own)
    narrow = []
    for field in fields:
        name, kind = field["name"], field["type"]
        if name in _SHARED:
            narrow.append({"name": name, "type": kind})
            continue
        if not isinstance(kind, list) or len(kind) != 2 or kind[0] != "null":
            raise UnsupportedTableError(f"field {name!r} of a metadata table's schema has a form that is not known")
        narrow.append({"name": name, "type": kind} if name == own else {"name": _OTHER + name, "type": "long"})
    return _record(narrow)


def _record(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Narrow", "namespace": "org.apache.hudi.avro.model", "fields": list(fields)}


def _place(fields: Sequence[Mapping[str, Any]], name: str) -> int:
    for number, field in enumerate(fields):
        if field["name"] == name:
            return number
    raise UnsupportedTableError(f"a metadata table's schema has no field {name!r}: {json.dumps(fields)[:200]}")


def _uuid_texts(high: Any, low: Any) -> Any:
    """The UUIDs of these halves as texts; any text where a half is null."""
    halves = np.empty((len(high), 2), ">i8")
    for at, half in enumerate((high, low)):
        halves[:, at] = half.fill_null(0).to_numpy(zero_copy_only=False)
    data = halves.view(np.uint8)
    digits = _HEX[np.stack([data >> 4, data & 15], axis=2).reshape(-1, 32)]
    texts = np.ascontiguousarray(np.insert(digits, [at - n for n, at in enumerate(_DASHES)], ord("-"), axis=1))
    fixed = pa.Array.from_buffers(pa.binary(texts.shape[1]), len(texts), [None, pa.py_buffer(texts.tobytes())])
    return fixed.cast(pa.binary()).cast(pa.string())


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
