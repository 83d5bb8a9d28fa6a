"""A database as a source: the rows of a table or a query after the last value of a column, or all of them each time.

The checkpoint is that of Apache Hudi's `JdbcSource`: the greatest value of the column. Rows of that very value may be committed after
it was read, and so may rows of a lesser one (`look_back`). They are looked at again, and those that were given before are told apart.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.ingestion.border_values import Border, border_of, parse_border
from hoodie.ingestion.database_connections import POSTGRESQL, SQLITE, Database
from hoodie.ingestion.database_rows import (
    Unseen,
    is_readable,
    note_rows,
    with_table_types,
    without_guessed_types,
    without_noted,
)
from hoodie.ingestion.source import Bounds, Checkpoint, Round
from hoodie.model.results import format_count

log = logging.getLogger("hoodie")

_BORDER, _SEEN, _LOOK_BACK = "border", "seen", "look_back"
_NO_DECIMALS: Mapping[str, pa.DataType] = {}
_ALL_ROWS_AT_ONCE = {"adbc.sqlite.query.batch_rows": str(1 << 30)}
"""SQLite's driver takes the types of the first so many rows, and fails where a later one has another."""


@dataclass(frozen=True)
class DatabaseSource:
    """`Source` of the rows of a database. Rows that are deleted there are not seen, but by their absence from a whole reading."""

    database: Database
    table: str | None = None
    query: str | None = None
    """Either of them is given, as SQL writes it."""
    column: str | None = None
    """Whose values grow: a number, a time or a text. None: all rows are read each time."""
    strict: bool = False
    """Rows of the greatest value that was read are never looked at again, as Apache Hudi has it."""
    look_back: float = 0.0
    """How far behind that value a row may be committed later: seconds of a time, otherwise in the column's own unit."""

    def __str__(self) -> str:
        return f"{self._what} of {self.database}"

    @property
    def _what(self) -> str:
        return f"table {self.table}" if self.table else "a query"

    @property
    def _rows(self) -> str:
        return f"{self.table} hoodie_source" if self.table else f"({self.query}) hoodie_source"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        with self.database.connected(self._what) as connection:
            if self.column is None:
                rows = self._read(connection, "", (), schema)
                return Round(rows, Checkpoint(""), pieces=1, bytes=rows.nbytes, whole=True, repeats=after is not None)
            border = self._border(connection, after)
            if border is None:
                self._tell_of_nulls(connection)
            condition, values = self._condition(border, bounds.rows)
            rows = self._read(connection, f" WHERE {condition} ORDER BY {self.column}", values, schema)
        return self._round(rows, border, after, bounds)

    def _condition(self, border: Border | None, most: int | None) -> tuple[str, list[str]]:
        """Which rows: at the border those that are looked at again, and behind it the first so many, with all of the last value."""
        values: list[str] = []

        def literal(value: Border) -> str:
            if not value.is_text:
                return value.literal
            values.append(value.text)
            return f"${len(values)}" if self.database.scheme == POSTGRESQL else "?"

        c = self.column
        begins = []
        if border is not None:
            begins.append(
                f"{c} > {literal(border)}" if self.strict else f"{c} >= {literal(border.back(self.look_back))}"
            )
        if most is not None:
            newer = f"WHERE {c} > {literal(border)}" if border is not None else f"WHERE {c} IS NOT NULL"
            last = (
                f"(SELECT max({c}) FROM (SELECT {c} FROM {self._rows} {newer} ORDER BY {c} LIMIT {most}) hoodie_border)"
            )
            begins.append(f"{c} <= {last}" if border is None else f"{c} <= COALESCE({last}, {literal(border)})")
        return " AND ".join(begins) or f"{c} IS NOT NULL", values

    def _round(self, rows: pa.Table, border: Border | None, after: Checkpoint | None, bounds: Bounds) -> Round | None:
        if not rows.num_rows:
            return None
        column = rows.column(self._place(rows.schema))
        newest = border_of(column[-1], f"column {self.column} of {self}")
        unseen = Unseen(rows)
        if border is not None and after is not None and not self.strict:
            unseen = without_noted(rows, after.more.get(_SEEN))
            if not unseen.rows.num_rows:
                return None
            if _SEEN not in after.more or self.look_back > float(str(after.more.get(_LOOK_BACK, 0))):
                unseen = unseen._replace(repeats=True)
        more: dict[str, object] = {_BORDER: newest.kind}
        if not self.strict:
            more[_LOOK_BACK] = self.look_back
            again = newest.back(self.look_back).not_before(column)
            more[_SEEN] = note_rows(rows.filter(again))
        return Round(
            unseen.rows,
            Checkpoint(newest.text, more),
            pieces=1,
            bytes=unseen.rows.nbytes,
            waiting=int(bounds.rows is not None and rows.num_rows >= bounds.rows),
            repeats=unseen.repeats,
        )

    def _border(self, connection: Any, after: Checkpoint | None) -> Border | None:
        if after is None or not after.text:
            return None
        if _BORDER in after.more:
            return parse_border(after.text, str(after.more[_BORDER]))
        if after.more:
            raise OptionError(
                f"the checkpoint {after.text!r} is not of a database: another source has been written to this table under the same "
                "name; give name="
            )
        first = self._fetch(
            connection, f"SELECT {self.column} FROM {self._rows} WHERE {self.column} IS NOT NULL LIMIT 1"
        )
        if not first.num_rows:
            return None
        sample = with_table_types(first, None, {}, origin=str(self)).column(0)[0]
        return parse_border(after.text, border_of(sample, f"column {self.column} of {self}").kind)

    def _tell_of_nulls(self, connection: Any) -> None:
        counted = self._fetch(connection, f"SELECT count(*) FROM {self._rows} WHERE {self.column} IS NULL")
        count = int(counted.column(0)[0].as_py())
        if count:
            log.warning("%s of %s, whose %s is null, are not read", format_count(count, "row"), self, self.column)

    def _read(self, connection: Any, rest: str, values: Sequence[str], schema: pa.Schema | None) -> pa.Table:
        columns, decimals = "*", _NO_DECIMALS
        if self.database.scheme == POSTGRESQL:
            columns, decimals = self._postgresql_columns(connection), self._postgresql_decimals(connection)
        rows = self._fetch(connection, f"SELECT {columns} FROM {self._rows}{rest}", values)
        if self.database.scheme == SQLITE:
            rows = without_guessed_types(rows, schema)
        return with_table_types(rows, schema, decimals, origin=str(self))

    def _fetch(self, connection: Any, statement: str, values: Sequence[str] = ()) -> pa.Table:
        settings = _ALL_ROWS_AT_ONCE if self.database.scheme == SQLITE else None
        with connection.cursor(adbc_stmt_kwargs=settings) as cursor:
            cursor.execute(statement, tuple(values) or None)
            result: pa.Table = cursor.fetch_arrow_table()
            return result

    def _postgresql_columns(self, connection: Any) -> str:
        """All, those as text that Arrow has no type for."""
        schema = self._fetch(connection, f"SELECT * FROM {self._rows} LIMIT 0").schema
        if all(is_readable(each.type) for each in schema):
            return "*"
        return ", ".join(_readable(_quoted(each.name), each.type) for each in schema)

    def _postgresql_decimals(self, connection: Any) -> Mapping[str, pa.DataType]:
        """Digits of numbers, as the table declares them; their modifier has them in its halves."""
        if self.table is None:
            return {}
        rows = self._fetch(
            connection,
            "SELECT attname::text, atttypmod - 4 FROM pg_attribute "
            "WHERE attrelid = to_regclass($1) AND atttypid = 'numeric'::regtype AND atttypmod > 0",
            (self.table,),
        )
        pairs: Any = zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
        digits = ((name, modifier >> 16 & 0xFFFF, modifier & 0x7FF) for name, modifier in pairs)
        return {name: pa.decimal128(all_of_them, after) for name, all_of_them, after in digits if all_of_them <= 38}

    def _place(self, schema: pa.Schema) -> int:
        name = str(self.column).strip('"')
        fits = [at for at, each in enumerate(schema.names) if each.lower() == name.lower()]
        exact = [at for at in fits if schema.names[at] == name]
        if len(exact or fits) != 1:
            raise OptionError(
                f"{self} gives no column {name!r}, which is its incremental column; it gives {', '.join(schema.names)}"
            )
        return (exact or fits)[0]


def _readable(name: str, kind: pa.DataType) -> str:
    if is_readable(kind):
        return name
    return f"{name}::text{'[]' if pa.types.is_list(kind) else ''} AS {name}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
