"""Tables on the local disk in the states that crashes leave, not recovered: for other readers to look at."""

from collections.abc import Sequence
from pathlib import Path

from hoodie.storage.faults import FaultStorage, crash_points
from hoodie.storage.local import LocalStorage
from tests.crash.actions import ACTIONS, crash
from tests.memory_tables import opened
from tests.rows import Row, rows_of

COLUMNS = ["id", "part", "val", "ts"]
UNDOING = tuple(name for name in ACTIONS if name.startswith(("restore", "rollback of the newest commit")))
"""Actions that take commits off the timeline.

hoodie sees none of these any more from the moment when the plan stands. Other readers see them vanish one by one.
"""
DOING = tuple(name for name in ACTIONS if name not in UNDOING and name != "repair")
"""Not repairs: they begin with files that stand there twice, of which each reader takes one."""


def crashed_tables(
    folder: Path | str, count: int = 40, *, names: Sequence[str] = DOING
) -> list[tuple[Path, list[Row], list[Row]]]:
    """(path of a table, its rows before the action that crashed, its rows had that succeeded), `count` of them.

    Rows have the columns `COLUMNS`, in the encoding and order of `tests.rows.rows_of`. The crashes are spread over all
    actions and their calls. Nothing was read or written after a crash, so nobody has recovered the tables.
    """
    folder = Path(folder)
    points = []
    expected = {}
    for name in names:
        action = ACTIONS[name]
        done = folder / "done" / name.replace(" ", "-")
        action.prepare(LocalStorage(done), None)
        before = _rows(done)
        traced = FaultStorage(LocalStorage(done))
        action.run(opened(traced))
        expected[name] = (before, _rows(done))
        points += [(name, fault) for fault in crash_points(traced.trace)]
    tables = []
    for number in range(count):
        name, fault = points[number * len(points) // count]
        path = folder / f"{number:03d}-{name.replace(' ', '-')}-{fault.at}-{fault.moment}"
        # Made anew, not copied: Hudi goes by the modification times of timeline files.
        ACTIONS[name].prepare(LocalStorage(path), None)
        if not crash(LocalStorage(path), None, ACTIONS[name], fault):
            raise AssertionError(f"{name} did not reach {fault}")
        tables.append((path, *expected[name]))
    return tables


def states_of(name: str, folder: Path) -> list[list[Row]]:
    """The rows after each commit of the table that the action begins with."""
    path = folder / "states" / name.replace(" ", "-")
    ACTIONS[name].prepare(LocalStorage(path), None)
    commits = opened(LocalStorage(path)).timeline.commits
    return [_rows(path, as_of=commit.time) for commit in commits]


def _rows(path: Path, *, as_of: str | None = None) -> list[Row]:
    return rows_of(opened(LocalStorage(path)).scan(columns=COLUMNS, as_of=as_of).to_arrow())
