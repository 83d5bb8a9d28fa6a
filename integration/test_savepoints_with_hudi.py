"""Savepoints and restores of ours and of Apache Hudi on one table: each reads, restores to and drops the other's, and writes on."""

import pytest

import hoodie
from hoodie.errors import InstantNotFoundError
from hoodie.model.enums import Action
from integration.tables import trips
from integration.turns import Turns

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture
def saving(hudi):
    """Apache Hudi, whose procedures leave a table at its version and make no metadata table."""
    hudi.sql("set hoodie.write.auto.upgrade=false")
    hudi.sql("set hoodie.metadata.enable=false")
    yield hudi
    hudi.sql("reset hoodie.write.auto.upgrade")
    hudi.sql("reset hoodie.metadata.enable")


def call(hudi, procedure, path, instant=None, argument="instant_time"):
    given = f", {argument} => '{instant}'" if instant else ""
    return hudi.sql(f"call {procedure}(path => '{path}'{given})").table


def savepoints_by_hudi(hudi, path):
    return sorted(row["savepoint_time"] for row in call(hudi, "show_savepoints", path).to_pylist())


@pytest.mark.parametrize("table_type", TYPES)
def test_hudi_restores_to_a_savepoint_of_ours_and_drops_it(saving, tmp_path, table_type):
    turns = Turns(saving, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(12), fare=0, ts=1))
    turns.we_upsert(trips(range(6), fare=1, ts=2))
    saved = hoodie.open_table(turns.path).savepoint(comment="ours")
    kept = dict(turns.table._rows)
    assert savepoints_by_hudi(saving, turns.path) == [saved]
    turns.we_upsert(trips(range(8), fare=2, ts=3))
    turns.we_compact()
    turns.we_upsert(trips(range(10, 20), fare=3, ts=4))
    gone = hoodie.open_table(turns.path).timeline.commits[-1].time
    call(saving, "rollback_to_savepoint", turns.path, saved)
    turns.table._rows = kept
    turns.check("Hudi restored to our savepoint")
    with pytest.raises(InstantNotFoundError, match=f"took the table back to {saved}"):
        hoodie.open_table(turns.path).changes(since=gone)
    turns.we_upsert(trips(range(4, 14), fare=5, ts=6))
    call(saving, "delete_savepoint", turns.path, saved)
    table = hoodie.open_table(turns.path)
    assert table.savepoints() == []
    turns.hudi_upserts(trips(range(3), fare=6, ts=7))
    turns.we_upsert(trips(range(2), fare=7, ts=8))
    turns.we_compact()


@pytest.mark.parametrize("table_type", TYPES)
def test_we_restore_to_a_savepoint_of_hudi_and_drop_it(saving, tmp_path, table_type):
    turns = Turns(saving, tmp_path / "trips", table_type)
    turns.create_by_hudi(trips(range(12), fare=0, ts=1))
    turns.hudi_upserts(trips(range(6), fare=1, ts=2))
    saved = hoodie.open_table(turns.path).timeline.commits[-1].time
    call(saving, "create_savepoint", turns.path, saved, "commit_time")
    kept = dict(turns.table._rows)
    (found,) = hoodie.open_table(turns.path).savepoints()
    assert (found.instant, found.files > 0) == (saved, True)
    turns.hudi_upserts(trips(range(8), fare=2, ts=3))
    if table_type == "MERGE_ON_READ":
        often = {"hoodie.write.auto.upgrade": "false", "hoodie.compact.inline.max.delta.commits": "1"}
        saving.run_compaction(turns.path, op="scheduleAndExecute", options=often)
        turns.check("Hudi compacted")
    turns.we_upsert(trips(range(2, 9), fare=3, ts=4))
    turns.hudi_upserts(trips(range(10, 20), fare=3, ts=5))
    result = hoodie.open_table(turns.path).restore(saved)
    assert result.files > 0
    turns.table._rows = kept
    turns.check("we restored to Hudi's savepoint")
    turns.hudi_upserts(trips(range(4, 14), fare=5, ts=6))
    assert savepoints_by_hudi(saving, turns.path) == [saved]
    hoodie.open_table(turns.path).drop_savepoint(saved)
    assert savepoints_by_hudi(saving, turns.path) == []
    turns.we_upsert(trips(range(3), fare=6, ts=7))
    if table_type == "COPY_ON_WRITE":
        turns.hudi_upserts_and_cleans_up(trips(range(2), fare=7, ts=8))
    turns.hudi_upserts(trips(range(2), fare=7, ts=8))
    turns.we_upsert(trips(range(2), fare=8, ts=9))


@pytest.mark.parametrize("table_type", TYPES)
def test_after_the_rollback_of_a_commit_either_goes_on(saving, tmp_path, table_type):
    turns = Turns(saving, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(12), fare=0, ts=1))
    for writer in (turns.we_upsert, turns.hudi_upserts):
        kept = dict(turns.table._rows)
        writer(trips(range(6, 16), fare=1, ts=2))
        table = hoodie.open_table(turns.path)
        newest = table.timeline.commits[-1].time
        assert table.rollback(newest) == [newest]
        turns.table._rows = kept
        turns.check("we rolled the newest commit back")
        turns.hudi_upserts(trips(range(2), fare=3, ts=4))
        turns.we_upsert(trips(range(1, 3), fare=4, ts=5))
        turns.we_compact()
    assert [i for i in hoodie.open_table(turns.path).timeline if i.action is Action.ROLLBACK]
