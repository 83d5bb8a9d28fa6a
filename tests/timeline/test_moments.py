"""A moment is a moment everywhere: what `as_of` takes, restores, savepoints, rollbacks and runs of plans take."""

from datetime import UTC, date, datetime, timedelta

import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import InstantNotFoundError, OptionError

FUTURE = datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture
def made(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ")
    results = [table.upsert({"id": ["a"], "n": [n]}) for n in range(4)]
    return table, results


def forms(table, result):
    """The same commit in every way; of those that are no instants the last commit before the moment."""
    (at,) = [i for i in table.timeline.commits if i.time == result.instant]
    again = next(each for each in table.history() if each.instant == result.instant)
    back = [i.time for i in table.timeline.commits].index(result.instant) - len(table.timeline.commits)
    exact = datetime.strptime(result.instant + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    return [result, again, at, result.instant, back, str(back), exact, exact.isoformat()]


def test_restores_savepoints_and_rollbacks_take_what_as_of_takes(made):
    table, results = made
    for form in forms(table, results[2]):
        assert table.scan(as_of=form).to_arrow()["n"].to_pylist() == [2]
        assert table.restore(form, dry_run=True).undone == (results[3].instant,)
        assert table.savepoint(form) == results[2].instant
        table.drop_savepoint(form if form not in (-2, "-2") else -1)  # its savepoints are counted
    saved = table.savepoint(results[1])
    (savepoint,) = table.savepoints()
    assert table.scan(as_of=savepoint).to_arrow()["n"].to_pylist() == [1]
    assert table.restore(savepoint, dry_run=True).restored_to == saved
    table.drop_savepoint("now")
    for form in (*forms(table, results[3]), FUTURE, date(2999, 1, 1), "now"):
        assert table.rollback(form, dry_run=True).undone == (results[3].instant,)
    assert table.changes(since=-2).to_arrow()["n"].to_pylist() == [3]
    assert table.changes(since=-3, until="-2").to_arrow()["n"].to_pylist() == [2]
    assert table.restore("now").restored_to in (None, results[3].instant)


def test_plans_are_run_by_any_form_of_their_instant(made):
    table, _ = made
    for form in (-1, FUTURE, None):
        planned = table.schedule_compaction()
        (result,) = table.run_compaction(planned if form is None else form)
        assert result.instant == planned
        table.upsert({"id": ["a"], "n": [9]})
    (plan,) = [table.schedule_compaction()]
    (pending,) = table.pending_compactions()
    assert table.run_compaction(pending)[0].instant == plan


def test_what_names_no_moment_is_refused_with_what_is_taken(made):
    table, results = made
    early = datetime(1990, 1, 1, tzinfo=UTC)
    for act in (table.restore, table.savepoint, table.rollback, table.drop_savepoint, table.run_compaction):
        with pytest.raises(
            OptionError, match="the result of a commit, an instant of `history\\(\\)`, a savepoint, or -1"
        ):
            act(1.5)
        with pytest.raises(OptionError, match="is not an instant, expected 17 or 14 digits"):
            act("next tuesday")
        with pytest.raises(
            InstantNotFoundError, match=r"instant=-99 counts back further than there are instants \(\d\)"
        ):
            act(-99)
        with pytest.raises(InstantNotFoundError, match="lies before every instant"):
            act(early)
    with pytest.raises(OptionError, match="is a NoneType"):
        table.restore(None)
    nothing = table.upsert(table.scan().to_arrow().slice(0, 0))
    with pytest.raises(OptionError, match="a write that had nothing to do"):
        table.restore(nothing)
    assert len(table.history()) == len(results)


@pytest.mark.parametrize("form", ["-1", "now", "2999-01-01"])
def test_commands_take_them_too(made, form, capsys):
    table, results = made
    assert main(["savepoint", table.uri, form]) == 0
    assert results[3].instant in capsys.readouterr().out
    assert main(["savepoint", table.uri, form, "--drop"]) == 0
    assert main(["restore", table.uri, form]) == 0
    assert main(["rollback", table.uri, form]) == 0
    assert results[3].instant in capsys.readouterr().out
    assert timedelta(0) < FUTURE - datetime.now(UTC)
