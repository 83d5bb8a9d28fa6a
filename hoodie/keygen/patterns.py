"""Joda-Time's date patterns, which Apache Hudi's timestamp key generator takes: instants -> text and text -> instants.

Letters of an output: `y Y x` year, year of era, week year; `M` month; `d D` day of month, of year; `e E` weekday; `w` week;
`C` century; `G` era; `H k K h` hour 0-23, 1-24, 0-11, 1-12; `a` half of the day; `m s S` minute, second, fraction;
`Z ZZ ZZZ` offset as +0100, as +01:00, name of the zone. Of an input: all but `x w C G ZZZ` and years of two digits. Names
are English. Text in single quotes stands for itself, as do all characters but letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hoodie.keygen.calendar import (
    DAY_MS,
    UTC_ZONE,
    Zone,
    civil_from_days,
    days_from_civil,
    days_in_month,
    fixed_zone,
    iso_week,
    weekday,
)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMERIC = frozenset("cCxXyYdhHmsSeDFwWkK")
_WRITTEN = frozenset("GCYxweEyDMdaKhHkmsSZ")
_DIGITS_READ = {"M": 2, "d": 2, "D": 3, "e": 1, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2}
"""At most so many; fewer are read too, whatever the number of letters."""
_RANGES = {
    "M": (1, 12), "D": (1, 366), "d": (1, 31), "e": (1, 7), "E": (1, 7), "a": (0, 1), "H": (0, 23), "k": (1, 24), "K": (0, 11),
    "h": (1, 12), "m": (0, 59), "s": (0, 59), "y": (-292_275_054, 292_278_994), "Y": (1, 292_278_994),
}  # fmt: skip
"""The years are those that Joda-Time's 64 bits of milliseconds reach."""
_OFFSET = r"[zZ]|[+-](?:[01][0-9]|2[0-3])(?::[0-5][0-9](?::[0-5][0-9])?+|[0-5][0-9](?:[0-5][0-9])?+)?+"
_LEAST_MS, _MOST_MS = -(2**63), 2**63 - 1
_DEFAULT_YEAR = 2000
"""Of a text with a month or a day and no year."""


class _Letters(NamedTuple):
    letter: str
    """Empty for text that stands for itself."""
    width: int
    text: str = ""


class _Local(NamedTuple):
    """An instant as its zone's clocks and calendars show it."""

    days: int
    year: int
    month: int
    day: int
    of_day_ms: int
    offset_s: int
    zone: str


