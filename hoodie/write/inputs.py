"""What counts as rows: Arrow data of any library, frames, pieces of those, and plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.write.casting import UnfitError, exactly
from hoodie.write.python_values import array_of, is_plain
from hoodie.write.schema import storable_type, takes, untyped_part


@runtime_checkable
class ArrowStreamExportable(Protocol):
    """Rows of any library that speaks Arrow: tables, frames and relations of pyarrow, polars, duckdb, pandas, nanoarrow, …"""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@runtime_checkable
class ArrowArrayExportable(Protocol):
    """One batch of rows of any library that speaks Arrow."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class PandasFrame(Protocol):
    """A pandas frame, which is known by its looks: type checkers see the types of pandas only where its stubs are installed."""

    @property
    def iloc(self) -> Any: ...
    @property
    def columns(self) -> Any: ...


class LazyFrame(Protocol):
    """A lazy frame of polars."""

    def collect_schema(self) -> Any: ...
    def collect(self) -> Any: ...


class Dataset(Protocol):
    """A dataset of pyarrow."""

    @property
    def scanner(self) -> Any: ...


class Scanner(Protocol):
    """A scanner of pyarrow."""

    def to_reader(self) -> Any: ...


Piece: TypeAlias = ArrowStreamExportable | ArrowArrayExportable | PandasFrame | LazyFrame | Dataset | Scanner
"""Some rows with the same columns."""
Rows: TypeAlias = Piece | Iterable[Piece] | Mapping[str, Any] | Iterable[Mapping[str, Any]]
"""What the methods that write take as `data`: Arrow data or a frame; a list or generator of such pieces, whose columns are those
of the first; a dict of columns; a list of dicts, one for each row, all with the same keys."""

_TAKEN = (
    "give an Arrow table, batch, reader or dataset, a polars, duckdb or pandas frame, anything with __arrow_c_stream__, "
    "a list or generator of such pieces, a dict of columns, or a list of dicts"
)
Columns = Callable[[], pa.Schema | None]
"""The columns of the table that the rows are for, where they are known; only asked for when they matter."""


def reader_of(data: Rows, columns: Columns = lambda: None) -> pa.RecordBatchReader:
    """A reader over rows; its schema is known before more than the first piece is drawn.

    Args:
        columns: of the table: what an input without rows has, and how values are read that have no type of their own.

    Raises:
        SchemaError: these are no rows, or they do not fit together.
    """
    target = _TableColumns(columns)
    reader = _whole(data, target)
    if reader is not None:
        return reader if len(reader.schema) else _without_columns(reader, target)
    if isinstance(data, Mapping):
        return _of_columns(data, target).to_reader()
    if isinstance(data, str | bytes) or not isinstance(data, Iterable) or hasattr(data, "dtype"):
        raise _no_rows(data)
    items = iter(data)
    first = next(items, None)
    if first is None:
        return _nothing(target)
    everything = chain([first], items)
    if isinstance(first, Mapping):
        return _of_dicts(everything, target).to_reader()
    reader = _whole(first, target)
    if reader is None:
        raise SchemaError(
            f"the items of the {type(data).__name__} are of type {type(first).__name__}, which are not rows: {_TAKEN}"
        )
    schema = pa.schema([_piece_field(field, target) for field in reader.schema])
    return pa.RecordBatchReader.from_batches(schema, _pieces(reader, items, schema, target))


def index_names(data: Any) -> tuple[str, ...]:
    """What the index of a pandas frame is called, which is not written; of other rows there is none."""
    names = getattr(getattr(data, "index", None), "names", None) if hasattr(data, "iloc") else None
    return tuple(name for name in names or () if isinstance(name, str))


