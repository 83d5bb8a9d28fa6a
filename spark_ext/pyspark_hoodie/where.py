"""The text of option `where` as a Spark column, with the meaning that the embedded engine gives it.

Spark's own parser reads some of the same texts otherwise: "x" is a string there, timestamps are of the session's zone,
and NaN is greater than every number.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.read.where import FilterParser, text_as
from pyspark_hoodie.schema import spark_schema

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Column]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def filter_column(where: str, schema: pa.Schema) -> Column:
    """The condition as a Spark column; `where` has been through `parse_filter` with this schema, which refuses nonsense."""
    return _ColumnFilter(where, schema).column()


def quoted(name: str) -> str:
    """A column name for `F.col`: dots in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"


class _ColumnFilter(FilterParser):
    """The same grammar, with columns of Spark as the outcome."""

    def column(self) -> Column:
        return self._build(ast.parse(self._to_python().strip(), mode="eval").body)

    def _build(self, node: ast.expr) -> Column:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return reduce(operator.and_, map(self._build, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return reduce(operator.or_, map(self._build, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._build(operand)
            case ast.Compare():
                return self._chain(node)
            case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Tuple(elts=[low, high])):
                return self._compare(left, ast.GtE(), low) & self._compare(left, ast.LtE(), high)
            case ast.Constant(value=bool()):
                return F.lit(node.value)
        return self._side(node, None)

    def _chain(self, node: ast.Compare) -> Column:
        lefts = [node.left, *node.comparators[:-1]]
        parts = [self._compare(*each) for each in zip(lefts, node.ops, node.comparators, strict=True)]
        return reduce(operator.and_, parts)

    def _compare(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> Column:
        match how:
            case ast.In() | ast.NotIn():
                items = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
                found = self._side(left, None).isin([self._side(item, left) for item in items])
                return ~found if isinstance(how, ast.NotIn) else found
            case ast.Is():
                return self._side(left, None).isNull()
            case ast.IsNot():
                return self._side(left, None).isNotNull()
        compared = _COMPARE[type(how)](self._side(left, right), self._side(right, left))
        # NaN equals NaN and is greater than every number in Spark; in Arrow, as in IEEE 754, it is neither.
        for side in (left, right):
            if self._is_float(side):
                nan = F.isnan(self._side(side, None))
                compared = (compared | nan) if isinstance(how, ast.NotEq) else (compared & ~nan)
        return compared

    def _side(self, node: ast.expr, other: ast.expr | None) -> Column:
        """A column or a value; values take the type of the column that they are compared with, where text must."""
        if isinstance(node, ast.Name | ast.Attribute):
            return F.col(quoted(self._name(node)))
        value = self._value(node, other)
        kind = self._type_of(other)
        if kind is None or not isinstance(value, str) or pa.types.is_string(kind):
            return F.lit(value)
        typed = text_as(value, kind)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return F.timestamp_micros(F.lit(typed.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).as_py()))
        field = spark_schema(pa.schema([("value", kind)])).fields[0]
        return F.lit(str(typed.as_py())).cast(field.dataType)

    def _is_float(self, node: ast.expr) -> bool:
        kind = self._type_of(node)
        return kind is not None and pa.types.is_floating(kind)
