"""Tables on which Apache Hudi's own services were at work: what they left is read, finished where it is pending, and gone on from."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.format.restore_plans import decode_restore_plan
from hoodie.model.enums import Action, WriteOperation
from tests.golden_tables import copy_golden
from tests.rows import rows_of, without

KEEP_ALL = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
NAMES = [
    "v6_pending_clean",
    "v6_mor_clustered",
    "v6_mor_pending_clustering",
    "v6_mor_restored",
    "v6_mor_archived",
    "v6_expired",
]
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")


@pytest.fixture
def opened(tmp_path):
    def open_golden(name):
        golden = copy_golden(name, tmp_path)
        return hoodie.open_table(golden.path, options=KEEP_ALL), golden

    return open_golden


def data_files(path):
    return {
        str(f.relative_to(path))
        for f in path.rglob("*")
        if f.is_file() and ".hoodie" not in f.parts and not f.name.startswith(".hoodie")
    }


def snapshot(golden):
    return rows_of(hoodie.open_table(golden.path).scan(meta_columns=True).to_arrow())


def changed(rows, ids, *, qty, ts):
    """These rows of a snapshot with other values, as a batch to upsert."""
    bare = [{k: v for k, v in row.items() if not k.startswith("_hoodie")} for row in rows if row["id"] in ids]
    return [row | {"qty": qty, "ts": ts} for row in bare]


def upsert(table, rows):
    schema = table.scan().schema
    return table.upsert(pa.Table.from_pylist(rows, schema))


def after(rows, news):
    news = {(row["part"], row["id"]): row for row in news}
    return [row | news.get((row["part"], row["id"]), {}) for row in rows]


def test_each_shows_the_services_that_it_is_there_for(opened):
    def actions(name):
        table, _ = opened(name)
        return {(i.action, i.is_completed) for i in table.timeline}

    assert {(Action.CLEAN, True), (Action.CLEAN, False)} <= actions("v6_pending_clean")
    assert {(Action.CLEAN, True), (Action.REPLACECOMMIT, True)} <= actions("v6_mor_clustered")
    assert (Action.CLUSTERING, False) in actions("v6_mor_pending_clustering")
    assert {(Action.SAVEPOINT, True), (Action.RESTORE, True)} <= actions("v6_mor_restored")
    assert (Action.CLEAN, True) in actions("v6_mor_archived")
    assert (Action.REPLACECOMMIT, True) in actions("v6_expired")


@pytest.mark.parametrize("name", NAMES)
def test_its_history_has_each_completed_commit_and_its_files_are_those_that_commits_name(opened, name):
    table, golden = opened(name)
    done = [n[:17] for n in golden.expected["timeline"] if n[18:] in {"commit", "deltacommit", "replacecommit"}]
    assert [each.instant for each in table.history()] == done
    archived = [each.instant for each in table.history(archived=True)]
    assert archived[-len(done) :] == done
    assert (len(archived) > len(done)) is (name == "v6_mor_archived")
    assert table.validate(deep=True).is_valid


@pytest.mark.parametrize("name", NAMES)
def test_all_our_services_go_on_and_no_row_changes_but_those_that_are_written(opened, name):
    table, golden = opened(name)
    rows = golden.expected["snapshot"]
    table.run_clustering()  # nothing may be changed in the files of a plan
    table.clean()
    for saved in table.savepoints():
        table.drop_savepoint(saved.instant)
    assert without(snapshot(golden), *META) == without(rows, *META)
    news = changed(rows, {row["id"] for row in rows[::3]}, qty=7, ts=9000)
    upsert(table, news)
    expected = without(after(rows, news), *META)
    before = data_files(golden.path)
    for act in (
        lambda: table.config.table_type == "MERGE_ON_READ" and table.compact(),
        lambda: table.cluster(sort_by=["qty"]),
        lambda: [upsert(table, news) for _ in range(2)],
        lambda: table.clean(retain_commits=1),
        lambda: table.archive(min_commits=2, max_commits=3),
        lambda: table.repair(dry_run=False, older_than_s=0),
    ):
        act()
        assert without(snapshot(golden), *META) == expected
        assert not table.timeline.pending()
    assert before - data_files(golden.path)
    assert table.validate(deep=True).is_valid
    assert [each.instant for each in table.history(archived=True)][-1] == table.timeline.latest_commit.time


def test_a_clean_that_was_only_planned_is_carried_out_as_planned(opened):
    table, golden = opened("v6_pending_clean")
    (pending,) = table.timeline.pending(Action.CLEAN)
    plan = table._context.active.read_clean_plan(pending.time)
    doomed = {f"{partition}/{name}" for partition, names in plan.files.items() for name in names}
    before = data_files(golden.path)
    assert doomed
    assert doomed <= before
    assert rows_of(table.scan(as_of=golden.expected["time_travel"][-1]["as_of"], meta_columns=True).to_arrow())
    result = table.clean(retain_commits=100)
    assert (result.instant, result.files) == (pending.time, len(doomed))
    assert data_files(golden.path) == before - doomed
    assert snapshot(golden) == golden.expected["snapshot"]


def test_the_files_that_a_clustering_replaced_were_cleaned_and_earlier_moments_say_so(opened):
    table, golden = opened("v6_mor_clustered")
    gone = [entry["as_of"] for entry in golden.expected["time_travel"] if "error" in entry]
    assert gone
    for moment in gone:
        with pytest.raises(InstantNotFoundError, match="cleaned"):
            table.scan(as_of=moment).to_arrow()


def test_a_clustering_that_was_only_planned_refuses_writes_until_it_is_run_or_dropped(opened):
    for act in ("run", "drop"):
        table, golden = opened("v6_mor_pending_clustering")
        (pending,) = table.pending_clusterings()
        rows = golden.expected["snapshot"]
        news = changed(rows, {rows[0]["id"]}, qty=7, ts=9000)
        with pytest.raises(CommitConflictError, match=f"clustering {pending.time} is going to move"):
            upsert(table, news)
        if act == "run":
            (result,) = table.run_clustering()
            assert (result.instant, result.replaced > 1) == (pending.time, True)
        else:
            table.rollback(pending.time)
        assert without(snapshot(golden), *META) == without(rows, *META)
        # Rows keep their commit times, so who pulled before sees them once.
        assert [row["_hoodie_commit_time"] for row in snapshot(golden)] == [r["_hoodie_commit_time"] for r in rows]
        upsert(table, news)
        assert without(snapshot(golden), *META) == without(after(rows, news), *META)
        golden.path.rename(golden.path.with_name(act))


def test_who_read_what_apache_hudi_restored_over_is_told_and_its_savepoint_is_restored_to_again(opened):
    table, golden = opened("v6_mor_restored")
    (saved,) = table.savepoints()
    (restore,) = (i for i in table.timeline if i.action is Action.RESTORE)
    path = golden.path / ".hoodie" / f"{restore.time}.restore.requested"
    undone = decode_restore_plan(path.read_bytes(), path="r").instants
    assert {action for _, action in undone} >= {Action.DELTACOMMIT, Action.COMMIT, Action.REPLACECOMMIT}
    for time, _ in undone:
        with pytest.raises(InstantNotFoundError, match=f"took the table back to {saved.instant}"):
            table.changes(since=time).to_arrow()
    then = rows_of(table.scan(as_of=saved.instant, meta_columns=True).to_arrow())
    assert then != golden.expected["snapshot"]
    rows = golden.expected["snapshot"]
    upsert(table, changed(rows, {row["id"] for row in rows[::2]}, qty=8, ts=9000))
    table.compact()
    table.clean(retain_commits=1)
    assert table.restore(saved.instant).undone
    assert snapshot(golden) == then
    table.drop_savepoint(saved.instant)
    assert table.savepoints() == []
    assert snapshot(golden) == then


def test_the_archive_of_apache_hudi_is_gone_on_with(opened):
    table, golden = opened("v6_mor_archived")
    history = [each.instant for each in table.history(archived=True)]
    rows = golden.expected["snapshot"]
    for turn in range(6):
        upsert(table, changed(rows, {rows[turn]["id"]}, qty=turn, ts=9000 + turn))
    table.compact()
    left = table.archive({"hoodie.compact.inline.max.delta.commits": "2"}, min_commits=2, max_commits=3)
    assert set(left.instants) & set(history)
    found = [each.instant for each in hoodie.open_table(golden.path).history(archived=True)]
    assert found[: len(history)] == history
    assert len(found) == len(history) + 7
    assert hoodie.open_table(golden.path).scan().count() == len(rows)


def test_partitions_that_apache_hudi_expired_are_those_that_we_would_have_expired(opened, tmp_path):
    table, golden = opened("v6_expired")
    (expired,) = (i.time for i in table.timeline if i.action is Action.REPLACECOMMIT)
    assert {row["part"] for row in golden.expected["snapshot"]} == {"old", "changed", "new"}
    # As the table was before that commit.
    for file in golden.path.rglob("*"):
        if file.is_file() and any(t in file.name for t in [expired, table.timeline.latest_commit.time]):
            file.unlink()
    before = hoodie.open_table(golden.path, options=KEEP_ALL)
    assert {row["part"] for row in rows_of(before.scan().to_arrow())} == {"old", "untouched", "changed", "new"}
    written = datetime.strptime(expired[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    assert before.expire_partitions(days=5 + (datetime.now(UTC) - written).days).partitions == ("old", "untouched")
    assert {row["part"] for row in rows_of(before.scan().to_arrow())} == {"changed", "new"}


@pytest.mark.parametrize(
    ("name", "operation"),
    [("v6_mor_clustered", WriteOperation.CLUSTER), ("v6_mor_compacted", WriteOperation.COMPACT)],
)
def test_what_only_moves_rows_says_of_none_that_it_was_changed(opened, name, operation):
    table, _ = opened(name)
    (found,) = (each for each in table.history() if each.operation is operation)
    assert (found.inserted, found.updated, found.deleted) == (0, 0, 0)
    assert found.files > 0
    (ours,) = table.cluster() if operation is WriteOperation.CLUSTER else table.compact()
    assert (ours.inserted, ours.updated, ours.deleted) == (0, 0, 0)
    assert ours.files > 0
