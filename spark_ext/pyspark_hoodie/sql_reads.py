"""Hoodie tables in a query of a Connect client: DataFrames replace them."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from hoodie.model.meta_fields import META_COLUMNS
from pyspark_hoodie.sql_entries import Entry, entries_of
from pyspark_hoodie.sql_functions import FUNCTIONS, Find
from pyspark_hoodie.sql_table import CatalogTable
from pyspark_hoodie.sql_words import Token, Words, quoted_name, text_of, with_short_names

PART = "hoodie_part_"
"""How words begin that stand for a DataFrame."""
_READS = ("FROM", "JOIN", "USING")
_ENDS = (
    "SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WINDOW", "QUALIFY", "SET",
    "WHEN", "THEN", "VALUES", "SORT", "CLUSTER", "DISTRIBUTE", "VIEW", "OFFSET",
)  # fmt: skip
_NO_ALIAS = (
    *_ENDS, "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", "ON", "USING", "LATERAL", "TABLESAMPLE",
    "PIVOT", "UNPIVOT", "INSERT", "MAP", "REDUCE", "FROM",
)  # fmt: skip
_FROM_INSIDE = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")
"""Functions that have FROM between their parameters."""


class _Place(NamedTuple):
    """Where a table stands, by its tokens: from `start` up to `end`, exclusive."""

    start: int
    end: int
    name: tuple[str, ...]
    moment: str | None
    arguments: tuple[str, ...] | None
    """Of a function."""


class Parts:
    """What a statement reads of tables of ours: all of it is one snapshot of each table."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._tables: dict[tuple[str, str | None], CatalogTable] = {}
        self._frames: dict[str, Callable[[], DataFrame]] = {}

    def table(self, entry: Entry, moment: str | None = None) -> CatalogTable:
        key = entry.path, moment
        if key not in self._tables:
            self._tables[key] = CatalogTable(
                self._spark, entry.name, entry.path, moment=moment, properties=entry.properties, thread=get_ident()
            )
        return self._tables[key]

    def add(self, frame: Callable[[], DataFrame], name: str = "") -> str:
        """A word that stands for the DataFrame."""
        word = name or f"{PART}{len(self._frames)}"
        self._frames[word] = frame
        return word

    def frames(self) -> dict[str, DataFrame]:
        """The DataFrames by their words, of the snapshots that the tables have now."""
        return {name: frame() for name, frame in self._frames.items()}

    def put_in(self, words: Words, start: int, find: Find) -> str:
        """The statement from a token on, with words in place of tables of ours."""
        here = words.at
        places = places_of(words, start)
        words.at = here
        entries = entries_of(self._spark, {place.name for place in places if place.arguments is None})
        with_meta = "_hoodie_" in words.text.lower()
        out, copied = "", words.tokens[start].start if start < len(words.tokens) else len(words.text)
        long_names = []
        for place in places:
            if place.arguments is not None:
                frame = self._of_function(place, find)
            elif place.name in entries:
                frame = _of_table(self.table(entries[place.name], place.moment), with_meta)
            else:
                continue
            out += words.text[copied : words.tokens[place.start].start] + self.add(frame)
            copied = words.tokens[place.end - 1].end
            if not _has_alias(words, place.end):
                out += f" AS {quoted_name(list(place.name[-1:]))}"
                long_names.append(place.name)
        return with_short_names(out + words.text[copied : words.tokens[-1].end if words.tokens else None], long_names)

    def _of_function(self, place: _Place, find: Find) -> Callable[[], DataFrame]:
        frame = FUNCTIONS[place.name[0].lower()](self._spark, find, list(place.arguments or ()))
        return lambda: frame


def _of_table(table: CatalogTable, with_meta: bool) -> Callable[[], DataFrame]:
    return lambda: table.rows([*table.schema.names, *(META_COLUMNS if with_meta else ())])


def _has_alias(words: Words, at: int) -> bool:
    if at >= len(words.tokens):
        return False
    token = words.tokens[at]
    return token.is_name and (token.kind == "quoted" or not token.says(*_NO_ALIAS))


def places_of(words: Words, start: int) -> list[_Place]:
    """Where tables may stand."""
    reads: dict[int, bool] = {}
    inside: dict[int, str] = {}
    queries = _named_queries(words)
    found = []
    at = start
    while at < len(words.tokens):
        token, before = words.tokens[at], words.tokens[at - 1] if at else None
        at += 1
        if token.says("("):
            reads[token.depth + 1] = False
            inside[token.depth + 1] = before.text.upper() if before is not None and before.is_name else ""
        elif token.says(*_READS):
            is_of_function = inside.get(token.depth) in _FROM_INSIDE or (before is not None and before.says("DISTINCT"))
            reads[token.depth] = not is_of_function
        elif token.says(*_ENDS):
            reads[token.depth] = False
        if reads.get(token.depth) and token.says(*_READS, ","):
            place = _place(words, at)
            if place is not None:
                named = ".".join(place.name).lower()
                if not any(name == named and place.start in tokens for name, tokens in queries):
                    found.append(place)
                at = place.end
    return found


def _named_queries(words: Words) -> list[tuple[str, range]]:
    """The names that WITH gives to queries, in lower case, and the tokens among which they hide tables."""
    found = []
    tokens = words.tokens
    for at in range(2, len(tokens) - 1):
        if not tokens[at].says("AS") or not tokens[at + 1].says("("):
            continue
        depth, name = tokens[at].depth, at - 1
        if tokens[name].says(")"):  # names of its columns
            opens = (back for back in range(1, name) if tokens[back].says("(") and tokens[back].depth == depth)
            name = max(opens, default=1) - 1
        if tokens[name].is_name and tokens[name - 1].says("WITH", "RECURSIVE", ","):
            end = next((to for to in range(at + 2, len(tokens)) if tokens[to].depth == depth), len(tokens))
            close = next((to for to in range(end, len(tokens)) if tokens[to].depth < depth), len(tokens))
            found.append((tokens[name].name.lower(), range(end, close)))
    return found


def _place(words: Words, start: int) -> _Place | None:
    if start >= len(words.tokens) or not words.tokens[start].is_name or words.tokens[start].says("LATERAL", "SELECT"):
        return None
    words.at = start
    name = tuple(words.name("a table"))
    if words.sees("("):
        if len(name) > 1 or name[0].lower() not in FUNCTIONS:
            return None
        arguments = tuple(_text(part) for part in words.parts())
        return _Place(start, words.at, name, None, arguments)
    end, moment = words.at, None
    words.take("FOR")
    if words.take("VERSION") or words.take("SYSTEM_VERSION") or words.take("TIMESTAMP") or words.take("SYSTEM_TIME"):
        words.expect("AS", "OF")
        if words.is_over:
            words.refuse("a moment is missing at the end")
        moment, end = _text([words.tokens[words.at]]), words.at + 1
    return _Place(start, end, name, moment, None)


def _text(part: list[Token]) -> str:
    token = part[0]
    if len(part) != 1 or token.kind not in ("text", "number"):
        raise OptionError(
            f"on Connect functions and AS OF take texts and numbers, not {' '.join(each.text for each in part)}"
        )
    return text_of(token.text) if token.kind == "text" else token.text.rstrip("lL")
