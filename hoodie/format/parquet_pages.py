"""A few rows of a column chunk by the pages that hold them: the others are neither decompressed nor decoded.

Arrow decodes column chunks of a row group as a whole, which may have 200,000 rows where a few are wanted. So the headers of the
pages are walked here, and the pages that hold the rows become a small Parquet file in memory, which Arrow decodes. Where anything is
not as it is known here, nothing is given, and whoever asks reads the whole chunk: that tells what is wrong with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import varint
from hoodie.format.parquet_file import foreign_errors
from hoodie.format.thrift_compact import (
    BINARY,
    LIST,
    STOP,
    STRUCT,
    end_of,
    field_at,
    head_of,
    list_head,
    list_head_of,
    number,
    number_at,
    text,
    varint_at,
)
from hoodie.model.late import once
from hoodie.model.sought import KnownPlaces

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_SHARE = 2
"""Where the pages with the rows have more than one in so many bytes of a chunk, it is read as a whole: that is one call for all."""
_KEPT_COLUMNS = 16
"""Of so many it is kept where their pages stand."""
_MOST_PAGES = 1 << 16
_MOST_HEAD_BYTES = 1 << 16
_TYPES = {"BOOLEAN": 0, "INT32": 1, "INT64": 2, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6, "FIXED_LEN_BYTE_ARRAY": 7}
_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
"""Arrow calls two kinds of LZ4 by one name."""
_ENCODINGS = (0, 3, 8)
_ARROW_SCHEMA = b"ARROW:schema"
_I32, _I64 = 5, 6
# Fields of parquet.thrift.
_SCHEMA, _NAME, _CHILDREN = 2, 4, 5
_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 3, 5, 7, 8
_STATISTICS = {_DATA_PAGE: 5, _DATA_PAGE_V2: 8}
_GREATEST, _LEAST = 5, 6
_Ints = npt.NDArray[np.int64]
_Bounds = tuple[bytes, bytes]


class _Pages(NamedTuple):
    """Of a column chunk."""

    begins: _Ints
    """Of each page of values, in the file; the end of the last one stands behind them."""
    rows: _Ints
    """The number of its first row, in the row group; their count stands behind them."""
    dictionary: tuple[int, int] | None
    """Where it begins and ends."""
    bounds: Sequence[_Bounds | None]
    """The least and the greatest value of each, as stored; None where its header does not say them."""


class _Head(NamedTuple):
    """Of a page."""

    size: int
    """Bytes behind it."""
    values: int
    is_dictionary: bool
    bounds: _Bounds | None
    end: int


class _Picked(NamedTuple):
    """What becomes of a chunk in the small file."""

    name: str
    column: Any
    pieces: Sequence[memoryview]
    size: int
    """How many rows."""
    dictionary_bytes: int
    places: _Ints
    """Of the rows that are wanted, among them."""


class PageReader:
    """Of an open file that is in memory, or mapped."""

    def __init__(self, file: pq.ParquetFile, data: memoryview, *, path: str, known: KnownPlaces | None = None) -> None:
        """`known`: what was found out of the file before, and where that is kept."""
        self._file, self._data, self._path = file, data, path
        self._known = known if known is not None and known.metadata is not None else KnownPlaces()

    def rows(self, group: int, names: Sequence[str], rows: _Ints) -> dict[str, pa.Array]:
        """These rows of a row group, ascending, with those of the columns of which it pays to read pages.

        Raises:
            CorruptFileError: a page does not decode.
        """
        if not len(rows) or self._states_arrow_types:
            return {}
        alike: dict[int, list[_Picked]] = {}
        try:
            for picked in self._picked(group, frozenset(names), rows):
                alike.setdefault(picked.size, []).append(picked)
            files = [(self._small_file(each), each) for each in alike.values()]
        except (IndexError, KeyError, ValueError, OverflowError, RecursionError):
            return {}
        return {name: column for content, each in files for name, column in self._decoded(content, each)}

    def rows_of_keys(
        self, group: int, name: str, keys: pa.Array, spans: npt.NDArray[np.int64] | None = None
    ) -> tuple[_Ints, pa.Array] | None:
        """Which rows of a row group have one of these values in a column of texts, and their values.

        Only pages within whose bounds a key lies are decoded. In a file that is sorted by the column those are few. None where they
        are most of the chunk, or it is not as it is known here.

        Args:
            keys: texts, sorted.
            spans: first and last rows between which the keys stand, whatever pages say of their bounds.

        Raises:
            CorruptFileError: a page does not decode.
        """
        found = self._file.metadata.row_group(group)
        if self._states_arrow_types:
            return None
        try:
            column = next(each for each in map(found.column, range(found.num_columns)) if each.path_in_schema == name)
            if (
                column.physical_type != "BYTE_ARRAY"
                or column.compression not in _CODECS
                or column.num_values != found.num_rows
                or (spans is None and _begin_mixed(self._data, column))
            ):
                return None
            pages = _pages_of(self._data, column) if spans is None else self._pages(group, name, column)
            if int(pages.rows[-1]) != found.num_rows:
                return None
            if spans is not None:
                wanted = _pages_with(pages.rows, spans)
            elif _agree(pages.bounds, column):
                sought = keys.cast(pa.binary())
                wanted = np.flatnonzero([_lies_within(sought, bounds) for bounds in _widened(pages.bounds)])
            else:
                return None
            if not len(wanted):
                return np.empty(0, np.int64), pa.array([], pa.string())
            picked = _pick(self._data, name, column, pages, wanted, np.empty(0, np.int64))
            if picked is None:
                return None
            content = self._small_file([picked])
        except (IndexError, KeyError, ValueError, OverflowError, RecursionError, StopIteration):
            return None
        values: Any = self._read(content, [picked]).column(name).combine_chunks()
        mask = pc.is_in(values, value_set=keys)
        places = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        begins = np.concatenate([[0], np.cumsum(np.diff(pages.rows)[wanted])])
        page = np.searchsorted(begins, places, side="right") - 1
        found_values = values.filter(mask)
        if pa.types.is_dictionary(found_values.type):
            found_values = found_values.dictionary_decode()
        return places - begins[page] + pages.rows[wanted[page]], found_values

    @once
    def _states_arrow_types(self) -> bool:
        """All of the footer's texts are copied for it, among them that of a bloom filter."""
        return _ARROW_SCHEMA in (self._file.metadata.metadata or {})

    def _pages(self, group: int, name: str, column: Any) -> _Pages:
        """Raises as `_pages_of`."""
        pages: _Pages | None = self._known.pages.get((group, name))
        if pages is None:
            pages = _pages_of(self._data, column)
            if len(self._known.pages) < _KEPT_COLUMNS:
                self._known.pages[group, name] = pages._replace(bounds=())
        return pages

    def _picked(self, number: int, names: frozenset[str], rows: _Ints) -> Iterator[_Picked]:
        schema, group = self._file.schema_arrow, self._file.metadata.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            name = column.path_in_schema
            if name not in names or "." in name or pa.types.is_nested(schema.field(name).type):
                continue
            if column.physical_type not in _TYPES or column.compression not in _CODECS:
                continue
            pages = self._pages(number, name, column)
            if int(pages.rows[-1]) != group.num_rows or pages.rows[-1] != column.num_values:
                continue
            page_of = np.searchsorted(pages.rows, rows, side="right") - 1
            wanted = np.unique(page_of)
            firsts = np.concatenate([[0], np.cumsum(np.diff(pages.rows)[wanted])])
            places = firsts[np.searchsorted(wanted, page_of)] + rows - pages.rows[page_of]
            picked = _pick(self._data, name, column, pages, wanted, places)
            if picked is not None:
                yield picked

    def _small_file(self, picked: Sequence[_Picked]) -> bytes:
        """Of columns with as many rows each."""
        if self._known.elements is None:
            self._known.elements = dict(_flat_elements(self._data))
        parts: list[bytes | memoryview] = [_MAGIC]
        chunks, elements, at = [], [], len(_MAGIC)
        for each in picked:
            size = sum(map(len, each.pieces))
            chunks.append(_chunk(each, at, size))
            elements.append(self._known.elements[each.name])
            parts += each.pieces
            at += size
        root = head_of(_NAME, BINARY) + text("schema") + number(_CHILDREN - _NAME, _I32, len(elements)) + STOP
        schema = list_head_of(1 + len(elements)) + root + b"".join(elements)
        rows = number(1, _I64, picked[0].size)
        group = head_of(1, LIST) + list_head_of(len(chunks)) + b"".join(chunks) + number(1, _I64, at) + rows
        footer = number(1, _I32, 1) + head_of(1, LIST) + schema + rows
        footer += head_of(1, LIST) + list_head_of(1) + group + STOP + STOP
        return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])

    def _decoded(self, content: bytes, picked: Sequence[_Picked]) -> Iterator[tuple[str, pa.Array]]:
        found = self._read(content, picked)
        for each in picked:
            few: Any = found.column(each.name).take(pa.array(each.places)).combine_chunks()
            yield each.name, few.dictionary_decode() if pa.types.is_dictionary(few.type) else few

    def _read(self, content: bytes, picked: Sequence[_Picked]) -> pa.Table:
        """All rows of a small file. Texts that are stored in a dictionary stay so."""
        opened: Any = pq.ParquetFile
        schema = self._file.schema_arrow
        encoded = [each.name for each in picked if each.dictionary_bytes and _is_text(schema.field(each.name).type)]
        with foreign_errors(self._path):
            file = opened(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=encoded)
            found: pa.Table = file.read(use_threads=False)
        if found.num_rows != picked[0].size:
            raise CorruptFileError(
                f"{self._path} gives {found.num_rows} rows of pages that say {picked[0].size}: a page is damaged"
            )
        return found


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind.value_type if isinstance(kind, pa.DictionaryType) else kind)


