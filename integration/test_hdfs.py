"""Tables on a real HDFS: a NameNode and a DataNode."""

from __future__ import annotations

import errno
import os
import pickle
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hdfs_native import Client

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import StorageFullError
from hoodie.model.names import heartbeat_path, parse_log_file
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.uri import open_storage
from integration.hudi_client import ROOT, HudiPeer
from tests.effort import HUNG_S
from tests.servers.hdfs import Hdfs


@pytest.fixture
def place(hdfs_server: Hdfs) -> str:
    """The address of a table that is not there yet."""
    return f"{hdfs_server.uri}/tables/{secrets.token_hex(8)}/t"


@pytest.fixture
def storage(place: str) -> HdfsStorage:
    opened = open_storage(place)
    assert isinstance(opened, HdfsStorage)
    return opened


def path_in(storage: HdfsStorage, path: str) -> str:
    return "/" + storage.uri.split("/", 3)[3] + "/" + path


# -- the storage


def test_a_pickled_storage_is_the_same_one(storage: HdfsStorage) -> None:
    storage.create_new("f", b"1")
    other = pickle.loads(pickle.dumps(storage))
    assert (other.identity, other.read("f")) == (storage.identity, b"1")


def test_settings_reach_the_client_and_are_not_shown(hdfs_server: Hdfs) -> None:
    authority = hdfs_server.uri.removeprefix("hdfs://")
    storage = open_storage(
        "hdfs://cluster/tables/ns",
        {
            "dfs.nameservices": "cluster",
            "dfs.ha.namenodes.cluster": "a",
            "dfs.namenode.rpc-address.cluster.a": authority,
        },
    )
    storage.create_new("f", b"1")
    assert open_storage(f"{hdfs_server.uri}/tables/ns").read("f") == b"1"
    assert repr(storage) == "HdfsStorage('hdfs://cluster/tables/ns')"


def test_a_large_file_is_read_in_ranges(storage: HdfsStorage) -> None:
    data = os.urandom(9 << 20)
    with storage.open_output("f") as stream:
        for at in range(0, len(data), 100_000):
            stream.write(data[at : at + 100_000])
    with storage.open_input("f") as source:
        assert source.size() == len(data)
        source.seek(8 << 20)
        assert source.read(10) == data[8 << 20 :][:10]
        source.seek(0)
        assert source.read() == data


def test_a_name_with_a_colon_is_refused_in_one_sentence(storage: HdfsStorage) -> None:
    with pytest.raises(OSError, match="a ':' is not possible") as caught:
        storage.create_new("a:b", b"")
    assert "\n" not in str(caught.value)


def test_a_file_that_a_writer_holds_open_is_not_taken_for_a_shorter_one(storage: HdfsStorage) -> None:
    storage.create_new("log", b"committed")
    writer = Client(storage.uri).append(path_in(storage, "log"))
    try:
        with pytest.raises(OSError, match="0 of its 9 bytes can be read") as caught:
            storage.read("log")
        assert caught.value.errno == errno.EBUSY
    finally:
        writer.close()
    assert storage.read("log") == b"committed"


