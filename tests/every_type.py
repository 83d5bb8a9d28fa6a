"""Rows of every type that a table stores, plain and nested, with nulls at every depth."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901)
LEAVES = {
    "int32": (pa.int32(), [1, -(2**31), 2**31 - 1]),
    "int64": (pa.int64(), [1, -(2**63), 2**53 + 1]),
    "float32": (pa.float32(), [0.5, float(2**24), -0.10000000149011612]),
    "float64": (pa.float64(), [0.1, 1e300, 5e-324]),
    "decimal": (pa.decimal128(38, 10), [Decimal("1.5000000000"), Decimal("-0.0000000001"), Decimal(10**27)]),
    "short": (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("-999.99"), Decimal("0.00")]),
    "string": (pa.string(), ["a", "", "ü\n\0"]),
    "binary": (pa.binary(), [b"a", b"", b"\xff\0"]),
    "boolean": (pa.bool_(), [True, False, True]),
    "date": (pa.date32(), [date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31)]),
    "utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC) + timedelta(days=n) for n in (0, -30_000, 99_999)]),
    "local": (pa.timestamp("us"), [MOMENT + timedelta(days=n) for n in (0, -30_000, 99_999)]),
}
NESTINGS = {
    "plain": lambda kind, v: (kind, [v[0], v[1], v[2], None, None]),
    "list": lambda kind, v: (pa.list_(kind), [v, [v[0], None], [], [None], None]),
    "struct": lambda kind, v: (
        pa.struct([("x", kind), ("y", pa.string())]),
        [{"x": v[0], "y": "y"}, {"x": v[1], "y": None}, {"x": None, "y": "y"}, {"x": None, "y": None}, None],
    ),
    "map": lambda kind, v: (
        pa.map_(pa.string(), kind),
        [[("a", v[0]), ("b", v[1])], [("a", v[2])], [("a", None)], [], None],
    ),
    "deep": lambda kind, v: (
        pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(kind)))])),
        [[{"m": [("a", [v[0], v[1]])]}, None], [{"m": [("a", [None]), ("b", [])]}], [{"m": []}], [{"m": None}], None],
    ),
}
ID = pa.field("id", pa.int64())
COLUMNS = {
    f"{leaf}_{nesting}": make(kind, values)
    for leaf, (kind, values) in LEAVES.items()
    for nesting, make in NESTINGS.items()
}
ROWS = pa.table(
    {"id": range(5)} | {name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()},
    schema=pa.schema([ID, *((name, kind) for name, (kind, _) in COLUMNS.items())]),
)
