"""How a batch's schema meets the table's: what widens, what is added, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import KeyFieldError, SchemaError
from hoodie.format.variants import EXTENSION, VARIANT, is_raw, is_variant
from hoodie.format.vectors import is_vector
from hoodie.model.meta_fields import IS_DELETED, without_meta_fields
from hoodie.model.nested import field_at, nullable_columns
from hoodie.model.plain_types import plain_type
from hoodie.options.option import option_name
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.write.operation_rules import OperationRules

_INTEGERS = (pa.int32(), pa.int64())
_FLOATING = (pa.float32(), pa.float64())
WIDER = {
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}
"""Promotions that readers of every engine make, and that no value is changed by."""
_DECIMAL_DIGITS = 38


@dataclass(frozen=True)
class Leave:
    """What a write may do to its table's columns, and may leave out."""

    keys: frozenset[str] = frozenset()
    """Record key and partition columns, nested ones by dots: their types stay, for keys and paths are texts of their values."""
    keys_only: bool = False
    """Nothing but keys is taken from the batch (deletes): missing columns do not matter and no column is added."""
    partial: bool = False
    """Missing columns keep what is stored."""
    upserts: bool = True
    """The operation is one that could be partial."""
    null_for_missing: bool = False
    types_stay: bool = False
    """No column changes its type; whether a value fits is seen when it is cast."""
    integers_to_floating: bool = False
    folder_texts: frozenset[str] = frozenset()
    """Columns that only the names of folders say: where the table has texts for them, values of any type become texts."""


def leave_of(config: TableConfig, rules: OperationRules, options: WriteOptions) -> Leave:
    """How far the columns of a batch may differ from those of the table."""
    return Leave(
        keys=frozenset((*config.record_key_fields, *config.partition_fields)),
        keys_only=rules.deletes,
        partial=rules.partial,
        upserts=rules.updates and rules.inserts,
        null_for_missing=options.null_for_missing,
        integers_to_floating=options.integers_to_floating,
        folder_texts=frozenset(config.partition_fields if config.drops_partition_columns else ()),
    )