KILLED_IN_A_WRITE = """
import os, sys
from hoodie.storage.uri import open_storage
with open_storage(sys.argv[1]).open_output("staging/T/f") as stream:
    stream.write(bytes(3 << 20))
    print("writes", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_held_open_is_renamed_and_deleted_at_once(storage: HdfsStorage) -> None:
    with started(KILLED_IN_A_WRITE, storage.uri) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        process.send_signal(signal.SIGKILL)
    storage.rename_folder("staging/T", "staging/T.rolled-back")
    storage.move_new("staging/T.rolled-back/f", "aside")
    storage.delete("aside")
    storage.delete_folder("staging")
    assert not storage.exists("staging")


def started(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
    )


def test_permission_denied_is_a_permission_error_that_says_why(storage: HdfsStorage) -> None:
    storage.mkdirs("closed")
    Client(storage.uri).set_permission(path_in(storage, "closed"), 0o555)
    program = (
        "import sys\nfrom hoodie.storage.uri import open_storage\n"
        "try:\n    open_storage(sys.argv[1]).create_new('closed/f', b'1')\n"
        "except PermissionError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, storage.uri],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HADOOP_USER_NAME": "somebody"},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=True,
        cwd=ROOT,
    )
    assert "somebody" in run.stdout
    assert run.stdout.count("\n") == 1


def test_a_full_quota_and_safe_mode_are_said_plainly(hdfs_server: Hdfs, storage: HdfsStorage) -> None:
    storage.mkdirs("full")
    hdfs_server.admin("-setQuota", "1", path_in(storage, "full"))
    with pytest.raises(OSError, match="the quota of HDFS is used up"):
        storage.touch("full/f")
    hdfs_server.admin("-safemode", "enter")
    try:
        with pytest.raises(OSError, match="the NameNode is in safe mode") as caught:
            storage.touch("f")
        assert caught.value.errno == errno.EROFS
    finally:
        hdfs_server.admin("-safemode", "leave")


def test_a_cluster_that_is_not_there_is_one_error() -> None:
    quick = {"dfs.client.failover.max.attempts": "1", "dfs.client.failover.sleep.base.millis": "10"}
    with pytest.raises((OSError, hoodie.HoodieError), match=r"127\.0\.0\.1:1/t") as caught:
        hoodie.is_table("hdfs://127.0.0.1:1/t", storage_options=quick)
    assert len(str(caught.value).splitlines()) == 1


# -- tables

CREATE = {"record_key": "id", "partition_by": "part", "ordering": "ts", "table_type": "MERGE_ON_READ"}


def rows(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {"id": [*ids], "part": [f"p{n % 2}" for n in ids], "ts": [ts] * len(ids), "v": [ts * n for n in ids]}
    )


def seen(scan: hoodie.Scan) -> list[dict[str, object]]:
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def test_a_table_gives_the_answers_of_one_on_a_disk(place: str, tmp_path: Path) -> None:
    answers = []
    for path in (place, str(tmp_path / "t")):
        table = hoodie.create_table(path, rows(range(1), 0).schema, **CREATE)
        first = table.upsert(rows(range(40), 1)).instant
        table.upsert(rows(range(30, 50), 2))
        table.delete(rows(range(5), 3))
        found = [seen(table.scan()), seen(table.scan(query="read_optimized")), seen(table.changes(first))]
        table.compact()
        table.upsert(rows(range(48, 60), 4))
        table = hoodie.open_table(path)
        found += [seen(table.scan()), seen(table.scan(where="id > 45")), seen(table.scan(as_of=first))]
        answers.append(found)
    assert answers[0] == answers[1]


KILLED_AT = """
import os, signal, sys
import hoodie
import pyarrow as pa
from hoodie.errors import StorageFullError
from hoodie.storage.hdfs import HdfsStorage

def die(*args, **kwargs):
    if sys.argv[3] in str(args[1:]):
        os.kill(os.getpid(), signal.SIGKILL)
    return honest(*args, **kwargs)

