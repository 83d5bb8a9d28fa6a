"""After rows left base files of ours, Apache Hudi tags by the footers of the rows that stay, and reads the timeline."""

import pytest

import hoodie
from integration.tables import trips
from integration.turns import ARCHIVE_NOW, COMPACT_NOW, Turns
from tests.held_texts import holding

BLOOM = {
    "hoodie.index.type": "BLOOM",
    "hoodie.bloom.index.use.metadata": "false",
    "hoodie.bloom.index.prune.by.ranges": "true",
    "hoodie.bloom.index.filter.on.read": "true",
}
GONE, STAY, NEW = (0, 1, 4, 10, 11), (2, 3, 6), (100, 101)
"""Rows of twelve: the least, the greatest and one between of each city; some that stay; some that never were."""


def hudi_tags_by_bloom(turns, *, ts):
    """Hudi upserts keys that stay, keys that left, and new ones."""
    turns.hudi_upserts(trips([*STAY, *GONE, *NEW], fare=50, ts=ts))
    newest = hoodie.open_table(turns.path).history()[-1]
    assert (newest.updated, newest.inserted) == (len(STAY), len(GONE) + len(NEW))


def filled(hudi, path, table_type):
    turns = Turns(hudi, path, table_type, more=BLOOM)
    turns.create()
    for turn in range(3):
        turns.table.upsert(trips(range(12), fare=turn, ts=10 + turn, note=f"turn {turn}"))
    return turns


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_with_a_table_that_rows_were_erased_from(hudi, tmp_path, table_type):
    turns = filled(hudi, tmp_path / "trips", table_type)
    gone = trips(GONE, fare=0, ts=0)
    texts = [row["id"] for row in gone]
    before = [each.instant for each in turns.table.table.history()]
    assert turns.table.table.erase(texts)
    turns.table.remove(gone)
    assert holding(turns.path, *texts) == []
    turns.check("we erased")
    (active, *_) = [each.instant for each in hoodie.open_table(turns.path).history()]
    name = f"erased_{table_type.lower()}"
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{turns.path}'")
    always = "limit => 100, start_ts => '20000101000000000', end_ts => '29990101000000000'"
    for procedure in ("show_archived_commits", "show_archived_commits_metadata"):
        listed = hudi.sql(f"CALL {procedure}(table => '{name}', {always})").rows
        assert {row["commit_time"] for row in listed} == {each for each in before if each < active}, procedure
    hudi_tags_by_bloom(turns, ts=20)
    turns.we_upsert(trips([*STAY, *GONE, *NEW], fare=60, ts=30))
    services = ARCHIVE_NOW | (COMPACT_NOW if table_type == "MERGE_ON_READ" else {})
    for turn in range(4):
        rows = trips(range(3), fare=turn, ts=40 + turn)
        hudi.write(turns.path, turns.arrow(rows), turns.options | services)
        turns.table.merge(rows)
    turns.check("Hudi archived")
    told = hoodie.open_table(turns.path).history(archived=True)
    assert before[0] in [each.instant for each in told]
    assert len(told) > len(hoodie.open_table(turns.path).history())
    # It copied commits of ours with their bounds of columns, and the result says so.
    done = hoodie.open_table(turns.path).erase(texts)
    turns.table.remove(gone)
    turns.check("we erased what Hudi wrote")
    assert done.remaining
    assert all("archived commit" in each and "Apache Hudi" in each for each in done.remaining), done
    assert {path.rpartition("/")[0] for path in holding(turns.path, *texts)} == {".hoodie/history"}


@pytest.mark.parametrize(
    ("table_type", "rewrite"),
    [
        ("COPY_ON_WRITE", "delete"),
        ("COPY_ON_WRITE", "cluster"),
        ("MERGE_ON_READ", "compact"),
        ("MERGE_ON_READ", "cluster"),
    ],
)
def test_hudi_tags_by_the_footers_of_files_that_rows_left(hudi, tmp_path, table_type, rewrite):
    turns = filled(hudi, tmp_path / "trips", table_type)
    gone = trips(GONE, fare=0, ts=20)
    if rewrite == "delete":  # half of them by a mark in an upsert
        turns.table.delete(gone[:2])
        turns.table.upsert(trips(GONE[2:], fare=0, ts=20, deleted=True))
    else:
        turns.table.delete(gone)
    if rewrite == "compact":
        assert turns.table.table.compact(strategy="unbounded")
    if rewrite == "cluster":
        assert turns.table.table.cluster(sort_by="fare")
    turns.check(rewrite)
    hudi_tags_by_bloom(turns, ts=30)
    turns.we_upsert(trips([*STAY, *GONE, *NEW], fare=60, ts=40))
