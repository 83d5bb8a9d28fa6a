"""Tables of other formats as the files that a migration in place leaves where they are, or why their metadata is needed to read them.

Rows of such a file are what a reader of Parquet finds by the names of columns: a log of deletes, or names that stand elsewhere, cannot
be taken over. Where the files are does not matter, for the index of a bootstrap has the whole address of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.migration.delta_source import DeltaSource
from hoodie.migration.iceberg_source import IcebergSource
from hoodie.migration.parquet_rows import footer
from hoodie.migration.parquet_source import ParquetSource
from hoodie.migration.source import MigrationSource, Piece, described
from hoodie.storage.uri import open_storage


def as_files(source: MigrationSource, *, partition_given: bool) -> ParquetSource:
    """Those of one state of the source, with the values of partition columns that they lack.

    Args:
        partition_given: the user says by which columns the new table is partitioned.

    Raises:
        OptionError: rows are not those of the files.
    """
    if isinstance(source, DeltaSource):
        return _of_delta(source)
    if isinstance(source, IcebergSource):
        return _of_iceberg(source, partition_given=partition_given)
    if isinstance(source, ParquetSource):
        return source
    raise _refused(source, "its rows are not those of Parquet files")


def _of_delta(source: DeltaSource) -> ParquetSource:
    if source.is_mapped:
        raise _refused(source, "its columns have other names in the files (delta.columnMapping.mode)")
    if source.live_rows:
        raise _refused(
            source,
            f"deletion vectors take rows of {len(source.live_rows)} files away, and in place all rows of a file count",
        )
    return ParquetSource(
        source.storage,
        source.schema,
        source.partition_columns,
        source.pieces,
        source.notes,
        source.format,
        source.version,
    )


def _of_iceberg(source: IcebergSource, *, partition_given: bool) -> ParquetSource:
    if source.transforms and not partition_given:
        raise _refused(
            source,
            f"it is partitioned by {', '.join(source.transforms)}, and no column has these values: partition_by=[] makes a table "
            "without partitions in place",
        )
    deletes = sum(bool(task.delete_files) for task in source.tasks.values())
    if deletes:
        raise _refused(source, f"delete files take rows of {deletes} files away, and in place all rows of a file count")
    storage = open_storage(source.uri, source.reached_by)
    ids = _ids(source.iceberg_schema)

    def relative(piece: Piece) -> Piece:
        task, root = source.tasks[piece.path], source.uri.rstrip("/")
        if not piece.path.startswith(f"{root}/"):
            raise _refused(source, f"its file {piece.path} is outside of its folder")
        if str(task.file.file_format).rpartition(".")[2] != "PARQUET":
            raise _refused(source, f"its file {piece.path} is not Parquet")
        path = piece.path.removeprefix(root).lstrip("/")
        stored, rows = footer(storage, path)
        _require_names(source, path, stored, ids)
        return replace(piece, path=path, rows=rows, partition=source.identity_values(task))

    return ParquetSource(
        storage,
        source.schema,
        source.partition_columns,
        tuple(storage.each(relative, source.pieces)),
        source.notes,
        source.format,
        source.version,
    )


def _require_names(source: IcebergSource, path: str, stored: pa.Schema, ids: set[tuple[str, int]]) -> None:
    """Raises OptionError where a file has a column that the table has not, by name and number alike: it was renamed or dropped, or
    dropped and made anew; and where a column that it lacks has a value in its rows.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema  # noqa: PLC0415 - an extra

    try:
        there = pyarrow_to_schema(
            stored, name_mapping=source.table.name_mapping(), downcast_ns_timestamp_to_us=True, format_version=3
        )
    except (ValueError, TypeError) as exc:
        raise _refused(source, f"the columns of {path} are not to be told: {exc}") from exc
    others = sorted(name for name, number in _ids(there) - ids)
    if others:
        raise _refused(
            source,
            f"column {others[0]!r} of {path} is none of the table's by this name: it was renamed or dropped, or dropped and made anew",
        )
    for field in source.iceberg_schema.fields:
        if field.initial_default is not None and field.name not in stored.names:
            raise _refused(
                source, f"{path} lacks column {field.name!r}, whose rows there have the column's default value"
            )


def _ids(schema: Any) -> set[tuple[str, int]]:
    """Name and number of each column, at any depth."""
    from pyiceberg.schema import index_name_by_id  # noqa: PLC0415 - an extra

    return {(name, number) for number, name in index_name_by_id(schema).items()}


def _refused(source: MigrationSource, why: str) -> OptionError:
    return OptionError(f"the {described(source)} cannot be migrated in place: {why}; migrate it by mode='copy'")
