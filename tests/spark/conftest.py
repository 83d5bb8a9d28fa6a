"""One Spark session for all tests marked `spark`, and the two doors through which every behaviour must come out the same."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

import pyspark_hoodie
from tests.effort import long_but

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
ROOT = Path(__file__).resolve().parent.parent.parent
# Functions of test modules travel to the workers by name.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "spark_ext"), os.environ.get("PYTHONPATH", "")])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores; a task is tried three times."""
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # Older ones keep Spark's own, as that must do as well; each task that needs a new process imports everything there.
        .config("spark.python.daemon.module", "pyspark_hoodie.daemon" if SPARK >= (4, 1) else "pyspark.daemon")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with `enable` called."""
    pyspark_hoodie.enable(spark)
    yield spark
    pyspark_hoodie.disable()


@pytest.fixture(params=long_but(["enabled"], ["enabled", "source"]) if SPARK >= (4, 0) else ["enabled"])
def door(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The session with `enable` called, and without: then Spark 4 finds the data source by itself."""
    if request.param == "enabled":
        pyspark_hoodie.enable(spark)
    yield spark
    pyspark_hoodie.disable()


@pytest.fixture
def sink_door(request: pytest.FixtureRequest, door: SparkSession) -> SparkSession:
    """As `door`, for streams into a table."""
    if request.node.callspec.params["door"] == "source" and SPARK < (4, 1):
        pytest.skip("before Spark 4.1 a stream into a table needs `enable`")
    return door


@pytest.fixture
def load(door: SparkSession) -> Callable[..., DataFrame]:
    return lambda path, **options: door.read.format("hoodie").options(**options).load(str(path))


def arrow_of(frame: DataFrame) -> pa.Table:
    """`toArrow`, which Spark 3.5 has not."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches, batches[0].schema if batches else to_arrow_schema(frame.schema))


def options_of(**more: Any) -> Mapping[str, str]:
    """Options of a table with key `id`, partition `part` and ordering `ts`; names of `more` have _ for dots."""
    return {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        **{name.replace("_", "."): str(value) for name, value in more.items()},
    }
