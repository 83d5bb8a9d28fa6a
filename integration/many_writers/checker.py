"""Judges a history, as Jepsen's checkers do: it is right if some order of whole writes explains all that anybody saw.

On version 6 that order is the one of instants. So a model is played commit by commit, and each snapshot, each read beside the
writers and each pull is compared with it. Every violation is one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from integration.many_writers.history import Change, Commit, History, Kind, Op, Outcome, Pull, Row

State = Mapping[str, Row]
_SHOWN = 3


def check(history: History) -> list[str]:
    """What is wrong with it; nothing if all is well."""
    told = _Told(history)
    checks: Sequence[Callable[[_Told], Iterable[str]]] = (
        _acknowledged_are_there,
        _others_are_not,
        _follow_each_other,
        _nothing_to_do,
        _snapshots,
        _reads,
        _pulls,
        _feed,
    )
    found = [violation for each in checks for violation in each(told)]
    return [*found, *(f"left behind: {path}" for path in history.leftovers), *history.complaints]


class _Told:
    """A history, and the model of it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.ops = {op.id: op for op in history.ops}
        self.commits = sorted(history.commits)
        self.instants = [commit.instant for commit in self.commits]

    @cached_property
    def states(self) -> list[State]:
        """The rows before the first commit, and after each."""
        states: list[State] = [{}]
        for commit in self.commits:
            states.append(self.after(states[-1], commit))
        return states

    @cached_property
    def changes(self) -> dict[str, list[Change]]:
        """By instant, what each commit changed."""
        return {
            commit.instant: list(_changes(commit.instant, before, after))
            for commit, before, after in zip(self.commits, self.states, self.states[1:], strict=False)
        }

    def after(self, state: State, commit: Commit) -> State:
        op = self.ops.get(commit.op or "")
        if op is None:
            return state
        rows = dict(state)
        for key, value in op.rows.items():
            stored = rows.get(key)
            if op.kind is Kind.DELETE:
                rows.pop(key, None)
            elif stored is None or not self.history.by_ordering or value >= self.ops[stored.op].rows[key]:
                rows[key] = Row(key, op.id, commit.instant)
        return rows

    def as_of(self, instant: str | None) -> State:
        return self.states[sum(each <= (instant or "") for each in self.instants)]

    def seeing(self, visible: frozenset[str]) -> State:
        """The rows after just these commits."""
        prefix = next((n for n, each in enumerate(self.instants) if each not in visible), len(self.instants))
        state = self.states[prefix]
        for commit in self.commits[prefix:]:
            if commit.instant in visible:
                state = self.after(state, commit)
        return state

    def between(self, since: str | None, until: str | None) -> list[str]:
        return [each for each in self.instants if (since or "") < each <= (until or "")]


def _acknowledged_are_there(told: _Told) -> Iterator[str]:
    committed = {commit.instant: commit.op for commit in told.commits}
    for op in told.history.ops:
        if op.outcome is Outcome.OK and op.instant is not None and committed.get(op.instant) != op.id:
            yield f"acknowledged {op.id} is lost: {op.instant} is {committed.get(op.instant, 'not on the timeline')}"


def _others_are_not(told: _Told) -> Iterator[str]:
    counted = Counter(commit.op for commit in told.commits if commit.op is not None)
    for name, times in counted.items():
        op = told.ops.get(name)
        if op is None:
            yield f"{name} was committed and nobody asked for it"
        elif op.outcome is Outcome.FAILED:
            yield f"failed {name} is visible"
        if times > 1:
            yield f"{name} was committed {times} times"


def _follow_each_other(told: _Told) -> Iterator[str]:
    """A write that begins when another one was acknowledged comes after it."""
    committed = {commit.op: commit.instant for commit in told.commits}
    done = sorted((op.ended_s, op.instant, op.id) for op in told.history.ops if op.ended_s is not None and op.instant)
    newest, at = ("", ""), 0
    for op in sorted(told.history.ops, key=lambda op: op.began_s):
        while at < len(done) and done[at][0] < op.began_s:
            newest = max(newest, (done[at][1] or "", done[at][2]))
            at += 1
        instant = committed.get(op.id)
        if instant is not None and instant <= newest[0]:
            yield f"{op.id} at {instant} began when {newest[1]} at {newest[0]} was acknowledged"


def _nothing_to_do(told: _Told) -> Iterator[str]:
    """A delete that found nothing: there was a moment of its time at which none of its keys was stored."""
    for op in told.history.ops:
        if op.outcome is not Outcome.OK or op.instant is not None:
            continue
        if op.kind is Kind.UPSERT:
            yield f"acknowledged {op.id} wrote nothing"
            continue
        first, last = _moments(told, op)
        if all(op.rows.keys() & state.keys() for state in told.states[first : last + 1]):
            stored = sorted(op.rows.keys() & told.states[last].keys())
            yield f"{op.id} found nothing to delete, and {stored} were stored all the time"


