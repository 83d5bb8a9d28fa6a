"""The changes of a registered table that give it the table's columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hoodie.hive.catalog import Column

_WIDER = {
    "tinyint": ("smallint", "int", "bigint", "float", "double", "string"),
    "smallint": ("int", "bigint", "float", "double", "string"),
    "int": ("bigint", "float", "double", "string"),
    "bigint": ("float", "double", "string"),
    "float": ("double", "string"),
    "double": ("string",),
    "date": ("string",),
    "string": ("binary",),
    "binary": ("string",),
    # Both are names of the same column: hoodie.datasource.hive_sync.support_timestamp chooses.
    "timestamp": ("bigint",),
}
_WIDER["bigint"] += ("timestamp",)
"""Type -> what its values can be read as: what Apache Hudi lets columns become."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NESTED = ("struct<", "array<", "map<")


class Changes(NamedTuple):
    """From the registered columns to those of the table."""

    descriptions: tuple[str, ...]
    """Each as `fare added`; none: they are the same."""
    refused: tuple[str, ...]
    """Changes of types that registered files could not be read by."""


def changes(registered: Sequence[Column], target: Sequence[Column]) -> Changes:
    """The changes from the registered columns to the target, regardless of case, and in types of spaces."""
    before = {column.name.lower(): _plain(column.type) for column in registered}
    after = {column.name.lower(): _plain(column.type) for column in target}
    descriptions: list[str] = []
    refused: list[str] = []
    for name, kind in after.items():
        old_kind = before.get(name)
        if old_kind is None:
            descriptions.append(f"{name} added")
        elif old_kind != kind:
            (descriptions if _may_become(old_kind, kind) else refused).append(f"{name}: {old_kind} to {kind}")
    descriptions += [f"{name} removed" for name in before if name not in after]
    return Changes(tuple(descriptions), tuple(refused))


def _plain(kind: str) -> str:
    return "".join(kind.split()).replace("`", "").lower()


def _may_become(before: str, after: str) -> bool:
    if after in _WIDER.get(before, ()):
        return True
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if old and new:
        whole = [int(digits[1]) - int(digits[2]) for digits in (old, new)]
        return whole[1] >= whole[0] and int(new[2]) >= int(old[2])
    if old:
        return after == "string"
    # Columns within columns: the metastore has rules of its own for those, and says what it refuses.
    return any(before.startswith(kind) and after.startswith(kind) for kind in _NESTED)
