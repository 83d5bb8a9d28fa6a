"""Row filters: SQL-like text or a pyarrow expression -> an expression with the columns that it looks at.

The text is parsed with Python's own grammar after a few words of SQL are translated, and only a fixed set of nodes is
accepted: nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.model.plans import RowFilter

_MAX_TEXT = 100_000
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|<>|<=|>=|!=|==|=|[A-Za-z_][A-Za-z_0-9.]*|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\s+|.",
    re.DOTALL,
)
_WORDS = {
    "and": "and",
    "or": "or",
    "not": "not",
    "in": "in",
    "is": "is",
    "null": "None",
    "true": "True",
    "false": "False",
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], pc.Expression]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def parse_filter(where: str | pc.Expression | None, schema: pa.Schema) -> RowFilter | None:
    """A filter over the schema's columns.

    Text knows column names (in double quotes where they are no words), numbers, 'strings', TRUE, FALSE, NULL,
    comparisons, AND, OR, NOT, IN (…), IS [NOT] NULL, BETWEEN … AND …, and parentheses. Strings compared with dates and
    timestamps are read as such.

    Raises:
        OptionError: the text does not parse, or names no column of the table.
    """
    if where is None:
        return None
    if isinstance(where, pc.Expression):
        return RowFilter(where, _columns_of(where, schema))
    return FilterParser(where, schema).parse()


def _columns_of(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    # An expression does not tell its columns: take a column for used when the filter cannot do without it.
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


def text_as(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value that a text stands for beside a column of type `kind`; a moment without a zone offset is UTC.

    Raises:
        pa.ArrowInvalid: it stands for none.
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return pa.scalar(text).cast(kind)
    try:
        return pa.scalar(text).cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        return pa.scalar(text).cast(kind)


class FilterParser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._used: dict[str, None] = {}
        self._quoted: dict[str, str] = {}

    def parse(self) -> RowFilter:
        if len(self._text) > _MAX_TEXT:
            raise OptionError(f"the filter is {len(self._text):,} characters long; at most {_MAX_TEXT:,} are taken")
        source = self._to_python()
        try:
            tree = ast.parse(source.strip(), mode="eval")
            expression = self._condition(tree.body)
        except (SyntaxError, RecursionError, MemoryError, ValueError) as exc:
            raise self._wrong(str(exc)) from exc
        try:
            self._schema.empty_table().filter(expression)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
            raise self._wrong(str(exc)) from exc
        return RowFilter(expression, tuple(self._used))

    def _to_python(self) -> str:
        out: list[str] = []
        open_ranges: list[str] = []
        for token in _TOKEN.findall(self._text):
            if token.isspace():
                out.append(" ")
                continue
            word = token.lower()
            # `x between a and b` -> `x @ (a, b)`: an operator that nothing else in this grammar uses.
            if word == "between":
                open_ranges.append("low")
                out.append("@ (")
                continue
            if word == "and" and open_ranges and open_ranges[-1] == "low":
                open_ranges[-1] = "high"
                out.append(",")
                continue
            out.append(self._translated(token, word))
            if open_ranges and open_ranges[-1] == "high" and token != "-":
                open_ranges.pop()
                out.append(")")
        return "".join(out)

    def _translated(self, token: str, word: str) -> str:
        if token.startswith("'"):
            return repr(token[1:-1].replace("''", "'"))
        if token.startswith('"'):
            name = f"_quoted{len(self._quoted)}"
            self._quoted[name] = token[1:-1].replace('""', '"')
            return name
        return {"=": "==", "<>": "!="}.get(token) or _WORDS.get(word, token)

    def _condition(self, node: ast.expr) -> pc.Expression:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return reduce(lambda a, b: a & b, map(self._condition, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return reduce(lambda a, b: a | b, map(self._condition, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._condition(operand)
            case ast.Compare():
                return self._comparison(node)
            case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Tuple(elts=[low, high])):
                column = self._operand(left, None)
                return (column >= self._operand(low, left)) & (column <= self._operand(high, left))
            case ast.Name():
                return self._operand(node, None)
            case ast.Constant(value=bool()):
                return pc.scalar(node.value)
        raise ValueError(f"{ast.unparse(node)!r} is no condition")

    def _comparison(self, node: ast.Compare) -> pc.Expression:
        parts = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._one_comparison(left, operator, right))
            left = right
        return reduce(lambda a, b: a & b, parts)

    def _one_comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> pc.Expression:
        match operator:
            case ast.In() | ast.NotIn():
                items = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
                values = [self._value(item, left) for item in items]
                kind = self._type_of(left)
                column = self._operand(left, None)
                if kind is not None:
                    values = [text_as(v, kind) if isinstance(v, str) else v for v in values]
                found = column.isin(pa.array(values, kind) if kind is not None else values)
                found = pc.if_else(column.is_valid(), found, pc.scalar(pa.scalar(None, pa.bool_())))
                return ~found if isinstance(operator, ast.NotIn) else found
            case ast.Is() | ast.IsNot():
                if not (isinstance(right, ast.Constant) and right.value is None):
                    raise ValueError("IS takes NULL only")
                found = self._operand(left, None).is_null()
                return ~found if isinstance(operator, ast.IsNot) else found
        return _COMPARE[type(operator)](self._operand(left, right), self._operand(right, left))

    def _operand(self, node: ast.expr, other: ast.expr | None) -> pc.Expression:
        if isinstance(node, ast.Name | ast.Attribute):
            name = self._name(node)
            self._used[name] = None
            return pc.field(name)
        value = self._value(node, other)
        kind = self._type_of(other) if other is not None else None
        if kind is not None and isinstance(value, str) and not pa.types.is_string(kind):
            return pc.scalar(text_as(value, kind))
        return pc.scalar(value)

    def _value(self, node: ast.expr, other: ast.expr | None) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, other)
        if not isinstance(node, ast.Constant):
            raise ValueError(f"{ast.unparse(node)!r} is no value")
        return node.value

    def _type_of(self, node: ast.expr | None) -> pa.DataType | None:
        if isinstance(node, ast.Name | ast.Attribute):
            kind: pa.DataType = self._schema.field(self._name(node)).type
            return kind
        return None

    def _name(self, node: ast.Name | ast.Attribute) -> str:
        name = ast.unparse(node)
        name = self._quoted.get(name, name)
        if name not in self._schema.names:
            by_case = {n.lower(): n for n in self._schema.names}
            if name.lower() in by_case:
                return by_case[name.lower()]
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(self._schema.names)}")
        return name

    def _wrong(self, reason: str) -> OptionError:
        shown = self._text if len(self._text) < 200 else self._text[:200] + "…"
        return OptionError(f"the filter {shown!r} is not understood: {reason}")
