"""Spans and figures of what this process does, for OpenTelemetry, by its API alone.

Nothing is imported for it: a program that wants them has imported OpenTelemetry before, to say where they go. Until it has set
a provider, a span costs a look into `sys.modules`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

Value = str | int | float

_SCOPE = "hoodie"
_TRACE, _METRICS = "opentelemetry.trace", "opentelemetry.metrics"
_NO_SPAN: AbstractContextManager[object] = nullcontext()


class Instrument(NamedTuple):
    make: str
    """The method of a meter."""
    tell: str
    """That of what it makes."""
    unit: str
    text: str

    @classmethod
    def counter(cls, unit: str, text: str) -> Instrument:
        return cls("create_counter", "add", unit, text)

    @classmethod
    def histogram(cls, unit: str, text: str) -> Instrument:
        return cls("create_histogram", "record", unit, text)

    @classmethod
    def gauge(cls, unit: str, text: str) -> Instrument:
        return cls("create_gauge", "set", unit, text)


INSTRUMENTS: Mapping[str, Instrument] = {
    "write.duration": Instrument.histogram("s", "How long writes took that were committed."),
    "write.rows": Instrument.counter("{row}", "Rows that writes inserted, updated and deleted."),
    "write.bytes": Instrument.counter("By", "Bytes that writes and services wrote."),
    "write.changed_bytes": Instrument.counter("By", "Bytes of the rows that writes brought, as they are stored."),
    "write.retries": Instrument.counter(
        "{try}", "Tries of writes that lost against another writer, and were repeated."
    ),
    "lock.wait": Instrument.histogram("s", "How long the lock of a table was waited for."),
    "scan.files": Instrument.histogram("{file}", "Files that the plan of a query names."),
    "scan.bytes": Instrument.histogram("By", "Bytes of these files."),
    "service.duration": Instrument.histogram("s", "How long table services took."),
    "pending.oldest_age": Instrument.gauge("s", "Age of the oldest instant that is not completed."),
    "consumer.lag": Instrument.gauge("s", "Age of the first commit that a named consumer has not read."),
    "consumer.lag_commits": Instrument.gauge("{commit}", "Commits that a named consumer has not read."),
    "ingest.rows": Instrument.counter("{row}", "Rows that rounds of ingestion wrote."),
    "ingest.bad": Instrument.counter("{record}", "Records that could not be rows."),
    "ingest.waiting": Instrument.gauge("{piece}", "Files or records that the last round left for the next one."),
}


def span(name: str, **attributes: Value | None) -> AbstractContextManager[object]:
    """A span of this name and all that happens in the block; an error in it is the span's."""
    if not _traces():
        return _NO_SPAN
    result: AbstractContextManager[object] = _tracer().start_as_current_span(
        f"hoodie.{name}", attributes=_with_prefix(attributes)
    )
    return result


def note(**attributes: Value | None) -> None:
    """Add attributes to the current span of this thread."""
    if _traces():
        sys.modules[_TRACE].get_current_span().set_attributes(_with_prefix(attributes))


def measures() -> bool:
    """Whether somebody wants figures: those that cost something are found out for them alone."""
    return _has_provider(_METRICS, "get_meter_provider")


def _traces() -> bool:
    return _has_provider(_TRACE, "get_tracer_provider")


def _has_provider(module: str, get: str) -> bool:
    """Libraries import the API, too. Until a program has said where to, it has stand-ins."""
    provider = getattr(sys.modules.get(module), get, None)
    return provider is not None and "Proxy" not in type(provider()).__name__


def record(name: str, value: float, **labels: Value) -> None:
    """A value for an instrument of `INSTRUMENTS`."""
    if measures():
        _teller(name)(value, labels)


def _with_prefix(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {f"hoodie.{name}": value for name, value in attributes.items() if value is not None}


@cache
def _tracer() -> Any:
    return sys.modules[_TRACE].get_tracer(_SCOPE)


@cache
def _teller(name: str) -> Callable[[float, Mapping[str, Value]], None]:
    kind = INSTRUMENTS[name]
    instrument = getattr(sys.modules[_METRICS].get_meter(_SCOPE), kind.make)(f"hoodie.{name}", kind.unit, kind.text)
    tell: Callable[[float, Mapping[str, Value]], None] = getattr(instrument, kind.tell)
    return tell
