"""What rows have that their files leave out: record keys that are made of their columns, and columns that only their folder says.

Without `hoodie.populate.meta.fields` a row's key is that of its columns each time it is looked for. With
`hoodie.datasource.write.drop.partition.columns` the name of a folder is all that there is of the partition columns of its rows.
Apache Hudi's files may have either all the same, as nulls, as empty texts, or as they are: they do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, KeyFieldError
from hoodie.keygen.generator import DEFAULT_PARTITION, KeyGenerator
from hoodie.model.meta_fields import META_COLUMNS, RECORD_KEY
from hoodie.model.names import folder_of
from hoodie.options.table import TableConfig

repeated: Any = pa.repeat
"""Its stubs know scalars of each type, and none of any."""
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class FolderValues:
    """Reads the values of partition columns from the paths of partitions."""

    fields: tuple[pa.Field[Any], ...]
    hive_style: bool
    url_encode: bool
    slash_dates: bool

    def of(self, partition_path: str) -> dict[str, Any]:
        """Column -> its value in all rows of the partition.

        Raises:
            CorruptFileError: the path is none of values of these columns.
        """
        parts = [partition_path] if len(self.fields) == 1 else partition_path.split("/")
        if len(parts) != len(self.fields):
            raise self._no_values(partition_path)
        try:
            return {field.name: self._value(part, field) for field, part in zip(self.fields, parts, strict=True)}
        except (pa.ArrowException, ValueError) as exc:
            raise self._no_values(partition_path) from exc

    def _value(self, text: str, field: pa.Field[Any]) -> Any:
        if self.hive_style:
            text = text.removeprefix(f"{field.name}=")
        if text == DEFAULT_PARTITION:
            return pa.scalar(None, field.type)
        if self.url_encode:
            text = unquote(text)
        if self.slash_dates:
            text = text.replace("/", "-")
        if pa.types.is_timestamp(field.type):  # by its microseconds
            return pa.scalar(int(text), pa.timestamp("us", field.type.tz)).cast(field.type)
        return pa.scalar(text, pa.string()).cast(field.type)

    def _no_values(self, partition_path: str) -> CorruptFileError:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.fields)
        return CorruptFileError(
            f"partition {partition_path!r} has no name of values of {columns}: the table's files leave these columns out "
            "(hoodie.datasource.write.drop.partition.columns=true), and only the folder's name has them"
        )

    def require_said(self, rows: pa.Table, partitions: pa.ChunkedArray[Any], *, table: str) -> None:
        """Raises KeyFieldError for rows whose values could not be read back from their paths."""
        paths: Any = partitions.combine_chunks().dictionary_encode()
        try:
            path_values = [self.of(path) for path in paths.dictionary.to_pylist()]
        except CorruptFileError as exc:
            raise KeyFieldError(f"rows for table {table!r}: {exc}") from exc
        for field in self.fields:
            # Over distinct paths, which are few.
            values = pa.array([each[field.name].as_py() for each in path_values], field.type).take(paths.indices)
            array: Any = rows.column(field.name).combine_chunks()
            both_null: Any = pc.and_(pc.is_null(values), pc.is_null(array))
            same: Any = pc.or_(both_null, pc.fill_null(pc.equal(values, array), False))
            at = pc.index(same, False).as_py()
            if at >= 0:
                raise KeyFieldError(
                    f"partition column {field.name!r} holds {array[at].as_py()!r} in row {at} (counted from 0), which would come back "
                    f"as {values[at].as_py()!r}: table {table!r} leaves the column out of its files, and its folder is called "
                    f"{paths[at].as_py()!r}\n  fix:     change the value, or make a table that keeps its partition columns"
                )


@dataclass(frozen=True)
class VirtualColumns:
    """Brings rows of files to those of the table, and back."""

    keygen: KeyGenerator | None
    """Makes the record keys; None: they are stored."""
    key_columns: pa.Schema
    """What it makes them of."""
    folders: FolderValues | None
    """None: all columns are stored."""

    @property
    def keys(self) -> bool:
        """The `_hoodie_` columns are not stored."""
        return self.keygen is not None

    @property
    def looked_at(self) -> frozenset[str]:
        return frozenset(self.key_columns.names)

    @property
    def _left_out(self) -> Sequence[pa.Field[Any]]:
        return () if self.folders is None else self.folders.fields

    def decoded(self, schema: pa.Schema) -> pa.Schema:
        """What to read of a file for rows with the columns of `schema`."""
        names = {field.name for field in self._left_out}
        if self.keygen is not None and RECORD_KEY in schema.names:
            names.add(RECORD_KEY)
            schema = pa.schema([*schema, *(field for field in self.key_columns if field.name not in schema.names)])
        return pa.schema([field for field in schema if field.name not in names])

    def completed(self, rows: Rows, schema: pa.Schema, path: str) -> Rows:
        """Rows of the file at `path`, with the columns of `schema`; columns that are stored keep their types."""
        columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
        if self.folders is not None:
            values = self.folders.of(folder_of(path))
            columns.update({name: repeated(value, rows.num_rows) for name, value in values.items()})
        if self.keygen is not None and RECORD_KEY in schema.names:
            sources = pa.table([columns[name] for name in self.key_columns.names], names=self.key_columns.names)
            columns[RECORD_KEY] = self.keygen.keys(sources).combine_chunks()
        stored = set(rows.schema.names) - {RECORD_KEY, *(field.name for field in self._left_out)}
        fields = [rows.schema.field(field.name) if field.name in stored else field for field in schema]
        return type(rows).from_arrays([columns[field.name] for field in fields], schema=pa.schema(fields))

    def stored(self, rows: pa.Table) -> pa.Table:
        """The rows as a file has them."""
        rows = rows.drop_columns([field.name for field in self._left_out if field.name in rows.column_names])
        for name in META_COLUMNS if self.keys else ():
            at = rows.schema.get_field_index(name)
            if at >= 0:
                rows = rows.set_column(at, pa.field(name, pa.string()), pa.nulls(rows.num_rows, pa.string()))
        return rows

    def stored_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns that a file of rows with these columns has."""
        names = {field.name for field in self._left_out}
        return pa.schema([field for field in schema if field.name not in names])


def unstored_of(config: TableConfig, schema: pa.Schema) -> VirtualColumns | None:
    """What files of the table leave out of rows with these columns; None: nothing."""
    keygen = None
    if not config.populate_meta_fields and config.record_key_fields:
        # As Apache Hudi makes them of stored rows: of a single column its bare value, whatever the generator.
        texts = bool(config.key_settings.timestamps_as_text)
        keygen = KeyGenerator(config.keygen, config.record_key_fields, name_single_key=False, timestamps_as_text=texts)
    folders = folder_values(config, schema)
    if keygen is None and folders is None:
        return None
    tops = dict.fromkeys(name if name in schema.names else name.split(".")[0] for name in config.record_key_fields)
    return VirtualColumns(keygen, pa.schema([schema.field(name) for name in tops if name in schema.names]), folders)


def folder_values(config: TableConfig, schema: pa.Schema) -> FolderValues | None:
    """None: partition columns are stored in files, or there are none."""
    fields = [schema.field(name) for name in config.partition_fields if name in schema.names]
    if not config.drops_partition_columns or not fields:
        return None
    slashes = bool(config.key_settings.slash_dates) and len(fields) == 1
    return FolderValues(tuple(fields), config.hive_style, config.url_encode, slashes)
