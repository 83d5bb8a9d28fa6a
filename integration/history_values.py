"""Random column types and random values of them: everything that Spark and Avro can both hold."""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

UTC_MICROS = pa.timestamp("us", "UTC")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
TEXTS = ("", "a", "x y", "Grüße 😀", "\t\"'\\\n", "a,b:c=d/e%", "z" * 70)
SCALARS: tuple[pa.DataType, ...] = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    UTC_MICROS,
    pa.decimal128(9, 2),
    pa.decimal128(18, 0),
    pa.decimal128(38, 10),
)
WIDER: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.int64(): (pa.float64(),),
    pa.float32(): (pa.float64(),),
}
"""What a column may become. Values of the narrow ones are chosen so that they stay the same number."""


def random_type(random: Random, *, depth: int = 2) -> pa.DataType:
    """A scalar three times out of four; lists, maps and structs down to `depth`."""
    if not depth or random.random() < 0.75:
        return random.choice(SCALARS)
    inner = random_type(random, depth=depth - 1)
    kind = random.choice(("list", "map", "struct"))
    if kind == "list":
        return pa.list_(inner)
    if kind == "map":
        return pa.map_(pa.string(), inner)
    return pa.struct([("f0", inner), ("f1", random_type(random, depth=depth - 1))])


def named_inside(kind: pa.DataType, *, nested: bool = False) -> int:
    """How many types inside a column's type have a name of their own in Avro: decimals and structs."""
    inner: list[pa.DataType] = []
    if pa.types.is_struct(kind):
        inner = [field.type for field in kind]
    elif pa.types.is_list(kind):
        inner = [kind.value_type]
    elif pa.types.is_map(kind):
        inner = [kind.item_type]
    named = nested and (pa.types.is_struct(kind) or pa.types.is_decimal(kind))
    return int(named) + sum(named_inside(each, nested=True) for each in inner)


def random_value(random: Random, kind: pa.DataType, *, nulls: float = 0.15) -> Any:
    """A value of the type, None with the chance `nulls`. List elements are never null: Hudi's upsert cannot store those."""
    types = pa.types
    if random.random() < nulls:
        return None
    if types.is_list(kind):
        return [random_value(random, kind.value_type, nulls=0) for _ in range(random.randrange(4))]
    if types.is_map(kind):
        return [(key, random_value(random, kind.item_type)) for key in random.sample(TEXTS, random.randrange(3))]
    if types.is_struct(kind):
        return {field.name: random_value(random, field.type) for field in kind}
    if types.is_decimal(kind):
        unscaled = random.randrange(10 ** random.randint(1, kind.precision)) * random.choice((1, -1))
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
    return _SCALAR_VALUES[kind](random)


def _floating(random: Random) -> float:
    # Quarters and powers of two: the same number, and the same text of it, in single and double precision.
    return random.choice((random.randrange(-4000, 4000) / 4, 0.0, 2.0**20, math.inf, -math.inf, math.nan))


_SCALAR_VALUES: Mapping[pa.DataType, Callable[[Random], Any]] = {
    pa.bool_(): lambda random: random.random() < 0.5,
    pa.int32(): lambda random: random.choice((random.randrange(-1000, 1000), 2**31 - 1, -(2**31))),
    # As far as a double counts in ones.
    pa.int64(): lambda random: random.choice((random.randrange(-1000, 1000), 2**53, -(2**53))),
    pa.float32(): _floating,
    pa.float64(): _floating,
    pa.string(): lambda random: random.choice(TEXTS),
    pa.binary(): lambda random: random.randbytes(random.randrange(6)),
    pa.date32(): lambda random: dt.date(1970, 1, 1) + dt.timedelta(days=random.randrange(-20_000, 60_000)),
    UTC_MICROS: lambda random: EPOCH + dt.timedelta(microseconds=random.randrange(-(10**15), 4 * 10**15)),
}


def value_of_rank(kind: pa.DataType, rank: int) -> Any:
    """A value of an ordering or key column: greater for a greater rank (0 to 999), the same for the same."""
    if kind == pa.string():
        return f"{rank:03d}"
    if kind == UTC_MICROS:
        return EPOCH + dt.timedelta(days=18_000, microseconds=rank)
    if kind == pa.date32():
        return dt.date(2020, 1, 1) + dt.timedelta(days=rank)
    if pa.types.is_decimal(kind):
        return Decimal(rank).scaleb(-kind.scale)
    if pa.types.is_floating(kind):
        return rank / 4
    return rank
