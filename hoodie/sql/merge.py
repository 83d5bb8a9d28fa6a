"""MERGE: a source is joined with a table, and each pair, or row without a partner, goes by the first clause that fits it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import DuplicateKeyError, OptionError
from hoodie.options.table import TableConfig
from hoodie.read.dataset import NewScan, TableDataset
from hoodie.sql.changes import Changes, checked_values
from hoodie.sql.duck import assigned, connection, quoted
from hoodie.write.keys import key_columns
from hoodie.write.prepare import require_columns

Result = TypeVar("Result")
TARGET, SOURCE = "hoodie_target", "hoodie_source"
_IN_TARGET, _IN_SOURCE, _CLAUSE, _PAIRS, _ROW = "*target", "*source", "*clause", "*pairs", "*row"
_BATCH_ROWS = 100_000


class Case(Enum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not_matched"
    NOT_MATCHED_BY_SOURCE = "not_matched_by_source"


@dataclass(frozen=True)
class Clause:
    case: Case
    condition: str | None
    updates: Mapping[str, Any] | None = None
    """Column -> expression of SQL, or a value."""
    all_columns: bool = False
    """Columns take the values that the source has under their names."""

    @property
    def deletes(self) -> bool:
        return self.updates is None and not self.all_columns


class Join(NamedTuple):
    """What a MERGE joins, and how."""

    on: str
    source_alias: str
    target_alias: str


class Merge(Generic[Result]):
    """A MERGE that has not run yet: `HoodieTable.merge` makes one. Clauses count in the order in which they are given.

    An expression is text of SQL, in DuckDB's dialect; it names columns of the table by the alias `t`, of the source by `s`. Any other
    value stands for itself. `condition` and `predicate` are two names of one argument.

    Example:
        >>> (table.merge(rows, on="t.id = s.id")
        ...     .when_matched_delete("s.op = 'D'")
        ...     .when_matched_update_all()
        ...     .when_not_matched_insert_all("s.op <> 'D'")
        ...     .execute())
    """

    def __init__(self, run: Callable[[Sequence[Clause]], Result], clauses: Sequence[Clause] = ()) -> None:
        self._run = run
        self._clauses = tuple(clauses)

    def _and(self, case: Case, condition: str | None, predicate: str | None, **what: Any) -> Merge[Result]:
        for earlier in self._clauses:
            if earlier.case is case and earlier.condition is None:
                raise OptionError(
                    f"a clause of this MERGE is never reached: the one before it takes all rows that are {case.value}; give that one "
                    "a condition, or put it last"
                )
        if not isinstance(text := predicate if condition is None else condition, str | None):
            raise OptionError(f"the condition of a clause is text of SQL, not {text!r:.60}")
        clause = Clause(case, text, **what)
        return Merge(self._run, (*self._clauses, clause))

    def when_matched_update(
        self, updates: Mapping[str, Any], condition: str | None = None, *, predicate: str | None = None
    ) -> Merge[Result]:
        """Give columns of a stored row that has a partner new values."""
        return self._and(Case.MATCHED, condition, predicate, updates=checked_values(updates))

    def when_matched_update_all(self, condition: str | None = None, *, predicate: str | None = None) -> Merge[Result]:
        """Give all columns that the source has its values; the others stay."""
        return self._and(Case.MATCHED, condition, predicate, all_columns=True)

    def when_matched_delete(self, condition: str | None = None, *, predicate: str | None = None) -> Merge[Result]:
        """Delete a stored row that has a partner."""
        return self._and(Case.MATCHED, condition, predicate)

    def when_not_matched_insert(
        self, updates: Mapping[str, Any], condition: str | None = None, *, predicate: str | None = None
    ) -> Merge[Result]:
        """Insert a row for one of the source that has no partner; columns that are not named are null."""
        return self._and(Case.NOT_MATCHED, condition, predicate, updates=checked_values(updates))

    def when_not_matched_insert_all(
        self, condition: str | None = None, *, predicate: str | None = None
    ) -> Merge[Result]:
        """Insert a row of the source that has no partner."""
        return self._and(Case.NOT_MATCHED, condition, predicate, all_columns=True)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, Any], condition: str | None = None, *, predicate: str | None = None
    ) -> Merge[Result]:
        """Give columns of a stored row without a partner new values."""
        return self._and(Case.NOT_MATCHED_BY_SOURCE, condition, predicate, updates=checked_values(updates))

    def when_not_matched_by_source_delete(
        self, condition: str | None = None, *, predicate: str | None = None
    ) -> Merge[Result]:
        """Delete a stored row without a partner."""
        return self._and(Case.NOT_MATCHED_BY_SOURCE, condition, predicate)

    def execute(self) -> Result:
        """Run it as one commit.

        Raises:
            OptionError: there is no clause; an expression cannot be understood; a record key would change.
            DuplicateKeyError: several rows of the source are for one stored row; an inserted row, or one that moves to another
                partition, has the key of one that is stored there.
            CommitConflictError: others changed the same rows, or inserted into the same partitions, ten times in a row.
        """
        if not self._clauses:
            raise OptionError(
                "this MERGE has no clause, so that it changes nothing: add when_matched_… or when_not_matched_…"
            )
        return self._run(self._clauses)


def moves(clauses: Sequence[Clause], config: TableConfig) -> bool:
    """Whether a clause may change where a row is."""
    keys = {*key_columns(config)}
    return any(
        (clause.all_columns or keys & {*(clause.updates or ())}) and clause.case is not Case.NOT_MATCHED
        for clause in clauses
    )


def finds_keys(join: Join, clauses: Sequence[Clause], config: TableConfig) -> bool:
    """Whether the join pairs a row of the source with any stored row that has its key: so that what it inserts is new."""
    found = set()
    for term in re.split(r"\s+and\s+", join.on.strip(), flags=re.IGNORECASE):
        sides = re.fullmatch(r'(\w+)\."?(\w+)"?\s*==?\s*(\w+)\."?(\w+)"?', term.strip())
        if sides is None:
            return False
        one, left, other, right = sides.groups()
        if {one, other} != {join.target_alias, join.source_alias} or left != right:
            return False
        found.add(left)
    keys = {*key_columns(config)}
    plain = all(
        (clause.updates or {}).get(name) == f"{join.source_alias}.{name}"
        for clause in clauses
        if clause.case is Case.NOT_MATCHED and not clause.all_columns
        for name in keys
    )
    return bool(found) and found <= keys and plain


def run_merge(
    changes: Changes,
    join: Join,
    clauses: Sequence[Clause],
    scan: NewScan,
    source: pa.Table,
    *,
    config: TableConfig,
    uri: str,
    memory_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The rows that a MERGE changes.

    Raises:
        OptionError, DuplicateKeyError: as `Merge.execute`.
    """
    parameters = _Parameters()
    query = _query(join, clauses, changes.columns, source.schema, config, parameters, table=uri)
    names, keys = changes.columns.names, key_columns(config)
    failed: list[Exception] = []
    with connection(uri, memory_bytes=memory_bytes, failed=failed) as con:
        con.register(TARGET, TableDataset(scan, failed))
        con.register(SOURCE, source)
        for batch in pa.RecordBatchReader.from_stream(con.sql(query, params=parameters or None)):
            rows = pa.Table.from_batches([batch])
            if pc.any(pc.greater(rows.column(_PAIRS), 1)).as_py():
                raise DuplicateKeyError(
                    f"several rows of the source are for one row of table {uri}, by {join.on}; nothing was written. Reduce the source "
                    "to one row a key first"
                )
            for number, clause in enumerate(clauses):
                fitting = rows.filter(pc.equal(rows.column(_CLAUSE), number))
                if not fitting.num_rows:
                    continue
                new = fitting.select(range(2, 2 + len(names))).rename_columns(names)
                old = fitting.select(range(2 + len(names), fitting.num_columns)).rename_columns(keys)
                if clause.deletes:
                    yield from changes.deleted(old)
                elif clause.case is Case.NOT_MATCHED:
                    yield from changes.inserted(new)
                else:
                    yield from changes.updated(old, new)
        yield from changes.rest()


