"""Records of the record index, which say where the row of a record key is: made of the keys that came to file groups or left them.

Each record is the same for all keys of a file group that came there by one instant, as the HFile has the keys. So one is encoded
for each file group, and the keys stay in Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.hfile.arrays import BINARY, as_binary
from hoodie.metadata.data_groups import Shares
from hoodie.metadata.keys import group_numbers
from hoodie.metadata.partition import Shard
from hoodie.metadata.payload import convert_record, encode_record
from hoodie.metadata.slices import DeletedKeys, Layer
from hoodie.model.instant import InstantTime, parse_instant
from hoodie.options.view import RecordIndexOptions

pc: Any = pyarrow.compute
_TYPE = 5
_OF_UUID, _AS_TEXT = 0, 1
"""How a record spells a file id."""
_NO_INDEX = -1
_UUID = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:-([0-9]{1,9}))?")
_RECORD_BYTES = 48
"""What a record takes, by Apache Hudi's estimate."""


class AddedKeys(NamedTuple):
    """Keys whose rows are in one file group."""

    partition_path: str
    file_id: str
    since: InstantTime
    """Which instant wrote them there first."""
    keys: Any


class RemovedKeys(NamedTuple):
    """Keys whose rows have left a file group of this partition, or the table."""

    partition_path: str
    keys: Any


@dataclass(frozen=True)
class KeyChanges:
    """What an instant changes. Where a key is both placed and removed, its row has moved."""

    placed: Sequence[AddedKeys] = ()
    removed: Sequence[RemovedKeys] = ()


def key_shards(changes: KeyChanges, groups: int, schema: str, zone: tzinfo | None) -> Iterator[Shard]:
    """The records, by file group of the record index, which has so many; none for those that get nothing.

    `schema`: of the metadata table's records. `zone`: of the table's instant times; None: that of this process.
    """
    placed = [each for each in changes.placed if len(each.keys)]
    encoded = [_encoded(each, schema, zone) for each in placed]
    constants = pa.array(encoded, BINARY)
    keys = _together([each.keys for each in placed])
    source = np.repeat(np.arange(len(placed), dtype=np.int32), [len(each.keys) for each in placed])
    removed = _together([each.keys for each in changes.removed])
    if len(removed):
        removed = removed.filter(pc.invert(pc.is_in(removed, value_set=keys)))
    by_number, gone_by_number = _by_group(keys, groups), _by_group(removed, groups)
    for number in sorted(by_number.keys() | gone_by_number.keys()):
        rows = by_number.get(number, np.empty(0, np.int64))
        mine = keys.take(pa.array(rows))
        order = _last_of_each(mine)
        # Encoded, for one value spelled out takes more than its key.
        values = pa.DictionaryArray.from_arrays(pa.array(source[rows[order]]), constants)
        removed_keys = removed.take(pa.array(gone_by_number.get(number, np.empty(0, np.int64))))
        yield Shard(number, mine.take(pa.array(order)), values, _sorted(removed_keys))


def shards_by_partition(changes: KeyChanges, shares: Shares, schema: str, zone: tzinfo | None) -> Iterator[Shard]:
    """The same for an index by partitions: a key has a place in each one."""
    of_path: dict[str, tuple[list[AddedKeys], list[RemovedKeys]]] = {}
    for placed in changes.placed:
        of_path.setdefault(placed.partition_path, ([], []))[0].append(placed)
    for removal in changes.removed:
        of_path.setdefault(removal.partition_path, ([], []))[1].append(removal)
    for path, (come, go) in sorted(of_path.items()):
        share = shares.get(path)
        if share is not None:
            for shard in key_shards(KeyChanges(come, go), share.groups, schema, zone):
                yield shard._replace(number=share.first + shard.number)


def groups_for(options: RecordIndexOptions, records: int, least_and_most: tuple[int, int] | None = None) -> int:
    """How many file groups one gets by the options of a table. `least_and_most`: of a partition of one by partitions."""
    least, most = least_and_most or (options.least_groups, options.most_groups)
    return group_count(records, least=least, most=most, growth=options.growth, group_bytes=options.group_bytes)


