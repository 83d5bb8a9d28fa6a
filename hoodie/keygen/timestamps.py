"""Timestamps of many spellings -> partition paths, as Apache Hudi's TimestampBasedKeyGenerator makes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import KeyFieldError, OptionError
from hoodie.keygen.calendar import UTC_ZONE, Zone, zone_named
from hoodie.keygen.columns import Array, pc
from hoodie.keygen.patterns import Reader, Reading, Writer, reader_of, writer_of
from hoodie.keygen.text import microseconds, milliseconds
from hoodie.options.keygen import (
    INPUT_FORMAT,
    INPUT_ZONE,
    OUTPUT_FORMAT,
    OUTPUT_ZONE,
    TYPE,
    TimestampSettings,
    TimeUnit,
)

_NULL = 1
"""The number, in the column's unit, that stands for null; for texts the first millisecond of 1970."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_WHOLE_MINUTES_FROM_MS = 63_072_000_000
"""1972: since then no zone is off by seconds, or changes its offset within a minute."""
_SHRINK = {TimeUnit.NANOSECONDS: 1_000_000, TimeUnit.MICROSECONDS: 1000}
_GROW = {
    TimeUnit.MILLISECONDS: 1,
    TimeUnit.SECONDS: 1000,
    TimeUnit.MINUTES: 60_000,
    TimeUnit.HOURS: 3_600_000,
    TimeUnit.DAYS: 86_400_000,
}


@dataclass(frozen=True)
class Paths:
    """The generator of one table, its patterns and zones understood. Make it with `paths_of`."""

    writer: Writer
    readers: tuple[Reader, ...]
    first_format: Writer | None
    unit: TimeUnit | None
    input_zone: Zone | None
    output_zone: Zone | None

    def texts(self, values: Array, *, field: str, start: int, timestamps_as_text: bool) -> Array:
        """The path of each value, without null: strings, of which few differ. `start` numbers the first row.

        Raises:
            KeyFieldError: the column's type is none that the settings read, or a text is no date.
        """
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        kind = values.type
        if pa.types.is_null(kind):
            values = values.cast(pa.int64() if self.unit else pa.string())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            if self.unit is not None:
                raise _misfit(field, kind, "texts need DATE_STRING")
            values = values.cast(pa.string())
        elif self.unit is None:
            raise _misfit(field, kind, "DATE_STRING and MIXED read texts only")
        if self.unit is None:
            return self._of_texts(values, field=field, start=start)
        if pa.types.is_timestamp(kind) and kind.tz and timestamps_as_text:
            null = int(_to_millis(np.array([_NULL]), self.unit)[0])
            return self._of_millis(_numbers(pc.fill_null(milliseconds(microseconds(values)), null)))
        return self._of_millis(_to_millis(_whole(values, field), self.unit))

    def _of_millis(self, millis: np.ndarray) -> Array:
        """Over the distinct values of what the pattern shows: of a day's instants only one is written."""
        zone = self.output_zone or UTC_ZONE
        distinct, which = np.unique(_rounded(millis, zone, self.writer.step_ms), return_inverse=True)
        texts = pa.array([self.writer.write(value, zone) for value in distinct.tolist()], pa.string())
        return texts.take(pa.array(which))

    def _of_texts(self, values: Array, *, field: str, start: int) -> Array:
        encoded = pc.fill_null(values, self._null_text()).dictionary_encode()
        paths = []
        for number, text in enumerate(encoded.dictionary.to_pylist()):
            try:
                moment = self._read(text)
            except ValueError as error:
                row = start + pc.index(encoded.indices, number).as_py()
                short = repr(text) if len(text) <= 100 else f"{text[:100]!r}…"
                raise KeyFieldError(
                    f"partition column {field!r} holds {short} in row {row} (counted from 0): {error}\n"
                    f"  fix:     change the value, or create the table with its form in {INPUT_FORMAT}"
                ) from None
            paths.append(self.writer.write(moment.millis, self.output_zone or moment.zone))
        return pa.array(paths, pa.string()).take(encoded.indices)

    def _null_text(self) -> str:
        if self.first_format is None:
            return ""
        return self.first_format.write(_NULL, self.input_zone or self.output_zone or UTC_ZONE)

    def _read(self, text: str) -> Reading:
        for reader in self.readers:
            moment = reader.read(text, self.input_zone)
            if moment is not None:
                return moment
        raise ValueError("it has none of the forms in which the table's dates are written")


