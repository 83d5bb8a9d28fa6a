"""A standalone Spark cluster of separate processes: the package shipped as users ship it, and processes killed in mid-write.

The workers' Python has no hoodie but what a job brings along. Each job costs many seconds, so most run with HOODIE_SOAK=1 only.
Left are one on a disk that all share, and one on S3.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.model.names import STAGING
from hoodie.storage.base import Storage
from hoodie.storage.local import LocalStorage
from hoodie.storage.uri import open_storage
from integration import rust_peer
from integration.cluster import (
    ROOT,
    STORES,
    Cluster,
    ClusterError,
    Submitted,
    built_wheel,
    opened_in,
    plain_environment,
    processes,
    waited,
)
from tests.effort import HUNG_S, SOAK
from tests.memory_tables import leftovers, stray_files
from tests.rows import Row, rows_of, without

soak = pytest.mark.skipif(not SOAK, reason="HOODIE_SOAK=1 runs it")
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
JOB = ROOT / "integration" / "cluster_job.py"
SAID = "STEP "
SPECULATION = {"spark.speculation": "true", "spark.speculation.interval": "100ms"}
Step = dict[str, Any]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of drivers and workers: without hoodie."""
    return plain_environment(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def zipped(wheel: Path) -> Path:
    """The wheel by another name: Spark takes .zip, .egg and .jar, not .whl."""
    return Path(shutil.copy(wheel, wheel.with_name("hoodie.zip")))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def brought(cluster: Cluster, zipped: Path, python: Path, tmp_path: Path) -> Callable[..., Any]:
    """Submits steps with the zipped wheel as --py-files."""
    numbers = count()

    @contextmanager
    def bring(
        steps: Sequence[Step], conf: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
    ) -> Iterator[Submitted]:
        file = tmp_path / f"steps{next(numbers)}.json"
        file.write_text(json.dumps(steps), encoding="utf-8")
        options = ["--py-files", str(zipped)]
        with cluster.submitted(
            JOB, str(file), python=python, options=options, conf=conf, environment=environment
        ) as job:
            yield job

    return bring


def answers(printed: str) -> list[Any]:
    return [json.loads(line.removeprefix(SAID)) for line in printed.splitlines() if line.startswith(SAID)]


# -- rows and what must come of them -----------------------------------------------------------------------------------


def batch(numbers: range, ts: int, *, long: bool = False) -> pa.Table:
    """A row for each number, over four partitions; `long` ones do not compress, so that writing them takes a while."""
    texts = [os.urandom(600).hex() if long else f"{number} at {ts}" for number in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": [f"p{number % 4}" for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "text": texts,
        }
    )


