"""Table services on Spark: the executors do the work, and the answers are those of the embedded engine."""

from pathlib import Path

import pytest

import hoodie
import pyspark_hoodie
from hoodie.errors import InstantNotFoundError
from hoodie.storage.local import LocalStorage
from tests.memory_tables import leftovers, stray_files

pytestmark = pytest.mark.spark
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


@pytest.fixture
def table(spark, tmp_path):
    pyspark_hoodie.enable(spark)
    path = str(tmp_path / "t")
    rows = spark.range(400).selectExpr("id", "id % 2 part", "1 ts", "(id * 37) % 400 v")
    for low in range(0, 400, 100):
        batch = rows.where(f"id >= {low} and id < {low + 100}")
        batch.write.format("hoodie").options(**OPTIONS, **{"hoodie.parquet.small.file.limit": "0"}).mode("append").save(
            path
        )
    yield pyspark_hoodie.HoodieTable.for_path(spark, path)
    pyspark_hoodie.disable()


def answer(table):
    return table.read().selectExpr("count(*)", "sum(v)", "sum(id * v)").first()


def test_executors_cluster_and_a_filter_opens_fewer_files(table):
    before = answer(table)
    opened = hoodie.open_table(table.uri).scan(where="v < 10").plan.pruning.after_statistics
    (result,) = table.cluster(sort_by=["v"], target_file_mb=0.004)
    assert result.engine == "spark"
    assert answer(table) == before
    assert hoodie.open_table(table.uri).scan(where="v < 10").plan.pruning.after_statistics < opened
    assert table.read(where="v < 10").count() == 10


def test_executors_compact_logs_and_spark_reads_the_rows_from_a_copy_of_one_log(spark, table):
    for ts in range(2, 8):
        rows = spark.range(0, 400, 7).selectExpr("id", "id % 2 part", f"{ts} ts", f"id + {ts} v")
        rows.write.format("hoodie").mode("append").save(table.uri)
    before, changes = answer(table), table.changes(since=table.timeline.commits[5].time).count()
    (result,) = table.compact_logs()
    assert table.timeline.log_compactions == {result.instant}
    assert answer(table) == before
    assert table.changes(since=table.timeline.commits[5].time).count() == changes
    assert table.read(where="v < 10").count() == hoodie.open_table(table.uri).scan(where="v < 10").to_arrow().num_rows
    table.compact()
    assert answer(table) == before


def test_a_restore_takes_back_what_spark_wrote_and_pulls_say_so(spark, table):
    before = answer(table)
    saved = table.savepoint(comment="before")
    spark.range(100).selectExpr("id", "id % 2 part", "2 ts", "-1 v").write.format("hoodie").mode("append").save(
        table.uri
    )
    gone = table.timeline.latest_commit.time
    assert answer(table) != before
    assert table.restore(saved, dry_run=True).undone == (gone,)
    assert answer(table) != before
    table.restore(saved)
    assert answer(table) == before
    spark.range(1).selectExpr("id", "id % 2 part", "3 ts", "7 v").write.format("hoodie").mode("append").save(table.uri)
    with pytest.raises(InstantNotFoundError, match=r"is not on the timeline .* any more"):
        table.changes(since=gone)
    assert [each.instant for each in table.savepoints()] == [saved]
    assert table.validate(deep=True)
    assert table.doctor().is_healthy


def test_indexes_are_built_and_kept_up_by_writes_of_spark(spark, table):
    assert table.build_index("record_index")
    spark.range(5, 20).selectExpr("id", "id % 2 part", "9 ts", "8 v").write.format("hoodie").mode("append").save(
        table.uri
    )
    states = {each.name: each.state for each in table.indexes()}
    assert states["record_index"] == "ready"
    assert table.index("record_index").check()
    assert table.drop_index("record_index")
    assert not table.drop_index("record_index")


@pytest.mark.parametrize("service", ["clustering", "compaction"])
def test_a_plan_of_many_tasks_of_which_one_fails_leaves_the_table_as_it_was_and_is_run_again(table, service):
    """The other tasks have written their files by then."""
    embedded = hoodie.open_table(table.uri)
    if service == "clustering":
        each_by_itself = {"hoodie.clustering.plan.strategy.max.bytes.per.group": "1"}
        instant = table.schedule_clustering(sort_by=["v"], options=each_by_itself)
        run = table.run_clustering
    else:
        embedded.upsert([{"id": n, "part": n % 2, "ts": 2, "v": 7} for n in range(400)])
        instant = table.schedule_compaction()
        run = table.run_compaction
    before = answer(table)
    groups = embedded.files()
    assert len(groups) == 8
    base = Path(table.uri) / groups[-1].base.path
    content = base.read_bytes()
    base.write_bytes(content[:-20])
    with pytest.raises(Exception, match=base.name):
        run()
    base.write_bytes(content)
    assert answer(table) == before
    storage = LocalStorage(table.uri)
    embedded.upsert([{"id": 1000, "part": 5, "ts": 1, "v": 0}])  # whoever comes next takes the claim back
    assert leftovers(storage) == []
    pending = hoodie.open_table(table.uri).timeline.pending()
    if service == "clustering":  # its plan went with the failure, and the next one takes the new file, too
        assert not pending
        instant = table.schedule_clustering(sort_by=["v"], options=each_by_itself)
    else:
        assert [(each.time, each.state) for each in pending] == [(instant, "requested")]
    (result,) = run()
    assert (result.instant, result.files) == (instant, 9 if service == "clustering" else 8)
    assert answer(table)[1:] == before[1:]
    assert not table.timeline.pending()
    assert leftovers(storage) == []
    assert stray_files(storage, hoodie.open_table(table.uri)) == []
