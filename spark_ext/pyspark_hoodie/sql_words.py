"""The words of a statement in Spark's SQL: for statements that Spark's grammar does not have.

Only clauses are found. What expressions mean is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from hoodie.errors import OptionError

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<word>[^\W\d]\w*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)
    |(?P<sign>=>|<=>|::|[<>!=]=|<>|.)""",
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class Token(NamedTuple):
    """A word, a quoted name, a text, a number or a sign."""

    kind: str
    text: str
    start: int
    end: int
    depth: int
    """Of parentheses and CASE around it."""

    def says(self, *words: str) -> bool:
        return self.kind in ("word", "sign") and self.text.upper() in words

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def tokens_of(text: str) -> list[Token]:
    """What stands in the text, without spaces and comments, up to a semicolon at its end."""
    result: list[Token] = []
    openings: list[str] = []
    for match in _TOKEN.finditer(text):
        kind, word = str(match.lastgroup), match[0].upper()
        if kind == "space":
            continue
        if kind == "word" and word == "END" and openings[-1:] == ["CASE"]:  # else a column of that name
            openings.pop()
        if kind == "sign" and word in _CLOSING:
            while openings and openings.pop() == "CASE":  # a column of that name
                pass
        result.append(Token(kind, match[0], match.start(), match.end(), len(openings)))
        if (kind == "word" and word == "CASE") or (kind == "sign" and word in _OPENING):
            openings.append(word)
    while result and result[-1].text == ";":
        result.pop()
    return result


class Words:
    """Goes through the tokens of one statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0

    @property
    def is_over(self) -> bool:
        return self.at >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        there = self.tokens[self.at : self.at + len(words)]
        return len(there) == len(words) and all(token.says(word) for token, word in zip(there, words, strict=True))

    def take(self, *words: str) -> bool:
        """Pass these words, if they are the next ones."""
        result = self.sees(*words)
        self.at += len(words) * result
        return result

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            self.refuse(f"{' '.join(words)} should stand {self._here()}")

    def name(self, what: str) -> list[str]:
        """The parts of a name, such as `db.t`."""
        result = []
        while not self.is_over and self.tokens[self.at].is_name:
            result.append(self.tokens[self.at].name)
            self.at += 1
            if not self.take("."):
                break
        if not result:
            self.refuse(f"{what} is missing {self._here()}")
        return result

    def parts(self) -> list[list[Token]]:
        """What stands in the parentheses that begin here, parted by commas."""
        self.expect("(")
        depth = self.tokens[self.at - 1].depth + 1
        parts: list[list[Token]] = [[]]
        while not self.is_over and not (self.tokens[self.at].depth < depth):
            token = self.tokens[self.at]
            if token.depth == depth and token.says(","):
                parts.append([])
            else:
                parts[-1].append(token)
            self.at += 1
        self.expect(")")
        return [part for part in parts if part]

    def source(self) -> tuple[str, str]:
        """What a MERGE takes its rows from, as FROM has it, and what conditions call it."""
        start, called = self.at, "hoodie_source"
        if self.sees("("):
            self.parts()
        else:
            called = self.name("the source of the MERGE")[-1]
        end = self.at
        if self.take("AS") or not (self.is_over or self.sees("ON")):
            called = self.name("an alias")[-1]
        columns_at = self.at
        if self.sees("("):
            self.parts()
        name = quoted_name([called])
        return f"{self.slice(start, end)} AS {name}{self.slice(columns_at, self.at)}", name

    def options(self) -> dict[str, str]:
        """`('a' = 'b', c.d 1)` as options."""
        result = {}
        for part in self.parts():
            equals = next((at for at, token in enumerate(part) if token.says("=")), None)
            key, value = (part[:-1], part[-1:]) if equals is None else (part[:equals], part[equals + 1 :])
            result["".join(map(_plain, key))] = "".join(map(_plain, value))
        return result

    def find(self, *words: str, depth: int = 0) -> int:
        """Where the first of these words stands; where the statement ends, if none does."""
        for at in range(self.at, len(self.tokens)):
            if self.tokens[at].depth == depth and self.tokens[at].says(*words):
                return at
        return len(self.tokens)

    def slice(self, start: int, end: int) -> str:
        """The text of these tokens."""
        return "" if end <= start else self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def refuse(self, why: str) -> NoReturn:
        raise OptionError(f"this statement cannot be understood: {why}")

    def _here(self) -> str:
        return "at the end" if self.is_over else f"before {self.tokens[self.at].text!r}"


def _plain(token: Token) -> str:
    return text_of(token.text) if token.kind == "text" else token.name


def text_of(literal: str) -> str:
    """What a text in quotes says. `literal` has no escapes but those of quotes and backslashes."""
    return re.sub(r"\\(.)", r"\1", literal[1:-1])


def quoted_name(parts: list[str]) -> str:
    """The name as SQL has it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def with_named_parameters(text: str) -> tuple[str, list[str]]:
    """The statement with a name for each `?`, for texts that are made of its parts; and these names."""
    out, copied = "", 0
    names: list[str] = []
    for token in tokens_of(text):
        if token.says("?"):
            names.append(f"hoodie_parameter_{len(names)}")
            out += f"{text[copied : token.start]}:{names[-1]}"
            copied = token.end
    return out + text[copied:], names


def within(parts: Sequence[str], table: Sequence[str]) -> list[str]:
    """The name of a column without that of its table, of which it may have the last parts alone."""
    lower_parts, lower_table = ([part.lower() for part in each] for each in (parts, table))
    for count in range(len(table), 0, -1):
        if len(parts) > count and lower_parts[:count] == lower_table[-count:]:
            return list(parts[count:])
    return list(parts)


def with_short_names(text: str, tables: Iterable[Sequence[str]]) -> str:
    """The statement with the last part alone of these tables' names, where they stand in front of a column's."""
    tokens, out, copied = tokens_of(text), "", 0
    names = [[part.lower() for part in table] for table in tables if len(table) > 1]
    for at, token in enumerate(tokens):
        for name in names:
            place = tokens[at : at + 2 * len(name)]
            dots = [each.text for each in place[1::2]] == ["."] * len(name)
            if dots and [each.name.lower() for each in place[::2]] == name and not (at and tokens[at - 1].says(".")):
                out += text[copied : token.start]
                copied = place[-2].start
    return out + text[copied:]


_INSTANT = re.compile(r"['\"]?(\d{14}|\d{17})['\"]?")


def instants_as_versions(text: str) -> str:
    """The statement with `VERSION AS OF` where `TIMESTAMP AS OF` names an instant, which Spark takes for no timestamp."""
    tokens = tokens_of(text)
    out, copied = "", 0
    for word, _, last, value in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        instant = _INSTANT.fullmatch(value.text) if last.says("OF") and value.kind in ("text", "number") else None
        if instant and word.says("TIMESTAMP", "SYSTEM_TIME"):
            out += f"{text[copied : word.start]}VERSION AS OF '{instant[1]}'"
            copied = value.end
    return out + text[copied:]
