"""Orders of rows: sorted, along curves, and cut into ranges."""

import datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from hoodie.filegroup.row_order import cuts_of, hilbert_axes, interleaved, range_of_each, sorted_places
from hoodie.model.clustering import Order
from hoodie.model.enums import RowOrder

CURVES = [RowOrder.ZORDER, RowOrder.HILBERT]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_each_step_on_hilberts_curve_goes_to_a_neighbour_and_every_place_is_met_once(dimensions):
    places = np.array(list(product(range(8), repeat=dimensions)), np.uint64)
    axes = [places[:, n].copy() for n in range(dimensions)]
    code = interleaved(hilbert_axes(axes, 3), 3)
    assert sorted(code.tolist()) == list(range(8**dimensions))
    walked = places[np.argsort(code)].astype(int)
    assert (np.abs(np.diff(walked, axis=0)).sum(axis=1) == 1).all()


def test_a_z_order_interleaves_bits():
    assert interleaved([np.array([0b11], np.uint64), np.array([0b01], np.uint64)], 2).tolist() == [0b1011]


VALUES = {
    "text": ["b", None, "a", "ä", "", "b"],
    "float": [1.5, float("nan"), None, -1.0, 0.0, 1.5],
    "bool": [True, False, None, True, False, True],
    "decimal": [Decimal("1.20"), None, Decimal("-3.00"), Decimal("0.00"), Decimal("9.99"), Decimal("1.20")],
    "date": [datetime.date(2026, 1, day) if day else None for day in (3, 0, 1, 2, 5, 3)],
    "bytes": [b"\xff", b"", None, b"a", b"a\x00", b"\x01"],
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("layout", list(RowOrder))
def test_columns_of_any_type_are_ordered_and_ranges_follow_the_order(name, layout):
    rows = pa.table({"x": pa.array(VALUES[name] * 5), "y": pa.array(range(30))})
    order = Order(("x", "y") if layout is not RowOrder.LINEAR else ("x",), layout)
    places = sorted_places(rows, order)
    assert sorted(places.tolist()) == list(range(30))
    ranges = range_of_each(rows, cuts_of(rows, order, 4))
    assert len(set(ranges.tolist())) > 1
    if layout is RowOrder.LINEAR:
        assert (np.diff(ranges[places]) >= 0).all()


@pytest.mark.parametrize("layout", CURVES)
def test_ranges_along_a_curve_take_about_as_many_rows_each(layout):
    chance = np.random.default_rng(1)
    rows = pa.table({"x": chance.exponential(size=4000), "y": [f"{n:04d}" for n in chance.integers(0, 50, 4000)]})
    counts = np.bincount(range_of_each(rows, cuts_of(rows.slice(0, 1000), Order(("x", "y"), layout), 8)))
    assert len(counts) == 8
    assert counts.min() > 250
