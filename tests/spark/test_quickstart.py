"""The PySpark steps of Apache Hudi's quick-start guides, in their order and with their options, under the alias `hudi`.

What a job for Apache Hudi changes is the line with the jar, and `enable`. Where the older guide takes rows from a generator in
the jar, rows of the same columns stand here. What differs is in docs/SPARK.md, "Jobs written for Apache Hudi".
"""

import json
from functools import reduce

import pytest
from pyspark.sql.functions import col, lit

import pyspark_hoodie
from hoodie.errors import InstantNotFoundError
from tests.effort import long_but

pytestmark = pytest.mark.spark

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
COLUMNS = ["ts", "uuid", "rider", "driver", "fare", "city"]
DATA = [
    (1001, "u1", "rider-A", "driver-K", 19.5, "rome"),
    (1002, "u2", "rider-B", "driver-L", 27.5, "rome"),
    (1003, "u3", "rider-C", "driver-M", 33.5, "rome"),
    (1004, "u4", "rider-D", "driver-N", 34.5, "oslo"),
    (1005, "u5", "rider-E", "driver-O", 17.5, "bern"),
]
META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]


@pytest.fixture
def hudi(spark):
    pyspark_hoodie.enable(spark, aliases=("hudi",))
    yield spark
    pyspark_hoodie.disable()


def fares(spark, base):
    spark.read.format("hudi").load(base).createOrReplaceTempView("trips_table")
    return {row["rider"]: row["fare"] for row in spark.sql("SELECT rider, fare FROM trips_table").collect()}


@pytest.mark.parametrize("table_type", long_but(["COPY_ON_WRITE"], TYPES))
def test_the_guide_of_1_x_on_a_table_without_keys(hudi, tmp_path, table_type):
    spark, base = hudi, f"file://{tmp_path}/trips_table"
    options = {
        "hoodie.table.name": "trips_table",
        "hoodie.datasource.write.partitionpath.field": "city",
        **({} if table_type == TYPES[0] else {"hoodie.datasource.write.table.type": table_type}),
    }
    inserts = spark.createDataFrame(DATA).toDF(*COLUMNS)
    inserts.write.format("hudi").options(**options).mode("overwrite").save(base)
    first = {row[2]: row[4] for row in DATA}
    assert fares(spark, base) == first
    assert spark.sql("SELECT uuid, fare, ts, rider, driver, city FROM trips_table WHERE fare > 20.0").count() == 3
    told = spark.sql("SELECT _hoodie_commit_time, _hoodie_record_key, _hoodie_partition_path, fare FROM trips_table")
    assert {row["_hoodie_partition_path"] for row in told.collect()} == {"rome", "oslo", "bern"}

    # update: rows that were read come back under the keys that they have
    updates = spark.read.format("hudi").load(base).filter("rider == 'rider-C'").withColumn("fare", col("fare") * 10)
    updates.write.format("hudi").options(**options).mode("append").save(base)
    assert fares(spark, base) == {**first, "rider-C": 335.0}
    assert spark.read.format("hudi").load(base).count() == 5

    # delete
    deletes = spark.read.format("hudi").load(base).filter("rider == 'rider-D'")
    deletes.write.format("hudi").options(**options, **{"hoodie.datasource.write.operation": "delete"}).mode(
        "append"
    ).save(base)
    now = {rider: fare for rider, fare in {**first, "rider-C": 335.0}.items() if rider != "rider-D"}
    assert fares(spark, base) == now

    # time travel, in the three forms
    commits = [each.instant for each in pyspark_hoodie.HoodieTable.for_path(spark, base).history()]
    at = commits[0]
    spelled = f"{at[:4]}-{at[4:6]}-{at[6:8]} {at[8:10]}:{at[10:12]}:{at[12:14]}.{at[14:]}"
    for instant in (at, spelled):
        assert spark.read.format("hudi").option("as.of.instant", instant).load(base).count() == 5
    assert spark.read.format("hudi").option("as.of.instant", "2999-01-01").load(base).count() == 4
    with pytest.raises(InstantNotFoundError):  # differs: a day before the table was made
        spark.read.format("hudi").option("as.of.instant", "2021-07-28").load(base)

    # incremental
    spark.read.format("hudi").load(base).createOrReplaceTempView("trips_table")
    times = "SELECT DISTINCT(_hoodie_commit_time) AS commitTime FROM trips_table ORDER BY commitTime"
    found = [row[0] for row in spark.sql(times).limit(50).collect()]
    begin = found[len(found) - 2]
    pull = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    spark.read.format("hudi").options(**pull).load(base).createOrReplaceTempView("trips_incremental")
    assert [row[:] for row in spark.sql("SELECT rider, fare FROM trips_incremental WHERE fare > 20.0").collect()] == [
        ("rider-C", 335.0)
    ]


