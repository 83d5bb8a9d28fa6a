"""Numbers of buckets by partition: the first expression that is found in a partition path says how many buckets that has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hoodie.model.instant import InstantTime
from hoodie.model.once import once

RULE_TYPE = "regex"
FIRST_RULES = InstantTime("00000000000000")
"""Of rules that a table was made with."""
_MOST_BUCKETS = 99_999_999
"""As a file id has room for."""
_OTHERWISE = re.compile(r"\\[pPQERXGhHvVzZN]|\(\?<[A-Za-z]|&&|\[[^\]]*\[")
"""What Java understands otherwise than Python, or Python not at all."""


@dataclass(frozen=True)
class BucketRules:
    expressions: str
    """`EXPRESSION,NUMBER;EXPRESSION,NUMBER;…`, as Apache Hudi has it."""
    instant: InstantTime = FIRST_RULES
    """Since when."""

    def count_of(self, partition_path: str) -> int | None:
        """None: no expression is found in it."""
        return next((count for pattern, count in self.parsed if pattern.search(partition_path)), None)

    @once
    def parsed(self) -> tuple[tuple[re.Pattern[str], int], ...]:
        """Raises ValueError: the expressions are none, with the rest of a sentence that begins with what says them."""
        return tuple(_rule(each) for each in _split(self.expressions, ";"))


def _rule(text: str) -> tuple[re.Pattern[str], int]:
    parts = _split(text.strip(), ",")
    if len(parts) != 2:
        raise ValueError(f"{text!r} is not EXPRESSION,NUMBER")
    expression, number = (part.strip() for part in parts)
    if not (number.isascii() and number.isdigit()) or not 0 < int(number[:12]) <= _MOST_BUCKETS:
        raise ValueError(f"{number!r} in {text!r} is not a number of buckets")
    match = _OTHERWISE.search(expression)
    if match is not None:
        raise ValueError(
            f"{match[0]!r} in {text!r} means something else in Java, or nothing in Python; write it otherwise"
        )
    try:
        return re.compile(expression, re.ASCII), int(number)
    except re.error as exc:
        raise ValueError(f"{expression!r} is no regular expression: {exc}") from exc


def _split(text: str, by: str) -> list[str]:
    """As Java does: empty texts at the end do not count."""
    result = text.split(by)
    while len(result) > 1 and not result[-1]:
        result.pop()
    return result
