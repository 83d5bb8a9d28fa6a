"""Values of columns -> the strings that Apache Hudi makes of them.

Witnesses: the observed strings in tests/keygen, and integration/test_keys_as_hudi.py, where Apache Hudi's upsert is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import KeyFieldError
from hoodie.keygen.calendar import sql_timestamp
from hoodie.keygen.columns import Array, pc

_HEX: Any = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)
_GREGORIAN_FROM_MS = -12_219_292_800_000
_YEAR_10000_MS = 253_402_300_800_000
"""Between these two `java.sql.Timestamp` writes the dates that Arrow writes."""


def text_of(values: Array, *, field: str, role: str, timestamps_as_text: bool = False) -> Array:
    """The values as Apache Hudi's Avro path spells them; nulls stay null. Strings of type `string`.

    `timestamps_as_text`: those of a time zone as `java.sql.Timestamp` writes them in UTC, else as microseconds. Those
    without a zone are microseconds either way.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        texts = text_of(values.dictionary, field=field, role=role, timestamps_as_text=timestamps_as_text)
        return texts.take(values.indices)
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_text(values.cast(pa.float32()) if pa.types.is_float16(kind) else values)
    if pa.types.is_date(kind):
        return _date_text(values)
    if pa.types.is_timestamp(kind):
        micros = microseconds(values)
        return _timestamp_text(micros) if timestamps_as_text and kind.tz else micros.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _hex_text(values)
    raise KeyFieldError(
        f"{role} column {field!r} is of type {kind}, which makes no {role}\n"
        "  fix:     use a string, number, boolean, decimal, date, timestamp or binary column"
    )


def microseconds(timestamps: Array) -> Array:
    """Since 1970, as int64, of timestamps of any unit."""
    kind = timestamps.type
    # Floor, not cut: a stored timestamp before 1970 with nanoseconds goes the same way.
    micros = pc.floor_temporal(timestamps, unit="microsecond") if kind.unit == "ns" else timestamps
    return micros.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())


def milliseconds(micros: Array) -> Array:
    """Toward zero, as Apache Hudi cuts them."""
    return pc.divide(micros, 1000)


def _timestamp_text(micros: Array) -> Array:
    """`2024-01-02 03:04:05.678`, without zeros at the end but for `.0`."""
    millis = milliseconds(micros)
    text = pc.cast(pc.cast(millis, pa.timestamp("ms")), pa.string())
    text = pc.replace_substring_regex(text, r"(\.\d\d*?)0+$", r"\1")
    odd = pc.fill_null(pc.or_(pc.less(millis, _GREGORIAN_FROM_MS), pc.greater_equal(millis, _YEAR_10000_MS)), False)
    if not pc.any(odd).as_py():
        return text
    distinct = millis.filter(odd).dictionary_encode()
    # Over distinct values: Arrow knows neither the Julian calendar nor Java's years, and few tables have such rows.
    spelled = pa.array([sql_timestamp(value) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(text, odd, spelled.take(distinct.indices))


def _date_text(values: Array) -> Array:
    """ISO 8601; Java signs years of five digits."""
    text = values.cast(pa.date32()).cast(pa.string())
    long_year = pc.and_(pc.greater(pc.utf8_length(text), 10), pc.invert(pc.starts_with(text, "-")))
    return pc.if_else(long_year, pc.binary_join_element_wise("+", text, ""), text)


def _float_text(values: Array) -> Array:
    """Java's Float.toString and Double.toString.

    The digits are the fewest that read back as the same number, as Java prints them from version 19 on. Earlier ones
    print a digit too many for some floats from 1e7 and doubles from 1e16; below, Java 17 differed for none of 60,000
    random ones but does next to the smallest normal float.
    """
    size = pc.abs(values)
    common = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0))
    text = values.cast(pa.string())
    whole = pc.invert(pc.match_substring(text, "."))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    odd = pc.fill_null(pc.invert(common), False)
    if not pc.any(odd).as_py():
        return text
    distinct = values.filter(odd).dictionary_encode()
    # Over distinct values: Arrow has no such notation, and numbers of this size are rare as keys.
    single = pa.types.is_float32(values.type)
    spelled = pa.array([_java_notation(value, single=single) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(text, odd, spelled.take(distinct.indices))


def _java_notation(value: float, *, single: bool) -> str:
    """Of a number that Java writes with an exponent, or as a word."""
    number = np.float32(value) if single else np.float64(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else f"{'-' if value < 0 else ''}Infinity"
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="-").split("e")
    if "." not in mantissa:
        # Java wants two digits at least and takes the nearest that there are: 4.9E-324.
        mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def _hex_text(values: Array) -> Array:
    """Two lower-case digits a byte."""
    wide = (
        values.cast(pa.large_binary())
        if not pa.types.is_fixed_size_binary(values.type)
        else (values.cast(pa.binary()).cast(pa.large_binary()))
    )
    _, offsets_buffer, data = wide.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[wide.offset : wide.offset + len(wide) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    text = pa.LargeStringArray.from_buffers(
        len(wide), pa.py_buffer((offsets - offsets[0]) * 2), pa.py_buffer(_HEX[content])
    )
    return pc.if_else(wide.is_valid(), text, pa.scalar(None, pa.large_string())).cast(pa.string())
