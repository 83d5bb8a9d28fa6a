"""Public programs (`public_programs.py`) of tables by name, views and deletes."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.programs import Seen, commits_of, program, seen


@program("github.com, a check of change logs by Spark SQL")
def change_logs_by_sql(spark: SparkSession, root: str) -> Seen:
    spark.sql("DROP TABLE IF EXISTS cdc_check")
    spark.sql(
        "CREATE TABLE cdc_check (id long, precomb long, desc string, partition string) USING HUDI TBLPROPERTIES ("
        "'primaryKey' = 'id', 'type' = 'cow', 'preCombineField' = 'precomb', 'hoodie.table.cdc.enabled' = 'true', "
        "'hoodie.table.cdc.supplemental.logging.mode' = 'DATA_BEFORE_AFTER') PARTITIONED BY (partition) "
        f"LOCATION '{root}/cdc_check';"
    )
    spark.sql("INSERT INTO cdc_check VALUES (1, 11, 'first row', 'par1');")
    spark.sql("INSERT INTO cdc_check SELECT 1 as id, 22 as precomb, 'second row' as desc, 'par1' as partition;")
    frame = (
        spark.read.option("hoodie.datasource.read.begin.instanttime", 0)
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.query.incremental.format", "cdc")
        .format("org.apache.hudi")
        .load(f"{root}/cdc_check")
    )
    found = {"changes": seen(frame.select("op", F.get_json_object("after", "$.desc").alias("desc")))}
    found["rows"] = seen(spark.sql("select id, precomb, desc, partition from cdc_check"))
    spark.sql("DROP TABLE cdc_check")
    return found


@program("hudi.apache.org, SQL: create, insert, update, merge, delete, and a table of a query")
def statements(spark: SparkSession, root: str) -> Seen:
    for name in ("hudi_table", "hudi_ctas", "source_of_merge"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"""CREATE TABLE hudi_table (id INT, name STRING, price DOUBLE, ts BIGINT, dt STRING) USING HUDI
        TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (dt)
        LOCATION '{root}/hudi_table'"""
    )
    spark.sql(
        "INSERT INTO hudi_table VALUES (1, 'a1', 10, 1000, 'd1'), (2, 'a2', 20, 1000, 'd1'), (3, 'a3', 30, 1000, 'd2')"
    )
    spark.sql("UPDATE hudi_table SET price = price * 2, ts = 1111 WHERE id = 1")
    source = spark.createDataFrame(
        [(2, "b2", 5.0, 2000, "d1"), (4, "b4", 4.0, 2000, "d2")],
        "id int, name string, price double, ts long, dt string",
    )
    source.createOrReplaceTempView("merge_source")
    spark.sql(
        """MERGE INTO hudi_table AS target USING merge_source AS source ON target.id = source.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    spark.sql("DELETE FROM hudi_table WHERE id = 3")
    found = {"rows": seen(spark.sql("SELECT id, name, price, ts, dt FROM hudi_table"))}
    spark.sql(
        f"""CREATE TABLE hudi_ctas USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{root}/hudi_ctas'
        AS SELECT id, name, price FROM hudi_table"""
    )
    spark.sql("ALTER TABLE hudi_ctas SET TBLPROPERTIES ('hoodie.keep.max.commits' = '40')")
    found["of a query"] = seen(spark.table("hudi_ctas"))
    spark.sql("INSERT OVERWRITE hudi_ctas SELECT 9, 'z', 9.0")
    found["overwritten"] = seen(spark.table("hudi_ctas"))
    found["commits"] = [[spark.sql("call show_commits(table => 'hudi_ctas', limit => 10)").count()]]
    for name in ("hudi_table", "hudi_ctas"):
        spark.sql(f"DROP TABLE {name}")
    return found


@program("a notebook on deletes: soft ones by nulls, hard ones by _hoodie_is_deleted, and a partition by its path")
def kinds_of_deletes(spark: SparkSession, root: str) -> Seen:
    path, found = f"{root}/deletes", {}
    options = {
        "hoodie.table.name": "deletes",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "state",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": True,
        "hoodie.datasource.write.operation": "upsert",
    }
    schema = "id int, name string, state string, ts int, _hoodie_is_deleted boolean"
    rows = [
        (1, "ann", "NY", 1, False),
        (2, "bob", "NY", 1, False),
        (3, "cat", "CA", 1, False),
        (4, "dan", "TX", 1, False),
    ]
    spark.createDataFrame(rows, schema).write.format("hudi").options(**options).mode("overwrite").save(path)
    soft = (
        spark.read.format("hudi").load(path).where("id = 1").select(*(part.split()[0] for part in schema.split(", ")))
    )
    soft.withColumn("name", F.lit(None).cast("string")).withColumn("ts", F.lit(2)).write.format("hudi").options(
        **options
    ).mode("append").save(path)
    found["soft"] = seen(spark.read.format("hudi").load(path), "id", "name", "state", "ts")
    hard = spark.createDataFrame([(2, "bob", "NY", 2, True)], schema)
    hard.write.format("hudi").options(**options).mode("append").save(path)
    found["hard"] = seen(spark.read.format("hudi").load(path), "id", "name", "state", "ts")
    spark.createDataFrame([], schema).write.format("hudi").options(
        **{
            **options,
            "hoodie.datasource.write.operation": "delete_partition",
            "hoodie.datasource.write.partitions.to.delete": "state=CA,state=TX",
        }
    ).mode("append").save(path)
    found["partitions"] = seen(spark.read.format("hudi").load(path), "id", "name", "state", "ts")
    return found