def _pages_of(data: memoryview, column: Any) -> _Pages:
    """Raises ValueError, IndexError or KeyError where they are not as they are known here."""
    dictionary = None
    begins: list[int] = []
    heads: list[_Head] = []
    stop = 0
    for begin, head in _heads(data, column):
        stop = begin + head.end + head.size
        if (head.is_dictionary and begins) or len(begins) > _MOST_PAGES:
            raise ValueError(begin)
        if head.is_dictionary:
            dictionary = begin, stop
        else:
            begins.append(begin)
            heads.append(head)
    rows = np.concatenate([[0], np.cumsum([head.values for head in heads], dtype=np.int64)])
    return _Pages(np.array([*begins, stop]), rows, dictionary, [head.bounds for head in heads])


def _pages_with(rows: _Ints, spans: _Ints) -> _Ints:
    """The pages that have rows of these spans."""
    first, last = (np.searchsorted(rows, ends, side="right") - 1 for ends in spans.T)
    wanted = np.zeros(len(rows), np.int64)
    np.add.at(wanted, first, 1)
    np.add.at(wanted, last + 1, -1)
    return np.flatnonzero(np.cumsum(wanted)[:-1])


def _begin_mixed(data: memoryview, column: Any) -> bool:
    """Whether the first two pages overlap: then the column is not sorted, and nearly all pages may have any value."""
    pages = (head for _, head in _heads(data, column) if not head.is_dictionary)
    bounds = [head.bounds for head in islice(pages, 2)]
    first, second = bounds if len(bounds) == 2 else (None, None)
    return first is not None and second is not None and first[1] > second[0]


