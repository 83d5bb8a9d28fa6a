"""Files that lack columns of the table: the table is the same however rounds are cut."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import HoodieError, SchemaError
from hoodie.model.ingest_results import IngestResult
from hoodie.storage.uri import open_storage
from tests.ingestion.files_without_columns import WRITERS, put_files_that_lack_columns


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("key", ["id", ["id", "city"]])
def test_what_a_file_lacks_is_null_however_rounds_are_cut(landing: Path, form: str, key: str | list[str]) -> None:
    put_files_that_lack_columns(landing, form)
    columns = pa.schema(
        [("id", pa.int64()), pa.field("must", pa.int64(), False), ("city", pa.string()), ("n", pa.int64())]
    )
    found, kept = [], []
    every_bounds: list[Any] = [{}, {"max_files": 1}, {"max_files": 2}]
    for bounds in every_bounds:
        t = hoodie.create_table(target(), columns, record_key=key)
        t.upsert({"id": [11], "must": [1], "city": ["oslo"], "n": [7]})
        done = hoodie.ingest(landing, t, operation="upsert", **bounds)
        found.append(sorted(t.scan().to_arrow().to_pylist(), key=repr))
        kept.append(quarantined(t, done))
    assert found[0] == found[1] == found[2]
    assert kept[0] == kept[1] == kept[2]
    by_id = {row["id"]: row for row in found[0] if row["id"] is not None}
    assert (by_id[11]["n"], by_id[21]["city"], by_id[1]["n"]) == (None, None, 5)
    reasons = [reason for reason, _ in kept[0]]
    assert reasons.count("column 'must' is null or not there, and must not be null") == 2
    assert reasons.count("the record key (id) is null or empty") == (2 if key == "id" else 0)


def quarantined(table: hoodie.HoodieTable, done: IngestResult) -> list[tuple[str, set[str]]]:
    lines = [
        json.loads(line)
        for each in done.rounds
        for line in (open_storage(table.uri).read(each.quarantine).splitlines() if each.quarantine else [])
    ]
    return sorted(((each["reason"], set(json.loads(each["content"]).values()) - {None}) for each in lines), key=repr)


def test_partial_upserts_keep_what_all_files_lack_but_need_a_key(landing: Path) -> None:
    put_files_that_lack_columns(landing, "parquet")
    t = hoodie.create_table(target(), {"id": "int64", "must": "int64", "city": "string", "n": "int64"}, record_key="id")
    t.upsert({"id": [11, 21], "must": [1, 1], "city": ["bern", "bern"], "n": [7, 7]})
    done = hoodie.ingest(landing, t, max_files=1, options={"hoodie.python.upsert.partial": "true"})
    rows = {row["id"]: (row["city"], row["n"]) for row in t.scan().to_arrow().to_pylist()}
    assert (rows[11], rows[21]) == (("oslo", 7), ("bern", 5))
    assert (done.rows, done.bad) == (8, 2)


def test_a_field_of_a_struct_that_a_file_lacks_is_null_and_a_column_of_another_case_is_an_error(landing: Path) -> None:
    t = hoodie.create_table(target(), {"id": "int64", "s": "struct<a: bigint, b: bigint>"}, record_key="id")
    pq.write_table(pa.table({"id": [1], "s": [{"a": 1}]}), landing / "a.parquet")
    assert hoodie.ingest(landing, t).rows == 1
    assert t.scan(["s"]).to_arrow().to_pylist() == [{"s": {"a": 1, "b": None}}]
    pq.write_table(pa.table({"ID": [1]}), landing / "b.parquet")
    with pytest.raises(HoodieError, match=r"(?i)'id'"):
        hoodie.ingest(landing, t)


def test_a_query_that_leaves_columns_out_stays_an_error(landing: Path) -> None:
    (landing / "a.jsonl").write_text('{"id": 1, "n": 1}')
    t = hoodie.create_table(target(), {"id": "int64", "n": "int64"}, record_key="id")
    with pytest.raises(SchemaError, match="MISSING"):
        hoodie.ingest(landing, t, sql="SELECT id FROM source")
