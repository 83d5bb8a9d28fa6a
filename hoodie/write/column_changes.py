"""Changes of a table's columns: what columns there are after one. Names are paths: `address.zip`, `tags.element`, `prices.value`.

What Apache Hudi's ALTER TABLE does with `hoodie.schema.on.read.enable`, and no more: a new column may be null, and values that are
stored stay as they are, so that a column takes a wider type only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa

from hoodie.errors import OptionError, SchemaError
from hoodie.format.column_ids import kind_of, numbered, type_of
from hoodie.model.columns import ARRAY, MAP, RECORD, Column, ColumnSet, all_ids
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.write.schema import storable_type, untyped_part
from hoodie.write.schema_input import parse_type

ColumnChange = Callable[[ColumnSet, frozenset[str]], ColumnSet]
"""Gives the columns after it. It gets those before, and the paths of columns that keys, paths and the order of rows are made of.

Raises:
    OptionError: there is no such column. SchemaError: the change is none that readers could follow.
"""
_INTEGER_DIGITS: dict[pa.DataType, int] = {pa.int32(): 10, pa.int64(): 19}
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
    pa.date32(): (pa.string(),),
    pa.string(): (pa.binary(),),
}
_SAME_TEXTS = (pa.int32(), pa.int64())
"""From one to the other keys, paths and ordering values stay what they are."""


@dataclass(frozen=True)
class Place:
    """Where a column stands among its siblings."""

    after: str | None = None
    """Behind this one; else in front of all."""

    def put(self, column: Column, siblings: tuple[Column, ...]) -> tuple[Column, ...]:
        others = [each for each in siblings if each.id != column.id]
        meta = sum(each.name in META_COLUMNS for each in others)
        at = meta if self.after is None else 1 + _index(others, self.after.rpartition(".")[2])
        return (*others[:at], column, *others[at:])


@dataclass(frozen=True)
class AddColumn:
    path: str
    kind: Any
    doc: str | None = None
    place: Place | None = None
    """None: behind all."""

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        parent, _, name = self.path.rpartition(".")
        kind = storable_type(parse_type(self.path, self.kind), self.path)
        if kind is None or untyped_part(kind, self.path):
            raise SchemaError(f"column {self.path!r}: a table cannot hold values of type {self.kind}; give another one")
        (added,) = numbered([pa.field(name, kind)], count(before.max_id + 1))
        added = replace(added, doc=self.doc)

        def add(siblings: tuple[Column, ...]) -> tuple[Column, ...]:
            _require_free(name, siblings, self.path)
            return (*siblings, added) if self.place is None else self.place.put(added, siblings)

        columns = _edited(before.columns, parent, add, self.path)
        return before._replace(columns=columns, max_id=max([before.max_id, *all_ids((added,))]))


@dataclass(frozen=True)
class RenameColumn:
    path: str
    name: str
    """Without its parents."""

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        _require_loose(self.path, fixed, "renamed")

        def rename(siblings: tuple[Column, ...]) -> tuple[Column, ...]:
            at = _index(siblings, self.path.rpartition(".")[2])
            if siblings[at].name.lower() != self.name.lower():
                _require_free(self.name, siblings, self.name)
            return (*siblings[:at], replace(siblings[at], name=self.name), *siblings[at + 1 :])

        return before._replace(columns=_among_siblings(before.columns, self.path, rename))


@dataclass(frozen=True)
class DropColumn:
    path: str

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        _require_loose(self.path, fixed, "dropped")

        def drop(siblings: tuple[Column, ...]) -> tuple[Column, ...]:
            at = _index(siblings, self.path.rpartition(".")[2])
            if not any(each.name not in META_COLUMNS for each in (*siblings[:at], *siblings[at + 1 :])):
                raise SchemaError(f"column {self.path!r} is the last one of its struct: drop the struct")
            return (*siblings[:at], *siblings[at + 1 :])

        return before._replace(columns=_among_siblings(before.columns, self.path, drop))


@dataclass(frozen=True)
class MoveColumn:
    path: str
    place: Place

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        def move(siblings: tuple[Column, ...]) -> tuple[Column, ...]:
            return self.place.put(siblings[_index(siblings, self.path.rpartition(".")[2])], siblings)

        return before._replace(columns=_among_siblings(before.columns, self.path, move))


@dataclass(frozen=True)
class ChangeType:
    path: str
    kind: Any

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        kind = storable_type(parse_type(self.path, self.kind), self.path)

        def change(column: Column) -> Column:
            old = type_of(column)
            if kind is None or (kind != old and not holds_all(old, kind)):
                raise SchemaError(
                    f"column {self.path!r} is of type {old}, whose values a column of type {self.kind} cannot all hold; add another "
                    "column and fill it"
                )
            if kind == old:
                return column
            if (old, kind) != _SAME_TEXTS:
                _require_loose(self.path, fixed, "given another type")
            return replace(column, kind=kind_of(kind))

        return before._replace(columns=_changed(before.columns, self.path, change))


@dataclass(frozen=True)
class SetNullable:
    path: str
    nullable: bool = True

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        def change(column: Column) -> Column:
            if column.optional == self.nullable:
                return column
            if not self.nullable:
                raise SchemaError(
                    f"column {self.path!r} may hold nulls, and cannot be made not null again: add another column instead"
                )
            _require_loose(self.path, fixed, "made nullable")
            return replace(column, optional=True)

        return before._replace(columns=_changed(before.columns, self.path, change))


@dataclass(frozen=True)
class SetDoc:
    path: str
    doc: str | None

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        return before._replace(
            columns=_changed(before.columns, self.path, lambda column: replace(column, doc=self.doc))
        )


@dataclass(frozen=True)
class Together:
    """Changes one after another, as one."""

    changes: tuple[ColumnChange, ...]

    def __call__(self, before: ColumnSet, fixed: frozenset[str]) -> ColumnSet:
        for change in self.changes:
            before = change(before, fixed)
        return before


def holds_all(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether each value of one type has one in the other: those of Apache Hudi's changes that fail with no stored value."""
    if new in _WIDER.get(old, ()):
        return True
    if pa.types.is_decimal(new):
        digits = new.precision - new.scale
        if pa.types.is_decimal(old):
            return bool(digits >= old.precision - old.scale and new.scale >= old.scale)
        return bool(digits >= _INTEGER_DIGITS.get(old, 99))
    return pa.types.is_decimal(old) and pa.types.is_string(new)


