"""The results page -> docs/speed.svg, the picture of README.md: CPU seconds of an upsert and of a read, ours beside the others.

`python -m benchmarks.picture` writes it into the checkout that is the current folder; `make bench` does so after its page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

RESULTS = Path("benchmarks/RESULTS.md")
PICTURE = Path("docs/speed.svg")

_CASES = {
    "Upsert of 50,000 rows into 2 million": "upsert",
    "Read of all rows, logs merged in": "full scan, snapshot, before compaction",
}
_FLOORS = {"upsert": "plain Spark, append", "full scan, snapshot, before compaction": "plain Spark, scan"}
_SHOWN = {"hoodie, merge-on-read": "hoodie", "Iceberg, merge-on-read": "Iceberg", "Delta, deletion vectors": "Delta"}
_HUDI = {"Hudi, bucket index": "Apache Hudi, buckets", "Hudi, bloom index": "Apache Hudi, bloom"}
_OURS, _PEER, _FLOOR = "#1b6ec2", "#b9bec5", "#dfe2e6"
_LEFT, _BAR, _STEP, _PANEL = 170, 300, 24, 560


class Bar(NamedTuple):
    name: str
    cpu_s: float
    colour: str


def bars(page: str, case: str) -> list[Bar]:
    """CPU seconds of a case of the page, the floor first. Spark 4, but Apache Hudi on Spark 3.5, its newest."""
    spark4, spark3 = (
        page.split(f"\n## {title}")[1].split("\n## ", maxsplit=1)[0] for title in ("Spark 4\n", "Spark 3.5")
    )
    plain = {"full scan, snapshot, before compaction": "full scan, plain scan of its files, before compaction"}
    floor = _cells(spark4, plain.get(case, case))
    found = [Bar(_FLOORS[case], _cpu(floor.get("floor") or floor["hoodie, merge-on-read"]), _FLOOR)]
    for lane, shown in ((spark4, _SHOWN), (spark3, _HUDI)):
        cells = _cells(lane, case)
        found += [Bar(name, _cpu(cells[title]), _OURS if name == "hoodie" else _PEER) for title, name in shown.items()]
    return found


def picture(page: str) -> str:
    """The SVG of a results page."""
    panels = [(title, bars(page, case)) for title, case in _CASES.items()]
    height = 44 + _STEP * max(len(found) for _, found in panels) + 14
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_PANEL * len(panels)}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, found) in enumerate(panels):
        x = _PANEL * number
        lines.append(_text(x + 16, 24, f"{title}, CPU seconds", "font-weight='bold'"))
        longest = max(bar.cpu_s for bar in found)
        for row, bar in enumerate(found):
            y = 44 + _STEP * row
            width = round(_BAR * bar.cpu_s / longest, 1)
            lines.append(_text(x + _LEFT - 8, y + 13, bar.name, "text-anchor='end'"))
            lines.append(f'<rect x="{x + _LEFT}" y="{y}" width="{width}" height="17" fill="{bar.colour}"/>')
            lines.append(_text(x + _LEFT + width + 6, y + 13, f"{bar.cpu_s:.1f}", ""))
    return "\n".join([*lines, "</svg>"]) + "\n"


def curves(x: Sequence[float], what: str, panels: Mapping[str, Sequence[float]]) -> str:
    """The SVG of a curve a panel over the same `x`, two panels a row. Each begins at zero."""
    width, height, left = 440, 170, 60
    rows = -(-len(panels) // 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width}" height="{rows * height + 24}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, values) in enumerate(panels.items()):
        x0, y0 = width * (number % 2) + left, height * (number // 2 + 1) - 14
        wide, high, most = width - left - 20, height - 50, max(*values, 1e-9)
        points = " ".join(
            f"{x0 + wide * at / max(x):.1f},{y0 - high * value / most:.1f}"
            for at, value in zip(x, values, strict=True)
            if not math.isnan(value)
        )
        lines += [
            _text(x0, y0 - high - 12, title, "font-weight='bold'"),
            f'<path d="M{x0},{y0 - high} V{y0} H{x0 + wide}" stroke="{_PEER}" fill="none"/>',
            f'<polyline points="{points}" stroke="{_OURS}" stroke-width="1.5" fill="none"/>',
            _text(x0 - 6, y0 - high + 4, f"{most:,.0f}", "text-anchor='end'"),
            _text(x0 - 6, y0 + 4, "0", "text-anchor='end'"),
            _text(x0 + wide, y0 + 16, f"{max(x):,.0f} {what}", "text-anchor='end'"),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _cells(lane: str, case: str) -> dict[str, str]:
    """Column title -> cell of a case; the first table of the lane that has it."""
    titles: list[str] = []
    for line in lane.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| |"):
            titles = cells[1:]
        elif cells[0] == case:
            return dict(zip(titles, cells[1:]))
    raise KeyError(case)


def _cpu(cell: str) -> float:
    """`wall / CPU (ratio)` -> CPU."""
    found = re.match(r"[\d.,]+ / ([\d.,]+)", cell)
    if found is None:
        raise ValueError(f"{cell!r} is no pair of wall and CPU seconds")
    return float(found[1].replace(",", ""))


def _text(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{x}" y="{y}" fill="#24292f" {more}>{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
