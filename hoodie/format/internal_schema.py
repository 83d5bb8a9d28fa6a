"""Apache Hudi's internal schemas: the JSON in which columns have ids (`hoodie.schema.on.read.enable`).

One schema: `latest_schema` in the extra metadata of a commit. All that a table ever had: the files of `.hoodie/.schema`,
`{"schemas": [...]}`. A schema is a record with `version_id` (the instant that made it; 0: the one before the first change)
and fields of `id`, `name`, `type`; nested types are records, arrays (`element_id`, `element`) and maps (`key_id`, `key`,
`value_id`, `value`). Ids are unique in a table and never used again. Hudi: SerDeHelper.
"""

from __future__ import annotations

import json
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.model.columns import Column

LATEST_SCHEMA = "latest_schema"
"""Key in the extra metadata of a commit."""
_MAX_DEPTH = 64
"""Nothing nests deeper; damaged text might."""


def parse_internal_schema(text: str, *, path: str) -> tuple[int, tuple[Column, ...]]:
    """Version and columns of one schema.

    Raises:
        CorruptFileError: the text is no internal schema.
    """
    return _schema(_json(text, path), path)


def parse_schema_history(text: str, *, path: str) -> dict[int, tuple[Column, ...]]:
    """Columns by version of a history file.

    Raises:
        CorruptFileError: the text is no history.
    """
    found = _json(text, path)
    schemas = found.get("schemas") if isinstance(found, dict) else None
    if not isinstance(schemas, list):
        raise CorruptFileError(f"{path} has no list of schemas")
    return dict(_schema(each, path) for each in schemas)


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(f"{path}: the schema of columns with ids is not JSON: {exc}") from exc


def _schema(found: Any, path: str) -> tuple[int, tuple[Column, ...]]:
    try:
        version = int(found["version_id"])
        columns = _fields(found["fields"], 0)
        ids = list(_ids(columns))
        if version < 0 or len(ids) != len(set(ids)):
            raise ValueError("ids stand twice, or the version is not an instant")
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise CorruptFileError(f"{path}: a schema of columns with ids is damaged: {exc!r}") from exc
    return version, columns


def _fields(fields: Any, depth: int) -> tuple[Column, ...]:
    return tuple(_column(each["id"], each["name"], each["type"], depth) for each in fields)


def _column(number: Any, name: Any, kind: Any, depth: int) -> Column:
    if not isinstance(number, int) or not isinstance(name, str) or depth > _MAX_DEPTH:
        raise ValueError(f"column {name!r} with id {number!r}")
    if isinstance(kind, str):
        return Column(number, name)
    if kind["type"] == "record":
        return Column(number, name, _fields(kind["fields"], depth + 1))
    if kind["type"] == "array":
        return Column(number, name, (_column(kind["element_id"], "element", kind["element"], depth + 1),))
    if kind["type"] == "map":
        key = _column(kind["key_id"], "key", kind["key"], depth + 1)
        return Column(number, name, (key, _column(kind["value_id"], "value", kind["value"], depth + 1)))
    raise ValueError(f"column {name!r} is of type {kind['type']!r}")


def _ids(columns: tuple[Column, ...]) -> Any:
    for column in columns:
        yield column.id
        yield from _ids(column.parts)