def _query(
    join: Join,
    clauses: Sequence[Clause],
    schema: pa.Schema,
    source: pa.Schema,
    config: TableConfig,
    parameters: _Parameters,
    *,
    table: str,
) -> str:
    """Columns: those of the table, the stored values of key and partition columns, the number of the clause, and how many rows
    of the source are for the stored row.
    """
    t, s = quoted(join.target_alias), quoted(join.source_alias)
    for clause in clauses:
        require_columns(
            schema.names,
            clause.updates or (),
            what="MERGE's",
            table=table,
            fix="name a column of the table",
            says="the MERGE",
        )
    paired = {
        Case.MATCHED: f"{t}.{quoted(_IN_TARGET)} AND {s}.{quoted(_IN_SOURCE)}",
        Case.NOT_MATCHED: f"{t}.{quoted(_IN_TARGET)} IS NULL",
        Case.NOT_MATCHED_BY_SOURCE: f"{s}.{quoted(_IN_SOURCE)} IS NULL",
    }
    whens = " ".join(
        f"WHEN {paired[clause.case]}" + (f" AND ({clause.condition})" if clause.condition else "") + f" THEN {number}"
        for number, clause in enumerate(clauses)
    )
    picked = quoted(_CLAUSE)
    columns = [
        f"CASE {picked} "
        + " ".join(
            f"WHEN {number} THEN {_value(clause, field, t, s, source, parameters)}"
            for number, clause in enumerate(clauses)
        )
        + f" END AS {quoted(f'*{at}')}"
        for at, field in enumerate(schema)
    ]
    kept = [f"{t}.{quoted(name)} AS {quoted(f'*old {at}')}" for at, name in enumerate(key_columns(config))]
    pairs = f"CASE WHEN {paired[Case.MATCHED]} THEN count(*) OVER (PARTITION BY {t}.{quoted(_ROW)}) ELSE 1 END"
    how = _how(clauses)
    return (
        f"SELECT CASE {whens} END AS {picked}, {pairs} AS {quoted(_PAIRS)}, {', '.join([*columns, *kept])} "
        f"FROM (SELECT *, true AS {quoted(_IN_TARGET)}, row_number() OVER () AS {quoted(_ROW)} FROM {TARGET}) AS {t} {how} JOIN "
        f"(SELECT *, true AS {quoted(_IN_SOURCE)} FROM {SOURCE}) AS {s} ON {join.on} WHERE {picked} IS NOT NULL"
    )


def _how(clauses: Sequence[Clause]) -> str:
    """Rows of which side have to be there without a partner, too."""
    cases = {clause.case for clause in clauses}
    if Case.NOT_MATCHED_BY_SOURCE in cases:
        return "FULL OUTER" if Case.NOT_MATCHED in cases else "LEFT"
    return "RIGHT" if Case.NOT_MATCHED in cases else "INNER"


def _value(clause: Clause, field: pa.Field, t: str, s: str, source: pa.Schema, parameters: _Parameters) -> str:
    stored = "NULL" if clause.case is Case.NOT_MATCHED else f"{t}.{quoted(field.name)}"
    if clause.deletes:
        return stored
    if clause.all_columns:
        return f"{s}.{quoted(field.name)}" if field.name in source.names else stored
    updates = clause.updates or {}
    if field.name not in updates:
        return stored
    value = updates[field.name]
    return assigned(value if isinstance(value, str) else parameters.take(value), field)


class _Parameters(dict[str, Any]):
    """Values that stand for themselves, by the names under which the statement has them."""

    def take(self, value: Any) -> str:
        name = f"value_{len(self)}"
        self[name] = value
        return f"${name}"
