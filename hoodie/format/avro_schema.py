"""Avro schemas: from Arrow, to Arrow, and the check that every schema found in a file passes first.

A schema in a file is chosen by whoever wrote the file. So it is bounded before anything else sees it: the length of its
text, its depth, its size with all named types written out (a few hundred bytes of names that refer to one another can
stand for billions of fields), and no type may contain itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.variants import VARIANT, VARIANT_NAME, avro_of_variant, is_record_of_variant, is_variant
from hoodie.format.vectors import VECTOR, avro_of_vector, is_vector, vector_of
from hoodie.model.late import for_the_same
from hoodie.model.meta_fields import META_COLUMNS

CONTAINER_MAGIC = b"Obj\x01"
"""What an Avro container file begins with: its schema follows."""
MAX_TEXT_BYTES = 1 << 20
MAX_DEPTH = 64
"""Records, arrays and maps inside one another."""
MAX_NODES = 100_000
"""Fields, items and branches, each named type counted wherever it is used."""

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_DECIMAL_DIGITS = 38  # Spark's, and what fits the 16 bytes of Arrow's decimal128

# (Avro type, logical type) -> Arrow type; any other annotation is ignored, as the Avro specification demands.
_LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


@dataclass(frozen=True)
class AvroType:
    """One node of a schema, all names resolved."""

    kind: str
    """A primitive's name, or record, array, map, enum, fixed, union."""
    path: str
    """The column it belongs to, dotted; for messages."""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    """Bytes of a fixed."""
    vector: pa.DataType | None = None
    """Of a fixed that holds one."""
    symbols: tuple[str, ...] = ()
    fields: tuple[tuple[str, AvroType], ...] = ()
    items: AvroType | None = None
    """Of an array; a map's values."""
    branches: tuple[AvroType, ...] = ()
    nodes: int = field(default=1, compare=False)
    depth: int = field(default=0, compare=False)

    @cached_property
    def null_branch(self) -> int | None:
        """Which branch of a nullable type is the null one; None when the type is not nullable."""
        kinds = [branch.kind for branch in self.branches]
        return kinds.index("null") if "null" in kinds else None

    @cached_property
    def value(self) -> AvroType:
        """The type without its null.

        Raises:
            UnsupportedTableError: a union of anything else than null and one type.
        """
        if self.kind != "union":
            return self
        others = [branch for branch in self.branches if branch.kind != "null"]
        if len(self.branches) != 2 or len(others) != 1:
            raise UnsupportedTableError(
                f"column {self.path!r} is a union of {' | '.join(branch.kind for branch in self.branches)}; "
                "only unions of null and one type can be read as a column"
            )
        return others[0]

    @cached_property
    def repeats(self) -> bool:
        """Whether an array or map is in it."""
        if self.kind in ("array", "map"):
            return True
        return any(inner.repeats for _, inner in self.fields) or any(branch.repeats for branch in self.branches)

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of it (whose null is a property of the field, not of the type).

        Raises:
            UnsupportedTableError: no column can have this type.
        """
        if self.kind == "union":
            return self.value.arrow
        if self.logical == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.vector is not None:
            return self.vector
        if self.kind == "fixed":
            return pa.binary(self.size)
        if self.kind == "record":
            if not self.fields:
                raise UnsupportedTableError(f"record {self.path!r} has no fields; such a column cannot be read")
            if self.logical == VARIANT_NAME:
                return VARIANT
            return pa.struct(self.arrow_fields)
        if self.kind == "array":
            return pa.list_(_arrow_field("element", present(self)))
        if self.kind == "map":
            make_map: Any = pa.map_  # the stubs do not know that a field may stand for the values
            return make_map(pa.string(), _arrow_field("value", present(self)))  # type: ignore[no-any-return]
        if (self.kind, self.logical) in _LOGICAL:
            return _LOGICAL[self.kind, self.logical]
        if self.kind in _PLAIN:
            return _PLAIN[self.kind]
        raise UnsupportedTableError(f"column {self.path!r} has Avro type {self.kind!r}, which no column can have")

    @cached_property
    def arrow_fields(self) -> tuple[pa.Field[Any], ...]:
        """A record's fields as Arrow fields."""
        return tuple(_arrow_field(name, inner) for name, inner in self.fields)


def arrow_from_avro(avro: Mapping[str, Any]) -> pa.Schema:
    """The Arrow schema of records with this Avro schema; the inverse of `avro_from_arrow` up to type width.

    Raises:
        CorruptFileError: it is no valid Avro record schema.
        UnsupportedTableError: it is recursive, too deep, too large, or has a type that no column can have.
    """
    return pa.schema(resolve_record(avro).arrow_fields)


