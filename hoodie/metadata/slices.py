"""One file slice of a metadata table: an HFile and the HFiles in log blocks on it, each of which may have a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import CorruptFileError
from hoodie.filegroup.log_blocks import live_blocks
from hoodie.format.avro_wire import Ints
from hoodie.format.delete_codec import decode_deletes
from hoodie.format.log_block import LogBlock
from hoodie.hfile.arrays import BINARY, as_binary
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource, StorageSource
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import FileSlice
from hoodie.model.instant import VisibleInstants
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache

pc: Any = pyarrow.compute
_SCHEMA = b"schema"


class HFileRecords(NamedTuple):
    """Records of one HFile."""

    reader: HFileReader
    schema: str


class DeletedKeys(NamedTuple):
    """Keys that a delete block took away."""

    keys: Any


class RecordMatches(NamedTuple):
    """Records of some of the keys that were asked for."""

    rows: Ints
    """Which ones, by their numbers."""
    values: Any
    """Avro binary; None: they were deleted."""
    schema: str


Layer = HFileRecords | DeletedKeys


def layers_of(storage: Storage, piece: FileSlice, visible: VisibleInstants, cache: Cache) -> Sequence[Layer]:
    """What the slice consists of, oldest first.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedTableError: a file is damaged, gone, or holds something else.
    """
    layers: list[Layer] = []
    if piece.base is not None:
        reader = HFileReader(StorageSource(storage, storage.stat(piece.base.path)), cache)
        layers.append(HFileRecords(reader, _schema(reader, piece.base.path)))
    for block, path in live_blocks(storage, piece.logs, visible, data=(BlockKind.HFILE_DATA,), mapped=True).blocks:
        layers.append(_layer(block, path))
    return layers


def newest(layers: Sequence[Layer], keys: Any) -> Iterator[RecordMatches]:
    """The newest record of each key, where it was not deleted; keys are `large_binary`."""
    rows = np.arange(len(keys))
    for layer in reversed(layers):
        if not len(rows):
            return
        hits = _look_up(layer, keys.take(pa.array(rows)))
        if len(hits.rows):
            if hits.values is not None:
                yield hits._replace(rows=rows[hits.rows])
            rows = np.delete(rows, hits.rows)


def by_group(
    storage: Storage, numbers: Ints, layers_of_group: Callable[[int], Sequence[Layer]]
) -> Sequence[tuple[Ints, Sequence[Layer]]]:
    """Numbers of keys with the layers of the file group that holds them.

    `numbers`: the file group of each key, negative where there is none; `layers_of_group` gives the layers of one.
    """
    groups = np.unique(numbers[numbers >= 0]).tolist()
    layers = storage.each(layers_of_group, groups)
    return [(np.flatnonzero(numbers == number), of_group) for number, of_group in zip(groups, layers, strict=True)]


def newest_of(groups: Iterable[tuple[Ints, Sequence[Layer]]], keys: pa.Array[Any]) -> list[RecordMatches]:
    """The newest records of keys, which lie in these file groups; `rows` counts among all of them."""
    texts = as_binary(keys, "keys")
    return [
        part._replace(rows=rows[part.rows])
        for rows, layers in groups
        for part in newest(layers, texts.take(pa.array(rows)))
    ]


def every(layers: Sequence[Layer], keys: Any) -> Iterator[RecordMatches]:
    """All records of each key, oldest first, and where they were deleted."""
    for layer in layers:
        hits = _look_up(layer, keys)
        if len(hits.rows):
            yield hits


def joined(parts: Sequence[RecordMatches]) -> Sequence[RecordMatches]:
    """The same with fewer parts, one for each schema, where no key is in two of them; else as they are."""
    rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
    if len(np.unique(rows)) < len(rows) or any(part.values is None for part in parts):
        return parts
    schemas = dict.fromkeys(part.schema for part in parts)
    together = ([part for part in parts if part.schema == schema] for schema in schemas)
    return [
        RecordMatches(
            np.concatenate([part.rows for part in same]),
            pa.concat_arrays([part.values for part in same]),
            same[0].schema,
        )
        for same in together
    ]


def all_keys(layers: Sequence[Layer]) -> Any:
    """Every key that there is a record of, once, those that were deleted included."""
    pieces = [
        batch.column("key") for layer in layers if isinstance(layer, HFileRecords) for batch in layer.reader.scan()
    ]
    return pa.chunked_array(pieces, BINARY).unique()


def _look_up(layer: Layer, keys: Any) -> RecordMatches:
    if isinstance(layer, DeletedKeys):
        return RecordMatches(np.flatnonzero(pc.is_in(keys, value_set=layer.keys)), None, "")
    values = layer.reader.get_many(keys)
    rows = np.flatnonzero(values.is_valid())
    return RecordMatches(rows, values if len(rows) == len(values) else values.drop_null(), layer.schema)


def _layer(block: LogBlock, path: str) -> Layer:
    if block.kind is BlockKind.DELETE:
        return DeletedKeys(as_binary(decode_deletes(block.content, None)["record_key"], "deleted keys"))
    reader = HFileReader(BufferSource(block.content, f"{path}, block at byte {block.offset}"))
    return HFileRecords(reader, block.header.get(HeaderKey.SCHEMA) or _schema(reader, path))


def _schema(reader: HFileReader, path: str) -> str:
    try:
        return reader.info[_SCHEMA].decode()
    except (KeyError, UnicodeDecodeError) as exc:
        raise CorruptFileError(f"{path} has no schema of its records") from exc
