"""Equal values hash alike however their arrays are made; others do not."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hoodie.hashes.of_values import value_hashes

COLUMNS = [
    pa.array([1, 2, None, 1], pa.int32()),
    pa.array([1.5, -0.0, 0.0, None, 1.5]),
    pa.array([True, False, None]),
    pa.array(["a", "", None, "a"]),
    pa.array([b"\xff", b"", None, b"\xff"]),
    pa.array([b"\xff\x00", b"ab", None], pa.binary(2)),
    pa.array([Decimal("1.50"), Decimal("-7.00"), None], pa.decimal128(10, 2)),
    pa.array([datetime.date(2026, 1, 1), None], pa.date32()),
    pa.array([0, None, 5], pa.timestamp("us", "UTC")),
    pa.array([[1, 2], [2, 1], [], None, [1], [1, None]], pa.list_(pa.int64())),
    pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    pa.array([[("k", 1)], [("k", 2)], [], None], pa.map_(pa.string(), pa.int64())),
    pa.array([[[1], [2]], [[1, 2]], [[], [1, 2]], None]),
    pa.array([[1.0, 2.0], [2.0, 1.0], None], pa.list_(pa.float32(), 2)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_hashes_are_equal_where_values_are(column):
    hashes = value_hashes(column)
    texts = [repr(value) for value in column.to_pylist()]
    for one in range(len(texts)):
        for other in range(len(texts)):
            assert (hashes[one] == hashes[other]) == (texts[one] == texts[other]), (texts[one], texts[other])


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_slice_hashes_as_its_values_do(column):
    assert np.array_equal(value_hashes(column.slice(1)), value_hashes(column)[1:])
    chunks = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert np.array_equal(value_hashes(chunks), value_hashes(column))


def test_a_dictionary_hashes_as_its_values():
    texts = pa.array(["a", "b", None, "a"])
    assert np.array_equal(value_hashes(texts.dictionary_encode()), value_hashes(texts))
