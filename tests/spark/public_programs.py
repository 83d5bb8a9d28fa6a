"""Public programs of PySpark for Apache Hudi, retold: their calls, options and order of steps, with rows of our own.

Each is a function of a session and a folder, and gives what it saw, by name; public_programs.json has what that has to be. In the
integration environment `python -m tests.spark.public_programs BUNDLE.jar OUT.json` says what they see with Apache Hudi's bundle. It
differs where tables of its newest version are pulled from: there pulls go by the times of completion.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

import tests.spark.public_programs_sql  # noqa: F401 - they are among PROGRAMS then
from tests.spark.programs import BUILDER, PROGRAMS, Seen, commits_of, program, run, seen


@program("github.com/sptnk1006/hudi_pyspark_nytaxi, a first load in AWS Glue, with its registration left out")
def glue_first_load(spark: SparkSession, root: str) -> Seen:
    frame = spark.createDataFrame(
        [("100", "2015-01-01", "2015-01-01T13:51:39.340396Z"), ("101", "2015-01-01", "2015-01-01T12:14:58.597216Z"),
         ("104", "2015-01-02", "2015-01-01T12:15:00.512679Z")],
        ["id", "creation_date", "last_update_time"],
    )  # fmt: skip
    options = {
        "hoodie.table.name": "my_hudi_table",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "creation_date",
        "hoodie.datasource.write.precombine.field": "last_update_time",
    }
    path = f"{root}/myhudidataset/"
    write = frame.write.format("org.apache.hudi").option("hoodie.datasource.write.operation", "insert")
    write.options(**options).mode("overwrite").save(path)
    update = frame.limit(1).withColumn("creation_date", F.lit("2015-01-01"))
    update = update.withColumn("last_update_time", F.lit("2016"))
    update.write.format("org.apache.hudi").option("hoodie.datasource.write.operation", "upsert").options(
        **options
    ).mode("append").save(path)
    return {"rows": seen(spark.read.format("org.apache.hudi").load(path))}


@program("the Packt book on serverless analytics with Athena: path among the options, numbers as values")
def path_among_the_options(spark: SparkSession, root: str) -> Seen:
    rows = spark.createDataFrame([(1, "ann", 10), (2, "bob", 10)], "emp_no int, name string, ts int")
    common = {
        "className": "org.apache.hudi",
        "hoodie.datasource.hive_sync.use_jdbc": "false",
        "hoodie.datasource.write.recordkey.field": "emp_no",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.name": "employees_cow",
        "hoodie.consistency.check.enabled": "true",
        "path": f"{root}/employees",
        "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.NonPartitionedExtractor",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    load = {"hoodie.bulkinsert.shuffle.parallelism": 3, "hoodie.datasource.write.operation": "bulk_insert"}
    rows.write.format("hudi").options(**common, **load).mode("overwrite").save()
    upsert = {
        "hoodie.upsert.shuffle.parallelism": 20,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
        "hoodie.cleaner.commits.retained": 10,
    }
    newer = spark.createDataFrame([(2, "bill", 20), (3, "cat", 20)], rows.schema)
    newer.write.format("hudi").options(**common, **upsert).mode("append").save()
    delete = {"hoodie.datasource.write.operation": "delete"}
    after = seen(spark.read.format("hudi").load(common["path"]))
    gone = spark.createDataFrame([(1, "ann", 30)], rows.schema)
    gone.write.format("hudi").options(**common, **delete).mode("append").save()
    return {"upserted": after, "deleted": seen(spark.read.format("hudi").load(common["path"]))}


@program("hudi.apache.org, the quick start of 0.15 for PySpark")
def quick_start(spark: SparkSession, root: str) -> Seen:
    path, columns = f"{root}/trips_table", ["ts", "uuid", "rider", "driver", "fare", "city"]
    data = [
        (1695159649087, "334e", "rider-A", "driver-K", 19.10, "san_francisco"),
        (1695091554788, "e96c", "rider-C", "driver-M", 27.70, "san_francisco"),
        (1695046462179, "9909", "rider-D", "driver-L", 33.90, "san_francisco"),
        (1695516137016, "e3cf", "rider-F", "driver-P", 34.15, "sao_paulo"),
        (1695115999911, "c8ab", "rider-J", "driver-T", 17.85, "chennai"),
    ]
    options = {
        "hoodie.table.name": "trips_table",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
    }
    spark.createDataFrame(data).toDF(*columns).write.format("hudi").options(**options).mode("overwrite").save(path)
    trips = spark.read.format("hudi").load(path)
    trips.createOrReplaceTempView("trips_table")
    found = {
        "over 20": seen(spark.sql("SELECT uuid, fare, ts, rider, driver, city FROM trips_table WHERE fare > 20.0"))
    }
    updates = spark.read.format("hudi").load(path).filter("rider == 'rider-D'").withColumn("fare", F.col("fare") * 10)
    updates.write.format("hudi").options(**options).mode("append").save(path)
    found["updated"] = seen(spark.read.format("hudi").load(path))
    commits = commits_of(spark, path)
    incremental = {"hoodie.datasource.query.type": "incremental"}
    pulled = {**incremental, "hoodie.datasource.read.begin.instanttime": commits[-2]}
    spark.read.format("hudi").options(**pulled).load(path).createOrReplaceTempView("trips_incremental")
    found["pulled"] = seen(spark.sql("SELECT fare, rider, uuid FROM trips_incremental WHERE fare > 20.0"))
    between = {**incremental, "hoodie.datasource.read.end.instanttime": commits[-2]}
    between["hoodie.datasource.read.begin.instanttime"] = "000"
    found["until"] = seen(spark.read.format("hudi").options(**between).load(path))
    found["as of"] = seen(spark.read.format("hudi").option("as.of.instant", commits[0]).load(path))
    deletes = spark.read.format("hudi").load(path).filter("rider == 'rider-F'")
    deletes.write.format("hudi").option("hoodie.datasource.write.operation", "delete").options(**options).mode(
        "append"
    ).save(path)
    found["left"] = seen(spark.read.format("hudi").load(path))
    overwrite = spark.createDataFrame([(1, "n1", "rider-X", "driver-X", 1.0, "chennai")]).toDF(*columns)
    overwrite.write.format("hudi").option("hoodie.datasource.write.operation", "insert_overwrite").options(
        **options
    ).mode("append").save(path)
    found["overwritten"] = seen(spark.read.format("hudi").load(path))
    return found


@program(
    "github.com/soumilshah1995, a reader of changes that keeps its place, a number below the first commit at first"
)
def changes_from_below_the_first_commit(spark: SparkSession, root: str) -> Seen:
    path, found = f"{root}/hudi_cdc_table", {}
    options = {
        "hoodie.table.name": "hudi_cdc_table",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
        "hoodie.datasource.write.operation": "upsert",
    }

    def write(*rows: tuple[int, str, str]) -> None:
        frame = spark.createDataFrame([*rows], "ts int, uuid string, message string")
        frame.write.format("hudi").options(**options).mode("append").save(path)

    def changes(begin: int | str) -> DataFrame:
        reading = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
            "hoodie.datasource.read.begin.instanttime": begin,
        }
        spark.read.format("hudi").options(**reading).load(path).createOrReplaceTempView("hudi_incremental")
        return spark.sql("select * from hudi_incremental")

    def shown(frame: DataFrame) -> list[list[Any]]:
        parts = [F.get_json_object("before", "$.message"), F.get_json_object("after", "$.message")]
        return seen(frame.select("op", parts[0].alias("was"), parts[1].alias("is")))

    write((1, "a", "one"), (1, "b", "two"))
    place = int(commits_of(spark, path)[0]) - 1
    found["first"] = shown(changes(place))
    last = [row[0] for row in spark.sql("select distinct(ts_ms) from hudi_incremental order by ts_ms").collect()][-1]
    write((2, "b", "deux"), (2, "c", "trois"))
    found["second"] = shown(changes(str(last)))
    return found


@program("aws-samples, a stream of AWS Glue whose function upserts each batch and evolves its columns")
def foreach_batch_with_new_columns(spark: SparkSession, root: str) -> Seen:
    target, landing = f"{root}/hudi", Path(root, "landing")
    landing.mkdir(parents=True)
    options = {
        "hoodie.datasource.write.storage.type": "COPY_ON_WRITE",
        "className": "org.apache.hudi",
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "pk",
        "hoodie.datasource.write.table.name": "orders",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.precombine.field": "sk",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.bulkinsert.shuffle.parallelism": 2000,
    }

    def evolved(frame: DataFrame) -> DataFrame:
        try:
            known = spark.read.format("hudi").load(target).limit(0)
        except Exception:  # noqa: BLE001 - as the program has it: there is no table before the first batch
            return frame
        return frame.unionByName(
            known.drop(*[name for name in known.columns if name.startswith("_hoodie_")]), allowMissingColumns=True
        )

    def process(frame: DataFrame, batch_id: int) -> None:
        if frame.count() > 0:
            known = evolved(frame.dropna(how="all").drop(*(() if batch_id else ("city",))))
            known.write.format("hudi").options(**options).mode("append").save(target)

    schema = StructType(
        [StructField("pk", StringType()), StructField("sk", LongType()), StructField("city", StringType())]
    )
    for number, lines in enumerate((['{"pk":"a","sk":1}', '{"pk":"b","sk":1}'], ['{"pk":"b","sk":2,"city":"rome"}'])):
        (landing / f"{number}.json").write_text("\n".join(lines))
        stream = spark.readStream.schema(schema).json(str(landing))
        query = stream.writeStream.foreachBatch(process).option("checkpointLocation", f"{root}/checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()
    return {"rows": seen(spark.read.format("hudi").load(target), "pk", "sk", "city")}


@program("hudi.apache.org, streams: a table is read as a stream and written to another table")
def stream_between_tables(spark: SparkSession, root: str) -> Seen:
    base, target = f"{root}/trips", f"{root}/trips_streaming"
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.name": "trips",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.insert.shuffle.parallelism": 2,
    }
    named = {f"hoodie.{name}": "trips_streaming" for name in ("table.name", "datasource.write.table.name")}
    found: Seen = {}
    for round_, rows in enumerate(([("a", 1, "x"), ("b", 1, "y")], [("b", 2, "y"), ("c", 2, "x")])):
        frame = spark.createDataFrame(rows, "uuid string, ts int, part string")
        frame.write.format("hudi").options(**options).mode("append").save(base)
        stream = spark.readStream.format("hudi").load(base).withColumn("masked", F.lit("***"))
        stream = stream.drop(*[name for name in stream.columns if name.startswith("_hoodie_")])
        writer = stream.writeStream.format("hudi").options(**{**options, **named})
        writer = writer.outputMode("append").option("path", target).option("checkpointLocation", f"{root}/check")
        writer.trigger(availableNow=True).start().awaitTermination()
        found[f"round {round_}"] = seen(spark.read.format("hudi").load(target), "uuid", "ts", "part", "masked")
    return found


@program("an account table from Debezium's envelopes in JSON: deletes are left out, a stream writes it")
def stream_of_envelopes(spark: SparkSession, root: str) -> Seen:
    landing, target = Path(root, "envelopes"), f"{root}/silver_accounts"
    landing.mkdir(parents=True)
    row = "struct<account_id:string,name:string,updated_at:string>"
    envelope = f"op string, before {row}, after {row}, source struct<ts_ms:long>"
    lines = [
        {"op": "c", "after": {"account_id": "1", "name": "ann", "updated_at": "2024-01-01T00:00:00"}, "source": {"ts_ms": 1000}},
        {"op": "u", "after": {"account_id": "1", "name": "anna", "updated_at": "2024-01-02T00:00:00"}, "source": {"ts_ms": 2000}},
        {"op": "d", "before": {"account_id": "2", "name": "bob", "updated_at": None}, "source": {"ts_ms": 3000}},
    ]  # fmt: skip
    (landing / "1.json").write_text("\n".join(map(json.dumps, lines)))
    raw = spark.readStream.schema(envelope).json(str(landing))
    parsed = raw.select(
        "op",
        F.coalesce(F.col("after.account_id"), F.col("before.account_id")).alias("account_id"),
        F.col("after.name").alias("name"),
        F.to_timestamp("after.updated_at").alias("source_updated_at"),
        (F.col("source.ts_ms") / 1000).cast("timestamp").alias("event_ts"),
    ).filter(F.col("account_id").isNotNull() & (F.col("op") != "d"))
    options = {
        "hoodie.table.name": "silver_accounts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "account_id",
        "hoodie.datasource.write.precombine.field": "event_ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.compact.inline": "false",
    }
    writer = parsed.writeStream.format("hudi").options(**options).option("path", target)
    writer = writer.option("checkpointLocation", f"{root}/check").outputMode("append")
    writer.trigger(availableNow=True).start().awaitTermination()
    return {"rows": seen(spark.read.format("hudi").load(target))}


@program("an AWS workshop: a dimension with history, rows closed by one upsert and new ones inserted by another")
def slowly_changing_dimension(spark: SparkSession, root: str) -> Seen:
    path = f"{root}/dim_customer"
    options = {
        "hoodie.table.name": "dim_customer",
        "hoodie.datasource.write.recordkey.field": "customer_id,effective_from",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.precombine.field": "version",
        "hoodie.datasource.write.operation": "upsert",
    }
    schema = "customer_id int, city string, effective_from date, effective_to date, is_current boolean, version int"
    first = spark.sql(
        "select 1 customer_id, 'rome' city, date'2024-01-01' effective_from, date'9999-12-31' effective_to, true is_current, 1 version"
        " union all select 2, 'oslo', date'2024-01-01', date'9999-12-31', true, 1"
    )
    spark.createDataFrame(first.rdd, schema).write.format("hudi").options(**options).mode("overwrite").save(path)
    incoming = spark.createDataFrame([(1, "paris"), (3, "bern")], "customer_id int, city string")
    current = spark.read.format("hudi").load(path).where("is_current").drop("_hoodie_file_name")
    changed = current.alias("t").join(incoming.alias("s"), "customer_id").where("t.city <> s.city")
    day = F.to_date(F.lit("2024-06-01"))
    closed = changed.select(
        "customer_id", F.col("t.city"), "effective_from", F.date_sub(day, 1).alias("effective_to"),
        F.lit(False).alias("is_current"), (F.col("version") + 1).alias("version"),
    )  # fmt: skip
    opened = incoming.select(
        "customer_id", "city", day.alias("effective_from"), F.to_date(F.lit("9999-12-31")).alias("effective_to"),
        F.lit(True).alias("is_current"), F.lit(1).alias("version"),
    )  # fmt: skip
    closed.unionByName(opened).write.format("hudi").options(**options).mode("append").save(path)
    return {"rows": seen(spark.read.format("hudi").load(path))}


@program("a medallion of three tables: each reads what is new in the one before it by the last commit that it took")
def bronze_silver_gold(spark: SparkSession, root: str) -> Seen:
    bronze, silver, gold = (f"{root}/{name}" for name in ("bronze", "silver", "gold"))

    def write(frame: DataFrame, path: str, key: str, ordering: str, **more: Any) -> None:
        options = {
            "hoodie.table.name": Path(path).name,
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.precombine.field": ordering,
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            **{f"hoodie.{name.replace('_', '.')}": value for name, value in more.items()},
        }
        frame.write.format("hudi").options(**options).mode("append").save(path)

    place, found = "000", {}
    for round_, rows in enumerate(
        ([(1, "rome", 5.0, 1), (2, "oslo", 7.0, 1)], [(2, "oslo", 8.0, 2), (3, "oslo", 1.0, 2)])
    ):
        write(spark.createDataFrame(rows, "id int, city string, fare double, ts int"), bronze, "id", "ts")
        reading = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": place,
        }
        news = spark.read.format("hudi").options(**reading).load(bronze)
        found[f"new {round_}"] = seen(news)
        place = news.agg(F.max("_hoodie_commit_time")).first()[0]
        clean = news.drop(*[name for name in news.columns if name.startswith("_hoodie_")]).where("fare > 2")
        write(clean.withColumn("city", F.upper("city")), silver, "id", "ts", cleaner_commits_retained=2)
        sums = spark.read.format("hudi").load(silver).groupBy("city").agg(F.sum("fare").alias("fares"))
        write(sums.withColumn("ts", F.lit(round_)), gold, "city", "ts")
    found["silver"], found["gold"] = (
        seen(spark.read.format("hudi").load(silver)),
        seen(spark.read.format("hudi").load(gold)),
    )
    return found


@program("a job of AWS DMS: a full load, then files of changes with Op, D deletes")
def dms_changes(spark: SparkSession, root: str) -> Seen:
    path = f"{root}/dms"
    full = spark.createDataFrame(
        [("1", "ann", "2024-01-01"), ("2", "bob", "2024-01-01")], "id string, name string, updated_at string"
    )
    full.write.mode("overwrite").option("header", True).csv(f"{root}/full")
    changes = [("U", "1", "anna", "2024-01-02"), ("D", "2", "bob", "2024-01-03"), ("I", "3", "cat", "2024-01-03")]
    spark.createDataFrame(changes, "Op string, id string, name string, updated_at string").write.option(
        "header", True
    ).csv(f"{root}/cdc")
    options = {
        "hoodie.table.name": "dms",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "updated_at",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    load = spark.read.option("header", True).csv(f"{root}/full")
    load.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": "bulk_insert"}).mode(
        "overwrite"
    ).save(path)
    latest = spark.read.option("header", True).csv(f"{root}/cdc")
    upserts, deletes = latest.where("Op <> 'D'").drop("Op"), latest.where("Op = 'D'").drop("Op")
    upserts.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": "upsert"}).mode(
        "append"
    ).save(path)
    deletes.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": "delete"}).mode(
        "append"
    ).save(path)
    return {"rows": seen(spark.read.format("hudi").load(path))}


def main(bundle: str, out: str, *names: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", bundle)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        **BUILDER,
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    found: dict[str, Any] = {}
    for name in names or PROGRAMS:
        try:
            found[name] = run(name, spark, tempfile.mkdtemp())
        except Exception as exc:  # noqa: BLE001 - one that fails is looked at by hand
            found[name] = {"failed": f"{type(exc).__name__}: {exc}"[:2000]}
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
        Path(out).write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