@lru_cache(maxsize=64)
def parse_schema(text: str) -> dict[str, Any]:
    """The Avro record schema in a JSON text, validated: the only way in for a schema that stands in a file.

    The answer is cached and shared; do not change it.

    Raises:
        CorruptFileError: not JSON, or no valid Avro record schema.
        UnsupportedTableError: longer than 1 MiB, recursive, deeper than 64 levels, or too large written out.
    """
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise UnsupportedTableError(f"an Avro schema of {len(text)} characters is longer than the 1 MiB that is read")
    try:
        avro = json.loads(text)
    except RecursionError as exc:
        raise UnsupportedTableError(f"the JSON of an Avro schema is nested deeper than {MAX_DEPTH} types") from exc
    except ValueError as exc:
        raise CorruptFileError(f"the Avro schema in the file is not JSON: {exc}") from exc
    if not isinstance(avro, dict):
        raise CorruptFileError(f"the Avro schema in the file is not a record but {str(avro)[:40]!r}")
    resolve_record(avro)
    return avro


@lru_cache(maxsize=64)
def record_type(text: str) -> AvroType:
    """The resolved record type of a schema's JSON text; raises as `parse_schema`."""
    return resolve_record(parse_schema(text))


def resolve_record(avro: Mapping[str, Any]) -> AvroType:
    """The type tree of a record schema; raises as `arrow_from_avro`, but lets types pass that no column can have."""
    root = _Resolver().resolve(avro, path="", namespace="", depth=0)
    if root.kind != "record":
        raise CorruptFileError(f"the Avro schema of a table's records is not a record but {root.kind!r}")
    return root


@for_the_same
def schema_text(avro: Mapping[str, Any]) -> str:
    """The schema as files carry it."""
    return json.dumps(avro, separators=(",", ":"))


def with_meta_columns(avro: Mapping[str, Any]) -> dict[str, Any]:
    """The record schema with the five meta columns in front, once, spelled as Apache Hudi spells them."""
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    return {**avro, "fields": meta + [item for item in avro["fields"] if item["name"] not in META_COLUMNS]}


