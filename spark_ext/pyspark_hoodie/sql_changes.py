"""UPDATE, DELETE and MERGE as one SELECT of the new rows, for Connect clients, whose server has no hoodie catalog.

Only clauses are found here. Expressions stay as they were written, and Spark gives them their meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from hoodie.errors import OptionError
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from pyspark_hoodie.sql_words import Words, quoted_name, within

TARGET = "hoodie_part_target"
"""What the SELECT calls the table: its columns, its record keys and its partition paths."""
_CLAUSE, _TIMES = "hoodie_clause", "hoodie_times"
_NO_ROW = f"CAST(NULL AS STRING) AS {RECORD_KEY}, CAST(NULL AS STRING) AS {PARTITION_PATH}"
TWO_ROWS = "MERGE: several rows of the source match one row of the table; nothing was written"
MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"


class Changes(NamedTuple):
    """A SELECT of key and path of stored rows, whether they go, and new values."""

    select: str
    only_deletes: bool
    """There are no new values."""


class _Clause(NamedTuple):
    """`WHEN … THEN …` of a MERGE; without values it deletes."""

    case: str
    condition: str
    values: Mapping[str, str] | None


def changes_of(words: Words, first: str, columns: Mapping[str, str]) -> Changes:
    """What the statement makes of rows.

    Args:
        words: stand before the name of the table.
        first: UPDATE, DELETE or MERGE.
        columns: of the table, with their types.

    Raises:
        OptionError: a clause cannot be understood, or gives a value to what is no column of the table.
    """
    maker = _Maker(words, columns)
    return {"UPDATE": maker.update, "DELETE": maker.delete, "MERGE": maker.merge}[first]()


def assigned_column(parts: Sequence[str], columns: Collection[str]) -> str:
    """The one of the table's columns that an assignment names.

    Raises:
        OptionError: it names none, or a field inside of one.
    """
    name = next((each for each in columns if each.lower() == parts[0].lower()), None)
    if name is None:
        raise OptionError(f"{'.'.join(parts)} is no column of the table ({', '.join(columns)})")
    if len(parts) > 1:
        raise OptionError(f"{'.'.join(parts)} is a field: on Connect set the whole column, with named_struct(…)")
    return name


class _Maker:
    def __init__(self, words: Words, columns: Mapping[str, str]) -> None:
        self.words = words
        self.columns = columns
        self.table: Sequence[str] = ()
        """The parts of its name."""

    def target(self, *ends: str) -> str:
        """Passes the name of the table and its alias, and gives what expressions call it."""
        self.table = parts = self.words.name("the name of the table")
        return self.alias(*ends) or quoted_name(parts[-1:] if "/" not in parts[-1] else ["hoodie_target"])

    def alias(self, *ends: str) -> str | None:
        words = self.words
        if words.take("AS") or not (words.is_over or any(words.sees(end) for end in ends)):
            return quoted_name(words.name("an alias"))
        return None

    def delete(self) -> Changes:
        alias = self.target("WHERE")
        return Changes(f"SELECT {_row(alias)}, true AS `{DELETED}` FROM {TARGET} AS {alias} {self.rest()}", True)

    def update(self) -> Changes:
        alias = self.target("SET")
        self.words.expect("SET")
        end = self.words.find("WHERE")
        given = self.assignments(alias, end)
        self.words.at = end
        values = ", ".join(
            f"CAST({given[name]} AS {kind}) AS `{name}`" if name in given else f"{alias}.`{name}`"
            for name, kind in self.columns.items()
        )
        head = f"{_row(alias)}, false AS `{DELETED}`"
        return Changes(f"SELECT {head}, {values} FROM {TARGET} AS {alias} {self.rest()}", False)

    def rest(self) -> str:
        return self.words.slice(self.words.at, len(self.words.tokens))

    def assignments(self, alias: str, end: int) -> dict[str, str]:
        words = self.words
        found: dict[str, str] = {}
        start = words.at
        commas = [at for at in range(start, end) if words.tokens[at].depth == 0 and words.tokens[at].says(",")]
        for first, last in pairwise([start - 1, *commas, end]):
            words.at = first + 1
            parts = within(within(words.name("a column to set"), [alias.strip("`")]), self.table)
            words.expect("=")
            name = assigned_column(parts, self.columns)
            if name in found:
                words.refuse(f"column {name} is set twice")
            found[name] = words.slice(words.at, last)
        words.at = end
        return found

    # -- MERGE.

    def merge(self) -> Changes:
        words = self.words
        target = self.target("USING")
        words.expect("USING")
        source, source_alias = words.source()
        words.expect("ON")
        when = words.find("WHEN")
        condition = words.slice(words.at, when)
        words.at = when
        clauses = []
        while not words.is_over:
            clauses.append(self.clause(target, source_alias))
        if not clauses:
            words.refuse("a MERGE has at least one WHEN … THEN …")
        only_deletes = all(clause.values is None for clause in clauses)
        left, right = f"{TARGET} AS {target}", source
        joins = {
            MATCHED: f"{left} JOIN {right}",
            NOT_MATCHED: f"{right} LEFT ANTI JOIN {left}",
            BY_SOURCE: f"{left} LEFT ANTI JOIN {right}",
        }
        selects = []
        for case, join in joins.items():
            mine = [clause for clause in clauses if clause.case == case]
            if mine:
                rows = _NO_ROW if case == NOT_MATCHED else _row(target)
                times = f"count(*) OVER (PARTITION BY {target}.{RECORD_KEY}, {target}.{PARTITION_PATH})"
                times = times if case == MATCHED and not _only_deletes(mine) else "1"
                selects.append(self.group(mine, rows, times, f"{join} ON {condition}", only_deletes=only_deletes))
        return Changes(" UNION ALL ".join(selects), only_deletes)

    def group(self, clauses: Sequence[_Clause], rows: str, times: str, joined: str, *, only_deletes: bool) -> str:
        """The rows of one case."""
        number = " ".join(f"WHEN {clause.condition} THEN {at}" for at, clause in enumerate(clauses))
        deletes = [str(at) for at, clause in enumerate(clauses) if clause.values is None]
        names = [] if only_deletes else [f"`{name}`" for name in self.columns]
        values = [] if only_deletes else [self.value(clauses, name, kind) for name, kind in self.columns.items()]
        flag = f"{_CLAUSE} IN ({', '.join(deletes)})" if deletes else "false"
        if times != "1":
            flag = f"IF({_TIMES} > 1, CAST(raise_error('{TWO_ROWS}') AS BOOLEAN), {flag})"
        inner = ", ".join([rows, f"CASE {number} END AS {_CLAUSE}", f"{times} AS {_TIMES}", *values])
        outer = ", ".join([RECORD_KEY, PARTITION_PATH, f"{flag} AS `{DELETED}`", *names])
        return f"SELECT {outer} FROM (SELECT {inner} FROM {joined}) WHERE {_CLAUSE} IS NOT NULL"

    def value(self, clauses: Sequence[_Clause], name: str, kind: str) -> str:
        whens = " ".join(
            f"WHEN {at} THEN CAST({clause.values[name]} AS {kind})"
            for at, clause in enumerate(clauses)
            if clause.values is not None
        )
        return f"CASE {_CLAUSE} {whens} END AS `{name}`" if whens else f"CAST(NULL AS {kind}) AS `{name}`"

    def clause(self, target: str, source: str) -> _Clause:
        words = self.words
        words.expect("WHEN")
        case = NOT_MATCHED if words.take("NOT") else MATCHED
        words.expect("MATCHED")
        if case == NOT_MATCHED and words.take("BY"):
            case = NOT_MATCHED if words.take("TARGET") else BY_SOURCE
            if case == BY_SOURCE:
                words.expect("SOURCE")
        condition, then = "true", words.find("THEN")
        if words.take("AND"):
            condition = f"({words.slice(words.at, then)})"
        words.at = then
        words.expect("THEN")
        end = words.find("WHEN")
        if words.take("DELETE"):
            return _Clause(case, condition, None)
        whole = {name: f"{source}.`{name}`" for name in self.columns}
        if words.take("UPDATE"):
            words.expect("SET")
            if words.take("*"):
                return _Clause(case, condition, whole)
            kept = {name: f"{target}.`{name}`" for name in self.columns}
            return _Clause(case, condition, {**kept, **self.assignments(target, end)})
        words.expect("INSERT")
        if words.take("*"):
            return _Clause(case, condition, whole)
        columns = list(self.columns)
        if words.sees("("):
            named = ([token.name for token in part if token.is_name][-1:] for part in words.parts())
            columns = [assigned_column(parts, self.columns) for parts in named]
        words.expect("VALUES")
        values = [words.text[part[0].start : part[-1].end] for part in words.parts()]
        if len(values) != len(columns):
            words.refuse(f"an INSERT has {len(columns)} columns and {len(values)} values")
        empty = dict.fromkeys(self.columns, "NULL")
        return _Clause(case, condition, {**empty, **dict(zip(columns, values, strict=True))})


def _only_deletes(clauses: Sequence[_Clause]) -> bool:
    """Several rows of the source may delete one row."""
    return len(clauses) == 1 and clauses[0].values is None and clauses[0].condition == "true"


def _row(alias: str) -> str:
    return f"{alias}.{RECORD_KEY}, {alias}.{PARTITION_PATH}"