def storable(schema: pa.Schema) -> pa.Schema:
    """The batch's columns in the types that a table stores: what Spark and Avro have no word for is mapped to what they have.

    Raises:
        SchemaError: a column has a type that cannot be stored, or a name stands twice, at any depth.
    """
    refused = []
    fields: list[pa.Field] = []
    columns = list(without_meta_fields(schema))
    _require_names(columns, "")
    for field in columns:
        kind = VARIANT if _is_marked(field) else storable_type(field.type, field.name)
        if kind is None:
            refused.append(f"{field.name} {field.type}")
        else:
            fields.append(pa.field(field.name, kind, field.nullable))
        if field.name == IS_DELETED and not (kind is None or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise SchemaError(
                f"column {IS_DELETED!r} is {field.type}, and marks deletes only where it is boolean: cast it, or rename it if it "
                "means something else"
            )
    if refused:
        raise SchemaError(f"these columns have types that a table cannot store: {', '.join(refused)}; cast them first")
    return pa.schema(fields)


def _is_marked(field: pa.Field) -> bool:
    """Whether a column of two byte strings is said to be of variants."""
    return (field.metadata or {}).get(b"ARROW:extension:name") == EXTENSION and is_raw(field.type)


def _require_names(fields: Iterable[pa.Field], path: str) -> None:
    """Each name stands once among its siblings, in whatever case: neither Avro nor Spark could tell them apart."""
    names: dict[str, str] = {}
    for field in fields:
        name = f"{path}{field.name}"
        other = names.setdefault(field.name.lower(), name)
        if other is name:
            continue
        if other == name:
            raise SchemaError(f"column {name!r} stands twice in the data; rename one of them")
        raise SchemaError(
            f"columns {other!r} and {name!r} of the data differ in case only, which Spark cannot tell apart; rename one"
        )


def reconcile(table: pa.Schema | None, batch: pa.Schema, *, table_name: str, leave: Leave | None = None) -> pa.Schema:
    """The schema that the table has after this batch: the table's columns first, new ones behind, which may be null.

    Args:
        batch: as `storable` gives it.

    Raises:
        SchemaError: one error with a line for each column that does not fit.
    """
    leave = leave or Leave()
    if table is None:
        require_types(batch)
        return nullable_columns(batch)
    misfits = _Misfits(leave)
    fields = misfits.fields(list(table), list(batch), "")
    if misfits.lines:
        raise SchemaError(_misfit(table_name, misfits.lines, leave))
    return pa.schema(fields)


def takes(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether a column of one type takes values of another, if each of them fits, and stays as it is."""
    stored = storable_type(other, "")
    if stored is None or kind == other:
        return kind == other
    misfits = _Misfits(Leave(types_stay=True))
    (field,) = misfits.fields([pa.field("c", kind)], [pa.field("c", stored)], "")
    narrows = kind == pa.float32() and stored == pa.float64()
    return field.type == kind and not misfits.lines and not narrows


class _Misfits:
    """Brings two schemas together, columns and parts of nested columns alike, and keeps a line for all that does not fit."""

    def __init__(self, leave: Leave) -> None:
        self.lines: list[str] = []
        self._leave = leave

    def fields(self, table: list[pa.Field], batch: list[pa.Field], path: str) -> list[pa.Field]:
        """The table's fields in types that hold both, then the batch's own."""
        by_name = {field.name: field for field in batch}
        cased = {field.name.lower() for field in batch}
        result: list[pa.Field] = []
        for old in table:
            new = by_name.pop(old.name, None)
            name = f"{path}{old.name}"
            if new is None:
                if old.name.lower() not in cased:  # otherwise `_check_new` reports the difference in case
                    self._check_missing(old, name)
                result.append(old)
            else:
                result.append(old.with_type(self._type(old.type, new.type, name)))
        if not self._leave.keys_only:
            by_case = {field.name.lower(): field.name for field in table}
            for new in by_name.values():
                self._check_new(new, f"{path}{new.name}", by_case.get(new.name.lower()))
                result.append(new.with_nullable(True))
        return result

    def _check_missing(self, old: pa.Field, name: str) -> None:
        nested = "." in name
        if self._leave.keys_only or (self._leave.partial and not nested):
            return
        if not old.nullable:
            self.lines.append(f"MISSING   {name}  table {old.type} not null, not in the batch")
        elif not self._leave.null_for_missing and name != IS_DELETED:  # without it no row is marked
            self.lines.append(f"MISSING   {name}  table {old.type}, not in the batch")

    def _check_new(self, new: pa.Field, name: str, other: str | None) -> None:
        if other is not None:
            self.lines.append(f"CASE      {name}  the table has it as {other!r}: write it so")
        elif untyped := untyped_part(new.type, name):
            self.lines.append(f"NEW       {untyped}  without a type (nothing but null): cast it, or leave it out")

    def _type(self, old: pa.DataType, new: pa.DataType, name: str) -> pa.DataType:
        """The type that holds both."""
        types = pa.types
        if is_variant(old) or (is_variant(new) and types.is_string(old)):
            return old  # variants take values of all types, and are texts of JSON
        if types.is_struct(old) and types.is_struct(new):
            mine, theirs = ([kind.field(i) for i in range(kind.num_fields)] for kind in (old, new))
            return pa.struct(self.fields(mine, theirs, f"{name}."))
        if types.is_list(old) and types.is_list(new):
            kind = self._type(old.value_type, new.value_type, f"{name}.element")
            return pa.list_(pa.field(old.value_field.name, kind, True))
        if types.is_map(old) and (items := _map_items(old, new)) is not None:
            kind = old.item_type
            for item in items:
                kind = self._type(kind, item, f"{name}.value")
            return pa.map_(old.key_type, kind)
        wider: pa.DataType | None
        if is_vector(old):
            wider = old if types.is_list(new) or types.is_null(new) else None
        elif name in self._leave.folder_texts and types.is_string(old):
            wider = old
        elif name in self._leave.keys or self._leave.types_stay:
            wider = old if _castable(old, new) else None
        elif _holds_milliseconds(old, new):
            wider = old
        else:
            wider = _common(old, new, floating=self._leave.integers_to_floating)
        if wider is None:
            double = pa.types.is_decimal(new) and old in _FLOATING
            self.lines.append(f"MISMATCH  {name}  table {old}, batch {new}" + (": cast it to double" if double else ""))
        return wider or old


def require_types(schema: pa.Schema) -> None:
    """Raises SchemaError for a column, or a part of one, that does not say its type."""
    untyped = [path for field in schema if (path := untyped_part(field.type, field.name))]
    if untyped:
        raise SchemaError(
            f"columns without a type (nothing but null) cannot start a table: {', '.join(untyped)}; cast them"
        )


def require_ordering_types(schema: pa.Schema, ordering: Sequence[str]) -> None:
    """Raises KeyFieldError for an ordering column of a type that has no order."""
    for path in ordering:
        field = field_at(schema, path)
        if field is None and path.partition(".")[0] in schema.names:
            raise KeyFieldError(
                f"ordering column {path!r} is no part of column {path.partition('.')[0]!r}: name one that is"
            )
        if field is not None and pa.types.is_nested(field.type):
            raise KeyFieldError(
                f"ordering column {path!r} is of type {field.type}, which has no order\n"
                "  fix:     use a string, number, boolean, decimal, date, timestamp or binary column"
            )


def untyped_part(kind: pa.DataType, path: str) -> str | None:
    """The path of what has no type (nothing but null, or a struct without fields), the column itself or a part of it."""
    if pa.types.is_null(kind) or (pa.types.is_struct(kind) and not kind.num_fields):
        return path
    parts: list[tuple[pa.DataType, str]] = []
    if pa.types.is_struct(kind):
        parts = [(kind.field(i).type, kind.field(i).name) for i in range(kind.num_fields)]
    elif pa.types.is_list(kind):
        parts = [(kind.value_type, "element")]
    elif pa.types.is_map(kind):
        parts = [(kind.item_type, "value")]
    return next((untyped for part, name in parts if (untyped := untyped_part(part, f"{path}.{name}"))), None)


def _map_items(old: pa.MapType, new: pa.DataType) -> list[pa.DataType] | None:
    """The types of the values where values of the type `new` may be maps; None where they are something else.

    Frames without a type for maps have lists of structs of key and value, lists of pairs, or structs in place of them.
    """
    types = pa.types
    if types.is_map(new):
        return [new.item_type] if new.key_type == old.key_type else None
    if types.is_struct(new):
        return [new.field(i).type for i in range(new.num_fields)]
    if not types.is_list(new):
        return None
    entry = new.value_type
    if types.is_null(entry):
        return []
    if types.is_struct(entry) and sorted(entry.field(i).name for i in range(entry.num_fields)) == ["key", "value"]:
        return [entry.field("value").type] if entry.field("key").type == old.key_type else None
    if types.is_list(entry) and entry.value_type in (old.key_type, pa.null()):
        return [entry.value_type]
    return None


def _misfit(table_name: str, lines: Sequence[str], leave: Leave) -> str:
    first = list(lines[:4])
    if len(lines) > len(first):
        first.append(f"... and {len(lines) - len(first)} more")
    fixes = []
    if any(line.startswith("MISSING") for line in lines):
        stored = (
            f"partial=True ({option_name(WriteOptions, 'partial')}) keeps what is stored in them, "
            if leave.upserts and not leave.partial
            else ""
        )
        fixes.append(
            f"  fix: add the missing columns; {stored}{option_name(WriteOptions, 'null_for_missing')}=true makes them null"
        )
    if any(line.startswith("CASE") for line in lines):
        fixes.append("  fix: rename the columns as the table has them")
    if not all(line.startswith(("MISSING", "CASE")) for line in lines):
        fixes.append("  fix: cast the columns to the table's types (integers, floats and decimals may be wider)")
    return "\n".join([f"the batch does not fit table {table_name!r}:", *(f"  {line}" for line in first), *fixes])


def _castable(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values of the new type may stand for some of the old one; each is looked at when it is cast."""
    numbers = (*_INTEGERS, *_FLOATING)
    return _common(old, new, floating=True) is not None or (old in numbers and new in numbers)


def _common(old: pa.DataType, new: pa.DataType, *, floating: bool) -> pa.DataType | None:
    """The type that holds both, or whose values are checked one by one; None when that would not be a numeric widening.

    Args:
        floating: integers may become floating point numbers. Else a batch of floats is taken for integers, as long as all are whole.
    """
    if old == new:
        return old
    if old in _INTEGERS and new in _FLOATING:
        return new if floating else old
    if old in _FLOATING and new in _INTEGERS:
        return old
    if new in WIDER.get(old, ()):
        return new
    if old in WIDER.get(new, ()):
        return old
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        # The scale stays: files hold numbers of that many digits behind the point. Each value is checked when it is cast.
        whole = max(old.precision - old.scale, new.precision - new.scale)
        return pa.decimal128(min(whole + old.scale, _DECIMAL_DIGITS), old.scale)
    if pa.types.is_decimal(old) and new in _INTEGERS:
        return old
    if pa.types.is_null(new):
        return old
    return None


def _holds_milliseconds(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a table of Apache Hudi counts milliseconds, where every batch is brought to microseconds.

    Not in keys: whether their text counts the one or the other depends on the writer.
    """
    return pa.types.is_timestamp(old) and old.unit == "ms" and new == pa.timestamp("us", old.tz)


def storable_type(kind: pa.DataType, path: str) -> pa.DataType | None:
    """The type that a table stores for a type of a batch, with everything inside nullable (`hoodie.model.nested`).

    None: it can store none. What has no type of its own stays without one, at any depth: it takes the table's.
    """
    types = pa.types
    kind = plain_type(kind)
    if types.is_null(kind):
        return kind
    if is_variant(kind) or isinstance(kind, pa.JsonType):
        return VARIANT
    if types.is_dictionary(kind):
        return storable_type(kind.value_type, path)
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_boolean(kind) or kind in (*_INTEGERS, pa.float32(), pa.float64(), pa.date32()):
        return kind
    if types.is_int8(kind) or types.is_int16(kind) or types.is_uint8(kind) or types.is_uint16(kind):
        return pa.int32()
    if types.is_uint32(kind):
        return pa.int64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 and kind.scale >= 0 else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        value = storable_type(kind.value_type, f"{path}.element")
        return None if value is None else pa.list_(pa.field("element", value, True))
    if types.is_struct(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        _require_names(members, f"{path}.")
        kinds = [storable_type(member.type, f"{path}.{member.name}") for member in members]
        if any(inner is None for inner in kinds):
            return None
        return pa.struct([pa.field(m.name, inner) for m, inner in zip(members, kinds, strict=True)])
    if types.is_map(kind):
        value = storable_type(kind.item_type, f"{path}.value")
        keyed = storable_type(kind.key_type, path) == pa.string()
        return pa.map_(pa.string(), value) if value is not None and keyed else None
    return None
