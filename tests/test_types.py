"""What a user's type checker sees of `hoodie` and `pyspark_hoodie`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
from collections.abc import Iterator
from datetime import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

import hoodie
import pyspark_hoodie


class Mine:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return requested_schema


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": ["a"]})


def embedded(frame: pl.DataFrame, lazy: pl.LazyFrame, pandas: pd.DataFrame, data: ds.Dataset, rows: hoodie.Rows) -> None:
    table = hoodie.create_table("t", {"id": "string", "n": pa.int64()}, record_key="id")
    reveal_type(table)  # hoodie.table.HoodieTable
    done = table.upsert(pa.table({"id": ["a"]}))
    reveal_type(done)  # hoodie.model.results.CommitResult
    reveal_type(done.inserted)  # int
    table.upsert(frame)
    table.upsert(lazy)
    table.insert(pandas)
    table.bulk_insert(data)
    table.insert_overwrite(batches())
    table.insert_overwrite_table(list(batches()))
    table.upsert(Mine())
    table.upsert(rows)
    table.upsert(table.scan())
    table.upsert({"id": ["a"], "n": [1]})
    table.delete([{"id": "a", "n": 1}])
    table.upsert(5)  # error: arg-type
    scan = table.scan(columns=["id"], where="n > 1", as_of=datetime(2026, 1, 1))
    reveal_type(scan)  # hoodie.read.scan.Scan
    reveal_type(scan.limit(3).to_polars())  # polars.dataframe.frame.DataFrame
    reveal_type(scan.count())  # int
    reveal_type(table.history()[0].instant)  # str | None
    table.changes(since=done, until="2 hours ago")
    table.scan(as_of=5.5)  # error: arg-type
    table.upsrt(rows)  # error: attr-defined
    reveal_type(hoodie.is_table("t"))  # bool
    hoodie.create_table("t", frame.schema, record_key="id")
    hoodie.create_table("t", pandas, record_key=["id"])
    hoodie.create_table("t", pa.schema([("id", pa.string())]), record_key="id")


def spark(session: SparkSession) -> None:
    pyspark_hoodie.enable(session, aliases=["hudi"])
    table = pyspark_hoodie.HoodieTable.for_path(session, "t")
    reveal_type(table)  # pyspark_hoodie.table.HoodieTable
    reveal_type(table.read(as_of="today"))  # pyspark.sql.dataframe.DataFrame
    reveal_type(table.upsert(table.read()))  # hoodie.model.results.CommitResult
    reveal_type(pyspark_hoodie.last_commit("t"))  # hoodie.model.results.CommitResult
    hoodie.create_table("t", table.read().schema, record_key="id")
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Line -> what mypy says of it."""
    for needed in ("mypy", "polars", "pyspark"):
        pytest.importorskip(needed)
    folder = tmp_path_factory.mktemp("user")
    (folder / "program.py").write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "program.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_ext")])},
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(re.findall(r"^program\.py:(\d+): (.*)$", run.stdout, re.MULTILINE))


def expected():
    for number, line in enumerate(PROGRAM.splitlines(), start=1):
        _, _, comment = line.partition("  # ")
        if comment.startswith("error: "):
            yield str(number), f"error: .*{re.escape('[' + comment.removeprefix('error: ') + ']')}"
        elif comment:
            yield str(number), re.escape(f'note: Revealed type is "{comment}"')


@pytest.mark.long
def test_a_strict_check_shows_the_types_and_finds_the_slips(told):
    wrong = {line: (told.get(line), said) for line, said in expected() if not re.fullmatch(said, told.get(line, ""))}
    assert wrong == {}
    # Stubs of pandas are not installed with it; all else that is told is wanted.
    others = {line: said for line, said in told.items() if line not in dict(expected())}
    assert [said for said in others.values() if "error: " in said and "pandas" not in said] == []


@pytest.mark.parametrize("package", ["hoodie", "spark_ext/pyspark_hoodie"])
def test_both_packages_say_that_they_are_typed(package):
    assert (ROOT / package / "py.typed").is_file()
