"""Definitions of the indexes of a metadata table, in a file of the table, without which Apache Hudi 1.x uses none of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.model.names import HOODIE, join
from hoodie.storage.base import Storage

INDEX_DEFINITIONS = "hoodie.table.index.defs.path"
_DEFINITIONS = join(HOODIE, ".index_defs/index.json")


@dataclass(frozen=True)
class IndexDefinition:
    """One of them, under the name of its partition."""

    name: str
    kind: str
    function: str
    columns: tuple[str, ...]
    version: str
    """V1 or V2; empty where a writer of table version 8 did not state it."""
    options: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> dict[str, Any]:
        return {
            "indexName": self.name,
            "indexType": self.kind,
            "indexFunction": self.function,
            "sourceFields": list(self.columns),
            "indexOptions": dict(self.options),
            "version": self.version,
        }


def read_definition(storage: Storage, properties: Mapping[str, str], name: str) -> IndexDefinition | None:
    """That of a partition; None where there is none.

    Raises:
        CorruptFileError: the file is damaged.
    """
    fields = _definitions(storage, properties).get(name)
    if fields is None:
        return None
    return IndexDefinition(
        name,
        str(fields.get("indexType") or ""),
        str(fields.get("indexFunction") or ""),
        tuple(map(str, fields.get("sourceFields") or ())),
        str(fields.get("version") or ""),
        {str(key): str(value) for key, value in (fields.get("indexOptions") or {}).items()},
    )


def define(storage: Storage, properties: Mapping[str, str], definition: IndexDefinition) -> None:
    """Write it down beside the others, or in place of the one of its name."""
    definitions = _definitions(storage, properties)
    if definitions.get(definition.name) != definition.encode():
        _write_definitions(storage, properties, {**definitions, definition.name: definition.encode()})


def forget_definition(storage: Storage, properties: Mapping[str, str], name: str) -> None:
    """Of an index that is dropped: the next one of that name may have other columns."""
    definitions = _definitions(storage, properties)
    if definitions.pop(name, None) is not None:
        _write_definitions(storage, properties, definitions)


def place_of_definitions(properties: Mapping[str, str]) -> dict[str, str]:
    """The property that says where they are."""
    return {INDEX_DEFINITIONS: properties.get(INDEX_DEFINITIONS) or _DEFINITIONS}


def _definitions(storage: Storage, properties: Mapping[str, str]) -> dict[str, Any]:
    path = properties.get(INDEX_DEFINITIONS)
    if not path:
        return {}
    try:
        result = dict(json.loads(storage.read(path)).get("indexDefinitions") or {})
        if not all(isinstance(each, dict) for each in result.values()):
            raise TypeError("one is no object")
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError) as exc:
        raise CorruptFileError(f"{path} of table {storage.uri} has no definitions of indexes: {exc}") from exc
    return result


def _write_definitions(storage: Storage, properties: Mapping[str, str], definitions: Mapping[str, Any]) -> None:
    (path,) = place_of_definitions(properties).values()
    storage.replace(path, json.dumps({"indexDefinitions": definitions}, indent=2).encode())
