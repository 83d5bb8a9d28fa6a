"""The checker of the soak with many writers refuses what must not happen: else a soak without violations says nothing."""

from dataclasses import replace

import pytest

from integration.many_writers.checker import check
from integration.many_writers.history import Change, Commit, History, Kind, Op, Outcome, Pull, Read, Row, Snapshot
from integration.many_writers.journal import Journal, ops_of

A, B, C = "001", "002", "003"
A_ROWS = [Row("k", "a", A), Row("l", "a", A)]
B_ROWS = [Row("k", "b", B), Row("l", "a", A)]
C_ROWS = [Row("k", "b", B)]


def history(**changed):
    """Right: a writes k and l, b writes k, c deletes l; d failed, and nobody knows of e."""
    ops = [
        Op("a", Kind.UPSERT, {"k": 1, "l": 1}, 0, 1, Outcome.OK, A),
        Op("b", Kind.UPSERT, {"k": 2}, 2, 3, Outcome.OK, B),
        Op("c", Kind.DELETE, {"l": 3}, 2.5, 5, Outcome.OK, C),
        Op("d", Kind.UPSERT, {"m": 4}, 4, 5, Outcome.FAILED),
        Op("e", Kind.UPSERT, {"n": 4}, 4),
    ]
    right = History(
        by_ordering=False,
        pulls_late_rows=False,
        ops=ops,
        commits=[Commit(A, "a"), Commit(B, "b"), Commit(C, "c")],
        snapshots=[Snapshot(A, A_ROWS), Snapshot(B, B_ROWS), Snapshot(C, C_ROWS)],
        reads=[Read(1.5, 1.6, frozenset({A}), A_ROWS), Read(3.5, 3.6, frozenset({A, B}), B_ROWS)],
        pulls=[Pull(None, A, A_ROWS), Pull(A, C, C_ROWS)],
        feed=[
            Pull(None, A, changes=[Change(A, "i", "k", None, "a"), Change(A, "i", "l", None, "a")]),
            Pull(A, C, changes=[Change(B, "u", "k", "a", "b"), Change(C, "d", "l", "a", None)]),
        ],
    )
    return replace(right, **changed)


def test_a_right_history_is_right():
    assert check(history()) == []


def with_op(number, **changed):
    ops = list(history().ops)
    ops[number] = replace(ops[number], **changed)
    return history(ops=ops)


def with_snapshot(number, rows):
    snapshots = list(history().snapshots)
    snapshots[number] = Snapshot(snapshots[number].instant, rows)
    return history(snapshots=snapshots)


def with_feed(changes):
    return history(feed=[history().feed[0], Pull(A, C, changes=changes)])