class _Resolver:
    """One walk over a schema's JSON."""

    def __init__(self) -> None:
        # None: being defined, so a reference to it would be recursive.
        self.types_by_name: dict[str, AvroType | None] = {}

    def resolve(self, avro: object, *, path: str, namespace: str, depth: int) -> AvroType:
        if isinstance(avro, str):
            if avro in _PRIMITIVES:
                return AvroType(avro, path)
            return self._reference(avro, path=path, namespace=namespace, depth=depth)
        if isinstance(avro, list):
            # Unions do not count as depth; as they may not hold each other the walk stays bounded all the same.
            if not avro or any(isinstance(item, list) for item in avro):
                raise CorruptFileError(f"bad Avro schema: empty or nested union at {_where(path)}")
            branches = tuple(self.resolve(item, path=path, namespace=namespace, depth=depth) for item in avro)
            return self._inner("union", path, depth=depth, levels=0, children=branches, branches=branches)
        if not isinstance(avro, Mapping):
            raise CorruptFileError(f"bad Avro schema: {str(avro)[:40]!r} is not a type, at {_where(path)}")
        kind = avro.get("type")
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _annotated(avro, AvroType(kind, path))
        if kind in ("array", "map"):
            inner = avro.get("items" if kind == "array" else "values")
            items = self.resolve(inner, path=path, namespace=namespace, depth=self._deeper(depth, path))
            return self._inner(kind, path, depth=depth, levels=1, children=(items,), items=items)
        if isinstance(kind, str) and kind in _NAMED:
            return self._define(avro, kind, path=path, namespace=namespace, depth=depth)
        # {"type": {"type": …}} and {"type": "a.defined.Name"}
        return self.resolve(kind, path=path, namespace=namespace, depth=self._deeper(depth, path))

    def _define(self, avro: Mapping[str, Any], kind: str, *, path: str, namespace: str, depth: int) -> AvroType:
        name = avro.get("name")
        if not isinstance(name, str) or not name:
            raise CorruptFileError(f"bad Avro schema: {kind} without a name at {_where(path)}")
        own = avro.get("namespace")
        space = own if isinstance(own, str) else namespace
        full = name if "." in name or not space else f"{space}.{name}"
        if full in self.types_by_name:
            raise CorruptFileError(f"bad Avro schema: {full!r} is defined twice")
        self.types_by_name[full] = None
        if kind == "fixed":
            size = avro.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 31:
                raise CorruptFileError(f"bad Avro schema: fixed {full!r} has size {size!r}")
            node = _annotated(avro, AvroType("fixed", path, size=size))
        elif kind == "enum":
            symbols = avro.get("symbols")
            if not isinstance(symbols, list) or not symbols or not all(isinstance(item, str) for item in symbols):
                raise CorruptFileError(f"bad Avro schema: enum {full!r} has no symbols")
            node = AvroType("enum", path, symbols=tuple(symbols))
        else:
            node = _annotated(avro, self._record(avro, full, path=path, depth=depth))
        self.types_by_name[full] = node
        return node

    def _record(self, avro: Mapping[str, Any], full: str, *, path: str, depth: int) -> AvroType:
        items = avro.get("fields")
        if not isinstance(items, list):
            raise CorruptFileError(f"bad Avro schema: record {full!r} has no list of fields")
        fields: dict[str, AvroType] = {}
        below = self._deeper(depth, path)
        for item in items:
            name = item.get("name") if isinstance(item, Mapping) else None
            if not isinstance(name, str) or not name or name in fields:
                raise CorruptFileError(f"bad Avro schema: record {full!r} has a nameless or double field {name!r}")
            inner = f"{path}.{name}" if path else name
            fields[name] = self.resolve(item.get("type"), path=inner, namespace=full.rpartition(".")[0], depth=below)
        return self._inner(
            "record", path, depth=depth, levels=1, children=tuple(fields.values()), fields=tuple(fields.items())
        )

    def _reference(self, name: str, *, path: str, namespace: str, depth: int) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self.types_by_name and name in self.types_by_name:
            full = name
        if full not in self.types_by_name:
            raise CorruptFileError(f"bad Avro schema: unknown type {name[:80]!r} at {_where(path)}")
        node = self.types_by_name[full]
        if node is None:
            raise UnsupportedTableError(f"the Avro type {full!r} contains itself; recursive schemas are not read")
        self._deeper(depth + node.depth - 1, path)
        return node

    def _inner(
        self,
        kind: str,
        path: str,
        *,
        depth: int,
        levels: int,
        children: tuple[AvroType, ...],
        fields: tuple[tuple[str, AvroType], ...] = (),
        items: AvroType | None = None,
        branches: tuple[AvroType, ...] = (),
    ) -> AvroType:
        return AvroType(
            kind,
            path,
            fields=fields,
            items=items,
            branches=branches,
            nodes=_bounded(1 + sum(child.nodes for child in children)),
            depth=levels + max((child.depth for child in children), default=0),
        )

    @staticmethod
    def _deeper(depth: int, path: str) -> int:
        if depth >= MAX_DEPTH:
            raise UnsupportedTableError(f"the Avro schema is nested deeper than {MAX_DEPTH} types at {_where(path)}")
        return depth + 1


def _bounded(nodes: int) -> int:
    if nodes > MAX_NODES:
        raise UnsupportedTableError(f"the Avro schema has more than {MAX_NODES} fields with all its types written out")
    return nodes


def _annotated(avro: Mapping[str, Any], node: AvroType) -> AvroType:
    logical = avro.get("logicalType")
    if logical == "decimal" and node.kind in ("bytes", "fixed"):
        precision, scale = avro.get("precision"), avro.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
            raise CorruptFileError(f"bad Avro schema: decimal({precision!r}, {scale!r}) at {_where(node.path)}")
        if precision > _MAX_DECIMAL_DIGITS:
            raise UnsupportedTableError(
                f"column {node.path!r} is a decimal of {precision} digits; at most {_MAX_DECIMAL_DIGITS} are read"
            )
        if node.size > 16:
            raise UnsupportedTableError(
                f"column {node.path!r} stores a decimal in {node.size} bytes; at most 16 are read"
            )
        return AvroType(node.kind, node.path, "decimal", precision, scale, node.size)
    if logical == VECTOR and node.kind == "fixed":
        return replace(node, logical=VECTOR, vector=vector) if (vector := vector_of(avro)) is not None else node
    if logical == VARIANT_NAME and node.kind == "record" and is_record_of_variant(avro):
        return replace(node, logical=VARIANT_NAME)
    if isinstance(logical, str) and (node.kind, logical) in _LOGICAL:
        return AvroType(node.kind, node.path, logical)
    return node


def _arrow_field(name: str, node: AvroType) -> pa.Field[Any]:
    return pa.field(name, node.arrow, nullable=node.null_branch is not None)


def present(node: AvroType) -> AvroType:
    """The type of an array's items or a map's values."""
    if node.items is None:
        raise CorruptFileError(f"bad Avro schema: the {node.kind} at {_where(node.path)} has no type of items")
    return node.items


