"""How keys and partition paths are made, beside the columns that make them: what options say and what a table remembers.

Apache Hudi stores the settings of the timestamp generator for the generator TIMESTAMP only, and the kinds of a custom
generator's columns not at all in version 6. We store both, so that a later write needs no option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hoodie.errors import OptionError

PREFIX = "hoodie.keygen.timebased."
OLD_PREFIX = "hoodie.deltastreamer.keygen.timebased."
TYPE = f"{PREFIX}timestamp.type"
UNIT = f"{PREFIX}timestamp.scalar.time.unit"
INPUT_FORMAT = f"{PREFIX}input.dateformat"
INPUT_DELIMITER = f"{PREFIX}input.dateformat.list.delimiter.regex"
INPUT_ZONE = f"{PREFIX}input.timezone"
OUTPUT_FORMAT = f"{PREFIX}output.dateformat"
OUTPUT_ZONE = f"{PREFIX}output.timezone"
ZONE = f"{PREFIX}timezone"
TIMEBASED = (TYPE, UNIT, INPUT_FORMAT, INPUT_DELIMITER, INPUT_ZONE, OUTPUT_FORMAT, OUTPUT_ZONE, ZONE)
KINDS = "hoodie.python.partition.kinds"
TIMESTAMPS_AS_TEXT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
"""Not among Hudi's table properties, but its writers take it from there when they are not told."""
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
"""The same."""
SLASH_EXTRACTOR = "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"
"""All that Hudi leaves in the properties of a table whose folders are parts of dates."""
_LONGEST_REGEX = 100


class TimestampType(StrEnum):
    """What a partition column of the timestamp generator holds."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    SCALAR = "SCALAR"


class TimeUnit(StrEnum):
    NANOSECONDS = "NANOSECONDS"
    MICROSECONDS = "MICROSECONDS"
    MILLISECONDS = "MILLISECONDS"
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"


class PartitionKind(StrEnum):
    """How a custom generator makes the part of the path of one column."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


_UNITS = {
    TimestampType.UNIX_TIMESTAMP: TimeUnit.SECONDS,
    TimestampType.EPOCHMILLISECONDS: TimeUnit.MILLISECONDS,
    TimestampType.EPOCHMICROSECONDS: TimeUnit.MICROSECONDS,
}


@dataclass(frozen=True)
class TimestampSettings:
    """The timestamp generator's, parsed; patterns and zones are still text."""

    output_format: str
    unit: TimeUnit | None = None
    """Of numbers; None when the column holds text."""
    input_formats: tuple[str, ...] = ()
    """Of texts: the first one that fits counts."""
    input_zone: str = ""
    """Of texts that do not say theirs; empty: UTC."""
    output_zone: str = ""
    """Empty: that of the text, UTC for numbers."""


@dataclass(frozen=True)
class KeySettings:
    """What is said of the making of keys. None and empty: not said."""

    timebased: Mapping[str, str] = field(default_factory=dict)
    """Options of the timestamp generator by their newer names."""
    partition_kinds: tuple[PartitionKind, ...] = ()
    """Of a custom generator's partition columns."""
    timestamps_as_text: bool | None = None
    slash_dates: bool | None = None

    def over(self, other: KeySettings) -> KeySettings:
        """These, and what `other` says where nothing is said here."""
        return KeySettings(
            self.timebased or other.timebased,
            self.partition_kinds or other.partition_kinds,
            other.timestamps_as_text if self.timestamps_as_text is None else self.timestamps_as_text,
            other.slash_dates if self.slash_dates is None else self.slash_dates,
        )


def partition_columns(fields: Sequence[str]) -> tuple[tuple[str, ...], tuple[PartitionKind, ...]]:
    """`column` or `column:KIND` of each partition column -> names, and kinds where they are said.

    Raises:
        OptionError: a kind is unknown, or only some columns have one.
    """
    pairs = [each.partition(":") for each in fields]
    names = tuple(name.strip() for name, _, _ in pairs)
    typed = [(name, kind.strip().upper()) for name, colon, kind in pairs if colon]
    if not typed:
        return names, ()
    wrong = [f"{name}:{kind}" for name, kind in typed if kind not in set(PartitionKind)]
    if wrong or len(typed) < len(pairs):
        bad = wrong[0] if wrong else next(name for name, colon, _ in pairs if not colon)
        raise OptionError(
            f"partition columns {','.join(fields)!r}: {bad!r} is not of the form column:KIND with a kind of "
            f"{', '.join(PartitionKind)}; give every column its kind, or none"
        )
    return names, tuple(PartitionKind(kind) for _, kind in typed)