WHOLE_FEED = history().feed[1].changes
REFUSED = {
    "a lost commit": (history(commits=[Commit(A, "a"), Commit(C, "c")]), "acknowledged b is lost"),
    "a commit of another op under the acknowledged instant": (
        history(commits=[Commit(A, "a"), Commit(B, "e"), Commit(C, "c")]),
        "acknowledged b is lost: 002 is e",
    ),
    "a lost row": (with_snapshot(1, B_ROWS[:1]), "as of 002: rows that are lost"),
    "a doubled row": (with_snapshot(1, [*B_ROWS, Row("k", "b", B)]), "as of 002: keys stored twice: k"),
    "two versions of a key": (with_snapshot(1, [*B_ROWS, Row("k", "a", A)]), "as of 002: keys stored twice: k"),
    "an update overwritten in silence": (with_snapshot(2, [Row("k", "a", A)]), "as of 003: rows that are lost"),
    "a deleted row that is back": (with_snapshot(2, B_ROWS), "as of 003: rows that must not be there"),
    "a row of a later commit": (with_snapshot(0, B_ROWS), "as of 001: rows that must not be there"),
    "a visible row of a failed write": (with_snapshot(2, [*C_ROWS, Row("m", "d", C)]), "rows of failed writes"),
    "a failed write that was committed": (
        history(commits=[*history().commits, Commit("004", "d")]),
        "failed d is visible",
    ),
    "an op committed twice": (history(commits=[*history().commits, Commit("004", "b")]), "b was committed 2 times"),
    "an op of nobody": (history(commits=[*history().commits, Commit("004", "x")]), "nobody asked for it"),
    "half of an op that nobody knows of": (
        history(commits=[*history().commits, Commit("004", "e")], snapshots=[Snapshot("004", C_ROWS)]),
        "as of 004: rows that are lost: Row(key='n'",
    ),
    "a commit before one that was acknowledged when it began": (with_op(2, began_s=0, ended_s=1), "began when"),
    "an upsert that wrote nothing": (with_op(1, instant=None), "acknowledged b wrote nothing"),
    "a delete that did not find what was there": (
        with_op(3, kind=Kind.DELETE, rows={"k": 0}, outcome=Outcome.OK),
        "d found nothing to delete",
    ),
    "a read without what was acknowledged before": (
        history(reads=[Read(3.5, 3.6, frozenset({A}), A_ROWS)]),
        "did not see b, which was acknowledged before",
    ),
    "a read of what began later": (
        history(reads=[Read(1.5, 1.6, frozenset({A, B}), B_ROWS)]),
        "saw b, which began later",
    ),
    "a read that goes back": (
        history(
            reads=[Read(2.6, 2.7, frozenset({A, B}), B_ROWS), Read(2.8, 2.9, frozenset({A}), A_ROWS)],
        ),
        "did not see ['002'], which an earlier one had seen",
    ),
    "a read of an instant that is gone": (
        history(reads=[Read(3.5, 3.6, frozenset({A, B, "0025"}), B_ROWS)]),
        "saw ['0025'], which are not on the timeline now",
    ),
    "a read of rows that no commits explain": (
        history(reads=[Read(3.5, 3.6, frozenset({A, B}), A_ROWS)]),
        "rows that are lost",
    ),
    "a pull without a row": (history(pulls=[Pull(None, A, A_ROWS), Pull(A, C)]), "(001, 003]: rows that are lost"),
    "a pull with a row of before": (
        history(pulls=[Pull(None, A, A_ROWS), Pull(A, C, [*C_ROWS, A_ROWS[1]])]),
        "(001, 003]: rows that must not be there",
    ),
    "pulls with a gap": (history(pulls=[Pull(None, A, A_ROWS), Pull(B, C)]), "a pull began after 002"),
    "pulls that miss a commit which was late": (
        history(pulls=[Pull(None, B, [A_ROWS[1]]), Pull(B, C)]),
        "(None, 002]: rows that are lost",
    ),
    "a feed with a change twice": (with_feed([*WHOLE_FEED, WHOLE_FEED[1]]), "must not have, or not so often"),
    "a feed that sees a change again later": (
        history(feed=[*history().feed, Pull(C, C, changes=[WHOLE_FEED[1]])]),
        "must not have, or not so often",
    ),
    "a feed without a change": (with_feed(WHOLE_FEED[:1]), "lacks Change(instant='003'"),
    "a feed out of order": (with_feed(list(reversed(WHOLE_FEED))), "not in the order of commits"),
    "a feed with another row of before": (
        with_feed([WHOLE_FEED[0]._replace(before="x"), WHOLE_FEED[1]]),
        "lacks Change(instant='002'",
    ),
    "a file that stays": (history(leftovers=[".hoodie/.temp/001/x"]), "left behind: .hoodie/.temp/001/x"),
    "an error of a reader": (history(complaints=["MissingFileError"]), "MissingFileError"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_a_wrong_history_is_refused(what):
    wrong, said = REFUSED[what]
    assert any(said in violation for violation in check(wrong)), check(wrong)


def ordered(snapshot, *, pulls_late_rows=False, pulled=()):
    """k gets the greater ordering value first."""
    ops = [
        Op("a", Kind.UPSERT, {"k": 9}, 0, 1, Outcome.OK, A),
        Op("b", Kind.UPSERT, {"k": 5}, 2, 3, Outcome.OK, B),
    ]
    return History(
        by_ordering=True,
        pulls_late_rows=pulls_late_rows,
        ops=ops,
        commits=[Commit(A, "a"), Commit(B, "b")],
        snapshots=[Snapshot(B, snapshot)],
        pulls=[Pull(None, A, [Row("k", "a", A)]), Pull(A, B, pulled)],
    )


def test_the_greater_ordering_value_wins():
    assert check(ordered([Row("k", "a", A)])) == []
    assert check(ordered([Row("k", "b", B)])) != []


def test_only_merge_on_read_pulls_a_row_that_lost():
    late = [Row("k", "b", B)]
    assert check(ordered([Row("k", "a", A)], pulls_late_rows=True, pulled=late)) == []
    assert check(ordered([Row("k", "a", A)], pulled=late)) != []
    assert check(ordered([Row("k", "a", A)], pulls_late_rows=True, pulled=[Row("k", "a", A)])) != []


def test_a_write_of_unknown_end_may_be_there_whole_or_not_at_all():
    rows = [*C_ROWS, Row("n", "e", "004")]
    there = history(commits=[*history().commits, Commit("004", "e")], snapshots=[Snapshot("004", rows)])
    assert check(there) == []


def test_a_journal_of_a_writer_that_was_killed_ends_with_an_unknown_op(tmp_path):
    path = tmp_path / "writer.jsonl"
    journal = Journal(path)
    journal.note("began", op="a", kind=Kind.UPSERT, rows={"k": 1})
    journal.note(Outcome.OK, instant=A)
    journal.note("began", op="b", kind=Kind.DELETE, rows={"k": 0})
    path.write_bytes(path.read_bytes() + b'{"what": "o')
    first, second = ops_of(path)
    assert (first.id, first.outcome, first.instant, first.ended_s is None) == ("a", Outcome.OK, A, False)
    assert (second.id, second.kind, second.outcome, second.ended_s) == ("b", Kind.DELETE, Outcome.UNKNOWN, None)