def options_of(kind: str, **more: str) -> dict[str, str]:
    """Nothing is done on the driver: the executors do it all."""
    return {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.python.driver.max.bytes": "0",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def created(path: Path, kind: str, rows: pa.Table) -> hoodie.HoodieTable:
    table = hoodie.create_table(
        str(path), rows.schema, record_key="id", partition_by="part", ordering="ts", table_type=kind
    )
    table.bulk_insert(rows)
    return table


def saved(rows: pa.Table, file: Path) -> str:
    pq.write_table(rows, file)
    return str(file)


def plain(table: pa.Table) -> list[Row]:
    """Rows without what differs from one writing of a table to the next: times, and names of files."""
    return without(rows_of(table), "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", "fresh")


def by_id(table: pa.Table) -> pa.Table:
    return table.select(["id", "part", "ts", "text"]).sort_by("id").combine_chunks()


def exact(path: Path, expected: pa.Table, *, commits: int) -> pa.Table:
    """The table has these rows, so many commits, and nothing that a writer left behind; gives the rows as stored."""
    table = hoodie.open_table(str(path))
    found = table.scan().to_arrow()
    assert by_id(found).equals(by_id(expected).cast(by_id(found).schema))
    assert len(table.timeline.commits) == commits
    assert not table.timeline.pending()
    storage = LocalStorage(path)
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []
    return found


# -- the same answers as the embedded engine ---------------------------------------------------------------------------

LOADED, CHANGED = batch(range(4000), 1), batch(range(3000, 4600), 2)
GONE, LATE = batch(range(0, 4000, 7), 3), batch(range(100, 900), 0)
LAST = batch(range(500, 5000, 3), 5)


def history_of(path: Path, kind: str, files: Path) -> list[Step]:
    def step(operation: str, rows: pa.Table, name: str) -> Step:
        said = {"hoodie.datasource.write.operation": operation}
        file = saved(rows, files / f"{name}.parquet")
        return {"do": "write", "path": str(path), "rows": file, "partitions": 3, "options": options_of(kind) | said}

    return [
        step("bulk_insert", LOADED, "loaded"),
        step("upsert", CHANGED, "changed"),
        step("delete", GONE, "gone"),
        step("upsert", LATE, "late"),
        *([{"do": "compact", "path": str(path)}] if kind == MOR else []),
        step("upsert", LAST, "last"),
    ]


def same_embedded(path: Path, kind: str) -> hoodie.HoodieTable:
    table = created(path, kind, LOADED)
    table.upsert(CHANGED)
    table.delete(GONE)
    table.upsert(LATE)
    if kind == MOR:
        table.compact()
    table.upsert(LAST)
    return table


VIEWS = {
    "snapshot": {},
    "read_optimized": {"hoodie.datasource.query.type": "read_optimized"},
    "incremental": {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "@1"},
    "as_of": {"as.of.instant": "@2"},
}


def views_of(path: Path, to: Path) -> list[Step]:
    """All reads; `@n` is the time of commit n."""
    return [
        {"do": "read", "path": str(path), "options": options, "to": str(to / name)} for name, options in VIEWS.items()
    ]


def embedded_view(table: hoodie.HoodieTable, name: str) -> pa.Table:
    times = [commit.time for commit in table.timeline.commits]
    scans = {
        "snapshot": lambda: table.scan(meta_columns=True),
        "read_optimized": lambda: table.scan(query="read_optimized", meta_columns=True),
        "incremental": lambda: table.changes(since=times[1], meta_columns=True),
        "as_of": lambda: table.scan(as_of=times[2], meta_columns=True),
    }
    return scans[name]().to_arrow()


@soak
def test_a_zipped_wheel_as_py_files_does_on_executors_what_the_embedded_engine_does(brought, zipped, tmp_path):
    kinds = (COW, MOR)
    found_by_spark, own = tmp_path / "discovered", saved(LOADED, tmp_path / "own.parquet")
    discovered = {"path": str(found_by_spark), "options": options_of(MOR)}
    steps: list[Step] = [
        {"do": "where"},
        {"do": "register"},
        {"do": "write", **discovered, "rows": own, "partitions": 2, "enabled": False},
        {"do": "write", **discovered, "rows": saved(CHANGED, tmp_path / "more.parquet"), "enabled": False},
        {"do": "read", "path": str(found_by_spark), "options": {}, "to": str(tmp_path / "found")},
        {"do": "enable"},
    ]
    for kind in kinds:
        (tmp_path / f"views-{kind}").mkdir()
        steps += history_of(tmp_path / kind, kind, tmp_path) + views_of(tmp_path / kind, tmp_path / f"views-{kind}")
    with brought(steps) as job:
        said = answers(job.ended())
    assert len(said) == len(steps)
    modules = {Path(place).parts[-3:-1] for place in said[0] if place.endswith("/__init__.py")}
    assert modules == {(zipped.name, "hoodie"), (zipped.name, "pyspark_hoodie")}
    assert {answer[0] for step, answer in zip(steps, said, strict=True) if step["do"] == "write" and answer} == {
        "spark"
    }

    twin = created(tmp_path / "twin", MOR, LOADED)
    twin.upsert(CHANGED)
    assert plain(pq.read_table(tmp_path / "found")) == plain(twin.scan(meta_columns=True).to_arrow())
    exact(found_by_spark, twin.scan().to_arrow(), commits=2)
    for kind in kinds:
        twin = same_embedded(tmp_path / f"twin-{kind}", kind)
        for name in VIEWS:
            found = plain(embedded_view(hoodie.open_table(str(tmp_path / kind)), name))
            assert plain(pq.read_table(tmp_path / f"views-{kind}" / name)) == found, (kind, name)
            # Base files of merge-on-read have what was merged into them, which goes by the sizes of files.
            if (kind, name) != (MOR, "read_optimized"):
                assert found == plain(embedded_view(twin, name)), (kind, name)
        exact(tmp_path / kind, twin.scan().to_arrow(), commits=len(twin.timeline.commits))


# -- moments in a write ------------------------------------------------------------------------------------------------


def arrived(gate: Path) -> int | None:
    """A worker process that has taken rows of its partition and waits; None so long as there is none."""
    for each in gate.glob("arrived-*-0"):
        return int(each.read_text(encoding="ascii"))
    return None


def started(path: Path) -> bool:
    """Keys are looked up, an instant is allotted, and it is not completed."""
    timeline = path / ".hoodie"
    of_writes = [file.name for file in timeline.glob("*.inflight") if "compaction" not in file.name]
    completed = {file.name.split(".")[0] for file in timeline.glob("*commit")}
    return any(name.split(".")[0] not in completed for name in of_writes)


def executor_of(cluster: Cluster, worker: int) -> int | None:
    return next((executor for executor, below in cluster.executors().items() if worker in below), None)


def writing(cluster: Cluster, path: Path) -> int | None:
    """A worker process that was stopped while it had a file of the write open; None when none has one."""
    staging = path / ".hoodie" / ".hoodie_py" / "staging"
    instants = [folder for folder in staging.glob("*") if not folder.name.startswith("rows-")]
    if not any(any(folder.rglob("*")) for folder in instants):
        return None
    for worker in [pid for below in cluster.executors().values() for pid in below]:
        for folder in instants:
            if opened_in(worker, folder):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGSTOP)
                    if opened_in(worker, folder):
                        return worker
                    os.kill(worker, signal.SIGCONT)  # it was just done with it
    return None


