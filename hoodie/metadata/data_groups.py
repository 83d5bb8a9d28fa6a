"""File groups of a record index by partitions: each partition of the table has its own, so that a key is unique in its partition.

A file id names the partition: `record-index-PATH-NNNN-0`, with `%2F` for a slash and so on; one of the whole table has no path. The
key's hash chooses among the groups of its partition. What a write or a look-up numbers are all groups together, in the order of
paths and of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import Ints
from hoodie.metadata.index_definitions import IndexDefinition, read_definition
from hoodie.metadata.keys import RECORD_INDEX, group_numbers
from hoodie.model.files import FileSlice
from hoodie.storage.base import Storage

pc: Any = pyarrow.compute
_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^_-]")
_FILE_ID = re.compile(r"record-index-([^-]*)-([0-9]{4,9})-0", re.DOTALL)
_OPTION = "isPartitioned"
NOWHERE = -1
"""In place of the number of a file group: the partition has none."""


class Share(NamedTuple):
    """The file groups of a partition, among those of all."""

    first: int
    groups: int


Shares = Mapping[str, Share]
"""By partition path."""


def definition_of(*, by_partition: bool) -> IndexDefinition:
    """Of a record index. Without one Apache Hudi goes by that which was there before."""
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, "", (), "V1", {_OPTION: str(by_partition).lower()})


def is_by_partition(storage: Storage, properties: Mapping[str, str]) -> bool:
    """Whether the definition says so of the record index of a table with these properties."""
    definition = read_definition(storage, properties, RECORD_INDEX)
    return definition is not None and definition.options.get(_OPTION, "").lower() == "true"


def file_id_in(partition_path: str, number: int) -> str:
    """The file id of a partition's file group."""
    path = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", partition_path)
    return f"record-index-{path}-{number:04d}-0"


def in_order(pieces: Sequence[FileSlice]) -> Sequence[FileSlice] | None:
    """The file slices of a record index by partitions as they are numbered; None where it is one of the whole table.

    Raises:
        CorruptFileError: it is neither, or lacks a file group.
    """
    matches = [_FILE_ID.fullmatch(each.group.file_id) for each in pieces]
    if not any(matches):
        return None
    places = [(unquote(each[1]), int(each[2])) if each else ("", NOWHERE) for each in matches]
    order = sorted(range(len(places)), key=places.__getitem__)
    sorted_pieces = [pieces[at] for at in order]
    expected = [number for share in shares_of(sorted_pieces).values() for number in range(share.groups)]
    if [places[at][1] for at in order] != expected:
        ids = ", ".join(each.group.file_id for each in sorted_pieces[:5])
        raise CorruptFileError(f"the file groups of its partitions are not numbered from 0: {ids}")
    return sorted_pieces


def shares_of(pieces: Iterable[FileSlice]) -> dict[str, Share]:
    """Which partition has which of these file slices, which are in order."""
    shares: dict[str, Share] = {}
    for at, each in enumerate(pieces):
        match = _FILE_ID.fullmatch(each.group.file_id)
        path = unquote(match[1]) if match else ""
        first, count = shares.get(path, (at, 0))
        shares[path] = Share(first, count + 1)
    return shares


def numbers_by_partition(keys: pa.Array[Any], paths: pa.Array[Any], shares: Shares) -> Ints:
    """For each key the number of the file group that holds it, if the row is in this partition; `NOWHERE` where that has none."""
    encoded = paths.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    shares_of_paths = [shares.get(path, Share(NOWHERE, 0)) for path in map(str, encoded.dictionary.to_pylist())]
    first, count = (np.array([each[at] for each in shares_of_paths], np.int64)[codes] for at in range(2))
    return np.where(count > 0, first + group_numbers(keys, np.maximum(count, 1)), NOWHERE)
