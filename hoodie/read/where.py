"""Row filters: SQL-like text, a list of conditions or a pyarrow expression -> an expression with the columns that it looks at.

NaN is what IEEE 754 says: every comparison with it is false but `<>`, in each engine. So `f > 1` leaves NaN out, and
`NOT f > 1` has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.plans import RowFilter
from hoodie.options.values import did_you_mean
from hoodie.read import computed, typed_values
from hoodie.read.condition import (
    Always,
    Column,
    Comparison,
    Computation,
    Condition,
    Junction,
    Like,
    Negation,
    Op,
    columns_of,
)
from hoodie.read.typed_values import Misfit, is_text
from hoodie.read.where_arrow import COMPARE, expression_of
from hoodie.read.where_text import MAX_TEXT, Literal, Operand, Reference, TextParser, WhereTextError

_MAX_OPERANDS = 2_000
"""Arrow walks an expression by recursion, as deep as conditions are joined: 12,000 of them overflowed a stack of 8 MB."""
_SHOWN = 200
_LIST_OPS = {"=": Op.EQ, "==": Op.EQ, "!=": Op.NE, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}


@dataclass(frozen=True)
class BoundText:
    """A text with parameters, and their values."""

    text: str
    params: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.text} with {', '.join(f'{name}={value!r:.40}' for name, value in self.params.items())}"


Where: TypeAlias = str | pc.Expression | Condition | Sequence[Any] | BoundText
"""Text, with or without parameters; a pyarrow expression; [(column, op, value), …], all of which hold, or [[…], […]], of which one
list does; a tree."""


def bound(where: Where | None, params: object) -> Where | None:
    """A condition with values for its parameters.

    Raises:
        OptionError: it is no text.
    """
    if params is None:
        return where
    if not isinstance(where, str):
        raise OptionError(
            f"params are for a condition that is text, such as where='fare > :low'; this one is {_short(where)}"
        )
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        raise OptionError(f"params are values by names, such as {{'low': 3}}, not {_short(params)}")
    return BoundText(where, dict(params))


def parse_filter(where: Where | None, schema: pa.Schema) -> RowFilter | None:
    """A filter over the schema's columns.

    Text has SQL's conditions: columns (in double quotes where they are no words), numbers, 'texts', TRUE, FALSE, NULL,
    comparisons, AND, OR, NOT, IN (…), LIKE, ILIKE, BETWEEN … AND …, IS [NOT] NULL, and parentheses. docs/FILTERS.md has the
    grammar. A thousand comparisons are taken; IN counts as one.

    Raises:
        OptionError: it does not parse, is larger than that, compares what cannot be compared, or names no column of the table.
    """
    if where is None:
        return None
    if isinstance(where, pc.Expression):
        return RowFilter(where, _columns_of(where, schema))
    binder = _Binder(schema)
    try:
        expression = expression_of(binder.bind(where))
        schema.empty_table().filter(expression)
    except RecursionError as exc:
        raise OptionError(f"the filter {_short(where)} is not understood: it is nested too deeply") from exc
    except pa.ArrowException as exc:
        raise OptionError(f"the filter {_short(where)} does not fit the table: {exc}") from exc
    return RowFilter(expression, tuple(binder.used))


def condition_of(where: Where, schema: pa.Schema) -> Condition:
    """The tree of a filter that is no pyarrow expression.

    Raises:
        OptionError: as `parse_filter`.
    """
    return _Binder(schema).bind(where)


def both(one: Where | None, other: Where | None, schema: pa.Schema) -> Where | None:
    """A filter for the rows that fulfil two."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, pc.Expression) or isinstance(other, pc.Expression):
        left, right = (
            each if isinstance(each, pc.Expression) else expression_of(condition_of(each, schema))
            for each in (one, other)
        )
        return left & right
    return Junction(True, (condition_of(one, schema), condition_of(other, schema)))


