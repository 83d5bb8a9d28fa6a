"""Tables in an object store that Spark itself has no file system for."""

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import pyspark_hoodie
from hoodie.errors import HoodieError
from hoodie.storage.uri import open_storage
from pyspark_hoodie.reach import session_settings, split_options
from tests.effort import long_but
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark


@pytest.fixture
def server():
    from tests.servers.s3 import shared_moto  # noqa: PLC0415 - environments of smoke tests alone have no moto

    return shared_moto()


@pytest.fixture
def uri(server, monkeypatch):
    for name, value in server.options.items():
        monkeypatch.setenv(name.upper(), value)
    return server.new_uri()


def lifecycle(spark, uri, options):
    """Written twice, and read in each view with these options."""
    written = options_of(hoodie_table_name="t", hoodie_datasource_write_table_type="MERGE_ON_READ") | options
    first = spark.range(300).select("id", F.concat(F.lit("p"), F.col("id") % 3).alias("part"), F.lit(1).alias("ts"))
    first.write.format("hoodie").options(**written).mode("append").save(uri)
    first.where("id < 50").withColumn("ts", F.lit(2)).write.format("hoodie").options(**written).mode("append").save(uri)
    read = spark.read.format("hoodie").options(**options).load(uri)
    assert (read.count(), read.where("ts = 2").count()) == (300, 50)
    return read


@pytest.mark.parametrize("with_enable", long_but([True], [True, False]))
def test_options_say_how_to_reach_the_store_and_show_nowhere(spark, server, with_enable, capsys):
    if with_enable:
        pyspark_hoodie.enable(spark)
    uri = server.new_uri()
    options = {**server.options, "aws_secret_access_key": "a-secret-of-mine"}
    try:
        read = lifecycle(spark, uri, options)
    finally:
        pyspark_hoodie.disable()
    read.explain(extended=True)
    shown = capsys.readouterr().out
    assert "== Physical Plan ==" in shown
    assert "a-secret" not in shown
    stored = open_storage(uri, server.options)
    assert not any(b"a-secret" in stored.read(f.path) for f in stored.list("", recursive=True) if not f.is_folder)
    sink = pyspark_hoodie.stream_writer(uri, options_of() | options)
    assert "a-secret" not in repr(sink)
    table = pyspark_hoodie.HoodieTable.for_path(spark, uri, options)
    assert "a-secret" not in repr(table)
    assert table.delete(spark.sql("select 1L as id, 'p1' as part, 3 as ts")).deleted == 1
    assert pyspark_hoodie.last_commit(uri, options).deleted == 1


def test_a_stream_reaches_it_by_options(enabled, server, tmp_path):
    source, uri = server.new_uri(), server.new_uri()
    lifecycle(enabled, source, server.options)
    stream = enabled.readStream.format("hoodie").options(**server.options).load(source).select("id", "part", "ts")
    written = stream.writeStream.format("hoodie").options(**options_of(hoodie_table_name="t"), **server.options)
    query = written.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start(uri)
    query.awaitTermination(120)
    assert enabled.read.format("hoodie").options(**server.options).load(uri).count() == 300


def test_the_session_says_it_by_the_names_of_s3a(enabled, server):
    uri = server.new_uri()
    bucket = uri.partition("://")[2].partition("/")[0]
    said = {
        "fs.s3a.access.key": server.options["aws_access_key_id"],
        "fs.s3a.secret.key": "of another bucket",
        f"fs.s3a.bucket.{bucket}.secret.key": server.options["aws_secret_access_key"],
        "fs.s3a.endpoint": server.endpoint.partition("://")[2],
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "eu-west-1",
    }
    hadoop = enabled.sparkContext._jsc.hadoopConfiguration()
    for name, value in said.items():
        hadoop.set(name, value)
    try:
        lifecycle(enabled, uri, {})
        assert pyspark_hoodie.HoodieTable.is_table(enabled, uri)
    finally:
        for name in said:
            hadoop.unset(name)
    with pytest.raises(HoodieError):
        enabled.read.format("hoodie").options(**server.options, aws_endpiont="http://x").load(uri).count()