def _moments(told: _Told, op: Op) -> tuple[int, int]:
    """The first and last of the states that it may have met."""
    first, last = 0, len(told.commits)
    for number, commit in enumerate(told.commits):
        other = told.ops.get(commit.op or "")
        if other is None:
            continue
        if other.ended_s is not None and other.ended_s < op.began_s:
            first = number + 1
        if op.ended_s is not None and other.began_s > op.ended_s:
            last = min(last, number)
    return first, max(first, last)


def _snapshots(told: _Told) -> Iterator[str]:
    for snapshot in told.history.snapshots:
        yield from _compared(told, f"as of {snapshot.instant}", snapshot.rows, told.as_of(snapshot.instant))


def _reads(told: _Told) -> Iterator[str]:
    before: frozenset[str] = frozenset()
    there = set(told.instants)
    committed = {commit.op: commit.instant for commit in told.commits}
    for read in sorted(told.history.reads, key=lambda read: read.began_s):
        what = f"the read of {len(read.visible)} commits at {read.began_s:.1f}"
        if gone := sorted(read.visible - there):
            yield f"{what} saw {gone[:_SHOWN]}, which are not on the timeline now"
        if gone := sorted(before - read.visible):
            yield f"{what} did not see {gone[:_SHOWN]}, which an earlier one had seen"
        before = read.visible
        for op in told.history.ops:
            seen = committed.get(op.id) in read.visible
            if not seen and op.instant and op.ended_s is not None and op.ended_s < read.began_s:
                yield f"{what} did not see {op.id}, which was acknowledged before"
            if seen and op.began_s > read.ended_s:
                yield f"{what} saw {op.id}, which began later"
        yield from _compared(told, what, read.rows, told.seeing(read.visible))


def _pulls(told: _Told) -> Iterator[str]:
    yield from _chained("pull", told.history.pulls)
    for pull in told.history.pulls:
        what = f"the pull of ({pull.since}, {pull.until}]"
        written = frozenset(told.between(pull.since, pull.until))
        expected = {key: row for key, row in told.as_of(pull.until).items() if row.commit in written}
        if told.history.pulls_late_rows:
            late = [row for row in pull.rows if row.key not in expected and _is_of(told, row, written)]
            expected |= {row.key: row for row in late}
        yield from _compared(told, what, pull.rows, expected)


def _is_of(told: _Told, row: Row, written: frozenset[str]) -> bool:
    op = told.ops.get(row.op)
    is_there = Commit(row.commit, row.op) in told.commits
    return op is not None and is_there and op.kind is Kind.UPSERT and row.key in op.rows and row.commit in written


def _feed(told: _Told) -> Iterator[str]:
    yield from _chained("change feed", told.history.feed)
    for pull in told.history.feed:
        what = f"the change feed of ({pull.since}, {pull.until}]"
        expected = Counter(
            change for instant in told.between(pull.since, pull.until) for change in told.changes[instant]
        )
        given = Counter(pull.changes)
        if more := given - expected:
            yield f"{what} has {_some(more.elements())}, which it must not have, or not so often"
        if missing := expected - given:
            yield f"{what} lacks {_some(missing.elements())}"
        instants = [change.instant for change in pull.changes]
        if instants != sorted(instants):
            yield f"{what} is not in the order of commits"


def _chained(what: str, pulls: Sequence[Pull]) -> Iterator[str]:
    reached: str | None = None
    for pull in pulls:
        if pull.since != reached:
            yield f"a {what} began after {pull.since}, and the one before had reached {reached}"
        if (pull.until or "") < (reached or ""):
            yield f"a {what} went back from {reached} to {pull.until}"
        reached = pull.until


def _compared(told: _Told, what: str, rows: Sequence[Row], expected: State) -> Iterator[str]:
    if twice := [key for key, times in Counter(row.key for row in rows).items() if times > 1]:
        yield f"{what}: keys stored twice: {_some(sorted(twice))}"
    given, wanted = set(rows), set(expected.values())
    failed = [row for row in given if row.op in told.ops and told.ops[row.op].outcome is Outcome.FAILED]
    if failed:
        yield f"{what}: rows of failed writes: {_some(sorted(failed))}"
    if more := given - wanted:
        yield f"{what}: rows that must not be there: {_some(sorted(more))}"
    if missing := wanted - given:
        yield f"{what}: rows that are lost: {_some(sorted(missing))}"


def _changes(instant: str, before: State, after: State) -> Iterator[Change]:
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old != new:
            what = "i" if old is None else "d" if new is None else "u"
            yield Change(instant, what, key, None if old is None else old.op, None if new is None else new.op)


def _some(items: Iterable[object]) -> str:
    listed = list(items)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(str(item) for item in listed[:_SHOWN]) + more