honest = getattr(HdfsStorage, sys.argv[2])
setattr(HdfsStorage, sys.argv[2], die)
hoodie.open_table(sys.argv[1]).upsert(pa.table({"id": [3, 70], "part": ["p1", "p0"], "ts": [9, 9], "v": [0, 0]}))
"""


@pytest.mark.parametrize(
    ("call", "path"),
    [("_create", "staging/"), ("_rename", "/t/p0/"), ("_rename", ".deltacommit'")],
    ids=["as it stages", "as it publishes", "as it completes"],
)
def test_a_writer_that_is_killed_is_rolled_back_by_the_next(place: str, call: str, path: str) -> None:
    table = hoodie.create_table(place, rows(range(1), 0).schema, **CREATE)
    table.upsert(rows(range(10), 1))
    before = seen(table.scan())
    with started(KILLED_AT, place, call, path) as process:
        assert process.wait(120) == -signal.SIGKILL
    table = hoodie.open_table(place)
    assert seen(table.scan()) == before
    table.upsert(rows(range(10, 12), 2))
    assert seen(table.scan()) == before + rows(range(10, 12), 2).to_pylist()
    assert not open_storage(place).exists(".hoodie/.hoodie_py/staging") or not [
        info for info in open_storage(place).list(".hoodie/.hoodie_py/staging") if info.is_folder
    ]


HOLDS_OPEN = """
import sys
from hdfs_native import Client, WriteOptions
writer = Client(sys.argv[1]).create(sys.argv[2], WriteOptions(create_parent=False, overwrite=False))
writer.write(sys.stdin.buffer.read(int(sys.argv[3])))
writer.hsync()
print("holds", flush=True)
sys.stdin.read()
"""


def test_a_log_that_another_program_holds_open_stops_no_query_and_when_it_is_dead_the_next_write_closes_it(
    storage: HdfsStorage,
) -> None:
    table = hoodie.create_table(storage.uri, rows(range(1), 0).schema, **CREATE)
    first = table.upsert(rows(range(20), 1)).instant
    second = table.upsert(rows(range(15, 20), 2), {"hoodie.python.mor.row.copies": False}).instant
    before, pulled = seen(table.scan()), seen(table.changes(first))
    instant = str(int(str(second)) + 1)
    (log,) = [info.path for info in storage.list("p0") if parse_log_file(info.name)]
    block = storage.read(log).replace(str(second).encode(), instant.encode())
    held = log.replace(".log.1_", ".log.2_")
    for state in ("requested", "inflight"):
        storage.create_new(f".hoodie/{instant}.deltacommit.{state}", b"")
    storage.touch(heartbeat_path(instant))
    with started(HOLDS_OPEN, storage.uri, path_in(storage, held), str(len(block))) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.buffer.write(block)
        process.stdin.flush()
        assert process.stdout.readline() == "holds\n"
        table = hoodie.open_table(storage.uri)
        assert seen(table.scan()) == before
        assert seen(table.changes(first, second)) == pulled
        with pytest.raises(hoodie.CommitConflictError, match=instant):
            table.upsert(rows(range(15, 20), 3))
        process.send_signal(signal.SIGKILL)
    storage.delete(heartbeat_path(instant))
    table.upsert(rows(range(16, 17), 4))
    assert storage.read(held) == block
    expected = {int(str(row["id"])): row for row in before} | {16: rows(range(16, 17), 4).to_pylist()[0]}
    assert seen(table.scan()) == [*expected.values()]
    table.compact()
    assert seen(table.scan()) == [*expected.values()]


# -- Apache Hudi


def test_apache_hudi_and_hoodie_read_and_write_one_table_on_hdfs_in_turns(hudi: HudiPeer, place: str) -> None:
    table = hoodie.create_table(place, rows(range(1), 0).schema, **CREATE)
    table.upsert(rows(range(20), 1))
    table.upsert(rows(range(15, 25), 2))
    assert as_hudi_sees(hudi, place) == seen(table.scan())
    hudi.write(place, rows(range(24, 30), 3), HUDI_WRITE)
    table = hoodie.open_table(place)
    assert len(seen(table.scan())) == 30
    assert as_hudi_sees(hudi, place) == seen(table.scan())
    table.delete(rows(range(3), 4))
    assert as_hudi_sees(hudi, place) == seen(table.scan())


def test_a_table_that_apache_hudi_made_on_hdfs_is_read(hudi: HudiPeer, place: str) -> None:
    hudi.write(place, rows(range(20), 1), HUDI_WRITE, mode="overwrite")
    hudi.write(place, rows(range(10, 25), 2), HUDI_WRITE)
    assert seen(hoodie.open_table(place).scan()) == as_hudi_sees(hudi, place)


HUDI_WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
}


def as_hudi_sees(hudi: HudiPeer, place: str) -> list[dict[str, object]]:
    found = hudi.read(place).table.select(["id", "part", "ts", "v"])
    return sorted(found.to_pylist(), key=lambda row: int(row["id"]))


SPARK_JOB = """
import sys
from pyspark.sql import SparkSession
import pyspark_hoodie

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
pyspark_hoodie.enable(spark)
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
rows = spark.range(1000).selectExpr("id", "concat('p', id % 3) part", "1 ts", "id * 2 v")
for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
    uri = f"{sys.argv[1]}/{kind}"
    how = {**options, "hoodie.datasource.write.table.type": kind}
    for batch in (rows, rows.where("id < 100").withColumn("ts", rows.ts + 1)):
        batch.write.format("hoodie").options(**how).mode("append").save(uri)
    read = spark.read.format("hoodie").load(uri)
    plan = read._jdf.queryExecution().executedPlan().toString()
    print("SAID", read.count(), read.where("ts = 2").count(), read.agg({"v": "sum"}).first()[0], "FileScan parquet" in plan)
