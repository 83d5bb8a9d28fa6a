"""Write a base file: Parquet with the five meta columns, and the footer keys that the bloom index reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.filegroup.conform import conform
from hoodie.filegroup.footer_keys import FooterKeys
from hoodie.filegroup.slice_reader import with_encoded
from hoodie.filegroup.staging import open_staged, sink_over
from hoodie.filegroup.unused_memory import release_unused_memory
from hoodie.format.avro_schema import schema_text
from hoodie.format.base_file import BaseFileFooter, footer_entries
from hoodie.format.column_stats import flat_places, ranges_of_footer, stated_columns
from hoodie.format.key_map import encode_key_map
from hoodie.format.parquet_file import FEW_ROWS, parquet_writer
from hoodie.format.parquet_footer import Chunk, floating_leaves, has_floats, sound_footer
from hoodie.format.variants import STORED_VARIANT, schema_with
from hoodie.format.vectors import footer_entry, stored, stored_schema
from hoodie.hashes.of_keys import map_hash
from hoodie.model.late import for_the_same
from hoodie.model.meta_fields import FILE_NAME, RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import FileOptions, WriteContext
from hoodie.model.statistics import ValueRange
from hoodie.storage.base import Storage

ROW_GROUP_ROWS = 1024 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""Arrow bytes of small pieces that are collected before they are written as one row group."""
_PAGE_BYTES = 64 * 1024
"""Before compression. A look-up decodes the pages that hold its rows; a file with pages of Arrow's 1 MB is as large, and as quick to
read.
"""
_LEAST_GROUP_BYTES = 4 * 1024 * 1024
_IN_MEMORY_BYTES = 1024 * 1024
"""Arrow bytes of a whole file up to which it is written by one call, and not column by column."""
_SAMPLE_ROWS = 8192
_TINY_BYTES = 4096
"""Arrow bytes of a whole file up to which its pages are Snappy's in place of zstd's. zstd makes a context for each page: it doubles
what such a file costs (ten rows of ten columns: 0.35 ms of CPU, else 0.20), and saves 4 % of its bytes.
"""


class _Columns:
    """The columns of the files of one write: what is the same for all of them is worked out once, since a file may have few rows."""

    def __init__(self, context: WriteContext) -> None:
        schema = context.full_schema
        self.vectors = footer_entry(schema)
        columns = stored_schema(schema if context.unstored is None else context.unstored.stored_schema(schema))
        self.stored = schema_with(columns, STORED_VARIANT)
        self.has_variants = self.stored is not columns
        self.as_rows = self.stored.equals(schema, check_metadata=True)
        """Files have the rows as they are, with the name of the file."""
        self.has_floats = any(has_floats(field.type) for field in self.stored)
        self._stated = stated_columns(self.stored)
        at = schema.get_field_index(FILE_NAME)
        self._without_name = schema if at < 0 else schema.remove(at)
        self._seen = (self._without_name, self._without_name)
        self._places: Mapping[str, int] | None = None

    def ranges(self, footer: pq.FileMetaData) -> dict[str, ValueRange]:
        """What a commit states of the file with this footer."""
        if self._places is None:
            self._places = flat_places(footer.schema)
        return ranges_of_footer(footer, self._stated, cut=True, places=self._places)

    def conformed(self, rows: pa.Table, *, path: str) -> pa.Table:
        """The rows with all columns but that of the file's name; text columns may be dictionary arrays."""
        given, wanted = self._seen
        if not rows.schema.equals(given):
            given = rows.schema
            wanted = with_encoded(self._without_name, given)
            self._seen = given, wanted
        return conform(rows, wanted, path=path)


columns_of = for_the_same(_Columns)


