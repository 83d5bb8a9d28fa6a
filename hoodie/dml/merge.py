"""MERGE: a source is joined with a table, and each pair, or row without a partner, goes by the first clause that fits it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.dml.changes import Changes, checked_values, require_whole_columns
from hoodie.dml.duck import assigned, connection, quoted, refusals, register
from hoodie.dml.equalities import Equalities, partners_within
from hoodie.dml.merge_plan import Case, Clause, MergePlan, Tally
from hoodie.errors import DuplicateKeyError, OptionError, SchemaError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.read.dataset import TableDataset
from hoodie.read.pushdown import NewScan, Query
from hoodie.write.keys import key_columns
from hoodie.write.placement import is_global

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")
TARGET, SOURCE = "hoodie_target", "hoodie_source"
_SUBQUERY = re.compile(r"\(\s*(select|with|from)\b", re.IGNORECASE)
_IN_TARGET, _IN_SOURCE, _CLAUSE, _PAIRS, _ROW, _MET = "*target", "*source", "*clause", "*pairs", "*row", "*met"


class Join(NamedTuple):
    """What a MERGE joins, and how."""

    on: str
    source_alias: str
    target_alias: str

    def equalities(self, table: str) -> Equalities:
        """Raises OptionError, which names the table, for what is no condition."""
        with refusals(table):
            return Equalities.of(self.on, target=self.target_alias, source=self.source_alias)


class Merge(Generic[Result]):
    """A MERGE that has not run yet: `HoodieTable.merge` makes one. Clauses count in the order in which they are given.

    An expression is text of SQL, in DuckDB's dialect, on Spark in Spark's; it names columns of the table by the alias `t`, of the
    source by `s`. Any other value stands for itself. `condition` and `predicate` are two names of one argument.

    Example:
        >>> (table.merge(rows, on="t.id = s.id")
        ...     .when_matched_delete("s.op = 'D'")
        ...     .when_matched_update_all()
        ...     .when_not_matched_insert_all("s.op <> 'D'")
        ...     .execute())
    """

    def __init__(
        self,
        run: Callable[[Sequence[Clause]], Result],
        explain: Callable[[Sequence[Clause]], MergePlan],
        clauses: Sequence[Clause] = (),
    ) -> None:
        self._run = run
        self._explain = explain
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
        return Merge(self._run, self._explain, (*self._clauses, clause))

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
            DuplicateKeyError: several rows of the source are for one stored row, or are inserted with one key; a row that moves to
                another partition has the key of one that is stored there.
            KeyFieldError: a clause names no column of the table. SchemaError: a value does not fit its column, or the source has a
                column of the table in another case.
            CommitConflictError: others changed the same rows, or inserted into the same partitions, ten times in a row.
        """
        return self._run(self._some_clauses())

    def explain(self) -> MergePlan:
        """Say what `execute` would do to the table as it is now, and write nothing.

        It reads what `execute` reads: the source is joined with the table, and the index is asked where rows go. The bytes are an
        estimate.

        Raises:
            As `execute`, but for CommitConflictError.

        Example:
            >>> print(table.merge(rows, on="t.id = s.id").when_matched_update_all().explain())
            MERGE into trips, not run: 2 of 3 rows of the source meet a stored row
              when matched then update *: 2 rows updated
              writes about 1.2 MB to 1 file group in 1 partition: 1 rewritten
        """
        return self._explain(self._some_clauses())

    def _some_clauses(self) -> Sequence[Clause]:
        if not self._clauses:
            raise OptionError(
                "this MERGE has no clause, so that it changes nothing: add when_matched_… or when_not_matched_…"
            )
        return self._clauses


def moves(clauses: Sequence[Clause], config: TableConfig) -> bool:
    """Whether a clause may change where a row is, or a row may be inserted where one is deleted."""
    keys = {*key_columns(config)}
    inserts = any(clause.case is Case.NOT_MATCHED for clause in clauses)
    return any(
        (clause.deletes and inserts) or (clause.all_columns or keys & {*(clause.updates or ())})
        for clause in clauses
        if clause.case is not Case.NOT_MATCHED
    )


