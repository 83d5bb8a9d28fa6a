"""The grammar of filter texts: SQL's conditions over columns and values. docs/FILTERS.md shows it.

A descent by hand: every refusal says where in the text it is, and nothing of another language is understood by accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple, Protocol, TypeVar

from hoodie.read.condition import Always, Computation, Condition, IsNull, IsTruth, Junction, Negation, Op
from hoodie.read.typed_values import Misfit, parse_number

MAX_TEXT = 100_000
_MAX_DEPTH = 100
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_TOKEN = re.compile(
    rf"""(?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*`)
    | (?P<comment>-- | /\* | \#)
    | (?P<sign><=> | <> | <= | >= | != | == | \|\| | [=<>(),+*/%-])
    | (?P<parameter>:[^\W\d]\w*)
    | (?P<number>(?:{_DIGITS}(?:\.(?:{_DIGITS})?)? | \.{_DIGITS})(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d][\w.]*)
    | (?P<space>\s+)
    | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_OPS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_RESERVED = frozenset(["and", "or", "not", "in", "is", "null", "true", "false", "between"])
_SUMS, _PRODUCTS = frozenset(["+", "-", "||"]), frozenset("*/%")
_TRUTHS = {"null": None, "true": True, "false": False}
_LACKING = {
    "case": "CASE is followed by WHEN: write CASE WHEN a = 1 THEN …, not CASE a WHEN 1 THEN …",
    "exists": "sub-queries are not part of this grammar",
    "select": "sub-queries are not part of this grammar: give a condition only, without SELECT",
    "where": "give the condition only, without WHERE",
    "cast": "CAST is not part of this grammar: a value takes the type of the column beside it",
    "interval": "intervals are not part of this grammar: give the date or time itself",
}
_EXPRESSIONS = "regular expressions are not part of this grammar: write LIKE, or give a pyarrow expression"
_LACKING_OPERATORS = {
    "rlike": _EXPRESSIONS,
    "regexp": _EXPRESSIONS,
    "similar": _EXPRESSIONS,
    "isnull": "write IS NULL",
    "notnull": "write IS NOT NULL",
    "glob": "write LIKE",
    "<=>": "write a = b OR a IS NULL AND b IS NULL, or a IS NULL",
    "[": "elements of lists and maps are not part of this grammar: give a pyarrow expression",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT",
    ":": "a parameter is a colon and a name, such as :low",
    "?": "parameters have names: write :low, and give params={'low': …}",
    ";": "give one condition, without a semicolon",
}


T = TypeVar("T")


class Reference(NamedTuple):
    """A column."""

    name: str


class Literal(NamedTuple):
    """A value: text, number, truth or null; a parameter is what was given for it."""

    value: Any


Operand = Reference | Literal | Computation


class DateText(str):
    """What stands behind DATE: a text that can be computed with as a date."""


class WhereTextError(Exception):
    """Why a text is no filter, and where."""

    def __init__(self, reason: str, start: int) -> None:
        super().__init__(reason)
        self.start = start


class Conditions(Protocol):
    """What the grammar asks of whoever knows the columns; each raises Misfit."""

    def resolve(self, name: str, inside: Sequence[str] = ()) -> Reference | Computation:
        """The column that is meant, or a field of a struct: `inside` are the names behind that of the column."""

    def parameter(self, name: str) -> Any:
        """The value that was given for it."""

    def compute(self, sign: str, left: Operand, right: Operand) -> Operand: ...

    def call(self, name: str, arguments: Sequence[Operand]) -> Operand: ...

    def choose(self, pairs: Sequence[tuple[Condition, Operand]], rest: Operand) -> Operand:
        """CASE."""

    def compare(self, left: Operand, op: Op, right: Operand) -> Condition: ...

    def among(self, left: Operand, values: Sequence[Any]) -> Condition: ...

    def like(self, left: Operand, pattern: Operand, escape: str, ignore_case: bool) -> Condition: ...

    def truth(self, operand: Operand) -> Condition:
        """A column or a value as a condition of its own."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """In lower case; empty where it is no word."""
        return self.text.lower() if self.kind == "word" else ""


class TextParser:
    """One text -> one condition."""

    def __init__(self, text: str, conditions: Conditions) -> None:
        self._conditions = conditions
        self._end = len(text)
        tokens = (_Token(str(m.lastgroup), m[0], m.start()) for m in _TOKEN.finditer(text))
        self._tokens = [token for token in tokens if token.kind != "space"]
        self._at = 0
        self._depth = 0

    def parse(self) -> Condition:
        """Raises Refused."""
        if not self._tokens:
            raise WhereTextError("it is empty: leave the filter out to read all rows", 0)
        part = self._either()
        condition = self._as_condition(part, 0)
        if self._now.kind != "end":
            raise self._unexpected("AND, OR or the end")
        return condition

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("end", "", self._end)

    def _take(self) -> _Token:
        token = self._now
        self._at += 1
        return token

    def _word(self, *words: str) -> bool:
        """Takes a word if it comes now."""
        result = self._now.word in words
        self._at += result
        return result

    def _sign(self, sign: str) -> bool:
        result = self._now.kind == "sign" and self._now.text == sign
        self._at += result
        return result

    def _unexpected(self, expectation: str) -> WhereTextError:
        token = self._now
        advice = _LACKING_OPERATORS.get(token.text.lower()) if token.kind != "end" else None
        if advice is not None:
            return WhereTextError(f"{token.text!r} has no meaning here: {advice}", token.start)
        if token.kind == "comment":
            return WhereTextError("comments are not part of this grammar", token.start)
        if token.kind == "other" and token.text in "'\"`":
            return WhereTextError(f"what {token.text} opens is not closed", token.start)
        if token.kind == "end":
            return WhereTextError(f"it ends where {expectation} is expected", token.start)
        text = token.text if len(token.text) <= 40 else token.text[:40] + "…"
        return WhereTextError(f"{expectation} is expected, not {text!r}", token.start)

    def _try(self, start: int, make: Callable[..., T], *values: Any) -> T:
        try:
            return make(*values)
        except Misfit as exc:
            raise WhereTextError(str(exc), start) from exc

    # -- the grammar -------------------------------------------------------------------------------------------------

    def _either(self) -> Condition | Operand:
        return self._joined("or", self._both)

    def _both(self) -> Condition | Operand:
        return self._joined("and", self._negation)

    def _joined(self, word: str, part: Callable[[], Condition | Operand]) -> Condition | Operand:
        start = self._now.start
        first = part()
        if self._now.word != word:
            return first
        parts = [self._as_condition(first, start)]
        while self._word(word):
            start = self._now.start
            parts.append(self._as_condition(part(), start))
        return Junction(word == "and", tuple(parts))

    def _negation(self) -> Condition | Operand:
        count, start = 0, self._now.start
        while self._word("not"):
            count += 1
        if count > _MAX_DEPTH:
            raise WhereTextError("its conditions are nested too deeply", start)
        start = self._now.start
        result = self._predicate()
        if not count:
            return result
        condition = self._as_condition(result, start)
        return Negation(condition) if count % 2 else condition

    def _predicate(self) -> Condition | Operand:
        start = self._now.start
        left = self._sum()
        result: Condition | Operand = left
        token = self._now
        if token.kind == "sign" and token.text in _OPS:
            self._take()
            self._operand_only(left, token)
            op, right = _OPS[token.text], self._operand()
            result = self._try(start, self._conditions.compare, left, op, right)
        elif token.word in ("not", "in", "between", "like", "ilike"):
            inverted = self._word("not")
            token = self._take()
            self._operand_only(left, token)
            match token.word:
                case "in":
                    result = self._among(left, start)
                case "between":
                    result = self._between(left, start)
                case "like" | "ilike":
                    result = self._like(left, start, ignore_case=token.word == "ilike")
                case _:
                    self._at -= 1
                    raise self._unexpected("IN, BETWEEN, LIKE or ILIKE")
            result = Negation(result) if inverted else result
        while self._word("is"):
            result = self._is(result, start)
        following = self._now
        if isinstance(result, Operand):
            if following.text.lower() in _LACKING_OPERATORS or following.kind in ("comment", "other"):
                raise self._unexpected("a comparison")
        elif following.text in _OPS or following.word in ("in", "between", "like", "ilike"):
            raise WhereTextError("comparisons do not chain: join them with AND, as in a < b AND b < c", following.start)
        return result

    def _operand_only(self, left: Condition | Operand, token: _Token) -> None:
        if not isinstance(left, Operand):
            raise WhereTextError(
                "a condition is not compared: write the condition itself, NOT before it, or IS TRUE behind it",
                token.start,
            )

    def _among(self, left: Any, start: int) -> Condition:
        values: list[Any] = []
        if self._now.kind == "parameter":
            return self._try(start, self._conditions.among, left, self._values_of(self._take()))
        if not self._sign("("):
            raise self._unexpected("( with the values of IN")
        while not values or self._sign(","):
            if values and self._now.text == ")":  # one comma too many, as Python writes a tuple of one value
                break
            token = self._now
            if token.kind == "parameter":
                values += self._values_of(self._take())
                continue
            value = self._operand()
            if not isinstance(value, Literal):
                raise WhereTextError("IN takes values only: write a = b OR a = c for columns", token.start)
            values.append(value.value)
        if not self._sign(")"):
            raise self._unexpected(", or )")
        return self._try(start, self._conditions.among, left, values)

    def _values_of(self, token: _Token) -> list[Any]:
        """The values of a parameter of IN: those of a list, or one."""
        value = self._try(token.start, self._conditions.parameter, token.text[1:])
        return value if isinstance(value, list) else [value]

    def _between(self, left: Any, start: int) -> Condition:
        low = self._operand()
        if not self._word("and"):
            raise self._unexpected("AND between the bounds of BETWEEN")
        high = self._operand()
        parts = ((Op.GE, low), (Op.LE, high))
        return Junction(True, tuple(self._try(start, self._conditions.compare, left, op, value) for op, value in parts))

    def _like(self, left: Any, start: int, *, ignore_case: bool) -> Condition:
        pattern = self._operand()
        escape = "\\"
        if self._word("escape"):
            token = self._now
            operand = self._operand()
            if not isinstance(operand, Literal) or not isinstance(operand.value, str) or len(operand.value) != 1:
                raise WhereTextError("ESCAPE takes one character in single quotes", token.start)
            escape = operand.value
        return self._try(start, self._conditions.like, left, pattern, escape, ignore_case)

    def _is(self, part: Condition | Operand, start: int) -> Condition:
        inverted = self._word("not")
        if self._now.word not in _TRUTHS:
            raise self._unexpected("NULL, TRUE or FALSE behind IS")
        value = _TRUTHS[self._take().word]
        condition: Condition
        if value is not None:
            condition = IsTruth(self._as_condition(part, start), value)
        elif isinstance(part, Reference | Computation):
            condition = IsNull(part.name if isinstance(part, Reference) else part)
        elif isinstance(part, Literal):
            condition = Always(part.value is None)
        else:
            condition = IsNull(part)
        return Negation(condition) if inverted else condition

    def _as_condition(self, part: Condition | Operand, start: int) -> Condition:
        return self._try(start, self._conditions.truth, part) if isinstance(part, Operand) else part

    def _operand(self) -> Operand:
        token = self._now
        return self._as_operand(self._sum(), token)

    def _as_operand(self, part: Condition | Operand, token: _Token) -> Operand:
        if not isinstance(part, Operand):
            raise WhereTextError("a column or a value is expected, not a condition", token.start)
        return part

    def _sum(self) -> Condition | Operand:
        return self._computed(_SUMS, self._product)

    def _product(self) -> Condition | Operand:
        return self._computed(_PRODUCTS, self._factor)

    def _computed(self, signs: frozenset[str], part: Callable[[], Condition | Operand]) -> Condition | Operand:
        first = self._now
        result = part()
        while self._now.kind == "sign" and self._now.text in signs:
            left, sign, token = self._as_operand(result, first), self._take(), self._now
            right = self._as_operand(part(), token)
            result = self._try(sign.start, self._conditions.compute, sign.text, left, right)
        return result

    def _factor(self) -> Condition | Operand:
        token = self._now
        if token.kind != "sign" or token.text not in "+-":
            return self._primary()
        self._take()
        if self._now.kind == "number":
            return Literal(self._number(self._take(), token.text))
        with self._deeper(token):
            inner = self._as_operand(self._factor(), self._now)
        return self._try(token.start, self._conditions.compute, token.text, Literal(0), inner)

    @contextmanager
    def _deeper(self, token: _Token) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise WhereTextError("its conditions are nested too deeply", token.start)
        yield
        self._depth -= 1

    def _primary(self) -> Condition | Operand:
        """A column, a value, a function, or anything in parentheses."""
        token = self._take()
        match token.kind:
            case "sign" if token.text == "(":
                with self._deeper(token):
                    result = self._either()
                    if not self._sign(")"):
                        raise self._unexpected(")")
                return result
            case "text":
                return Literal(token.text[1:-1].replace("''", "'"))
            case "number":
                return Literal(self._number(token, ""))
            case "parameter":
                value = self._try(token.start, self._conditions.parameter, token.text[1:])
                if isinstance(value, list):
                    raise WhereTextError(f"{token.text} is a list, which only IN takes", token.start)
                return Literal(value)
            case "quoted":
                return self._column(token)
            case "word" if token.word in _TRUTHS:
                return Literal(_TRUTHS[token.word])
            case "word" if token.word in ("date", "timestamp") and self._now.kind == "text":
                text = self._take().text[1:-1].replace("''", "'")
                return Literal(DateText(text) if token.word == "date" else text)
            case "word" if token.word == "case" and self._now.word == "when":
                return self._case(token)
            case "word" if token.word not in _RESERVED:
                return self._call(token) if self._now.text == "(" else self._column(token)
        self._at -= 1
        raise self._unexpected("a column or a value")

    def _case(self, token: _Token) -> Operand:
        pairs: list[tuple[Condition, Operand]] = []
        rest: Operand = Literal(None)
        with self._deeper(token):
            while self._word("when"):
                start = self._now.start
                condition = self._as_condition(self._either(), start)
                if not self._word("then"):
                    raise self._unexpected("THEN")
                pairs.append((condition, self._operand()))
            if self._word("else"):
                rest = self._operand()
            if not self._word("end"):
                raise self._unexpected("WHEN, ELSE or END")
        return self._try(token.start, self._conditions.choose, pairs, rest)

    def _call(self, token: _Token) -> Operand:
        if token.word in _LACKING:
            raise WhereTextError(_LACKING[token.word], token.start)
        self._take()
        arguments: list[Operand] = []
        with self._deeper(token):
            while not self._sign(")"):
                if arguments and not self._sign(","):
                    raise self._unexpected(", or )")
                arguments.append(self._operand())
        return self._try(token.start, self._conditions.call, token.text, arguments)

    def _number(self, token: _Token, sign: str) -> int | Decimal:
        following = self._now
        if following.kind in ("word", "number") and following.start == token.start + len(token.text):
            raise WhereTextError(f"{(token.text + following.text)[:40]!r} is not a number", token.start)
        try:
            return parse_number(sign + token.text.replace("_", ""))
        except Misfit as exc:
            raise WhereTextError(str(exc), token.start) from exc

    def _column(self, token: _Token) -> Reference | Computation:
        """A name; with dots and more names behind it, a field of a struct."""
        names = [_name(token)]
        while self._now.text == "." or (names[-1].endswith(".") and token.kind == "word"):
            if self._now.text == ".":
                self._take()
            names[-1] = names[-1].removesuffix(".") if token.kind == "word" else names[-1]
            if self._now.kind not in ("quoted", "word"):
                raise self._unexpected("the name of a field")
            token = self._take()
            names.append(_name(token))
        try:
            return self._conditions.resolve(names[0], names[1:])
        except Misfit as exc:
            reason = str(exc)
            if token.text[0] == '"':
                reason += "; texts stand in single quotes"
            elif token.word in _LACKING:
                reason = _LACKING[token.word]
            raise WhereTextError(reason, token.start) from exc


def _name(token: _Token) -> str:
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote) if token.kind == "quoted" else token.text
