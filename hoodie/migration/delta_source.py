"""A version of a Delta table as a source: its live files, without the rows that deletion vectors take away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError, TableNotFoundError, UnsupportedTableError
from hoodie.migration.parquet_rows import footer, rows_of_file
from hoodie.migration.reach import options_of
from hoodie.migration.source import Piece
from hoodie.storage.base import Storage

_WHOLE = "*"
"""The path of the piece that is the whole table."""


@dataclass(frozen=True)
class DeltaSource:
    """`MigrationSource` of a Delta table, which deltalake opens."""

    storage: Storage
    table: Any
    format: str = "delta"

    @property
    def uri(self) -> str:
        return self.storage.uri

    @property
    def version(self) -> str:
        return str(self.table.version())

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema(self.table.schema().to_arrow()).remove_metadata()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.table.metadata().partition_columns)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        notes = [] if not self.live_rows else [f"deletion vectors of {len(self.live_rows)} files take rows away"]
        if self.is_mapped:
            notes.append("columns are mapped to other names in the files: the whole table is one step")
        return tuple(notes)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        actions: Any = pa.table(self.table.get_add_actions())
        if self.is_mapped:
            return (Piece(_WHOLE, pc.sum(actions.column("size_bytes")).as_py() or 0),)
        names = self.partition_columns
        counts = actions.column("num_records").to_pylist() if "num_records" in actions.column_names else []
        partitions = actions.column("partition").combine_chunks() if names else None
        pieces = []
        for at, action in enumerate(actions.select(["path", "size_bytes"]).to_pylist()):
            path = unquote(action["path"])
            if "://" in path or path.startswith("/"):
                raise UnsupportedTableError(
                    f"the Delta table {self.uri} has a file in another place, {path}, as shallow clones have: make a deep "
                    "clone of it first"
                )
            rows = counts[at] if counts and counts[at] is not None else footer(self.storage, path)[1]
            if path in self.live_rows:
                rows -= int(np.count_nonzero(~self.live_rows[path]))
            values = {} if partitions is None else {name: partitions[at][name] for name in names}
            values = {name: value.cast(self.schema.field(name).type) for name, value in values.items()}
            pieces.append(Piece(path, action["size_bytes"], rows, values))
        return tuple(sorted(pieces, key=lambda piece: piece.order))

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if piece.path == _WHOLE:
            return iter(pa.RecordBatchReader.from_stream(self.table.scan(columns=list(columns))))
        return rows_of_file(self.storage, piece, columns, keep=self.live_rows.get(piece.path))

    @cached_property
    def is_mapped(self) -> bool:
        """Columns have other names in the files."""
        return bool(self.table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none")

    @cached_property
    def live_rows(self) -> Mapping[str, np.ndarray]:
        """Path of a file -> for each of its first rows, whether it is not deleted."""
        if "deletionVectors" not in (self.table.protocol().reader_features or ()):
            return {}
        vectors = pa.RecordBatchReader.from_stream(self.table.deletion_vectors()).read_all()
        flags_of = {}
        for row in range(vectors.num_rows):
            uri = vectors.column("filepath")[row].as_py()
            flags = vectors.column("selection_vector")[row].values
            flags_of[self._relative(uri)] = flags.to_numpy(zero_copy_only=False).astype(bool)
        return flags_of

    def _relative(self, uri: str) -> str:
        """The path in the table of a file's address."""
        root = self.table.table_uri.rstrip("/").rpartition("://")[2]
        return unquote(uri).rpartition("://")[2].removeprefix(unquote(root)).lstrip("/")


def open_delta_source(storage: Storage, version: str | None, reached_by: Mapping[str, str] | None) -> DeltaSource:
    """The Delta table at a storage's root, the newest version of it unless another is named.

    Raises:
        OptionError: deltalake is not installed. TableNotFoundError, UnsupportedTableError: it does not open it.
    """
    try:
        import deltalake  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise OptionError(
            f"the Delta table {storage.uri} is read by deltalake, which is not installed\n  fix:     pip install 'hoodie[delta]'"
        ) from None
    try:
        table = deltalake.DeltaTable(
            storage.uri,
            version=None if version is None else int(version),
            storage_options={**(reached_by or {}), **options_of(storage)} or None,
        )
    except deltalake.exceptions.TableNotFoundError as exc:
        raise TableNotFoundError(f"there is no Delta table at {storage.uri}: {exc}") from exc
    except deltalake.exceptions.DeltaError as exc:
        raise UnsupportedTableError(
            f"deltalake does not open {storage.uri} at version {version or 'newest'}: {exc}"
        ) from exc
    return DeltaSource(storage, table)
