"""Spark Connect: the same calls with a session that has no JVM; the questions are in connect_session.py."""

import json
import os
import subprocess
import sys

import pytest

import hoodie
from tests.effort import HUNG_S, SOAK
from tests.spark.changes_by_methods import EXPECTED, TWO_LEVELS
from tests.spark.conftest import ROOT, SPARK
from tests.spark.connect_server import connect_server
from tests.spark.connect_session import REFUSED

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(SPARK < (4, 0), reason="pip's Spark 3.5 has no Connect server"),
]

COW, MOR = TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
FIRST = {f"k{n}": n for n in range(6)}
SECOND = {**FIRST, "k1": 100, "k9": 9}
THIRD = {"k0": 0, "k1": 100, "k2": 102, "k4": 4, "k5": 5}
"""After the updates and deletes."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Of both table types: one server and one client answer everything."""
    pytest.importorskip("grpc", reason="Spark Connect needs the extra `connect`")
    folder = tmp_path_factory.mktemp("connect")
    env = {name: text for name, text in os.environ.items() if name not in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")}
    with connect_server(folder) as url:
        run = subprocess.run(
            [sys.executable, "-m", "tests.spark.connect_session", url, str(folder), *TYPES],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=HUNG_S,
            check=False,
        )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    return {kind: {**told[kind], "type": kind, "path": str(folder / kind)} for kind in TYPES}


@pytest.fixture(params=TYPES)
def told(request, answers):
    return answers[request.param]


def test_it_is_a_connect_session(told):
    assert told["session"] == "pyspark.sql.connect.session"


def test_every_save_mode(told):
    assert [told[name] for name in ("first", "append", "ignore", "overwrite")] == [None] * 4
    assert told["errorifexists"][0] == "TableExistsError"
    assert told["overwritten"] == {"k7": 7}
    assert {row["id"]: row["qty"] for row in hoodie.open_table(told["path"]).scan().to_arrow().to_pylist()} == {"k7": 7}


def test_every_read(told):
    base = SECOND if told["type"] == COW else {**FIRST, "k9": 9}
    assert told["snapshot"] == SECOND
    assert told["read optimized"] == base
    assert told["where"] == {"k1": 100, "k5": 5, "k9": 9}
    assert told["as of"] == FIRST
    assert told["incremental"] == {"k1": 100, "k9": 9}
    assert (told["read schema"], told["to arrow"]) == (["qty", "id"], 7)


def test_updates_and_deletes_of_the_table_object(told):
    names = ("upsert", "partial upsert", "delete", "delete where")
    assert [told[name] for name in names] == [1, 1, 1, 1]
    assert told["found"] == THIRD
    assert told["latest changes"] == {"k1": 100, "k2": 102, "k4": 4}  # of k3 and k9 there is no latest row
    assert told["changes"] == 6 + 2 + 1 + 1 + 1 + 1


def test_compaction_runs_on_the_server_and_is_an_error_where_there_are_no_logs(told):
    if told["type"] == MOR:
        assert (told["pending"], told["compact"]) == ([True, 1], 1)
    else:
        for kind, text in (told["pending"], told["compact"]):
            assert kind == "OptionError"
            assert "no logs" in text


def test_what_the_table_object_says_of_the_table(told):
    writes = ["UPSERT"] * 4 + ["DELETE"] * 2
    assert told["history"] == writes + (["COMPACT"] if told["type"] == MOR else [])
    fitting = "1 total in the partitions that fit (1 not listed)"
    assert f"{fitting} -> 1 after partitions -> 1 after statistics -> 1 read" in told["explain"]
    assert (told["files"], told["rollback"]) == ([2, ["a", "b"]], [])


def test_a_services_job_works_in_a_thread_of_a_session(told):
    assert told["services"] == [1, 0]  # a clean


def test_inserts_and_overwrites_of_the_table_object(told):
    assert [told[name] for name in ("insert", "bulk insert", "insert overwrite")] == [1, 1, 1]
    assert told["overwritten partition"] == {"k22": 22}
    assert (told["delete partitions"], told["deleted partition"]) == ("DELETE_PARTITION", 0)


def test_sql_and_its_sentences(told):
    assert told["view"] == sum(THIRD.values())


def test_tables_by_name_are_written_by_dataframes(told):
    *found, refused = told["by name"]
    assert found == [
        {"n1": 11, "n2": 2, "n3": 3},
        {"n2": 2, "n3": 3, "n4": 4},
        {"n5": 5},
        True,
        {"n1": 1, "n2": 2},
    ]
    words = ("already", "lack its column qty")
    assert len(refused) == len(words)
    for text, word in zip(refused, words, strict=True):
        assert word in text


def test_changes_by_methods_are_those_of_a_classic_session(told):
    assert told["by methods"] == EXPECTED
    assert told["two levels"] == TWO_LEVELS


def test_changes_by_methods_that_are_refused_write_nothing(told):
    assert told["refusals"] == []
    assert "several rows of the source" in told["two rows"][1]
    assert told["after two rows"] == EXPECTED["replace all"][1]


def test_changes_by_methods_of_other_formats_are_left_to_spark(told):
    assert told["merge of others"] == "pyspark.sql.connect.merge"
    assert told["overwrite of others"][0] == "AnalysisException"


def test_statements_that_a_client_carries_out(answers):
    assert answers[MOR]["statements"] is None
    assert answers[MOR]["table"] == answers[MOR]["describe"] == ["id", "v", "ts", "p"]
    assert answers[COW]["random statements"] is None


@pytest.mark.parametrize("name", REFUSED)
def test_statements_that_it_does_not_carry_out_say_what_to_do(answers, name):
    kind, text = answers[MOR][name]
    assert kind == "OptionError"
    assert "on Connect" in text


def test_an_error_of_a_task_is_ours(told):
    kind, text = told["null key"]
    assert kind == "KeyFieldError"
    assert len(text.splitlines()) <= 8


@pytest.mark.parametrize("read", ["snapshot", "read optimized", "changes"])
def test_a_frame_that_outlives_its_files_is_an_error_of_ours(told, read):
    kind, text = told[f"outlived {read}"]
    assert kind == "MissingFileError"
    assert "was deleted by the clean of instant" in text or "was deleted by a clean" in text
    assert "\n" not in text
    assert "refreshByPath" not in text


def test_the_merge_builder_and_updates(told):
    assert (told["merge plan"], told["merge"]) == ([1, 1], [1, 1])
    assert told["looked up"] == {"k1": 11, "k3": 6}
    assert (told["merged away"], told["merged"]) == (1, {"k1": 11, "k2": 2})
    assert told["nonsense"][0] == "OptionError"
    assert "no_such" in told["nonsense"][1]


def test_rows_of_a_source_are_checked_and_written(told):
    assert (told["ingest"], told["ingested"]) == ([[2, 1]], {"f1": 1, "f3": 3})


def test_other_formats_and_what_spark_finds_by_itself(told):
    assert (told["parquet"], told["parquet read"], told["without enable"]) == (None, 1, 1)


@pytest.mark.skipif(not SOAK, reason="HOODIE_SOAK=1 runs it: a stream takes half as long as all the rest")
def test_a_stream_out_of_a_table_and_into_another(answers):
    assert (answers[MOR]["stream"], answers[MOR]["streamed"]) == (None, {"k7": 7})
