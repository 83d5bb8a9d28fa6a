"""A few rows of a column chunk by the pages that hold them: the others are neither decompressed nor decoded.

Arrow decodes column chunks of a row group as a whole, which may have 200,000 rows where a few are wanted. So the headers of the
pages are walked here, and the pages that hold the rows become a small Parquet file in memory, which Arrow decodes. Where anything is
not as it is known here, nothing is given, and whoever asks reads the whole chunk: that tells what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
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

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_SHARE = 2
"""Where the pages with the rows have more than one in so many bytes of a chunk, it is read as a whole: that is one call for all."""
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
_Ints = npt.NDArray[np.int64]


class _Pages(NamedTuple):
    """Of a column chunk."""

    begins: _Ints
    """Of each page of values, in the file; the end of the last one stands behind them."""
    rows: _Ints
    """The number of its first row, in the row group; their count stands behind them."""
    dictionary: tuple[int, int] | None
    """Where it begins and ends."""


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

    def __init__(self, file: pq.ParquetFile, data: memoryview, *, path: str) -> None:
        self._file, self._data, self._path = file, data, path
        self._elements: Mapping[str, bytes] | None = None

    def rows(self, group: int, names: Sequence[str], rows: _Ints) -> dict[str, pa.Array]:
        """These rows of a row group, ascending, with those of the columns of which it pays to read pages.

        Raises:
            CorruptFileError: a page does not decode.
        """
        found = self._file.metadata.row_group(group)
        if not len(rows) or _ARROW_SCHEMA in (self._file.metadata.metadata or {}):
            return {}
        alike: dict[int, list[_Picked]] = {}
        try:
            for picked in self._picked(found, frozenset(names), rows):
                alike.setdefault(picked.size, []).append(picked)
            files = [(self._small_file(each), each) for each in alike.values()]
        except (IndexError, KeyError, ValueError, OverflowError, RecursionError):
            return {}
        return {name: column for content, each in files for name, column in self._decoded(content, each)}

    def _picked(self, group: Any, names: frozenset[str], rows: _Ints) -> Iterator[_Picked]:
        schema = self._file.schema_arrow
        for at in range(group.num_columns):
            column = group.column(at)
            name = column.path_in_schema
            if name not in names or "." in name or pa.types.is_nested(schema.field(name).type):
                continue
            if column.physical_type not in _TYPES or column.compression not in _CODECS:
                continue
            pages = _pages_of(self._data, column)
            if int(pages.rows[-1]) != group.num_rows or pages.rows[-1] != column.num_values:
                continue
            picked = _pick(self._data, name, column, pages, rows)
            if picked is not None:
                yield picked

    def _small_file(self, picked: Sequence[_Picked]) -> bytes:
        """Of columns with as many rows each."""
        if self._elements is None:
            self._elements = dict(_flat_elements(self._data))
        parts: list[bytes | memoryview] = [_MAGIC]
        chunks, elements, at = [], [], len(_MAGIC)
        for each in picked:
            size = sum(map(len, each.pieces))
            chunks.append(_chunk(each, at, size))
            elements.append(self._elements[each.name])
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
        opened: Any = pq.ParquetFile
        schema = self._file.schema_arrow
        encoded = [each.name for each in picked if each.dictionary_bytes and _is_text(schema.field(each.name).type)]
        with foreign_errors(self._path):
            file = opened(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=encoded)
            found = file.read(use_threads=False)
        if found.num_rows != picked[0].size:
            raise CorruptFileError(
                f"{self._path} gives {found.num_rows} rows of pages that say {picked[0].size}: a page is damaged"
            )
        for each in picked:
            few = found.column(each.name).take(pa.array(each.places)).combine_chunks()
            yield each.name, few.dictionary_decode() if each.name in encoded else few


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind.value_type if isinstance(kind, pa.DictionaryType) else kind)


def _pages_of(data: memoryview, column: Any) -> _Pages:
    """Raises ValueError, IndexError or KeyError where they are not as they are known here."""
    at = column.data_page_offset
    dictionary = None
    if column.has_dictionary_page and column.dictionary_page_offset and column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    stop = at + column.total_compressed_size
    if not 0 <= at <= stop <= len(data):
        raise ValueError(column)
    begins: list[int] = []
    counts: list[int] = []
    while at < stop:
        begin = at
        size, count, is_dictionary, head_bytes = _page_head(data[at : min(stop, at + _MOST_HEAD_BYTES)])
        at += head_bytes + size
        if at > stop or size < 0 or count < 0 or (is_dictionary and begins) or len(begins) > _MOST_PAGES:
            raise ValueError(begin)
        if is_dictionary:
            dictionary = begin, at
        else:
            begins.append(begin)
            counts.append(count)
    return _Pages(np.array([*begins, stop]), np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), dictionary)


def _page_head(data: memoryview) -> tuple[int, int, bool, int]:
    """Bytes behind the header, values, whether it is a dictionary, and bytes of the header."""
    size = count = -1
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
            at = end_of(data, at, kind)
        else:
            at = end_of(data, at, kind)
    return size, count, is_dictionary, at + 1


def _pick(data: memoryview, name: str, column: Any, pages: _Pages, rows: _Ints) -> _Picked | None:
    """The pages with the rows; None where they are most of the chunk."""
    page_of = np.searchsorted(pages.rows, rows, side="right") - 1
    wanted = np.unique(page_of)
    sizes = np.diff(pages.begins)
    dictionary = [] if pages.dictionary is None else [data[slice(*pages.dictionary)]]
    if _SHARE * int(sizes[wanted].sum()) > int(sizes.sum()):
        return None
    counts = np.diff(pages.rows)[wanted]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    places = firsts[np.searchsorted(wanted, page_of)] + rows - pages.rows[page_of]
    pieces = [*dictionary, *(data[pages.begins[page] : pages.begins[page + 1]] for page in wanted.tolist())]
    return _Picked(name, column, pieces, int(firsts[-1]), sum(map(len, dictionary)), places)


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
        left = children
        at += 1
        while left:
            left += elements[at][1] - 1
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