def _whole(data: Any, target: _TableColumns) -> pa.RecordBatchReader | None:
    """The rows of one piece; None where it is none."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    kind = type(data)
    if kind.__module__.startswith("pyarrow.") and hasattr(
        data, "scanner"
    ):  # a dataset; that module is not loaded for it
        data = data.scanner()
    if kind.__module__.startswith("pyarrow.") and hasattr(data, "to_reader"):
        reader: pa.RecordBatchReader = data.to_reader()
        return reader
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # before its Arrow stream, which makes the index a column
        return _of_frame(data, target).to_reader()
    if kind.__module__.startswith("polars."):
        data = data.collect() if hasattr(data, "collect") else data
        hidden = [name for name, dtype in getattr(data, "schema", {}).items() if str(dtype).startswith("Object")]
        if hidden:  # polars exports addresses of such values
            raise SchemaError(
                f"polars holds Python objects in column {hidden[0]!r}, which are not Arrow data: cast it to a type of polars"
            )
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except pa.ArrowException as exc:
        raise SchemaError(f"cannot take rows from a {kind.__module__}.{kind.__name__}: {_reason(exc)}") from exc
    return None


def _piece_field(field: pa.Field, target: _TableColumns) -> pa.Field:
    """The column that all pieces have; a first piece of nothing but null does not say what the others are."""
    kind = storable_type(field.type, field.name)
    if kind is not None and untyped_part(kind, field.name):
        kind = target.type(field.name) or kind
    return field.with_type(kind or field.type)


def _pieces(
    first: pa.RecordBatchReader, others: Iterator[Any], schema: pa.Schema, target: _TableColumns
) -> Iterator[pa.RecordBatch]:
    """The batches of all pieces, each with the columns of the first."""
    for batch in first:
        yield _fitted(batch, schema, 1)
    for number, piece in enumerate(others, start=2):
        reader = _whole(piece, target)
        if reader is None:
            raise _no_rows(piece)
        for batch in reader:
            yield _fitted(batch, schema, number)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, number: int) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    mine, theirs = batch.schema.names, schema.names
    if sorted(mine) != sorted(theirs):
        different = sorted(set(mine) ^ set(theirs)) or sorted(mine)
        raise SchemaError(
            f"piece {number} of the data has other columns than the first one: {', '.join(different)}; "
            "give all pieces the same columns"
        )
    columns = []
    for field in schema:
        column = batch.column(field.name)
        message = (
            f"piece {number} of the data does not have the types of the first one in {field.name}: {field.type} there, "
            f"{column.type} here"
        )
        if not takes(field.type, column.type):
            raise SchemaError(message)
        try:
            columns.append(exactly(column, field.type))
        except (UnfitError, pa.ArrowException, ValueError) as exc:
            raise SchemaError(f"{message} ({_reason(exc)})") from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_frame(frame: Any, target: _TableColumns) -> pa.Table:
    """A table of a pandas frame, whose objects are Python's values, and in which nothing but null is null of any type."""
    objects = [at for at, dtype in enumerate(frame.dtypes) if str(dtype) == "object"]
    others = [at for at in range(len(frame.columns)) if at not in set(objects)]
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise SchemaError(f"column {twice!r} stands twice in the pandas frame; rename one of them")
    try:
        typed = pa.Table.from_pandas(frame.iloc[:, others], preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as exc:
        raise SchemaError(f"the pandas frame does not become Arrow data: {_reason(exc)}") from exc
    arrays: dict[int, Any] = dict(zip(others, typed.columns, strict=True))
    names = dict(zip(others, typed.column_names, strict=True)) | {at: str(frame.columns[at]) for at in objects}
    for at in objects:
        arrays[at] = target.array(names[at], frame.iloc[:, at].to_numpy(), nan_is_null=True)
    for at, array in arrays.items():
        if array.null_count == len(array) and not pa.types.is_null(array.type):
            arrays[at] = pa.nulls(len(array)).cast(target.type(names[at]) or array.type)
    return pa.table([arrays[at] for at in range(len(arrays))], names=[names[at] for at in range(len(arrays))])


def _of_columns(data: Mapping[str, Any], target: _TableColumns) -> pa.Table:
    """A table of columns by their names."""
    if not data:
        return _nothing(target).read_all()
    for name, values in data.items():
        if not isinstance(name, str):
            raise SchemaError(f"the column name {name!r} is a {type(name).__name__}: give texts")
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise SchemaError(
                f"column {name!r} is {values!r:.40}: give a list of values for each column, or a list of dicts, one for each row"
            )
    try:
        return pa.table({name: target.column(name, values) for name, values in data.items()})
    except pa.ArrowInvalid as exc:  # of different lengths
        raise SchemaError(f"the columns do not make rows: {_reason(exc)}") from exc


def _of_dicts(rows: Iterable[Any], target: _TableColumns) -> pa.Table:
    """A table of rows, which all name the same columns: a null for a column that one row leaves out would be stored."""
    all_rows = list(rows)
    names = all_rows[0].keys()
    for number, row in enumerate(all_rows):
        if not isinstance(row, Mapping):
            raise SchemaError(f"row {number} is a {type(row).__name__}, while the first is a dict: give one kind")
        if row.keys() != names:
            raise _uneven(number, row, names)
    if not names:
        raise SchemaError("the rows have no columns: give dicts with names and values")
    return _of_columns({name: [row.get(name) for row in all_rows] for name in names}, target)


def _uneven(number: int, row: Mapping[Any, Any], names: Iterable[Any]) -> SchemaError:
    missing = [name for name in names if name not in row]
    other = next(iter(missing or [name for name in row if name not in set(names)]))
    has = f"has no {other!r}, which the first row has" if missing else f"has {other!r}, which the first row has not"
    return SchemaError(
        f"row {number} (counted from 0) {has}: give every dict the same keys, None for null; rows of which you know "
        "different columns go into writes of their own"
    )


class _TableColumns:
    """The table's columns, where they are known, and arrays of values that have no type of their own."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @cached_property
    def schema(self) -> pa.Schema | None:
        return self._columns()

    def type(self, name: str) -> pa.DataType | None:
        at = -1 if self.schema is None else self.schema.get_field_index(name)
        return None if self.schema is None or at < 0 else self.schema.field(at).type

    def column(self, name: str, values: Any) -> Any:
        """Of whatever stands for the values of a column."""
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        of_pandas = hasattr(values, "iloc")
        typed = hasattr(values, "__array__") or hasattr(values, "__arrow_c_array__")
        if typed and str(getattr(values, "dtype", "")) != "object":
            try:
                return pa.array(values)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
                raise SchemaError(f"the values of column {name!r} do not become Arrow data: {_reason(exc)}") from exc
        return self.array(name, values if isinstance(values, list | tuple) else list(values), nan_is_null=of_pandas)

    def array(self, name: str, values: Sequence[Any], *, nan_is_null: bool = False) -> Any:
        """Of Python's values."""
        kind = None if is_plain(values) else self.type(name)
        return array_of(values, kind, path=name, nan_is_null=nan_is_null)


def _without_columns(reader: pa.RecordBatchReader, target: _TableColumns) -> pa.RecordBatchReader:
    """An empty frame has lost its columns with its rows, and is as good as an empty list."""
    rows = reader.read_all()
    return rows.to_reader() if rows.num_rows else _nothing(target)


def _nothing(target: _TableColumns) -> pa.RecordBatchReader:
    if target.schema is None:
        raise SchemaError("the data has neither rows nor columns, and the table has no columns yet")
    return pa.RecordBatchReader.from_batches(target.schema, [])


def _no_rows(data: Any) -> SchemaError:
    kind = type(data)
    return SchemaError(f"cannot take rows from a {kind.__module__}.{kind.__name__}: {_TAKEN}")


def _reason(exc: Exception) -> str:
    """The message of a foreign error, without the tuple that pandas' ones are."""
    return "; ".join(map(str, exc.args)) if exc.args else type(exc).__name__