"""


def test_spark_upserts_and_scans_the_files_by_its_own_reader(place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPARK_JOB, place],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/spark_ext", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert said == [["1000", "100", "999000", "True"]] * 2, done.stderr[-3000:]


PLACES = """
import sys
from functools import partial
from pyspark.sql import SparkSession
import pyspark_hoodie
import pyspark_hoodie.hosts
from hoodie.filegroup.run import run_read

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
table = pyspark_hoodie.HoodieTable.for_path(spark, sys.argv[1])
table.upsert(spark.range(100).selectExpr("id", "id % 2 part", "9 ts", "-id v"))
plan, context = table._core.scan().plan, table._context
for least in (1, 1 << 30):
    pyspark_hoodie.hosts.LEAST_BYTES = least
    read = context.engine.read(partial(run_read, context.storage, plan.context), plan.tasks, plan.output)
    partitions = read._jdf.queryExecution().toRdd()
    places = [str(spark._jsc.sc().getPreferredLocs(partitions, at)) for at in range(partitions.getNumPartitions())]
    print("SAID", len(places), *sorted(set(places)), read.count(), read.agg({"v": "sum"}).first()[0], table.read().count())
"""


def test_tasks_are_to_run_where_the_blocks_of_their_files_are(place: str) -> None:
    table = hoodie.create_table(place, record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ")
    table.upsert(
        pa.table({"id": range(1000), "part": [n % 2 for n in range(1000)], "ts": [1] * 1000, "v": range(1000)})
    )
    done = subprocess.run(
        [sys.executable, "-c", PLACES, place],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/spark_ext", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SAID")]
    found = ["1000", str(sum(range(1000)) - 2 * sum(range(100))), "1000"]
    assert said == [["2", "List(127.0.0.1)", *found], ["1", "List()", *found]], done.stderr[-3000:]


# -- the default file system


DEFAULT_JOB = """
import sys
from pyspark.sql import SparkSession
import pyspark_hoodie

kind, path, *enabled = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
if enabled:
    builder = builder.config("spark.hadoop.fs.defaultFS", enabled[0])
spark = builder.getOrCreate()
if enabled:
    pyspark_hoodie.enable(spark)
options = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": kind,
    "hoodie.python.driver.max.bytes": "0",
}
rows = spark.range(1000).selectExpr("id", "1 ts", "id * 2 v")
for batch in (rows, rows.where("id < 100").withColumn("ts", rows.ts + 1)):
    batch.write.format("hoodie").options(**options).mode("append").save(path)
if enabled:
    assert pyspark_hoodie.HoodieTable.is_table(spark, path)
    assert pyspark_hoodie.last_commit(path).updated == 100
    assert pyspark_hoodie.HoodieTable.for_path(spark, path).compact()
