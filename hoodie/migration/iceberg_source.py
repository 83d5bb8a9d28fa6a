"""A snapshot of an Iceberg table as a source: its live files, without the rows that delete files take away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from hoodie.errors import OptionError, TableNotFoundError, UnsupportedTableError
from hoodie.migration.reach import for_pyiceberg, from_pyiceberg
from hoodie.migration.source import Piece
from hoodie.storage.base import Storage

_METADATA = re.compile(r"(?:v(\d+)|(\d+)-.*)(?:\.gz)?\.metadata\.json(?:\.gz)?")


@dataclass(frozen=True)
class IcebergSource:
    """`MigrationSource` of a snapshot of a table that pyiceberg opened."""

    uri: str
    table: Any
    version: str
    """The identifier of the snapshot."""
    reached_by: Mapping[str, str] | None = None
    format: str = "iceberg"

    @cached_property
    def schema(self) -> pa.Schema:
        return _plain(self.iceberg_schema.as_arrow())

    @property
    def iceberg_schema(self) -> Any:
        return self._scan.projection()

    @cached_property
    def _scan(self) -> Any:
        return self.table.scan(snapshot_id=int(self.version))

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(name for name, transform in self._partitioning if transform == "identity")

    @property
    def notes(self) -> tuple[str, ...]:
        others = self.transforms
        deletes = sum(bool(task.delete_files) for task in self.tasks.values())
        result = [f"the partitioning by {', '.join(others)} is not taken over: give partition_by"] if others else []
        if deletes:
            result.append(f"delete files take rows of {deletes} files away")
        newest = self.table.current_snapshot()
        if newest and str(newest.snapshot_id) == self.version and self.table.schema() != self.iceberg_schema:
            result.append("columns are those of the snapshot, which were changed since")
        return tuple(result)

    @property
    def transforms(self) -> list[str]:
        """What the table is partitioned by beside plain columns."""
        return [f"{how}({name})" for name, how in self._partitioning if how not in ("identity", "void")]

    def identity_values(self, task: Any) -> dict[str, pa.Scalar]:
        """Plain columns that a file is partitioned by, each with the value of all of its rows."""
        fields = enumerate(self.table.specs()[task.file.spec_id].fields)
        values = {
            self.iceberg_schema.find_column_name(field.source_id): task.file.partition[at]
            for at, field in fields
            if str(field.transform) == "identity"
        }
        return {
            name: pa.scalar(value, self.schema.field(name).type)
            for name, value in values.items()
            if name in self.schema.names
        }

    @property
    def _partitioning(self) -> list[tuple[str, str]]:
        names = self.iceberg_schema.find_column_name
        return [
            (names(field.source_id) or str(field.source_id), str(field.transform)) for field in self.table.spec().fields
        ]

    @cached_property
    def tasks(self) -> Mapping[str, Any]:
        try:
            return {task.file.file_path: task for task in self._scan.plan_files()}
        except (NotImplementedError, ValueError) as exc:
            raise UnsupportedTableError(
                f"pyiceberg does not read snapshot {self.version} of {self.uri}: {exc}\n"
                "  fix:     rewrite its data files with Spark or Trino, which applies the deletes, and migrate the new snapshot"
            ) from exc

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        pieces = [
            Piece(path, task.file.file_size_in_bytes, None if task.delete_files else task.file.record_count)
            for path, task in self.tasks.items()
        ]
        return tuple(sorted(pieces, key=lambda piece: piece.order))

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415 - an extra
        from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415 - an extra

        projected = self.iceberg_schema.select(*columns)
        scan = ArrowScan(self.table.metadata, self.table.io, projected, AlwaysTrue())
        return iter(scan.to_record_batches([self.tasks[piece.path]]))


def open_iceberg_source(origin: Any, version: str | None, reached_by: Mapping[str, str] | None) -> IcebergSource:
    """A table of pyiceberg, or the one whose folder is at a storage's root; its current snapshot unless another is named.

    Raises:
        OptionError: pyiceberg is not installed. TableNotFoundError: there is no metadata, or no snapshot.
        UnsupportedTableError: pyiceberg does not read it.
    """
    try:
        from pyiceberg.exceptions import NotInstalledError  # noqa: PLC0415 - an extra
        from pyiceberg.table import StaticTable  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise OptionError(
            "Iceberg tables are read by pyiceberg, which is not installed\n  fix:     pip install 'hoodie[iceberg]'"
        ) from None
    table = origin
    if isinstance(origin, Storage):
        path = f"{origin.uri}/{newest_metadata(origin)}"
        try:
            table = StaticTable.from_metadata(path, for_pyiceberg(origin))
        except (NotInstalledError, NotImplementedError, ValueError, OSError) as exc:
            raise UnsupportedTableError(f"pyiceberg does not open {path}: {exc}") from exc
    snapshot = table.current_snapshot() if version is None else table.snapshot_by_id(int(version))
    if snapshot is None:
        raise TableNotFoundError(
            f"the Iceberg table {table.location()} has no snapshot {version or ''}: it has no rows, or the snapshot has expired"
        )
    if reached_by is None and not isinstance(origin, Storage):
        reached_by = from_pyiceberg(table.io.properties)
    return IcebergSource(table.location(), table, str(snapshot.snapshot_id), reached_by)


def newest_metadata(storage: Storage) -> str:
    """The path of the newest metadata file of a table without a catalog, by the numbers of the names.

    Raises:
        TableNotFoundError: there is none.
    """
    versions = [
        (int(match[1] or match[2]), name) for name in storage.names("metadata") if (match := _METADATA.fullmatch(name))
    ]
    if not versions:
        raise TableNotFoundError(f"there is no metadata of an Iceberg table in {storage.uri}/metadata")
    return f"metadata/{max(versions)[1]}"


def _plain(schema: pa.Schema) -> pa.Schema:
    """Without what pyiceberg notes of fields."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])