def kill(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def wake(pid: int) -> None:
    """Let a stopped process go on; it may have been killed meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def ended(pid: int) -> bool:
    return all(pid != other for other, _, command in processes() if command)  # without one: a zombie


def kill_while_reading(cluster: Cluster, job: Submitted, path: Path, gate: Path) -> None:
    worker = waited("a task that reads rows", lambda: arrived(gate), job.runs)
    kill(executor_of(cluster, worker))
    (gate / "go").touch()


def kill_before_writing(cluster: Cluster, job: Submitted, path: Path, gate: Path) -> None:
    """The driver stands still meanwhile, so that it has sent out no task of the next stage, or hardly one."""
    waited("the write's instant", lambda: started(path), job.runs)
    driver = job.driver()
    os.kill(driver, signal.SIGSTOP)
    kill(next(iter(cluster.executors())))
    os.kill(driver, signal.SIGCONT)


def kill_while_writing(cluster: Cluster, job: Submitted, path: Path, gate: Path) -> None:
    """The worker is stopped in the middle of a file, and comes back to life when its executor is dead."""
    worker = waited("a file that is being written", lambda: writing(cluster, path), job.runs)
    kill(executor_of(cluster, worker))
    wake(worker)


MOMENTS = {"reading": kill_while_reading, "before writing": kill_before_writing, "writing": kill_while_writing}


def write_under_fire(
    brought, cluster, tmp_path, *, kind: str, key: str, moments: Sequence[str], operation: str = "upsert", conf=None
) -> None:
    """Write 30,000 rows, with key `id` onto 40,000, while executors are killed; every row comes once, and as it was read once.

    With `key` "fresh" rows get another key each time that they are evaluated: one that was read twice would be there twice.
    """
    path, gate = tmp_path / "table", tmp_path / "gate"
    gate.mkdir()
    rows = batch(range(20_000, 50_000), 2, long=True)
    own = options_of(kind) | {
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.operation": operation,
    }
    write = {
        "do": "write",
        "path": str(path),
        "rows": saved(rows, tmp_path / "rows.parquet"),
        "partitions": 4,
        "options": own,
        "gate": str(gate),
    }
    if key == "id":
        twin = created(tmp_path / "twin", kind, batch(range(40_000), 1, long=True))
        shutil.copytree(tmp_path / "twin", path)
        twin.upsert(rows)
        expected, commits, counts = twin.scan().to_arrow(), 2, ["spark", 10_000, 20_000, 0]
    else:
        expected, commits, counts = rows, 1, ["spark", 30_000, 0, 0]
    if "reading" not in moments:  # which opens it; else nothing is to wait there
        (gate / "go").touch()
    with brought([{"do": "enable"}, write], conf) as job:
        for moment in moments:
            MOMENTS[moment](cluster, job, path, gate)
        assert answers(job.ended())[1] == counts
    found = exact(path, expected, commits=commits)
    fresh = found.filter(pc.greater_equal(found["id"], 20_000))["fresh"]
    assert fresh.null_count == 0
    assert len(pc.unique(fresh)) == len(fresh) == 30_000


def test_executors_killed_while_rows_are_read_before_files_are_written_and_in_mid_file(brought, cluster, tmp_path):
    write_under_fire(brought, cluster, tmp_path, kind=COW, key="id", moments=list(MOMENTS))


@soak
@pytest.mark.parametrize(
    ("kind", "key", "conf"),
    [(COW, "id", SPECULATION), (COW, "fresh", {}), (MOR, "id", {}), (MOR, "fresh", SPECULATION)],
    ids=["cow-id-speculation", "cow-fresh", "mor-id", "mor-fresh-speculation"],  # each pair of settings meets
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_executor_killed_at_a_moment(brought, cluster, tmp_path, moment, kind, key, conf):
    write_under_fire(brought, cluster, tmp_path, kind=kind, key=key, moments=[moment], conf=conf)


@soak
@pytest.mark.parametrize("conf", [{}, SPECULATION], ids=["", "speculation"])
@pytest.mark.parametrize("moment", ["reading", "writing"])
def test_an_executor_killed_in_a_load(brought, cluster, tmp_path, moment, conf):
    write_under_fire(
        brought, cluster, tmp_path, kind=MOR, key="fresh", moments=[moment], operation="bulk_insert", conf=conf
    )


@soak
@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_speculative_copy_overtakes_tasks_that_hang_and_what_wakes_up_late_changes_nothing(
    brought, cluster, tmp_path, kind
):
    path, gate = tmp_path / "table", tmp_path / "gate"
    gate.mkdir()
    rows = batch(range(20_000, 50_000), 2, long=True)
    twin = created(tmp_path / "twin", kind, batch(range(40_000), 1, long=True))
    shutil.copytree(tmp_path / "twin", path)
    twin.upsert(rows)
    steps = [
        {"do": "enable"},
        {
            "do": "write",
            "path": str(path),
            "rows": saved(rows, tmp_path / "rows.parquet"),
            "partitions": 4,
            "options": options_of(kind),
            "gate": str(gate),  # which is not opened before the write began: the one that waits there is overtaken
        },
    ]
    # Else Spark ends the process of a task that lost after two seconds, before it could do harm.
    with brought(steps, SPECULATION | {"spark.python.task.killTimeout": "600s"}) as job:
        worker = waited("a file that is being written", lambda: writing(cluster, path), job.runs)
        (gate / "go").touch()  # the overtaken one ends late, and frees the core that the copy of the other one needs
        try:
            assert answers(job.ended())[1] == ["spark", 10_000, 20_000, 0]
            exact(path, twin.scan().to_arrow(), commits=2)
        finally:
            wake(worker)
        waited("the end of the late worker", lambda: ended(worker), lambda: None)
    exact(path, twin.scan().to_arrow(), commits=2)


@soak
def test_a_write_that_spark_gives_up_leaves_the_table_as_it_was(brought, cluster, tmp_path):
    path, gate = tmp_path / "table", tmp_path / "gate"
    before = batch(range(40_000), 1, long=True)
    created(path, COW, before)
    rows = saved(batch(range(20_000, 50_000), 2, long=True), tmp_path / "rows.parquet")
    write = {"do": "write", "path": str(path), "rows": rows, "partitions": 4, "options": options_of(COW)}
    with brought([{"do": "enable"}, write], {"spark.task.maxFailures": "1"}) as job:
        kill_while_writing(cluster, job, path, gate)
        with pytest.raises(ClusterError, match="ExecutorLostFailure"):
            job.ended()
        waited("the end of the executors", lambda: not cluster.executors(), lambda: None)
    exact(path, before, commits=1)


def driver_killed(brought, cluster, tmp_path, *, kind: str) -> None:
    path = tmp_path / "table"
    before = batch(range(40_000), 1, long=True)
    created(path, kind, before)
    rows = saved(batch(range(20_000, 50_000), 2, long=True), tmp_path / "rows.parquet")
    write = {"do": "write", "path": str(path), "rows": rows, "partitions": 4, "options": options_of(kind)}
    with brought([{"do": "enable"}, write]) as job:
        worker = waited("a file that is being written", lambda: writing(cluster, path), job.runs)
        try:
            job.kill()
            assert by_id(hoodie.open_table(str(path)).scan().to_arrow()).equals(by_id(before))
            more = batch(range(100_000, 100_100), 3)
            hoodie.open_table(str(path)).upsert(more)
            expected = pa.concat_tables([before, more])
            exact(path, expected, commits=2)
        finally:
            wake(worker)
        waited("the end of the executors", lambda: not cluster.executors(), lambda: None)
    exact(path, expected, commits=2)


@soak
def test_the_next_writer_takes_back_what_a_killed_driver_was_writing(brought, cluster, tmp_path):
    driver_killed(brought, cluster, tmp_path, kind=MOR)


@soak
def test_a_killed_driver_of_a_copy_on_write_table(brought, cluster, tmp_path):
    driver_killed(brought, cluster, tmp_path, kind=COW)


@soak
def test_an_executor_killed_in_a_batch_of_a_stream(brought, cluster, tmp_path):
    path, gate, source = tmp_path / "table", tmp_path / "gate", tmp_path / "source"
    gate.mkdir()
    source.mkdir()
    twin = created(tmp_path / "twin", MOR, LOADED)
    shutil.copytree(tmp_path / "twin", path)
    for number, rows in enumerate((CHANGED, LAST)):
        saved(rows, source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (number, number))  # the order in which a stream takes them
        twin.upsert(rows)
    step = {
        "do": "stream",
        "rows": str(source),
        "path": str(path),
        "checkpoint": str(tmp_path / "checkpoint"),
        "options": options_of(MOR),
        "gate": str(gate),
        "batch": 1,
    }
    with brought([{"do": "enable"}, step]) as job:
        kill_while_reading(cluster, job, path, gate)
        job.ended()
    exact(path, twin.scan().to_arrow(), commits=3)


# -- tables on shared storage ------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a table is to be, and how it is reached: by the session in a job, by options in this process."""

    path: str
    conf: Mapping[str, str]
    options: Mapping[str, str]

    def storage(self) -> Storage:
        return open_storage(self.path, self.options or None)

    def table(self) -> hoodie.HoodieTable:
        return hoodie.open_table(self.path, storage_options=self.options or None)


# A local disk has a sample already: the test that kills at three moments.
@pytest.fixture(params=[pytest.param("local", marks=soak), pytest.param("hdfs", marks=soak), "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return Place(str(tmp_path / "table"), {}, {})
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "hdfs":
        default = {"fs.defaultFS": server.uri}
        conf = {f"spark.hadoop.{name}": value for name, value in default.items()}
        return Place(f"hdfs:///cluster/{secrets.token_hex(8)}/t", conf, default)
    options = server.options
    conf = {
        "spark.hadoop.fs.s3a.endpoint": options["aws_endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": options["aws_region"],
        "spark.hadoop.fs.s3a.access.key": options["aws_access_key_id"],
        "spark.hadoop.fs.s3a.secret.key": options["aws_secret_access_key"],
    }
    return Place(server.new_uri(), conf, options)


@pytest.fixture(scope="module")
def python_of_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Also with what reaches HDFS and object stores."""
    return plain_environment(tmp_path_factory.mktemp("python-of-stores"), more=STORES)


class Written(NamedTuple):
    """The batches of the shared job: rows that do not compress, so that a file takes a while."""

    loaded: pa.Table
    changed: pa.Table
    gone: pa.Table
    last: pa.Table


@pytest.fixture(scope="module")
def written() -> Written:
    return Written(
        batch(range(16_000), 1, long=True),
        batch(range(8_000, 20_000), 2, long=True),
        batch(range(0, 16_000, 7), 3),
        batch(range(2_000, 24_000, 3), 5, long=True),
    )


def modelled(written: Written) -> dict[str, list[Row]]:
    """What the reads of the shared job must give."""
    rows: dict[int, Row] = {}
    rows |= {row["id"]: row for row in written.loaded.to_pylist()}
    rows |= {row["id"]: row for row in written.changed.to_pylist()}
    for row in written.gone.to_pylist():
        rows.pop(row["id"])
    before = dict(rows)
    last = {row["id"]: row for row in written.last.to_pylist()}
    found = {"compacted": before, "as_of": before, "incremental": last, "snapshot": before | last}
    return {name: [each[key] for key in sorted(each)] for name, each in found.items()}


LOADING, CHANGING, DELETING, COMPACTING, _, LASTING = range(1, 7)
"""Numbers of the steps of the shared job."""


def shared_steps(place: Place, written: Written, files: Path, *, inline: bool) -> list[Step]:
    """With `inline` the last write compacts the table after it."""

    def step(operation: str, name: str, **more: str) -> Step:
        said = options_of(MOR, **more) | {"hoodie.datasource.write.operation": operation}
        file = saved(getattr(written, name), files / f"{name}.parquet")
        return {"do": "write", "path": place.path, "rows": f"file://{file}", "partitions": 4, "options": said}

    def view(name: str, options: Mapping[str, str]) -> Step:
        how = {"path": place.path, "storage_options": dict(place.options) or None}
        return {"do": "read", **how, "options": options, "to": f"file://{files / name}"}

    own = {"hoodie_compact_inline": "true", "hoodie_compact_inline_max_delta_commits": "1"} if inline else {}
    return [
        {"do": "enable"},
        step("bulk_insert", "loaded"),
        step("upsert", "changed"),
        step("delete", "gone"),
        {"do": "compact", "path": place.path},
        view("compacted", VIEWS["read_optimized"]),
        step("upsert", "last", **own),
        *(view(name, options) for name, options in VIEWS.items()),
    ]


@pytest.fixture(scope="module")
def local_run(
    cluster: Cluster, zipped: Path, python_of_stores: Path, written: Written, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Row]]:
    """What the same job gives on a local disk and in one process of Spark."""
    folder = tmp_path_factory.mktemp("local-run")
    steps = shared_steps(Place(str(folder / "table"), {}, {}), written, folder, inline=False)
    file = folder / "steps.json"
    file.write_text(json.dumps(steps), encoding="utf-8")
    options = ["--master", "local[2]", "--py-files", str(zipped)]
    with cluster.submitted(JOB, str(file), python=python_of_stores, options=options) as job:
        assert len(answers(job.ended())) == len(steps)
        assert not cluster.executors()
    return {name: plain(pq.read_table(folder / name)) for name in ("compacted", *VIEWS)}


def kill_in_step(cluster: Cluster, job: Submitted, storage: Storage, number: int) -> None:
    """All executors, as soon as the first data file of the step is seen in the staging folder of its instant."""
    waited(f"step {number}", lambda: len(answers(job.printed())) >= number, job.runs)
    executors = list(waited("executors", cluster.executors, job.runs))

    def goes_on() -> None:
        job.runs()
        if len(answers(job.printed())) > number:
            raise ClusterError(f"step {number} was over before one of its files was seen")

    waited("a staged file", lambda: staged(storage), goes_on)
    for executor in executors:
        kill(executor)


def staged(storage: Storage) -> list[str]:
    """Data files of instants that are pending."""
    found = [info.path.removeprefix(f"{STAGING}/") for info in storage.list(STAGING, recursive=True)]
    return [path for path in found if not path.startswith("rows-") and (".parquet" in path or ".log." in path)]


def named_files(storage: Storage, table: hoodie.HoodieTable) -> None:
    """Each data file is named by a commit."""
    active = table._context.active
    named = {stat.path for instant in table.timeline.commits for stat in active.read_commit(instant).stats()}
    there = {info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie/")}
    assert {path for path in there if not path.endswith(".hoodie_partition_metadata")} <= named


def on_shared_storage(cluster, zipped, python, tmp_path, place, written, local_run, *, moments, inline) -> None:
    """Run the job while executors are killed in the steps `moments`; compare with the local run and the model."""
    steps = shared_steps(place, written, tmp_path, inline=inline)
    file = tmp_path / "steps.json"
    file.write_text(json.dumps(steps), encoding="utf-8")
    options, storage = ["--py-files", str(zipped)], place.storage()
    with cluster.submitted(JOB, str(file), python=python, options=options, conf=place.conf) as job:
        for number in moments:
            before = job.printed().count("ExecutorLostFailure")
            kill_in_step(cluster, job, storage, number)
            # A task was lost: what was killed was at work.
            waited("a lost task", lambda seen=before: job.printed().count("ExecutorLostFailure") > seen, job.runs)
        said = answers(job.ended(600))
    assert len(said) == len(steps)
    assert said[CHANGING] == ["spark", 4_000, 8_000, 0]
    for name, expected in modelled(written).items():
        found = pq.read_table(tmp_path / name)
        assert by_id(found).to_pylist() == expected, name
        assert plain(found) == local_run[name], name
    table = place.table()
    for name in VIEWS:
        assert plain(pq.read_table(tmp_path / name)) == plain(embedded_view(table, name)), name
    if inline:
        assert plain(pq.read_table(tmp_path / "read_optimized")) == plain(pq.read_table(tmp_path / "snapshot"))
    assert len(table.timeline.commits) == (6 if inline else 5)
    assert not table.timeline.pending()
    assert leftovers(storage) == []
    named_files(storage, table)
    if place.path.startswith("s3:"):
        rust = rust_peer.read(place.path, storage_options={**place.options, "aws_allow_http": "true"})
        assert without(rust, "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name") == plain(
            embedded_view(table, "snapshot")
        )


def test_a_job_whose_executors_are_killed_gives_on_any_storage_what_a_local_run_gives(
    cluster, zipped, python_of_stores, tmp_path, place, written, local_run
):
    how = {"moments": [CHANGING, COMPACTING], "inline": False}
    on_shared_storage(cluster, zipped, python_of_stores, tmp_path, place, written, local_run, **how)


@soak
def test_executors_killed_in_every_step_that_writes_and_in_an_inline_compaction(
    cluster, zipped, python_of_stores, tmp_path, place, written, local_run
):
    how = {"moments": [LOADING, CHANGING, DELETING, COMPACTING, LASTING], "inline": True}
    on_shared_storage(cluster, zipped, python_of_stores, tmp_path, place, written, local_run, **how)


# -- other ways to ship, and what the driver holds ---------------------------------------------------------------------


def small_job(tmp_path: Path) -> tuple[list[Step], Path]:
    path = tmp_path / "table"
    more = saved(CHANGED, tmp_path / "changed.parquet")
    first = {"do": "write", "path": str(path), "options": options_of(COW), "partitions": 2}
    steps = [
        {"do": "where"},
        {**first, "do": "write", "rows": saved(LOADED, tmp_path / "loaded.parquet"), "enabled": False},
        {"do": "enable"},
        {**first, "do": "write", "rows": more},
        {"do": "read", "path": str(path), "options": {}, "to": str(tmp_path / "read")},
    ]
    return steps, path


def shipped(cluster: Cluster, tmp_path: Path, *, python: Path, inside: str, **how: Any) -> None:
    """The small job runs with the package shipped in a way; the workers' hoodie lies in a folder with `inside` in its name."""
    steps, path = small_job(tmp_path)
    file = tmp_path / "steps.json"
    file.write_text(json.dumps(steps), encoding="utf-8")
    with cluster.submitted(JOB, str(file), python=python, **how) as job:
        said = answers(job.ended())
    assert all(inside in place for place in said[0])
    twin = created(tmp_path / "twin", COW, LOADED)
    twin.upsert(CHANGED)
    assert plain(pq.read_table(tmp_path / "read")) == plain(twin.scan(meta_columns=True).to_arrow())
    exact(path, twin.scan().to_arrow(), commits=2)


def installed(python: Path, wheel: Path) -> None:
    hoodie_installed = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*hoodie_installed, str(wheel)], check=True, timeout=HUNG_S)


@soak
def test_a_wheel_that_is_installed_for_the_workers(cluster, wheel, tmp_path):
    python = plain_environment(tmp_path / "everywhere")
    installed(python, wheel)
    shipped(cluster, tmp_path, python=python, inside="/everywhere")


@soak
def test_an_archive_of_an_environment(cluster, wheel, tmp_path):
    python = plain_environment(tmp_path / "packed", copies=True)
    installed(python, wheel)
    archive = tmp_path / "packed.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(tmp_path / "packed", arcname=".")
    driver = shutil.move(tmp_path / "packed", tmp_path / "of-the-driver") / "bin" / "python"
    shipped(
        cluster,
        tmp_path,
        python=Path("environment/bin/python"),
        inside="/environment",
        options=["--archives", f"{archive}#environment"],
        environment={"PYSPARK_DRIVER_PYTHON": str(driver)},
    )


@soak
def test_the_source_is_found_in_a_zip_that_is_on_the_path_of_the_driver(brought, zipped, tmp_path):
    steps, path = small_job(tmp_path)
    with brought(steps, environment={"PYTHONPATH": str(zipped)}) as job:
        job.ended()
    exact(path, pa.table(hoodie.open_table(str(path)).scan()), commits=2)


@soak
def test_spark_does_not_take_a_wheel_by_its_own_name(cluster, wheel, python, tmp_path):
    """Should it fail here one day, docs/CLUSTER.md can do without the copy."""
    steps, _ = small_job(tmp_path)
    file = tmp_path / "steps.json"
    file.write_text(json.dumps(steps), encoding="utf-8")
    with (
        cluster.submitted(JOB, str(file), python=python, options=["--py-files", str(wheel)]) as job,
        pytest.raises(ClusterError, match="No module named 'hoodie'"),
    ):
        job.ended()


@soak
def test_the_driver_holds_plans_and_no_rows(brought, tmp_path):
    steps: list[Step] = [{"do": "enable"}]
    for kind in (COW, MOR):
        path = str(tmp_path / kind)
        write = {"do": "write", "path": path, "options": options_of(kind), "partitions": 4}
        steps += [
            {**write, "count": 2_000},
            {**write, "count": 2_000},
            {"do": "memory"},
            {**write, "count": 2_000_000},  # nearly all of them are new
            {**write, "count": 2_000_000},
            {"do": "memory"},
        ]
    with brought(steps) as job:
        said = answers(job.ended(1200))
    few, many, _, many_again = [answer for step, answer in zip(steps, said, strict=True) if step["do"] == "memory"]
    assert said[5] == ["spark", 0, 2_000_000, 0]
    assert said[4] == ["spark", 1_998_000, 2_000, 0]
    assert max(many, many_again) - few < 100_000, (few, many, many_again)  # kB; the rows take 130 MB and more