def _columns_of(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    # An expression does not tell its columns: take a column for used when the filter cannot do without it.
    try:
        expression.__reduce__()  # written down, as it goes to workers: Arrow writes names only
    except pa.ArrowNotImplementedError as exc:
        if "non-name" in str(exc):
            raise OptionError(
                f"the filter {expression} names a column by its position, which is another one in each file: name it, as in "
                'pc.field("a") or pc.field("a", "b")'
            ) from exc
    empty = schema.empty_table()
    try:
        empty.filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError) as exc:
        raise OptionError(f"the filter {expression} does not fit the table: {exc}") from exc
    used = []
    for name in schema.names:
        try:
            empty.drop_columns([name]).filter(expression)
        except (pa.ArrowInvalid, KeyError):
            used.append(name)
    return tuple(used)


class _Binder:
    """Conditions over the columns of a schema; `used` are those that were named, in order."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._operands = 0
        self._params: Mapping[str, Any] = {}
        self._used_params = set[str]()
        self.used: dict[str, None] = {}

    def bind(self, where: Where) -> Condition:
        if isinstance(where, str):
            return self._of_text(where)
        if isinstance(where, BoundText):
            return self._of_bound(where)
        if isinstance(where, list | tuple):
            return self._of_list(where)
        if isinstance(where, Condition):  # of keys that are looked up, of filters of polars
            self.used.update(dict.fromkeys(columns_of(where)))
            return where
        raise OptionError(_foreign(where))

    def _of_text(self, text: str) -> Condition:
        if len(text) > MAX_TEXT:
            raise OptionError(f"the filter is {len(text):,} characters long; at most {MAX_TEXT:,} are taken")
        try:
            text.encode()
            return TextParser(text, self).parse()
        except WhereTextError as exc:
            near = text[exc.start : exc.start + 20]
            place = f", at character {exc.start + 1}, {near!r}" if near and exc.start else ""
            raise OptionError(f"the filter {_short(text)} is not understood{place}: {exc}") from exc
        except UnicodeEncodeError as exc:
            raise OptionError(f"the filter {_short(text)} is not understood: it is not Unicode text") from exc
        except RecursionError as exc:
            raise OptionError(f"the filter {_short(text)} is not understood: it is nested too deeply") from exc

    def _of_bound(self, where: BoundText) -> Condition:
        self._params = where.params
        result = self._of_text(where.text)
        unknown = [name for name in where.params if name not in self._used_params]
        if unknown:
            raise OptionError(
                f"the filter {_short(where.text)} has no parameter :{unknown[0]}, for which params has a value"
            )
        return result

    def _of_list(self, where: Sequence[Any]) -> Condition:
        """[(column, op, value), …] or a list of such lists, as pyarrow and others take it."""
        groups = where if where and all(isinstance(each, list) for each in where) else [where]
        anyhow: list[Condition] = []
        for group in groups:
            if not group or not all(isinstance(each, tuple) and len(each) == 3 for each in group):
                raise OptionError(
                    f"the filter {_short(where)} is not understood: a list holds tuples (column, op, value), which all have to hold, "
                    "or lists of them, of which one has to"
                )
            anyhow.append(Junction(True, tuple(map(self._of_tuple, group))))
        return Junction(False, tuple(anyhow))

    def _of_tuple(self, term: tuple[Any, Any, Any]) -> Condition:
        name, how, value = term
        try:
            if not isinstance(name, str):
                raise Misfit(f"{name!r} is not a name of a column")
            column = self.resolve(name)
            word = " ".join(how.lower().split()) if isinstance(how, str) else how
            if word in ("in", "not in"):
                if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
                    raise Misfit(f"{word} takes a list of values")
                values = [self._plain(each, name) for each in value]
                condition = self.among(column, values) if values else Always(False)
                return Negation(condition) if word == "not in" else condition
            if word not in _LIST_OPS:
                operators = ", ".join(dict.fromkeys([*_LIST_OPS, "in", "not in"]))
                raise Misfit(f"{how!r} is none of {operators}; text takes more, such as LIKE and IS NULL")
            return self.compare(column, _LIST_OPS[word], Literal(self._plain(value, name)))
        except Misfit as exc:
            raise OptionError(f"the filter {_short(term)} is not understood: {exc}") from exc

    def _plain(self, value: Any, column: str) -> Any:
        value = as_python(value)
        if value is None:
            raise Misfit(f"nothing equals None: ask for it by text, {column} IS NULL or {column} IS NOT NULL")
        return value

    # -- what the grammar asks ---------------------------------------------------------------------------------------

    def resolve(self, name: str, inside: Sequence[str] = ()) -> Reference | Computation:
        self._count()
        columns = {each.lower() for each in self._schema.names}
        parts = name.split(".")
        # `a.b` is a column of this name before it is a field.
        ends = (end for end in range(len(parts), 0, -1) if ".".join(parts[:end]).lower() in columns)
        end = next(ends, len(parts))
        try:
            column = column_named(".".join(parts[:end]), self._schema.names, else_="; a text stands in single quotes")
        except OptionError as none_or_several:
            raise Misfit(str(none_or_several)) from None
        self.used[column] = None
        names = [*parts[end:], *inside]
        return computed.field_of(column, self._kind(column), names) if names else Reference(column)

    def parameter(self, name: str) -> Any:
        if name not in self._params:
            raise Misfit(f"there is no value for the parameter :{name}: give params={{{name!r}: …}}")
        self._used_params.add(name)
        value = self._params[name]
        if isinstance(value, pa.Array | pa.ChunkedArray | np.ndarray):
            value = value.tolist() if isinstance(value, np.ndarray) else value.to_pylist()
        if isinstance(value, list | tuple | set | frozenset):
            return [as_python(each) for each in value]
        value = as_python(value)
        if not isinstance(value, str | int | float | Decimal | date | np.datetime64 | bytes | None):
            raise Misfit(f"the parameter :{name} is {type(value).__name__}, which is not a value of a column")
        return value

    def compute(self, sign: str, left: Operand, right: Operand) -> Operand:
        self._count()
        return computed.compute(sign, left, right, self._kind)

    def call(self, name: str, arguments: Sequence[Operand]) -> Operand:
        self._count()
        return computed.call(name, arguments, self._kind)

    def choose(self, pairs: Sequence[tuple[Condition, Operand]], rest: Operand) -> Operand:
        self._count()
        return computed.choose(pairs, rest, self._kind)

    def compare(self, left: Operand, op: Op, right: Operand) -> Condition:
        match left, right:
            case Reference() | Computation(), Literal(value):
                self._count()
                return typed_values.compare(*self._typed(left), op, value)
            case Literal(), Reference() | Computation():
                return self.compare(right, op.flipped, left)
            case Reference() | Computation(), Reference() | Computation():
                return typed_values.compare_columns(*self._typed(left), op, *self._typed(right))
        self._count()
        return Always(_constant(left, op, right))

    def _typed(self, operand: Reference | Computation) -> tuple[Column, pa.DataType]:
        return computed.column_of(operand), computed.kind_of(operand, self._kind)

    def among(self, left: Operand, values: Sequence[Any]) -> Condition:
        if not values:
            return Always(False)
        if not isinstance(left, Literal):
            return typed_values.among(*self._typed(left), values)
        return Junction(False, tuple(self.compare(left, Op.EQ, Literal(value)) for value in values))

    def like(self, left: Operand, pattern: Operand, escape: str, ignore_case: bool) -> Condition:
        self._count()
        if isinstance(left, Literal):
            raise Misfit("LIKE takes a column of texts before it; a value is not")
        column, kind = self._typed(left)
        if not is_text(kind):
            raise Misfit(f"LIKE takes a column of texts before it; column {column!r} is {kind}")
        if not isinstance(pattern, Literal) or not (pattern.value is None or isinstance(pattern.value, str)):
            raise Misfit("LIKE takes a pattern in single quotes")
        return Always(None) if pattern.value is None else Like(column, _pattern(pattern.value, escape), ignore_case)

    def truth(self, operand: Operand) -> Condition:
        """A column or a value as a condition of its own."""
        self._count()
        if not isinstance(operand, Literal):
            column, kind = self._typed(operand)
            if pa.types.is_boolean(kind):
                return Comparison(column, Op.EQ, pa.scalar(True))
            raise Misfit(f"column {column!r} is {kind}, which is not a condition: compare it with something")
        if operand.value is None or isinstance(operand.value, bool):
            return Always(operand.value)
        raise Misfit(f"{str(operand.value)[:40]!r} is not a condition")

    def _kind(self, name: str) -> pa.DataType:
        kind: pa.DataType = self._schema.field(name).type
        return kind

    def _count(self) -> None:
        self._operands += 1
        if self._operands > _MAX_OPERANDS:
            raise Misfit(
                f"it compares more than {_MAX_OPERANDS // 2:,} times; write x IN (…) for x = … OR x = …, or filter the result"
            )


def as_python(value: Any) -> Any:
    """A value of numpy or Arrow as Python's; moments stay what they are."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, np.datetime64) and np.isnat(value):
        return None
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def _constant(left: Operand, op: Op, right: Operand) -> bool | None:
    """Two values beside each other."""
    one, other = (side.value if isinstance(side, Literal) else None for side in (left, right))
    if one is None or other is None:
        return None
    families = [str if isinstance(each, str) else bool if isinstance(each, bool) else Decimal for each in (one, other)]
    if families[0] is not families[1]:
        raise Misfit(f"{one!r} and {other!r} cannot be compared")
    if families[0] is Decimal:
        return bool(COMPARE[op](Fraction(one), Fraction(other)))
    return bool(COMPARE[op](one, other))