def _where(path: str) -> str:
    return f"column {path!r}" if path else "the top level"


# --- from Arrow ------------------------------------------------------------------------------------------------


def decimal_size(precision: int) -> int:
    """Bytes of the fixed that holds a decimal: the least n with 2^(8n-1) > 10^precision."""
    return int(10**precision).bit_length() // 8 + 1


def record_names(table_name: str) -> tuple[str, str]:
    """Name and namespace of a table's record type; what Avro forbids in names becomes `__`, as in Apache Hudi."""
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    # Hudi puts the mask in place of a wrong first character, too: 1t -> __t.
    name = re.sub(r"^[^A-Za-z_]", "__", name)
    return f"{name}_record", f"hoodie.{name}"


def avro_from_arrow(schema: pa.Schema, *, table_name: str) -> dict[str, Any]:
    """The Avro record schema of a table with these columns, as Apache Hudi's Spark writer would make it.

    Record `<table>_record` in namespace `hoodie.<table>`; a nested record is named after its column, a decimal's fixed
    `fixed`, both in a namespace that is their parents' full name. Nullable becomes `["null", T]` with default null.
    Widths without an Avro type widen (int8 and int16 to int, uint32 to long); timestamps of any unit become micros.

    Raises:
        SchemaError: a column has a name or a type that Avro, or Spark reading it, cannot have.
    """
    name, namespace = record_names(table_name)
    return _record_from_arrow(list(schema), name=name, namespace=namespace, path="")


def _record_from_arrow(columns: Sequence[pa.Field[Any]], *, name: str, namespace: str, path: str) -> dict[str, Any]:
    full = f"{namespace}.{name}"
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [dict(_field_from_arrow(column, parent=full, path=path)) for column in columns],
    }


def _field_from_arrow(column: pa.Field[Any], *, parent: str, path: str) -> Iterator[tuple[str, Any]]:
    path = f"{path}.{column.name}" if path else column.name
    if not _NAME.fullmatch(column.name):
        raise SchemaError(
            f"column {path!r} has a name that Avro does not allow; use letters, digits and _, beginning with no digit"
        )
    yield "name", column.name
    yield "type", _nullable_from_arrow(column, name=column.name, namespace=parent, path=path)
    if column.nullable:
        yield "default", None


def _nullable_from_arrow(column: pa.Field[Any], *, name: str, namespace: str, path: str) -> object:
    avro = _type_from_arrow(column.type, name=name, namespace=namespace, path=path)
    return ["null", avro] if column.nullable else avro


def _type_from_arrow(kind: pa.DataType, *, name: str, namespace: str, path: str) -> object:
    """The Avro type of an Arrow type in column `name`, whose parent record has the full name `namespace`."""
    if pa.types.is_dictionary(kind):
        return _type_from_arrow(kind.value_type, name=name, namespace=namespace, path=path)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "int" if kind.bit_width < 32 or kind == pa.int32() else "long"
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return "float"
    if pa.types.is_float64(kind):
        return "double"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "bytes"
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": kind.byte_width}
    if pa.types.is_decimal(kind) and kind.precision <= _MAX_DECIMAL_DIGITS and 0 <= kind.scale <= kind.precision:
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_size(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind):
        unit = "millis" if kind.unit == "ms" else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}" if kind.tz else f"local-timestamp-{unit}"}
    if kind == pa.time32("ms"):
        return {"type": "int", "logicalType": "time-millis"}
    if kind == pa.time64("us"):
        return {"type": "long", "logicalType": "time-micros"}
    if is_variant(kind):
        return avro_of_variant(name, namespace)
    if pa.types.is_struct(kind) and kind.num_fields:
        children = [kind.field(i) for i in range(kind.num_fields)]
        return _record_from_arrow(children, name=name, namespace=namespace, path=path)
    if is_vector(kind):
        return {**avro_of_vector(kind), "namespace": f"{namespace}.{name}"}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {
            "type": "array",
            "items": _nullable_from_arrow(kind.value_field, name=name, namespace=namespace, path=path),
        }
    if pa.types.is_map(kind) and _is_text(kind.key_type):
        return {
            "type": "map",
            "values": _nullable_from_arrow(kind.item_field, name=name, namespace=namespace, path=path),
        }
    raise SchemaError(
        f"column {path!r} has type {kind}, which a Hudi table cannot hold; cast it first (uint64: to int64 "
        "or decimal; null: to its real type; map: to string keys; decimal: to at most 38 digits and no negative scale)"
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
