"""Parameters of a statement, `:name`, and the values that stand in their places as literals of SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hoodie.errors import OptionError
from hoodie.read.where import as_python

_PART = re.compile(
    r"""\b[eE]'(?:\\.|''|[^'\\])*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/ | ::
    | (?<![\w)\]'"]):(?P<parameter>[^\W\d]\w*)""",
    re.DOTALL | re.VERBOSE,
)
"""What a colon may stand in, and a parameter: not behind a name or value, as in `x[1:n]` and `{a:n}`."""


def with_values(statement: str, params: Any) -> str:
    """The statement with literals in place of its parameters. What stands in quotes or comments stays as it is.

    Raises:
        OptionError: there is no value for a parameter, or no parameter for a value; or a value is none of SQL.
    """
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        raise OptionError(f"params are values by names, such as {{'low': 3}}, not {params!r:.80}")
    used: set[str] = set()

    def literal(part: re.Match[str]) -> str:
        name = part["parameter"]
        if name is None:
            return part[0]
        if name not in params:
            raise OptionError(
                f"there is no value for the parameter :{name} of the statement: give params={{{name!r}: …}}"
            )
        used.add(name)
        return _literal(name, params[name])

    result = _PART.sub(literal, statement)
    unknown = [name for name in params if name not in used]
    if unknown:
        raise OptionError(f"the statement has no parameter :{unknown[0]}, for which params has a value")
    return result


def _literal(name: str, value: Any) -> str:
    value = as_python(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"({value})"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case Decimal() if math.isfinite(value):
            return f"({value:f})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return "CAST('" + "".join(f"\\x{byte:02X}" for byte in value) + "' AS BLOB)"
        case datetime():
            return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Collection() if value and not isinstance(value, Mapping):
            return f"({', '.join(_literal(name, each) for each in value)})"
    raise OptionError(
        f"the parameter :{name} is {value!r:.60}, which is no value of SQL: give a number, text, date, time, bytes, or a list of such"
    )