def _pattern(text: str, escape: str) -> str:
    """A pattern of LIKE with the backslash as what escapes."""
    out: list[str] = []
    characters = iter(text)
    for each in characters:
        if each == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape):
                raise Misfit(
                    f"in a pattern {escape!r} stands before %, _ or itself only; ESCAPE '…' chooses another sign"
                )
            out.append(f"\\{following}" if following in "%_\\" else following)
        else:
            out.append("\\\\" if each == "\\" else each)
    return "".join(out)


def _foreign(where: object) -> str:
    room = type(where).__module__.partition(".")[0]
    if room == "polars":
        return (
            "a polars expression cannot be a filter here: give text, such as where=\"city = 'sf' AND fare > 3\", or filter a lazy "
            "frame, which pushes it down: table.scan().to_polars_lazy().filter(…)"
        )
    if room == "pyspark":
        return "a Spark column cannot be a filter here: give text, such as where=\"city = 'sf'\", or use .where(…) of the DataFrame"
    return (
        f"a filter is text such as \"city = 'sf' AND fare > 3\", a pyarrow expression or a list [(column, op, value), …]; "
        f"this is {type(where).__name__}: {_short(where)}"
    )


def column_named(name: str, among: Sequence[str], *, else_: str = "") -> str:
    """The column of this name, whose case matters only where columns differ by it.

    Raises:
        OptionError: there is none, or more than one.
    """
    if name in among:
        return name
    same = [each for each in among if each.lower() == name.lower()]
    if len(same) > 1:
        raise OptionError(f"{name!r} may be any of the columns {', '.join(same)}: write it as it is")
    if not same:
        raise OptionError(no_column(name, among, else_=else_))
    return same[0]


def no_column(name: str, among: Sequence[str], *, else_: str = "") -> str:
    """That there is no such column; the user's own columns are named first. `else_`: what to say when none is near."""
    own = [each for each in among if each not in META_COLUMNS]
    hint = did_you_mean(name, among)
    hint = f"; {hint} The" if hint else f"{else_}; the"
    columns = [*own, *(each for each in among if each in META_COLUMNS)]
    return f"there is no column {name!r}{hint} columns are {', '.join(columns)}"


def _short(where: object) -> str:
    text = where if isinstance(where, str) else str(where) if isinstance(where, BoundText) else repr(where)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(text) if isinstance(where, str) else text
