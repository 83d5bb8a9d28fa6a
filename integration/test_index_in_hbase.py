"""The index HBASE in a real HBase: rows in Apache Hudi's layout by HBase's own client, kills, and a server that goes away."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import KeyIndexError
from tests.effort import HUNG_S
from tests.servers.hbase import JARS, HBase
from tests.servers.hbase import hbase as started

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


@pytest.fixture(scope="module")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    if not any(JARS.glob("*.jar")):
        pytest.skip(f"no jars of HBase's server in {JARS}")
    with started(tmp_path_factory.mktemp("hbase")) as server:
        yield server


def options_of(hbase: HBase, kind: str) -> dict[str, str]:
    """As a job of Apache Hudi 0.14 has them, with the address of the Thrift server beside."""
    return {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.table": f"t_{uuid.uuid4().hex}",
        "hoodie.index.hbase.zkquorum": "127.0.0.1",
        "hoodie.index.hbase.zkport": "2181",
        "hoodie.index.hbase.zknode.path": "/hbase",
        "hoodie.index.hbase.get.batch.size": "500",
        "hoodie.index.hbase.put.batch.size": "500",
        "hoodie.hbase.index.update.partition.path": "true",
        "hoodie.python.index.hbase.thrift": hbase.address,
    }


def rows(keys: range, part: str, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in keys], "part": [part] * len(keys), "v": [value] * len(keys)})


def made(path: Path, options: Mapping[str, str], first: pa.Table) -> hoodie.HoodieTable:
    table = hoodie.create_table(path, first, record_key="id", partition_by="part", options=options)
    table.upsert(first)
    return table


def stands(table: hoodie.HoodieTable) -> dict[bytes, tuple[bytes, bytes]]:
    names = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    found = table.scan(names).to_arrow().to_pylist()
    return {row[names[0]].encode(): (row[names[1]].encode(), row[names[2]].split("_")[0].encode()) for row in found}


def entries(hbase: HBase, options: Mapping[str, str]) -> dict[bytes, dict[bytes, bytes]]:
    return dict(hbase.connect().table(options["hoodie.index.hbase.table"]).scan())


def contents(table: hoodie.HoodieTable) -> list[tuple[str, str, int]]:
    return sorted(tuple(row.values()) for row in table.scan(["id", "part", "v"]).to_arrow().to_pylist())


@KINDS
def test_rows_in_hbase_are_those_of_apache_hudi(tmp_path: Path, hbase: HBase, kind: str) -> None:
    options = options_of(hbase, kind)
    table = made(tmp_path / "t", options, rows(range(3000), "a", 1))
    result = table.upsert(rows(range(2500, 3500), "b", 2))
    assert (result.opened, result.inserted) == (0, 1000)
    table.delete(pa.table({"id": ["k1"], "part": ["a"]}))
    found = entries(hbase, options)
    assert {name for row in found.values() for name in row} == {
        b"_s:commit_ts",
        b"_s:file_name",
        b"_s:partition_path",
    }
    told = {key: (row[b"_s:partition_path"], row[b"_s:file_name"]) for key, row in found.items()}
    if kind == "MERGE_ON_READ":
        del told[b"k1"]  # a key that comes again goes to the file group that has it
    assert told == stands(table)
    assert {row[b"_s:commit_ts"].decode() for row in found.values()} <= {i.time for i in table.timeline.commits}


@KINDS
def test_entries_that_a_job_of_apache_hudi_put_are_gone_by(tmp_path: Path, hbase: HBase, kind: str) -> None:
    """Its rows are put by the client, as its source has them; the table forgets that ours made it."""
    options = options_of(hbase, kind)
    table = made(tmp_path / "t", options, rows(range(20), "a", 1))
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    theirs = [line for line in properties.read_text().splitlines() if "hoodie.python." not in line]
    properties.write_text("\n".join([*theirs, "hoodie.index.type=HBASE", ""]))
    client = hbase.connect().table(options["hoodie.index.hbase.table"])
    time_of, before = table.timeline.commits[-1].time, stands(table)
    with client.batch() as batch:
        for key, (path, file_id) in before.items():
            row = {b"_s:commit_ts": time_of.encode(), b"_s:file_name": file_id, b"_s:partition_path": path}
            batch.put(key, row)
        failed = {b"_s:commit_ts": b"20200101000000000", b"_s:file_name": b"gone-0", b"_s:partition_path": b"a"}
        batch.put(b"k30", failed)  # of a commit that Hudi lost, in a file group that is not there
    again = hoodie.open_table(tmp_path / "t", options=options)
    result = again.upsert(rows(range(10, 31), "a", 2))
    assert (result.updated, result.inserted) == (10, 11)
    assert len(contents(again)) == 31
    assert again.rebuild_index() == 31
    reopened = hoodie.open_table(tmp_path / "t", options=options)
    result = reopened.upsert(rows(range(25, 35), "a", 3))
    assert (result.opened, result.updated, result.inserted) == (0, 6, 4)


@KINDS
def test_a_server_that_goes_away_fails_the_write_and_nothing_of_it_is_visible(
    tmp_path: Path, hbase: HBase, kind: str
) -> None:
    options = options_of(hbase, kind)
    table = made(tmp_path / "t", options, rows(range(20), "a", 1))
    before = contents(table)
    hbase.stop_thrift()
    try:
        with pytest.raises(KeyIndexError, match="Nothing of the write is visible"):
            table.upsert(rows(range(15, 25), "b", 2))
        assert contents(table) == before
    finally:
        hbase.start_thrift()
    table.upsert(rows(range(15, 25), "b", 2))
    assert [row[:2] for row in contents(table)] == sorted(
        [*((f"k{n}", "a") for n in range(15)), *((f"k{n}", "b") for n in range(15, 25))]
    )


KILLED = """
import os, signal, sys
import pyarrow as pa, hoodie, hoodie.index.external
from hoodie.txn.transaction import Transaction
path, *options = sys.argv[1:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
Transaction.commit = die  # the moment after the puts, and before the commit
keys = range(15, 25)
rows = pa.table({"id": [f"k{n}" for n in keys], "part": ["b"] * 10, "v": [2] * 10})
hoodie.open_table(path, options=dict(each.split("=", 1) for each in options)).upsert(rows)
"""


@KINDS
def test_a_writer_that_is_killed_between_its_puts_and_its_commit(tmp_path: Path, hbase: HBase, kind: str) -> None:
    options = options_of(hbase, kind)
    table = made(tmp_path / "t", options, rows(range(20), "a", 1))
    before, words = contents(table), [f"{name}={value}" for name, value in options.items()]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "t"), *words], env={**os.environ}, timeout=HUNG_S, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    moved = {key for key, row in entries(hbase, options).items() if row[b"_s:partition_path"] == b"b"}
    assert len(moved) == 10  # HBase says so; the table does not
    assert contents(table) == before
    table.upsert(rows(range(15, 18), "a", 3))
    table.upsert(rows(range(22, 25), "a", 3))
    assert [row[:2] for row in contents(table)] == sorted((f"k{n}", "a") for n in [*range(20), *range(22, 25)])
