"""Spark Connect: the same calls with a session that has no JVM; the questions are in connect_session.py."""

import json
import os
import subprocess
import sys

import pytest

import hoodie
from tests.spark.conftest import ROOT, SPARK

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(SPARK < (4, 0), reason="pip's Spark 3.5 has no Connect server"),
    pytest.mark.skipif("HOODIE_SOAK" not in os.environ, reason="two servers of their own take minutes: `make soak`"),
]

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
FIRST = {f"k{n}": n for n in range(6)}
SECOND = {**FIRST, "k1": 100, "k9": 9}


@pytest.fixture(scope="module", params=TYPES)
def told(request, tmp_path_factory):
    pytest.importorskip("grpc", reason="Spark Connect needs the extra `connect`")
    folder = tmp_path_factory.mktemp("connect")
    env = {name: text for name, text in os.environ.items() if name not in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")}
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_session", str(folder), request.param],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return {**json.loads(run.stdout.splitlines()[-1]), "type": request.param, "path": str(folder / request.param)}


def test_it_is_a_connect_session(told):
    assert told["session"] == "pyspark.sql.connect.session"


def test_every_save_mode(told):
    assert [told[name] for name in ("first", "append", "ignore", "overwrite")] == [None] * 4
    assert told["errorifexists"][0] == "TableExistsError"
    assert told["overwritten"] == {"k7": 7}
    assert {row["id"]: row["qty"] for row in hoodie.open_table(told["path"]).scan().to_arrow().to_pylist()} == {"k7": 7}


def test_every_read(told):
    base = SECOND if told["type"] == TYPES[0] else {**FIRST, "k9": 9}
    assert told["snapshot"] == SECOND
    assert told["read optimized"] == base
    assert told["where"] == {"k1": 100, "k5": 5, "k9": 9}
    assert told["as of"] == FIRST
    assert told["incremental"] == {"k1": 100, "k9": 9}
    assert (told["read schema"], told["to arrow"]) == (["qty", "id"], 7)


def test_verbs_of_the_table(told):
    updated, deleted, compacted, found, changes = told["verbs"]
    assert (updated, deleted, compacted) == (1, 1, 0 if told["type"] == TYPES[0] else 1)
    assert found == {key: qty for key, qty in {**SECOND, "k2": 102}.items() if key != "k3"}
    assert changes == 6 + 2 + 1 + 1


def test_sql_and_its_sentences(told):
    assert told["view"] == sum({**SECOND, "k2": 102, "k3": 0}.values())
    for name in ("create table", "saveAsTable"):
        kind, text = told[name]
        assert kind == "OptionError"
        assert "would make a catalog table" in text


def test_an_error_of_a_task_is_ours(told):
    kind, text = told["null key"]
    assert kind == "KeyFieldError"
    assert len(text.splitlines()) <= 8


def test_other_formats_and_what_spark_finds_by_itself(told):
    assert (told["parquet"], told["parquet read"], told["without enable"]) == (None, 6, 1)
