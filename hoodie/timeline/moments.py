"""Moments as users name them -> instants of a timeline: what `as_of` takes, every other method and command takes, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from hoodie.errors import InstantNotFoundError
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.results import CommitResult, Savepoint
from hoodie.options.moments import parse_instant_option

_FROM_THE_END = re.compile(r"-[1-9]\d{0,8}", re.ASCII)


def counted(value: Any, instants: Callable[[], Sequence[Instant]], *, name: str) -> Any:
    """-1 is the newest of the instants, -2 the one before it, as a number or text; every other value is given back as it is.

    Raises:
        InstantNotFoundError: there are not so many.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool) and value < 0
    if not is_number and not (isinstance(value, str) and _FROM_THE_END.fullmatch(value.strip())):
        return value
    there = instants()
    if -int(str(value)) > len(there):
        choices = f"the earliest is {there[0].time}, the latest {there[-1].time}" if there else "there are none"
        raise InstantNotFoundError(
            f"{name}={value} counts back further than there are instants ({len(there)}): {choices}"
        )
    return there[int(str(value))]


def instant_of(
    value: object, instants: Callable[[], Sequence[Instant]], *, name: str, zone: tzinfo | None, table: str
) -> InstantTime:
    """The instant that is meant: one that is named, or the last of these at or before the moment.

    Args:
        instants: those that the moment may fall on, oldest first.
        zone: the timeline's, as `parse_instant_option` has it.

    Raises:
        OptionError: the value names no moment. InstantNotFoundError: there is no instant as early as that.
    """
    value = counted(value, instants, name=name)
    if isinstance(value, str) and value.strip().isdigit():
        return InstantTime(value.strip())
    result = parse_instant_option(value, name=name, zone=zone)
    if isinstance(value, CommitResult | Instant | Savepoint):
        return result
    there = instants()
    before = [instant.time for instant in there if instant.time <= result]
    if not before:
        choices = f"the earliest is {there[0].time}, the latest {there[-1].time}" if there else "there are none"
        raise InstantNotFoundError(
            f"{name}={value!r} lies before every instant of table {table} that it could mean: {choices}"
        )
    return before[-1]
