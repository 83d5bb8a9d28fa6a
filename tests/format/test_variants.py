"""The Variant encoding of Parquet: bytes by its specification, JSON of them, and bytes of values."""

import json
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.filegroup.conform import as_type
from hoodie.format.variant_json import variant_json
from hoodie.format.variant_values import encoded, variants_of_values
from hoodie.format.variants import STORED_VARIANT, VARIANT, is_raw, replaced

RAW = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def json_of(*pairs):
    found = pa.array([{"metadata": bytes.fromhex(m), "value": bytes.fromhex(v)} for m, v in pairs], RAW)
    return variant_json(as_type(found, VARIANT)).to_pylist()


# What Apache Hudi 1.2 on Spark 4.0 stored for parse_json('{"updated": true, "new_field": 123}'), and values by the specification.
@pytest.mark.parametrize(
    ("metadata", "value", "text"),
    [
        ("0102000710757064617465646e65775f6669656c64", "0202010001000304 0c7b", '{"new_field":123,"updated":true}'),
        ("010000", "00", "null"),
        ("010000", "0c ff", "-1"),
        ("010000", "10 2c01", "300"),
        ("010000", "18 0000000001000000", "4294967296"),
        ("010000", "1c 000000000000f83f", "1.5"),
        ("010000", "38 0000003f", "0.5"),
        ("010000", "20 02 96000000", "1.50"),
        ("010000", "24 00 ffffffffffffffff", "-1"),
        ("010000", "28 26 01000000000000000000000000000000", "1E-38"),
        ("010000", "2c 00000000", '"1970-01-01"'),
        ("010000", "30 0000000000000000", '"1970-01-01 00:00:00.000000Z"'),
        ("010000", "34 0100000000000000", '"1970-01-01 00:00:00.000001"'),
        ("010000", "44 40420f0000000000", '"00:00:01.000000"'),
        ("010000", "48 0100000000000000", '"1970-01-01 00:00:00.000000001Z"'),
        ("010000", "4c 0100000000000000", '"1970-01-01 00:00:00.000000001"'),
        ("010000", "3c 02000000 ff00", '"/wA="'),
        ("010000", "40 01000000 22", '"\\""'),
        ("010000", "50 00112233445566778899aabbccddeeff", '"00112233-4455-6677-8899-aabbccddeeff"'),
        ("010000", "1c 000000000000f07f", '"inf"'),
        ("010000", "03 02 00 02 03 0c01 08", "[1,false]"),
        ("010000", "13 01000000 00 01 00", "[null]"),
        ("41010000000100 61", "42 01000000 00 00 01 00", '{"a":null}'),
        ("010000", "02 00 00", "{}"),
    ],
)
def test_values_by_the_specification(metadata, value, text):
    assert json_of((metadata, value)) == [text]


def test_values_of_python_keep_their_types():
    given = {
        '"1969-12-31"': date(1969, 12, 31),
        '"2026-01-02 03:04:05.000006"': datetime(2026, 1, 2, 3, 4, 5, 6),
        '"2026-01-02 03:04:05.000006Z"': datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        '"01:02:03.000000"': time(1, 2, 3),
        '"00112233-4455-6677-8899-aabbccddeeff"': UUID("00112233-4455-6677-8899-aabbccddeeff"),
        "-1.50": Decimal("-1.50"),
        "12345678901234567890123456789012345678": 12345678901234567890123456789012345678,
        "1200": Decimal("12e2"),
        "1e+300": 1e300,
        '"AQ=="': b"\1",
        "[1,2]": np.array([1, 2]),
        '{"b":[true,{}]}': {"b": (True, {})},
        "-9223372036854775808": -(2**63),
        "null": None,
    }
    pairs = [encoded(value) for value in given.values()]
    assert json_of(*((m.hex(), v.hex()) for m, v in pairs)) == list(given)
    for wrong in ({1}, {1: 2}, 10**38, Decimal("1e-39"), Decimal("NaN")):
        with pytest.raises(ValueError, match=r"type|key|digits"):
            encoded(wrong)


def made(rng, depth=0):
    kind = rng.randrange(7 if depth > 4 else 9)
    size = rng.choice([0, 1, 3, 300 if depth == 0 else 5])
    if kind < 7:
        return [
            None,
            True,
            rng.randrange(-(10 ** rng.randrange(30)), 300),
            rng.uniform(-1e9, 1e9),
            'é"\\\n',
            "x" * 70,
            7,
        ][kind]
    if kind == 7:
        return [made(rng, depth + 1) for _ in range(size)]
    return {f"{'key' * rng.randrange(3)}{rng.randrange(400)}": made(rng, depth + 1) for _ in range(size)}


def test_random_values_come_back_and_duckdb_reads_them():
    rng = random.Random(1)
    texts = [json.dumps(made(rng)) for _ in range(1000)]
    column = variants_of_values([*texts, None])
    found = variant_json(column).to_pylist()
    same = [json.loads(text, parse_float=Decimal) for text in texts]
    assert [json.loads(text, parse_float=Decimal) for text in found[:-1]] == same
    assert found[-1] is None
    assert variant_json(column.slice(100, 50)).to_pylist() == found[100:150]
    marked = pa.field(
        "v", RAW, metadata={"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    )
    rows = pa.table([as_type(column, STORED_VARIANT).cast(RAW)], schema=pa.schema([marked]))
    with duckdb.connect() as con:
        con.register("rows", rows)
        if con.execute("SELECT typeof(v) FROM rows LIMIT 1").fetchall() == [("VARIANT",)]:
            theirs = [text for (text,) in con.execute("SELECT v::JSON::VARCHAR FROM rows").fetchall()]
            assert [json.loads(text or "null") for text in theirs] == [*map(json.loads, texts), None]


def test_damaged_bytes_are_one_error():
    rng = random.Random(2)
    good = [encoded(made(rng)) for _ in range(200)]
    for _ in range(2000):
        parts = [bytearray(part) for part in rng.choice(good)]
        part = rng.choice(parts)
        for _ in range(rng.randrange(1, 4)):
            part[rng.randrange(len(part))] = rng.randrange(256)
        if rng.random() < 0.3:
            del part[rng.randrange(len(part)) :]
        try:
            json_of(tuple(bytes(part).hex() for part in parts))
        except CorruptFileError:
            continue


def test_values_that_share_their_bytes_do_not_multiply():
    """Each array has 100 elements, and all of them are the array behind it."""
    value = b"\0"
    for _ in range(30):
        value = b"\x0f" + bytes([100]) + (0).to_bytes(4, "little") * 101 + value
    with pytest.raises(CorruptFileError, match="more values than it has bytes"):
        json_of(("010000", value.hex()))


def test_types():
    assert is_raw(RAW)
    assert not is_raw(pa.struct([("metadata", pa.binary()), ("value", pa.string())]))
    assert not is_raw(pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("more", pa.int32())]))
    assert not is_raw(pa.struct([("metadata", pa.binary())]))
    assert is_raw(pa.struct([("typed_value", pa.int32()), ("metadata", pa.binary())]))
    nested = pa.map_(pa.string(), pa.list_(pa.struct([("a", VARIANT), ("b", pa.int32())])))
    assert replaced(nested, pa.json_()) == pa.map_(
        pa.string(), pa.list_(pa.struct([("a", pa.json_()), ("b", pa.int32())]))
    )
    assert replaced(RAW, pa.json_()) is RAW
