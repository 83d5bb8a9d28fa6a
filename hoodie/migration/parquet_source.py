"""A folder of Parquet files as a source; names of folders such as `day=2026-01-01` are values of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from hoodie.errors import OptionError, SchemaError, TableNotFoundError
from hoodie.migration.parquet_rows import footer, rows_of_file
from hoodie.migration.source import Piece
from hoodie.model.results import format_count
from hoodie.storage.base import FileInfo, Storage

_NULL = "__HIVE_DEFAULT_PARTITION__"
_HIDDEN = (".", "_")
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Written as it would be written again: 07 stays a text."""


@dataclass(frozen=True)
class ParquetSource:
    """`MigrationSource` of the files in a folder and below. Names that begin with a dot or an underscore are hidden, as in Spark."""

    storage: Storage
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()
    format: str = "parquet"
    version: str | None = None

    @property
    def uri(self) -> str:
        return self.storage.uri

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return rows_of_file(self.storage, piece, columns)


def open_parquet_source(storage: Storage, partition_by: Sequence[str] | None) -> ParquetSource:
    """The folder as it is now.

    Args:
        partition_by: as the user says. Those that files lack are values of folders that do not name their columns.

    Raises:
        TableNotFoundError: there is no such file. SchemaError: columns of files do not fit together.
        OptionError: a partition column is in neither.
    """
    there = [info for info in storage.list("", recursive=True) if not info.is_folder and info.size_bytes]
    files = [info for info in there if counts(info)]
    if not files:
        raise TableNotFoundError(f"there is no Parquet file in or below {storage.uri}: give the folder of the source")
    footers = storage.each(lambda info: footer(storage, info.path), files)
    whole = _together([(info.path, stored) for info, (stored, _) in zip(files, footers, strict=True)])
    empty = [each.name for each in whole if pa.types.is_null(each.type)]
    schema = pa.schema([each for each in whole if each.name not in empty])
    folders = [info.folder.split("/") if info.folder else [] for info in files]
    names, values = _of_folders(storage.uri, folders, schema, partition_by or ())
    kinds = [
        schema.field(name).type if name in schema.names else _kind([each[at] for each in values])
        for at, name in enumerate(names)
    ]
    fields = [pa.field(name, kind) for name, kind in zip(names, kinds, strict=True) if name not in schema.names]
    pieces = [
        Piece(
            info.path,
            info.size_bytes,
            rows,
            {
                name: _scalar(info.path, name, value, kind)
                for name, value, kind in zip(names, each, kinds, strict=True)
                if name not in stored.names
            },
        )
        for info, (stored, rows), each in zip(files, footers, values, strict=True)
    ]
    notes = []
    left_out = [name for name in empty if name not in names]
    if left_out:
        notes.append(f"columns with nothing but null and no type are left out: {', '.join(left_out)}")
    if any(folders) and not names:
        notes.append("names of folders are not taken over: they name no columns, and no partition column is missing")
    others = [info.path for info in there if not counts(info)]
    if others:
        notes.append(
            f"{format_count(len(others), 'file')} left out, hidden or not named .parquet, such as {min(others)}"
        )
    return ParquetSource(
        storage,
        pa.schema([*schema, *fields]),
        tuple(partition_by) if partition_by else names,
        tuple(sorted(pieces, key=lambda piece: piece.order)),
        tuple(notes),
    )


def counts(info: FileInfo) -> bool:
    """Whether it is a file of the source."""
    parts = info.path.split("/")
    hidden = any(part.startswith(_HIDDEN) and "=" not in part and part != _NULL for part in parts)
    return not hidden and info.name.lower().endswith((".parquet", ".parq"))


def _together(files: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """One schema for all: columns that some files lack are null there."""
    path, common = files[0]
    common = common.remove_metadata()
    for path, schema in files[1:]:
        if schema.equals(common):
            continue
        try:
            common = pa.unify_schemas([common, schema.remove_metadata()], promote_options="permissive")
        except pa.ArrowException as exc:
            raise SchemaError(f"the columns of {path} do not fit those of the files before it: {exc}") from exc
    return common


def _of_folders(
    uri: str, folders: Sequence[Sequence[str]], schema: pa.Schema, partition_by: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
    """The columns that folders say, and their values for each file."""
    keys = {tuple(part.partition("=")[0] if "=" in part else "" for part in parts) for parts in folders}
    (first, *others) = keys
    if not others and first and all(first):
        return first, [tuple(_value(part.partition("=")[2]) for part in parts) for parts in folders]
    if any(all(each) and each for each in keys):
        raise OptionError(
            f"the folders of {uri} do not have the same columns: {sorted('/'.join(each) for each in keys)[:5]}; migrate each "
            "kind by itself"
        )
    missing = tuple(name for name in partition_by if name not in schema.names)
    if not missing:
        return (), [() for _ in folders]
    depths = {len(parts) for parts in folders}
    if depths != {len(missing)}:
        raise OptionError(
            f"partition columns {', '.join(missing)} are not in the files of {uri}, whose folders are {sorted(depths)} deep: give "
            "as many partition columns as there are folders on the way to a file, or columns of the files"
        )
    return missing, [tuple(map(_value, parts)) for parts in folders]


def _value(text: str) -> str | None:
    return None if text == _NULL else unquote(text)


def _scalar(path: str, name: str, value: str | None, kind: pa.DataType) -> pa.Scalar:
    """What a folder says, in the type that the column has: another file may have it as a column."""
    try:
        return pa.scalar(value, pa.string()).cast(kind)
    except pa.ArrowException as exc:
        raise SchemaError(
            f"the folder of {path} says {name}={value}, and other files have a column {name!r} of {kind}: {exc}"
        ) from exc


def _kind(values: Sequence[str | None]) -> pa.DataType:
    """Numbers only where the folder's name can be made of them again."""
    texts = {value for value in values if value is not None}
    if not texts or not all(_WHOLE_NUMBER.fullmatch(value) for value in texts):
        return pa.string()
    small = all(-(2**31) <= int(value) < 2**31 for value in texts)
    return pa.int32() if small else pa.int64()
