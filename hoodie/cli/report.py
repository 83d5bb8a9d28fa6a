"""What a command found, as a value for scripts and as lines for people."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie.errors import harmless


@dataclass(frozen=True)
class Report:
    """Outcome of one command: `data` is what `--json` prints, `lines` is what a terminal shows."""

    data: Mapping[str, Any]
    lines: tuple[str, ...]
    failed: bool = False
    """Whether the exit status is 1: what was looked for was found, and it is bad."""

    def text(self, *, as_json: bool) -> str:
        return harmless_json(self.data, indent=2) if as_json else harmless("\n".join(self.lines))


def harmless_json(data: object, *, indent: int | None = None) -> str:
    """JSON that a terminal may show: what it leaves of control characters stands there by its own escapes."""
    try:
        text = json.dumps(data, ensure_ascii=False, indent=indent, default=_plain, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, indent=indent, default=_plain)
    return _BARE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinities: they are texts, which ingestion takes for a column of numbers."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    is_number = isinstance(value, float) and not math.isfinite(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)] if is_number else value


_BARE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of aligned columns; numbers stand to the right. Only the header when there are no rows."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [bool(rows) and all(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(header)]

    def line(values: Sequence[str]) -> str:
        placed = [v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right, strict=True)]
        return "  ".join(placed).rstrip()

    return [line(header), *(line(row) for row in cells)]


def _cell(value: object) -> str:
    """One line, as wide as it looks."""
    return f"{value:,}" if isinstance(value, int) else harmless(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def format_pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines `name  value`, the values under each other."""
    all_pairs = list(pairs)
    width = max((len(name) for name, _ in all_pairs), default=0)
    return [f"{name.ljust(width)}  {value}".rstrip() for name, value in all_pairs]