read = spark.read.format("hoodie").load(path)
plan = read._jdf.queryExecution().executedPlan().toString()
print("SAID", read.count(), read.where("ts = 2").count(), read.agg({"v": "sum"}).first()[0], "FileScan parquet" in plan)
"""


@pytest.mark.parametrize("by", ["the session", "the files"])
def test_spark_opens_a_path_without_a_host_on_the_default_file_system(hdfs_server: Hdfs, place: str, by: str) -> None:
    path = "hdfs://" + place.removeprefix(hdfs_server.uri)
    environment = {name: value for name, value in os.environ.items() if name not in ("HADOOP_CONF_DIR", "HADOOP_HOME")}
    # Without `enable` a session is not seen, and the files of the environment count.
    enabled = by == "the session"
    if not enabled:
        environment["HADOOP_CONF_DIR"] = str(hdfs_server.configuration)
    kind, words = ("MERGE_ON_READ", [hdfs_server.uri]) if enabled else ("COPY_ON_WRITE", [])
    done = subprocess.run(
        [sys.executable, "-c", DEFAULT_JOB, kind, path, *words],
        env={**environment, "PYTHONPATH": f"{ROOT}:{ROOT}/spark_ext", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert said == [["1000", "100", "999000", str(enabled)]], done.stderr[-3000:]
    assert len(hoodie.open_table(place).scan().to_arrow()) == 1000


def test_python_and_the_command_line_open_a_path_without_a_host(
    hdfs_server: Hdfs, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "hdfs://" + place.removeprefix(hdfs_server.uri)
    default = {"fs.defaultFS": hdfs_server.uri}
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(hoodie.OptionError, match="HADOOP_CONF_DIR is not set"):
        hoodie.open_table(path)
    assert main(["show", path]) != 0
    assert "HADOOP_CONF_DIR is not set" in capsys.readouterr().err
    hoodie.create_table(path, rows(range(1), 0).schema, storage_options=default, **CREATE).upsert(rows(range(5), 1))
    assert main(["show", path, "-o", f"fs.defaultFS={hdfs_server.uri}"]) == 0
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs_server.configuration))
    assert hoodie.is_table(path)
    assert main(["show", path]) == 0
    assert (
        seen(hoodie.open_table(path).scan()) == seen(hoodie.open_table(place).scan()) == rows(range(5), 1).to_pylist()
    )


def rows_in(place: str) -> dict[int, int]:
    rows = hoodie.open_table(place).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))


@pytest.mark.parametrize("quota", ["-setSpaceQuota", "-setQuota"])
def test_a_quota_that_is_used_up_in_the_midst_of_writes_loses_nothing(
    hdfs_server: Hdfs, storage: HdfsStorage, place: str, quota: str
) -> None:
    table = hoodie.create_table(place, **CREATE)
    table.upsert(pa.table({"id": [1, 2], "part": ["a", "b"], "ts": [1, 1]}))
    folder = path_in(storage, "").rstrip("/")
    hdfs_server.admin(quota, "1" if quota == "-setSpaceQuota" else "12", folder)
    for turn in range(2, 20):
        try:
            table.upsert(pa.table({"id": [1, 2], "part": ["a", "b"], "ts": [turn, turn]}))
        except StorageFullError as error:
            refused = str(error)
            break
    assert "quota" in refused
    assert rows_in(place) == {1: turn - 1, 2: turn - 1}
    hdfs_server.admin(quota.replace("set", "clr"), folder)
    table.upsert(pa.table({"id": [1], "part": ["a"], "ts": [100]}))
    assert rows_in(place) == {1: 100, 2: turn - 1}
    assert not hoodie.open_table(place).timeline.pending()


def test_a_writer_without_the_right_to_write_is_told_so(storage: HdfsStorage, place: str) -> None:
    hoodie.create_table(place, **CREATE).upsert(pa.table({"id": [1], "part": ["a"], "ts": [1]}))
    program = (
        "import sys, hoodie, pyarrow as pa\n"
        "table = hoodie.open_table(sys.argv[1])\nprint(table.to_arrow().num_rows)\n"
        "try:\n    table.upsert(pa.table({'id': [1], 'part': ['a'], 'ts': [2]}))\n"
        "except hoodie.AccessDeniedError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, place],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HADOOP_USER_NAME": "somebody"},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    rows, message = run.stdout.splitlines()
    assert (rows, "somebody" in message) == ("1", True), message
    assert rows_in(place) == {1: 1}
