"""What the condition of a MERGE says about columns of the table: those that equal columns of the source."""

from __future__ import annotations

import re
from functools import reduce
from operator import and_
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.dml.tokens import Token, tokens_of

_NAME = r'(\w+|"[^"]+")'
_EQUAL = re.compile(rf"{_NAME} \. {_NAME} ==? {_NAME} \. {_NAME}")
_LISTED = 1_000
"""So many values are named one by one, which leaves more out than the range of them."""


class Equalities(NamedTuple):
    """`t.a = s.b AND …`: what each pair of rows fulfils."""

    pairs: tuple[tuple[str, str], ...]
    """Column of the table, column of the source."""
    are_all: bool
    """The condition says nothing else."""

    @classmethod
    def of(cls, condition: str, *, target: str, source: str) -> Equalities:
        """Of a condition of SQL in which the two tables have these aliases."""
        words = tokens_of(condition)
        if any(word.depth == 0 and word.says("OR", "BETWEEN") for word in words):
            return cls((), False)
        terms: list[list[Token]] = [[]]
        for word in words:
            if word.depth == 0 and word.says("AND"):
                terms.append([])
            else:
                terms[-1].append(word)
        all_pairs = [_pair(term, target, source) for term in terms]
        pairs = tuple(pair for pair in all_pairs if pair is not None)
        return cls(pairs, len(pairs) == len(terms))


def _pair(term: list[Token], target: str, source: str) -> tuple[str, str] | None:
    sides = _EQUAL.fullmatch(" ".join(word.text for word in term))
    if sides is None:
        return None
    one, left, other, right = (name.strip('"') for name in sides.groups())
    if (one, other) == (target, source):
        return left, right
    return (right, left) if (one, other) == (source, target) else None


def partners_within(equalities: Equalities, schema: pa.Schema, source: pa.Table) -> pc.Expression | None:
    """A filter that all rows of the table which have a partner in the source fulfil; None: nothing can be said."""
    bounds = [
        limit
        for name, other in equalities.pairs
        if name in schema.names and other in source.column_names
        if (limit := _bounds(schema.field(name), source.column(other))) is not None
    ]
    return reduce(and_, bounds) if bounds else None


def _bounds(field: pa.Field, values: pa.ChunkedArray) -> pc.Expression | None:
    if not _compares_alike(field.type, values.type):
        return None
    try:
        fitting = values.cast(field.type)
    except pa.ArrowInvalid:  # no stored value equals such a value, and no bounds say so
        return None
    distinct = pc.unique(fitting.drop_null())
    if not len(distinct):
        return None
    column = pc.field(field.name)
    if len(distinct) <= _LISTED:
        return column.isin(distinct)
    ends = pc.min_max(distinct)
    return (column >= ends["min"]) & (column <= ends["max"])


def _compares_alike(stored: pa.DataType, other: pa.DataType) -> bool:
    """Whether SQL compares such values as Arrow and the bounds of files do."""
    is_text = pa.types.is_string
    if is_text(stored):
        return is_text(other) or bool(pa.types.is_large_string(other))
    if pa.types.is_integer(stored):
        return bool(pa.types.is_integer(other))
    return bool(stored == other and (pa.types.is_date(stored) or pa.types.is_timestamp(stored)))
