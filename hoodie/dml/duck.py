"""A DuckDB connection for one statement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.read.dataset import TableDataset

if TYPE_CHECKING:
    import duckdb


@contextmanager
def connection(
    table: str, *, memory_bytes: int, failed: Sequence[Exception] = ()
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that sees nothing but what is registered with it; beyond the memory limit it spills to a temporary folder.

    Args:
        table: where the table lies, for errors.
        failed: gets the errors of streams that DuckDB reads, which are raised as they are.

    Raises:
        OptionError: duckdb is not installed, or DuckDB refuses the statement.
    """
    with refusals(table, failed), tempfile.TemporaryDirectory(prefix="hoodie-sql-") as folder:
        import duckdb  # noqa: PLC0415 - an extra

        settings: dict[str, Any] = {
            "memory_limit": f"{max(memory_bytes, 64 << 20) >> 20}MiB",
            "temp_directory": folder,
            "python_enable_replacements": False,
        }
        con = duckdb.connect(":memory:", config=settings)
        try:
            con.execute("SET TimeZone = 'UTC'")
            yield con
        finally:
            con.close()


@contextmanager
def refusals(table: str, failed: Sequence[Exception] = ()) -> Iterator[None]:
    """What DuckDB refuses is an OptionError; so is its absence. Arguments as of `connection`."""
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise OptionError(
            f"expressions of SQL over table {table} need duckdb, which is not installed\n"
            "  fix:     pip install 'hoodie[sql]'"
        ) from None
    try:
        yield
    except duckdb.Error as exc:
        if failed:
            raise failed[0] from None
        raise OptionError(f"table {table}: {exc}") from exc


def register(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Any], failed: list[Exception]) -> None:
    """Let a statement see Arrow data and Datasets by name; `failed` gets the errors of their scans."""
    for name, data in tables.items():
        con.register(name, data.noting(failed) if isinstance(data, TableDataset) else data)


def assigned(expression: str, field: pa.Field) -> str:
    """An expression whose value goes into a column. Decimals are rounded to what the column holds, as SQL rounds what it assigns;
    of other values none is changed: the write refuses what does not fit.
    """
    if not pa.types.is_decimal(field.type):
        return f"({expression})"
    return f"CAST(({expression}) AS DECIMAL({field.type.precision}, {field.type.scale}))"


def quoted(name: str) -> str:
    """A name as SQL has it."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
