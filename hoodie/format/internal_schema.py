"""Apache Hudi's internal schemas: the JSON in which columns have ids (`hoodie.schema.on.read.enable`).

One schema: `latest_schema` in the extra metadata of a commit. All that a table ever had: the files of `.hoodie/.schema`,
`{"schemas": [...]}`, newest first. A schema is a record with `version_id` (the instant that made it; 0: the one before the first
change), `max_column_id`, and fields of `id`, `name`, `optional`, `type`, `doc`; nested types are records, arrays (`element_id`,
`element`, `element_optional`) and maps (`key_id`, `key`, `value_id`, `value`, `value_optional`). Ids are unique in a table and never
used again. Hudi: SerDeHelper.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.model.columns import ARRAY, MAP, RECORD, Column, ColumnSet, all_ids

LATEST_SCHEMA = "latest_schema"
"""Key in the extra metadata of a commit."""
_MAX_DEPTH = 64
"""Nothing nests deeper; damaged text might."""


def parse_internal_schema(text: str, *, path: str) -> ColumnSet:
    """The columns of one schema.

    Raises:
        CorruptFileError: the text is no internal schema.
    """
    return _schema(_json(text, path), path)


def parse_schema_history(text: str, *, path: str) -> Sequence[ColumnSet]:
    """The schemas of a history file.

    Raises:
        CorruptFileError: the text is no history.
    """
    document = _json(text, path)
    schemas = document.get("schemas") if isinstance(document, dict) else None
    if not isinstance(schemas, list):
        raise CorruptFileError(f"{path} has no list of schemas")
    return [_schema(each, path) for each in schemas]


def encode_internal_schema(columns: ColumnSet) -> str:
    """The text of one schema."""
    return _text(_record_of(columns))


def encode_schema_history(versions: Iterable[ColumnSet]) -> str:
    """The text of a history file."""
    return _text({"schemas": [_record_of(each) for each in sorted(versions, reverse=True)]})


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _record_of(each: ColumnSet) -> dict[str, Any]:
    return {"max_column_id": each.max_id, "version_id": each.version, **_type_of(Column(-1, "", each.columns, RECORD))}


def _type_of(column: Column) -> Any:
    if column.kind == ARRAY:
        (element,) = column.parts
        return {
            "type": ARRAY,
            "element_id": element.id,
            "element": _type_of(element),
            "element_optional": element.optional,
        }
    if column.kind == MAP:
        key, value = column.parts
        ids = {"key_id": key.id, "key": _type_of(key), "value_id": value.id, "value": _type_of(value)}
        return {"type": MAP, **ids, "value_optional": value.optional}
    if column.kind == RECORD:
        return {"type": RECORD, "fields": [_field_of(part) for part in column.parts]}
    return column.kind


def _field_of(column: Column) -> dict[str, Any]:
    fields = {"id": column.id, "name": column.name, "optional": column.optional, "type": _type_of(column)}
    return fields if column.doc is None else {**fields, "doc": column.doc}


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(f"{path}: the schema of columns with ids is not JSON: {exc}") from exc


def _schema(fields: Any, path: str) -> ColumnSet:
    try:
        version = int(fields["version_id"])
        columns = _fields(fields["fields"], 0)
        ids = [number for number in all_ids(columns) if number >= 0]  # parts of Variants have none of their own
        if version < 0 or len(ids) != len(set(ids)):
            raise ValueError("ids stand twice, or the version is not an instant")
        max_id = max([int(fields.get("max_column_id", -1)), *ids])
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise CorruptFileError(f"{path}: a schema of columns with ids is damaged: {exc!r}") from exc
    return ColumnSet(version, columns, max_id)


def _fields(fields: Any, depth: int) -> tuple[Column, ...]:
    return tuple(
        _column(each["id"], each["name"], each["type"], depth, each.get("optional", True), each.get("doc"))
        for each in fields
    )


def _column(number: Any, name: Any, kind: Any, depth: int, optional: Any = True, doc: Any = None) -> Column:
    if not isinstance(number, int) or not isinstance(name, str) or depth > _MAX_DEPTH:
        raise ValueError(f"column {name!r} with id {number!r}")
    parts: tuple[Column, ...] = ()
    if not isinstance(kind, str):
        parts, kind = _parts(name, kind, depth + 1), kind["type"]
    return Column(number, name, parts, kind, bool(optional), None if doc is None else str(doc))


def _parts(name: str, kind: Any, depth: int) -> tuple[Column, ...]:
    if kind["type"] == RECORD:
        return _fields(kind["fields"], depth)
    if kind["type"] == ARRAY:
        optional = kind.get("element_optional", True)
        return (_column(kind["element_id"], "element", kind["element"], depth, optional),)
    if kind["type"] == MAP:
        key = _column(kind["key_id"], "key", kind["key"], depth, False)
        return key, _column(kind["value_id"], "value", kind["value"], depth, kind.get("value_optional", True))
    raise ValueError(f"column {name!r} is of type {kind['type']!r}")
