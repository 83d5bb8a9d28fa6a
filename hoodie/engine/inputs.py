"""What counts as rows: Arrow data of any library, frames, pieces of those, and plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from hoodie.errors import SchemaError


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
_NARROW = (pa.int32(), pa.float32())
"""Types that Python's numbers do not make by themselves."""

Columns = Callable[[], pa.Schema | None]
"""The columns of the table that the rows are for, where they are known; only asked for when they matter."""


def batches_of(data: Rows) -> Iterable[pa.RecordBatch]:
    """Record batches of whatever `reader_of` takes.

    Raises:
        SchemaError: these are no rows.
    """
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, pa.Table):
        return data.to_batches()
    return reader_of(data)


def reader_of(data: Rows, columns: Columns = lambda: None) -> pa.RecordBatchReader:
    """A reader over rows; its schema is known before more than the first piece is drawn.

    Args:
        columns: of the table: what an input without rows has, and which numbers Python's are.

    Raises:
        SchemaError: these are no rows, or they do not fit together.
    """
    reader = _whole(data)
    if reader is not None:
        return reader
    if isinstance(data, Mapping):
        return _of_columns(data, columns).to_reader()
    if isinstance(data, str | bytes) or not isinstance(data, Iterable) or hasattr(data, "dtype"):
        raise _no_rows(data)
    items = iter(data)
    first = next(items, None)
    if first is None:
        return _nothing(columns)
    everything = chain([first], items)
    if isinstance(first, Mapping):
        return _of_dicts(everything, columns).to_reader()
    begun = _whole(first)
    if begun is None:
        raise SchemaError(
            f"the items of the {type(data).__name__} are of type {type(first).__name__}, which are no rows: {_TAKEN}"
        )
    return pa.RecordBatchReader.from_batches(begun.schema, _pieces(begun, items))


def index_names(data: Any) -> tuple[str, ...]:
    """What the index of a pandas frame is called, which is not written; of other rows there is none."""
    names = getattr(getattr(data, "index", None), "names", None) if hasattr(data, "iloc") else None
    return tuple(name for name in names or () if isinstance(name, str))


def _whole(data: Any) -> pa.RecordBatchReader | None:
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
        try:
            return pa.Table.from_pandas(data, preserve_index=False).to_reader()
        except (pa.ArrowException, ValueError, TypeError) as exc:
            raise SchemaError(f"the pandas frame does not become Arrow data: {_said(exc)}") from exc
    if kind.__module__.startswith("polars.") and hasattr(data, "collect"):
        data = data.collect()
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except pa.ArrowException as exc:
        raise SchemaError(f"cannot take rows from a {kind.__module__}.{kind.__name__}: {_said(exc)}") from exc
    return None


def _pieces(first: pa.RecordBatchReader, others: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    """The batches of all pieces, each with the columns of the first."""
    yield from first
    for number, piece in enumerate(others, start=2):
        reader = _whole(piece)
        if reader is None:
            raise _no_rows(piece)
        for batch in reader:
            yield _fitted(batch, first.schema, number)


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
    try:
        return batch.select(theirs).cast(schema)
    except (pa.ArrowException, ValueError) as exc:
        wrong = [f.name for f in schema if batch.schema.field(f.name).type != f.type]
        raise SchemaError(
            f"piece {number} of the data does not have the types of the first one in {', '.join(wrong)}: {_said(exc)}"
        ) from exc


def _of_columns(data: Mapping[str, Any], columns: Columns) -> pa.Table:
    """A table of columns by their names."""
    if not data:
        return _nothing(columns).read_all()
    for name, values in data.items():
        if not isinstance(name, str):
            raise SchemaError(f"the column name {name!r} is a {type(name).__name__}: give texts")
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise SchemaError(
                f"column {name!r} is {values!r:.40}: give a list of values for each column, or a list of dicts, one for each row"
            )
    known = _Known(columns)
    try:
        return pa.table({name: known.array(name, values) for name, values in data.items()})
    except pa.ArrowInvalid as exc:  # of different lengths
        raise SchemaError(f"the columns do not make rows: {_said(exc)}") from exc


def _of_dicts(rows: Iterable[Any], columns: Columns) -> pa.Table:
    """A table of rows, which all name the same columns: a null for a column that one row leaves out would be stored."""
    found = list(rows)
    names = found[0].keys()
    for number, row in enumerate(found):
        if not isinstance(row, Mapping):
            raise SchemaError(f"row {number} is a {type(row).__name__}, while the first is a dict: give one kind")
        if row.keys() != names:
            raise _uneven(number, row, names)
    if not names:
        raise SchemaError("the rows have no columns: give dicts with names and values")
    return _of_columns({name: [row.get(name) for row in found] for name in names}, columns)


def _uneven(number: int, row: Mapping[Any, Any], names: Iterable[Any]) -> SchemaError:
    missing = [name for name in names if name not in row]
    other = next(iter(missing or [name for name in row if name not in set(names)]))
    has = f"has no {other!r}, which the first row has" if missing else f"has {other!r}, which the first row has not"
    return SchemaError(
        f"row {number} (counted from 0) {has}: give every dict the same keys, None for null; rows of which you know "
        "different columns go into writes of their own"
    )


class _Known:
    """Makes columns of Python values, in the table's type where that holds numbers as they are."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema: pa.Schema | None = None
        self._asked = False

    def array(self, name: str, values: Any) -> Any:
        if not isinstance(values, Sequence) or isinstance(values, range):
            values = values if hasattr(values, "__array__") or hasattr(values, "__arrow_c_array__") else list(values)
        try:
            found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
            kinds = {type(value): value for value in values if value is not None}
            mixed = " and ".join(f"{value!r:.40} ({kind.__name__})" for kind, value in list(kinds.items())[:3])
            raise SchemaError(
                f"the values of column {name!r} have no common type: {mixed if len(kinds) > 1 else _said(exc)}"
            ) from exc
        if not isinstance(values, list | tuple) or not _is_plain_number(found.type):
            return found
        kind = self._type(name)
        if kind is None or kind == found.type:
            return found
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return found  # the write says what does not fit

    def _type(self, name: str) -> pa.DataType | None:
        if not self._asked:
            self._schema, self._asked = self._columns(), True
        at = -1 if self._schema is None else self._schema.get_field_index(name)
        kind = self._schema.field(at).type if self._schema is not None and at >= 0 else None
        return kind if kind in _NARROW or (kind is not None and pa.types.is_decimal(kind)) else None


def _is_plain_number(kind: pa.DataType) -> bool:
    return pa.types.is_int64(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind)


def _nothing(columns: Columns) -> pa.RecordBatchReader:
    schema = columns()
    if schema is None:
        raise SchemaError("the data has neither rows nor columns, and the table has no columns yet")
    return pa.RecordBatchReader.from_batches(schema, [])


def _no_rows(data: Any) -> SchemaError:
    kind = type(data)
    return SchemaError(f"cannot take rows from a {kind.__module__}.{kind.__name__}: {_TAKEN}")


def _said(exc: Exception) -> str:
    """The message of a foreign error, without the tuple that pandas' ones are."""
    return "; ".join(map(str, exc.args)) if exc.args else type(exc).__name__
