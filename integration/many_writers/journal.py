"""Notes that survive their writer: lines of JSON, each on disk before the writer goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from integration.many_writers.history import Kind, Op, Outcome

Note = Mapping[str, Any]


class Journal:
    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def note(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, "at_s": time.monotonic(), **more})
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def notes(path: Path) -> Iterator[Note]:
    """Those of one process, in order; the last line may be torn."""
    for line in path.read_bytes().split(b"\n"):
        try:
            note: Note = json.loads(line)
        except ValueError:
            return
        yield note


def ops_of(path: Path) -> Iterator[Op]:
    """The writes of one process."""
    begun: Note | None = None
    for note in notes(path):
        if note["what"] == "began":
            if begun is not None:
                yield _op(begun, None)
            begun = note
        elif begun is not None and note["what"] in list(Outcome):
            yield _op(begun, note)
            begun = None
    if begun is not None:
        yield _op(begun, None)


def _op(began: Note, ended: Note | None) -> Op:
    outcome = Outcome.UNKNOWN if ended is None else Outcome(ended["what"])
    return Op(
        began["op"],
        Kind(began["kind"]),
        began["rows"],
        began["at_s"],
        ended["at_s"] if ended is not None and outcome is not Outcome.UNKNOWN else None,
        outcome,
        ended.get("instant") if ended is not None else None,
    )
