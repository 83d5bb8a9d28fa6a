"""A services job on Spark: its thread gives the work to the executors of the session, beside the writer's own jobs."""

import pytest

import pyspark_hoodie
from hoodie.model.enums import Action
from pyspark_hoodie.engine import SparkEngine

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.table.services.enabled": "false",
}
SERVED = {"hoodie.compact.inline.max.delta.commits": "2", "hoodie.clean.commits.retained": "2"}


def rows(spark, turn):
    return spark.createDataFrame([(f"k{n}", "ab"[n % 2], turn) for n in range(4)], "id string, part string, fare int")


def test_the_executors_do_its_work_beside_a_writer(enabled, tmp_path):
    path = str(tmp_path / "t")
    rows(enabled, 0).write.format("hoodie").options(**OPTIONS).save(path)
    left = {name: OPTIONS[name] for name in OPTIONS if name.endswith("services.enabled")}
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path, left)
    engine = table._context.engine
    assert isinstance(engine, SparkEngine)
    with table.services(every_s=0.05, options=SERVED) as job:
        for turn in range(1, 6):
            table.upsert(rows(enabled, turn))
    done = [job.run_once(), *job.rounds]
    assert not [error for each in done for error in each.errors]
    assert any(run.service == "compaction" for each in done for run in each.did)
    assert table.timeline.compactions
    assert engine.jobs > 0
    assert {(row.id, row.fare) for row in table.read().collect()} == {(f"k{n}", 5) for n in range(4)}
    assert not table.timeline.pending(Action.COMPACTION)
    # The job's thread has its own description of jobs; the caller's is as it was.
    assert enabled.sparkContext.getLocalProperty("spark.job.description") is None
