"""The timeline and the sizes of commits as SVG. Colours are those of the style sheet, so that a dark page has its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from math import log10, sqrt

from hoodie.model.results import format_count, format_size
from hoodie.page.facts import Lane, Mark

_LEFT, _WIDTH, _RIGHT = 20, 1000, 20
_TOP, _LANE = 8, 56
_TICKS = 5
_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * n for n in (1, 2, 5, 10, 15, 30)),
    *(3600 * n for n in (1, 2, 3, 6, 12)),
    *(86400 * n for n in (1, 2, 5, 10, 30, 100, 365)),
)
"""Distances between two marks of the axis, in seconds."""
_BARS = 60
_HEIGHT = 180
_SCALE = 70
"""Width of the scale of bytes, a picture of its own: it stays where the bars scroll."""


def timeline_picture(marks: Sequence[Mark]) -> str:
    """A lane for each kind of work and a mark for each instant, as far to the right as it is late.

    The larger a mark, the more its instant wrote. What is not completed is a ring.
    """
    lanes = [lane for lane in Lane if any(mark.lane is lane for mark in marks)]
    first = min(mark.began for mark in marks)
    last = max(mark.began for mark in marks)
    if last - first < timedelta(seconds=1):
        first, last = first - timedelta(seconds=1), last + timedelta(seconds=1)
    height = _TOP + _LANE * len(lanes) + 26

    def x(moment: datetime) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ((moment - first) / (last - first))

    parts = [_opening(height, f"{format_count(len(marks), 'instant')} from {_when(first)} to {_when(last)}")]
    bottom = _TOP + _LANE * len(lanes)
    for moment in _ticks(first, last):
        parts.append(f'<line class="grid" x1="{x(moment):.1f}" y1="{_TOP}" x2="{x(moment):.1f}" y2="{bottom}"/>')
        place, side = (_WIDTH, "last") if x(moment) > _WIDTH - 40 else (x(moment), "axis")
        parts.append(f'<text class="{side}" x="{place:.1f}" y="{bottom + 18}">{_tick(moment, last - first)}</text>')
    for number, lane in enumerate(lanes):
        top = _TOP + _LANE * number
        parts.append(f'<line class="lane" x1="0" y1="{top + _LANE}" x2="{_WIDTH}" y2="{top + _LANE}"/>')
        parts.append(f'<text class="title" x="0" y="{top + 14}">{escape(lane.value)}</text>')
        for mark in marks:
            if mark.lane is lane:
                parts.append(_mark(mark, x(mark.began), top + _LANE - 20))
    return "".join((*parts, "</svg>"))


def commit_bars(marks: Sequence[Mark]) -> tuple[str, str]:
    """What each of the last completed commits wrote, oldest first, and the scale of it."""
    newest = [mark for mark in marks if mark.instant.is_completed and mark.bytes_written][-_BARS:]
    most = max(mark.bytes_written for mark in newest)
    wide = (_WIDTH - _SCALE) / max(len(newest), 12)
    bottom = _HEIGHT - 8
    label = f"bytes written by the last {format_count(len(newest), 'commit')}"
    parts = [_opening(_HEIGHT, label, left=_SCALE)]
    scale = [_opening(_HEIGHT, "scale of bytes", width=_SCALE)]
    for share in (0.5, 1.0):
        y = bottom - share * (bottom - 16)
        parts.append(f'<line class="grid" x1="{_SCALE}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}"/>')
        scale.append(f'<text class="scale" x="62" y="{y + 4:.1f}">{format_size(round(most * share))}</text>')
    parts.append(f'<line class="lane" x1="{_SCALE}" y1="{bottom}" x2="{_WIDTH}" y2="{bottom}"/>')
    for number, mark in enumerate(newest):
        tall = max(1.5, (bottom - 16) * mark.bytes_written / most)
        parts.append(
            f'<rect class="{class_of(mark.lane)}" x="{_SCALE + wide * number + 1:.1f}" y="{bottom - tall:.1f}" rx="1.5" '
            f'width="{max(1.0, min(wide - 2, 40)):.1f}" height="{tall:.1f}">{_tooltip(mark)}</rect>'
        )
    return "".join((*parts, "</svg>")), "".join((*scale, "</svg>"))


def class_of(lane: Lane) -> str:
    """The class of the style sheet that has the colour of a lane."""
    return lane.name.lower()


def _opening(height: int, label: str, *, left: int = 0, width: int = _WIDTH) -> str:
    return f'<svg viewBox="{left} 0 {width - left} {height}" role="img" aria-label="{escape(label)}">'


def _mark(mark: Mark, x: float, y: float) -> str:
    radius = 4.0 if not mark.bytes_written else min(12.0, 3.0 + 1.5 * sqrt(max(0.0, log10(mark.bytes_written) - 2) * 4))
    state = class_of(mark.lane) + ("" if mark.instant.is_completed else " ring")
    return f'<circle class="{state}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{_tooltip(mark)}</circle>'


def _tooltip(mark: Mark) -> str:
    rows = [
        f"{number:,} {word}"
        for number, word in ((mark.inserted, "inserted"), (mark.updated, "updated"), (mark.deleted, "deleted"))
        if number
    ]
    wrote = [f"{format_count(mark.files, 'file')}, {format_size(mark.bytes_written)}"] if mark.files else []
    state = [] if mark.instant.is_completed else [str(mark.instant.state)]
    return f"<title>{escape('; '.join([f'{mark.instant.time} {mark.operation}', *state, *rows, *wrote]))}</title>"


def _ticks(first: datetime, last: datetime) -> Iterator[datetime]:
    span = (last - first).total_seconds()
    step = next(
        (step for step in _STEPS_S if span / step <= _TICKS), _STEPS_S[-1] * max(1, round(span / 365 / 86400 / _TICKS))
    )
    day = first.replace(hour=0, minute=0, second=0, microsecond=0)
    number = int((first - day).total_seconds() // step) + 1
    while (moment := day + timedelta(seconds=step * number)) <= last:
        yield moment
        number += 1


def _tick(moment: datetime, span: timedelta) -> str:
    if span > timedelta(days=3):
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%m-%d %H:%M}" if span > timedelta(minutes=10) else f"{moment:%H:%M:%S}"


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
