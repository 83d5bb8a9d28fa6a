"""Which rows are deletes, by the values of their columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.ordering import bools
from hoodie.model.meta_fields import IS_DELETED
from hoodie.model.plans import DeleteMarker, MergeRule

OPERATION = "_hoodie_operation"
"""Meta column of tables that keep the kind of each change (Flink's changelog mode)."""
_GONE = ("D", "-U")


def flag_columns(schema: pa.Schema, rule: MergeRule) -> list[pa.Field]:
    """The columns that `delete_flags` looks at, in the table's types where the schema has them."""
    fields: list[pa.Field] = [pa.field(IS_DELETED, pa.bool_()), pa.field(OPERATION, pa.string())]
    if rule.delete_marker is not None:
        fields.append(pa.field(rule.delete_marker.field, pa.string()))
    return [schema.field(field.name) if field.name in schema.names else field for field in fields]


def delete_flags(rows: pa.Table | pa.RecordBatch, rule: MergeRule) -> np.ndarray:
    """Bool for each row: `_hoodie_is_deleted` is true, the delete marker stands in its field, or the change took it away."""
    flags = np.zeros(rows.num_rows, dtype=bool)
    names = rows.schema.names
    if IS_DELETED in names and pa.types.is_boolean(rows.schema.field(IS_DELETED).type):
        flags |= bools(pc.fill_null(rows.column(IS_DELETED), False))
    if OPERATION in names and pa.types.is_string(rows.schema.field(OPERATION).type):
        flags |= bools(pc.fill_null(pc.is_in(rows.column(OPERATION), value_set=pa.array(_GONE)), False))
    if rule.delete_marker is not None and rule.delete_marker.field in names:
        flags |= marked(rows.column(rule.delete_marker.field), rule.delete_marker)
    return flags


def marked(column: pa.Array | pa.ChunkedArray, marker: DeleteMarker) -> np.ndarray:
    """Bool for each value: as text it is the marker."""
    texts = column.cast(pa.string())
    if marker.any_case:
        return bools(pc.fill_null(pc.equal(pc.utf8_lower(texts), marker.marker.lower()), False))
    return bools(pc.fill_null(pc.equal(texts, marker.marker), False))
