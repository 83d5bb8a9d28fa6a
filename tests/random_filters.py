"""Random filters with arithmetic, functions, fields of structs, CASE and parameters, and rows for them."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from hoodie.read.where import BoundText

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("n", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("b", pa.bool_()),
        ("x", pa.struct([("i", pa.int64()), ("inner", pa.struct([("s", pa.string())]))])),
    ]
)
VALUES = {
    "i": [-7, -1, 0, 1, 3, 2000],
    "l": [-8, -2, 0, 1, 2, 5, 10**9],
    "f": [-1.5, -0.0, 0.0, 0.1, 0.5, 2.0, 1e9],
    "n": [Decimal("-1.50"), Decimal("0.00"), Decimal("0.10"), Decimal("2.00"), Decimal("99999999.99")],
    "s": ["", " ", "a", " Ab ", "äÖ", "b%", "it's", "\U0001f600x", "zz top"],
    "d": [date(1969, 12, 31), date(2000, 2, 29), date(2024, 1, 1), date(2024, 12, 31)],
    "t": [
        datetime(*moment, tzinfo=UTC) for moment in ((1969, 12, 31, 23, 59, 59), (2024, 1, 1), (2023, 12, 31, 23, 59))
    ],
    "b": [True, False],
    "x": [
        {"i": 1, "inner": {"s": "a"}},
        {"i": None, "inner": None},
        {"i": -3, "inner": {"s": None}},
        {"i": 2, "inner": {"s": "Ab"}},
    ],
}


class Filters:
    """Texts of filters over the columns of `SCHEMA`, and what they are for DuckDB."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.params = {"k": self.chance.choice([0, 1, -2]), "word": self.chance.choice(["a", "it's", ":k"])}

    def rows(self, count):
        values = VALUES.items()
        return [{name: self.chance.choice([None, *given]) for name, given in values} for _ in range(count)]

    def made(self, leaves, makers, depth=0):
        """A leaf, or a text with more of them inside."""
        if depth > 1 or self.chance.random() < 0.4:
            return self.chance.choice(leaves)
        made = self.chance.choice(makers)
        return made.format(self.made(leaves, makers, depth + 1), self.made(leaves, makers, depth + 1))

    def whole(self):
        leaves = [
            "i",
            "l",
            "x.i",
            '"x"."i"',
            "2",
            "-3",
            ":k",
            "length(s)",
            "year(d)",
            "month(t)",
            "day(t)",
            "(d - DATE '2024-01-01')",
        ]
        makers = ["({} + {})", "({} - {})", "({} * ({} % 7))", "({} % {})", "abs({0})", "-({0})", "coalesce({}, {})"]
        return self.made(leaves, [*makers, "CASE WHEN b THEN {} WHEN i > 0 THEN {} END"])

    def floating(self):
        quotient = f"({self.whole()} / {self.chance.choice(['l', 'f', '2', '0'])})"
        makers = ["({} + {})", "({} - {})", "abs({0})", "-({0})", "coalesce({}, {})", "CASE WHEN b THEN {} ELSE {} END"]
        return self.made(["f", "f * 0.5", "f + 1", quotient], makers)

    def decimal(self):
        return self.chance.choice(
            ["n", "n + 1", "n * 2.5", "n * 2.5 - n", "abs(n)", "l * 0.1", "1.5 - i", "coalesce(n, 0)"]
        )

    def text(self):
        leaves = ["s", 'x."inner".s', "'a'", ":word", "substr(s, 2)", "substr(s, 1, 1)"]
        return self.made(
            leaves, ["lower({0})", "upper({0})", "trim({0})", "substring({0}, 2, 3)", "{} || {}", "coalesce({}, {})"]
        )

    def day(self):
        return self.chance.choice(
            ["d", "d + 1", "d - i % 9", "DATE '2024-01-01' + i % 5", "coalesce(d, DATE '2000-02-29')"]
        )

    def value(self):
        return self.chance.choice([self.whole, self.floating, self.decimal, self.text, self.day])()

    def leaf(self):
        op, number = self.chance.choice(["=", "<>", "<", "<=", ">", ">="]), self.chance.choice(NUMBERS)
        match self.chance.randrange(10):
            case 0 | 1:
                return f"{self.whole()} {op} {self.chance.choice([number, self.whole()])}"
            case 2:
                return f"{self.floating()} {op} {self.chance.choice([number, self.floating()])}"
            case 3:
                return f"{self.decimal()} {op} {self.chance.choice([number, self.decimal()])}"
            case 4:
                return f"{self.text()} {op} {self.text()}"
            case 5:
                other = self.chance.choice(["DATE '2024-01-01'", self.day()])
                return f"{self.day()} {op} {other}"
            case 6:
                return f"{self.whole()} BETWEEN {number} AND 3"
            case 7:
                return f"{self.whole()} IN ({number}, NULL, :k)"
            case 8:
                return f"s || {self.text()} LIKE {self.chance.choice(TEXT_PATTERNS)}"
        others = ["b", "coalesce(b, false)", "CASE WHEN i > 0 THEN b END", "x IS NULL", 'x."inner" IS NULL']
        return self.chance.choice([*others, f"({self.value()}) IS NOT NULL"])

    def filter(self):
        match self.chance.randrange(8):
            case 0:
                return f"({self.leaf()} AND {self.leaf()})"
            case 1:
                return f"({self.leaf()} OR {self.leaf()})"
            case 2:
                return f"NOT ({self.leaf()})"
            case 3:
                return f"({self.leaf()}) IS NOT TRUE"
        return self.leaf()

    def bound(self, where):
        return BoundText(where, {name: value for name, value in self.params.items() if f":{name}" in where})

    def of_duckdb(self, where):
        word = self.params["word"].replace("'", "''")
        return where.replace(":k", str(self.params["k"])).replace(":word", f"'{word}'")


NUMBERS = ["0", "1", "-1.5", "0.1", "2", "1000000000", ":k"]
TEXT_PATTERNS = ["'%a%'", "'a_'", "''"]


def table_of(rows):
    return pa.Table.from_pylist([{"id": n, **row} for n, row in enumerate(rows)], SCHEMA)