def _heads(data: memoryview, column: Any) -> Iterator[tuple[int, _Head]]:
    """Where each page begins, and its head; raises as `_pages_of`."""
    at = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset and column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    stop = at + column.total_compressed_size
    if not 0 <= at <= stop <= len(data):
        raise ValueError(column)
    while at < stop:
        head = _page_head(data[at : min(stop, at + _MOST_HEAD_BYTES)])
        after = at + head.end + head.size
        if after > stop or head.size < 0 or head.values < 0:
            raise ValueError(at)
        yield at, head
        at = after


def _page_head(data: memoryview) -> _Head:
    size = count = -1
    bounds = None
    is_dictionary, at, last = False, 0, 0
    while data[at]:
        last, kind, at = field_at(data, at, last)
        if last == _SIZE:
            size, at = number_at(data, at)
        elif last in (_DATA_PAGE, _DATA_PAGE_V2, _DICTIONARY_PAGE):
            is_dictionary = last == _DICTIONARY_PAGE
            inner, _, begin = field_at(data, at, 0)
            if inner != 1:
                raise ValueError(inner)
            count = number_at(data, begin)[0]
            bounds, at = _bounds_of(data, at, _STATISTICS.get(last, 0))
        else:
            at = end_of(data, at, kind)
    return _Head(size, count, is_dictionary, bounds, at + 1)


def _bounds_of(data: memoryview, at: int, statistics: int) -> tuple[_Bounds | None, int]:
    """What the field of this number in a page's head states, and where that struct ends."""
    bounds, last = None, 0
    while data[at]:
        last, kind, at = field_at(data, at, last)
        end = end_of(data, at, kind)
        if last == statistics:
            stated, inner = {}, 0
            while data[at]:
                inner, kind, at = field_at(data, at, inner)
                if inner in (_GREATEST, _LEAST):
                    size, begin = varint_at(data, at)
                    stated[inner] = bytes(data[begin : begin + size])
                at = end_of(data, at, kind)
            if len(stated) == 2:
                bounds = stated[_LEAST], stated[_GREATEST]
        at = end
    return bounds, at + 1


