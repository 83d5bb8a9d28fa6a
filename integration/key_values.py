"""Columns of every type that makes keys and paths, with the values at which spellings differ; the same in every run."""

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

_SPECIAL = [
    *map(chr, range(1, 0x20)),
    "\x7f",
    *"\"#%'*/:=?\\{}[]^&<>|,;@~ ._-+",
    "ü",
    "Ж",
    "日",
    "😀",
    "\u00a0",
    "\u2028",
]
_MICROS = [0, 1, -1, 999, -999, 1000, -1000, -1001, -1500, -1999, -2000, 1_704_164_645_678_901, 1_704_067_200_120_000,
           -12_219_292_800_000_000, -12_219_292_800_000_001, -12_219_379_200_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999,
           253_402_300_800_000_000, -100_000_000_000_000_000, 760_000_000_000_000_000]  # fmt: skip
_DAYS = [
    0,
    -1,
    19_724,
    -141_427,
    -141_428,
    -141_438,
    -719_162,
    -719_163,
    -719_528,
    -1_000_000,
    2_932_896,
    2_932_897,
    5_000_000,
]


def _text(chance: random.Random) -> str:
    return "".join(chance.choice([*_SPECIAL, *"abcXYZ019"]) for _ in range(chance.randint(0, 8)))


def _double(chance: random.Random) -> float:
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(
            [0.0, -0.0, 1.0, 1e-3, 9.999e-4, 1e7, 9999999.0, 0.1, float("nan"), float("inf"), -float("inf")]
        )
    return chance.choice([-1, 1]) * chance.random() * 10.0 ** chance.randint(-30, 15)


_MAKERS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "s": (pa.string(), _text),
    "b": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "i": (pa.int32(), lambda chance: chance.choice([0, -1, 2**31 - 1, -(2**31), chance.randint(-1000, 1000)])),
    "l": (pa.int64(), lambda chance: chance.choice([0, -1, 2**63 - 1, -(2**63), chance.randint(-(2**40), 2**40)])),
    "x": (pa.float64(), _double),
    "f": (pa.float32(), lambda chance: chance.choice([0.5, 1e-5, -0.0, 3.25, 100.0, 0.1, float("nan"), chance.random() * 1000])),
    "m": (pa.decimal128(12, 3), lambda chance: Decimal(chance.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-3)),
    "w": (pa.decimal128(38, 12), lambda chance: Decimal(chance.choice([0, 1, -1, 10**37, chance.randint(-999, 999)])).scaleb(-12)),
    "d": (pa.date32(), lambda chance: chance.choice([*_DAYS, chance.randint(-800_000, 3_000_000)])),
    "t": (pa.timestamp("us", "UTC"), lambda chance: chance.choice([*_MICROS, chance.randint(-(10**17), 10**17)])),
    "u": (pa.timestamp("us"), lambda chance: chance.choice([*_MICROS, chance.randint(-(10**17), 10**17)])),
    "y": (pa.binary(), lambda chance: chance.randbytes(chance.randint(0, 4))),
}  # fmt: skip
COLUMNS = tuple(_MAKERS)


def any_rows(count: int, *, seed: int, nulls: float = 0.1) -> pa.Table:
    """Rows with a column `n`, their number, and one of every type; some values are null."""
    chance = random.Random(seed)
    columns = {"n": pa.array(range(count), pa.int64())}
    for name, (kind, make) in _MAKERS.items():
        values = [None if chance.random() < nulls else make(chance) for _ in range(count)]
        plain = pa.int64() if pa.types.is_timestamp(kind) else pa.int32() if pa.types.is_date(kind) else kind
        columns[name] = pa.array(values, plain).cast(kind)
    return pa.table(columns)


def instants(count: int, *, seed: int) -> Sequence[int]:
    """Milliseconds: far away, at the ends of days, at changes of clocks, and some of our years."""
    chance = random.Random(seed)
    ends = [0, -1, 1, 86_399_999, 86_400_000, -86_400_001, 1_711_846_799_999, 1_711_846_800_000, 1_729_990_800_000, 1_729_987_199_999,
            -2**62, 2**62, 2**63 - 1, -(2**63), -62_200_000_000_000, -12_219_292_800_001, 253_402_300_800_000]  # fmt: skip
    near = [chance.randint(-(2**41), 2**42) for _ in range(count)]
    return [*ends, *near, *(chance.randint(-(2**55), 2**55) for _ in range(count // 10))]


def date_texts(count: int, form: Callable[[dt.datetime], str], *, seed: int) -> list[str]:
    chance = random.Random(seed)
    first = dt.datetime(1900, 1, 1)
    return [form(first + dt.timedelta(seconds=chance.randint(0, 7_000_000_000))) for _ in range(count)]
