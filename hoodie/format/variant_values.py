"""Python's values and JSON texts -> variants, in Parquet's Variant encoding, each number in the least width that holds it.

Fractions in JSON are decimals where their digits fit, as with Spark's `parse_json`, and else doubles.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import accumulate
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from hoodie.format.variants import VARIANT

_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_DAY_0 = date(1970, 1, 1).toordinal()
_DIGITS = 38
_INTEGERS = ((1 << 7, 3, 1), (1 << 15, 4, 2), (1 << 31, 5, 4), (1 << 63, 6, 8))
"""Bound, type and bytes."""
_DECIMALS = ((9, 8, 4), (18, 9, 8), (_DIGITS, 10, 16))
"""Digits, type and bytes of the number without its point."""


def variants_of_values(values: Iterable[Any]) -> Any:
    """An array of variants; None is null, and texts are JSON.

    Raises:
        ValueError: a text is no JSON, or a value, at any depth, is of no type that a variant has.
    """
    pairs = [
        None if value is None else encoded(_parsed(value) if isinstance(value, str) else value) for value in values
    ]
    parts = [pa.array([b"" if pair is None else pair[at] for pair in pairs], pa.large_binary()) for at in (0, 1)]
    mask = pa.array([pair is None for pair in pairs], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=mask)


def encoded(value: Any) -> tuple[bytes, bytes]:
    """Metadata and value."""
    names: dict[str, int] = {}
    data = _value(value, names)
    return metadata_of(names), data


def metadata_of(names: Iterable[str]) -> bytes:
    """The metadata that have these names, numbered in this order."""
    texts = [name.encode() for name in names]
    ends = list(accumulate(map(len, texts), initial=0))
    width = _width(max(ends[-1], len(texts)))
    head = [bytes([1 | (width - 1) << 6]), len(texts).to_bytes(width, "little")]
    return b"".join([*head, *(end.to_bytes(width, "little") for end in ends), *texts])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_float=_fraction, parse_constant=_no_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as exc:
        raise ValueError(
            f"{text!r:.60} is no JSON ({exc}); a text goes in with quotes around it, as by json.dumps"
        ) from exc


def _fraction(text: str) -> Any:
    number = Decimal(text)
    plain = "e" not in text.lower() and _places(number) is not None
    return number if plain else float(text)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return result


def _value(value: Any, names: dict[str, int]) -> bytes:
    if isinstance(value, Mapping):
        return _mapping(value, names)
    if isinstance(value, list | tuple):
        return array_of([_value(each, names) for each in value])
    if isinstance(value, np.ndarray | np.generic):
        return _value(value.tolist(), names)
    return primitive(value)


def _mapping(value: Mapping[Any, Any], names: dict[str, int]) -> bytes:
    parts = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise ValueError(f"a dict has the key {name!r} ({type(name).__name__}): give texts")
        names.setdefault(name, len(names))
        parts[name] = _value(each, names)
    return object_of(parts, names)


def object_of(parts: Mapping[str, bytes], names: Mapping[str, int]) -> bytes:
    """An object of encoded values by their names, which metadata number so."""
    ordered = sorted(parts)
    ids = [names[name] for name in ordered]
    width = _width(max(ids, default=0))
    head, offsets = _joined([parts[name] for name in ordered], shift=width - 1 << 2, large=0x40, kind=2)
    return b"".join([head, *(each.to_bytes(width, "little") for each in ids), *offsets])


def array_of(parts: list[bytes]) -> bytes:
    """An array of encoded values."""
    head, rest = _joined(parts, shift=0, large=0x10, kind=3)
    return b"".join([head, *rest])


def _joined(parts: list[bytes], *, shift: int, large: int, kind: int) -> tuple[bytes, list[bytes]]:
    """What begins an object or array, and its offsets with the values behind them."""
    ends = list(accumulate(map(len, parts), initial=0))
    width = _width(ends[-1])
    is_large = len(parts) > 0xFF
    head = kind | (width - 1 | shift) << 2 | (large if is_large else 0)
    count = len(parts).to_bytes(4 if is_large else 1, "little")
    return bytes([head]) + count, [*(end.to_bytes(width, "little") for end in ends), *parts]


def primitive(value: Any) -> bytes:
    """The encoded value of what is not nested."""
    if value is None:
        return b"\0"
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return b"\x1c" + struct.pack("<d", value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        text = value.encode()
        head = bytes([len(text) << 2 | 1]) if len(text) < 64 else b"\x40" + len(text).to_bytes(4, "little")
        return head + text
    if isinstance(value, bytes):
        return b"\x3c" + len(value).to_bytes(4, "little") + value
    if isinstance(value, datetime):
        since = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return (b"\x34" if value.tzinfo is None else b"\x30") + micros.to_bytes(8, "little", signed=True)
    if isinstance(value, date):
        return b"\x2c" + (value.toordinal() - _DAY_0).to_bytes(4, "little", signed=True)
    if isinstance(value, time) and value.tzinfo is None:
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return b"\x44" + micros.to_bytes(8, "little")
    if isinstance(value, UUID):
        return b"\x50" + value.bytes
    raise ValueError(f"{value!r:.60} ({type(value).__name__}) is of no type that a variant has: give text or numbers")


def _integer(value: int) -> bytes:
    for bound, kind, width in _INTEGERS:
        if -bound <= value < bound:
            return bytes([kind << 2]) + value.to_bytes(width, "little", signed=True)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> bytes:
    scale = _places(value)
    if scale is None:
        raise ValueError(f"{value} has more than {_DIGITS} digits: give a float, or a text")
    sign, digits, exponent = value.as_tuple()
    whole: int = int("".join(map(str, digits)) or "0") * 10 ** (int(exponent) + scale) * (-1 if sign else 1)
    kind, width = next((kind, width) for most, kind, width in _DECIMALS if abs(whole) < 10**most and scale <= most)
    return bytes([kind << 2, scale]) + whole.to_bytes(width, "little", signed=True)


def _places(value: Decimal) -> int | None:
    """Digits behind the point; None for what no decimal of a variant holds."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return None
    scale = max(0, -exponent)
    return scale if scale <= _DIGITS and value.adjusted() + 1 + scale <= _DIGITS else None


def _width(most: int) -> int:
    return max(1, (most.bit_length() + 7) // 8)
