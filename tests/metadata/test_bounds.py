"""Bounds as writers store them, in the types of columns."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.metadata.bounds import in_type

MOMENT = datetime(2025, 2, 20, 12, 45, tzinfo=UTC)
MICROS = 1_740_055_500_000_000


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    [
        (pa.array([20139], pa.int32()), pa.date32(), date(2025, 2, 20)),
        (pa.array([MICROS]), pa.timestamp("us", "UTC"), MOMENT),
        (pa.array([MICROS]), pa.timestamp("us"), MOMENT.replace(tzinfo=None)),
        (pa.array([b"\x03AS\x13\xc6\x84\x00\x00"]), pa.decimal128(10, 2), Decimal("234.56")),
        (pa.array([Decimal("-1.5")], pa.decimal128(30, 15)), pa.decimal128(10, 2), Decimal("-1.50")),
        (pa.array([7], pa.int32()), pa.int8(), 7),
        (pa.array([7], pa.int32()), pa.int64(), 7),
        (pa.array([7], pa.int32()), pa.float64(), 7.0),
        (pa.array([1.5], pa.float32()), pa.float32(), 1.5),
        (pa.array(["é"]), pa.string(), "é"),
        (pa.array([b"\xff"]), pa.binary(), b"\xff"),
        (pa.array([True]), pa.bool_(), True),
    ],
)
def test_bounds_get_the_type_of_their_column(stored, kind, value):
    assert in_type(stored, kind).to_pylist() == [value]
    assert in_type(stored, kind).type == kind


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array([1_740_055_500_000]), pa.timestamp("ms", "UTC")),
        (pa.array([1 << 40]), pa.int32()),
        (pa.array([9], pa.int32()), pa.string()),
        (pa.array(["9"]), pa.int64()),
        (pa.array([0.1], pa.float32()), pa.float64()),
        (pa.array([0.1], pa.float64()), pa.float32()),
        (pa.array([float("nan")]), pa.float64()),
        (pa.array([Decimal("1.234")], pa.decimal128(30, 15)), pa.decimal128(10, 2)),
        (pa.array([b"\x01"]), pa.decimal128(30, 16)),
        (pa.array([b""]), pa.decimal128(10, 2)),
        (pa.array([b"x" * 17]), pa.decimal128(10, 2)),
        (pa.array([5], pa.int32()), pa.list_(pa.int32())),
        (pa.nulls(1), pa.int64()),
    ],
)
def test_bounds_that_a_column_cannot_have_are_not_known(stored, kind):
    assert in_type(stored, kind).to_pylist() == [None]
    assert in_type(stored, kind).type == kind
