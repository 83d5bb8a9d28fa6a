"""A missing ordering value is lower than every value but in columns of Java's int, where it is 0: at whatever place records meet."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.ordering import at_least, ranks_of
from hoodie.options.parse import parse_write_options
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage, opened

LOW, HIGH = -(2**63), 2**63 - 1
VALUES = {
    pa.int32(): [-(2**31), -5, 0, 5],
    pa.int64(): [LOW, -5, 0, 5, HIGH],
    pa.float32(): [float("-inf"), -5.0, 0.0, float("nan")],
    pa.float64(): [float("-inf"), -5.0, 0.0, float("nan")],
    pa.string(): ["", "-", "0", "z"],
    pa.binary(): [b"", b"\0", b"z"],
    pa.bool_(): [False, True],
    pa.date32(): [date(1, 1, 1), date(1970, 1, 1), date(2024, 1, 1)],
    pa.timestamp("us", "UTC"): [datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)],
    pa.timestamp("us"): [datetime(1, 1, 1), datetime(1970, 1, 1)],
    pa.decimal128(10, 2): [Decimal("-0.01"), Decimal("0.00"), Decimal("1.00")],
}
"""In their order."""


def rank(kind, value):
    if value is None:
        return VALUES[kind].index(0) if kind == pa.int32() else -1
    return next(at for at, other in enumerate(VALUES[kind]) if other is value or other == value)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_two_values_compare_so(kind):
    values = [None, *VALUES[kind]]
    pairs = [(one, other) for one in values for other in values]
    ones, others = (pa.array(side, kind) for side in zip(*pairs, strict=True))
    expected = [rank(kind, one) >= rank(kind, other) for one, other in pairs]
    assert at_least(ones, others).tolist() == expected
    ranks = ranks_of(pa.concat_arrays([ones, others]))
    assert (ranks[: len(pairs)] >= ranks[len(pairs) :]).tolist() == expected


@st.composite
def histories(draw):
    """A type, and batches of (key, value), each with whether the table is compacted behind it; whether values stand in structs."""
    kind = draw(st.sampled_from(list(VALUES)))
    value = st.none() | st.sampled_from(VALUES[kind])
    batch = st.lists(st.tuples(st.integers(0, 2), value), min_size=1, max_size=4)
    return kind, draw(st.lists(st.tuples(batch, st.booleans()), min_size=1, max_size=4)), draw(st.booleans())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@settings(max_examples=15)
@given(history=histories())
def test_the_greatest_counts_in_one_batch_or_several(table_type, history):
    kind, batches, nested = history
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "s.in.x" if nested else "x",
    }
    inner = pa.struct([("a", pa.string()), ("x", kind)])
    outer = pa.struct([("in", inner)])
    schema = pa.schema([("id", pa.int64()), ("s", outer) if nested else ("x", kind), ("n", pa.int64())])
    create_at(storage, parse_write_options(options).to_create(), schema=schema)
    table = opened(storage, clock)
    best = {}
    for number, (batch, compacted) in enumerate(batches):
        for at, (key, value) in enumerate(batch):
            if key not in best or rank(kind, value) >= rank(kind, best[key][0]):
                best[key] = (value, 10 * number + at)
        ids, values = zip(*batch, strict=True)
        column = pa.array(values, kind)
        if nested:  # a null stands there, or in place of one of the structs around it
            gone = [
                pa.array([value is None and key == no for key, value in zip(ids, values, strict=True)]) for no in (0, 1)
            ]
            column = pa.StructArray.from_arrays(
                [pa.nulls(len(ids), pa.string()), column], fields=list(inner), mask=gone[0]
            )
            column = pa.StructArray.from_arrays([column], fields=list(outer), mask=gone[1])
        rows = {
            "id": pa.array(ids, pa.int64()),
            "s" if nested else "x": column,
            "n": [10 * number + at for at in range(len(ids))],
        }
        table.upsert(pa.table(rows))
        if compacted and table_type == "MERGE_ON_READ":
            table.compact()
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {key: n for key, (_, n) in best.items()}