def _changed(columns: tuple[Column, ...], path: str, change: Callable[[Column], Column]) -> tuple[Column, ...]:
    def edit(siblings: tuple[Column, ...]) -> tuple[Column, ...]:
        at = _index(siblings, path.rpartition(".")[2])
        return (*siblings[:at], change(siblings[at]), *siblings[at + 1 :])

    return _edited(columns, path.rpartition(".")[0], edit, path, kinds=(RECORD, ARRAY, MAP))


def _among_siblings(
    columns: tuple[Column, ...], path: str, edit: Callable[[tuple[Column, ...]], tuple[Column, ...]]
) -> tuple[Column, ...]:
    return _edited(columns, path.rpartition(".")[0], edit, path)


def _edited(
    columns: tuple[Column, ...],
    parent: str,
    edit: Callable[[tuple[Column, ...]], tuple[Column, ...]],
    path: str,
    *,
    kinds: Sequence[str] = (RECORD,),
) -> tuple[Column, ...]:
    """The columns with the parts of `parent` edited; "": the columns themselves."""
    if path in META_COLUMNS:
        raise OptionError(f"column {path!r} is kept by the table itself, and does not change")
    if not parent:
        return edit(columns)
    name, _, rest = parent.partition(".")
    at = _index(columns, name)
    column = columns[at]
    if not rest and column.kind not in kinds:
        raise SchemaError(f"{path!r}: column {column.name!r} is no struct, so it has no columns inside")
    changed = replace(column, parts=_edited(column.parts, rest, edit, path, kinds=kinds))
    return (*columns[:at], changed, *columns[at + 1 :])


def _index(siblings: Sequence[Column], name: str) -> int:
    result = next((at for at, each in enumerate(siblings) if each.name == name), None)
    if result is None:
        names = ", ".join(each.name for each in siblings if each.name not in META_COLUMNS)
        raise OptionError(f"there is no column {name!r}; there are {names or 'none'}")
    return result


def _require_free(name: str, siblings: Sequence[Column], path: str) -> None:
    there = next((each.name for each in siblings if each.name.lower() == name.lower()), None)
    if there is not None:
        raise SchemaError(f"column {path!r} cannot be added: there is a column {there!r}")


def _require_loose(path: str, fixed: frozenset[str], verb: str) -> None:
    dependent = next(
        (each for each in sorted(fixed) if f"{each}.".startswith(f"{path}.") or f"{path}.".startswith(f"{each}.")), None
    )
    if dependent is not None:
        raise SchemaError(
            f"column {path!r} cannot be {verb}: keys, partition paths or the order of rows are made of {dependent!r}, and files hold "
            "what was made of it; write a new table"
        )