def test_files_that_a_queue_announces_are_reached_as_the_session_says(enabled, tmp_path, with_s3a):
    from tests.ingestion.queues import Queue, rows_of  # noqa: PLC0415 - needs moto

    queue, table = Queue(), str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})
    reach = {"access.key": "aws_access_key_id", "secret.key": "aws_secret_access_key", "endpoint": "aws_endpoint"}
    with_s3a({f"fs.s3a.{name}": queue.options.pop(ours) for name, ours in reach.items()})
    with_s3a({"fs.s3a.endpoint.region": "us-east-1"})
    options = {key: value for key, value in queue.options.items() if key.startswith("hoodie.")}
    assert pyspark_hoodie.ingest(enabled, queue.url, table, record_key="id", source_options=options).rows == 1
    assert (rows_of(table), queue.left()) == ([(1, 1)], (0, 0))


@pytest.fixture
def with_s3a(enabled):
    """A session with settings of Hadoop, and a class for S3A, which is not among Spark's jars: nothing may be read through it."""
    hadoop = enabled.sparkContext._jsc.hadoopConfiguration()
    said = []

    def say(settings):
        for name, value in settings.items():
            hadoop.set(name, value)
            said.append(name)

    say({"fs.s3a.impl": "org.apache.hadoop.fs.RawLocalFileSystem"})
    yield say
    for name in said:
        hadoop.unset(name)


def read_by(table, **asked):
    (line,) = [line for line in table.explain(**asked).splitlines() if "read by: " in line]
    return line.partition("read by: ")[2]


def test_s3a_is_not_asked_for_what_only_options_of_the_read_open(enabled, server, with_s3a):
    uri = server.new_uri()
    lifecycle(enabled, uri, server.options)
    for address in (uri, uri.replace("s3://", "s3a://")):
        assert lifecycle(enabled, address, server.options).count() == 300
        table = pyspark_hoodie.HoodieTable.for_path(enabled, address, server.options)
        assert read_by(table).startswith("tasks of hoodie, in parallel: the session's Hadoop settings do not say how")
    with_s3a(
        {
            "fs.s3a.access.key": server.options["aws_access_key_id"],
            "fs.s3a.secret.key": server.options["aws_secret_access_key"],
            "fs.s3a.endpoint": server.endpoint,
        }
    )
    told = pyspark_hoodie.HoodieTable.for_path(enabled, uri, server.options)
    assert read_by(told, query="read_optimized") == "Spark's own Parquet scan of 3 files"
    other = pyspark_hoodie.HoodieTable.for_path(enabled, uri, {"aws_access_key_id": "another"})
    assert read_by(other).startswith("tasks of hoodie")


def test_explain_says_who_reads_and_why(enabled, server, tmp_path):
    uri = server.new_uri()
    lifecycle(enabled, uri, server.options)
    table = pyspark_hoodie.HoodieTable.for_path(enabled, uri, server.options)
    assert read_by(table) == "tasks of hoodie, in parallel: Spark has no file system for s3://"
    lifecycle(enabled, str(tmp_path / "t"), {})
    local = pyspark_hoodie.HoodieTable.for_path(enabled, str(tmp_path / "t"))
    assert read_by(local, query="read_optimized") == "Spark's own Parquet scan of 3 files"
    assert read_by(local, where="part = 'p9'") == "nothing to read"
    assert (
        read_by(local, where=pc.field("ts") == 1)
        == "tasks of hoodie, in parallel: Spark's scan takes no filter of Arrow"
    )


