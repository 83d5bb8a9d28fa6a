"""A table in BigQuery: the manifest has the newest base files, and the registration follows the columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HiveSyncError, OptionError, SchemaError
from hoodie.mirrors import bigquery
from hoodie.mirrors.bigquery import MANIFEST, register, type_text
from hoodie.options.bigquery import BigQueryOptions
from hoodie.services import upkeep
from tests.bigquery_server import Tables, bigquery_server

GS = "gs://bucket/trips"
OPTIONS = BigQueryOptions(project="p", dataset="d", path=GS)
SCHEMA = pa.schema(
    [
        *[("id", pa.string()), ("city", pa.string()), ("n", pa.int32()), ("at", pa.timestamp("us", "UTC"))],
        *[
            ("tags", pa.list_(pa.string())),
            ("s", pa.struct([("a", pa.float64())])),
            ("m", pa.map_(pa.string(), pa.int64())),
        ],
    ]
)


@pytest.fixture
def tables() -> Iterator[Tables]:
    with bigquery_server() as made:
        yield made


def table_at(path: Path, kind: str = "COPY_ON_WRITE", **options: str) -> hoodie.HoodieTable:
    more = {"hoodie.datasource.write.hive_style_partitioning": "true", **options}
    table = hoodie.create_table(
        path / "trips", SCHEMA, record_key="id", partition_by="city", table_type=kind, options=more
    )
    table.upsert(rows("a", "b"))
    return table


def rows(*ids: str, **more: Any) -> pa.Table:
    return pa.Table.from_pylist([{"id": each, "city": f"c{each}", "n": 1, **more} for each in ids], SCHEMA)


def manifest(table: hoodie.HoodieTable) -> list[str]:
    return table._context.storage.read(MANIFEST).decode().splitlines()


def bases(table: hoodie.HoodieTable) -> list[str]:
    tasks = table.scan(query="read_optimized").plan.tasks
    return sorted(f"{GS}/{task.slice.base.path}" for task in tasks if task.slice.base)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_table_is_made_once_and_the_manifest_follows_the_commits(tables: Tables, tmp_path: Path, kind: str) -> None:
    table = table_at(tmp_path, kind)
    (done,) = register(table._context, OPTIONS, connect=tables.connect).tables
    assert (done.name, done.made, done.noted) == ("p.d.trips", True, table.timeline.commits[-1].time)
    assert manifest(table) == bases(table)
    assert tables["trips"]["externalDataConfiguration"]["sourceUris"] == [f"{GS}/.hoodie/absolute-path-manifest/*"]
    names = [field["name"] for field in tables["trips"]["schema"]["fields"]]
    assert names == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        *SCHEMA.names,
    ]
    table.upsert(rows("a", "c"))
    table.delete_partitions(["city=cb"])
    assert not register(table._context, OPTIONS, connect=tables.connect).changed
    assert manifest(table) == bases(table)
    assert len(tables.statements) == 1


def test_new_columns_are_added_to_the_registration(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path)
    register(table._context, OPTIONS, connect=tables.connect)
    table.upsert(rows("a").append_column("fare", [[1.5]]))
    dry = register(table._context, OPTIONS, dry_run=True, connect=tables.connect)
    assert dry.tables[0].columns == ("fare added",)
    assert (manifest(table) == bases(table), tables.patched) == (False, [])
    assert register(table._context, OPTIONS, connect=tables.connect).tables[0].columns == ("fare added",)
    assert tables.patched == [["externalDataConfiguration"]]
    assert tables["trips"]["schema"]["fields"][-1]["name"] == "fare"
    assert not register(table._context, OPTIONS, connect=tables.connect).changed


def test_columns_of_folders_are_bigquerys(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path, **{"hoodie.datasource.write.drop.partition.columns": "true"})
    options = BigQueryOptions(project="p", dataset="d", path=GS, requires_filter=True)
    register(table._context, options, connect=tables.connect)
    assert " WITH PARTITION COLUMNS" in tables.statements[0]
    assert "`city`" not in tables.statements[0]
    told = tables["trips"]["externalDataConfiguration"]["hivePartitioningOptions"]
    assert (told["sourceUriPrefix"], told["requirePartitionFilter"]) == (GS, True)
    assert not register(table._context, options, connect=tables.connect).changed
    table.upsert(rows("a").append_column("fare", [[1.5]]))
    assert register(table._context, options, connect=tables.connect).tables[0].columns == ("fare added",)
    assert [each["name"] for each in tables["trips"]["schema"]["fields"]][-2:] == ["fare", "city"]
    assert register(table._context, OPTIONS, connect=tables.connect).tables[0].properties_changed  # no filter any more
    assert len(tables.statements) == 2


def test_folders_that_say_no_names_are_refused(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path, **{"hoodie.datasource.write.hive_style_partitioning": "false"})
    with pytest.raises(SchemaError, match="not named as column=value"):
        register(table._context, BigQueryOptions(project="p", dataset="d", prefix=GS), connect=tables.connect)


def test_biglake_tables_have_their_columns_elsewhere(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path)
    options = BigQueryOptions(project="p", dataset="d", path=GS, connection="p.eu.lake")
    register(table._context, options, connect=tables.connect)
    assert "WITH CONNECTION `p.eu.lake`" in tables.statements[0]
    table.upsert(rows("a").append_column("fare", [[1.5]]))
    register(table._context, options, connect=tables.connect)
    assert tables.patched == [["schema"]]


def test_a_name_that_others_have_is_not_taken(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path)
    for other in ({"type": "VIEW", "schema": {}}, {"externalDataConfiguration": {"sourceUris": ["gs://other/*"]}}):
        tables["trips"] = other
        with pytest.raises(
            HiveSyncError, match=r"p\.d\.trips in BigQuery is no registration .*recreate_table_on_error"
        ):
            register(table._context, OPTIONS, connect=tables.connect)
    options = BigQueryOptions(project="p", dataset="d", path=GS, recreates=True)
    assert register(table._context, options, connect=tables.connect).tables[0].properties_changed


def test_what_fails_is_named(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path)
    with pytest.raises(OptionError, match=r"needs hoodie\.gcp\.bigquery\.sync\.project_id"):
        register(table._context, BigQueryOptions(), connect=tables.connect)
    with pytest.raises(HiveSyncError, match=r"no dataset p\.e: create it"):
        register(table._context, BigQueryOptions(project="p", dataset="e"), connect=tables.connect)
    tables.refuses = 403
    with pytest.raises(HiveSyncError, match=r"registration of p\.d\.trips in BigQuery failed: .*no access"):
        register(table._context, OPTIONS, connect=tables.connect)


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery", None)
    monkeypatch.delattr("google.cloud.bigquery")
    with pytest.raises(OptionError, match="with the extra `bigquery`"):
        register(table_at(tmp_path)._context, OPTIONS)


def test_writes_register_by_apache_hudis_options(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bigquery, "make_client", tables.connect)
    monkeypatch.setattr(upkeep, "register", partial(register, connect=tables.connect))
    options = {
        "hoodie.datasource.meta.sync.enable": "true",
        "hoodie.meta.sync.client.tool.class": "org.apache.hudi.gcp.bigquery.BigQuerySyncTool",
        "hoodie.gcp.bigquery.sync.project_id": "p",
        "hoodie.gcp.bigquery.sync.dataset_name": "d",
        "hoodie.datasource.meta.sync.base.path": GS,
    }
    table = table_at(tmp_path)
    table.upsert(rows("a"), options=options)
    assert manifest(table) == bases(table)
    assert caplog.text == ""
    tables.refuses = 403
    table.upsert(rows("a"), options=options)
    assert "the commit stands, but the registration of the table in BigQuery after it failed" in caplog.text
    assert table.scan().count() == 2


def test_of_two_registrations_the_newest_manifest_stays(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(tmp_path)
    storage = type(table._context.storage)
    replace, others = storage.replace, []

    def late(self: Any, path: str, data: bytes, **more: Any) -> None:
        if path == MANIFEST and not others:
            others.append(path)
            hoodie.open_table(tmp_path / "trips").upsert(rows("a", "z"))
            register(hoodie.open_table(tmp_path / "trips")._context, OPTIONS, connect=tables.connect)
        replace(self, path, data, **more)

    monkeypatch.setattr(storage, "replace", late)
    register(table._context, OPTIONS, connect=tables.connect)
    assert manifest(table) == bases(hoodie.open_table(tmp_path / "trips"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.decimal128(38, 9), "NUMERIC"),
        (pa.decimal128(38, 10), "BIGNUMERIC"),
        (pa.timestamp("us"), "DATETIME"),
        (pa.binary(4), "BYTES"),
        (pa.list_(pa.struct([("x", pa.date32())])), "ARRAY<STRUCT<`x` DATE>>"),
    ],
)
def test_types(kind: pa.DataType, text: str) -> None:
    assert type_text(kind, "x") == text


def test_lists_of_lists_have_no_type() -> None:
    with pytest.raises(SchemaError, match=r"column 'x' .* no lists of lists"):
        type_text(pa.list_(pa.list_(pa.int8())), "x")


def test_the_paths_are_those_of_the_storage_where_none_is_given(tables: Tables, tmp_path: Path) -> None:
    table = table_at(tmp_path)
    register(table._context, BigQueryOptions(project="p", dataset="d"), connect=tables.connect)
    assert all(os.path.exists(path.removeprefix("file://")) for path in manifest(table))