def parse_key_settings(properties: Mapping[str, str], partition_fields: Sequence[str]) -> KeySettings:
    """What `hoodie.properties` says; a kind that is no kind counts as not said.

    Raises:
        ValueError: a flag is neither true nor false.
    """
    texts = {name: properties.get(name, properties.get(_old(name), "")) for name in TIMEBASED}
    kinds = (
        [each.partition(":")[2] for each in partition_fields] if any(":" in each for each in partition_fields) else []
    )
    kinds = kinds or [kind.strip() for kind in properties.get(KINDS, "").split(",")]
    are_kinds = all(kind.upper() in set(PartitionKind) for kind in kinds) and len(kinds) == len(partition_fields)
    slash = _flag(properties, SLASH_DATES)
    if slash is None and properties.get("hoodie.table.partition_extractor_class") == SLASH_EXTRACTOR:
        slash = True
    return KeySettings(
        {name: value for name, value in texts.items() if value},
        tuple(PartitionKind(kind.upper()) for kind in kinds) if are_kinds else (),
        _flag(properties, TIMESTAMPS_AS_TEXT),
        slash,
    )


def _old(name: str) -> str:
    return OLD_PREFIX + name.removeprefix(PREFIX)


def _flag(properties: Mapping[str, str], name: str) -> bool | None:
    value = properties.get(name, "").lower()
    if value not in {"", "true", "false"}:
        raise ValueError(f"{name}={properties[name]!r}, expected true or false")
    return value == "true" if value else None


def key_properties(settings: KeySettings) -> dict[str, str]:
    """The same as properties of a new table."""
    flags = {TIMESTAMPS_AS_TEXT: settings.timestamps_as_text, SLASH_DATES: settings.slash_dates}
    return {
        **settings.timebased,
        KINDS: ",".join(settings.partition_kinds),
        **{name: str(value).lower() for name, value in flags.items() if value is not None},
    }


def compared_settings(stands: KeySettings, option_settings: KeySettings) -> list[tuple[str, object, object]]:
    """(what, the table's value, the one asked for) of what the table says itself; what it leaves open contradicts nothing."""
    always: list[tuple[str, object, object]] = [
        (name, stands.timebased.get(name, ""), value)
        for name, value in option_settings.timebased.items()
        if stands.timebased
    ]
    pairs: tuple[tuple[str, object, object], ...] = (
        ("kinds of the partition columns", stands.partition_kinds or None, option_settings.partition_kinds or None),
        (TIMESTAMPS_AS_TEXT, stands.timestamps_as_text, option_settings.timestamps_as_text),
        (SLASH_DATES, stands.slash_dates, option_settings.slash_dates),
    )
    return always + [pair for pair in pairs if pair[1] is not None]


def timestamp_settings(timebased: Mapping[str, str], *, table: str) -> TimestampSettings:
    """The settings of the timestamp generator from the text of its options.

    Raises:
        OptionError: one is missing or has no such value.
    """

    def needed(name: str, example: str) -> str:
        if not timebased.get(name, "").strip():
            raise OptionError(
                f"table {table!r} makes partition paths of timestamps, and nothing says {name}: set it, "
                f"to {example} for instance, as it was when the table's first rows were written"
            )
        return timebased[name].strip()

    type_name = needed(TYPE, TimestampType.EPOCHMILLISECONDS)
    if type_name.upper() not in set(TimestampType):
        raise OptionError(f"option {TYPE}={type_name!r} is not one of {', '.join(TimestampType)}")
    kind = TimestampType(type_name.upper())
    output = needed(OUTPUT_FORMAT, "yyyy/MM/dd")
    both = timebased.get(ZONE, "").strip()
    input_zone = both or timebased.get(INPUT_ZONE, "").strip()
    output_zone = both or timebased.get(OUTPUT_ZONE, "").strip()
    if kind in (TimestampType.DATE_STRING, TimestampType.MIXED):
        formats = needed(INPUT_FORMAT, "yyyy-MM-dd")
        return TimestampSettings(output, None, _split(formats, timebased), input_zone, output_zone)
    unit = _UNITS.get(kind) or _unit(timebased.get(UNIT, "").strip() or TimeUnit.SECONDS)
    return TimestampSettings(output, unit, (), input_zone, output_zone)


def _unit(text: str) -> TimeUnit:
    if text.upper() not in set(TimeUnit):
        raise OptionError(f"option {UNIT}={text!r} is not one of {', '.join(TimeUnit)}")
    return TimeUnit(text.upper())


def _split(formats: str, timebased: Mapping[str, str]) -> tuple[str, ...]:
    delimiter = timebased.get(INPUT_DELIMITER, "").strip() or ","
    try:
        if len(delimiter) > _LONGEST_REGEX:
            raise ValueError(f"it has more than {_LONGEST_REGEX} characters")
        parts = re.split(delimiter, formats)
    except (re.error, ValueError) as error:
        raise OptionError(f"option {INPUT_DELIMITER}={delimiter!r} is not a regular expression: {error}") from None
    return tuple(part.strip() for part in parts if part and part.strip())
