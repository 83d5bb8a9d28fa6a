"""SQL over tables without Spark: `hoodie.sql`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import hoodie.dml
import hoodie.read
import hoodie.write
from hoodie.errors import HoodieError, OptionError, SchemaError
from hoodie.model.enums import WriteOperation
from hoodie.model.results import CommitResult
from hoodie.options.arguments import parse_text
from hoodie.statements import Beside
from hoodie.table import HoodieTable, is_table, open_table

if TYPE_CHECKING:
    import hoodie.dml.duck
    import hoodie.dml.merge
    import hoodie.dml.merge_plan
    import hoodie.dml.parameters
    import hoodie.dml.rows
    import hoodie.dml.split
    import hoodie.dml.tokens
    import hoodie.read.dataset
    import hoodie.write.inputs
    from hoodie.dml.split import Delete, Insert, MergeInto, Moment, Pull, Query, Update
    from hoodie.read.pushdown import NewScan

_MEMORY_BYTES = 1 << 30


def sql(
    statement: str,
    tables: Mapping[str, Any] | None = None,
    /,
    *,
    options: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    **named: Any,
) -> pa.Table | CommitResult:
    """Run an SQL statement on tables that it names. The statement is in DuckDB's dialect, and needs the extra `sql`.

    SELECT reads: columns and filters are pushed down into scans. `FROM trips VERSION AS OF '…'` and `TIMESTAMP AS OF` give an earlier
    state, with moments as `scan(as_of=…)` takes them; `hudi_table_changes('trips', 'latest_state', since[, until])` the rows that
    changed, and with 'cdc' each change. INSERT [OVERWRITE], UPDATE, DELETE and MERGE change a table: each is one commit. INSERT is an
    upsert where the table has ordering fields, else it adds the rows as `insert` does. A table that is not passed is named by its path
    in quotes: `FROM '/data/trips'`.

    Args:
        statement: one statement.
        tables: name -> a `HoodieTable`, a table's path, or Arrow, pandas or polars data; by keywords, too.
        options: Hudi's write options, for this statement.
        params: values for the parameters of the statement, such as {"low": 3} for `fare > :low`; a list for `city IN :cities`.

    Returns:
        The rows of a query as an Arrow table, which is held in memory; else what the commit did.

    Raises:
        OptionError: duckdb is not installed, or the statement cannot be understood.
        HoodieError: as the method that does the same.

    Example:
        >>> hoodie.sql("SELECT city, sum(fare) FROM trips GROUP BY city", trips=table).to_pandas()
        >>> hoodie.sql("UPDATE trips SET fare = fare * 1.1 WHERE id IN (SELECT id FROM late)", trips=table, late=frame)
    """
    parse_text(statement, what="statement")
    with hoodie.dml.duck.connection("", memory_bytes=_MEMORY_BYTES):  # says what is missing, and what no statement is
        parsed_statement = hoodie.dml.split.split(
            statement if params is None else hoodie.dml.parameters.with_values(statement, params)
        )
    all_tables = {**(tables or {}), **named}
    return _Session(_by_path(statement, {name.lower() for name in all_tables}) | all_tables, options).run(
        parsed_statement
    )


def statements_of(script: str) -> list[str]:
    """The statements of a script, which semicolons part. Raises OptionError: duckdb is not installed, or a text has no end."""
    with hoodie.dml.duck.connection("", memory_bytes=_MEMORY_BYTES):
        return hoodie.dml.tokens.statements(script)


_BEFORE_TABLES = ("FROM", "JOIN", "INTO", "UPDATE", "USING", "OVERWRITE", "TABLE")


def _by_path(statement: str, names: Container[str]) -> dict[str, Any]:
    """Tables that a statement calls by their paths."""
    words = hoodie.dml.tokens.tokens_of(statement)
    result = {}
    for before, word in pairwise(words):
        if before.says(*_BEFORE_TABLES) and (word.is_text or word.text.startswith('"')):
            path = hoodie.dml.tokens.plain(word)
            if path.lower() not in names and _is_there(path):
                result[path] = path
    return result


def _is_there(path: str) -> bool:
    with suppress(HoodieError):  # a storage that only DuckDB knows
        return is_table(path)
    return False


class _Session:
    def __init__(self, tables: Mapping[str, Any], options: Mapping[str, str] | None) -> None:
        self.tables = {name.lower(): _table_or_rows(name, each) for name, each in tables.items()}
        self.options = options

    def run(self, statement: Query | Update | Delete | Insert | MergeInto) -> pa.Table | CommitResult:
        split = hoodie.dml.split
        match statement:
            case split.Query():
                return self.rows(statement, self.data())
            case split.Insert():
                return self.insert(statement)
            case split.MergeInto():
                return self.merge(statement)
            case _:
                table = self.table(statement.table)
                values = None
                if isinstance(statement, split.Update):
                    values = _by_column(table, statement.values)
                change = hoodie.dml.rows.RowChange(statement.alias, values, statement.where, statement.before)
                return table._change_rows(change, partial(self.data, table), self.options)

    def data(self, table: HoodieTable | None = None, scan: NewScan | None = None) -> dict[str, Any]:
        """What is given, by name; each table as of one snapshot. `scan`: that of the table which is changed."""

        def of(each: Any) -> Any:
            if not isinstance(each, HoodieTable):
                return each
            pinned = scan if each is table and scan is not None else each._pinned()
            return hoodie.read.dataset.TableDataset(pinned)

        return {name: of(each) for name, each in self.tables.items()}

    def rows(self, query: Query, data: Mapping[str, Any]) -> pa.Table:
        failed: list[Exception] = []
        where = ", ".join(self.tables) or "(none)"
        with hoodie.dml.duck.connection(where, memory_bytes=_MEMORY_BYTES, failed=failed) as con:
            parts = {name: self.part(part) for name, part in query.parts}
            hoodie.dml.duck.register(con, {**data, **parts}, failed)
            return pa.RecordBatchReader.from_stream(con.sql(query.text)).read_all()

    def part(self, part: Moment | Pull) -> Any:
        table = self.table(part.table)
        dataset = hoodie.read.dataset.TableDataset
        if isinstance(part, hoodie.dml.split.Moment):
            return dataset(lambda columns, where: table.scan(columns, where, as_of=part.at))
        if part.images:  # its columns are not those of the table
            return table.changes(part.since, part.until, images="cdc").to_arrow()
        return dataset(lambda columns, where: table.changes(part.since, part.until, columns, where))

    def table(self, name: str) -> HoodieTable:
        result = self.tables.get(name.lower())
        if result is None and _is_there(name):
            result = self.tables[name.lower()] = open_table(name)
        if not isinstance(result, HoodieTable):
            there = ", ".join(other for other, each in self.tables.items() if isinstance(each, HoodieTable)) or "none"
            raise OptionError(f"the statement is about a table {name!r}, which is not given; tables that are: {there}")
        return result

    def insert(self, statement: Insert) -> CommitResult:
        table = self.table(statement.table)
        schema = table.schema

        def rows(scan: NewScan) -> pa.Table:
            result = self.rows(statement.query, self.data(table, scan))
            columns = [*_by_column(table, ((name, "") for name in statement.columns or ()))]
            columns = columns or (result.column_names if schema is None else schema.names)
            if len(columns) != result.num_columns:
                raise OptionError(
                    f"INSERT INTO {statement.table} has {len(columns)} columns ({', '.join(columns)}) and a query with "
                    f"{result.num_columns}"
                )
            result = result.rename_columns(columns)
            for field in schema or ():
                if field.name not in columns:
                    result = result.append_column(field.with_nullable(True), pa.nulls(result.num_rows, field.type))
                else:
                    result = _with_numbers_as(result, field)
            return result

        if statement.overwrites:
            operation = WriteOperation.INSERT_OVERWRITE
        else:
            operation = WriteOperation.UPSERT if table.config.ordering_fields else WriteOperation.INSERT
        return table._insert_found(rows, operation, self.options)

    def merge(self, statement: MergeInto) -> CommitResult:
        table = self.table(statement.table)
        names = [] if table.schema is None else table.schema.names

        def beside(scan: NewScan) -> Beside:
            data = self.data(table, scan)
            return Beside(self.rows(statement.source, data), data)

        join = hoodie.dml.merge.Join(statement.on, statement.source_alias, statement.alias)
        merge = table._merge_of(join, beside, self.options)
        case = hoodie.dml.merge_plan.Case
        for clause in statement.clauses:
            values = None
            if clause.values is not None:
                if None in dict(clause.values) and len(clause.values) != len(names):
                    raise OptionError(
                        f"an INSERT of the MERGE has {len(clause.values)} values, and table {table.config.name!r} {len(names)} columns"
                    )
                values = _by_column(
                    table,
                    [(names[at] if name is None else name, text) for at, (name, text) in enumerate(clause.values)],
                )
            merge = merge._and(
                case[clause.case], clause.condition, None, updates=values, all_columns=clause.all_columns
            )
        return merge.execute()


def _by_column(table: HoodieTable, values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Raises OptionError: a column gets two values."""
    result: dict[str, str] = {}
    for name, text in values:
        column = _column(table, name)
        if column in result:
            raise OptionError(f"the statement gives column {column!r} of table {table.config.name!r} two values")
        result[column] = text
    return result


def _column(table: HoodieTable, name: str) -> str:
    """A column as the table has it: in SQL the case of names does not count. One that it has not stays as it is."""
    alike = [each for each in (() if table.schema is None else table.schema.names) if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else name


def _table_or_rows(name: str, data: Any) -> Any:
    if isinstance(data, HoodieTable):
        return data
    if isinstance(data, str | PathLike):
        return open_table(data)
    try:
        return hoodie.write.inputs.reader_of(data, lambda: None).read_all()
    except SchemaError as exc:
        raise OptionError(
            f"{name}={data!r:.60} is no table: give a HoodieTable, a path, or Arrow, pandas or polars data"
        ) from exc


def _with_numbers_as(rows: pa.Table, field: pa.Field) -> pa.Table:
    """With the numbers of a column as the table has them: literals are DECIMAL or INTEGER. What does not fit, the write refuses."""
    at = rows.schema.get_field_index(field.name)
    column = rows.column(at)
    if column.type == field.type or not (_is_number(column.type) and _is_number(field.type)):
        return rows
    with suppress(pa.ArrowInvalid):
        return rows.set_column(at, field.name, column.cast(field.type))
    return rows


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
