"""Milliseconds that Apache Hudi 0.x called microseconds, through Spark: its own Parquet reader would take the label's word."""

from datetime import UTC

import pytest
from pyspark.sql.functions import col, lit

import hoodie
from tests.mislabelled import by_id, expected, mislabelled_table, moment_of
from tests.spark.conftest import arrow_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_spark_reads_and_writes_them_right(enabled, tmp_path, kind):
    path = tmp_path / "t"
    times = mislabelled_table(path, kind)

    def load(**options):
        frame = enabled.read.format("hoodie").options(**options).load(str(path))
        return frame.drop(*[name for name in frame.columns if name.startswith("_hoodie_")])

    assert by_id(arrow_of(load())) == expected()
    assert by_id(arrow_of(load().select("id", "at"))) == [{"id": row["id"], "at": row["at"]} for row in expected()]
    assert by_id(arrow_of(load(**{"as.of.instant": times[1]}))) == expected(updated=())[:9]
    moment = moment_of(1, 2).astimezone(UTC)
    assert [row.id for row in load().where(col("at") == lit(moment)).collect()] == [1]
    assert load().where("at < timestamp '1971-01-01 00:00:00Z'").count() == 0
    later = load().where("id in (3, 6)").withColumn("ts", lit(2).cast("long"))
    later.write.format("hoodie").mode("append").save(str(path))
    rows = [{**row, "ts": 2} if row["id"] in (3, 6) else row for row in expected()]
    assert by_id(arrow_of(load())) == rows
    assert by_id(hoodie.open_table(path).scan().to_arrow()) == rows
