"""Columns that change: tables of ours whose columns grew, read by Apache Hudi and hudi-rs, and tables whose columns Hudi changed."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.views import by_hudi, by_rust, differences, ours
from tests.rows import rows_of

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}

point = pa.struct([("x", pa.int32()), ("f", pa.float32())])
wide_point = pa.struct([("x", pa.int64()), ("f", pa.float64()), ("label", pa.string())])
FIRST = pa.schema(
    [
        pa.field("id", pa.string(), False),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.decimal128(6, 2)),
        ("s", point),
        ("l", pa.list_(point)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("ts", pa.int64()),
    ]
)
SECOND = pa.schema(
    [
        pa.field("id", pa.string(), False),
        ("extra", pa.list_(pa.string())),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", wide_point),
        ("l", pa.list_(wide_point)),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("ts", pa.int64()),
    ]
)


def first_row(key: str, n: int) -> dict[str, object]:
    inner = {"x": n, "f": n + 0.1}
    return {"id": key, "n": n, "f": n + 0.1, "d": n, "s": inner, "l": [inner, inner], "m": [(key, n)], "ts": n}


def second_row(key: str, n: int) -> dict[str, object]:
    return {**first_row(key, n), "s": {"x": n, "f": 0.2, "label": key}, "extra": [key], "l": [{"label": "only"}]}


@pytest.mark.parametrize("kind", KINDS)
def test_peers_read_columns_that_were_added_and_widened_at_any_depth(hudi: HudiPeer, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    table = hoodie.create_table(path, FIRST, record_key="id", ordering="ts", table_type=kind, options=NO_PACKING)
    table.insert(pa.Table.from_pylist([first_row(key, 1) for key in "abcd"], schema=FIRST))
    table.upsert(pa.Table.from_pylist([first_row("b", 2)], schema=FIRST))
    table.upsert(pa.Table.from_pylist([second_row("c", 3)], schema=SECOND))
    table.insert(pa.Table.from_pylist([second_row("e", 4)], schema=SECOND))
    table.upsert(pa.Table.from_pylist([first_row("d", 5)], schema=FIRST).drop_columns(["m"]), NULLS)
    assert table.schema.field("s").type == wide_point
    assert differences(path, ours, by_hudi(hudi), skip=lambda view: view.query == "incremental") == []
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found["a"]["f"] == 1.1  # and not what the nearest float is as a double
    assert found["a"]["s"] == {"x": 1, "f": 1.1, "label": None}
    assert found["d"]["m"] is None
    hudi.write(
        path,
        pa.Table.from_pylist([second_row("a", 6)], schema=SECOND.set(6, pa.field("l", pa.list_(wide_point)))),
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
        },
    )
    assert rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow()) == hudi.read(path).rows


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_rs_reads_columns_that_were_added(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    plain = pa.schema([("id", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
    table = hoodie.create_table(path, plain, record_key="id", ordering="ts", table_type=kind)
    table.insert(pa.table({"id": ["a", "b"], "n": [1, 2], "ts": [1, 1]}))
    table.upsert(pa.table({"id": ["b"], "n": [3], "ts": [2], "new": ["x"]}))
    assert (
        differences(path, ours, by_rust, skip=lambda view: view.query == "incremental" or view.as_of is not None) == []
    )


@pytest.mark.parametrize("kind", KINDS)
def test_types_that_apache_hudi_changed_without_being_asked_read_as_it_reads_them(
    hudi: HudiPeer, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.operation": "upsert",
        **NO_PACKING,
    }
    narrow = {
        "id": ["a", "b"],
        "f": pa.array([0.1, 1e10], "float32"),
        "g": pa.array([0.7, 1e-5], "float32"),
        "i": [1, -2],
    }
    hudi.write(path, pa.table({**narrow, "ts": [1, 1]}), options, mode="overwrite")
    hudi.write(path, pa.table({**narrow, "ts": [2, 2]}).slice(1), options)
    wide = {"id": ["c"], "f": [0.5], "g": ["text"], "i": ["text"], "ts": [1]}
    hudi.write(path, pa.table(wide), options)
    assert (
        differences(path, ours, by_hudi(hudi), skip=lambda view: view.query == "incremental" or bool(view.as_of)) == []
    )


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_that_apache_hudi_renamed_dropped_and_retyped_read_as_it_reads_them(
    hudi: HudiPeer, tmp_path: Path, kind: str, version: str
) -> None:
    path, name = tmp_path / "t", f"renamed_{kind}_{version}"
    settings = {
        "hoodie.schema.on.read.enable": "true",
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
        "hoodie.spark.sql.insert.into.operation": "upsert",
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": "false",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        **NO_PACKING,
    }
    table_options = f"type='{kind}', primaryKey='id', preCombineField='ts', 'hoodie.write.table.version'='{version}'"
    steps = [
        f"create table {name} (id string, f float, f2 float, i int, i2 bigint, d date, sd string, dec decimal(6,2), "
        f"s struct<x:int,y:string>, ts bigint) using hudi options({table_options}) location '{path}'",
        f"insert into {name} values ('k1', 0.1, 1.0E10, 7, 8, date'2024-02-03', '12.345', 12.50, struct(1,'y'), 1), "
        f"('k2', 0.3, 16777216, -7, -8, date'1999-12-31', '-0.5', -1.00, null, 1)",
        f"alter table {name} alter column f type double",
        f"alter table {name} alter column f2 type string",
        f"alter table {name} alter column i type float",
        f"alter table {name} alter column i2 type decimal(20,1)",
        f"alter table {name} alter column d type string",
        f"alter table {name} alter column sd type decimal(10,2)",
        f"alter table {name} rename column dec to price",
        f"insert into {name} values ('k2', 0.7, 'x', 1.5, 2.5, 'day', 1.25, 2.50, struct(2,'z'), 2)",
        f"alter table {name} drop column f2",
        f"alter table {name} add columns (f2 int)",
        f"alter table {name} rename column s.x to xx",
    ]
    try:
        for key, value in settings.items():
            hudi.sql(f"set {key}={value}")
        for step in steps:
            hudi.sql(step)
        by_ids = by_hudi(hudi, {"hoodie.schema.on.read.enable": "true"})
        assert differences(path, ours, by_ids, skip=lambda view: view.query == "incremental") == []
    finally:
        hudi.sql("reset")
    table = hoodie.open_table(path)
    assert table.schema.names[-1] == "f2"
    table.upsert(pa.table({"id": ["k1"], "ts": [9]}), {**NULLS, "hoodie.clean.automatic": "false"})
    assert differences(path, ours, by_ids, skip=lambda view: view.query == "incremental") == []


@pytest.mark.parametrize("kind", KINDS)
def test_integers_beneath_a_floating_column_are_rounded_as_apache_hudi_rounds_them(
    hudi: HudiPeer, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t"
    large = [2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1, 7]
    ids = [f"k{number}" for number in range(len(large))]
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type=kind, options=NO_PACKING)
    table.insert(pa.table({"id": ids, "n": large, "ts": [1] * len(large)}))
    table.upsert(pa.table({"id": ids[2:4], "n": large[2:4], "ts": [2, 2]}))
    hudi.write(
        path,
        pa.table({"id": ["new"], "n": [0.5], "ts": [1]}),
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
        },
    )
    assert table.schema.field("n").type == pa.float64()
    assert differences(path, ours, by_hudi(hudi), skip=lambda view: view.query == "incremental") == []
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {**dict(zip(ids, map(float, large), strict=True)), "new": 0.5}
    if kind == "MERGE_ON_READ":
        table.compact()
    table.upsert(pa.table({"id": ids[:1], "n": [1], "ts": [3]}))
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == hudi.read(path).rows
