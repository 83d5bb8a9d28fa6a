"""A few keys in logs: what they say of these is what all of a scan says, and blocks without them are not decoded."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.filegroup import log_scan
from hoodie.format import log_search
from hoodie.format.cursor import i32
from hoodie.format.log_block import encode_block
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.meta_fields import RECORD_KEY
from tests.log_blocks import COLUMNS, data, deletes, t
from tests.log_scans import COMMIT, EVENT, WANTED, scan, undo

KINDS = (BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA)
NARROW = pa.schema([("ts", pa.int64())])
NESTED = pa.schema([("tags", pa.list_(pa.string())), *COLUMNS])


def said(found, keys):
    """Key -> what logs say of it."""
    rows = {row[RECORD_KEY]: row for row in found.data.to_pylist()}
    ordering = [None] * len(found.keys) if found.ordering is None else found.ordering.to_pylist()
    entries = zip(found.keys.to_pylist(), ordering, found.commit_time_deletes.tolist(), strict=True)
    return {key: (rows.get(key), *rest) for key, *rest in entries if key in keys}


def logs(kind, seed):
    """Two files of blocks with keys that are parts of each other, and of other columns."""
    random = np.random.default_rng(seed)
    names = ["", "k", "k1", "k12", "key-with-some-length", "ü", *(f"key-{n:05}" for n in range(40))]

    def some(count):
        return [(key, int(random.integers(9)), str(random.choice(names))) for key in random.choice(names, count, False)]

    first = [data(1, *some(30), kind=kind), deletes(2, *(row[:2] for row in some(5))), data(3, *some(20), kind=kind)]
    second = [data(4, *some(9), kind=kind), undo(5, 3), deletes(6, *((key, None) for key, *_ in some(3)))]
    return (first, second), names


@pytest.mark.parametrize("rule", [EVENT, COMMIT], ids=["event", "commit"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_logs_say_of_a_key_is_what_a_whole_scan_says(kind, rule):
    schema = WANTED if rule is EVENT else WANTED.remove(1)
    for seed in range(4):
        files, names = logs(kind, seed)
        whole = scan(*files, rule=rule, schema=schema)
        for sought in ([], *([key] for key in names[:12]), names[4:6], names[:9], names, ["absent"]):
            found = scan(*files, rule=rule, schema=schema, sought=sought)
            assert said(found, names) == said(whole, sought)
            assert found.blocks == whole.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_a_partial_block_lacks_keep_the_older_value(kind):
    blocks = [
        data(1, ("a", 1, "a1"), ("b", 1, "b1"), kind=kind),
        data(2, ("a", 2), ("c", 2), schema=NARROW, partial=True, kind=kind),
        data(3, ("d", 2), schema=NARROW, partial=True, kind=kind),
    ]
    whole = scan(blocks)
    for key in "abcd":
        found = scan(blocks, sought=[key])
        assert said(found, "abcd") == said(whole, key)
        held = {} if found.present is None else found.present
        assert {name: flags.tolist() for name, flags in held.items()} == ({"val": [key == "a"]} if key in "acd" else {})


@pytest.mark.parametrize("many", [False, True])
def test_columns_that_repeat(many):
    blocks = [data(1, *((f"key-{n}", [f"tag-{n}"], n, "v") for n in range(20)), schema=NESTED)]
    schema = pa.schema([(RECORD_KEY, pa.string()), ("tags", NESTED.field("tags").type), ("ts", pa.int64())])
    sought = ["key-3", "key-12", "key-7", "tag-4"][: 4 if many else 1]
    assert said(scan(blocks, schema=schema, sought=sought), sought) == said(scan(blocks, schema=schema), sought)


def test_blocks_without_the_keys_are_not_decoded(monkeypatch):
    def decoded(*_, **__):
        raise AssertionError("decoded")

    blocks = [data(1, *((f"key-{n:03}", n, "v") for n in range(50))), deletes(2, ("key-002", 70))]
    for name in ("decode_records", "decode_field", "record_bounds"):
        monkeypatch.setattr(log_search, name, decoded)
    monkeypatch.setattr(log_scan, "decode_deletes", decoded)
    found = scan(blocks, sought=["key-777"], said=[[(1, 50), (2, 1)]])
    assert (len(found.keys), found.blocks) == (0, 2)


def test_of_a_block_with_a_key_only_its_record_is_decoded(monkeypatch):
    decoded = []
    of_all = log_search.decode_records
    monkeypatch.setattr(log_search, "decode_records", lambda *of: decoded.append(len(of[1])) or of_all(*of))
    scan([data(1, *((f"key-{n:03}", n, "v") for n in range(50)))], sought=["key-007"])
    assert decoded == [1]


def test_lost_blocks_are_missed():
    blocks = [data(1, ("a", 1, "a1"), ("b", 1, "b1")), deletes(2, ("c", 1))]
    scan(blocks, sought=["z"], said=[[(1, 2), (2, 1)]])
    for lost in ([(1, 3)], [(2, 2)]):
        with pytest.raises(CorruptFileError, match="a block or the commit's metadata are damaged"):
            scan(blocks, sought=["z"], said=[lost])


def test_deletes_in_several_blocks_of_a_list_are_counted():
    """Java's writers make one; the specification of Avro has more."""
    one = b"\x02\x02a\x02\x00\x04\x00"
    body = b"\x02" + one + b"\x02" + one.replace(b"a", b"b") + b"\x00"
    block = encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: t(1)}, i32(3) + i32(len(body)) + body)
    for key in "abz":
        found = scan([block], sought=[key], said=[[(1, 2)]])
        assert [each for each in found.keys.to_pylist() if each == key] == ([key] if key != "z" else [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_record_of_the_key_is_an_error_as_in_a_whole_scan(kind):
    """Whatever byte breaks: never silence about a key that a whole scan finds, or finds damaged."""
    good = data(1, ("other-key", 1, "x"), ("some-key", 7, "value"), kind=kind)
    row = said(scan([good]), ["some-key"])
    for at in range(len(good) - 80, len(good)):
        bad = good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :]
        found, whole = (outcome(bad, sought) for sought in (["some-key"], None))
        assert found == whole or (whole is None and found == row), at


def outcome(block, sought):
    try:
        return said(scan([block], sought=sought), ["some-key"])
    except CorruptFileError:
        return None
