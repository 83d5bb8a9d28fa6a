"""The clauses of a statement, as text; expressions stay what they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

from hoodie.dml.duck import quoted
from hoodie.dml.tokens import plain, statements, tokens_of
from hoodie.errors import OptionError

_CHANGES = "hudi_table_changes"
_CHANGES_OF_ROWS = ("INSERT", "UPDATE", "DELETE", "MERGE")


@dataclass(frozen=True)
class Moment:
    """A table in a query as it was: `trips VERSION AS OF '…'`, or `TIMESTAMP AS OF`."""

    table: str
    at: str


@dataclass(frozen=True)
class Pull:
    """`hudi_table_changes('trips', 'latest_state', since, until)` in a query: rows, or with `cdc` what became of them."""

    table: str
    images: bool
    since: str | None
    until: str | None


@dataclass(frozen=True)
class Query:
    """A statement that reads."""

    text: str
    """With a quoted name in place of each of `parts`."""
    parts: tuple[tuple[str, Moment | Pull], ...] = ()


@dataclass(frozen=True)
class Update:
    table: str
    alias: str
    values: tuple[tuple[str, str], ...]
    where: str | None
    before: str
    """WITH and its queries, or nothing."""


@dataclass(frozen=True)
class Delete:
    table: str
    alias: str
    where: str | None
    before: str


@dataclass(frozen=True)
class Insert:
    table: str
    columns: tuple[str, ...] | None
    query: Query
    overwrites: bool


@dataclass(frozen=True)
class MergeClause:
    """`WHEN … THEN …`; neither `all_columns` nor `values`: a delete."""

    case: str
    """As the members of `merge.Case` are called."""
    condition: str | None
    values: tuple[tuple[str | None, str], ...] | None = None
    """Column (None: by its place) and expression."""
    all_columns: bool = False


@dataclass(frozen=True)
class MergeInto:
    table: str
    alias: str
    source: Query
    source_alias: str
    on: str
    clauses: tuple[MergeClause, ...]


Statement = Query | Update | Delete | Insert | MergeInto


def split(text: str) -> Statement:
    """One statement.

    Raises:
        OptionError: it cannot be understood, or does something else than to read or change rows.
    """
    texts = statements(text)
    if len(texts) != 1:
        raise OptionError(f"sql takes one statement at a time, and this text has {len(texts)}: call it once for each")
    return _Reader(texts[0]).statement()


class _Reader:
    """Goes through the tokens of one statement."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.tokens = tokens_of(text)
        self.at = 0
        self.before = ""
        """WITH and its queries, in front of a statement that changes rows."""

    def statement(self) -> Statement:
        if self.tokens[0].says("WITH"):
            self.at = self.behind_with()
            self.before = self.slice(0, self.at)
        if self.take("MERGE"):
            return self.merge()
        if self.take("UPDATE"):
            return self.update()
        if self.take("DELETE"):
            return self.delete()
        if self.take("INSERT"):
            return self.insert()
        if self.tokens[0].says(
            "SELECT", "WITH", "FROM", "VALUES", "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT", "(", "EXPLAIN", "SHOW"
        ):
            return self.query(0, len(self.tokens))
        raise OptionError(
            f"a statement that begins with {self.tokens[0].text!r} is not for sql: it takes SELECT, INSERT, UPDATE, DELETE and MERGE; "
            "methods of HoodieTable do the rest, such as create_table, alter and the services"
        )

    def behind_with(self) -> int:
        """Where the statement begins that changes rows; 0: it is a query."""
        pairs = enumerate(pairwise(self.tokens), 1)
        verbs = (at for at, (end, verb) in pairs if end.text == ")" and not verb.depth and verb.says(*_CHANGES_OF_ROWS))
        return next(verbs, 0)

    def merge(self) -> MergeInto:
        self.expect("INTO")
        table = self.name("the table of the MERGE")
        alias = self.alias() or table
        self.expect("USING")
        start = self.at
        if self.take("("):
            self.at = self.find(")", depth=self.tokens[start].depth) + 1
            source, name = self.query(start, self.at, before="SELECT * FROM "), None
        else:
            name = self.name("the source of the MERGE")
            end = self.find("ON")
            last = end - 1
            if self.tokens[last].text == ")":  # columns of an alias, behind AS; else parameters of a function
                opening = max(at for at in range(end) if self.tokens[at].text == "(" and not self.tokens[at].depth)
                last = opening - 1 if self.tokens[opening - 2].says("AS") else last
            has_alias = self.tokens[last].is_name and last >= self.at and self.tokens[last - 1].text != "."
            self.at = (last - 1 if self.tokens[last - 1].says("AS") else last) if has_alias else end
            source = self.query(start, self.at, before="SELECT * FROM ")
        source_alias = self.alias() or name
        if source_alias is None:
            self.refuse("the query of a MERGE needs a name: USING (SELECT …) AS s")
        if self.at < len(self.tokens) and self.tokens[self.at].text == "(":
            start, self.at = self.at, self.find(")", depth=self.tokens[self.at].depth) + 1
            source = replace(source, text=f"{source.text} AS {quoted(source_alias)}{self.slice(start, self.at)}")
        self.expect("ON")
        start = self.at
        self.at = self.find("WHEN")
        on = self.slice(start, self.at)
        clauses = []
        while self.at < len(self.tokens):
            clauses.append(self.clause({table, alias}))
        return MergeInto(table, alias, source, source_alias, on, tuple(clauses))

    def clause(self, targets: set[str]) -> MergeClause:
        self.expect("WHEN")
        case = "MATCHED"
        if self.take("NOT"):
            case = "NOT_MATCHED"
        self.expect("MATCHED")
        if self.take("BY") and not self.take("TARGET"):
            self.expect("SOURCE")
            case = "NOT_MATCHED_BY_SOURCE"
        condition = None
        if self.take("AND"):
            start = self.at
            self.at = self.find("THEN")
            condition = self.slice(start, self.at)
        self.expect("THEN")
        end = self.find("WHEN", or_end=True)
        if self.take("DELETE"):
            return MergeClause(case, condition)
        if self.take("UPDATE"):
            self.expect("SET")
            if self.take("*"):
                return MergeClause(case, condition, all_columns=True)
            return MergeClause(case, condition, self.assignments(end, targets))
        self.expect("INSERT")
        if self.take("*"):
            return MergeClause(case, condition, all_columns=True)
        columns = self.columns()
        self.expect("VALUES")
        self.expect("(")
        values = self.list_parts(self.tokens[self.at - 1].depth + 1)
        if columns is not None and len(columns) != len(values):
            self.refuse(f"an INSERT has {len(columns)} columns and {len(values)} values")
        column_names: list[str | None] = [*columns] if columns is not None else [None] * len(values)
        return MergeClause(case, condition, tuple(zip(column_names, values, strict=True)))

    def update(self) -> Update:
        table = self.name("the table of the UPDATE")
        alias = self.alias("SET") or table
        self.expect("SET")
        end = self.find("WHERE", or_end=True)
        values = self.assignments(end, {table, alias})
        return Update(table, alias, values, self.where(), self.before)

    def delete(self) -> Delete:
        self.expect("FROM")
        table = self.name("the table of the DELETE")
        return Delete(table, self.alias("WHERE") or table, self.where(), self.before)

    def insert(self) -> Insert:
        overwrites = self.take("OVERWRITE")
        if not overwrites:
            self.expect("INTO")
        self.take("TABLE")
        table = self.name("the table of the INSERT")
        columns = self.columns()
        query = self.query(self.at, len(self.tokens), before="SELECT * FROM (" if self.before else "")
        if self.before:
            query = replace(query, text=f"{query.text})")
        return Insert(table, None if columns is None else tuple(columns), query, overwrites)

    def query(self, start: int, end: int, before: str = "") -> Query:
        """These tokens as a query, with names in place of moments and pulls."""
        out = f"{self.before} {before}"
        parts: list[tuple[str, Moment | Pull]] = []
        at, copied = start, self.tokens[start].start if start < end else len(self.text)
        while at < end:
            self.at = at
            replacement = self.moment(end) or self.pull()
            if replacement is None:
                at += 1
                continue
            part, next_at = replacement
            name = f"hoodie part {len(parts)}"
            parts.append((name, part))
            alias_text = (
                ""
                if next_at < end and self.tokens[next_at].is_name and not self.tokens[next_at].says(*_AFTER_A_TABLE)
                else f" AS {quoted(part.table)}"
            )
            out += self.text[copied : self.tokens[at].start].decode() + f'"{name}"{alias_text} '
            at, copied = next_at, self.tokens[next_at].start if next_at < len(self.tokens) else len(self.text)
        last = self.tokens[end - 1].end if end > start else copied
        self.at = end
        return Query(out + self.text[copied:last].decode(), tuple(parts))

    def moment(self, end: int) -> tuple[Moment, int] | None:
        at = self.at
        if not (self.tokens[at].is_name or self.tokens[at].is_text):
            return None
        words = self.tokens[at + 1 : at + 6]
        if words and words[0].says("FOR"):
            words = words[1:]
        if len(words) < 4 or not (
            words[0].says("VERSION", "TIMESTAMP") and words[1].says("AS") and words[2].says("OF")
        ):
            return None
        return Moment(plain(self.tokens[at]), plain(words[3])), self.tokens.index(words[3]) + 1

    def pull(self) -> tuple[Pull, int] | None:
        if not (
            self.tokens[self.at].says(_CHANGES.upper())
            and self.at + 1 < len(self.tokens)
            and self.tokens[self.at + 1].text == "("
        ):
            return None
        close = self.find(")", depth=self.tokens[self.at + 1].depth)
        words = [each for each in self.tokens[self.at + 2 : close] if each.text != ","]
        kinds = ("latest_state", "cdc")
        if not 2 <= len(words) <= 4 or plain(words[1]) not in kinds:
            self.refuse(f"{_CHANGES} takes ('table', 'latest_state' or 'cdc'[, since[, until]])")
        since, until = ([plain(each) for each in words[2:]] + [None, None])[:2]
        return Pull(plain(words[0]), plain(words[1]) == "cdc", None if since == "earliest" else since, until), close + 1

    # -- words ----------------------------------------------------------------------------------------------------------

    def where(self) -> str | None:
        if self.at == len(self.tokens):
            return None
        self.expect("WHERE")
        text = self.slice(self.at, len(self.tokens))
        self.at = len(self.tokens)
        return text

    def assignments(self, end: int, targets: set[str]) -> tuple[tuple[str, str], ...]:
        """`targets`: what the statement calls the table."""
        result = []
        prefixes = {name.lower() for name in targets}
        for start, stop in self.parts(self.at, end, self.tokens[self.at].depth if self.at < end else 0):
            equals = next((n for n in range(start, stop) if self.tokens[n].text == "="), None)
            if equals is None or equals == start or equals + 1 == stop:
                self.refuse(f"SET takes column = expression, not {self.slice(start, stop)!r}")
            names = [plain(each) for each in self.tokens[start:equals] if each.text != "."]
            parts = names[1:] if len(names) > 1 and names[0].lower() in prefixes else names
            result.append((".".join(parts), self.slice(equals + 1, stop)))
        self.at = end
        return tuple(result)

    def columns(self) -> list[str] | None:
        if not (self.at < len(self.tokens) and self.tokens[self.at].text == "("):
            return None
        if self.tokens[self.at + 1].says("SELECT", "WITH", "VALUES", "FROM"):
            return None
        self.at += 1
        start = self.at
        parts = self.list_parts(self.tokens[self.at - 1].depth + 1)
        names = [plain(each) for each in self.tokens[start : self.at - 1] if each.text != ","]
        if len(names) != len(parts):
            self.refuse(f"a list of columns has their names alone, not {', '.join(parts)!r}")
        return names

    def list_parts(self, depth: int) -> list[str]:
        """What stands between here and the closing parenthesis, parted by commas."""
        close = next((n for n in range(self.at, len(self.tokens)) if self.tokens[n].depth < depth), None)
        if close is None:
            self.refuse("a parenthesis is not closed")
        result = [self.slice(*each) for each in self.parts(self.at, close, depth)]
        self.at = close + 1
        return result

    def parts(self, start: int, end: int, depth: int) -> list[tuple[int, int]]:
        commas = [n for n in range(start, end) if self.tokens[n].text == "," and self.tokens[n].depth == depth]
        return list(zip([start, *(n + 1 for n in commas)], [*commas, end], strict=True))

    def slice(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[end - 1].end].decode() if end > start else ""

    def take(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at].says(word):
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.take(word):
            there = self.tokens[self.at].text if self.at < len(self.tokens) else "the end"
            self.refuse(f"{word} should stand before {there!r}")

    def name(self, what: str) -> str:
        if self.at >= len(self.tokens) or not (self.tokens[self.at].is_name or self.tokens[self.at].is_text):
            self.refuse(f"{what} is missing")
        self.at += 1
        return plain(self.tokens[self.at - 1])

    def alias(self, *but: str) -> str | None:
        if self.take("AS"):
            return self.name("a name after AS")
        if (
            self.at < len(self.tokens)
            and self.tokens[self.at].is_name
            and not self.tokens[self.at].says("USING", "ON", *but)
        ):
            return self.name("a name")
        return None

    def find(self, word: str, *, depth: int = 0, or_end: bool = False) -> int:
        for number in range(self.at, len(self.tokens)):
            if self.tokens[number].depth == depth and self.tokens[number].says(word):
                return number
        if or_end:
            return len(self.tokens)
        self.refuse(f"{word} is missing")

    def refuse(self, why: str) -> NoReturn:
        raise OptionError(f"this statement cannot be understood: {why}")


_AFTER_A_TABLE = (
    "WHERE", "GROUP", "ORDER", "LIMIT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "ON",
    "USING", "UNION", "INTERSECT", "EXCEPT", "HAVING", "WINDOW", "QUALIFY", "OFFSET", "SELECT", "TABLESAMPLE", "POSITIONAL", "PIVOT",
    "WHEN",
)  # fmt: skip
