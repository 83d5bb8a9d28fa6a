"""Named consumers on Spark: the same names and places as in Python, with DataFrames."""

import pytest

import hoodie
import pyspark_hoodie
from hoodie.errors import CommitConflictError

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark, tmp_path):
    pyspark_hoodie.enable(spark)
    path = tmp_path / "t"
    hoodie.create_table(path, {"id": "int64", "v": "int64"}, record_key="id")
    yield pyspark_hoodie.HoodieTable.for_path(spark, str(path))
    pyspark_hoodie.disable()


def test_spark_and_python_go_on_from_each_other(spark, table):
    embedded = hoodie.open_table(table.uri)
    table.upsert(spark.range(5).selectExpr("id", "id * 2 v"))
    with table.consumer("dash") as consumer:
        assert consumer.changes(columns=["v"], where="v > 2").count() == 3
    assert consumer.position == table.history()[-1].position
    embedded.upsert([{"id": 2, "v": 100}])
    with embedded.consumer("dash") as consumer:
        assert consumer.changes().to_arrow().to_pylist() == [{"id": 2, "v": 100}]
    embedded.delete([{"id": 3}])
    assert [(each.name, each.lag.commits) for each in table.consumers()] == [("dash", 1)]
    with table.consumer("dash") as consumer:
        rows = consumer.changes(images="before_after").collect()
        assert [(row.op, row.before.id, row.after) for row in rows] == [("d", 3, None)]
    with table.consumer("dash") as consumer:
        assert consumer.changes().count() == 0
    table.consumer("dash").seek("earliest")
    with embedded.consumer("dash") as consumer:
        assert consumer.changes().count() == 4
    table.drop_consumer("dash")
    assert embedded.consumers() == []


def test_an_action_that_fails_moves_nothing(spark, table):
    table.upsert(spark.range(3).selectExpr("id", "id v"))
    with pytest.raises(Exception, match="stop here"), table.consumer("dash") as consumer:
        consumer.changes().selectExpr("raise_error('stop here')").collect()
    other = table.consumer("dash")
    with table.consumer("dash") as consumer:
        assert consumer.changes().count() == 3
    with pytest.raises(CommitConflictError, match="was moved by"), other:
        assert other.changes().count() == 3
