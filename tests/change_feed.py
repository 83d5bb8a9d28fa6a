"""What a change feed must be: applied to the rows before a commit, its changes give the rows after it."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from hoodie.model.instant import Instant
from hoodie.table import HoodieTable

Change = tuple[str, Any, Any]
Row = dict[str, Any]


def changes_of(table: HoodieTable, since: str | None = None, until: str | None = None, **more: Any) -> list[Change]:
    """(op, before, after) of each change, with rows as dicts, sorted."""
    found = table.changes(since, until, images="before_after", **more).to_arrow().to_pylist()
    return sorted(((row["op"], row["before"], row["after"]) for row in found), key=repr)


KeyOf = Callable[[Row], Hashable]


def by_key(rows: Iterable[Row], key: KeyOf) -> dict[Hashable, Row]:
    """The rows by their keys, which are different."""
    listed = list(rows)
    found = {key(row): row for row in listed}
    assert len(found) == len(listed)
    return found


def apply(feed: Iterable[Row], rows: dict[Hashable, Row], key: KeyOf) -> None:
    """One change after the other, as somebody does who keeps a copy; each must fit what is there."""
    for change in feed:
        before, after = change["before"], change["after"]
        if before is not None:
            assert rows.pop(key(before), None) == before, change
        if after is not None:
            assert key(after) not in rows, change
            rows[key(after)] = after


def check_in_order(table: HoodieTable, since: str | None, until: str, key: KeyOf) -> None:
    """The feed of a range of positions, applied to the rows at its begin, gives those at its end."""
    rows = _rows_at(table, since, key)
    apply(table.changes(since, until, images="before_after").to_arrow().to_pylist(), rows, key)
    assert rows == _rows_at(table, until, key)


def _rows_at(table: HoodieTable, position: str | None, key: KeyOf) -> dict[Hashable, Row]:
    if position is None:
        return {}
    (instant,) = [each for each in table.timeline.commits if each.position == position]
    return by_key(table.scan(as_of=instant.time).to_arrow().to_pylist(), key)


def check_feed(table: HoodieTable) -> None:
    """The changes of each commit, applied to the state before it, give the state after it; there are none too many.

    The state after it is known where `is_settled`.
    """
    before: list[Row] | None = []
    since = None
    for instant in sorted(table.timeline.commits, key=lambda each: each.position):
        feed = table.changes(since, instant.position, images="before_after", meta_columns=True).to_arrow().to_pylist()
        since = instant.position
        after = None
        if is_settled(table, instant):
            after = _state(table, instant.time)
        if table._context.active.read_commit(instant).operation == "LOG_COMPACT":
            assert feed == []
            before = after  # it gives rows its own instant
            continue
        if before is not None:
            before = _applied(feed, before, instant.time)
            assert after is None or sorted(before, key=repr) == sorted(after, key=repr), (str(instant), feed)
        else:
            before = after


def is_settled(table: HoodieTable, instant: Instant) -> bool:
    """Whether what is completed by its position is what is there as of its time: no service that began before was completed later."""
    return all((i.time <= instant.time) == (i.position <= instant.position) for i in table.timeline.commits)


def _applied(feed: Iterable[Row], before: list[Row], time: str) -> list[Row]:
    rows = [*before]
    for change in feed:
        assert change["instant"] == time
        assert (change["before"] is None, change["after"] is None) == {
            "i": (True, False),
            "d": (False, True),
            "u": (False, False),
        }[change["op"]]
        if change["before"] is not None:
            rows.remove(_stable(change["before"]))
        if change["after"] is not None:
            assert _stable(change["after"]) != (change["before"] and _stable(change["before"]))
            rows.append(_stable(change["after"]))
    return rows


def _state(table: HoodieTable, time: str) -> list[dict[str, Any]]:
    return [_stable(row) for row in table.scan(as_of=time, meta_columns=True).to_arrow().to_pylist()]


def _stable(row: dict[str, Any]) -> dict[str, Any]:
    """Without the file that a row stands in: it moves when files are rewritten."""
    return {name: value for name, value in row.items() if name != "_hoodie_file_name"}
