"""Rows of a base file that have one of a few record keys: other columns are decoded only where one of them stands.

A filter by keys passes over nearly all rows. So the keys are read first, and of the other columns the pages that have such rows
(`format/parquet_pages.py`), or the row groups; there texts that repeat stay encoded until a few rows of them are left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.format.column_stats import ranges_of_footer
from hoodie.format.parquet_file import read_batches
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.sought import RowBlocks, SoughtKeys, SoughtRows

if TYPE_CHECKING:
    from hoodie.format.parquet_pages import PageReader

_TEXT = pa.string()
_BATCH_ROWS = 64 * 1024
_BATCH_SHARE = 8
"""For each batch of stored keys Arrow hashes the sought ones: a batch has at least so many times as many rows."""
_PAGE_ROWS = 4096
"""Most pages have more."""

ReadGroup = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]
"""Columns, and the number of a row group -> its rows."""


def can_seek(file: pq.ParquetFile) -> bool:
    """Whether the file stores record keys as they are sought."""
    at = file.schema_arrow.get_field_index(RECORD_KEY)
    return at >= 0 and file.schema_arrow.field(at).type == _TEXT


def sought_rows(
    file: pq.ParquetFile,
    names: Sequence[str],
    sought: SoughtKeys,
    read: ReadGroup,
    *,
    path: str,
    pages: PageReader | None = None,
    places: RowBlocks | None = None,
    there: SoughtRows | None = None,
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Numbers of rows, ascending, and these rows with those of the columns that the file has; `path` is for messages.

    `pages`: gives rows of some columns without the others of their row group. `places`: where rows of the keys may stand.
    `there`: those that have them; no keys are read.

    Raises:
        CorruptFileError: a column does not decode.
    """
    schema = file.schema_arrow
    present = [name for name in dict.fromkeys(names) if schema.get_field_index(name) >= 0]
    # A key of one column of texts is that column's value.
    of_keys = [name for name in present if name in (RECORD_KEY, sought.same) and schema.field(name).type == _TEXT]
    others = [name for name in present if name not in of_keys]
    keys_here, blocks = sought.keys, None
    if pages is not None and places is not None and places.rows == file.metadata.num_rows:
        keys_here = keys_here.take(pa.array(np.unique(places.numbers)))
        blocks = np.unique(places.blocks).astype(np.int64) << places.shift
    first = 0
    for group in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        keys_of_group = keys_here if there is not None else _within_bounds(file, group, keys_here)
        if len(keys_of_group):
            if there is not None:
                rows, keys = _rows_from(there, first, first + count)
            else:
                spans = None
                if blocks is not None and places is not None:
                    spans = _within(blocks - first, 1 << places.shift, count)
                by_pages = None if pages is None else pages.rows_of_keys(group, RECORD_KEY, keys_of_group, spans)
                rows, keys = by_pages or _rows_of_keys(file, group, keys_of_group, path=path)
            if len(rows):
                columns = dict.fromkeys(of_keys, keys)
                if pages is not None and others and (blocks is not None or _may_skip_pages(rows, count)):
                    columns |= pages.rows(group, others, rows)
                columns |= _constants(file, group, [name for name in others if name not in columns], len(rows))
                rest = [name for name in others if name not in columns]
                columns |= _at(rows, rest, read(rest, group) if rest else ())
                yield first + rows, pa.RecordBatch.from_arrays([columns[name] for name in present], names=present)
        first += count


def _constants(file: pq.ParquetFile, group: int, names: Sequence[str], count: int) -> dict[str, pa.Array]:
    """Columns of texts that have one value in all of the row group, such as the partition path, so many times."""
    types = {name: file.schema_arrow.field(name).type for name in names}
    fields = [
        pa.field(name, _TEXT) for name, kind in types.items() if kind in (_TEXT, pa.dictionary(pa.int32(), _TEXT))
    ]
    ranges = ranges_of_footer(file.metadata, fields, group=group)
    return {
        name: pa.repeat(pa.scalar(stated.low, _TEXT), count)
        for name, stated in ranges.items()
        if stated.low is not None and stated.low == stated.high and not stated.nulls
    }


def _rows_from(there: SoughtRows, begin: int, end: int) -> tuple[np.ndarray, pa.Array]:
    """Of the rows those from `begin` to before `end`, counted from `begin`, and their keys."""
    start, stop = np.searchsorted(there.numbers, (begin, end))
    return there.numbers[start:stop] - begin, there.keys.slice(start, stop - start)


def _within(begins: np.ndarray, size: int, rows: int) -> np.ndarray:
    """The first and the last row of each of these blocks in a row group of so many rows; those that lie elsewhere are left out."""
    spans: np.ndarray = np.stack([begins, begins + size - 1], axis=1)
    return spans[(spans[:, 1] >= 0) & (spans[:, 0] < rows)].clip(0, max(0, rows - 1))


def _may_skip_pages(rows: np.ndarray, count: int) -> bool:
    """Whether many pages of so many rows may have none of these: only then it pays to walk through the heads of all pages."""
    return 2 * len(np.unique(rows // _PAGE_ROWS)) <= max(2, count // _PAGE_ROWS)


def _at(rows: np.ndarray, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> dict[str, pa.Array]:
    """The columns of some rows, together: whoever filters them pays for each batch."""
    begin, found = 0, []
    for batch in batches:
        start, stop = np.searchsorted(rows, (begin, begin + batch.num_rows))
        if start < stop:
            few = batch.take(pa.array(rows[start:stop] - begin))
            found.append([_decoded(few.column(name)) for name in names])
        begin += batch.num_rows
    return {name: pa.concat_arrays(parts) for name, parts in zip(names, zip(*found, strict=True), strict=True)}


def _decoded(column: Any) -> pa.Array:
    found: pa.Array = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return found


def _rows_of_keys(file: pq.ParquetFile, group: int, keys: pa.Array, *, path: str) -> tuple[np.ndarray, pa.Array]:
    """Numbers of the rows of a row group that have one of the keys, and their keys."""
    batch_rows = max(_BATCH_ROWS, _BATCH_SHARE * len(keys))
    batches = read_batches(file, [RECORD_KEY], batch_rows=batch_rows, path=path, group=group)
    return rows_with((batch.column(0) for batch in batches), keys)


def rows_with(stored: Iterable[pa.Array], keys: pa.Array) -> SoughtRows:
    """Which of the stored keys, which come in parts, are among the others."""
    numbers, found, begin = [], [], 0
    for part in stored:
        mask = pc.is_in(part, value_set=keys)
        if mask.true_count:
            numbers.append(begin + np.flatnonzero(mask.to_numpy(zero_copy_only=False)))
            found.append(part.filter(mask))
        begin += len(part)
    if not found:
        return SoughtRows(np.empty(0, np.int64), pa.array([], _TEXT))
    return SoughtRows(np.concatenate(numbers), pa.concat_arrays(found))


def _within_bounds(file: pq.ParquetFile, group: int, keys: pa.Array) -> pa.Array:
    """Those of the keys, which are sorted, that lie within the row group's bounds."""
    field = pa.field(RECORD_KEY, _TEXT)
    stated = ranges_of_footer(file.metadata, [field], group=group)[RECORD_KEY]
    if not stated.values or stated.low is None:
        return keys if stated.values else keys[:0]
    start = bisect_left(keys, stated.low, key=_value)
    return keys[start : bisect_right(keys, stated.high, lo=start, key=_value)]


def _value(scalar: Any) -> Any:
    return scalar.as_py()
