"""Shredded variants: examples of Parquet's specification, random values in random columns, and what contradicts itself."""

import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.conform import as_type
from hoodie.format.variant_values import encoded, metadata_of, primitive
from hoodie.format.variants import VARIANT
from tests.shredding import NULL, group, shredded

EVENT = {"event_type": pa.string(), "event_ts": pa.timestamp("us", "UTC")}
AT = datetime(2024, 10, 24, 18, 21, 54, tzinfo=UTC)


def whole(column):
    found = as_type(column, VARIANT)
    found.validate(full=True)
    return found


def pairs(column):
    return [tuple(row.values()) if row else None for row in whole(column).to_pylist()]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (34, pa.int64()),
        (None, pa.int64()),
        ("n/a", pa.int64()),
        (["comedy", "drama"], [pa.string()]),
        (["horror", None], [pa.string()]),
        ([], [pa.string()]),
        ({"event_type": "noop", "event_ts": AT}, EVENT),
        ({"event_type": "login", "event_ts": AT, "email": "user@example.com"}, EVENT),
        ({"error_msg": "malformed: ..."}, EVENT),
        ("malformed: not an object", EVENT),
        ({"event_ts": AT, "click": "_button"}, EVENT),
        ({"event_type": None, "event_ts": AT}, EVENT),
        ({"event_type": "noop", "event_ts": "2024-10-24"}, EVENT),
        ({}, EVENT),
        *((["x" * (size - 5)], [pa.string()]) for size in (255, 256, 65535, 65536)),
        (["y"] * 255, [pa.string()]),
        (["y"] * 256, [pa.string()]),
        (
            {"location": {"latitude": 1.5, "longitude": "?"}},
            {"location": {"latitude": pa.float64(), "longitude": pa.float64()}},
        ),
    ],
)
def test_examples_of_the_specification(value, kind):
    column = shredded([NULL, value, value], kind)
    assert pairs(column) == [None, encoded(value), encoded(value)]
    assert pairs(column.slice(1, 1)) == [encoded(value)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, pa.bool_()),
        (False, pa.bool_()),
        (-128, pa.int8()),
        (-129, pa.int64()),
        (2**15, pa.int32()),
        (-(2**31), pa.int64()),
        (2**31, pa.int64()),
        (-(2**63), pa.int64()),
        (1.5, pa.float64()),
        (Decimal("-1.50"), pa.decimal128(38, 2)),
        (Decimal("9999999.99"), pa.decimal128(9, 2)),
        (Decimal("10000000.00"), pa.decimal128(18, 2)),
        (Decimal("-99999999999999999.9"), pa.decimal128(38, 1)),
        (Decimal("12345678901234567890.5"), pa.decimal128(38, 1)),
        (Decimal("-18446744073709551615.5"), pa.decimal128(38, 1)),
        (Decimal("1E-10"), pa.decimal128(12, 10)),
        (date(1969, 12, 31), pa.date32()),
        (time(1, 2, 3, 4), pa.time64("us")),
        (datetime(2026, 1, 2, 3, 4, 5, 6), pa.timestamp("us")),
        (datetime(1926, 1, 2, 3, 4, 5, 6, UTC), pa.timestamp("us", "UTC")),
        (b"\0\1", pa.binary()),
        ("é" * 31, pa.string()),
        ("x" * 63, pa.large_string()),
        ("x" * 64, pa.string_view()),
        ("", pa.dictionary(pa.int32(), pa.string())),
        (UUID("00112233-4455-6677-8899-aabbccddeeff"), pa.uuid()),
        (UUID("00112233-4455-6677-8899-aabbccddeeff"), pa.binary(16)),
    ],
)
def test_typed_columns_give_the_bytes_of_their_values(value, kind):
    typed = _array([value, value], kind)
    column = pa.StructArray.from_arrays([typed, pa.array([b"\1\0\0"] * 2)], ["typed_value", "metadata"])
    assert [row["value"] for row in whole(column).to_pylist()] == [encoded(value)[1]] * 2
    assert [row["value"] for row in whole(column.slice(1)).to_pylist()] == [encoded(value)[1]]