@cache
def paths_of(settings: TimestampSettings) -> Paths:
    """Raises OptionError for a pattern or a zone that is none."""
    return Paths(
        writer=_understood(OUTPUT_FORMAT, settings.output_format, writer_of),
        readers=tuple(_understood(INPUT_FORMAT, each, reader_of) for each in settings.input_formats),
        first_format=_understood(INPUT_FORMAT, settings.input_formats[0], writer_of)
        if settings.input_formats
        else None,
        unit=settings.unit,
        input_zone=_understood(INPUT_ZONE, settings.input_zone, zone_named) if settings.input_zone else None,
        output_zone=_understood(OUTPUT_ZONE, settings.output_zone, zone_named) if settings.output_zone else None,
    )


def _understood(option: str, text: str, make: Any) -> Any:
    try:
        return make(text)
    except ValueError as error:
        raise OptionError(f"option {option}={text!r}: {error}") from None


def _misfit(field: str, kind: pa.DataType, why: str) -> KeyFieldError:
    return KeyFieldError(
        f"partition column {field!r} is of type {kind}, which {TYPE} does not read: {why}\n"
        "  fix:     create the table with the timestamp type of the column, or convert the column"
    )


def _whole(values: Array, field: str) -> np.ndarray:
    """The numbers as Java's `longValue` gives them, int64, nulls as 1; dates as days, timestamps as microseconds."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = microseconds(values)
    elif pa.types.is_date(kind):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_decimal(kind):
        encoded = values.dictionary_encode()
        # Over distinct values: Arrow's cast refuses numbers beyond 64 bits, of which Java keeps the lower ones.
        wrapped = [
            None if each is None else (int(each) - _LEAST) % 2**64 + _LEAST for each in encoded.dictionary.to_pylist()
        ]
        values = pa.array(wrapped, pa.int64()).take(encoded.indices)
    elif pa.types.is_floating(kind):
        return _numbers_of_floats(pc.fill_null(values.cast(pa.float64()), float(_NULL)))
    elif not pa.types.is_integer(kind):
        raise _misfit(field, kind, "it is neither a number nor a date")
    return _numbers(pc.fill_null(values.cast(pa.int64()), _NULL))


def _numbers(values: Array) -> np.ndarray:
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _numbers_of_floats(values: Array) -> np.ndarray:
    floats = values.to_numpy(zero_copy_only=False)
    whole = np.zeros(len(floats), dtype=np.int64)
    inside = np.abs(floats) < 2.0**63  # false for NaN, which is 0 in Java
    whole[inside] = floats[inside].astype(np.int64)
    whole[floats >= 2.0**63] = _MOST
    whole[floats <= -(2.0**63)] = _LEAST
    return whole


def _to_millis(numbers: np.ndarray, unit: TimeUnit) -> np.ndarray:
    """Smaller units are cut toward zero, what is too large stays at the ends of 64 bits: Java's TimeUnit.convert."""
    if unit in _SHRINK:
        by = _SHRINK[unit]
        millis: np.ndarray = (numbers + np.where(numbers < 0, by - 1, 0)) // by
        return millis
    by = _GROW[unit]
    limit = _MOST // by
    grown: np.ndarray = np.clip(numbers, -limit, limit) * by
    grown[numbers > limit] = _MOST
    grown[numbers < -limit] = _LEAST
    return grown


def _rounded(millis: np.ndarray, zone: Zone, step_ms: int) -> np.ndarray:
    """Down to what the pattern can tell apart, so that few distinct instants are left to be written."""
    if zone.fixed_s is None:
        steps = np.where(millis < _WHOLE_MINUTES_FROM_MS, min(step_ms, 1000), min(step_ms, 60_000))
        beyond = np.mod(millis, steps)
    else:
        steps = np.full(len(millis), step_ms)
        beyond = np.mod(np.mod(millis, steps) + zone.fixed_s * 1000 % step_ms, steps)
    rounded: np.ndarray = np.where(millis < _LEAST + step_ms, millis, millis - beyond)
    return rounded
