"""Rows to delete: their partitions may be said or not, in a file or a line of it, and all of them go."""

from __future__ import annotations

import json
import secrets
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie

DAY = date(2026, 1, 1)
TYPES = {"id": "int64", "day": "date32", "city": "string", "v": "int64"}


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


def partitioned(version: str = "6", table_type: str = "COPY_ON_WRITE", **options: str) -> hoodie.HoodieTable:
    table = hoodie.create_table(
        f"memory://{secrets.token_hex(8)}",
        TYPES,
        record_key="id",
        partition_by=["day", "city"],
        table_type=table_type,
        options={"hoodie.write.table.version": version, **options},
    )
    table.insert([{"id": n, "day": DAY, "city": "oslo" if n % 2 else None, "v": n} for n in range(8)])
    return table


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)


def ids(table: hoodie.HoodieTable) -> list[int]:
    return sorted(hoodie.open_table(table.uri).scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("version", "table_type"), [("6", "MERGE_ON_READ"), ("9", "COPY_ON_WRITE")])
def test_keys_that_say_no_partition_are_deleted_in_all_of_them(landing: Path, version: str, table_type: str) -> None:
    table = partitioned(version, table_type)
    (landing / "1.json").write_text(
        lines(
            {"id": 1},
            {"id": 3, "day": None, "city": None},
            {"id": 4, "day": DAY, "city": None},
            {"id": 5, "day": DAY, "city": "oslo"},
            {"id": 7, "day": DAY, "city": "rome"},  # it is in another
            {"id": 6, "day": None, "city": "rome"},  # so is it
            {"id": 99},
            {"v": 1},
        )
    )
    (done,) = hoodie.ingest(landing, table, operation="delete").rounds
    assert (done.rows, done.bad) == (7, 1)
    assert ids(table) == [0, 2, 6, 7]
    assert hoodie.ingest(landing, table, operation="delete").rounds == ()
    (landing / "2.json").write_text(lines({"id": 99}))
    assert hoodie.ingest(landing, table, operation="delete").rows == 1
    assert hoodie.ingest(landing, table, operation="delete").rounds == ()


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_a_file_of_keys_alone_deletes(landing: Path, form: str, index: str) -> None:
    table = partitioned(**{"hoodie.index.type": index})
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    match form:
        case "json":
            (landing / "1.json").write_text(lines(*rows.to_pylist()))
        case "csv":
            (landing / "1.csv").write_text("id\n1\n2\n")
        case "parquet":
            pq.write_table(rows, landing / "1.parquet")
    options = {"hoodie.index.type": index}
    (done,) = hoodie.ingest(landing, table, operation="delete", options=options).rounds
    assert (done.rows, done.bad, ids(table)) == (2, 0, [0, 3, 4, 5, 6, 7])