def _array(values, kind):
    if isinstance(values[0], UUID):
        stored = pa.array([value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind, stored) if kind == pa.uuid() else stored
    return (
        pa.array(values, kind.value_type).dictionary_encode()
        if pa.types.is_dictionary(kind)
        else pa.array(values, kind)
    )


def made(rng, depth=0):
    """A value, whose dicts often have the same fields."""
    kind = rng.randrange(9 if depth < 4 else 5)
    if kind < 5:
        return [None, True, rng.randrange(-(10 ** rng.randrange(18)), 300), rng.random(), "x" * rng.randrange(70)][kind]
    size = rng.choice([0, 1, 3, 300]) if depth == 0 else rng.randrange(4)
    if kind == 5:
        return [made(rng, depth + 1) for _ in range(size)]
    return {rng.choice([*"abcé", f"key {rng.randrange(400)}"]): made(rng, depth + 1) for _ in range(size)}


def random_kind(rng, depth=0):
    kind = rng.randrange(9 if depth < 4 else 5)
    if kind < 5:
        return [None, pa.bool_(), pa.int64(), pa.float64(), pa.string()][kind]
    if kind == 5:
        return [random_kind(rng, depth + 1)]
    return {name: random_kind(rng, depth + 1) for name in rng.sample([*"abcé"], rng.randrange(1, 5))}


def test_random_values_come_back_from_random_columns():
    rng = random.Random(3)
    for _ in range(25):
        values = [made(rng) for _ in range(30)] + [NULL]
        rng.shuffle(values)
        column = shredded(values, {name: random_kind(rng) for name in "ba"} if rng.random() < 0.7 else random_kind(rng))
        assert pairs(column) == [None if value is NULL else encoded(value) for value in values]


def test_a_value_that_is_missing_is_null():
    """Where a group of both parts is there, and in arrays."""
    metadata = encoded({"a": 1})[0]
    rows = [{"metadata": metadata, "value": None, "typed_value": None}, {"metadata": metadata, "typed_value": [{}]}]
    assert [value for _, value in pairs(pa.array(rows, group([pa.int64()], metadata=True)))] == [
        b"\0",
        encoded([None])[1],
    ]


def _object(rest, **typed):
    return {"metadata": metadata_of(["a", "b"]), "value": rest, "typed_value": {"a": typed}}


@pytest.mark.parametrize(
    ("rows", "kind", "why"),
    [
        ([{"metadata": b"\1\0\0", "value": b"\0", "typed_value": 3}], pa.int64(), "twice, shredded and whole"),
        ([_object(encoded({"a": 1})[1], typed_value=1)], {"a": pa.int64()}, "a field twice"),
        ([_object(primitive("text"), typed_value=1)], {"a": pa.int64()}, "the rest of it is none"),
        ([_object(b"", typed_value=1)], {"a": pa.int64()}, "the rest of it is none"),
        ([_object(b"\2\1\7\0\1\0", typed_value=1)], {"a": pa.int64()}, "a field without a name"),
        ([_object(b"\2\1\1\0\1\xfc", typed_value=1)], {"a": pa.int64()}, "an unknown type"),
        ([_object(b"\2\1\1\0\1\x18", typed_value=1)], {"a": pa.int64()}, "ends early"),
        ([_object(b"\2\1\1\0", typed_value=1)], {"a": pa.int64()}, "ends early"),
        (
            [{**_object(None, typed_value=1), "metadata": b"\1\0\0"}],
            {"a": pa.int64()},
            "whose name its metadata do not have",
        ),
        ([{**_object(None, typed_value=1), "metadata": b"\2\0\0"}], {"a": pa.int64()}, "unknown version"),
    ],
)
def test_parts_that_contradict_each_other_are_damage(rows, kind, why):
    with pytest.raises(CorruptFileError, match=why):
        whole(pa.array(rows, group(kind, metadata=True)))


@pytest.mark.parametrize(
    "typed", [pa.array([1], pa.uint64()), pa.array([{"a": 1}]), pa.array([[1]]), pa.array([b"1"], pa.binary(1))]
)
def test_columns_that_no_specification_has_are_refused(typed):
    column = pa.StructArray.from_arrays([typed, pa.array([b"\1\0\0"])], ["typed_value", "metadata"])
    with pytest.raises(UnsupportedTableError, match="a VARIANT is shredded into"):
        whole(column)


def test_damaged_bytes_are_one_error():
    rng = random.Random(4)
    kind = {"a": pa.int64(), "b": [pa.string()]}
    good = [shredded([made(rng) for _ in range(3)], kind).to_pylist() for _ in range(40)]
    for _ in range(200):
        rows = [dict(row) for row in rng.choice(good)]
        row = rng.choice(rows)
        name = rng.choice([name for name in ("metadata", "value") if row[name]])
        part = bytearray(row[name])
        part[rng.randrange(len(part))] = rng.randrange(256)
        row[name] = bytes(part)
        try:
            whole(pa.array(rows, group(kind, metadata=True)))
        except CorruptFileError:
            continue