@pytest.mark.parametrize("table_type", TYPES)
def test_the_guide_of_1_x_on_changes_keys_and_ordering(hudi, tmp_path, table_type):
    spark, base = hudi, f"file://{tmp_path}/trips_table"
    inserts = spark.createDataFrame(DATA).toDF(*COLUMNS)
    options = {
        "hoodie.table.name": "trips_table",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.datasource.write.table.type": table_type,
    }
    inserts.write.format("hudi").options(**options).mode("overwrite").save(base)
    updates = spark.read.format("hudi").load(base).filter("rider == 'rider-A' or rider == 'rider-B'")
    updates.withColumn("fare", col("fare") * 10).write.format("hudi").mode("append").save(base)
    cdc = {
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": 0,
    }
    rows = spark.read.format("hudi").options(**cdc).load(base).collect()
    updated = [
        (json.loads(row["before"])["fare"], json.loads(row["after"])["fare"]) for row in rows if row["op"] == "u"
    ]
    assert (len(rows), sorted(updated)) == (7, [(19.5, 195.0), (27.5, 275.0)])

    keyed = f"file://{tmp_path}/keyed"
    with_key = {
        "hoodie.table.name": "keyed",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.table.ordering.fields": "ts",
    }
    inserts.write.format("hudi").options(**with_key).mode("overwrite").save(keyed)
    upserts = inserts.withColumn("fare", lit(1.0)).withColumn("ts", lit(1003))
    upserts.write.format("hudi").options(**with_key).mode("append").save(keyed)
    late = {row[2]: row[4] for row in DATA if row[0] > 1003}
    assert fares(spark, keyed) == {**{row[2]: 1.0 for row in DATA}, **late}


PARTITIONS = ("americas/united_states/san_francisco", "americas/brazil/sao_paulo", "asia/india/chennai")


def generated(spark, ts, count=9):
    """Rows as the guide's generator makes them: JSON texts of trips."""
    texts = [
        json.dumps(
            {
                "uuid": f"u{n}",
                "partitionpath": PARTITIONS[n % 3],
                "ts": ts,
                "rider": f"rider-{ts}",
                "driver": f"driver-{ts}",
                "fare": 10.0 * n,
                "begin_lat": 0.1,
                "begin_lon": 0.2,
                "end_lat": 0.3,
                "end_lon": 0.4,
            }
        )
        for n in range(count)
    ]
    return spark.read.json(spark.sparkContext.parallelize(texts, 2))


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], TYPES))
def test_the_guide_of_0_x(hudi, tmp_path, table_type):
    spark, base = hudi, f"file://{tmp_path}/hudi_trips"
    options = {
        "hoodie.table.name": "hudi_trips",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.partitionpath.field": "partitionpath",
        "hoodie.datasource.write.table.name": "hudi_trips",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.insert.shuffle.parallelism": 2,
        "hoodie.datasource.write.table.type": table_type,
    }
    generated(spark, 1).write.format("hudi").options(**options).mode("overwrite").save(base)
    generated(spark, 2, 6).write.format("hudi").options(**options).mode("append").save(base)

    def view(path=base, **more):
        spark.read.format("hudi").options(**more).load(path).createOrReplaceTempView("hudi_trips_snapshot")
        return spark.sql("select rider, count(*) from hudi_trips_snapshot group by rider order by rider").collect()

    assert view() == [("rider-1", 3), ("rider-2", 6)]
    assert view(base + "/*/*/*/*") == view()  # guides before 0.9 name the files of all partitions
    times = "select distinct(_hoodie_commit_time) as commitTime from hudi_trips_snapshot order by commitTime"
    commits = [row[0] for row in spark.sql(times).limit(50).collect()]
    pull = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": commits[-2]}
    assert view(**pull) == [("rider-2", 6)]
    point = {**pull, "hoodie.datasource.read.begin.instanttime": "000"}
    assert view(**point, **{"hoodie.datasource.read.end.instanttime": commits[-2]}) == [("rider-1", 9)]

    # soft deletes: all but key, partition and ordering become null
    view()
    two = spark.sql("select * from hudi_trips_snapshot").limit(2)
    emptied = [(field.name, field.dataType) for field in two.schema.fields]
    emptied = [each for each in emptied if each[0] not in [*META, "ts", "uuid", "partitionpath"]]
    soft = reduce(
        lambda df, each: df.withColumn(each[0], lit(None).cast(each[1])),
        emptied,
        reduce(lambda df, name: df.drop(name), META, two),
    )
    soft.write.format("hudi").options(**options).mode("append").save(base)
    assert view()[0] == (None, 2)

    # hard deletes, with an ordering value that is none
    keys = [
        (row[0], row[1]) for row in spark.sql("select uuid, partitionpath from hudi_trips_snapshot").limit(2).collect()
    ]
    hard = spark.sparkContext.parallelize(keys).toDF(["uuid", "partitionpath"]).withColumn("ts", lit(0.0))
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    hard.write.format("hudi").options(**delete).mode("append").save(base)
    view()
    assert spark.sql("select uuid, partitionpath from hudi_trips_snapshot").count() == 7

    # insert_overwrite replaces the partitions that the rows are in
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    fresh = generated(spark, 5).filter(f"partitionpath = '{PARTITIONS[0]}'")
    fresh.write.format("hudi").options(**overwrite).mode("append").save(base)
    view()
    counted = spark.sql(
        f"select count(*) from hudi_trips_snapshot where partitionpath = '{PARTITIONS[0]}' and rider = 'rider-5'"
    )
    assert counted.first()[0] == 3

    bulk = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
    generated(spark, 6, 1).withColumn("uuid", lit("new")).write.format("hudi").options(**bulk).mode("append").save(base)
    assert ("rider-6", 1) in view()