@program("a job on merge-on-read: both views, a compaction by CALL, a read of one partition by its path")
def views_of_merge_on_read(spark: SparkSession, root: str) -> Seen:
    path, found = f"{root}/mor", {}
    options = {
        "hoodie.table.name": "mor",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "year,month",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.compact.inline": "false",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    schema = "id int, v string, year string, month string, ts int"
    for rows in ([(1, "a", "2024", "01", 1), (2, "b", "2024", "02", 1)], [(1, "aa", "2024", "01", 2)]):
        spark.createDataFrame(rows, schema).write.format("hudi").options(**options).mode("append").save(path)
    for query in ("snapshot", "read_optimized"):
        found[query] = seen(spark.read.format("hudi").option("hoodie.datasource.query.type", query).load(path))
    spark.sql(f"call run_compaction(op => 'scheduleAndExecute', path => '{path}')").collect()
    compacted = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(path)
    found["compacted"] = seen(compacted)
    found["filtered"] = seen(spark.read.format("hudi").load(path).where("year = '2024' and month = '02'"))
    return found


@program("a job that loads three batches without a record key, and counts what came after a commit")
def without_a_record_key(spark: SparkSession, root: str) -> Seen:
    path = f"{root}/retails"
    options = {
        "hoodie.table.name": "retails_table",
        "hoodie.datasource.write.table.name": "retails_table",
        "hoodie.datasource.write.partitionpath.field": "insert_date",
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.insert.shuffle.parallelism": 2,
    }
    for number in range(3):
        frame = spark.createDataFrame([(number, "x", f"2024-01-0{number + 1}")], "id int, v string, insert_date string")
        frame.write.format("hudi").options(**options).mode("append").save(path)
    commits = commits_of(spark, path)
    reading = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": commits[0],
    }
    return {
        "rows": seen(spark.read.format("hudi").load(path)),
        "after": [[spark.read.format("hudi").options(**reading).load(path).count()]],
    }


@program("Apache Hudi's documents on queries: time travel and table-valued functions by SQL")
def time_travel_by_sql(spark: SparkSession, root: str) -> Seen:
    spark.sql("DROP TABLE IF EXISTS hudi_cow_pt_tbl")
    spark.sql(
        f"""create table hudi_cow_pt_tbl (id bigint, name string, ts bigint, dt string, hh string) using hudi
        tblproperties (type = 'cow', primaryKey = 'id', preCombineField = 'ts') partitioned by (dt, hh)
        location '{root}/hudi_cow_pt_tbl'"""
    )
    spark.sql("insert into hudi_cow_pt_tbl partition (dt = '2021-12-09', hh = '10') select 1, 'a0', 1000")
    spark.sql("insert into hudi_cow_pt_tbl partition (dt = '2021-12-09', hh = '11') select 2, 'b0', 1000")
    first = commits_of(spark, f"{root}/hudi_cow_pt_tbl")[0]
    spark.sql(
        "insert into hudi_cow_pt_tbl partition (dt, hh) select 1 as id, 'a1' as name, 1001 as ts, '2021-12-09' as dt, '10' as hh"
    )
    names = "id, name, ts, dt, hh"
    found = {"now": seen(spark.sql(f"select {names} from hudi_cow_pt_tbl"))}
    found["then"] = seen(spark.sql(f"select {names} from hudi_cow_pt_tbl timestamp as of '{first}' where id = 1"))
    query = f"select {names} from hudi_table_changes('hudi_cow_pt_tbl', 'latest_state', '{first}')"
    found["changes"] = seen(spark.sql(query))
    spark.sql("DROP TABLE hudi_cow_pt_tbl")
    return found


@program("a job that appends with save modes and saveAsTable, as notebooks of Dataproc have it")
def save_as_table(spark: SparkSession, root: str) -> Seen:
    spark.sql("DROP TABLE IF EXISTS stocks")
    options = {
        "hoodie.datasource.write.recordkey.field": "symbol",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.name": "stocks",
    }
    schema = "symbol string, price double, ts int"
    frame = spark.createDataFrame([("A", 1.0, 1), ("B", 2.0, 1)], schema)
    frame.write.format("hudi").options(**options).option("path", f"{root}/stocks").mode("overwrite").saveAsTable(
        "stocks"
    )
    frame.write.format("hudi").options(**options).mode("ignore").save(f"{root}/stocks")
    newer = spark.createDataFrame([("B", 3.0, 2)], schema)
    newer.write.format("hudi").options(**options).mode("append").save(f"{root}/stocks")
    found = {"rows": seen(spark.sql("select symbol, price, ts from stocks"))}
    spark.sql("DROP TABLE stocks")
    return found
