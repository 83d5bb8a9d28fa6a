"""Small tables for notebooks. Every text is escaped: names and values come from files of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = ' style="text-align: left"'


def html_pairs(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """A title, and below it a line for each name and its value."""
    lines = "".join(f"<tr><th{_CELL}>{_text(name)}</th><td{_CELL}>{_text(value)}</td></tr>" for name, value in pairs)
    return f"<table><caption>{_text(title)}</caption><tbody>{lines}</tbody></table>"


def html_rows(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title, and below it a table."""
    head = "".join(f"<th{_CELL}>{_text(name)}</th>" for name in header)
    lines = "".join("<tr>" + "".join(f"<td{_CELL}>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{_text(title)}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _text(value: object) -> str:
    return escape(f"{value:,}" if isinstance(value, int) else str(value))
