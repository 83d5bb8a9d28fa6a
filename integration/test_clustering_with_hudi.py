"""Clusterings of ours and of Apache Hudi on one table: each runs the other one's plans, reads the result, and goes on writing."""

import pytest

import hoodie
from integration.tables import trips
from integration.turns import Turns

APART = {"hoodie.parquet.small.file.limit": "0"}
HUDI = {"hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": "6"}


def small_files(hudi, path, table_type):
    turns = Turns(hudi, path, table_type, more=APART)
    turns.create()
    for turn in range(4):
        turns.table.upsert(trips(range(8 * turn, 8 * turn + 8), fare=100 - turn, ts=10), APART)
    if table_type == "MERGE_ON_READ":
        turns.we_upsert(trips(range(2, 6), fare=7, ts=20))
        turns.we_delete(trips([1], fare=0, ts=30))
    turns.check("small files")
    return turns


def hudi_runs(turns, op, **more):
    given = ",".join(f"{name}={value}" for name, value in (HUDI | more).items())
    return turns.hudi.sql(
        f"call run_clustering(path => '{turns.path}', op => '{op}', order => 'fare', options => '{given}')"
    )


def goes_on(turns, step):
    """Each changes rows that were moved, and adds some."""
    turns.check(step)
    turns.hudi_upserts(trips([0, 3, 60], fare=41, ts=40))
    turns.we_upsert(trips([0, 4, 61], fare=42, ts=50))
    if turns.table_type == "MERGE_ON_READ":
        turns.we_compact()
    turns.hudi_deletes(trips([5], fare=0, ts=60))
    turns.we_delete(trips([6], fare=0, ts=70))


@pytest.mark.parametrize("layout", ["linear", "hilbert"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_we_clustered_apache_hudi_reads_and_writes_on(hudi, tmp_path, table_type, layout):
    turns = small_files(hudi, tmp_path / "trips", table_type)
    table = hoodie.open_table(turns.path)
    before = len(table.files())
    (result,) = table.cluster(sort_by=["fare", "id"], layout=layout)
    assert result.replaced == before
    goes_on(turns, "we cluster")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_our_plan_is_pending_to_apache_hudi_which_runs_it(hudi, tmp_path, table_type):
    turns = small_files(hudi, tmp_path / "trips", table_type)
    instant = hoodie.open_table(turns.path).schedule_clustering(sort_by="fare")
    turns.check("a plan of ours is pending")
    with pytest.raises(Exception, match=r"(?i)clustering"):
        turns.hudi.write(turns.path, turns.arrow(trips([3], fare=9, ts=40)), turns.options)
    hoodie.open_table(turns.path).rollback()
    assert [i.time for i in hoodie.open_table(turns.path).pending_clusterings()] == [instant]
    hudi_runs(turns, "execute")
    assert hoodie.open_table(turns.path).pending_clusterings() == ()
    assert (turns.path / ".hoodie" / f"{instant}.replacecommit").stat().st_size > 0
    goes_on(turns, "Hudi ran our plan")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_we_run_a_plan_of_apache_hudi(hudi, tmp_path, table_type):
    turns = small_files(hudi, tmp_path / "trips", table_type)
    hudi_runs(turns, "schedule")
    table = hoodie.open_table(turns.path)
    (pending,) = table.pending_clusterings()
    with pytest.raises(hoodie.CommitConflictError, match=f"clustering {pending.time} is going to move"):
        table.upsert(turns.arrow(trips([3], fare=9, ts=40)))
    (result,) = table.run_clustering()
    assert result.instant == pending.time
    goes_on(turns, "we ran Hudi's plan")


def test_what_apache_hudi_clustered_we_read_and_cluster_again(hudi, tmp_path):
    turns = small_files(hudi, tmp_path / "trips", "COPY_ON_WRITE")
    hudi_runs(turns, "scheduleAndExecute")
    turns.check("Hudi clusters")
    assert hoodie.open_table(turns.path).cluster(sort_by="id")
    goes_on(turns, "and we again")
