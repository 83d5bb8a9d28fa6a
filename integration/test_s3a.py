"""Tables in a bucket, read through Hadoop's S3A: by Apache Hudi, and by Spark's own scan for us.

S3A and its SDK are 280 MB of jars, which nothing here fetches: HOODIE_S3A_JARS is a folder with hadoop-aws and aws-java-sdk-bundle, of
the versions of the Hadoop in the Spark of Apache Hudi's environment, which needs obstore, too. Run by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from integration.conftest import PYTHON, hudi_peer
from integration.hudi_client import ROOT
from tests.effort import HUNG_S
from tests.migrated_sources import ROWS, delta_table_at
from tests.rows import rows_of, without
from tests.servers.s3 import S3Server

FOLDER = os.environ.get("HOODIE_S3A_JARS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="HOODIE_S3A_JARS names no folder with the jars of S3A")
CREATE = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
COLUMNS = ["id", "part", "ts", "v"]
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {"id": [*ids], "part": [f"p{n % 2}" for n in ids], "ts": [ts] * len(ids), "v": [ts * n for n in ids]}
    )


def in_order(found: pa.Table) -> list[dict[str, object]]:
    return sorted(found.select(COLUMNS).to_pylist(), key=lambda row: int(row["id"]))


@pytest.fixture
def tables(s3_server: S3Server) -> dict[str, list[dict[str, object]]]:
    """Address of a table of each kind -> its rows."""
    found = {}
    for kind in TYPES:
        uri, options = s3_server.new_uri(), s3_server.options
        table = hoodie.create_table(uri, rows(range(1), 0).schema, table_type=kind, storage_options=options, **CREATE)
        table.upsert(rows(range(40), 1))
        table.upsert(rows(range(30, 40), 2))
        table.delete(rows(range(3), 3).select(["id", "part"]))
        table.compact() if kind == "MERGE_ON_READ" else None
        table.upsert(rows(range(5, 10), 5))
        found[uri] = in_order(table.scan().to_arrow())
        assert len(found[uri]) == 37
    return found


@pytest.fixture
def settings(s3_server: S3Server) -> dict[str, str]:
    """Of a Spark that has S3A."""
    jars = ":".join(map(str, Path(FOLDER or "").glob("*.jar")))
    return {
        "spark.driver.extraClassPath": jars,
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": s3_server.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": s3_server.options["aws_region"],
        "spark.hadoop.fs.s3a.access.key": s3_server.options["aws_access_key_id"],
        "spark.hadoop.fs.s3a.secret.key": s3_server.options["aws_secret_access_key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


def test_apache_hudi_reads_our_tables(
    tables: Mapping[str, list[dict[str, object]]], settings: Mapping[str, str], tmp_path: Path
) -> None:
    with hudi_peer(tmp_path, settings) as hudi:
        for uri, expected in tables.items():
            assert in_order(hudi.read(uri.replace("s3://", "s3a://")).table) == expected


def test_apache_hudi_reads_delta_tables_that_were_migrated_in_place(
    s3_server: S3Server, settings: Mapping[str, str], tmp_path: Path
) -> None:
    options = dict(s3_server.options)
    with hudi_peer(tmp_path, settings) as hudi:
        for kind, version in (("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)):
            source = delta_table_at(s3_server.new_uri(), {**options, "allow_http": "true"})
            uri = s3_server.new_uri()
            asked = {"record_key": "id", "mode": "in_place", "table_type": kind, "table_version": version}
            hoodie.migrate(source, uri, storage_options=options, source_options=options, **asked)
            table = hoodie.open_table(uri, storage_options=options)
            expected = without(rows_of(ROWS))
            assert without(hudi.read(uri).rows, *META_COLUMNS) == expected
            table.upsert(ROWS.slice(0, 2))
            assert without(hudi.read(uri).rows, *META_COLUMNS) == expected


JOB = """
import json, sys
from pyspark.sql import SparkSession
import pyspark_hoodie

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
pyspark_hoodie.enable(spark)
for uri in sys.argv[2:]:
    read = spark.read.format("hoodie").load(uri)
    plan = read._jdf.queryExecution().executedPlan().toString()
    told = pyspark_hoodie.HoodieTable.for_path(spark, uri).explain()
    print("SAID", read.count(), read.agg({"v": "sum"}).first()[0], "FileScan parquet" in plan, "Spark's own" in told)
"""


def test_sparks_own_scan_reads_them(tables: Mapping[str, list[dict[str, object]]], settings: Mapping[str, str]) -> None:
    uris = [uri.replace("s3://", f"{scheme}://") for uri in tables for scheme in ("s3", "s3a")]
    python = str(ROOT / PYTHON)
    path = os.pathsep.join([str(ROOT), str(ROOT / "spark_ext"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [python, "-c", JOB, json.dumps(dict(settings)), *uris],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SAID")]
    sums = [str(sum(int(str(row["v"])) for row in expected)) for expected in tables.values() for _ in range(2)]
    assert said == [["37", each, "True", "True"] for each in sums], done.stderr[-3000:]
