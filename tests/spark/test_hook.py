"""`enable` and what can be said to readers and writers; every error is one of ours, short, and without the JVM."""

import logging
import subprocess
import sys

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import hoodie
import pyspark_hoodie
from hoodie.errors import HoodieError, KeyFieldError, OptionError, SchemaError, TableExistsError, TableNotFoundError
from tests.spark.conftest import SPARK, options_of

pytestmark = pytest.mark.spark

DDL = "id string, part string, qty int, ts long"


@pytest.fixture
def df(spark):
    return spark.createDataFrame([("k", "a", 1, 1), ("l", "b", 2, 1)], DDL)


@pytest.fixture
def path(df, tmp_path, enabled):
    """A table with two rows."""
    df.write.format("hoodie").options(**options_of()).save(str(tmp_path / "t"))
    return str(tmp_path / "t")


def said(error):
    text = str(error.value)
    assert len(text.splitlines()) <= 8
    assert "Traceback" not in text
    assert "org.apache.spark" not in text
    assert "py4j" not in text
    return text


def test_import_is_light_and_changes_nothing():
    """Spark imports the module in its planner workers, also for other sources."""
    heavy = (
        "import sys, pyspark_hoodie; print([m for m in ('pyspark', 'pyarrow', 'numpy', 'hoodie') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_enable_twice_and_disable_leave_spark_as_it_was(spark):
    kinds = type(spark.read), type(spark.range(1).write)
    assert kinds == (DataFrameReader, DataFrameWriter)
    pyspark_hoodie.enable(spark)
    pyspark_hoodie.enable(spark, aliases=("hudi",))
    assert type(spark.read) is not DataFrameReader
    assert isinstance(spark.range(1).write, DataFrameWriter)
    pyspark_hoodie.disable()
    assert (type(spark.read), type(spark.range(1).write)) == kinds
    pyspark_hoodie.disable()


def test_local_tasks_run_in_this_interpreter_unless_another_was_asked_for(spark, monkeypatch):
    context = spark.sparkContext
    for asked, expected in ((None, sys.executable), ("python3", "python3")):
        monkeypatch.setattr(context, "pythonExec", "python3")
        monkeypatch.delenv("PYSPARK_PYTHON")
        if asked:
            monkeypatch.setenv("PYSPARK_PYTHON", asked)
        pyspark_hoodie.enable(spark)
        assert context.pythonExec == expected
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    pyspark_hoodie.disable()


def test_other_formats_are_sparks_own(enabled, df, tmp_path):
    target = str(tmp_path / "p")
    df.write.format("parquet").option("compression", "gzip").partitionBy("part").mode("overwrite").save(target)
    df.write.mode("append").partitionBy("part").parquet(target)
    df.write.save(target, format="json", mode="ignore")
    assert enabled.read.format("parquet").schema("id string, qty int").load(target).count() == 4
    assert enabled.read.parquet(target).columns == ["id", "qty", "ts", "part"]
    with pytest.raises(AnalysisException, match="already exists"):
        df.write.format("parquet").save(target)


def test_aliases_answer_too_and_only_when_asked_for(spark, df, path):
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        spark.read.format("lake").load(path)
    pyspark_hoodie.enable(spark, aliases=("lake", "hudi", "org.apache.hudi"))
    assert spark.read.format("lake").load(path).count() == 2
    df.write.format("org.apache.hudi").mode("append").save(path)
    assert spark.read.format("HUDI").load(path).count() == 2


@pytest.mark.parametrize(
    "save",
    [
        lambda w, p: w.format("hoodie").options(**options_of()).save(p),
        lambda w, p: w.format("HOODIE").options(**options_of()).option("path", p).save(),
        lambda w, p: w.save(p, format="hoodie", mode="append", **options_of()),
        lambda w, p: w.save(path=p, format="hoodie", partitionBy="part", **options_of()),
        lambda w, p: w.format("hoodie").options(path=p, **options_of()).partitionBy(["part"]).mode("ignore").save(),
        lambda w, p: (
            w.mode("overwrite").options(**{k.upper(): v for k, v in options_of().items()}).format("hoodie").save(p)
        ),
    ],
)
def test_every_usual_way_to_save(enabled, df, tmp_path, save):
    target = str(tmp_path / "t")
    save(df.write, target)
    config = hoodie.open_table(target).config
    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == (("id",), ("part",), ("ts",))
    assert hoodie.open_table(target).scan().count() == 2


@pytest.mark.parametrize(
    "load",
    [
        lambda r, p: r.format("hoodie").load(p),
        lambda r, p: r.format("Hoodie").option("path", p).load(),
        lambda r, p: r.load(p, format="hoodie"),
        lambda r, p: r.load([p], format="hoodie", **{"hoodie.datasource.query.type": "snapshot"}),
        lambda r, p: r.options(path=p).format("hoodie").load(),
    ],
)
def test_every_usual_way_to_load(enabled, path, load):
    assert load(enabled.read, path).count() == 2


def test_partition_by_without_the_option_and_against_it(enabled, df, tmp_path):
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    df.write.format("hoodie").options(**options).partitionBy("part", "qty").save(str(tmp_path / "t"))
    assert hoodie.open_table(tmp_path / "t").config.partition_fields == ("part", "qty")
    with pytest.raises(OptionError) as caught:
        df.write.format("hoodie").options(**options_of()).partitionBy("qty").save(str(tmp_path / "u"))
    assert said(caught) == (
        "partitionBy('qty') contradicts hoodie.datasource.write.partitionpath.field='part': drop one of them"
    )
    assert not (tmp_path / "u").exists()


def test_modes_on_a_table_that_stands(enabled, df, path):
    with pytest.raises(TableExistsError) as caught:
        df.write.format("hoodie").save(path)
    assert said(caught).startswith(f"there is a table at {path} already")
    df.write.format("hoodie").mode("ignore").save(path)
    assert len(hoodie.open_table(path).timeline.commits) == 1


def test_mode_overwrite_does_not_go_with_deleting(enabled, df, path):
    with pytest.raises(OptionError) as caught:
        df.write.format("hoodie").option("hoodie.datasource.write.operation", "delete").mode("overwrite").save(path)
    assert said(caught) == 'operation delete deletes, mode("overwrite") replaces: use mode("append") to delete'


def test_a_first_write_that_failed_can_be_run_again_as_it_was(enabled, df, tmp_path):
    target = str(tmp_path / "t")
    with pytest.raises(KeyFieldError):
        df.withColumn("id", F.lit(None).cast("string")).write.format("hoodie").options(**options_of()).save(target)
    df.write.format("hoodie").options(**options_of()).save(target)
    assert hoodie.open_table(target).scan().count() == 2


ERRORS = {
    "no such column as key": (
        lambda df, p: (
            df.write.format("hoodie").options(**options_of(hoodie_datasource_write_recordkey_field="ID")).save(p + "x")
        ),
        KeyFieldError,
        "record key column 'ID' is not in the data for table 'tx'\n  CASE      id  the option has it as 'ID'",
    ),
    "unknown option": (
        lambda df, p: df.write.format("hoodie").option("hoodie.datasource.write.operatoin", "x").mode("append").save(p),
        OptionError,
        "did you mean 'hoodie.datasource.write.operation'",
    ),
    "an option against the table": (
        lambda df, p: (
            df.write.format("hoodie").option("hoodie.datasource.write.recordkey.field", "qty").mode("append").save(p)
        ),
        OptionError,
        "record key is 'id' in the table, 'qty' in your options",
    ),
    "a column of another type": (
        lambda df, p: df.withColumn("qty", F.lit("x")).write.format("hoodie").mode("append").save(p),
        SchemaError,
        "MISMATCH  qty  table int32, batch string",
    ),
    "a key column less": (
        lambda df, p: df.drop("part").write.format("hoodie").mode("append").save(p),
        KeyFieldError,
        "partition column 'part' is not in the data",
    ),
    "no path": (lambda df, p: df.write.format("hoodie").save(), OptionError, "needs the path of the table"),
    "two paths": (
        lambda df, p: df.write.format("hoodie").option("path", p).save(p + "x"),
        OptionError,
        "two paths",
    ),
    "an unknown mode": (lambda df, p: df.write.save(p, format="hoodie", mode="appendix"), Exception, "appendix"),
    "buckets": (
        lambda df, p: df.write.format("hoodie").bucketBy(2, "id").mode("append").save(p),
        OptionError,
        "bucketBy has no meaning",
    ),
    "a delete where no table is": (
        lambda df, p: (
            df.write.format("hoodie")
            .options(**options_of(hoodie_datasource_write_operation="delete"))
            .mode("append")
            .save(p + "x")
        ),
        TableNotFoundError,
        "no table at",
    ),
    "a read where no table is": (
        lambda df, p: df.sparkSession.read.format("hoodie").load(p + "x"),
        TableNotFoundError,
        "no table at",
    ),
    "a filter on no column": (
        lambda df, p: df.sparkSession.read.format("hoodie").option("where", "nope > 1").load(p),
        OptionError,
        "there is no column 'nope'",
    ),
    "an instant before the table": (
        lambda df, p: df.sparkSession.read.format("hoodie").option("as.of.instant", "20000101000000000").load(p),
        HoodieError,
        "20000101000000000",
    ),
    "a read schema that does not fit": (
        lambda df, p: df.sparkSession.read.format("hoodie").schema("id string, qty string, more int").load(p),
        SchemaError,
        "qty: int in the table, string in the schema",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_come_before_any_job(enabled, df, path, case):
    act, kind, text = ERRORS[case]
    tracker = enabled.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    with pytest.raises(kind) as caught:
        act(df, path)
    assert text in said(caught)
    assert len(tracker.getJobIdsForGroup(None)) == before
    assert len(hoodie.open_table(path).timeline.instants) == 1


def test_a_null_key_is_an_error_of_ours_from_the_worker(enabled, df, path):
    with pytest.raises(KeyFieldError) as caught:
        df.withColumn("id", F.when(F.col("qty") > 1, F.col("id"))).write.format("hoodie").mode("append").save(path)
    assert "null" in said(caught)
    assert "'id'" in said(caught)
    assert hoodie.open_table(path).scan().count() == 2


@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no sources written in Python")
def test_without_enable_the_text_is_quoted_by_spark(spark, path):
    pyspark_hoodie.disable()
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("hoodie").load(path + "x")
    text = str(caught.value)
    assert "hoodie.errors.TableNotFoundError: no table at" in text
    assert len(text.splitlines()) <= 8


@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no sources written in Python")
@pytest.mark.long
def test_a_null_key_without_enable_leaves_nothing_behind(spark, df, tmp_path):
    pyspark_hoodie.disable()
    target = tmp_path / "t"
    with pytest.raises(Exception, match=r"KeyFieldError: .*null"):
        df.withColumn("id", F.lit(None).cast("string")).write.format("hoodie").options(**options_of()).mode(
            "append"
        ).save(str(target))
    assert [p.name for p in (target / ".hoodie").rglob("rows-*")] == []
    assert hoodie.open_table(target).timeline.instants == ()


def test_a_table_that_is_created_without_a_record_key_is_told_once(enabled, df, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        for _ in range(2):
            df.write.format("hoodie").mode("append").save(str(tmp_path / "t"))
    (record,) = [r for r in caplog.records if "without a record key" in r.getMessage()]
    assert "hoodie.datasource.write.recordkey.field" in record.getMessage()


def test_options_without_effect_are_named_once_and_their_values_never(enabled, df, tmp_path, caplog):
    more = {"hoodie.write.executor.type": "SIMPLE", "hoodie.datasource.hive_sync.password": "hunter2"}
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        df.write.format("hoodie").options(**options_of(), **more).save(str(tmp_path / "t"))
    (record,) = [r for r in caplog.records if "no effect" in r.getMessage()]
    assert all(name in record.getMessage() for name in more)
    assert "hunter2" not in caplog.text


def test_a_read_schema_selects_columns_in_its_order(door, path):
    frame = door.read.format("hoodie").schema("qty int, id string").load(path)
    assert frame.columns == ["qty", "id"]
    assert sorted(frame.collect()) == [(1, "k"), (2, "l")]


@pytest.mark.long
@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no sources written in Python")
def test_sql_over_a_temporary_view(door, path):
    door.sql(f"create or replace temporary view flights using hoodie options (path '{path}')")
    assert door.sql("select part, sum(qty) from flights group by part order by part").collect() == [("a", 1), ("b", 2)]
    door.catalog.dropTempView("flights")


def test_a_dataframe_keeps_its_snapshot(enabled, df, path):
    before = enabled.read.format("hoodie").load(path)
    df.withColumn("qty", F.lit(9)).write.format("hoodie").mode("append").save(path)
    assert sorted(row["qty"] for row in before.collect()) == [1, 2]
    assert sorted(row["qty"] for row in enabled.read.format("hoodie").load(path).collect()) == [9, 9]
