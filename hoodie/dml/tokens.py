"""The words of SQL: DuckDB's tokenizer finds them."""

from __future__ import annotations

import itertools
from typing import NamedTuple

_OPENING, _CLOSING = {"(", "[", "{"}, {")", "]", "}"}


class Token(NamedTuple):
    """A word, text, number or sign; a quoted name is a word."""

    text: str
    start: int
    end: int
    depth: int
    """Of parentheses and CASE around it."""
    is_name: bool
    is_text: bool

    def says(self, *words: str) -> bool:
        return self.text.upper() in words and not self.is_text


def statements(text: str) -> list[str]:
    """A script as its statements, which semicolons part."""
    words, texts, start = tokens_of(text), [], 0
    for end in [each.start for each in words if each.depth == 0 and each.text == ";"] + [len(text.encode())]:
        if any(start <= each.start < end for each in words):
            texts.append(text.encode()[start:end].decode().strip())
        start = end + 1
    return texts


def tokens_of(text: str) -> list[Token]:
    import duckdb  # noqa: PLC0415 - an extra

    data = text.encode()
    # DuckDB gives offsets of bytes.
    raw_tokens = [(at, kind) for at, kind in duckdb.tokenize(text) if kind != duckdb.token_type.comment]
    starts = [*sorted(at for at, _ in duckdb.tokenize(text)), len(data)]
    following = dict(itertools.pairwise(starts))
    result: list[Token] = []
    depth = 0
    for at, kind in raw_tokens:
        word = data[at : following[at]].decode().strip()
        is_text = kind == duckdb.token_type.string_const
        is_name = kind in (duckdb.token_type.identifier, duckdb.token_type.keyword)
        for part, start in _signs(word, at) if kind == duckdb.token_type.operator else [(word, at)]:
            closes = not is_text and (part in _CLOSING or (is_name and part.upper() == "END"))
            depth -= closes
            result.append(Token(part, start, start + len(part.encode()), depth, is_name, is_text))
            depth += not is_text and (part in _OPENING or (is_name and part.upper() == "CASE"))
    return result


def _signs(word: str, at: int) -> list[tuple[str, int]]:
    """Signs that stand together, apart where one of them is a parenthesis or ends a statement."""
    alone = _OPENING | _CLOSING | {";", ","}
    if not alone & {*word}:
        return [(word, at)]
    return [(sign, at + number) for number, sign in enumerate(word) if not sign.isspace()]


def plain(token: Token) -> str:
    text = token.text
    if token.is_text:
        return text[1:-1].replace("''", "'")
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
