"""What a command found, as a value for scripts and as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Report:
    """Outcome of one command: `data` is what `--json` prints, `lines` is what a terminal shows."""

    data: Mapping[str, Any]
    lines: tuple[str, ...]
    failed: bool = False
    """Whether the exit status is 1: what was looked for was found, and it is bad."""

    def text(self, *, as_json: bool) -> str:
        return json.dumps(self.data, ensure_ascii=False, indent=2) if as_json else "\n".join(self.lines)


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of aligned columns; numbers stand to the right. Only the header when there are no rows."""
    cells = [[f"{value:,}" if isinstance(value, int) else str(value) for value in row] for row in rows]
    right = [bool(rows) and all(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(header)]

    def line(values: Sequence[str]) -> str:
        placed = [v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right, strict=True)]
        return "  ".join(placed).rstrip()

    return [line(header), *(line(row) for row in cells)]


def format_pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines `name  value`, the values under each other."""
    found = list(pairs)
    width = max((len(name) for name, _ in found), default=0)
    return [f"{name.ljust(width)}  {value}".rstrip() for name, value in found]
