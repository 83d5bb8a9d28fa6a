"""Places of record keys by a record index: in which file group the row of a key is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.format.avro_wire import Ints
from hoodie.metadata.bounds import numbers_of
from hoodie.metadata.data_groups import Shares, numbers_by_partition
from hoodie.metadata.keys import group_numbers, identifier_of
from hoodie.metadata.payload import decode_locations
from hoodie.metadata.slices import Layer, RecordMatches, by_group, layers_of, newest_of
from hoodie.model.files import FileSlice
from hoodie.model.instant import VisibleInstants
from hoodie.model.names import METADATA_TABLE
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.subfolder import FolderStorage

pc: Any = pyarrow.compute
_LOCATION: Mapping[str, pa.DataType] = {
    "partition_path": pa.string(),
    "file_id": pa.string(),
    "written": pa.timestamp("ms", "UTC"),
}


@dataclass(frozen=True)
class RecordIndex:
    """The file groups of a record index as they are for one snapshot of the table; picklable, for tasks that look keys up."""

    pieces: tuple[FileSlice, ...]
    """Each at the place of its number."""
    visible: VisibleInstants
    shares: Shares | None = None
    """Of one by partitions."""

    def places(self, storage: Storage, cache: Cache, keys: pa.Array[Any], paths: pa.Array[Any]) -> pa.Table:
        """As `MetadataTable.locations`; `storage`: of the table.

        Raises:
            CorruptFileError, MissingFileError, UnsupportedTableError: a file is damaged, gone, or holds something else.
        """
        layers = partial(self._layers, FolderStorage(storage, METADATA_TABLE), cache)
        return locations_of(newest_of(by_group(storage, self.numbers(keys, paths), layers), keys), len(keys))

    def numbers(self, keys: pa.Array[Any], paths: pa.Array[Any] | None) -> Ints:
        """For each key the number of the file group that holds it; negative where its partition has none."""
        if self.shares is None:
            return group_numbers(keys, len(self.pieces))
        if paths is None:
            raise UnsupportedTableError("it is one by partitions, and does not say in which one a key is")
        return numbers_by_partition(keys, paths, self.shares)

    def _layers(self, folder: Storage, cache: Cache, number: int) -> Sequence[Layer]:
        return layers_of(folder, self.pieces[number], self.visible, cache)


def locations_of(parts: Sequence[RecordMatches], count: int) -> pa.Table:
    """The places of so many keys, null where there is no record of one."""
    tables = [decode_locations(part.values, part.schema) for part in parts]
    places = pa.concat_tables([pa.schema(_LOCATION).empty_table(), *tables]).combine_chunks()
    placed = places.take(numbers_of([part.rows for part in parts], count))
    unpartitioned = pc.equal(placed["partition_path"], identifier_of(""))
    return placed.set_column(0, "partition_path", pc.if_else(unpartitioned, "", placed["partition_path"]))