def group_count(records: int, *, least: int, most: int, growth: float, group_bytes: int) -> int:
    """How many file groups a record index of so many records gets, by Apache Hudi's rule."""
    if least == most:
        return most
    return max(least, min(most, int(np.ceil(records * growth)) // max(1, group_bytes // _RECORD_BYTES)), 1)


def _together(arrays: Sequence[Any]) -> Any:
    return pa.concat_arrays([as_binary(each, "record keys") for each in arrays]) if arrays else pa.array([], BINARY)


def _by_group(keys: Any, groups: int) -> dict[int, np.ndarray]:
    """Number of a file group -> the numbers of its keys, which stay in their order."""
    if not len(keys):
        return {}
    numbers = group_numbers(keys.cast(pa.large_string()), groups)
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    return {int(numbers[part[0]]): part for part in np.split(order, ends)}


def _last_of_each(keys: Any) -> np.ndarray:
    """Numbers of keys in the order of their bytes, of equal ones that of the last."""
    if not len(keys):
        return np.empty(0, np.int64)
    order = pc.sort_indices(keys)  # stable
    ordered = keys.take(order)
    is_last = np.append(
        pc.not_equal(ordered.slice(0, len(keys) - 1), ordered.slice(1)).to_numpy(zero_copy_only=False), True
    )
    numbers: np.ndarray = order.to_numpy()[is_last.astype(bool)]
    return numbers.astype(np.int64)


def _sorted(keys: Any) -> Any:
    return keys.take(pa.array(_last_of_each(keys)))


def _encoded(placed: AddedKeys, schema: str, zone: tzinfo | None) -> bytes:
    moment = parse_instant(placed.since).replace(tzinfo=zone)
    match = _UUID.fullmatch(placed.file_id)
    high, low, index = -1, -1, _NO_INDEX
    if match is not None:
        bits = int(match[1].replace("-", ""), 16).to_bytes(16, "big")
        high, low = (int.from_bytes(half, "big", signed=True) for half in (bits[:8], bits[8:]))
        index = int(match[2]) if match[2] else _NO_INDEX
    where = {
        "partitionName": placed.partition_path,
        "fileIdHighBits": high,
        "fileIdLowBits": low,
        "fileIndex": index,
        "fileId": "" if match is not None else placed.file_id,
        "instantTime": round(moment.timestamp() * 1000),
        "fileIdEncoding": _AS_TEXT if match is None else _OF_UUID,
    }
    return encode_record({"type": _TYPE, "recordIndexMetadata": where}, schema)


def merged_records(layers: Sequence[Layer], schema: str) -> tuple[Any, Any]:
    """The newest record of each key that was not removed since, in the order of the keys; `schema` is what it gets."""
    keys, values = [pa.array([], BINARY)], [pa.array([], BINARY)]
    later: list[Any] = []
    for layer in reversed(layers):
        if isinstance(layer, DeletedKeys):
            later.append(layer.keys)
            continue
        newer = pa.concat_arrays([pa.array([], BINARY), *later])
        for batch in layer.reader.scan():
            keys_of_batch, records = batch.column("key"), batch.column("value")
            if len(newer):
                lives = pc.invert(pc.is_in(keys_of_batch, value_set=newer))
                keys_of_batch, records = keys_of_batch.filter(lives), records.filter(lives)
            keys.append(keys_of_batch)
            values.append(records if layer.schema == schema else _converted(records, layer.schema, schema))
        later = [newer, *keys[1:]]
    all_keys, all_values = pa.concat_arrays(keys), pa.concat_arrays(values)
    order = pc.sort_indices(all_keys)
    return all_keys.take(order), all_values.take(order)


def _converted(records: Any, written: str, schema: str) -> Any:
    """Records of another writer. A row loop over the few that differ: they say no more than a file group and an instant."""
    encoded = records.dictionary_encode()
    constants = [convert_record(each, written, schema) for each in encoded.dictionary.to_pylist()]
    return pa.array(constants, BINARY).take(encoded.indices)