class RowGroups(NamedTuple):
    """How a file is cut into row groups."""

    most_bytes: int
    """Of a group, as Arrow has it."""
    gives_back: bool
    """After each group memory goes back to the system."""

    @classmethod
    def of(cls, *, large: bool, memory_bytes: int | None) -> RowGroups:
        """Of a file that follows a `large` one, or of a task with so much memory: smaller ones, which give it back."""
        most = ROW_GROUP_BYTES // 2 if large else ROW_GROUP_BYTES
        if memory_bytes is not None and memory_bytes // 4 < most:
            return cls(max(memory_bytes // 4, _LEAST_GROUP_BYTES), True)
        return cls(most, large)


class BaseFileWriter:
    """Streams batches into one file in the staging folder of an instant; a context manager.

    Args:
        file_name: the final name, which every row carries in `_hoodie_file_name`; in the staging folder it is the same.
        avro: the Avro schema of the columns, with the meta columns in front; batches must conform to it.
        more_rows: a bound on the rows that come besides those of the file that this one follows.
    """

    def __init__(
        self,
        storage: Storage,
        context: WriteContext,
        file_name: str,
        *,
        avro: Mapping[str, Any],
        more_rows: int,
        row_groups: RowGroups,
    ) -> None:
        self._unstored = context.unstored
        self._columns = columns_of(context)
        self._schema = self._columns.stored
        self._row_groups = row_groups
        self._file_name = file_name
        self._more_rows = more_rows
        self._options = context.files
        self._avro = avro
        self.staged = join(context.staging, file_name)  # no folder of its own: names tell the task and its attempt
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._keys: FooterKeys | None = None
        self._hashes: list[np.ndarray] = []
        """Of its keys, if the file is to have a map of them."""
        self._plain: frozenset[str] = frozenset()
        self.rows = 0
        self.size_bytes = 0
        self.ranges: dict[str, ValueRange] = {}
        self._footers: list[pq.FileMetaData] = []
        self._groups = 0
        self._nan: list[Chunk] = []
        self._may_have_zero = False
        self._dictionaries: Sequence[str] = ()
        self._output = open_staged(storage, self.staged, folder=context.staging)

    def __enter__(self) -> BaseFileWriter:
        self._file = self._output.__enter__()
        self._sink: Any = None
        self._writer: Any = None
        return self

    def write(
        self,
        data: pa.RecordBatch | pa.Table,
        *,
        before: BaseFileFooter | None = None,
        plain: Collection[str] = (),
        new: bool = True,
        sheds: bool = False,
        chains: np.ndarray | None = None,
    ) -> None:
        """Append rows. Their `_hoodie_file_name` is set here: copied rows get the new file's name too.

        Text columns may be dictionary arrays. With the first call: `before`, the footer of the file that this one follows, `plain`,
        leaf paths of its columns without a dictionary, which get none here, and `sheds`, whether rows of it may be gone. `new`: the
        rows' keys are not in that file. `chains`: see `FooterKeys.add`.
        """
        if self._keys is None and (before is not None or data.num_rows):
            at_most = (before.record_count if before is not None else 0) + max(self._more_rows, data.num_rows)
            at_most_or_none = at_most if self._more_rows or before else None
            self._keys = FooterKeys(self._options, before=before, at_most=at_most_or_none, sheds=sheds)
            self._plain = frozenset(plain)
        if self._keys is None or not data.num_rows:
            return
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        table = self._columns.conformed(table, path=self.staged)
        if self._stores_keys:
            self._keys.add(table.column(RECORD_KEY), new=new, chains=chains)
            if self._options.key_map:
                self._hashes.append(map_hash(table.column(RECORD_KEY)))
        self.rows += table.num_rows
        if self._unstored is not None:
            table = self._unstored.stored(table)
        if self._columns.vectors:
            table = stored(table)
        if self._columns.has_variants:
            table = conform(table, schema_with(table.schema, STORED_VARIANT), path=self.staged)
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= self._row_groups.most_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write what waits as one row group: merges hand over many small pieces, and each would become its own."""
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            rows = self._with_file_name(one_encoding(waiting))
            self._opened(rows)
            written = -(-rows.num_rows // ROW_GROUP_ROWS)
            if self._columns.has_floats:
                nan, zero = floating_leaves(rows)
                self._nan += product(range(self._groups, self._groups + written), nan)
                self._may_have_zero |= has_dictionary(self._schema, zero, self._dictionaries)
            self._groups += written
            self._writer.write_table(_as_opened(rows, self._writer.schema), row_group_size=ROW_GROUP_ROWS)
            if self._row_groups.gives_back:
                del waiting, rows
                release_unused_memory()

    def _with_file_name(self, rows: pa.Table) -> pa.Table:
        at = self._schema.get_field_index(FILE_NAME)
        if at < 0:
            return rows
        if rows.num_rows <= FEW_ROWS:
            return rows.add_column(at, self._schema.field(at), pa.array([self._file_name] * rows.num_rows, pa.string()))
        name = pa.DictionaryArray.from_arrays(np.zeros(rows.num_rows, np.int32), pa.array([self._file_name]))
        return rows.add_column(at, self._schema.field(at).with_type(name.type), name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        try:
            if kind is None:
                if self._writer is None and self._waiting_bytes <= _IN_MEMORY_BYTES:
                    self._sink = pa.BufferOutputStream()
                self._flush()
                keys = self._keys or FooterKeys(self._options)
                writer = self._writer or self._opened(self._schema.empty_table())
                avro = schema_text(self._avro)
                entries = keys.metadata(avro) if self._stores_keys else footer_entries(None, None, avro)
                entries = {**entries, **self._columns.vectors}
                edits = bool(self._nan or self._may_have_zero)
                key_map = encode_key_map(np.concatenate(self._hashes)) if self._hashes else b""
                of_file = (writer, self._sink, self._footers)
                close_parquet(*of_file, nan=self._nan, edits=edits, entries=entries, before_footer=key_map)
                self.size_bytes = self._sink.tell()
                if isinstance(self._sink, pa.BufferOutputStream):
                    self._file.write(self._sink.getvalue())
                self._sink.close()
                self.ranges = self._columns.ranges(self._footers[-1])
        except BaseException as exc:
            self._output.__exit__(type(exc), exc, exc.__traceback__)
            raise
        finally:
            if self._writer is not None:
                self._writer.is_open = (
                    False  # of a file that is given up nobody needs the end, which it would write when it goes
                )
            if self._sink is not None:
                self._sink.close()
        self._output.__exit__(kind, error, trace)

    def held_keys(self, most_bytes: int) -> pa.Array | None:
        """The record keys of all rows in their order; None where they take as much or more."""
        return self._keys.keys_below(most_bytes) if self._keys is not None and self._stores_keys else None

    @property
    def _stores_keys(self) -> bool:
        return self._unstored is None or not self._unstored.keys

    def _opened(self, first: pa.Table) -> Any:
        """The Parquet writer, made when the first rows show which columns repeat their values."""
        if self._writer is None:
            self._sink = self._sink or sink_over(self._file)
            self._dictionaries = dictionary_columns(first, plain=self._plain)
            self._writer = new_parquet(
                self._sink,
                first.schema,
                self._options,
                rows_bytes=first.nbytes,
                dictionaries=self._dictionaries,
                footers=self._footers,
            )
        return self._writer


def new_parquet(
    sink: pa.NativeFile,
    schema: pa.Schema,
    options: FileOptions,
    *,
    rows_bytes: int,
    dictionaries: Sequence[str] = (),
    footers: list[pq.FileMetaData] | None = None,
) -> Any:
    """A writer of a base file whose first rows have so many bytes; `footers` gets what it says of the file."""
    is_tiny = options.compression == "zstd" and rows_bytes <= _TINY_BYTES
    return parquet_writer(
        sink,
        schema,
        compression="snappy" if is_tiny else options.compression,
        store_schema=False,  # the Arrow schema in the footer would only repeat the Parquet one
        use_dictionary=list(dictionaries),
        write_page_index=False,
        data_page_size=_PAGE_BYTES,
        metadata_collector=footers,
        write_page_checksum=True,  # as Hudi's writers: zstd by itself does not notice a flipped bit
    )


def close_parquet(
    writer: Any,
    sink: pa.NativeFile,
    footers: Sequence[pq.FileMetaData],
    *,
    nan: Collection[Chunk],
    edits: bool,
    entries: Mapping[str, str],
    before_footer: bytes = b"",
) -> None:
    """End a Parquet file with these footer entries; what it says of floating columns holds for every reader.

    `footers`: where the writer collects what it wrote. `nan`: chunks in which a value is NaN. `edits`: there are such chunks, or some
    with a dictionary and values around zero. `before_footer`: bytes that no reader of Parquet looks at.
    """
    if edits:
        writer.close()
        sink.write(before_footer + sound_footer(footers[-1], nan, entries))
        return
    writer.add_key_value_metadata(entries)
    sink.write(before_footer)
    writer.close()


def has_dictionary(schema: pa.Schema, leaves: Collection[int], dictionaries: Collection[str]) -> bool:
    """Whether one of these leaf columns, given by their numbers, is written with a dictionary."""
    paths = _leaf_paths(schema) if leaves else []
    return any(paths[leaf] in dictionaries for leaf in leaves)


def one_encoding(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables as one. A column that one of them has as a dictionary array is one in all, with one dictionary of what it holds."""
    encoded = {field.name for table in tables for field in table.schema if _is_encoded(field.type)}
    if not encoded:
        return pa.concat_tables(tables)
    fields = list(tables[0].schema)
    columns: list[Any] = []
    for i, field in enumerate(fields):
        chunks = [chunk for table in tables for chunk in table.column(i).chunks]
        if field.name not in encoded:
            columns.append(pa.chunked_array(chunks, field.type))
            continue
        chunks = [chunk if _is_encoded(chunk.type) else _as_codes(chunk) for chunk in chunks]
        kind = next(chunk.type for chunk in chunks)
        column = pa.chunked_array(chunks, kind).unify_dictionaries().combine_chunks()
        columns.append(_without_unused(column))
        fields[i] = field.with_type(kind)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _as_codes(column: Any) -> Any:
    return pc.dictionary_encode(column)


def _without_unused(column: Any) -> Any:
    """A dictionary array without values that no row has: they would be carried from file to file for ever."""
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1 else column
    if isinstance(column, pa.ChunkedArray):
        return column
    there = pc.drop_null(column.indices) if column.null_count else column.indices
    used = np.zeros(len(column.dictionary), dtype=bool)
    used[there.to_numpy(zero_copy_only=False)] = True
    if used.all():
        return column
    moved = pa.array(np.cumsum(used, dtype=np.int32) - 1, pa.int32())
    return pa.DictionaryArray.from_arrays(moved.take(column.indices), column.dictionary.filter(pa.array(used)))


def _as_opened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the encodings of the first ones, by which the file was opened."""
    return rows if rows.schema.equals(schema) else rows.cast(schema)


def dictionary_columns(first: pa.Table, *, plain: Collection[str] = frozenset()) -> list[str]:
    """Leaf paths of the columns that get a dictionary: all but those whose values hardly repeat in a sample.

    Trying a dictionary on a column of different values is a third of the whole cost of writing a table of 15 columns. `plain`: leaf
    paths that are known to get none; they are not looked at. Of few rows no column gets one: its page is larger than what it saves.
    """
    if first.num_rows <= FEW_ROWS:
        return []
    sample = first.slice(0, _SAMPLE_ROWS)
    different = {
        field.name
        for field in sample.schema
        if not (pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type) or field.name in plain)
        and sample.num_rows
        and 2 * pc.count_distinct(sample.column(field.name)).as_py() > sample.num_rows
    }
    without = {RECORD_KEY, *different, *plain}
    return [path for path in _leaf_paths(first.schema) if path not in without]


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Dictionary encoding is chosen by leaf path."""
    paths: list[str] = []

    def walk(path: str, kind: pa.DataType) -> None:
        if pa.types.is_struct(kind):
            for i in range(kind.num_fields):
                walk(f"{path}.{kind.field(i).name}", kind.field(i).type)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            walk(f"{path}.list.element", kind.value_type)
        elif pa.types.is_map(kind):
            walk(f"{path}.key_value.key", kind.key_type)
            walk(f"{path}.key_value.value", kind.item_type)
        else:
            paths.append(path)

    for field in schema:
        walk(field.name, field.type)
    return paths
