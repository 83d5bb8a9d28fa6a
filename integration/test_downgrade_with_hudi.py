"""A table of version 9 or 8 that both wrote is downgraded by us: Apache Hudi 1.2 and hudi-rs read it, and Hudi writes on."""

import pytest

import hoodie
from integration.tables import trips
from integration.turns import HUDI_DEFAULTS, Turns, from_the_archive
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import soak_but


@pytest.mark.parametrize(
    ("table_type", "version", "to"),
    soak_but(
        [("COPY_ON_WRITE", 9, 6), ("MERGE_ON_READ", 9, 6)],
        [("COPY_ON_WRITE", 9, 6), ("MERGE_ON_READ", 9, 6), ("MERGE_ON_READ", 8, 6), ("MERGE_ON_READ", 9, 8)],
    ),
)
def test_both_go_on_with_a_table_that_we_downgraded(hudi, tmp_path, table_type, version, to):
    turns = Turns(
        hudi, tmp_path / "trips", table_type, more=HUDI_DEFAULTS | {"hoodie.write.table.version": str(version)}
    )
    turns.create()
    for turn in range(6):
        turns.we_upsert(trips([*range(8), 20 + turn], fare=turn, ts=10 + turn))
        if turn == 2:
            turns.we_compact()
    turns.hudi_upserts(trips([1, 3, 30], fare=3, ts=30))
    turns.hudi_deletes(trips([2], fare=0, ts=40))
    table = turns.table.table
    table.cluster(sort_by=["fare"])
    turns.we_upsert(trips([5, 31], fare=4, ts=45))
    for turn in range(10):  # the metadata table is compacted: it holds commits back till then
        turns.table.upsert(trips([5, 31], fare=4 + turn, ts=46 + turn))
    assert table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=4).instants
    history = [r.instant for r in hoodie.open_table(turns.path).history(archived=True)]
    shown = table.downgrade(to, dry_run=True)
    done = table.downgrade(to)
    assert (shown.after, done.after, bool(done.archived)) == (to, to, to == 6)
    turns.table.table = hoodie.open_table(turns.path)
    turns.options |= {"hoodie.write.table.version": str(to), "hoodie.write.auto.upgrade": "false"}
    turns.followers = None
    turns.check("our downgrade")
    assert f"hoodie.table.version={to}" in turns.properties()
    told = [r.instant for r in turns.table.table.history(archived=True)]
    assert [time for time in told if time in history] == history
    if table_type == "COPY_ON_WRITE":
        assert differences(turns.path, ours, by_hudi(hudi), skip=from_the_archive) == []
        assert differences(turns.path, ours, by_rust, skip=from_the_archive) == []
    if to == 6:
        name = f"downgraded_{table_type.lower()}_{version}"
        hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{turns.path}'")
        always = "start_ts => '20000101000000000', end_ts => '29990101000000000'"
        listed = hudi.sql(f"CALL show_archived_commits(table => '{name}', limit => 100, {always})").rows
        there = {i.time for i in turns.table.table.timeline}
        assert {row["commit_time"] for row in listed} == {time for time in told if time not in there}
    turns.hudi_upserts(trips([4, 31], fare=5, ts=60))
    turns.we_upsert(trips([4, 32], fare=6, ts=70))
    turns.we_compact()
    turns.hudi_upserts(trips([5, 33], fare=7, ts=80))
    assert by_hudi(hudi)(turns.path, View()) == by_rust(turns.path, View())
    assert f"hoodie.table.version={to}" in turns.properties()
