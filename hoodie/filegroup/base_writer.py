"""Write a base file: Parquet with the five meta columns, and the footer keys that the bloom index reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.filegroup.conform import conform
from hoodie.filegroup.staging import open_staged
from hoodie.format.base_file import footer_metadata
from hoodie.model.meta_fields import FILE_NAME, RECORD_KEY
from hoodie.model.plans import FileOptions
from hoodie.storage.base import Storage

ROW_GROUP_ROWS = 1024 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""Arrow bytes of small pieces that are collected before they are written as one row group."""
_SAMPLE_ROWS = 8192


class BaseFileWriter:
    """Streams batches into one file under a staging name; a context manager.

    Args:
        schema: the table's columns with the meta columns in front; batches must conform to it.
        file_name: the final name, which every row carries in `_hoodie_file_name`.
    """

    def __init__(
        self,
        storage: Storage,
        staged: str,
        *,
        folder: str,
        file_name: str,
        schema: pa.Schema,
        avro: Mapping[str, Any],
        options: FileOptions,
    ) -> None:
        self._schema = schema
        self._file_name = file_name
        self._options = options
        self._avro = avro
        self._staged = staged
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._keys: list[pa.Array] = []
        self.rows = 0
        self.size_bytes = 0
        self._output = open_staged(storage, staged, folder=folder)

    def __enter__(self) -> BaseFileWriter:
        self._file = self._output.__enter__()
        self._sink = pa.PythonFile(cast(Any, self._file), mode="w")
        self._writer: Any = None
        return self

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Append rows. Their `_hoodie_file_name` is set here: copied rows get the new file's name too."""
        if not data.num_rows:
            return
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        at = self._schema.get_field_index(FILE_NAME)
        name = pa.repeat(pa.scalar(self._file_name, pa.string()), table.num_rows)
        table = conform(table.set_column(at, self._schema.field(at), name), self._schema, path=self._staged)
        self._keys.extend(table.column(RECORD_KEY).chunks)
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write what waits as one row group: merges hand over many small pieces, and each would become its own."""
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._waiting, self._waiting_bytes = [], 0
            self._opened(rows).write_table(rows, row_group_size=ROW_GROUP_ROWS)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        try:
            if kind is None:
                self._flush()
                keys = pa.chunked_array(self._keys, pa.string())
                options = self._options
                writer = self._opened(self._schema.empty_table())
                writer.add_key_value_metadata(
                    footer_metadata(
                        keys,
                        bloom_type=options.bloom_type,
                        fpp=options.bloom_fpp,
                        num_entries=options.bloom_num_entries,
                        max_entries=options.bloom_max_entries,
                        avro_schema_json=json.dumps(self._avro, separators=(",", ":")),
                    )
                )
                writer.close()
                self.size_bytes = self._sink.tell()
        except BaseException as exc:
            self._output.__exit__(type(exc), exc, exc.__traceback__)
            raise
        self._output.__exit__(kind, error, trace)

    def _opened(self, first: pa.Table) -> Any:
        """The Parquet writer, made when the first rows show which columns repeat their values."""
        if self._writer is None:
            self._writer = _parquet_writer(
                self._sink,
                self._schema,
                compression=self._options.compression,
                store_schema=False,  # the Arrow schema in the footer would only repeat the Parquet one
                use_dictionary=_dictionary_columns(first),
                write_page_index=False,
                write_page_checksum=True,  # as Hudi's writers: zstd by itself does not notice a flipped bit
            )
        return self._writer


_parquet_writer: Any = pq.ParquetWriter
"""Its stubs know neither a codec chosen at run time nor dictionaries by column."""


def _dictionary_columns(first: pa.Table) -> list[str]:
    """Leaf paths of the columns that get a dictionary: all but those whose values hardly repeat in a sample.

    Trying a dictionary on a column of different values is a third of the whole cost of writing a table of 15 columns.
    """
    sample = first.slice(0, _SAMPLE_ROWS)
    different = {
        field.name
        for field in sample.schema
        if not pa.types.is_nested(field.type)
        and sample.num_rows
        and 2 * pc.count_distinct(sample.column(field.name)).as_py() > sample.num_rows
    }
    return [path for path in _leaf_paths(first.schema) if path not in different and path != RECORD_KEY]


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