@dataclass(frozen=True)
class Writer:
    """Writes instants by one pattern. Make it with `writer_of`."""

    tokens: tuple[_Letters, ...]

    @property
    def step_ms(self) -> int:
        """All instants from a multiple of so many milliseconds (of local time) to the next are written the same."""
        letters = {token.letter for token in self.tokens}
        for step, finer in ((1, "S"), (1000, "s"), (60_000, "mZ"), (3_600_000, "HkKha")):
            if letters & set(finer):
                return step
        return DAY_MS

    def write(self, millis: int, zone: Zone) -> str:
        """The text of milliseconds since 1970."""
        offset_s = zone.offset_s(millis // 1000)
        if not _LEAST_MS <= millis + offset_s * 1000 <= _MOST_MS:
            offset_s, zone = 0, UTC_ZONE  # as Joda-Time does at the ends of 64 bits
        days, of_day_ms = divmod(millis + offset_s * 1000, DAY_MS)
        local = _Local(days, *civil_from_days(days), of_day_ms, offset_s, zone.name)
        return "".join(token.text if not token.letter else _written(token, local) for token in self.tokens)


class Reading(NamedTuple):
    """What a text says."""

    millis: int
    """Since 1970."""
    zone: Zone
    """In which it was said."""


@dataclass(frozen=True)
class Reader:
    """Reads texts of one pattern. Make it with `reader_of`."""

    shape: re.Pattern[str]
    letters: tuple[str, ...]

    def read(self, text: str, zone: Zone | None) -> Reading | None:
        """The instant of a text, None when it has another form; the zone is for texts without an offset, UTC when None.

        Raises:
            ValueError: it has the form, but there is no such date or time.
        """
        match = self.shape.fullmatch(text)
        if match is None:
            return None
        texts_by_letter = dict(zip(self.letters, match.groups(), strict=True))
        local_s, millis = _local_time(texts_by_letter)
        if "Z" in texts_by_letter:
            at = fixed_zone(_offset_s(texts_by_letter["Z"]))
            return Reading((local_s - at.offset_s(0)) * 1000 + millis, zone or at)
        at = zone or UTC_ZONE
        return Reading((local_s - at.offset_of_local_s(local_s)) * 1000 + millis, at)


def writer_of(pattern: str) -> Writer:
    """Raises ValueError with the rest of a sentence that begins with the pattern: it cannot be written."""
    tokens = tuple(_tokens(pattern))
    for token in tokens:
        if token.letter and token.letter not in _WRITTEN:
            why = "names of zones differ between Java's versions" if token.letter == "z" else "it stands for nothing"
            raise ValueError(f"has the letter {token.letter!r}, which cannot be written: {why}")
    if not tokens:
        raise ValueError("is empty, expected a date pattern such as yyyy/MM/dd")
    return Writer(tokens)


def reader_of(pattern: str) -> Reader:
    """Raises ValueError with the rest of a sentence that begins with the pattern: it cannot be read."""
    tokens = list(_tokens(pattern))
    letters, shape = [], ""
    for token, following in zip(tokens, [*tokens[1:], _Letters("", 0)]):
        if not token.letter:
            shape += f"(?i:{re.escape(token.text)})"
            continue
        if token.letter in letters:
            raise ValueError(f"has the letter {token.letter!r} twice")
        letters.append(token.letter)
        shape += f"({_shape(token, following)})"
    if not letters:
        raise ValueError("has no letters that stand for a part of a date")
    return Reader(re.compile(shape, re.ASCII), tuple(letters))


def _tokens(pattern: str) -> Iterator[_Letters]:
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter.isascii() and letter.isalpha():
            count = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
            yield _Letters(letter, count)
            at += count
            continue
        text, quoted = "", False
        while at < len(pattern):
            c = pattern[at]
            if c == "'" and pattern[at : at + 2] == "''":
                text, at = text + c, at + 1
            elif c == "'":
                quoted = not quoted
            elif not quoted and c.isascii() and c.isalpha():
                break
            else:
                text += c
            at += 1
        if text:
            yield _Letters("", 0, text)


def _is_number(token: _Letters) -> bool:
    return token.letter in _NUMERIC or (token.letter == "M" and token.width <= 2)


def _shape(token: _Letters, following: _Letters) -> str:
    """A regular expression that reads as far as Joda-Time does, and never gives back what it took."""
    letter, count = token.letter, token.width
    if letter in "yY":
        if count == 2:
            raise ValueError("has a year of two digits, whose century would depend on the day on which it is read")
        most = count if _is_number(following) else 9
        return f"{'[+-]?+' if letter == 'y' else ''}[0-9]{{1,{most}}}+"
    if letter == "M" and count >= 3:
        return _one_of([name[:3] for name in _MONTHS], _MONTHS)
    if letter == "E":
        return _one_of([name[:3] for name in _WEEKDAYS], _WEEKDAYS)
    if letter == "a":
        return _one_of(["AM", "PM"])
    if letter == "S":
        return f"[0-9]{{1,{count}}}+"
    if letter in _DIGITS_READ:
        return f"[0-9]{{1,{_DIGITS_READ[letter]}}}+"
    if letter == "Z" and count <= 2:
        return _OFFSET
    raise ValueError(f"has {letter * count!r}, which this release does not read")


def _one_of(*names: tuple[str, ...] | list[str]) -> str:
    spelled = {form for group in names for name in group for form in (name, name.lower(), name.upper())}
    return f"(?>{'|'.join(sorted(spelled, key=lambda name: (-len(name), name)))})"


def _written(token: _Letters, at: _Local) -> str:
    letter, count = token.letter, token.width
    hour = at.of_day_ms // 3_600_000
    match letter:
        case "G":
            return "AD" if at.year > 0 else "BC"
        case "a":
            return "AM" if hour < 12 else "PM"
        case "M" if count >= 3:
            return _MONTHS[at.month - 1] if count > 3 else _MONTHS[at.month - 1][:3]
        case "E":
            name = _WEEKDAYS[weekday(at.days) - 1]
            return name if count > 3 else name[:3]
        case "S":
            return f"{at.of_day_ms % 1000:03d}".ljust(count, "0")[:count]
        case "Z" if count >= 3:
            return at.zone
        case "Z":
            minutes = abs(at.offset_s) // 60
            colon = ":" if count == 2 else ""
            return f"{'-' if at.offset_s < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"
    number = _number(letter, at, hour)
    if letter in "yYx" and count == 2:
        return f"{abs(at.year if letter == 'Y' else number) % 100:02d}"
    return f"{'-' if number < 0 else ''}{abs(number):0{count}d}"


def _number(letter: str, at: _Local, hour: int) -> int:
    of_era = at.year if at.year > 0 else 1 - at.year
    match letter:
        case "y":
            return at.year
        case "Y":
            return of_era
        case "C":
            return abs(at.year) // 100
        case "x":
            return iso_week(at.days)[0]
        case "w":
            return iso_week(at.days)[1]
        case "e":
            return weekday(at.days)
        case "M":
            return at.month
        case "d":
            return at.day
        case "D":
            return at.days - days_from_civil(at.year, 1, 1) + 1
        case "m":
            return at.of_day_ms // 60_000 % 60
        case "s":
            return at.of_day_ms // 1000 % 60
    return {"H": hour, "k": hour or 24, "K": hour % 12, "h": hour % 12 or 12}[letter]


def _local_time(texts_by_letter: Mapping[str, str]) -> tuple[int, int]:
    """(seconds since 1970 on the wall, milliseconds of the second) of what a text says, unsaid parts being the least."""
    parts = {letter: _value(letter, text) for letter, text in texts_by_letter.items() if letter not in "SZ"}
    for letter, value in parts.items():
        least, most = _RANGES[letter]
        if not least <= value <= most:
            raise ValueError(f"{texts_by_letter[letter]!r} stands where {least} to {most} is allowed")
    dated = bool(parts.keys() & set("MDdeE"))
    year = parts.get("y", parts.get("Y", _DEFAULT_YEAR if dated else 1970))
    month, day = parts.get("M", 1), 1
    if "D" in parts:
        days = days_from_civil(year, 1, 1) + parts["D"] - 1
        if civil_from_days(days)[0] != year:
            raise ValueError(f"the year {year} has no day {parts['D']}")
        month, day = civil_from_days(days)[1:]
    day = parts.get("d", day)
    if day > days_in_month(year, month):
        raise ValueError(f"month {month} of the year {year} has no day {day}")
    days = days_from_civil(year, month, day)
    for letter in "eE":
        if letter in parts:
            days += parts[letter] - weekday(days)
    half = parts.get("a", 0) * 12
    hour = parts["H"] if "H" in parts else parts["k"] % 24 if "k" in parts else half
    if "H" not in parts and "k" not in parts:
        hour += parts.get("K", parts.get("h", 0) % 12)
    fraction = texts_by_letter.get("S", "")
    return (
        days * 86_400 + hour * 3600 + parts.get("m", 0) * 60 + parts.get("s", 0),
        int(fraction[:3].ljust(3, "0")) if fraction else 0,
    )


def _value(letter: str, text: str) -> int:
    match letter:
        case "M" if text[0].isalpha():
            return [name[:3].lower() for name in _MONTHS].index(text[:3].lower()) + 1
        case "E":
            return [name[:3].lower() for name in _WEEKDAYS].index(text[:3].lower()) + 1
        case "a":
            return int(text[0] in "pP")
    return int(text)


def _offset_s(text: str) -> int:
    if text in "zZ":
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if text[0] == "-" else seconds
