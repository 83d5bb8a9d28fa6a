"""Ordering values of records and how they compare, as Apache Hudi does it; several fields are compared as a tuple.

Witness: the tables of integration/test_merging_with_hudi.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError
from hoodie.model.nested import field_at
from hoodie.model.plans import MergeRule

Column = pa.Array | pa.ChunkedArray
_POSITION = pa.struct([("file", pa.int64()), ("position", pa.int64())])


def ordering_type(schema: pa.Schema, rule: MergeRule) -> pa.DataType | None:
    """Type of the ordering column: that of the one field, or a struct of several; None where the schema has none of them."""
    if rule.positions and rule.ordering_fields[0] in schema.names:
        return _POSITION
    fields = [field for name in rule.ordering_fields if (field := field_at(schema, name)) is not None]
    if len(fields) < 2:
        return fields[0].type if fields else None
    return pa.struct([field.with_nullable(True) for field in fields])


def ordering_of(rows: pa.Table | pa.RecordBatch, rule: MergeRule) -> pa.Array | None:
    """The ordering column of rows, of `ordering_type`. Where all of several fields are null the struct is null."""
    kind = ordering_type(rows.schema, rule)
    if kind is None:
        return None
    if rule.positions:
        return _positions(whole(rows.column(rule.ordering_fields[0])), rule.ordering_fields[0])
    if not pa.types.is_struct(kind):
        return _values_at(rows, next(name for name in rule.ordering_fields if field_at(rows.schema, name) is not None))
    parts = [_values_at(rows, field.name) for field in kind]
    missing = np.logical_and.reduce([bools(pc.is_null(part)) for part in parts])
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array(missing))


def _values_at(rows: pa.Table | pa.RecordBatch, path: str) -> pa.Array:
    top, *inner = path.split(".")
    values = whole(rows.column(top))
    return pc.struct_field(values, inner) if inner else values


def columns_of(ordering: pa.Array, schema: pa.Schema, rule: MergeRule) -> dict[str, pa.Array]:
    """The columns whose ordering values these are; what else is in such a column is null."""
    paths = [name for name in rule.ordering_fields if field_at(schema, name) is not None]
    values = dict(zip(paths, fields_of(ordering), strict=True))

    def built(kind: Any, path: str) -> pa.Array:
        if path in values:
            result: pa.Array = values[path]
            return result
        if not any(each.startswith(f"{path}.") for each in values):
            empty: pa.Array = pa.nulls(len(ordering), kind)
            return empty
        members = [kind.field(i) for i in range(kind.num_fields)]
        parts = [built(member.type, f"{path}.{member.name}") for member in members]
        return pa.StructArray.from_arrays(parts, fields=members)

    return {name: built(schema.field(name).type, name) for name in rule.ordering_columns if name in schema.names}


def stored_ordering(rows: pa.Table, rule: MergeRule) -> pa.Array | None:
    """The ordering column as a delete block has it."""
    return ordering_of(rows, replace(rule, positions=False))


def _positions(texts: pa.Array, name: str) -> pa.Array:
    halves = pc.split_pattern(texts.cast(pa.string()), ".", max_splits=1)
    whole_texts = bools(pc.fill_null(pc.equal(pc.list_value_length(halves), 2), True))
    try:
        if not whole_texts.all():
            raise pa.ArrowInvalid("no dot in it")
        parts = [pc.list_element(halves, i).cast(pa.int64()) for i in (0, 1)]
    except pa.ArrowInvalid as exc:
        raise SchemaError(
            f"ordering column {name!r} holds a value that is no `file.position` of two whole numbers: {exc}"
        ) from exc
    return pa.StructArray.from_arrays(parts, fields=list(_POSITION), mask=pc.is_null(texts))


def are_defaults(ordering: Column | None, count: int) -> np.ndarray:
    """Bool for each of `count` values: whether it is Hudi's default, the int 0. A missing value is; a long 0 is not."""
    if ordering is None:
        return np.ones(count, dtype=bool)
    array = whole(ordering)
    missing = bools(pc.is_null(array))
    if missing_is_zero(array.type):
        missing = missing | bools(pc.fill_null(pc.equal(array, 0), False))
    return missing


def missing_is_zero(kind: pa.DataType) -> bool:
    """Whether a missing value of this type compares as 0: Hudi's default is an int of Java, which only those are equal to."""
    return bool(pa.types.is_integer(kind)) and kind.bit_width <= 32


def ranks_of(ordering: Column) -> np.ndarray:
    """Equal values have equal ranks; a missing value ranks lowest, but for `missing_is_zero`. Several fields: as tuples."""
    array = whole(ordering)
    if pa.types.is_struct(array.type):
        ranks = np.zeros(len(array), dtype=np.int64)
        for part in _parts(array):
            # Ranks of one field are at most the number of rows: the sum orders pairs, and is made dense again.
            _, ranks = np.unique(ranks * (len(array) + 1) + ranks_of(part), return_inverse=True)
        return ranks
    values = _comparable(array)
    dense: np.ndarray = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)
    return np.where(bools(pc.is_null(values)), 0, dense)


def at_least(newer: Column, older: Column) -> np.ndarray:
    """Bool for each pair: newer >= older. Missing values are as in `ranks_of`; two of them tie."""
    mine, theirs = whole(newer), whole(older)
    if pa.types.is_struct(mine.type):
        # From the last field to the first: what differs there decides, what is equal leaves it to the later fields.
        result = np.ones(len(mine), dtype=bool)
        for a, b in reversed(list(zip(_parts(mine), _parts(theirs), strict=True))):
            result = at_least(a, b) & (result | ~at_least(b, a))
        return result
    mine, theirs = _comparable(mine), _comparable(theirs)
    wins = pc.or_(pc.fill_null(pc.greater_equal(mine, theirs), False), pc.is_null(theirs))
    if pa.types.is_floating(mine.type):
        # As in Java, and as `ranks_of` has it: NaN is greater than every number and ties with another NaN.
        wins = pc.or_(wins, pc.fill_null(pc.is_nan(mine), False))
    return bools(wins)


def whole(values: Column) -> pa.Array:
    """The column as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    array: pa.Array = values.combine_chunks()
    return array


def bools(mask: Column) -> np.ndarray:
    result: np.ndarray = whole(mask).to_numpy(zero_copy_only=False)
    return result


def fields_of(ordering: pa.Array) -> list[pa.Array]:
    """The ordering column as the columns of its fields."""
    return _parts(ordering) if pa.types.is_struct(ordering.type) else [ordering]


def _parts(tuples: Any) -> list[pa.Array]:
    """The fields of a struct array; null where the struct is."""
    parts: list[pa.Array] = tuples.flatten()
    return parts


def _comparable(array: pa.Array) -> pa.Array:
    if missing_is_zero(array.type):
        filled: pa.Array = pc.fill_null(array, 0)
        return filled
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8())
    return array