def is_upsert(
    equal: Equalities,
    clauses: Sequence[Clause],
    schema: pa.Schema,
    source: pa.Schema,
    config: TableConfig,
    options: WriteOptions,
) -> bool:
    """Whether an upsert of the source does the same: a row of it becomes what is stored for its key, be there a stored one or not.

    Then nothing is joined, which would cost more than the write of logs does.
    """
    takes_all = all(each.all_columns and each.condition is None for each in clauses)
    names, keys = {name for name, _ in equal.pairs}, {*key_columns(config)}
    # Where keys are unique in the whole table the write finds a row in whatever partition it is.
    needed = {*config.record_key_fields} if is_global(config, options) else keys
    return (
        takes_all
        and {each.case for each in clauses} == {Case.MATCHED, Case.NOT_MATCHED}
        and {*schema.names} <= {*source.names}
        and not config.generates_keys
        and equal.are_all
        and all(left == right for left, right in equal.pairs)
        and needed <= names <= keys
        and all(_makes_one_key(schema.field(name).type, source.field(name).type) for name in names)
    )


def _makes_one_key(stored: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of these types that SQL finds equal make equal keys. Where only the keys are equal, an insert is an upsert."""
    texts = pa.types.is_string(stored) and (pa.types.is_string(other) or pa.types.is_large_string(other))
    numbers = pa.types.is_integer(stored) and pa.types.is_integer(other)
    return (
        texts or numbers or bool(stored == other and not (pa.types.is_floating(stored) or pa.types.is_nested(stored)))
    )


def run_merge(
    changes: Changes,
    join: Join,
    equal: Equalities,
    clauses: Sequence[Clause],
    scan: NewScan,
    source: pa.Table,
    tables: Mapping[str, Any],
    *,
    config: TableConfig,
    options: WriteOptions,
    uri: str,
    memory_bytes: int,
    tally: Tally | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows that a MERGE changes. `tables`: Arrow data or Datasets by name, for subqueries. `tally`: counts them.

    Raises:
        OptionError, DuplicateKeyError: as `Merge.execute`.
    """
    parameters = _Parameters()
    names, keys = changes.columns.names, key_columns(config)
    expressions = _expressions(clauses, changes.columns, source.schema, join, parameters, table=uri)
    if tally is None and is_upsert(equal, clauses, changes.columns, source.schema, config, options):
        yield from changes.inserted(source.select(names))
        yield from changes.rest()
        return
    updates = [n for n, clause in enumerate(clauses) if clause.case is not Case.NOT_MATCHED and not clause.deletes]
    numbers = [at for at in range(len(names)) if any((number, at) not in expressions for number in updates)]
    query = _query(join, clauses, {at: names[at] for at in numbers}, expressions, keys, all_pairs=tally is not None)
    failed: list[Exception] = []
    if all(clause.case is not Case.NOT_MATCHED_BY_SOURCE for clause in clauses):
        scan = _within(scan, partners_within(equal, changes.columns, source))
    with connection(uri, memory_bytes=memory_bytes, failed=failed) as con:
        register(con, {**tables, TARGET: TableDataset(scan), SOURCE: source}, failed)
        _check_sides(con, join, clauses)
        for batch in pa.RecordBatchReader.from_stream(con.sql(query, params=parameters or None)):
            rows = pa.Table.from_batches([batch])
            if pc.any(pc.greater(rows.column(_PAIRS), 1)).as_py():
                raise DuplicateKeyError(
                    f"several rows of the source match one row of table {uri}, by {join.on}; nothing was written. Keep one of them in "
                    "the source"
                )
            if tally is not None:
                tally.matched += pc.sum(rows.column(_MET)).as_py() or 0
            for number, clause in enumerate(clauses):
                fitting = rows.filter(pc.equal(rows.column(_CLAUSE), number))
                if not fitting.num_rows:
                    continue
                if tally is not None:
                    tally.by_clause[number] += fitting.num_rows
                old = fitting.select([f"*old {at}" for at in range(len(keys))]).rename_columns(keys)
                if clause.deletes:
                    yield from changes.deleted(old)
                    continue
                inserts = clause.case is Case.NOT_MATCHED
                values = [
                    fitting.column(_given_as(number, at))
                    if (number, at) in expressions
                    else pa.nulls(fitting.num_rows, field.type)
                    if inserts
                    else fitting.column(f"*{at}")
                    for at, field in enumerate(changes.columns)
                ]
                new = pa.table(values, names)
                yield from changes.inserted(new) if inserts else changes.updated(old, new)
        yield from changes.rest()


def _within(scan: NewScan, bounds: pc.Expression | None) -> NewScan:
    """The scans, of rows within these bounds where that leaves files out: else to compare each row costs more than the join does."""
    if bounds is None:
        return scan

    def within(columns: Sequence[str] | None, where: Any) -> Query:
        every, some = scan(columns, where), scan(columns, bounds if where is None else bounds & where)
        return some if len(some.plan.tasks) < len(every.plan.tasks) else every

    return within


def _query(
    join: Join,
    clauses: Sequence[Clause],
    unchanged: Mapping[int, str],
    expressions: Mapping[tuple[int, int], str],
    keys: Sequence[str],
    *,
    all_pairs: bool,
) -> str:
    """Columns: the number of the clause, how many source rows are for the stored row, the stored values of the `unchanged` columns,
    those of key and partition columns, and what clauses give.

    `all_pairs`: pairs that no clause fits are there, too, and a column tells which rows are pairs.

    Each clause has columns of its own: in one column the values of all of them, and the stored ones, would get one type.
    """
    t, s = quoted(join.target_alias), quoted(join.source_alias)
    paired = {
        Case.MATCHED: f"{t}.{quoted(_IN_TARGET)} AND {s}.{quoted(_IN_SOURCE)}",
        Case.NOT_MATCHED: f"{t}.{quoted(_IN_TARGET)} IS NULL",
        Case.NOT_MATCHED_BY_SOURCE: f"{s}.{quoted(_IN_SOURCE)} IS NULL",
    }
    whens = " ".join(
        f"WHEN {paired[clause.case]}" + (f" AND ({clause.condition})" if clause.condition else "") + f" THEN {number}"
        for number, clause in enumerate(clauses)
    )
    clause_of = f"CASE {whens} END"
    # DuckDB does not repeat an expression with a subquery by its name.
    picked = f"({clause_of})" if any(_SUBQUERY.search(each.condition or "") for each in clauses) else quoted(_CLAUSE)
    columns = [f"{t}.{quoted(name)} AS {quoted(f'*{at}')}" for at, name in unchanged.items()]
    columns += [f"{t}.{quoted(name)} AS {quoted(f'*old {at}')}" for at, name in enumerate(keys)]
    columns += [
        f"CASE WHEN {picked} = {number} THEN {value} END AS {quoted(_given_as(number, at))}"
        for (number, at), value in expressions.items()
    ]
    counted = "count(*)" + (f" FILTER (WHERE {picked} IS NOT NULL)" if all_pairs else "")
    pairs = f"CASE WHEN {paired[Case.MATCHED]} THEN {counted} OVER (PARTITION BY {t}.{quoted(_ROW)}) ELSE 1 END"
    is_pair = f"({t}.{quoted(_IN_TARGET)} IS NOT NULL AND {s}.{quoted(_IN_SOURCE)} IS NOT NULL)"
    if all_pairs:
        columns.append(f"{is_pair} AS {quoted(_MET)}")
    or_pair = f" OR {is_pair}" if all_pairs else ""
    how = _how(clauses)
    return (
        f"SELECT {clause_of} AS {quoted(_CLAUSE)}, {pairs} AS {quoted(_PAIRS)}, {', '.join(columns)} "
        f"FROM (SELECT *, true AS {quoted(_IN_TARGET)}, row_number() OVER () AS {quoted(_ROW)} FROM {TARGET}) AS {t} {how} JOIN "
        f"(SELECT *, true AS {quoted(_IN_SOURCE)} FROM {SOURCE}) AS {s} ON {join.on} WHERE {picked} IS NOT NULL{or_pair}"
    )


def _check_sides(con: duckdb.DuckDBPyConnection, join: Join, clauses: Sequence[Clause]) -> None:
    """Raises an error of DuckDB where a clause for rows of one side names columns of the other, which are null in the join."""
    sides = {
        Case.NOT_MATCHED: f"{SOURCE} AS {quoted(join.source_alias)}",
        Case.NOT_MATCHED_BY_SOURCE: f"{TARGET} AS {quoted(join.target_alias)}",
    }
    for clause in clauses:
        texts = [text for text in (clause.condition, *(clause.updates or {}).values()) if isinstance(text, str)]
        if texts and clause.case in sides:
            con.execute(f"EXPLAIN SELECT {', '.join(f'({text})' for text in texts)} FROM {sides[clause.case]}")


def _how(clauses: Sequence[Clause]) -> str:
    """Rows of which side have to be there without a partner, too."""
    cases = {clause.case for clause in clauses}
    if Case.NOT_MATCHED_BY_SOURCE in cases:
        return "FULL OUTER" if Case.NOT_MATCHED in cases else "LEFT"
    return "RIGHT" if Case.NOT_MATCHED in cases else "INNER"


def _expressions(
    clauses: Sequence[Clause], schema: pa.Schema, source: pa.Schema, join: Join, parameters: _Parameters, *, table: str
) -> dict[tuple[int, int], str]:
    """(Number of a clause, number of a column) -> the expression that the clause has for it.

    Raises:
        KeyFieldError: a clause names no column of the table. SchemaError: the source has a column in another case.
    """
    t, s = quoted(join.target_alias), quoted(join.source_alias)
    expressions: dict[tuple[int, int], str] = {}
    for number, clause in enumerate(clauses):
        updates = clause.updates or {}
        require_whole_columns(updates, schema, what="MERGE's", table=table, says="the MERGE")
        if clause.all_columns:
            _require_case(schema, source, table)
        for at, field in enumerate(schema):
            if clause.all_columns and field.name in source.names and field.name not in META_COLUMNS:
                expressions[number, at] = f"{s}.{quoted(field.name)}"
            elif field.name in updates:
                value = updates[field.name]
                text = assigned(value if isinstance(value, str) else parameters.take(value), field)
                zoned = pa.types.is_timestamp(field.type) and field.type.tz is not None
                # A text becomes a time beside one.
                expressions[number, at] = (
                    f"CASE WHEN true THEN {text} ELSE {t}.{quoted(field.name)} END" if zoned else text
                )
    return expressions


def _given_as(number: int, at: int) -> str:
    return f"*{number} {at}"


def _require_case(schema: pa.Schema, source: pa.Schema, table: str) -> None:
    by_lower_name = {name.lower(): name for name in schema.names}
    for name in source.names:
        column = by_lower_name.get(name.lower(), name)
        if name != column:
            raise SchemaError(
                f"column {name!r} of the source is {column!r} in table {table}\n"
                "  fix:     write both alike: case matters in names of columns"
            )


class _Parameters(dict[str, Any]):
    """Values that stand for themselves, by the names under which the statement has them."""

    def take(self, value: Any) -> str:
        name = f"value_{len(self)}"
        self[name] = value
        return f"${name}"