def test_s3_and_s3a_name_one_table(enabled, uri):
    twin = uri.replace("s3://", "s3a://")
    assert open_storage(uri).identity == open_storage(twin).identity
    lifecycle(enabled, uri, {})
    more = enabled.sql("select 900L as id, 'p1' as part, 3 as ts")
    assert pyspark_hoodie.HoodieTable.for_path(enabled, twin).upsert(more).inserted == 1
    for address in (uri, twin):
        assert enabled.read.format("hoodie").load(address).count() == 301
        assert pyspark_hoodie.last_commit(address).inserted == 1


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_and_every_read(enabled, uri, table_type):
    options = options_of(hoodie_datasource_write_table_type=table_type, hoodie_table_name="t")
    first = enabled.range(300).select("id", F.concat(F.lit("p"), F.col("id") % 3).alias("part"), F.lit(1).alias("ts"))
    first.write.format("hoodie").options(**options).mode("append").save(uri)
    first.where("id < 50").withColumn("ts", F.lit(2)).write.format("hoodie").options(**options).mode("append").save(uri)
    read = enabled.read.format("hoodie").load(uri)
    assert (read.count(), read.where("ts = 2").count(), read.where("part = 'p1'").count()) == (300, 50, 100)
    optimized = enabled.read.format("hoodie").option("hoodie.datasource.query.type", "read_optimized").load(uri)
    assert optimized.where("ts = 1").count() == (300 if table_type == "MERGE_ON_READ" else 250)
    pulled = (
        enabled.read.format("hoodie")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", "000")
        .load(uri)
    )
    assert pulled.count() == 300


AZURE = {
    "fs.azure.account.key.lake.dfs.core.windows.net": "YSBrZXk=",
    "fs.azure.account.oauth2.client.id": "an id",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/a-tenant/oauth2/token",
}


@pytest.mark.parametrize(
    ("path", "said", "options"),
    [
        ("s3://b/t", {}, {}),
        ("s3a://b/t", {"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.session.token": "t"}, {"aws_session_token": "t"}),
        ("s3://b/t", {"fs.s3a.endpoint": "minio:9000"}, {"aws_endpoint": "https://minio:9000"}),
        ("s3://b/t", {"fs.s3a.endpoint": "http://minio"}, {"aws_endpoint": "http://minio"}),
        ("s3://b/t", {"fs.s3a.access.key": "all", "fs.s3a.bucket.b.access.key": "b"}, {"aws_access_key_id": "b"}),
        (
            "s3://b/t",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"aws_skip_signature": "true"},
        ),
        ("gs://b/t", {"fs.gs.auth.service.account.json.keyfile": "/k"}, {"google_service_account": "/k"}),
        (
            "abfss://files@lake.dfs.core.windows.net/t",
            AZURE,
            {
                "azure_storage_account_name": "lake",
                "azure_storage_account_key": "YSBrZXk=",
                "azure_client_id": "an id",
                "azure_tenant_id": "a-tenant",
            },
        ),
        ("abfss://files@other.dfs.core.windows.net/t", {"fs.azure.account.key.lake.dfs.core.windows.net": "k"}, {}),
        ("/data/t", {"fs.s3a.access.key": "k"}, {}),
        ("hdfs:///t", {"fs.defaultFS": "hdfs://name:8020"}, {"fs.defaultfs": "hdfs://name:8020"}),
        ("hdfs:///t", {"fs.defaultFS": "file:///"}, {}),  # what Hadoop says where nobody set it
        ("hdfs://other:8020/t", {"fs.defaultFS": "hdfs://name:8020"}, {}),
    ],
)
def test_what_hadoop_is_told_and_what_it_is_called_here(path, said, options):
    assert session_settings(path.partition("://")[0] if "://" in path else None, path, said.get) == options
    if path.startswith("abfss"):
        open_storage(path, options)  # obstore knows these names


def test_options_of_the_storage_are_told_apart_by_how_they_begin():
    given = {"AWS_Region": "r", "azure_account_key": "k", "hoodie.table.name": "t"}
    rest = {"azure_account_key": "k", "hoodie.table.name": "t"}
    assert split_options("s3a", given) == ({"aws_region": "r"}, rest)
    assert split_options(None, given) == ({}, given)
    assert split_options("hdfs", {"dfs.replication": "1", "path": "p"}) == ({"dfs.replication": "1"}, {"path": "p"})
