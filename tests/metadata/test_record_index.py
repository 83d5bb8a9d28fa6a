"""The record index: its records, and what keeps it up."""

import datetime as dt
import uuid

import pyarrow as pa
import pytest

from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.metadata import payload
from hoodie.metadata.keys import group_numbers
from hoodie.metadata.payload import decode_locations, encode_hfile
from hoodie.metadata.record_index import AddedKeys, KeyChanges, RemovedKeys, group_count, key_shards
from tests.metadata_tables import SCHEMA

T1, T2 = "20260101000000001", "20260101000000002"
IDS = [
    "00000000-0000-0000-0000-000000000001-0",
    "ffffffff-ffff-4fff-8fff-ffffffffffff-12",
    str(uuid.UUID(int=7 << 64)),
    "f-1",
]


def texts(*keys):
    return pa.array(keys, pa.string())


def found(changes, groups=3, zone=dt.UTC):
    """Key -> where it is, and the keys that are gone, by what a reader finds in the files."""
    placed, gone = {}, []
    for shard in key_shards(changes, groups, SCHEMA, zone):
        reader = HFileReader(BufferSource(encode_hfile(shard.keys, shard.values, SCHEMA, is_base=True), "made"))
        for batch in reader.scan():
            keys = batch.column("key").cast(pa.binary()).cast(pa.string())
            assert set(group_numbers(keys, groups).tolist()) <= {shard.number}
            where = decode_locations(batch.column("value"), SCHEMA).to_pylist()
            placed.update(zip(keys.to_pylist(), where, strict=True))
        assert shard.removed.to_pylist() == sorted(shard.removed.to_pylist())
        gone += [key.decode() for key in shard.removed.to_pylist()]
    return placed, sorted(gone)


@pytest.mark.parametrize("file_id", IDS)
@pytest.mark.parametrize("path", ["", "a", "a=1/b=ö"])
def test_records_say_the_place_of_a_key(file_id, path):
    keys = texts(".", "k1", "kö", "k\U0001f600", "k0")
    placed, gone = found(KeyChanges([AddedKeys(path, file_id, T1, keys)]))
    assert placed.keys() == set(keys.to_pylist())
    assert gone == []
    assert {(each["partition_path"], each["file_id"]) for each in placed.values()} == {(path, file_id)}
    assert {each["written"] for each in placed.values()} == {dt.datetime(2026, 1, 1, microsecond=1000, tzinfo=dt.UTC)}


def test_a_file_is_the_same_whatever_the_number_of_values_that_are_spelled_out_at_a_time(monkeypatch):
    places = [AddedKeys(path, IDS[0], T1, texts(*(f"{path}{number}" for number in range(20)))) for path in "ba"]
    (shard,) = key_shards(KeyChanges(places), 1, SCHEMA, dt.UTC)
    whole = encode_hfile(shard.keys, shard.values, SCHEMA, is_base=True)
    monkeypatch.setattr(payload, "_AT_ONCE", 3)
    assert encode_hfile(shard.keys, shard.values, SCHEMA, is_base=True) == whole
    assert encode_hfile(shard.keys, shard.values.dictionary_decode(), SCHEMA, is_base=True) == whole


def test_a_key_that_moves_is_placed_and_not_removed():
    changes = KeyChanges(
        [AddedKeys("b", IDS[0], T1, texts("x", "y"))],
        [RemovedKeys("a", texts("x", "z", "z")), RemovedKeys("b", texts("z"))],
    )
    placed, gone = found(changes)
    assert placed.keys() == {"x", "y"}
    assert gone == ["z"]


def test_of_two_places_of_a_key_the_last_counts():
    changes = KeyChanges([AddedKeys("a", IDS[0], T1, texts("y", "x", "x")), AddedKeys("b", IDS[1], T2, texts("x"))])
    placed, _ = found(changes, groups=1)
    assert {key: each["partition_path"] for key, each in placed.items()} == {"x": "b", "y": "a"}


def test_nothing_makes_no_shard():
    assert (
        list(
            key_shards(KeyChanges([AddedKeys("a", IDS[0], T1, texts())], [RemovedKeys("a", texts())]), 3, SCHEMA, None)
        )
        == []
    )


@pytest.mark.parametrize(
    ("records", "rule", "count"),
    [
        (0, {}, 10),
        (10_000_000, {}, 10),
        (1_000_000_000, {}, 89),
        (10**12, {}, 10_000),
        (5, {"least": 3, "most": 3}, 3),
        (1_000, {"least": 1, "group_bytes": 48 * 100}, 20),
        (1_000, {"least": 0, "most": 5, "group_bytes": 1}, 5),
        (0, {"least": 0}, 1),
    ],
)
def test_the_number_of_file_groups(records, rule, count):
    defaults = {"least": 10, "most": 10_000, "growth": 2.0, "group_bytes": 1 << 30}
    assert group_count(records, **(defaults | rule)) == count