def _pick(data: memoryview, name: str, column: Any, pages: _Pages, wanted: _Ints, places: _Ints) -> _Picked | None:
    """These pages; None where they are most of the chunk."""
    sizes = np.diff(pages.begins)
    if _SHARE * int(sizes[wanted].sum()) > int(sizes.sum()):
        return None
    dictionary = [] if pages.dictionary is None else [data[slice(*pages.dictionary)]]
    pieces = [*dictionary, *(data[pages.begins[page] : pages.begins[page + 1]] for page in wanted.tolist())]
    size = int(np.diff(pages.rows)[wanted].sum())
    return _Picked(name, column, pieces, size, sum(map(len, dictionary)), places)


def _widened(bounds: Sequence[_Bounds | None]) -> Iterator[_Bounds]:
    """Bounds up to those of the pages before and behind, which in a sorted column are close: no checksum is of the heads of pages, and
    a damaged bound shall hide no row.
    """
    stated = [each for each in bounds if each is not None]
    before = [stated[0], *stated[:-1]]
    behind = [*stated[1:], stated[-1]]
    for (low, high), (_, ends), (begins, _) in zip(stated, before, behind, strict=True):
        yield min(low, ends), max(high, begins)


def _agree(bounds: Sequence[_Bounds | None], column: Any) -> bool:
    """Whether all pages state bounds, and the chunk the same together."""
    statistics = column.statistics
    stated = [each for each in bounds if each is not None]
    if len(stated) < len(bounds) or not stated or statistics is None or not statistics.has_min_max:
        return False
    least, greatest = (str(each).encode() for each in (statistics.min, statistics.max))
    return (min(low for low, _ in stated), max(high for _, high in stated)) == (least, greatest)


def _lies_within(keys: pa.Array, bounds: _Bounds) -> bool:
    """Whether one of the keys, which are sorted, does."""
    place = bisect_left(keys, bounds[0], key=_value)
    return place < len(keys) and _value(keys[place]) <= bounds[1]


def _value(scalar: Any) -> Any:
    return scalar.as_py()


def _chunk(picked: _Picked, at: int, size: int) -> bytes:
    column = picked.column
    encodings = bytes([len(_ENCODINGS) << 4 | _I32]) + b"".join(varint(each << 1) for each in _ENCODINGS)
    inner = [
        number(1, _I32, _TYPES[column.physical_type]),
        head_of(1, LIST) + encodings,
        head_of(1, LIST) + bytes([1 << 4 | BINARY]) + text(picked.name),
        number(1, _I32, _CODECS[column.compression]),
        number(1, _I64, picked.size),
        number(1, _I64, max(size, column.total_uncompressed_size)),
        number(1, _I64, size),
        number(2, _I64, at + picked.dictionary_bytes),
        number(2, _I64, at) if picked.dictionary_bytes else b"",
        STOP,
    ]
    return number(2, _I64, at) + head_of(1, STRUCT) + b"".join(inner) + STOP


def _flat_elements(data: memoryview) -> Iterator[tuple[str, bytes]]:
    """Name and element of the schema, of each column that is not nested."""
    size = int.from_bytes(data[-_TAIL_BYTES:-4], "little")
    footer = data[len(data) - _TAIL_BYTES - size : len(data) - _TAIL_BYTES]
    at = last = 0
    while True:
        last, kind, at = field_at(footer, at, last)
        if last == _SCHEMA:
            break
        at = end_of(footer, at, kind)
    count, _, at = list_head(footer, at)
    found = []
    for _ in range(count):
        begin, at = at, end_of(footer, at, STRUCT)
        found.append((*_named(footer, begin), bytes(footer[begin:at])))
    yield from _top_level(found)


def _top_level(elements: Sequence[tuple[str, int, bytes]]) -> Iterator[tuple[str, bytes]]:
    at = 1
    while at < len(elements):
        name, children, element = elements[at]
        if not children:
            yield name, element
        remaining_children = children
        at += 1
        while remaining_children:
            remaining_children += elements[at][1] - 1
            at += 1


def _named(data: memoryview, at: int) -> tuple[str, int]:
    """Name of a schema element, and the number of its children."""
    name, children, last = "", 0, 0
    while data[at]:
        last, kind, at = field_at(data, at, last)
        if last == _NAME:
            size, begin = varint_at(data, at)
            name = str(data[begin : begin + size], "utf-8")
        elif last == _CHILDREN:
            children = number_at(data, at)[0]
        at = end_of(data, at, kind)
    return name, children
