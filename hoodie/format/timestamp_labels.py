"""Timestamps under a wrong label, as Apache Hudi before 1.1 wrote them, and what they are by the table's schema of today.

Those releases called a column of timestamp-millis timestamp-micros, in Parquet footers, log blocks and commits alike, and a
local timestamp a plain long. The numbers are right: they count the unit that the column was meant to have. Later releases
state the right label, and take the numbers of older files for that (their `HoodieSchemaRepair`). As long as no commit states
it, nothing tells such a column from one of microseconds. Witness: the public tables `trips_logical_types_json_*`.
"""

from __future__ import annotations

import pyarrow as pa


def is_mislabelled(stored: pa.DataType, now: pa.DataType) -> bool:
    """Whether numbers of the stored type count the unit of the other one."""
    if not pa.types.is_timestamp(now):
        return False
    if pa.types.is_timestamp(stored):
        return stored.unit == "us" and now.unit == "ms" and stored.tz is not None and now.tz is not None
    return bool(pa.types.is_int64(stored)) and now.tz is None


def holds_mislabelled(stored: pa.DataType, now: pa.DataType) -> bool:
    """Whether a column of the stored type has such numbers at any depth; parts of structs are found by name."""
    if pa.types.is_struct(stored) and pa.types.is_struct(now):
        parts = {now.field(i).name: now.field(i).type for i in range(now.num_fields)}
        fields = [stored.field(i) for i in range(stored.num_fields)]
        return any(field.name in parts and holds_mislabelled(field.type, parts[field.name]) for field in fields)
    if pa.types.is_nested(stored) and stored.id == now.id and stored.num_fields == now.num_fields:
        return any(holds_mislabelled(stored.field(i).type, now.field(i).type) for i in range(stored.num_fields))
    return is_mislabelled(stored, now)


def with_labels_of(schema: pa.Schema, newest: pa.Schema) -> pa.Schema:
    """An older schema of a table, with the types of the newest one where it had wrong labels."""
    fields = []
    for field in schema:
        at = newest.get_field_index(field.name)
        now = newest.field(at).type if at >= 0 else field.type
        fields.append(field.with_type(now) if holds_mislabelled(field.type, now) else field)
    return pa.schema(fields)
