"""Options of a read: which query, and the instants in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from hoodie.errors import OptionError
from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.instant import InstantRange, format_instant, is_instant_time, parse_instant
from hoodie.options import keys

BEGINNING = "000"
"""Sorts before every instant."""
_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_FORMS = "17 or 14 digits (yyyyMMddHHmmss[SSS]), yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS] or ISO 8601"


@dataclass(frozen=True)
class StreamReadOptions:
    """Where a stream begins that has no checkpoint, and how much of it one batch takes."""

    start: str = keys.START_OFFSET.default
    """`earliest`, `latest`, or an instant."""
    max_commits: int | None = keys.MAX_COMMITS.default
    max_bytes: int | None = keys.MAX_BYTES.default


@dataclass(frozen=True)
class ReadOptions:
    query: QueryType = QueryType.SNAPSHOT
    begin: str | None = None
    """Incremental: exclusive. An instant time; of versions 8 and 9 a completion time, and so is the end."""
    end: str | None = None
    """Incremental: inclusive; None: the latest."""
    as_of: str | None = None
    """Inclusive."""
    changes: ChangeFormat = ChangeFormat.LATEST_STATE
    """Incremental: what is given of a change."""
    full_scan_fallback: bool = False
    """Incremental: read a range that was archived or cleaned from the whole table instead of failing."""
    where: str | None = None
    columns: tuple[str, ...] | None = None
    """None: all."""
    stream: StreamReadOptions = field(default_factory=StreamReadOptions)
    ignored: tuple[str, ...] = ()
    """Options of Apache Hudi that are not needed here, as the user spelled them; the door warns once of all."""

    @property
    def range(self) -> InstantRange:
        """The instants (begin, end] of an incremental query."""
        return InstantRange(self.begin, self.end)


def parse_instant_option(text: str, *, name: str, zone: tzinfo = UTC) -> str:
    """The instant time that a text stands for: 14 or 17 digits.

    Digits are taken as they are. A date is its first millisecond, a time without a fraction the first of its second,
    finer fractions are cut. Dates and times are wall clock of the table's zone, but for those with an offset (or `Z`),
    which are converted to `zone`.

    Raises:
        OptionError: no known form, or no date of the calendar.
    """
    if not isinstance(text, str):
        raise OptionError(f"{name}={text!r} is a {type(text).__name__}: give the instant as text, {_FORMS}")
    text = text.strip()
    moment = None
    try:
        if is_instant_time(text) and len(text) in {14, 17}:
            parse_instant(text)
            return text
        if _DATE_TIME.fullmatch(text):
            moment = datetime.fromisoformat(text)
            moment = moment.astimezone(zone) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise OptionError(f"option {name}={text!r} is no instant, expected {_FORMS}")
    return format_instant(moment)


def parse_begin_option(text: str, *, name: str, zone: tzinfo = UTC) -> str:
    """As `parse_instant_option`; also `earliest` and zeros only, for the beginning of the timeline."""
    begin = str(text).strip()
    if begin.lower() == "earliest" or (begin and not begin.strip("0")):
        return BEGINNING
    return parse_instant_option(text, name=name, zone=zone)
