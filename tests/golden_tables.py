"""The tables under tests/golden, which Apache Hudi wrote, each with what Apache Hudi itself read from it."""

import json
import os
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent / "golden"
# A state file of a version 6 timeline; only a completed one has no state at the end of its name. The metadata table's
# first instants (00000000000000000...) are no times.
_STATE_FILE = re.compile(r"(?P<time>2\d{16})\.(?P<rest>.+)")


class Golden(NamedTuple):
    """A private copy of a golden table and its `expected.json`; nothing is expected where there is none."""

    name: str
    path: Path
    expected: dict[str, Any]


class Pull(NamedTuple):
    """An incremental pull of `(begin, end]` and what Hudi answered: its rows, or None where it failed (files were cleaned)."""

    begin: str
    end: str
    rows: list[dict[str, Any]] | None


def golden_pulls(name: str) -> Sequence[Pull]:
    """Pulls between every pair of instants of a golden table ("000" is before the first; version 9: completion times).

    A table without `pairs.json` has those of its `expected.json`: between neighbouring instants.
    """
    if not (FOLDER / name / "pairs.json").exists():
        expected = json.loads((FOLDER / name / "expected.json").read_text(encoding="utf-8"))
        return [Pull(entry["begin"], entry["end"], entry.get("rows")) for entry in expected["incremental"]]
    found = json.loads((FOLDER / name / "pairs.json").read_text(encoding="utf-8"))
    return [
        Pull(begin, end, None if rows is None else [found["rows"][row] for row in rows])
        for begin, end, rows in found["pairs"]
    ]


def golden_names() -> Sequence[str]:
    """The names of all golden tables, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob("*/expected.json"))


def shows_services(name: str) -> bool:
    """Whether a table is there for what Apache Hudi's services left in it (`integration/make_goldens.py`)."""
    return "integration.make_goldens" in (FOLDER / name / "how.md").read_text(encoding="utf-8")


def copy_golden(name: str, folder: Path) -> Golden:
    """Copy a golden table into `folder`, where the test may change it.

    Its timeline files are dated by `date_timeline`.
    """
    answers = FOLDER / name / "expected.json"
    expected = json.loads(answers.read_text(encoding="utf-8")) if answers.exists() else {}
    path = Path(shutil.copytree(FOLDER / name / "table", folder / name))
    date_timeline(path)
    return Golden(name, path, expected)


def date_timeline(path: Path) -> None:
    """Give a copy's timeline files modification times that fit their instants, which a checkout or a zip does not keep.

    Hudi 1.2.0 takes the modification time of a completed version 6 instant as its completion time: with today's it
    moves log files into the slice of a compaction that was scheduled after them, and as-of and incremental reads lose
    their rows (seen on v6_mor_pending_compaction).
    """
    for timeline in (path / ".hoodie", path / ".hoodie" / "metadata" / ".hoodie"):
        for file in timeline.glob("*"):
            if found := _STATE_FILE.fullmatch(file.name):
                state = found["rest"].rpartition(".")[2]
                # One millisecond: later than its own instant, not later than the next.
                modified_s = _epoch_s(found["time"]) + (0 if state in {"requested", "inflight"} else 0.001)
                os.utime(file, (modified_s, modified_s))


def _epoch_s(instant: str) -> float:
    whole = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return whole.timestamp() + int(instant[14:]) / 1000
