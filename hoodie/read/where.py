"""Row filters: SQL-like text or a pyarrow expression -> an expression with the columns that it looks at.

The text is parsed with Python's own grammar after a few words of SQL are translated, and only a fixed set of nodes is
accepted: nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.model.plans import RowFilter

_MAX_TEXT = 100_000
_MAX_OPERANDS = 2_000
"""Arrow walks an expression by recursion, as deep as conditions are joined: 12,000 of them overflowed a stack of 8 MB."""
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|<>|<=|>=|!=|==|=|[^\W\d][\w.]*|(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|\s+|.",
    re.DOTALL,
)
_SIGNS = frozenset("<>()[],-")
"""What a text may hold besides words, numbers, strings and the longer comparisons. Python's other signs mean nothing here."""
_PLACEHOLDER = "_quoted"
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
    timestamps are read as such. NULL means what it means in SQL, also inside IN (…). A thousand comparisons are taken; IN
    counts as one.

    Raises:
        OptionError: the text does not parse, is larger than that, or names no column of the table.
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


def exact_array(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """The values as that type, for a set look-up; None where one of them is no exact value of it."""
    texts = [isinstance(value, str) for value in values]
    if values and all(texts):
        return pa.array([text_as(value, kind).as_py() for value in values], kind)
    if any(texts) or any(isinstance(value, bool) != pa.types.is_boolean(kind) for value in values):
        return None
    try:
        found = pa.array(values, kind)
    except (OverflowError, pa.ArrowException):
        return None
    return found if [value.as_py() for value in found] == values else None


class FilterParser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._used: dict[str, None] = {}
        self._quoted: dict[str, str] = {}
        self._operands = 0

    def parse(self) -> RowFilter:
        if len(self._text) > _MAX_TEXT:
            raise OptionError(f"the filter is {len(self._text):,} characters long; at most {_MAX_TEXT:,} are taken")
        try:
            tree = ast.parse(self._to_python().strip(), mode="eval")
            expression = self._condition(tree.body)
        except (RecursionError, MemoryError) as exc:
            raise self._wrong("its conditions are nested too deeply") from exc
        except (SyntaxError, ValueError, OverflowError, pa.ArrowException) as exc:
            raise self._wrong(str(exc)) from exc
        try:
            self._schema.empty_table().filter(expression)
        except pa.ArrowException as exc:
            raise self._wrong(str(exc)) from exc
        return RowFilter(expression, tuple(self._used))

    def _to_python(self) -> str:
        out: list[str] = []
        open_ranges: list[str] = []
        for token in _TOKEN.findall(self._text):
            if token.isspace():
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
        # Apart from each other: beside a string Python would take a word for its prefix (b'', f'').
        return " ".join(out)

    def _translated(self, token: str, word: str) -> str:
        if len(token) > 1 and token[0] == "'":
            return repr(token[1:-1].replace("''", "'"))
        if len(token) > 1 and token[0] == '"':
            return self._placeholder(token[1:-1].replace('""', '"'))
        if word in _WORDS:
            return _WORDS[word]
        if token[0].isalpha() or token[0] == "_":
            # Python has keywords that are names here, and reads names that are not ASCII as others.
            foreign = not token.isascii() or any(map(keyword.iskeyword, token.split(".")))
            return self._placeholder(token) if foreign or token.startswith(_PLACEHOLDER) else token
        if len(token) == 1 and not token.isdigit() and token not in _SIGNS and token != "=":
            raise ValueError(f"{token!r} has no meaning here")
        return {"=": "==", "<>": "!="}.get(token, token)

    def _placeholder(self, name: str) -> str:
        found = f"{_PLACEHOLDER}{len(self._quoted)}"
        self._quoted[found] = name
        return found

    def _condition(self, node: ast.expr) -> pc.Expression:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return reduce(operator.and_, map(self._condition, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return reduce(operator.or_, map(self._condition, values))
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
                return self._operand(node, None)
        raise ValueError(f"{ast.unparse(node)!r} is no condition")

    def _comparison(self, node: ast.Compare) -> pc.Expression:
        parts = []
        left = node.left
        for how, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._one_comparison(left, how, right))
            left = right
        return reduce(operator.and_, parts)

    def _one_comparison(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> pc.Expression:
        match how:
            case ast.In() | ast.NotIn():
                items = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
                found = self._among(left, items)
                return ~found if isinstance(how, ast.NotIn) else found
            case ast.Is() | ast.IsNot():
                if not (isinstance(right, ast.Constant) and right.value is None):
                    raise ValueError("IS takes NULL only")
                found = self._operand(left, None).is_null()
                return ~found if isinstance(how, ast.IsNot) else found
        return _COMPARE[type(how)](self._operand(left, right), self._operand(right, left))

    def _among(self, left: ast.expr, items: Sequence[ast.expr]) -> pc.Expression:
        """What `left = item OR left = item …` says: null where left is, and where no item is equal but one is null."""
        column, kind = self._operand(left, None), self._type_of(left)
        values = [value for value in (self._value(item, left) for item in items) if value is not None]
        one_set = exact_array(values, kind) if kind is not None else None
        if one_set is not None:
            found = pc.if_else(column.is_valid(), column.isin(one_set), pc.scalar(pa.scalar(None, pa.bool_())))
        elif values:
            equal = (column == self._operand(item, left) for item in items if self._value(item, left) is not None)
            found = reduce(operator.or_, equal)
        else:
            found = pc.scalar(False)
        return found | pc.scalar(pa.scalar(None, pa.bool_())) if len(values) < len(items) else found

    def _operand(self, node: ast.expr, other: ast.expr | None) -> pc.Expression:
        self._operands += 1
        if self._operands > _MAX_OPERANDS:
            raise ValueError(
                f"it compares more than {_MAX_OPERANDS // 2:,} times; write x IN (…) for x = … OR x = …, or filter the result"
            )
        if isinstance(node, ast.Name | ast.Attribute):
            name = self._name(node)
            self._used[name] = None
            return pc.field(name)
        value = self._value(node, other)
        kind = self._type_of(other) if other is not None else None
        if kind is not None and isinstance(value, str) and not pa.types.is_string(kind):
            return pc.scalar(text_as(value, kind))
        if kind is not None and pa.types.is_decimal(kind) and type(value) is int:
            # Arrow makes a decimal of 19 digits of an integer, and then lacks room for the common type.
            return pc.scalar(Decimal(value))
        return pc.scalar(value)

    def _value(self, node: ast.expr, other: ast.expr | None) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value(node.operand, other)
            if isinstance(value, str | bytes) or value is None:
                raise ValueError(f"{ast.unparse(node)!r} is no value")
            return -value
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
